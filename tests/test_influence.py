"""Influence values against numerical derivatives: what delta becomes if one query weighs more."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from scipy import optimize

from falsify_adapters.frames import FloatArray
from falsify_adapters.nulls import (
    frequent_sets,
    permuted_gold,
    permuted_labels,
    popularity_gold,
    random_documents,
    uniform_gold,
)
from tests import naive
from tests.benchmarks_made import ALL, Benchmark, made, ranking, single_skewed

STEP = 1e-5


def numerical(delta: Callable[[FloatArray], float], n: int) -> FloatArray:
    """Return n times the derivative of delta by each query's weight, centred."""
    slopes = np.empty(n)
    for t in range(n):
        up, down = np.ones(n), np.ones(n)
        up[t] += STEP
        down[t] -= STEP
        slopes[t] = n * (delta(up) - delta(down)) / (2 * STEP)
    return slopes - slopes.mean()


def assert_derivative(
    influence: FloatArray, delta: Callable[[FloatArray], float], value: float
) -> None:
    n = len(influence)
    assert delta(np.ones(n)) == pytest.approx(value, abs=1e-9)
    np.testing.assert_allclose(influence - influence.mean(), numerical(delta, n), atol=1e-6)


@pytest.mark.parametrize("measure", ["nDCG@5", "RR@5", "AP", "SetF"])
@pytest.mark.parametrize("kind", ALL)
def test_null_a(kind: str, measure: str) -> None:
    bench = ALL[kind]()
    matrix = naive.cross_matrix(measure, bench)

    def delta(weight: FloatArray) -> float:
        share = weight / weight.sum()
        return float(share @ np.diag(matrix) - share @ matrix @ share)

    cross = bench.prepared(measure).cross
    for null in (permuted_gold(cross, 100, 0), frequent_sets(cross, 100, 0)):
        assert_derivative(null.influence, delta, cross.own.mean() - null.mean)


@pytest.mark.parametrize("measure", ["nDCG@5", "RR@5", "SetF"])
@pytest.mark.parametrize("kind", ALL)
def test_null_b_where_a_query_brings_its_own_gold_set_into_the_pool(
    kind: str, measure: str
) -> None:
    bench = ALL[kind]()
    sets = [tuple(sorted(bench.gold(query).items())) for query in bench.queries]
    pool = sorted({one for one in sets if one})
    scores = naive.score_all(
        measure, [(bench.run.get(q, {}), dict(one)) for q in bench.queries for one in pool]
    ).reshape(len(sets), len(pool))
    own = naive.score_all(measure, [(bench.run.get(q, {}), bench.gold(q)) for q in bench.queries])

    def delta(weight: FloatArray) -> float:
        # a set that one query has goes with that query; the others stay in the pool
        in_pool = np.array(
            [weight[sets.index(one)] if sets.count(one) == 1 else 1.0 for one in pool]
        )
        share = weight / weight.sum()
        return float(share @ own - share @ scores @ in_pool / in_pool.sum())

    cross = bench.prepared(measure).cross
    null = uniform_gold(cross, 100, 0)
    assert_derivative(null.influence, delta, own.mean() - null.mean)


@pytest.mark.parametrize("measure", ["nDCG@5", "RR", "P@3"])
def test_null_c_owes_nothing_to_the_other_queries(measure: str) -> None:
    p = ALL["odd"]().prepared(measure)
    null = random_documents(p.coded, p.kernel, p.own, 100, 0)
    difference = p.own - null.query_means

    def delta(weight: FloatArray) -> float:
        return float(weight @ difference / weight.sum())

    assert_derivative(null.influence, delta, p.own.mean() - null.mean)


def single_document_scores(measure: str, bench: Benchmark, docs: list[str]) -> FloatArray:
    """Return the score of each ranking if one document, at the query's grade, were relevant."""
    cases = []
    for query in bench.queries:
        (grade,) = bench.gold(query).values()
        cases += [(bench.run[query], {doc: grade}) for doc in docs]
    return naive.score_all(measure, cases).reshape(len(bench.queries), len(docs))


@pytest.mark.parametrize("measure", ["nDCG@5", "RR@5", "AP", "Success@2", "P(rel=2)@3"])
@pytest.mark.parametrize("skew", [0.0, 1.0, 2.5])
def test_null_d_with_one_relevant_document(skew: float, measure: str) -> None:
    bench = made(7, n_queries=12, sizes=(1,), n_docs=7, skew=skew, depth=6, top_grade=2)
    gold = [next(iter(bench.gold(query))) for query in bench.queries]
    docs = sorted(set(gold))
    scores = single_document_scores(measure, bench, docs)
    p = bench.prepared(measure)

    def delta(weight: FloatArray) -> float:
        popularity = np.array([weight[[g == doc for g in gold]].sum() for doc in docs])
        share = weight / weight.sum()
        return float(share @ p.own - share @ scores @ popularity / popularity.sum())

    null = popularity_gold(p.cross, p.kernel, 100, 0)
    assert_derivative(null.influence, delta, p.own.mean() - null.mean)


