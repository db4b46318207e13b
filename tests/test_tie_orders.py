"""Best and worst order of ties: against every order there is."""

from __future__ import annotations

import itertools

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsify_adapters import Evaluation, GateConfig, run_gate
from falsify_adapters.frames import as_qrels, as_run
from falsify_adapters.gate.tie_range import GRADE_FIRST_IS_BEST
from falsify_adapters.gate.warnings import _about_ties
from falsify_adapters.measures import parse_measure, query_scores
from falsify_adapters.results import Ties

CONFIG = GateConfig(n_trials=100, n_boot=200, companion=False)
KERNELS = [
    *("nDCG@5", "nDCG", "nDCG@2", "P@3", "R@3", "R(rel=2)@3", "AP@4", "AP", "AP(rel=2)"),
    *("RR@5", "RR", "RR(rel=3)@4", "Success@2", "Success(rel=2)@3", "Rprec", "SetP", "SetR"),
]
#: A table that turns the grades round, one that makes two alike, and one that stretches them.
GAINS = [{1: 9, 2: 3, 3: 1}, {1: 2, 2: 2, 3: 5}, {1: 1, 2: 3, 3: 7}]
OTHERS = ["Compat", "Compat(p=0.7)", "IPrec@0.5", "SetAP", "SetF", "SetP(relative=True)"]


def every_order(measure, judged: dict[str, int], before: list[str], tied: list[str]) -> list[float]:
    """Score every order of the tied documents, which follow those `before` them."""
    scores = []
    for order in itertools.permutations(tied):
        ranking = [*before, *order]
        run = {"q": {doc: float(-rank) for rank, doc in enumerate(ranking)}}
        scores.append(query_scores(as_run(run), as_qrels({"q": judged}), measure)[0][0])
    return scores


def check(measure, grades: list[int], missed: list[int], n_before: int) -> None:
    docs = [f"d{i}" for i in range(len(grades))]
    judged = dict(zip(docs, grades, strict=True)) | {f"m{i}": g for i, g in enumerate(missed)}
    if not any(grade > 0 for grade in judged.values()):
        return
    before, tied = docs[:n_before], docs[n_before:]
    scores = every_order(measure, judged, before, tied)
    run = {"q": {**{d: 9.0 - i for i, d in enumerate(before)}, **dict.fromkeys(tied, 0.5)}}
    # a second query, so that the gate has something to permute, and a grade that all measures count
    qrels = {"q": judged, "other": {"x": 3}}
    evaluation = Evaluation.create({**run, "other": {"x": 1.0}}, qrels, corpus_size=50)
    other = query_scores(evaluation.run, evaluation.qrels, measure)[0][0]
    ties = run_gate(evaluation, measure, CONFIG).ties
    assert ties is not None
    assert ties.exact
    assert ties.high_score * 2 - other == pytest.approx(max(scores), abs=1e-12)
    assert ties.low_score * 2 - other == pytest.approx(min(scores), abs=1e-12)


grade_lists = st.lists(st.integers(0, 3), min_size=2, max_size=5)
missed_lists = st.lists(st.integers(1, 3), max_size=2)


@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=12, deadline=None)
@given(grade_lists, missed_lists, st.integers(0, 1))
def test_kernel_measures(name: str, grades, missed, n_before: int) -> None:
    check(parse_measure(name), [2] * n_before + grades, missed, n_before)


@pytest.mark.parametrize("gains", GAINS, ids=str)
@settings(max_examples=12, deadline=None)
@given(grade_lists, missed_lists, st.integers(0, 1))
def test_ndcg_with_a_gain_table(gains, grades, missed, n_before: int) -> None:
    measure = parse_measure(ir_measures.nDCG(gains=gains) @ 3)
    check(measure, [1] * n_before + grades, missed, n_before)


@pytest.mark.parametrize("name", OTHERS)
@settings(max_examples=12, deadline=None)
@given(grade_lists, missed_lists)
def test_other_measures_of_which_the_report_says_so(name: str, grades, missed) -> None:
    measure = parse_measure(name)
    assert measure.NAME in GRADE_FIRST_IS_BEST
    check(measure, grades, missed, 0)


def test_an_order_that_is_not_known_to_be_the_best_is_said_to_be_so() -> None:
    ties = Ties(3, 0.2, 0.4, "FAIL", "PASS", exact=False)

    class Main:
        own = np.zeros(5)

    (note,) = _about_ties(Main(), ties)  # type: ignore[arg-type]
    assert "not known to be" in note.message
