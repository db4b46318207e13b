"""How far any system can get: the best score, and the best delta against each null."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from falsify_adapters.coded import Coded, segment_sums, unique_rows
from falsify_adapters.frames import FloatArray, IntArray, rank_in_query
from falsify_adapters.kernels import Additive, Hits, Kernel, ReciprocalRank
from falsify_adapters.nulls import Pool


@dataclass(frozen=True)
class Attainable:
    """The largest delta that a system can reach against each null.

    Parameters
    ----------
    best_score : float
        Score of the ideal ranking (of documents that the corpus holds).
    delta : dict of str to float
        For the label nulls "A", "B" and "D".
    exact : bool
        False: `delta` holds upper bounds.
    """

    best_score: float
    delta: dict[str, float]
    exact: bool


def best_scores(coded: Coded, kernel: Kernel) -> FloatArray:
    """Score the ideal ranking of each query, shape (n_queries,)."""
    gain = kernel.gain(coded.gold_grade)
    # a higher grade first even where the kernel counts both as relevant: another measure may not
    order = np.lexsort((-coded.gold_grade, -gain, coded.gold_query))
    order = order[(coded.gold_present & (gain > 0))[order]]
    rank = rank_in_query(coded.gold_query[order])
    if kernel.cutoff is not None:
        order, rank = order[rank <= kernel.cutoff], rank[rank <= kernel.cutoff]
    pair = coded.gold_query[order]
    returned = np.bincount(pair, minlength=coded.n_queries)
    return kernel.score(Hits(pair, rank, coded.gold_grade[order], coded.profile_of, returned))


def attainable(
    coded: Coded,
    kernel: Kernel,
    *,
    labels: bool = False,
    sets: bool = False,
    stratum: IntArray | None = None,
) -> Attainable:
    """Return the largest delta that a system can reach against the label nulls.

    For a measure that adds up over documents, the best ranking of a query puts the documents with
    the largest (own worth - expected worth under the null) first, as long as that is positive.
    For RR and Success it is one document: the rarest relevant one. For the others the best score
    itself is an upper bound. The chances of null D's draws without repeats are approximated (see
    :class:`falsify_adapters.nulls.Pool`): within 2e-4, or 0.01 in a pool of five documents.

    Parameters
    ----------
    coded : Coded
        The evaluation in integer codes.
    kernel : Kernel
        The measure.
    labels : bool
        Null A is a bijection over gold documents.
    sets : bool
        Null D draws whole gold sets by frequency.
    stratum : ndarray, shape (n_queries,), optional
        Number of each query's stratum, inside which null A permutes.
    """
    best = float(best_scores(coded, kernel).mean())
    weighs_ranks = isinstance(kernel, Additive) and not kernel.weighs_depth
    if not weighs_ranks and not isinstance(kernel, ReciprocalRank):
        return Attainable(best, dict.fromkeys("ABD", best), exact=False)
    worth = _worth(coded, kernel)
    everywhere = np.zeros(coded.n_queries, dtype=np.int64)
    even = np.ones_like(coded.popularity)
    # expected worth of each gold row's document under each null
    owed = {
        "A": _drawn_worth(coded, worth, Pool(coded, even))
        if labels
        else _mean_worth(coded, worth, everywhere if stratum is None else stratum),
        "B": _mean_worth_in_sets(coded, worth),
        "D": _mean_worth(coded, worth, everywhere)
        if sets
        else _drawn_worth(coded, worth, Pool(coded, coded.popularity)),
    }
    delta = {name: _best_delta(coded, kernel, worth - debt) for name, debt in owed.items()}
    return Attainable(best, delta, exact=True)


def _worth(coded: Coded, kernel: Kernel) -> FloatArray:
    """Return what each gold row is worth to its query at the top rank."""
    if isinstance(kernel, Additive):
        return kernel.worth(coded.gold_grade, coded.profile_of[coded.gold_query])
    return kernel.gain(coded.gold_grade)


def _mean_worth(coded: Coded, worth: FloatArray, stratum: IntArray) -> FloatArray:
    """Return the mean worth of each gold row's document over the queries of its stratum."""
    inside = stratum[coded.gold_query]
    _, which = unique_rows(inside, coded.gold_doc)
    return segment_sums(worth, which, len(worth))[which] / np.bincount(stratum)[inside]


def _mean_worth_in_sets(coded: Coded, worth: FloatArray) -> FloatArray:
    """Return the mean worth of each gold row's document over the distinct gold sets."""
    share = np.zeros(coded.n_queries)
    share[coded.set_query] = 1.0 / len(coded.set_query)
    by_doc = segment_sums(worth * share[coded.gold_query], coded.gold_doc, coded.n_docs)
    return by_doc[coded.gold_doc]


def _drawn_worth(coded: Coded, worth: FloatArray, pool: Pool) -> FloatArray:
    """Return the expected worth of each gold row's document under a draw for its query."""
    mean_worth = segment_sums(worth, coded.gold_query, coded.n_queries)
    mean_worth = mean_worth / np.maximum(coded.gold_count, 1)
    weight = pool.weight[coded.gold_doc]
    time = pool.times[coded.gold_query]
    single = coded.gold_count[coded.gold_query] == 1
    chance = np.where(single, weight / pool.total, 1.0 - np.exp(-weight * time))
    return chance * mean_worth[coded.gold_query]


def _best_delta(coded: Coded, kernel: Kernel, profit: FloatArray) -> float:
    profit = np.where(coded.gold_present, profit, 0.0)
    order = np.lexsort((-profit, coded.gold_query))
    rank = rank_in_query(coded.gold_query[order])
    value = np.maximum(profit[order], 0.0)
    if isinstance(kernel, Additive):
        value = value * kernel.weight(rank, rank)
        if kernel.cutoff is not None:
            value[rank > kernel.cutoff] = 0.0
    else:
        value[rank > 1] = 0.0
    return float(value.sum() / coded.n_queries)
