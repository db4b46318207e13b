"""Null A: the gold sets are permuted over the queries.

Source: Ojala and Garriga (2010), permutation tests for classifiers; the variance of a trial is
Hoeffding's (1951).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from falsify_adapters.nulls.cross import CrossMatrix
from falsify_adapters.nulls.draws import NullDraws, generator, trial_chunks


def permuted_gold(cross: CrossMatrix, n_trials: int, seed: int) -> NullDraws:
    """Return null A: query i is scored against the gold set of query pi(i).

    Parameters
    ----------
    cross : CrossMatrix
        Scores of all rankings against all gold sets.
    n_trials, seed : int
        Number of random permutations, and their seed.
    """
    rng = generator(seed, "A")
    n, set_of = cross.coded.n_queries, cross.coded.set_of.astype(np.int32)
    trials = [
        cross.trial_means(set_of[_permutations(n, rows, rng)]) for rows in trial_chunks(n_trials, n)
    ]
    influence = cross.own - cross.row_mean - cross.column_mean + cross.mean
    return NullDraws(
        mean=cross.mean,
        mean_error=0.0,
        query_means=cross.row_mean,
        influence=influence,
        trials=np.concatenate(trials),
    )


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


def _permutations(n: int, n_trials: int, rng: np.random.Generator) -> npt.NDArray[np.int32]:
    perms = np.tile(np.arange(n, dtype=np.int32), (n_trials, 1))
    return rng.permuted(perms, axis=1, out=perms)
