"""The examples of the falsify-eval guide and README (Sharma 2026), worked with this package.

Which cheat is caught by which null is asserted as it comes out, also where the guide's table says
otherwise: null A, a permutation of the gold sets, catches every system that reads no query.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from falsify_adapters.gate import run_gate
from falsify_adapters.results import GateConfig, GateReport
from tests.benchmarks_made import Ranking, ranking
from tests.gate_cases import CORPUS_SIZE, evaluation

N = 200


def skewed_gold(share: float, n: int = N) -> dict[str, str]:
    """One document answers a share of the queries, every other query has its own."""
    common = round(share * n)
    return {f"q{i:03}": "common" if i < common else f"d{i:03}" for i in range(n)}


def always(doc: str, gold: dict[str, str]) -> dict[str, Ranking]:
    return {query: ranking([doc]) for query in gold}


def deltas(report: GateReport) -> dict[str, float]:
    return {name: null.delta for name, null in report.nulls.items()}


def test_eighty_percent_one_document() -> None:
    # 80 % of the answers are document A, the rest is split over B to F
    gold = {f"q{i:03}": "A" if i < 160 else "BCDEF"[i % 5] for i in range(N)}
    report = run_gate(evaluation(always("A", gold), gold), "R@1")
    assert report.score == pytest.approx(0.80)
    assert report.verdict == "FAIL"
    # permuting answers does change nothing for a constant: A and D both say so
    assert deltas(report)["A"] == 0
    assert deltas(report)["D"] == pytest.approx(0, abs=1e-12)
    # six even answers would have given 1/6, one random document of the corpus next to nothing
    assert report.nulls["B"].mean == pytest.approx(1 / 6)
    assert report.nulls["C"].mean < 0.001
    assert [null.verdict for null in report.nulls.values()] == ["FAIL", "PASS", "PASS", "FAIL"]


@pytest.mark.parametrize("share", [0.30, 0.40])
def test_an_answer_that_is_right_for_a_share_of_the_queries(share: float) -> None:
    gold = skewed_gold(share)
    report = run_gate(evaluation(always("common", gold), gold), "R@1")
    assert report.score == pytest.approx(share)
    assert report.verdict == "FAIL"
    # null D answers it as often as it is right, null B hardly ever, null C never
    assert report.nulls["D"].mean == pytest.approx(share)
    n_answers = len(set(gold.values()))
    assert report.nulls["B"].mean == pytest.approx(1 / n_answers)
    assert report.nulls["B"].mean < 0.01
    assert report.nulls["C"].mean == pytest.approx(1 / 5000)
    # B and C alone would let it through
    assert [null.verdict for null in report.nulls.values()] == ["FAIL", "PASS", "PASS", "FAIL"]


def test_a_system_that_reads_the_query_passes_on_the_same_benchmark() -> None:
    gold = skewed_gold(0.30)
    rng = np.random.default_rng(0)
    run = {q: ranking([doc if rng.random() < 0.8 else "common"]) for q, doc in gold.items()}
    report = run_gate(evaluation(run, gold), "R@1")
    assert report.verdict == "PASS"


# Proposition 1: which null rejects which cheat


def zipf_gold(seed: int = 1, n: int = N) -> dict[str, str]:
    """Answers with a long tail: 30 documents, the n-th as often as 1/n."""
    weight = 1 / np.arange(1, 31)
    drawn = np.random.default_rng(seed).choice(30, size=n, p=weight / weight.sum())
    return {f"q{i:03}": f"d{doc:02}" for i, doc in enumerate(drawn)}


def marginal_rank(gold: dict[str, str]) -> dict[str, Ranking]:
    """Return the five most frequent answers, for every query."""
    top = [doc for doc, _ in Counter(gold.values()).most_common(5)]
    return {query: ranking(top) for query in gold}


def marginal_sample(gold: dict[str, str], seed: int = 2) -> dict[str, Ranking]:
    """Return five answers drawn anew for each query, frequent ones more often."""
    rng = np.random.default_rng(seed)
    tickets = list(gold.values())
    return {
        query: ranking(list(dict.fromkeys(tickets[i] for i in rng.permutation(len(tickets))))[:5])
        for query in gold
    }


def random_documents(gold: dict[str, str], seed: int = 3) -> dict[str, Ranking]:
    """Return five documents of the corpus at random, no matter whether they answer anything."""
    rng = np.random.default_rng(seed)
    corpus = sorted(set(gold.values())) + [f"z{i:04}" for i in range(CORPUS_SIZE - 30)]
    return {query: ranking([corpus[i] for i in rng.permutation(len(corpus))[:5]]) for query in gold}


def good_run(gold: dict[str, str], seed: int = 4) -> dict[str, Ranking]:
    """Return the answer first for 70 % of the queries, else in third place."""
    rng = np.random.default_rng(seed)
    run = {}
    for query, doc in gold.items():
        other = [f"z{i:04}" for i in rng.permutation(2000)[:4]]
        place = 0 if rng.random() < 0.7 else 2
        run[query] = ranking([*other[:place], doc, *other[place:]])
    return run


def shuffled(run: dict[str, Ranking], seed: int = 5) -> dict[str, Ranking]:
    """Return a good run's rankings, each given to another query."""
    queries = sorted(run)
    donors = np.random.default_rng(seed).permutation(len(queries))
    return {query: run[queries[i]] for query, i in zip(queries, donors, strict=True)}


