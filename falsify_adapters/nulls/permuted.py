"""Null A: the gold sets are permuted over the queries.

Source: Ojala and Garriga (2010), permutation tests for classifiers; the variance of a trial is
Hoeffding's (1951).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from falsify_adapters.coded import Coded, segment_sums
from falsify_adapters.frames import FloatArray, IntArray
from falsify_adapters.nulls.cross import CrossMatrix
from falsify_adapters.nulls.draws import NullDraws, generator, trial_chunks

#: Trials times queries up to which the permutations are kept (40 MB, twice).
CACHED_CELLS = 10_000_000


def permuted_gold(
    cross: CrossMatrix, n_trials: int, seed: int, stratum: IntArray | None = None
) -> NullDraws:
    """Return null A: query i is scored against the gold set of query pi(i).

    Parameters
    ----------
    cross : CrossMatrix
        Scores of all rankings against all gold sets.
    n_trials, seed : int
        Number of random permutations, and their seed.
    stratum : ndarray, shape (n_queries,), optional
        Number of each query's stratum: the permutations stay inside strata.
    """
    n = cross.coded.n_queries
    trials = [
        cross.trial_means(sets) for sets in _permuted_sets(cross.coded, n_trials, seed, stratum)
    ]
    if stratum is None:
        rows, columns, means = cross.row_mean, cross.column_mean, np.full(n, cross.mean)
    else:
        rows, columns, means = _means_inside(cross, stratum)
    return NullDraws(
        mean=float(rows.mean()),
        mean_error=0.0,
        query_means=rows,
        influence=cross.own - rows - columns + means,
        trials=np.concatenate(trials),
    )


def _means_inside(
    cross: CrossMatrix, stratum: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return each query's row, column and overall mean over the pairs inside its stratum."""
    coded = cross.coded
    size = np.bincount(stratum)
    rows, columns = np.zeros(coded.n_queries), np.zeros(coded.n_queries)
    for number, members in enumerate(_members(stratum)):
        sets = coded.set_of[members]
        counts = np.bincount(sets[sets >= 0], minlength=len(coded.set_query)) / size[number]
        rows[members] = cross.matrix[members] @ counts
        weights = np.zeros(coded.n_queries)
        weights[members] = 1.0 / size[number]
        columns[members] = np.r_[cross.matrix.T @ weights, 0.0][sets]
    return rows, columns, (segment_sums(rows, stratum, len(size)) / size)[stratum]


def _members(stratum: IntArray) -> list[IntArray]:
    order = np.argsort(stratum, kind="stable")
    return np.split(order, np.cumsum(np.bincount(stratum))[:-1])


def permutation_variance(cross: CrossMatrix) -> float:
    """Return the exact variance of null A's trials.

    ``sum_ij d_ij^2 / (N^2 (N - 1))`` with ``d_ij = M_ij - row_i - column_j + mean``; NaN for one
    query. Source: Hoeffding (1951), a combinatorial central limit theorem.
    """
    n = cross.coded.n_queries
    if n < 2:
        return float("nan")
    rows = n * (cross.row_mean**2).sum()
    columns = n * (cross.column_mean**2).sum()
    spread = cross.square_sum() - rows - columns + n**2 * cross.mean**2
    return float(max(spread, 0.0) / (n**2 * (n - 1)))


def _permuted_sets(
    coded: Coded, n_trials: int, seed: int, stratum: IntArray | None
) -> Iterable[npt.NDArray[np.int32]]:
    """Return the gold set that each query gets in each trial, in chunks of trials."""
    n = coded.n_queries
    if stratum is None and n * n_trials <= CACHED_CELLS:
        return [_cached_sets(coded, n_trials, seed)]
    rng, set_of = generator(seed, "A"), coded.set_of.astype(np.int32)
    return (set_of[_shuffled(n, rows, rng, stratum)] for rows in trial_chunks(n_trials, n))


@lru_cache(maxsize=1)
def _cached_sets(coded: Coded, n_trials: int, seed: int) -> npt.NDArray[np.int32]:
    """Keep the last trials' sets: the companion asks for them again if its gold is the same."""
    sets = coded.set_of.astype(np.int32)[_cached_permutations(coded.n_queries, n_trials, seed)]
    sets.flags.writeable = False
    return sets


@lru_cache(maxsize=2)
def _cached_permutations(n: int, n_trials: int, seed: int) -> npt.NDArray[np.int32]:
    """Keep the last permutations: the companion, and the next system, are given the same ones.

    Two sets, since ties are judged with fewer trials in between.
    """
    perms = _shuffled(n, n_trials, generator(seed, "A"), None)
    perms.flags.writeable = False
    return perms


def _shuffled(
    n: int, n_trials: int, rng: np.random.Generator, stratum: IntArray | None
) -> npt.NDArray[np.int32]:
    perms = np.tile(np.arange(n, dtype=np.int32), (n_trials, 1))
    if stratum is None:
        return rng.permuted(perms, axis=1, out=perms)
    for members in _members(stratum):
        perms[:, members] = rng.permuted(perms[:, members], axis=1)
    return perms
