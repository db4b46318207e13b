"""Other judgements: each grade, another assessor, and which queries turn the verdict."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa

from falsify_adapters.errors import InputError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import as_qrels
from falsify_adapters.gate import run_gate
from falsify_adapters.judgements import gate_by_grade, judge_again, overlap
from falsify_adapters.results import NULLS, GateConfig
from tests.benchmarks_made import made, ranking

QUICK = GateConfig(n_boot=400, n_trials=100, companion=False)


def two_grades(n: int = 60) -> Evaluation:
    """A system that finds what is somewhat relevant, and nothing that is highly relevant."""
    qrels = {f"q{i:02}": {f"d{i}": 2, f"e{i}": 1} for i in range(n)}
    run = {q: ranking([f"e{i}", "x"]) for i, q in enumerate(qrels)}
    return Evaluation.create(run, qrels, corpus_size=1000, system="mine", benchmark="toy")


@pytest.mark.parametrize("measure", ["AP@10", "R@10", "Success@1"])
def test_a_threshold_is_the_rel_of_a_binary_measure(measure: str) -> None:
    bench = made(7, n_queries=40, n_docs=60, sizes=(1, 2, 3), skew=1.0, depth=10)
    one = bench.evaluation()
    rng = np.random.default_rng(0)
    grades = rng.integers(1, 4, len(one.qrels)) * (one.qrels["relevance"] > 0)
    one = replace(one, qrels=one.qrels.assign(relevance=grades))
    table = gate_by_grade(one, measure, QUICK)
    assert [row.grade for row in table.rows] == [1, 2, 3]
    name, cutoff = measure.split("@")
    for row in table.rows:
        direct = run_gate(one, f"{name}(rel={row.grade})@{cutoff}", QUICK)
        assert row.report.score == pytest.approx(direct.score, abs=1e-12)
        for null in "AC":
            means = row.report.nulls[null].mean, direct.nulls[null].mean
            assert means[0] == pytest.approx(means[1], abs=1e-9)
        assert row.relevant == int((grades >= row.grade).sum())


def test_the_table_shows_where_the_verdict_changes() -> None:
    table = gate_by_grade(two_grades(), "nDCG@10", QUICK)
    assert [(row.grade, row.report.verdict) for row in table.rows] == [(1, "PASS"), (2, "FAIL")]
    assert table.rows[0].report.score == run_gate(two_grades(), "nDCG@10", QUICK).score
    frame = table.to_frame()
    assert list(frame.columns) == [*("grade", "relevant", "queries", "score"), *NULLS, "verdict"]
    document = table.to_dict()
    assert (document["kind"], document["n_queries"]) == ("grades", 60)
    assert [row["verdict"] for row in document["rows"]] == ["PASS", "FAIL"]
    json.dumps(document, allow_nan=False)


def test_queries_that_lose_their_documents_stay_and_count_0() -> None:
    qrels = {f"q{i:02}": {f"d{i}": 1 + i % 2} for i in range(60)}
    run = {q: ranking([f"d{i}"]) for i, q in enumerate(qrels)}
    table = gate_by_grade(Evaluation.create(run, qrels, corpus_size=1000), "RR@10", QUICK)
    assert [(row.queries, row.relevant) for row in table.rows] == [(60, 60), (30, 30)]
    assert [row.report.score for row in table.rows] == [1.0, 0.5]
    assert {row.report.n_queries for row in table.rows} == {60}


JUDGED = st.dictionaries(
    st.sampled_from([f"q{i}" for i in range(3)]),
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2), min_size=1),
    min_size=1,
)


@given(JUDGED, JUDGED)
def test_overlap_is_what_its_words_say(one: dict, two: dict) -> None:
    found = overlap(as_qrels(one), as_qrels(two))
    shares, both = [], []
    for query in sorted({*one, *two}):
        first, second = (
            {doc for doc, grade in judged.get(query, {}).items() if grade > 0}
            for judged in (one, two)
        )
        if first | second:
            shares.append(len(first & second) / len(first | second))
        shared = {*one.get(query, {})} & {*two.get(query, {})}
        both += [(doc in first, doc in second) for doc in shared]
    assert found.queries == len(shares)
    assert found.judged_by_both == len(both)
    if shares:
        assert found.jaccard == pytest.approx(np.mean(shares))
    if len({label for pair in both for label in pair}) > 1:
        counts = np.zeros((2, 2))
        for first, second in both:
            counts[int(first), int(second)] += 1
        assert found.kappa == pytest.approx(cohens_kappa(counts, return_results=False))
    else:
        assert np.isnan(found.kappa)


def test_the_same_judgements_hold_the_verdict() -> None:
    one = two_grades()
    again = judge_again(one, one.qrels, "nDCG@10", QUICK, judge="copy")
    assert again.holds
    assert again.overlap.jaccard == again.overlap.kappa == 1.0 or np.isnan(again.overlap.kappa)
    assert (again.turning, again.moved, again.warnings) == ((), (), ())
    assert again.first.to_dict() == again.second.to_dict()
    assert "holds" in again.reason


def test_the_queries_that_turn_the_verdict_do_turn_it() -> None:
    one = two_grades(40)
    # another assessor finds only some of the system's answers relevant
    theirs = {f"q{i:02}": {f"d{i}": 2, f"e{i}": int(i % 8 == 0)} for i in range(40)}
    again = judge_again(one, theirs, "nDCG@10", QUICK, judge="other")
    assert not again.holds
    assert again.first.verdict == "PASS"
    assert 0 < len(again.turning) <= 40
    own = {q: dict(zip(g["doc_id"], g["relevance"], strict=True))
           for q, g in one.qrels.groupby("query_id", observed=True)}  # fmt: skip

    def verdict(exchanged: tuple[str, ...]) -> str:
        mixed = {q: theirs[q] if q in exchanged else own[q] for q in own}
        return run_gate(replace(one, qrels=as_qrels(mixed)), "nDCG@10", QUICK).verdict

    assert verdict(again.turning) == again.second.verdict
    assert verdict(again.turning[:-1]) != again.second.verdict
    assert f"{len(again.turning)} of 40 queries" in again.reason
    assert again.to_dict()["turning"] == list(again.turning)
    assert len(again.moved) == 10
    assert all(int(query[1:]) % 8 for query in again.moved)


def test_only_common_queries_are_graded_and_it_is_said() -> None:
    one = two_grades(40)
    theirs = {f"q{i:02}": {f"e{i}": 1} for i in range(10, 45)}
    again = judge_again(one, theirs, "nDCG@10", QUICK, judge="llm.tsv")
    assert again.n_queries == again.first.n_queries == again.second.n_queries == 30
    (note,) = again.warnings
    assert note.code == "W-COMMON-QUERIES"
    assert note.message == (
        "30 queries are judged by both; 10 only by the main judgements, 5 only by llm.tsv"
    )
    with pytest.raises(InputError, match=r"llm\.tsv judges none of the queries"):
        judge_again(one, {"x": {"d": 1}}, judge="llm.tsv")
