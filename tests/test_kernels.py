"""Kernels against ir-measures, query by query."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from falsify_adapters.evaluation import Evaluation
from falsify_adapters.gate.grading import coded_to
from falsify_adapters.kernels import none_drawn
from falsify_adapters.measures import (
    IrMeasuresKernel,
    make_kernel,
    measure_depth,
    parse_measure,
    query_scores,
)
from falsify_adapters.nulls import own_scores
from tests.strategies import qrels, runs

MEASURES = [
    *("nDCG@1", "nDCG@3", "nDCG@10", "nDCG", "nDCG(gains={1:1,2:5})@5", "nDCG(gains={3:1})"),
    *(
        "P@1",
        "P@5",
        "P(rel=2)@3",
        "R@3",
        "R(rel=3)@5",
        "SetR",
        "SetR(rel=2)",
        "SetP",
        "SetP(rel=2)",
    ),
    *("RR", "RR@2", "RR(rel=2)@5", "AP", "AP@3", "AP(rel=2)", "Success@1", "Success(rel=3)@4"),
    *("Rprec", "Rprec(rel=2)"),
]


@settings(deadline=None, max_examples=20)
@given(run=runs(), judged=qrels())
def test_own_scores_are_ir_measures_own(run: Any, judged: Any) -> None:
    evaluation = Evaluation.create(run, judged, corpus_size=50)
    for text in MEASURES:
        measure = parse_measure(text)
        coded = coded_to(evaluation, measure_depth(measure))
        (expected,) = query_scores(evaluation.run, evaluation.qrels, measure)
        fast = make_kernel(measure, coded.profiles)
        assert not isinstance(fast, IrMeasuresKernel)
        np.testing.assert_allclose(own_scores(coded, fast), expected, atol=1e-12, err_msg=text)
        slow = IrMeasuresKernel(measure, coded.profiles)
        np.testing.assert_allclose(own_scores(coded, slow), expected, atol=1e-12, err_msg=text)


@pytest.mark.parametrize(
    "text",
    ["nDCG(dcg='exp-log2')@5", "ERR@5", "SetF", "SetAP", "IPrec@0.5", "Compat", "Compat(p=0.5)"],
)
def test_measures_without_a_kernel_go_through_ir_measures(text: str) -> None:
    evaluation = Evaluation.create(
        {"a": {"d1": 3.0, "d2": 2.0, "d3": 1.0}, "b": {"d3": 1.0}},
        {"a": {"d2": 2, "d3": 1, "d9": 1}, "b": {"d3": 1, "d1": 2}, "c": {"d1": 1}},
        corpus_size=50,
    )
    measure = parse_measure(text)
    coded = coded_to(evaluation, measure_depth(measure))
    kernel = make_kernel(measure, coded.profiles)
    assert isinstance(kernel, IrMeasuresKernel)
    (expected,) = query_scores(evaluation.run, evaluation.qrels, measure)
    np.testing.assert_allclose(own_scores(coded, kernel), expected, atol=1e-12)


def test_many_patterns_are_asked_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.benchmarks_made import graded

    whole = graded().prepared("SetF").cross.matrix.toarray()
    monkeypatch.setattr("falsify_adapters.measures.BATCH_DOCUMENTS", 20)
    np.testing.assert_array_equal(graded().prepared("SetF").cross.matrix.toarray(), whole)


@pytest.mark.parametrize(("size", "marked", "drawn"), [(10, 3, 4), (5, 5, 1), (7, 0, 7), (4, 2, 3)])
def test_chance_to_draw_none(size: int, marked: int, drawn: int) -> None:
    from scipy import stats

    expected = stats.hypergeom(size, marked, drawn).pmf(0)
    assert none_drawn(np.array([size]), np.array([marked]), np.array([drawn]))[0] == pytest.approx(
        expected
    )
