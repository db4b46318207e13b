"""Constant rankings: the best one on a benchmark, and what no ranking at all can exceed.

Everything here works on :class:`~falsify_adapters.coded.Coded` qrels and a weight per query, equal
for all queries that count and 0 for the others: every query for null A, one query of each distinct
gold set for null B, the fitted half for a held-out ceiling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from falsify_adapters.coded import Coded, segment_sums, unique_rows
from falsify_adapters.frames import BoolArray, FloatArray, IntArray, rank_in_query
from falsify_adapters.kernels import (
    Additive,
    AveragePrecision,
    Hits,
    Kernel,
    ReciprocalRank,
    RPrecision,
    Success,
)

#: Ranks that the greedy search fills one by one; the documents below follow by popularity.
GREEDY_RANKS = 200
#: Depths that are tried for measures without a cutoff that only ir-measures knows.
TRIED_DEPTHS = (1, 10, 100)
#: The most popular documents whose chance under null D is bounded one by one.
NARROWED_CLASSES = 50
#: Largest table in that bound, in cells.
NARROWED_CELLS = 4_000_000

#: Bounds that differ by no more than this meet.
ROUNDING = 1e-12

RankWeight = Callable[[IntArray, int], FloatArray]


@dataclass(frozen=True)
class Bound:
    """What no run's expected score under a label null exceeds.

    Parameters
    ----------
    value : float
        The bound.
    kind : {"exact", "upper bound"}
        Whether some run reaches it, or perhaps none.
    how : str
        Where it comes from.
    """

    value: float
    kind: Literal["exact", "upper bound"]
    how: str


def each_query(coded: Coded) -> FloatArray:
    """Return equal weights for all queries, shape (n_queries,)."""
    return np.full(coded.n_queries, 1.0 / coded.n_queries)


def each_set_once(coded: Coded) -> FloatArray:
    """Return the weights of null B: one query of each distinct gold set, shape (n_queries,)."""
    weight = np.zeros(coded.n_queries)
    weight[coded.set_query] = 1.0 / len(coded.set_query)
    return weight


def constant_scores(coded: Coded, kernel: Kernel, ranking: IntArray) -> FloatArray:
    """Score one ranking for every query, shape (n_queries,).

    Parameters
    ----------
    coded : Coded
        The qrels.
    kernel : Kernel
        The measure.
    ranking : ndarray
        Documents, best first; -1 stands for one that is relevant to no query.
    """
    ranking = ranking[: kernel.cutoff]
    rank_of = np.zeros(coded.n_docs, dtype=np.int64)
    known = ranking >= 0
    rank_of[ranking[known]] = np.flatnonzero(known) + 1
    rank = rank_of[coded.gold_doc]
    rows = np.flatnonzero((rank > 0) & coded.gold_present)
    rows = rows[np.lexsort((rank[rows], coded.gold_query[rows]))]
    return kernel.score(
        Hits(
            pair=coded.gold_query[rows],
            rank=rank[rows],
            grade=coded.gold_grade[rows],
            profile=coded.profile_of,
            returned=np.full(coded.n_queries, len(ranking)),
        )
    )


@dataclass(frozen=True, eq=False)
class Best:
    """The best constant ranking that was found, and what no other exceeds.

    Parameters
    ----------
    ranking : ndarray
        Documents, best first.
    score : float
        Its weighted score.
    bound : Bound
        What no constant ranking's weighted score exceeds.
    """

    ranking: IntArray
    score: float
    bound: Bound


def best_constant(coded: Coded, kernel: Kernel, weight: FloatArray) -> Best:
    """Find the best constant ranking for a weight per query, and bound what any can reach."""
    ranking = best_ranking(coded, kernel, weight)
    score = mean_score(coded, kernel, ranking, weight)
    return Best(ranking, score, labels_bound(coded, kernel, weight, score))


def mean_score(coded: Coded, kernel: Kernel, ranking: IntArray, weight: FloatArray) -> float:
    """Return the mean score of one ranking over the queries that have a weight (all the same)."""
    # not weight @ scores: 1/7 seven times is not 1
    return float(constant_scores(coded, kernel, ranking)[weight > 0].mean())


def best_ranking(coded: Coded, kernel: Kernel, weight: FloatArray) -> IntArray:
    """Return the documents of a constant ranking with the largest weighted score.

    The largest there is for measures that add up over documents, and where each query has one
    relevant document; else the one that takes the document that adds most at each rank (AP, RR,
    Success, Rprec), or the best of a few orders. Ties go to the lower document id.

    Parameters
    ----------
    coded : Coded
        The qrels.
    kernel : Kernel
        The measure.
    weight : ndarray, shape (n_queries,)
        Weight of each query's score.
    """
    if isinstance(kernel, Additive):
        depth = 1 if kernel.weighs_depth else kernel.cutoff
        return _by_worth(coded, _worth(coded, kernel) * weight[coded.gold_query], depth)
    if isinstance(kernel, (AveragePrecision, ReciprocalRank, RPrecision)):
        return _greedy(coded, kernel, weight)
    return _best_of_a_few(coded, kernel, weight)


def labels_bound(coded: Coded, kernel: Kernel, weight: FloatArray, reached: float) -> Bound:
    """Return what no constant ranking's weighted score exceeds.

    Parameters
    ----------
    coded : Coded
        The qrels.
    kernel : Kernel
        The measure.
    weight : ndarray, shape (n_queries,)
        Weight of each query's score.
    reached : float
        What the ranking of :func:`best_ranking` scores.
    """
    if isinstance(kernel, Additive):
        return Bound(reached, "exact", "the measure adds up over documents")
    most, how = _relaxed(coded, kernel, weight)
    answerable = np.zeros(coded.n_queries, dtype=bool)
    answerable[coded.gold_query[_relevant(coded, kernel)]] = True
    every = float(weight[answerable].sum())
    if every < most:
        most, how = every, "queries with a relevant document in the corpus"
    if most <= reached + ROUNDING:
        return Bound(reached, "exact", f"a ranking reaches the bound: {how}")
    return Bound(most, "upper bound", how)


def drawn_bound(coded: Coded, kernel: Kernel) -> Bound:
    """Return what no run's expected score under null D exceeds.

    The chance that a draw brings a document grows with its popularity, whatever the number of
    gold documents, and grades are dealt at random: so the popularity order is the best ranking
    for every query, and only the chances of the most popular documents have to be bounded.
    """
    popularity = np.sort(coded.popularity)[::-1]
    depth = len(popularity) if kernel.cutoff is None else min(kernel.cutoff, len(popularity))
    if isinstance(kernel, Additive) and kernel.weighs_depth:
        depth = min(depth, 1)
    share, group, rank_weight, most = _drawn_share(coded, kernel)
    if share is None:
        everything = float((coded.gold_count > 0).mean())
        return Bound(everything, "upper bound", "queries with a relevant document")
    (counts, groups), which = unique_rows(coded.gold_count, group)
    reach = top_chances(popularity, np.unique(coded.gold_count), depth)
    rank = np.arange(1, depth + 1)
    value: FloatArray = np.zeros(len(counts))
    for i, (count, number) in enumerate(zip(counts.tolist(), groups.tolist(), strict=True)):
        weights = rank_weight(rank, number)
        value[i] = (weights - np.r_[weights[1:], 0.0]) @ reach[count]
    total = float(np.minimum(value[which] * share, most).sum()) / coded.n_queries
    single = bool((coded.gold_count <= 1).all())
    if isinstance(kernel, Additive) and single and coded.gold_present.all():
        return Bound(total, "exact", "the popularity order; one gold document per query")
    return Bound(total, "upper bound", "the popularity order, with bounded chances")


def top_chances(popularity: IntArray, counts: IntArray, depth: int) -> dict[int, FloatArray]:
    """Bound how many of the r most popular documents a draw of m documents holds on average.

    Documents are drawn one after another without repeats, in proportion to their popularity.
    Two bounds, each proven for every pool:

    - The chance over the popularity falls as popularity grows, so the r most popular documents
      hold at most m times their share of all popularity (exact for m = 1).
    - Let arrival times be exponential with rate p, so that the first m arrivals are the draw.
      Document d must come before the m-th arrival of the documents e that are no more popular
      (fewer competitors: no smaller chance). At that random time the expected number of arrived e
      is at most m, and d's chance is a concave function of that number: by Jensen's inequality it
      is at most ``1 - exp(-p_d t)`` at the time t that solves ``sum_e (1 - exp(-p_e t)) = m``.

    Parameters
    ----------
    popularity : ndarray, shape (n_docs,)
        Descending.
    counts : ndarray
        Numbers m of documents drawn.
    depth : int
        Largest r.

    Returns
    -------
    dict of int to ndarray, shape (depth,)
        For each m, the bound for r = 1, 2, ...

    Examples
    --------
    >>> top_chances(np.array([3, 2, 1]), np.array([1, 3]), 2)
    {1: array([0.5       , 0.83333333]), 3: array([1., 2.])}
    """
    share = np.cumsum(popularity[:depth]) / max(int(popularity.sum()), 1)
    rank = np.arange(1, depth + 1)
    narrowed = _narrowed(popularity, counts, depth)
    out = {}
    for i, count in enumerate(counts.tolist()):
        reach = np.minimum(np.minimum(rank, count), count * share)
        if narrowed is not None and count > 1:
            reach = np.minimum(reach, np.cumsum(narrowed[i]))
        out[count] = reach
    return out


def _narrowed(popularity: IntArray, counts: IntArray, depth: int) -> FloatArray | None:
    """Return the second bound of :func:`top_chances` by number of draws and rank."""
    classes, size = np.unique(popularity, return_counts=True)
    top = np.unique(popularity[:depth])[::-1][:NARROWED_CLASSES]
    if not len(top) or len(top) * len(classes) * len(counts) > NARROWED_CELLS:
        return None
    # the competitors of one document of each top class: no more popular, and not itself
    others = np.where(classes <= top[:, None], size, 0) - (classes == top[:, None])
    number = others.sum(axis=1)
    chance = np.ones((len(counts), len(top)))
    for i, count in enumerate(counts.tolist()):
        open_ = number > count
        if open_.any():
            time = _arrival_time(classes, others[open_], count)
            chance[i, open_] = -np.expm1(-top[open_] * time)
    position = np.searchsorted(-top, -popularity[:depth])
    padded = np.concatenate([chance, np.ones((len(counts), 1))], axis=1)
    return padded[:, np.minimum(position, len(top))]


def _arrival_time(classes: IntArray, size: IntArray, count: int) -> FloatArray:
    """Solve ``sum_c size_c (1 - exp(-p_c t)) = count`` for each row of sizes (Newton).

    The sum is concave in t, so the steps come from below and never overshoot.
    """
    time = count / (size @ classes)
    for _ in range(200):
        left = np.exp(-np.outer(time, classes)) * size
        step = (count - (size.sum(axis=1) - left.sum(axis=1))) / (left @ classes)
        time = time + np.maximum(step, 0.0)
        if (step <= 1e-14 * time).all():
            break
    return time * (1.0 + 1e-12)


def _worth(coded: Coded, kernel: Additive) -> FloatArray:
    worth = kernel.worth(coded.gold_grade, coded.profile_of[coded.gold_query])
    return np.where(coded.gold_present, worth, 0.0)


def _relevant(coded: Coded, kernel: Kernel) -> BoolArray:
    return (kernel.gain(coded.gold_grade) > 0) & coded.gold_present


def _by_worth(coded: Coded, row_worth: FloatArray, depth: int | None) -> IntArray:
    """Return the documents with the largest summed worth, best first, none that is worth 0."""
    worth = segment_sums(row_worth, coded.gold_doc, coded.n_docs)
    docs = np.flatnonzero(worth > 0)
    if depth is not None and depth < len(docs):
        least = -np.partition(-worth[docs], depth - 1)[depth - 1]
        docs = docs[worth[docs] >= least]
    return docs[np.argsort(-worth[docs], kind="stable")][:depth]


def _greedy(coded: Coded, kernel: Kernel, weight: FloatArray) -> IntArray:
    """Take at each rank the document that adds most to the weighted score."""
    rows = np.flatnonzero(_relevant(coded, kernel))
    query, doc = coded.gold_query[rows], coded.gold_doc[rows]
    by_doc = np.argsort(doc, kind="stable")
    start = np.searchsorted(doc[by_doc], np.arange(coded.n_docs + 1))
    hits = np.zeros(coded.n_queries, dtype=np.int64)
    unused = np.ones(coded.n_docs, dtype=bool)
    ranking: list[int] = []
    depth = min(coded.n_docs, GREEDY_RANKS if kernel.cutoff is None else kernel.cutoff)
    for rank in range(1, min(depth, GREEDY_RANKS) + 1):
        gain = weight * _next_hit(coded, kernel, hits, rank)
        added = segment_sums(gain[query], doc, coded.n_docs)
        added[~unused] = -1.0
        best = int(np.argmax(added))
        if added[best] <= 0:
            break
        ranking.append(best)
        unused[best] = False
        hits[query[by_doc[start[best] : start[best + 1]]]] += 1
    rest = _by_worth(coded, np.where(_relevant(coded, kernel), weight[coded.gold_query], 0.0), None)
    return np.r_[np.array(ranking, dtype=np.int64), rest[unused[rest]]][: kernel.cutoff]


def _next_hit(coded: Coded, kernel: Kernel, hits: IntArray, rank: int) -> FloatArray:
    """Return what one more relevant document, at this rank, adds to each query's score."""
    if isinstance(kernel, ReciprocalRank):
        return (hits == 0).astype(np.float64)
    relevant = np.maximum(kernel.n_relevant[coded.profile_of], 1)
    if isinstance(kernel, RPrecision):
        return np.where(rank <= relevant, 1.0 / relevant, 0.0)
    return (hits + 1) / (rank * relevant)


