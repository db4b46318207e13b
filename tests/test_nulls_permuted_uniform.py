"""Nulls A and B against plain loops over ir-measures on relabelled qrels."""

from __future__ import annotations

import itertools
import random
from typing import Any

import ir_measures
import numpy as np
import pytest
from scipy import stats

from falsify_adapters.nulls import (
    frequent_sets,
    permutation_variance,
    permuted_gold,
    permuted_labels,
    uniform_gold,
)
from tests import naive
from tests.benchmarks_made import ALL, Benchmark, crowded, graded, made, odd, single_skewed
from tests.same_draws import assert_same_distribution

WITH_KERNEL = (
    *("nDCG@10", "nDCG@3", "P@10", "R@10", "RR@10", "RR", "AP", "AP@10", "Success@5", "Rprec"),
    *("SetP", "SetR", "P(rel=2)@5", "AP(rel=2)", "Rprec(rel=2)", "SetP(rel=2)"),
    "nDCG(gains={1:1,2:5})@5",
)
THROUGH_IR_MEASURES = (
    *("SetF", "SetF(rel=2)", "IPrec@0.1", "IPrec(rel=2)@0.5", "SetAP", "Compat(p=0.8)"),
    *("nDCG(dcg='exp-log2')@5", "ERR@5", "SetP(relative=True)"),
)


def found_share(qrels: Any, run: Any) -> float:
    """A measure of ours: the share of the ranking's first three documents with grade 2 or 3."""
    good = set(qrels.loc[qrels["relevance"] >= 2, "doc_id"])
    return sum(doc in good for doc in run["doc_id"].head(3)) / 3


DEFINED = {
    "defined by query": ir_measures.define_byquery(found_share, name="Good3"),
    "defined": ir_measures.define(
        lambda qrels, run: [
            (query, found_share(qrels[qrels["query_id"] == query], rows))
            for query, rows in run.groupby("query_id")
        ],
        name="GoodAll3",
    ),
}
MEASURES = [*WITH_KERNEL, *THROUGH_IR_MEASURES, *DEFINED]


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("kind", ALL)
def test_expectations_are_the_means_over_all_relabelled_qrels(kind: str, name: str) -> None:
    bench = ALL[kind]()
    measure = DEFINED.get(name, name)
    cross = bench.prepared(measure).cross
    queries, n = bench.queries, len(bench.qrels)
    # in n shifts every query gets every query's gold set once
    shifted = [
        naive.aggregate(
            measure,
            bench.run,
            {q: bench.gold(queries[(i + shift) % n]) for i, q in enumerate(queries)},
        )
        for shift in range(n)
    ]
    same_for_all = [
        naive.aggregate(measure, bench.run, dict.fromkeys(queries, gold))
        for gold in naive.distinct_sets(bench)
    ]
    # gdeval prints five digits
    tolerance = 2e-5 if "exp-log2" in name or "ERR" in name else 1e-12
    assert cross.own.mean() == pytest.approx(shifted[0], abs=tolerance)
    a, b = permuted_gold(cross, 100, 0), uniform_gold(cross, 100, 0)
    assert a.mean == pytest.approx(np.mean(shifted), abs=tolerance)
    assert b.mean == pytest.approx(np.mean(same_for_all), abs=tolerance)
    assert a.mean_error == b.mean_error == 0
    assert a.query_means.mean() == pytest.approx(a.mean)
    assert b.query_means.mean() == pytest.approx(b.mean)


@pytest.mark.parametrize("measure", ["nDCG@10", "AP", "RR@3", "SetF"])
@pytest.mark.parametrize("kind", ALL)
def test_the_cross_matrix_is_what_ir_measures_says_of_each_pair(kind: str, measure: str) -> None:
    bench = ALL[kind]()
    cross, coded = bench.prepared(measure).cross, bench.prepared(measure).coded
    dense = np.c_[cross.matrix.toarray(), np.zeros(coded.n_queries)]
    np.testing.assert_allclose(dense[:, coded.set_of], naive.cross_matrix(measure, bench))


