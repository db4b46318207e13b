"""Null C: the ranked documents are replaced by documents drawn at random from the corpus.

Closed forms: hypergeometric; average precision after Bestgen (2015).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from falsify_adapters.coded import Coded, segment_sums, unique_rows
from falsify_adapters.frames import FloatArray, IntArray, compact
from falsify_adapters.kernels import Hits, Kernel, RandomDraw, none_drawn
from falsify_adapters.nulls.draws import (
    NullDraws,
    bernoulli_cells,
    distinct_integers,
    generator,
    line_groups,
)


def random_documents(
    coded: Coded, kernel: Kernel, own: FloatArray, n_trials: int, seed: int
) -> NullDraws:
    """Return null C: as many documents as the run returned, drawn without replacement.

    Gold documents that the corpus lacks count in the measure's normaliser, never as hits.

    Parameters
    ----------
    coded : Coded
        The evaluation in integer codes.
    kernel : Kernel
        The measure.
    own : ndarray, shape (n_queries,)
        The system's score per query.
    n_trials, seed : int
        Number of random runs, and their seed.
    """
    n = coded.n_queries
    trials, query_sum = np.zeros(n_trials), np.zeros(n)
    for trial, query, value in _trial_scores(coded, kernel, n_trials, generator(seed, "C")):
        trials += segment_sums(value, trial, n_trials)
        query_sum += segment_sums(value, query, n)
    trials /= n
    if kernel.closed_form:
        query_means = expected_random(coded, kernel, coded.returned)
        mean, error = float(query_means.mean()), 0.0
    else:
        query_means = query_sum / n_trials
        mean, error = float(trials.mean()), float(trials.std(ddof=1) / np.sqrt(n_trials))
    return NullDraws(mean, error, query_means, own - query_means, trials)


def expected_random(coded: Coded, kernel: Kernel, k: IntArray) -> FloatArray:
    """Return each query's expected score for `k` random documents, in closed form.

    Parameters
    ----------
    coded : Coded
        The evaluation in integer codes.
    kernel : Kernel
        A measure with closed forms.
    k : ndarray, shape (n_queries,)
        Documents drawn for each query, within the measure's cutoff.
    """
    gain = kernel.gain(coded.gold_grade) * coded.gold_present
    total = segment_sums(gain, coded.gold_query, coded.n_queries)
    relevant = segment_sums((gain > 0).astype(np.float64), coded.gold_query, coded.n_queries)
    return kernel.random_mean(
        RandomDraw(coded.corpus_size, k, relevant.astype(np.int64), total, coded.profile_of)
    )


def _trial_scores(
    coded: Coded, kernel: Kernel, n_trials: int, rng: np.random.Generator
) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
    """Yield trial, query and score of every (trial, query) in which a gold document came up."""
    present = np.bincount(
        coded.gold_query, weights=coded.gold_present, minlength=coded.n_queries
    ).astype(np.int64)
    k = coded.returned
    some_hit, size = 1.0 - none_drawn(coded.corpus_size, present, k), np.full(len(k), n_trials)
    hits = present * k / (coded.corpus_size * np.where(some_hit > 0, some_hit, 1.0))
    for some in line_groups(size, some_hit, cells=hits):
        line, trial = bernoulli_cells(rng, size[some], some_hit[some])
        query = some[line]
        yield trial, query, _hit_scores(coded, kernel, present, query, rng)


def _hit_scores(
    coded: Coded, kernel: Kernel, present: IntArray, query: IntArray, rng: np.random.Generator
) -> FloatArray:
    """Score random rankings of the given queries in which a gold document at least came up."""
    k = coded.returned
    count = _hit_counts(coded.corpus_size, present, k, query, rng)
    pair = np.repeat(np.arange(len(query)), count)
    rank = distinct_integers(rng, count, k[query]) + 1
    # from the top of each ranking on; which document came up there is independent of the rank
    deepest = int(k.max(initial=0)) + 1
    rank = np.sort(pair * deepest + rank) - pair * deepest
    # which of the query's present gold documents were drawn
    drawn = distinct_integers(rng, count, present[query])
    present_rows = np.flatnonzero(coded.gold_present)
    first = np.searchsorted(present_rows, coded.gold_start[:-1])
    grade = coded.gold_grade[present_rows[first[query][pair] + drawn]]
    return kernel.score(Hits(pair, rank, grade, coded.profile_of[query], k[query]))


def _hit_counts(
    corpus_size: IntArray,
    present: IntArray,
    k: IntArray,
    query: IntArray,
    rng: np.random.Generator,
) -> IntArray:
    """Draw how many gold documents came up in each case of a query, given that at least one did."""
    if not len(query):
        return np.zeros(0, dtype=np.int64)
    # a query that nothing can come up for has no chances
    met, of_case = compact(query, len(k))
    (sizes, golds, depths), kind = unique_rows(corpus_size[met], present[met], k[met])
    which = kind[of_case]
    gold, depth = golds[:, None], depths[:, None]
    count = np.arange(1, int(np.minimum(golds, depths).max()) + 1)[None, :]
    # hypergeometric chances up to a factor, from the ratio of each to the one before it
    others = sizes[:, None] - gold - depth + count
    possible = (count <= np.minimum(gold, depth)) & (others >= 0)
    up = np.maximum((gold - count + 1) * (depth - count + 1), 1)
    ratio = np.where(possible, np.log(up) - np.log(count * np.maximum(others, 1)), 0.0)
    weight = np.where(possible, np.cumsum(ratio, axis=1), -np.inf)
    chance = np.exp(weight - weight.max(axis=1, keepdims=True))
    ladder = np.cumsum(chance / chance.sum(axis=1, keepdims=True), axis=1)
    ladder[:, -1] = 1.0
    # one search for all kinds: kind number plus a uniform number, in the ladders end to end
    ends = (ladder + np.arange(len(golds))[:, None]).ravel()
    place = np.searchsorted(ends, which + rng.random(len(which)), side="right")
    return np.clip(place - which * ladder.shape[1] + 1, 1, np.minimum(present, k)[query])