#: cheat -> (run on zipf_gold, nulls that say FAIL, nulls that say PASS); the rest is UNDER-NS.
CHEATS: dict[str, tuple[Any, str, str]] = {
    # A and D catch the same: with one answer per query they are one number
    "constant predictor": (
        lambda g: always(Counter(g.values()).most_common(1)[0][0], g),
        "AD",
        "BC",
    ),
    "marginal rank": (marginal_rank, "AD", "BC"),
    # what is drawn by frequency fails A and D alike, and beats B and C by knowing the frequencies
    "marginal sample": (marginal_sample, "AD", "C"),
    "random documents": (random_documents, "ABCD", ""),
    # rankings of real answers: they beat random documents, and even answers by their frequency
    "shuffled run": (lambda g: shuffled(good_run(g)), "AD", "C"),
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_which_null_catches_which_cheat(cheat: str) -> None:
    make, failed, passed = CHEATS[cheat]
    gold = zipf_gold(n=1000)
    report = run_gate(evaluation(make(gold), gold), "nDCG@5")
    verdicts = {name: null.verdict for name, null in report.nulls.items()}
    assert report.verdict == "FAIL"
    assert {name for name, verdict in verdicts.items() if verdict == "FAIL"} >= set(failed)
    assert {name for name, verdict in verdicts.items() if verdict == "PASS"} >= set(passed)
    # nobody may read A and D as two witnesses here
    assert report.nulls["A"].mean == pytest.approx(report.nulls["D"].mean)
    assert any(note.message.startswith("A and D have the same") for note in report.warnings)


def test_the_run_that_was_shuffled_passes_as_it_was() -> None:
    gold = zipf_gold(n=1000)
    assert run_gate(evaluation(good_run(gold), gold), "nDCG@5").verdict == "PASS"


def test_random_documents_are_caught_by_null_c_alone_if_all_are_relevant_for_some_query() -> None:
    # a corpus of ten documents, ten returned: whatever is returned is relevant somewhere
    gold = {f"q{i:03}": {f"d{i % 10}": 1, f"d{(i + 3) % 10}": 1} for i in range(N)}
    docs = [f"d{i}" for i in range(10)]
    rng = np.random.default_rng(6)
    run = {query: ranking([docs[i] for i in rng.permutation(10)[:5]]) for query in gold}
    report = run_gate(evaluation(run, gold, corpus_size=10), "R@5")
    assert report.score > 0.4
    assert report.verdict == "FAIL"
    assert all(null.verdict == "FAIL" for null in report.nulls.values())


def test_label_permutation_lets_a_constant_through_where_query_permutation_does_not() -> None:
    # with permute="label", as in the falsify-eval library, A is B here, and only D catches it
    gold = skewed_gold(0.40)
    case = evaluation(always("common", gold), gold)
    report = run_gate(case, "R@1", GateConfig(permute="label"))
    assert [null.verdict for null in report.nulls.values()] == ["PASS", "PASS", "PASS", "FAIL"]
    assert report.verdict == "FAIL"
