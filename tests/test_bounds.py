"""The attainable delta against every ranking of a tiny benchmark."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from falsify_adapters.bounds import attainable, best_scores
from falsify_adapters.gate import run_gate
from falsify_adapters.results import GateConfig
from tests import naive
from tests.benchmarks_made import Benchmark, Gold, made, odd, ranking

EXACT = [
    *("nDCG@3", "nDCG", "P@2", "R@3", "SetR", "RR@3", "RR", "Success@2", "P(rel=2)@2"),
    *("RR(rel=2)", "nDCG(gains={1:1,2:5})@3"),
]
UPPER = [
    "AP",
    "AP@3",
    "Rprec",
    "SetP",
    "SetP(rel=2)",
    "SetF",
    "nDCG(dcg='exp-log2')@3",
    "IPrec@0.5",
]


def tiny(sizes: tuple[int, ...], seed: int) -> Benchmark:
    bench = made(seed, n_queries=5, n_docs=5, sizes=sizes, skew=1.5, top_grade=2, depth=3, others=1)
    qrels = {**bench.qrels, "q-99": {"d00": 0}}
    qrels["q-10"] = {**qrels["q-10"], "gone": 2}
    return Benchmark(bench.run, qrels, bench.corpus)


def draws(bench: Benchmark, query: str, null: str) -> list[tuple[float, Gold]]:
    """Return every gold set that a null can give to a query, with its chance."""
    if null in ("A", "D, sets"):
        return [(1 / len(bench.queries), bench.gold(donor)) for donor in bench.queries]
    if null == "B":
        sets = naive.distinct_sets(bench)
        return [(1 / len(sets), gold) for gold in sets]
    tickets = [doc for one in bench.queries for doc in bench.gold(one)]
    docs = sorted(set(tickets))
    weight = {doc: 1 if null == "A, labels" else tickets.count(doc) for doc in docs}
    grades = list(bench.gold(query).values())
    out: dict[tuple[tuple[str, int], ...], float] = {}
    for order in itertools.permutations(docs, len(grades)):
        chance, left = 1.0, sum(weight.values())
        for doc in order:
            chance *= weight[doc] / left
            left -= weight[doc]
        for dealt in itertools.permutations(grades):
            key = tuple(sorted(zip(order, dealt, strict=True)))
            out[key] = out.get(key, 0.0) + chance / len(list(itertools.permutations(grades)))
    return [(chance, dict(gold)) for gold, chance in out.items()]


def best_delta(measure: str, bench: Benchmark, null: str) -> float:
    """Return the best delta over all rankings, query by query."""
    depths = range(4) if "@" in measure else range(len(bench.corpus) + 1)
    docs = [doc for doc in bench.corpus if doc != "x00"]  # never relevant: no use in any rank
    rankings = [
        ranking(order) for k in depths for order in itertools.permutations(docs, min(k, len(docs)))
    ]
    total = 0.0
    for query in bench.queries:
        possible = draws(bench, query, null)
        own = naive.score_all(measure, [(one, bench.gold(query)) for one in rankings])
        cases = [(one, gold) for one in rankings for _, gold in possible]
        null_scores = naive.score_all(measure, cases).reshape(len(rankings), len(possible))
        mean = null_scores @ np.array([chance for chance, _ in possible])
        total += (own - mean).max()
    return total / len(bench.queries)


def reach(measure: str, bench: Benchmark, **options: Any) -> Any:
    p = bench.prepared(measure)
    return attainable(p.coded, p.kernel, **{"labels": False, "sets": False, **options})


@pytest.mark.parametrize("measure", EXACT)
def test_label_nulls_with_one_relevant_document(measure: str) -> None:
    bench = tiny((1,), 1)
    ours = reach(measure, bench)
    assert ours.exact
    for null in ("A", "B", "D"):
        # "q-10" has a second relevant document, which the corpus lacks
        tolerance = 0.01 if null == "D" else 1e-9
        assert ours.delta[null] == pytest.approx(best_delta(measure, bench, null), abs=tolerance)
    labels = reach(measure, bench, labels=True).delta["A"]
    assert labels == pytest.approx(best_delta(measure, bench, "A, labels"))


@pytest.mark.parametrize("measure", ["nDCG@3", "P@2", "R@3", "RR@3", "Success@2", "P(rel=2)@2"])
def test_label_nulls_with_several_relevant_documents(measure: str) -> None:
    bench = tiny((1, 2, 3), 4)
    ours = reach(measure, bench, sets=True)
    for null in ("A", "B"):
        assert ours.delta[null] == pytest.approx(best_delta(measure, bench, null))
    assert ours.delta["D"] == pytest.approx(best_delta(measure, bench, "D, sets"))
    # chances of documents under null D are approximate: within 0.01 even in a pool of five
    by_document = reach(measure, bench).delta["D"]
    assert by_document == pytest.approx(best_delta(measure, bench, "D"), abs=0.01)


@pytest.mark.parametrize("measure", UPPER)
def test_other_measures_have_an_upper_bound(measure: str) -> None:
    bench = tiny((1, 2, 3), 5)
    if "exp" in measure:
        bench = tiny((1, 2), 5)
    ours = reach(measure, bench)
    assert not ours.exact
    for null in ("A", "B"):
        assert ours.delta[null] >= best_delta(measure, bench, null) - 2e-5


@pytest.mark.parametrize("measure", [*EXACT, *UPPER, "P@4", "Compat(p=0.8)"])
def test_no_ranking_scores_above_the_best(measure: str) -> None:
    bench = tiny((1, 2, 3), 6)
    p = bench.prepared(measure)
    docs = [doc for doc in bench.corpus if doc != "x00"]
    depths = range(1, 4) if "@" in measure else range(1, len(docs) + 1)
    rankings = [ranking(order) for k in depths for order in itertools.permutations(docs, k)]
    exhaustive = [
        naive.score_all(measure, [(one, bench.gold(query)) for one in rankings]).max()
        for query in bench.queries
    ]
    ours = best_scores(p.coded, p.kernel)
    assert (ours >= np.array(exhaustive) - 2e-5).all()
    if measure != "P@4":  # three documents cannot fill four places
        np.testing.assert_allclose(ours, exhaustive, atol=2e-5)


def test_no_run_gets_beyond_the_attainable_delta() -> None:
    for build in (odd, lambda: made(8, skill=1.0), lambda: made(9, sizes=(4,), skill=1.0)):
        bench = build()
        for measure in ("nDCG@5", "P@3", "AP", "RR", "SetF"):
            report = run_gate(bench.evaluation(), measure, GateConfig(companion=False))
            for null in report.nulls.values():
                assert null.delta <= null.attainable + 4 * null.mean_error + 1e-9
                assert null.adjusted <= 1 + 1e-9


def test_against_random_documents_it_is_the_best_score_minus_the_mean() -> None:
    bench = made(3, sizes=(2, 5))
    report = run_gate(bench.evaluation(), "P@10", GateConfig(companion=False))
    # two and five relevant documents fill at most a fifth and a half of ten places
    null = report.nulls["C"]
    assert null.attainable == pytest.approx((0.2 + 0.5) / 2 - null.mean)
    assert null.adjusted == pytest.approx(null.delta / null.attainable)


def test_accuracy_at_1_against_permuted_gold_is_cohens_kappa() -> None:
    bench = made(5, n_queries=30, sizes=(1,), n_docs=5, skew=1.0, depth=1)
    report = run_gate(bench.evaluation(), "P@1", GateConfig(companion=False))
    answers = [next(iter(bench.run[query])) for query in bench.queries]
    gold = [next(iter(bench.gold(query))) for query in bench.queries]
    n = len(gold)
    agreement = sum(a == g for a, g in zip(answers, gold, strict=True)) / n
    chance = sum(answers.count(doc) * gold.count(doc) for doc in set(gold)) / n**2
    kappa = (agreement - chance) / (1 - chance)
    assert report.nulls["A"].adjusted == pytest.approx(kappa)