@pytest.mark.parametrize("measure", ["nDCG@10", "RR@5", "SetF"])
@pytest.mark.parametrize("kind", ["single", "graded", "odd"])
def test_variance_of_permutations_is_exact(kind: str, measure: str) -> None:
    whole = ALL[kind]()
    kept = whole.queries[:6]
    bench = Benchmark(
        {q: whole.run[q] for q in kept if q in whole.run},
        {q: whole.qrels[q] for q in kept},
        whole.corpus,
    )
    matrix = naive.cross_matrix(measure, bench)
    n = len(matrix)
    every = [matrix[np.arange(n), list(perm)].mean() for perm in itertools.permutations(range(n))]
    cross = bench.prepared(measure).cross
    assert permutation_variance(cross) == pytest.approx(np.var(every), abs=1e-15)
    assert permuted_gold(cross, 100, 0).mean == pytest.approx(np.mean(every))
    trials = permuted_gold(cross, 4000, 3).trials
    assert trials.var() == pytest.approx(np.var(every), rel=0.15)
    assert stats.ks_2samp(trials, every).pvalue > 1e-3


def test_variance_of_one_query_is_undefined() -> None:
    assert np.isnan(permutation_variance(made(0, n_queries=1).prepared("P@5").cross))


TRIALS = {
    "A": (naive.permuted_draw, lambda p, n, seed: permuted_gold(p.cross, n, seed)),
    "B": (naive.uniform_draw, lambda p, n, seed: uniform_gold(p.cross, n, seed)),
    "A, labels": (
        naive.renamed_draw,
        lambda p, n, seed: permuted_labels(p.coded, p.kernel, p.own, n, seed),
    ),
    "D, sets": (naive.frequent_draw, lambda p, n, seed: frequent_sets(p.cross, n, seed)),
}


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("null", TRIALS)
def test_trials_are_draws_from_the_definition(null: str, kind: str) -> None:
    bench = ALL[kind]()
    draw, ours = TRIALS[null]
    measures = ["nDCG@5", "RR@5", "AP(rel=2)", "SetF"]
    expected = naive.label_trials(measures, bench, draw, 2000, 11)
    for measure in measures:
        null_draws = ours(bench.prepared(measure), 2000, 12)
        assert_same_distribution(null_draws.trials, expected[measure])
        error = np.hypot(null_draws.mean_error, expected[measure].std() / np.sqrt(2000))
        assert abs(null_draws.mean - expected[measure].mean()) <= 4 * error + 1e-12
        # the stated mean lies where the trials lie
        own_error = null_draws.trials.std() / np.sqrt(2000)
        assert abs(null_draws.mean - null_draws.trials.mean()) <= 4 * own_error + 1e-12


def test_permuted_trials_use_each_gold_set_once() -> None:
    bench = single_skewed()
    possible = {
        round(sum(chosen), 9)
        for chosen in (
            naive.cross_matrix("P@3", bench)[np.arange(8), random.Random(i).sample(range(8), 8)]
            for i in range(300)
        )
    }
    trials = permuted_gold(bench.prepared("P@3").cross, 200, 0).trials * 8
    assert {round(value, 9) for value in trials} <= possible


def test_large_benchmarks_take_the_sparse_way(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = graded()
    dense = permuted_gold(bench.prepared("nDCG@5").cross, 100, 5).trials
    monkeypatch.setattr("falsify_adapters.nulls.cross.DENSE_CELLS", 0)
    monkeypatch.setattr("falsify_adapters.nulls.cross.CHUNK_HITS", 3)
    np.testing.assert_allclose(permuted_gold(bench.prepared("nDCG@5").cross, 100, 5).trials, dense)
    for build in (graded, odd, crowded):
        matrix = naive.cross_matrix("AP", build())
        assert build().prepared("AP").cross.mean == pytest.approx(matrix.mean())


def test_a_trial_depends_on_the_seed_alone() -> None:
    cross = graded().prepared("nDCG@5").cross
    for null in (permuted_gold, uniform_gold, frequent_sets):
        assert np.array_equal(null(cross, 100, 1).trials, null(cross, 100, 1).trials)
        assert not np.array_equal(null(cross, 100, 1).trials, null(cross, 100, 2).trials)
