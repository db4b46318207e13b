"""Ties: counted where they reach into the cutoff, ordered for and against the system."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import as_qrels, as_run
from falsify_adapters.gate import run_gate
from falsify_adapters.measures import parse_measure, query_scores
from falsify_adapters.results import GateConfig
from falsify_adapters.ties import tie_orders, tied_queries
from tests.naive import score_all


@pytest.mark.parametrize(
    ("scores", "depth", "expected"),
    [
        ([3, 2, 1], None, 0),
        ([3, 2, 2], 1, 0),
        ([3, 2, 2], 2, 1),  # ranks 2 and 3: which one is inside?
        ([2, 2, 1], 1, 1),
        ([3, 2, 2], None, 1),
        ([1, 1, 1], 2, 1),
    ],
)
def test_ties_count_where_they_reach_into_the_cutoff(
    scores: list[int], depth: int | None, expected: int
) -> None:
    run = as_run({"q": {f"d{i}": score for i, score in enumerate(scores)}, "p": {"d0": 1.0}})
    assert tied_queries(run, depth) == expected


def orders(docs: dict[str, int]) -> Any:
    """Yield every ranking that the scores allow."""
    levels = sorted(set(docs.values()), reverse=True)
    groups = [[doc for doc in docs if docs[doc] == level] for level in levels]
    for parts in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield {doc: float(-i) for i, doc in enumerate(itertools.chain(*parts))}


@settings(deadline=None, max_examples=40)
@given(
    scores=st.lists(st.integers(0, 2), min_size=2, max_size=5),
    grades=st.lists(st.integers(-1, 2), min_size=5, max_size=5),
)
def test_best_and_worst_order_enclose_every_order(scores: list[int], grades: list[int]) -> None:
    docs = {f"d{i}": score for i, score in enumerate(scores)}
    judged = {f"d{i}": grade for i, grade in enumerate(grades)} | {"other": 1}
    run, qrels = as_run({"q": docs}), as_qrels({"q": judged})
    gold = {doc: grade for doc, grade in judged.items() if grade > 0}
    rankings = list(orders(docs))
    for text in ("nDCG@2", "nDCG", "P@1", "R@3", "RR", "AP", "AP@2"):
        every = score_all(text, [(one, gold) for one in rankings])
        measure = parse_measure(text)
        best, worst = (
            query_scores(run.iloc[tie_orders(run, qrels)[towards]], qrels, measure)[0][0]
            for towards in ("best", "worst")
        )
        assert (worst, best) == pytest.approx((every.min(), every.max()))


def tied(n: int, n_untied: int) -> Evaluation:
    """One relevant document per query, tied with another one except in the first queries."""
    run, qrels = {}, {}
    for i in range(n):
        other = 1.0 if i < n_untied else 2.0
        run[f"q{i:03}"] = {f"d{i:03}": 2.0, f"x{i:03}": other}
        qrels[f"q{i:03}"] = {f"d{i:03}": 1}
    return Evaluation.create(run, qrels, corpus_size=10_000)


def test_a_verdict_that_hangs_on_ties_is_under_ns() -> None:
    report = run_gate(tied(120, 0), "P@1")
    assert report.ties is not None
    assert (report.ties.queries, report.ties.low_score, report.ties.high_score) == (120, 0, 1)
    assert (report.ties.low_verdict, report.ties.high_verdict) == ("FAIL", "PASS")
    assert report.verdict == "UNDER-NS"
    assert "order of tied documents" in report.reason
    assert "W-TIES" in [note.code for note in report.warnings]


def test_a_verdict_that_survives_ties_stands() -> None:
    # at alpha = 0.01 the tie orders need as many trials as a p-value of 0.0025 does
    for alpha in (0.05, 0.01):
        report = run_gate(tied(150, 120), "P@1", GateConfig(alpha=alpha))
        assert report.ties is not None
        assert report.ties.low_score == pytest.approx(0.8)
        assert report.ties.low_verdict == report.ties.high_verdict == report.verdict == "PASS"


def test_the_companion_is_compared_after_ties() -> None:
    # the same ties decide both
    both = run_gate(tied(120, 0), "P@1")
    assert both.companion is not None
    assert both.verdict == both.companion.verdict == "UNDER-NS"
    assert both.companion.agrees
    # ties move RR at 2, not recall at 2
    one = run_gate(tied(120, 0), "RR@2", GateConfig(tau=0.6))
    assert one.companion is not None
    assert (one.verdict, one.companion.verdict) == ("UNDER-NS", "PASS")
    assert not one.companion.agrees
    assert "W-COMPANION" in [note.code for note in one.warnings]


def test_ties_without_effect_are_counted_and_no_warning() -> None:
    report = run_gate(tied(120, 0), "R@2")
    assert report.ties is not None
    assert report.ties.low_score == report.ties.high_score == 1
    assert report.verdict == "PASS"
    assert "W-TIES" not in [note.code for note in report.warnings]


def test_no_ties_no_word() -> None:
    assert run_gate(tied(30, 30), "P@1").ties is None
