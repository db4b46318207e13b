"""Null B: each query gets one of the distinct gold sets, all equally likely."""

from __future__ import annotations

import numpy as np

from falsify_adapters.nulls.cross import CrossMatrix
from falsify_adapters.nulls.draws import NullDraws, generator, trial_chunks


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
    rng = generator(seed, "B")
    trials = [
        cross.trial_means(rng.integers(0, n_sets, size=(rows, n), dtype=np.int32))
        for rows in trial_chunks(n_trials, n)
    ]
    once = (coded.set_of >= 0) & (coded.set_count[coded.set_of] == 1)
    pool_share = np.where(once, n / n_sets * (cross.column_mean - mean), 0.0)
    return NullDraws(
        mean=mean,
        mean_error=0.0,
        query_means=cross.set_mean,
        influence=cross.own - cross.set_mean - pool_share,
        trials=np.concatenate(trials),
    )
