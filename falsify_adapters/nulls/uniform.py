"""Null B: each query gets one of the distinct gold sets, all equally likely."""

from __future__ import annotations

import numpy as np

from falsify_adapters.coded import segment_sums
from falsify_adapters.frames import FloatArray
from falsify_adapters.nulls.cross import CrossMatrix
from falsify_adapters.nulls.draws import NullDraws, bernoulli_cells, generator, line_groups


def uniform_gold(cross: CrossMatrix, n_trials: int, seed: int) -> NullDraws:
    """Return null B: gold sets drawn uniformly from the benchmark's distinct ones.

    The pool is this benchmark's: gold sets that no query has cannot be estimated. A query whose
    gold set occurs only once brings that set into the pool, which its influence accounts for.

    Parameters
    ----------
    cross : CrossMatrix
        Scores of all rankings against all gold sets.
    n_trials, seed : int
        Number of draws of the whole benchmark, and their seed.
    """
    coded = cross.coded
    n, n_sets = coded.n_queries, len(coded.set_query)
    mean = float(cross.set_mean.mean())
    once = (coded.set_of >= 0) & (coded.set_count[coded.set_of] == 1)
    pool_share = np.where(once, n / n_sets * (cross.column_mean - mean), 0.0)
    return NullDraws(
        mean=mean,
        mean_error=0.0,
        query_means=cross.set_mean,
        influence=cross.own - cross.set_mean - pool_share,
        trials=_trial_means(cross, n_trials, generator(seed, "B")),
    )


def _trial_means(cross: CrossMatrix, n_trials: int, rng: np.random.Generator) -> FloatArray:
    """Draw a gold set for each query and trial; only those that score are ever placed."""
    matrix, (n, n_sets) = cross.matrix, cross.matrix.shape
    scoring, size = np.diff(matrix.indptr), np.full(n, n_trials)
    total = np.zeros(n_trials)
    for some in line_groups(size, scoring / n_sets):
        line, trial = bernoulli_cells(rng, size[some], scoring[some] / n_sets)
        query = some[line]
        drawn = matrix.indptr[query] + rng.integers(0, scoring[query])
        total += segment_sums(matrix.data[drawn], trial, n_trials)
    return total / n