@pytest.mark.parametrize("measure", ["nDCG@5", "RR@5", "Success@2"])
def test_null_a_with_labels_where_a_query_brings_its_own_document(measure: str) -> None:
    bench = single_skewed(8)
    gold = [next(iter(bench.gold(query))) for query in bench.queries]
    docs = sorted(set(gold))
    scores = single_document_scores(measure, bench, docs)
    p = bench.prepared(measure)

    def delta(weight: FloatArray) -> float:
        in_pool = np.array([weight[gold.index(d)] if gold.count(d) == 1 else 1.0 for d in docs])
        share = weight / weight.sum()
        return float(share @ p.own - share @ scores @ in_pool / in_pool.sum())

    null = permuted_labels(p.coded, p.kernel, p.own, 100, 0)
    assert_derivative(null.influence, delta, p.own.mean() - null.mean)


def included_score(measure: str, places: list[int], size: int) -> float:
    """Return the score of a ranking with `size` relevant documents, found at these places.

    More documents than `size` may be included where inclusions are independent.
    """
    if measure == "nDCG@5":
        ideal = sum(1 / np.log2(i + 2) for i in range(min(size, 5)))
        return float(sum(1 / np.log2(i + 2) for i in places if i < 5) / ideal)
    if measure == "R@5":
        return sum(i < 5 for i in places) / size
    if measure == "RR@5":
        return 1 / (places[0] + 1) if places and places[0] < 5 else 0.0
    if measure == "Success@5":
        return float(bool(places) and places[0] < 5)
    if measure == "Rprec":
        return sum(i < size for i in places) / size
    assert measure == "AP"
    return sum((j + 1) / (i + 1) for j, i in enumerate(places)) / size


def inclusion_times(popularity: FloatArray, size: int) -> float:
    if size == 1:
        return 1 / popularity.sum()
    return float(
        optimize.brentq(lambda t: (1 - np.exp(-popularity * t)).sum() - size, 0, 1e4, xtol=1e-15)
    )


@pytest.mark.parametrize("measure", ["nDCG@5", "R@5", "RR@5", "Success@5", "AP", "Rprec"])
def test_null_d_with_several_relevant_documents(measure: str) -> None:
    bench = made(5, n_queries=6, n_docs=6, sizes=(1, 2, 4), skew=1.5, depth=4, others=2)
    bench.run[bench.queries[2]].clear()
    bench.run[bench.queries[2]].update(ranking(["d00", "d05", "x01", "d01", "d02"]))
    docs = sorted({doc for query in bench.queries for doc in bench.gold(query)})
    p = bench.prepared(measure)

    def expected(query: str, popularity: FloatArray) -> float:
        """Return the mean over all sets of included documents, in plain enumeration."""
        size = len(bench.gold(query))
        time = inclusion_times(popularity, size)
        places = [(i, docs.index(d)) for i, d in enumerate(bench.run[query]) if d in docs]
        if size == 1:
            chances = popularity / popularity.sum()
            return sum(chances[d] * included_score(measure, [i], 1) for i, d in places)
        total = 0.0
        for chosen in itertools.product([False, True], repeat=len(places)):
            chance = 1.0
            for (_, d), included in zip(places, chosen, strict=True):
                absent = np.exp(-popularity[d] * time)
                chance *= 1 - absent if included else absent
            found = [i for (i, _), included in zip(places, chosen, strict=True) if included]
            total += chance * included_score(measure, found, size)
        return total

    def delta(weight: FloatArray) -> float:
        popularity = np.array(
            [sum(w for w, q in zip(weight, bench.queries, strict=True) if doc in bench.gold(q))
             for doc in docs]
        )  # fmt: skip
        means = np.array([expected(query, popularity) for query in bench.queries])
        return float(weight @ (p.own - means) / weight.sum())

    null = popularity_gold(p.cross, p.kernel, 100, 0)
    np.testing.assert_allclose(
        null.influence - null.influence.mean(), numerical(delta, len(bench.queries)), atol=1e-6
    )


def test_standard_errors_of_null_d_are_those_of_fresh_benchmarks() -> None:
    # the spread of delta over benchmarks drawn from one population, against the influence values
    deltas, stated = [], []
    for seed in range(60):
        bench = made(seed, n_queries=50, n_docs=30, sizes=(1, 2, 3), skew=1.0, depth=8)
        p = bench.prepared("nDCG@5")
        null = popularity_gold(p.cross, p.kernel, 200, seed)
        deltas.append(p.own.mean() - null.mean)
        noise = null.mean_error**2
        stated.append(np.sqrt(null.influence.var() / len(null.influence) + noise))
    # 60 benchmarks know their spread within 9 %
    assert np.std(deltas) == pytest.approx(np.mean(stated), rel=0.3)
