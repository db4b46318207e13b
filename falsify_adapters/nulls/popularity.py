"""Null D: gold documents are drawn by popularity, the number of queries that they are gold for.

Each query keeps its number of gold documents and their grades; the documents are drawn one after
another, a repeat is drawn again, and the grades are dealt at random.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from falsify_adapters.coded import Coded, segment_sums
from falsify_adapters.frames import FloatArray, IntArray
from falsify_adapters.kernels import Hits, Kernel
from falsify_adapters.nulls.cross import CrossMatrix
from falsify_adapters.nulls.draws import (
    DENSE_CHANCE,
    NullDraws,
    bounded_groups,
    distinct_integers,
    generator,
    trial_chunks,
)
from falsify_adapters.nulls.permuted import permuted_gold
from falsify_adapters.nulls.pool import Pool
from falsify_adapters.nulls.single_draw import single_draw_sums
from falsify_adapters.nulls.urn import Urn

#: Share of a move by which its closed form is wrong at most (pools of 30 to 200 documents, skewed,
#: rankings turned round: 0.08, for RR and Success).
APPROXIMATION = 0.1
#: Draws handled at once (about 100 bytes each).
CHUNK_DRAWS = 1_000_000


def popularity_gold(cross: CrossMatrix, kernel: Kernel, n_trials: int, seed: int) -> NullDraws:
    """Return null D: gold documents drawn without repeats, in proportion to their popularity.

    Parameters
    ----------
    cross : CrossMatrix
        Scores of all rankings against all gold sets (for the system's own scores).
    kernel : Kernel
        The measure.
    n_trials, seed : int
        Number of draws of the whole benchmark, and their seed.
    """
    coded = cross.coded
    pool = Pool(coded, coded.popularity)
    approximate, influence = _closed_form(cross, kernel, pool)
    single, n, rng = coded.gold_count == 1, coded.n_queries, generator(seed, "D")
    alone = single_draw_sums(pool, kernel, n_trials, rng)
    several = np.zeros(n_trials)  # each trial's sum over the queries with several gold documents
    query_sum = np.zeros(n)
    for query, trial, value in several_draw_scores(pool, kernel, n_trials, rng):
        several += segment_sums(value, trial, n_trials)
        query_sum += segment_sums(value, query, n)
    # with one gold document the expectation is exact; the trials give the rest
    return NullDraws(
        mean=float(np.where(single, approximate, 0.0).sum() + several.mean()) / n,
        mean_error=float(several.std(ddof=1) / np.sqrt(n_trials)) / n,
        query_means=np.where(single, approximate, query_sum / n_trials),
        influence=influence,
        trials=(alone + several) / n,
    )


def moved_popularity(
    cross: CrossMatrix, kernel: Kernel, known: NullDraws, before: Coded
) -> NullDraws | None:
    """Return null D of rankings in another order, without drawing again.

    Parameters
    ----------
    cross : CrossMatrix
        Scores of the rankings in their new order.
    kernel : Kernel
        A measure with closed forms.
    known : NullDraws
        Null D of the rankings as they were; means and trials move by the difference of the closed
        forms.
    before : Coded
        The rankings as they were.

    Returns
    -------
    NullDraws or None
        None where the closed forms approximate so large a move that it could be wrong by more than
        the Monte Carlo error: draw again.
    """
    coded = cross.coded
    approximate, influence = _closed_form(cross, kernel, Pool(coded, coded.popularity))
    old, _ = kernel.inclusion_mean(Pool(before, before.popularity).inclusion())
    moved = approximate - old
    several = np.abs(moved[coded.gold_count > 1]).sum() / coded.n_queries
    if several * APPROXIMATION > known.mean_error:
        return None
    return NullDraws(
        mean=known.mean + float(moved.mean()),
        mean_error=known.mean_error,
        query_means=known.query_means + moved,
        influence=influence,
        trials=known.trials + float(moved.mean()),
    )


def _closed_form(cross: CrossMatrix, kernel: Kernel, pool: Pool) -> tuple[FloatArray, FloatArray]:
    """Return each query's expected score (approximate if several are drawn), and its influence."""
    expected, slope = kernel.inclusion_mean(pool.inclusion())
    counts = np.ones(len(cross.coded.gold_doc), dtype=bool)
    return expected, cross.own - expected - pool.owed(slope, counts)


def frequent_sets(cross: CrossMatrix, n_trials: int, seed: int) -> NullDraws:
    """Return null D with ``marginal="set"``: whole gold sets drawn by frequency.

    Its expectation, and so the influence of a query, is that of null A.
    """
    coded = cross.coded
    like_a = permuted_gold(cross, 1, seed)
    rng = generator(seed, "D")
    n, set_of = coded.n_queries, coded.set_of.astype(np.int32)
    trials = [
        cross.trial_means(set_of[rng.integers(0, n, size=(rows, n), dtype=np.int32)])
        for rows in trial_chunks(n_trials, n)
    ]
    return NullDraws(
        mean=like_a.mean,
        mean_error=0.0,
        query_means=like_a.query_means,
        influence=like_a.influence,
        trials=np.concatenate(trials),
    )


def several_draw_scores(
    pool: Pool, kernel: Kernel, n_trials: int, rng: np.random.Generator
) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Yield query, trial and score of every (query, trial) whose drawn gold meets the ranking.

    Of the queries with several gold documents only.

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
    """
    coded, urn = pool.coded, Urn(pool)
    grades = np.unique(coded.gold_grade)
    graded = len(np.unique(kernel.gain(grades))) > 1 or not kernel.closed_form
    for queries, first, rows in _chunks(urn, n_trials):
        case, entry = urn.hits(queries, rows, rng)
        new_case = np.r_[True, np.diff(case) > 0][: len(case)]
        cases, pair = case[new_case], np.cumsum(new_case) - 1
        query, trial = np.divmod(cases, rows)
        if graded:
            dealt = distinct_integers(rng, np.bincount(pair), coded.gold_count[query])
        else:
            dealt = np.zeros(len(pair), dtype=np.int64)
        scores = kernel.score(
            Hits(
                pair=pair,
                rank=coded.entry_rank[entry],
                grade=coded.gold_grade[coded.gold_start[query][pair] + dealt],
                profile=coded.profile_of[query],
                returned=coded.returned[query],
            )
        )
        yield query, first + trial, scores


def _chunks(urn: Urn, n_trials: int) -> Iterator[tuple[IntArray, int, int]]:
    """Yield chunks of bounded work: queries that can be hit, first trial, number of trials."""
    share = urn.pool.own_weight() / urn.pool.total
    placed = np.where(share > DENSE_CHANCE, 1.0, share) * urn.last_draw
    work = np.where(urn.by_arrival, np.diff(urn.coded.entry_start()), placed)
    queries = np.flatnonzero((share > 0) & (urn.coded.gold_count > 1))
    rows = max(1, int(CHUNK_DRAWS / max(work[queries].max(initial=0.0), 1.0)))
    for first in range(0, n_trials, rows):
        some = min(rows, n_trials - first)
        for group in bounded_groups(work[queries] * some, CHUNK_DRAWS):
            yield queries[group], first, some
