"""Nulls of benchmarks in which almost every draw hits: in pieces, from the same distribution."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from falsify_adapters import resampling
from falsify_adapters.nulls import (
    NullDraws,
    permuted,
    popularity_gold,
    random_documents,
    uniform_gold,
)
from tests import naive
from tests.benchmarks_made import ALL, Benchmark, Prepared, made, ranking
from tests.same_draws import assert_same_distribution

Null = Callable[[Prepared, int, int], NullDraws]
NULLS: dict[str, Null] = {
    "B": lambda p, n, seed: uniform_gold(p.cross, n, seed),
    "C": lambda p, n, seed: random_documents(p.coded, p.kernel, p.own, n, seed),
    "D": lambda p, n, seed: popularity_gold(p.cross, p.kernel, n, seed),
}
N_TRIALS = 2000


def in_pieces(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    monkeypatch.setattr("falsify_adapters.nulls.draws.CHUNK_CELLS", cells)
    monkeypatch.setattr("falsify_adapters.nulls.popularity.CHUNK_DRAWS", cells)
    for name in ("FILLED_CELLS", "ALONE_CELLS", "TABLE_CELLS"):
        monkeypatch.setattr(f"falsify_adapters.nulls.urn.{name}", cells)


def expected(null: str, measures: list[str], bench: Benchmark) -> dict[str, Any]:
    if null == "C":
        runs = naive.random_runs(measures, bench, 5, N_TRIALS, 31)
        return {measure: scores.mean(axis=1) for measure, scores in runs.items()}
    draw = naive.uniform_draw if null == "B" else naive.popularity_draw
    return naive.label_trials(measures, bench, draw, N_TRIALS, 31)


@pytest.mark.parametrize("kind", ["graded", "odd", "crowded", "single"])
@pytest.mark.parametrize("null", NULLS)
def test_pieces_do_not_change_the_distribution(
    null: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = ALL[kind]()
    in_pieces(monkeypatch, 300)
    for measure, theirs in expected(null, ["nDCG@5", "AP@5"], bench).items():
        p = bench.prepared(measure)
        ours = NULLS[null](p, N_TRIALS, 32)
        assert_same_distribution(ours.trials, theirs)
        assert ours.query_means.mean() == pytest.approx(ours.mean, abs=1e-12)


def lopsided(n_single: int) -> Benchmark:
    """One document is gold for all queries, two more for one query each: most draws repeat."""
    qrels = {f"q{i:05}": {"d0": 1} for i in range(n_single)}
    qrels |= {"r1": {"d0": 1, "d1": 2}, "r2": {"d0": 1, "d2": 1}}
    docs = ["d1", "d0", "d2", "x"]
    return Benchmark({query: ranking(docs) for query in qrels}, qrels, docs)


def test_a_second_document_is_found_however_rare_it_is() -> None:
    p = lopsided(500).prepared("R@3")
    null = popularity_gold(p.cross, p.kernel, 3000, 1)
    assert (null.query_means[-2:] == 1).all()  # every gold set holds two of the three


def test_grades_and_ranks_of_rare_documents_are_dealt_evenly() -> None:
    p = lopsided(500).prepared("nDCG@1")
    null = popularity_gold(p.cross, p.kernel, 3000, 1)
    # d1 comes with half of the gold sets, with grade 2 (the ideal) or 1 in r1, with grade 1 in r2
    assert null.query_means[-2:] == pytest.approx([0.375, 0.5], abs=0.04)


@pytest.mark.parametrize("null", NULLS)
def test_memory_does_not_grow_with_the_draws(null: str, monkeypatch: pytest.MonkeyPatch) -> None:
    p = lopsided(2000).prepared("nDCG@3")
    in_pieces(monkeypatch, 20_000)
    n_trials = 500  # a byte for each query and trial would be a megabyte
    NULLS[null](p, 10, 1)
    tracemalloc.start()
    NULLS[null](p, n_trials, 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6_000_000, f"{peak:,} bytes"


def test_the_seed_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    in_pieces(monkeypatch, 300)
    p = ALL["crowded"]().prepared("nDCG@5")
    for null in NULLS.values():
        assert np.array_equal(null(p, 100, 1).trials, null(p, 100, 1).trials)
        assert not np.array_equal(null(p, 100, 1).trials, null(p, 100, 2).trials)


def test_what_is_kept_for_the_next_system_cannot_be_changed() -> None:
    coded = ALL["graded"]().prepared("nDCG@5").coded
    kept = [
        permuted._cached_sets(coded, 10, 0),
        permuted._cached_permutations(coded.n_queries, 10, 0),
        *resampling._kept_resamples(8, 8, 10, 0),
    ]
    for array in kept:
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1


@pytest.mark.parametrize("alone", [0, 10**9])
def test_late_draws_are_filled_in_by_weight(alone: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # queries filled in together, and one by one; the popular documents repeat often
    p = made(9, n_queries=40, n_docs=150, sizes=(1, 3, 20), skew=1.2, depth=12).prepared("R@12")
    monkeypatch.setattr("falsify_adapters.nulls.urn.ALONE_CELLS", alone)
    coded, n_trials = p.coded, 4000
    null = popularity_gold(p.cross, p.kernel, n_trials, 1)
    rng = np.random.default_rng(2)
    z = []
    for query in np.flatnonzero(coded.gold_count == 20).tolist():
        time = rng.standard_exponential((n_trials, coded.n_docs)) / coded.popularity
        first = np.argsort(time, axis=1)[:, :20]
        own = coded.entry_doc[coded.entry_query == query]
        found = np.isin(first, own).sum(axis=1) / 20
        error = found.std() * np.sqrt(2 / n_trials)
        z.append((null.query_means[query] - found.mean()) / error)
    assert np.abs(z).max() < 4.5
    assert abs(np.sum(z)) < 4 * np.sqrt(len(z))