def _best_of_a_few(coded: Coded, kernel: Kernel, weight: FloatArray) -> IntArray:
    """Return the best of a few orders, scored by ir-measures."""
    row_weight = weight[coded.gold_query]
    set_size = np.maximum(coded.gold_count, 1)[coded.gold_query]
    graded = row_weight * coded.gold_grade * coded.gold_present
    cover = Success(coded.profiles, kernel.cutoff or TRIED_DEPTHS[-1], kernel.rel)
    orders = [
        _by_worth(coded, row_weight * coded.gold_present, None),
        _by_worth(coded, row_weight * coded.gold_present / set_size, None),
        _by_worth(coded, graded, None),
        _greedy(coded, cover, weight),
    ]
    depths = TRIED_DEPTHS if kernel.cutoff is None else (kernel.cutoff,)
    tried = [order[:depth] for order in orders for depth in depths]
    return max(tried, key=lambda ranking: mean_score(coded, kernel, ranking, weight))


def _relaxed(coded: Coded, kernel: Kernel, weight: FloatArray) -> tuple[float, str]:
    """Return the best score of an additive measure that is never below this one."""
    relevant = _relevant(coded, kernel)
    row = np.where(relevant, weight[coded.gold_query], 0.0)
    n_relevant = kernel.n_relevant[coded.profile_of].astype(np.int64)
    one = np.zeros(coded.n_queries, dtype=np.int64)
    if isinstance(kernel, ReciprocalRank):
        if isinstance(kernel, Success):
            how = "queries that the most popular documents could reach if none were counted twice"
        else:
            how = "popularity by rank over the rank, as if no query were counted twice"
        return _separate_best(coded, kernel, row, one, _rank_weight(kernel)), how
    if not isinstance(kernel, (AveragePrecision, RPrecision)):
        return float(weight.sum()), "no score is above 1"
    layers = _layers_best(coded, kernel, row)
    row = row / np.maximum(n_relevant, 1)[coded.gold_query]
    if isinstance(kernel, RPrecision):
        other = _separate_best(coded, kernel, row, n_relevant, _rank_weight(kernel))
        how = "the best ranking for each number of relevant documents apart"
    else:
        other = _separate_best(coded, kernel, row, one, _flat)
        how = "the ceiling of recall at the same cutoff"
    return min((layers, "the most popular documents for each depth apart"), (other, how))


