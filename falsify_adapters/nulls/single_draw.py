"""One gold document drawn for a query: at most one hit, so that scores of trials add up by kind.

A document that is gold for most queries is drawn in most trials. Queries that score the same with
it are counted together (a binomial number for each trial), not one by one.
"""

from __future__ import annotations

import numpy as np

from falsify_adapters.coded import segment_sums, unique_rows
from falsify_adapters.frames import FloatArray, IntArray
from falsify_adapters.kernels import Hits, Kernel
from falsify_adapters.nulls.draws import bernoulli_cells, line_groups
from falsify_adapters.nulls.pool import Pool

#: Chance from which on a document's hits are counted instead of placed.
COUNTED_CHANCE = 0.05


def single_draw_sums(
    pool: Pool, kernel: Kernel, n_trials: int, rng: np.random.Generator
) -> FloatArray:
    """Return each trial's sum of scores over the queries with one gold document.

    Parameters
    ----------
    pool : Pool
        The documents that can be drawn.
    kernel : Kernel
        The measure.
    n_trials : int
        Number of draws of the whole benchmark.
    rng : Generator
        Source of randomness.

    Returns
    -------
    ndarray, shape (n_trials,)
    """
    coded, n = pool.coded, pool.coded.n_queries
    entries = np.flatnonzero(coded.gold_count[coded.entry_query] == 1)
    query, weight = coded.entry_query[entries], pool.weight[coded.entry_doc[entries]]
    score = _hit_scores(pool, kernel, entries)
    heavy = _heaviest(query, weight)
    heavy = heavy[weight[heavy] >= COUNTED_CHANCE * pool.total]
    # the urn without the heavy document, and what the ranking's others hold of it
    rest = np.full(n, pool.total)
    rest[query[heavy]] -= weight[heavy]
    light = weight.copy()
    light[heavy] = 0
    held = segment_sums(light.astype(np.float64), query, n)
    heavy_score = np.zeros(n)
    heavy_score[query[heavy]] = score[heavy]
    # all other tosses are for heavy documents, and counted by chance and score
    (weights, values), kind = unique_rows(weight[heavy], _numbered(score[heavy]))
    kind_of = np.full(n, len(weights))
    kind_of[query[heavy]] = kind
    tossed = np.zeros((len(weights) + 1) * n_trials, dtype=np.int64)
    total, size, chance = np.zeros(n_trials), np.full(n, n_trials), held / np.maximum(rest, 1)
    for some in line_groups(size, chance):
        line, trial = bernoulli_cells(rng, size[some], chance[some])
        who = some[line]
        hit = _by_weight(query, light, who, rng)
        # a light hit holds unless the heavy document was drawn instead
        instead = rng.random(len(who)) * pool.total >= rest[who]
        total += segment_sums(np.where(instead, heavy_score[who], score[hit]), trial, n_trials)
        tossed += np.bincount(kind_of[who] * n_trials + trial, minlength=len(tossed))
    left = np.bincount(kind)[:, None] - tossed.reshape(-1, n_trials)[:-1]
    hits = rng.binomial(left, (weights / pool.total)[:, None])
    return total + np.unique(score[heavy])[values] @ hits


def _hit_scores(pool: Pool, kernel: Kernel, entries: IntArray) -> FloatArray:
    """Score each entry's query as if this entry, and no other, were its gold document."""
    coded = pool.coded
    query = coded.entry_query[entries]
    return kernel.score(
        Hits(
            pair=np.arange(len(entries)),
            rank=coded.entry_rank[entries],
            grade=coded.gold_grade[coded.gold_start[query]],
            profile=coded.profile_of[query],
            returned=coded.returned[query],
        )
    )


def _heaviest(query: IntArray, weight: IntArray) -> IntArray:
    """Return the row with the largest weight of each query (ascending); the first of equal ones."""
    order = np.lexsort((-weight, query))
    return order[np.r_[True, np.diff(query[order]) > 0][: len(query)]]


def _by_weight(
    query: IntArray, weight: IntArray, who: IntArray, rng: np.random.Generator
) -> IntArray:
    """Draw one row of each given query, in proportion to the rows' weights (ascending by query)."""
    ladder = np.cumsum(weight)
    ends = np.r_[0, ladder][np.searchsorted(query, [who, who + 1])]
    return np.searchsorted(ladder, rng.integers(ends[0], ends[1]), side="right")


def _numbered(values: FloatArray) -> IntArray:
    return np.unique(values, return_inverse=True)[1]