def _layers_best(coded: Coded, kernel: Kernel, row: FloatArray) -> float:
    """Bound AP and Rprec: a hit at rank r adds at most min(1/r, 1/R) to a query with R relevant.

    Written as a sum over depths q >= r, each depth's share is largest for its own q best documents:
    those that are relevant to most queries with R <= q (weighted); at the cutoff, to all.
    """
    depth = coded.n_docs if kernel.cutoff is None else min(kernel.cutoff, coded.n_docs)
    n_relevant = kernel.n_relevant[coded.profile_of].astype(np.int64)[coded.gold_query]
    rows = np.flatnonzero(row > 0)
    rows = rows[np.argsort(n_relevant[rows], kind="stable")]
    sizes, first = np.unique(n_relevant[rows], return_index=True)
    inside = sizes < depth
    ends = np.r_[sizes[1:], depth][inside]
    bounds = np.r_[first, len(rows)]
    popularity = np.zeros(coded.n_docs)
    total = 0.0
    for i, (size, end) in enumerate(zip(sizes[inside].tolist(), ends.tolist(), strict=True)):
        part = rows[bounds[i] : bounds[i + 1]]
        popularity += segment_sums(row[part], coded.gold_doc[part], coded.n_docs)
        best = np.cumsum(np.sort(popularity)[::-1])
        layer = np.arange(size, min(end, depth))
        total += float((best[layer - 1] / (layer * (layer + 1.0))).sum())
    last = row[rows] * np.minimum(1.0 / n_relevant[rows], 1.0 / depth)
    worth = segment_sums(last, coded.gold_doc[rows], coded.n_docs)
    return total + float(np.sort(worth)[::-1][:depth].sum())


def _flat(rank: IntArray, group: int) -> FloatArray:
    del group
    return np.ones(len(rank))


def _rank_weight(kernel: Kernel) -> RankWeight:
    """Return the most that a hit at each rank adds, for queries with so many relevant documents."""
    if isinstance(kernel, Additive):
        return lambda rank, _: kernel.weight(rank, rank)
    if isinstance(kernel, RPrecision):
        return lambda rank, group: (rank <= group).astype(np.float64)
    if isinstance(kernel, AveragePrecision):
        # of the documents down to rank r, no more than r and no more than all are relevant
        return lambda rank, group: np.minimum(1.0, group / rank)
    if isinstance(kernel, Success):
        return _flat
    return lambda rank, _: 1.0 / rank


def _separate_best(
    coded: Coded, kernel: Kernel, row: FloatArray, group: IntArray, rank_weight: RankWeight
) -> float:
    """Sum over groups of queries what the best ranking for that group alone would earn."""
    used = np.flatnonzero(row > 0)
    (groups, _), which = unique_rows(group[coded.gold_query[used]], coded.gold_doc[used])
    worth = segment_sums(row[used], which, len(groups))
    order = np.lexsort((-worth, groups))
    groups, worth = groups[order], worth[order]
    rank = rank_in_query(groups)
    if kernel.cutoff is not None:
        keep = rank <= kernel.cutoff
        groups, worth, rank = groups[keep], worth[keep], rank[keep]
    total = 0.0
    bounds = np.r_[np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]]), len(groups)]
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if low < high:
            total += float(worth[low:high] @ rank_weight(rank[low:high], int(groups[low])))
    return total


def _drawn_share(
    coded: Coded, kernel: Kernel
) -> tuple[FloatArray | None, IntArray, RankWeight, FloatArray]:
    """Return how null D's score is bounded: a weight per query, its group, and a largest score.

    A query's expected score is at most ``share * sum over ranks of rank_weight * chance``.
    """
    one = np.zeros(coded.n_queries, dtype=np.int64)
    profile = coded.profile_of
    n_relevant = kernel.n_relevant[profile].astype(np.int64)
    most = (n_relevant > 0).astype(np.float64)
    if isinstance(kernel, Additive):
        no_limit = np.full(coded.n_queries, np.inf)
        return kernel.mean_worth()[profile], one, _rank_weight(kernel), no_limit
    share = kernel.mean_gain()[profile]
    if isinstance(kernel, ReciprocalRank):
        return share, one, _rank_weight(kernel), most
    if isinstance(kernel, (AveragePrecision, RPrecision)):
        share = share / np.maximum(n_relevant, 1)
        return share, n_relevant, _rank_weight(kernel), most
    return None, one, _flat, most
