"""Null A with ``permute="label"``: a random bijection over the distinct gold documents.

Each query keeps its number of gold documents and their grades; every gold document is renamed.
This is what the ``falsify-eval`` 0.2.0 library does, kept for parity with it.
"""

from __future__ import annotations

import numpy as np

from falsify_adapters.coded import Coded, segment_sums
from falsify_adapters.frames import FloatArray, IntArray
from falsify_adapters.kernels import Additive, Hits, Kernel
from falsify_adapters.nulls.draws import NullDraws, generator
from falsify_adapters.nulls.pool import Pool


def permuted_labels(
    coded: Coded, kernel: Kernel, own: FloatArray, n_trials: int, seed: int
) -> NullDraws:
    """Return null A as a permutation of the gold documents' names.

    A query's renamed gold set is a uniform draw from the gold documents, so the means and
    influence values are those of equal popularity. Exact where the measure adds up over documents
    or every query has one gold document; the trials' mean otherwise.

    Parameters
    ----------
    coded, kernel, own
        As for :func:`falsify_adapters.nulls.random_documents.random_documents`.
    n_trials, seed : int
        Number of random bijections, and their seed.
    """
    pool = Pool(coded, np.ones(coded.n_docs, dtype=np.int64))
    expected, slope = kernel.inclusion_mean(pool.inclusion())
    query, value, trial = _trial_scores(coded, kernel, n_trials, generator(seed, "A-label"))
    trials = segment_sums(value, trial, n_trials) / coded.n_queries
    exact = isinstance(kernel, Additive) or bool((coded.gold_count <= 1).all())
    sampled = segment_sums(value, query, coded.n_queries) / n_trials
    # only a document that no other query has leaves the pool together with its query
    alone = coded.popularity[coded.gold_doc] == 1
    return NullDraws(
        mean=float(expected.mean()) if exact else float(trials.mean()),
        mean_error=0.0 if exact else float(trials.std(ddof=1) / np.sqrt(n_trials)),
        query_means=expected if exact else sampled,
        influence=own - expected - pool.owed(slope, alone),
        trials=trials,
    )


def _trial_scores(
    coded: Coded, kernel: Kernel, n_trials: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray, IntArray]:
    """Return query, score and trial of every (trial, query) with a hit."""
    # every entry beside every gold row of its query: which of them meet is up to the renaming
    count = coded.gold_count[coded.entry_query]
    entry = np.repeat(np.arange(len(coded.entry_query)), count)
    offset = np.arange(len(entry)) - np.repeat(np.cumsum(count) - count, count)
    gold = coded.gold_start[coded.entry_query[entry]] + offset
    document, label = coded.entry_doc[entry], coded.gold_doc[gold]
    queries, trials, entries, golds = [], [], [], []
    for trial in range(n_trials):
        met = np.flatnonzero(rng.permutation(coded.n_docs)[label] == document)
        entries.append(entry[met])
        golds.append(gold[met])
        queries.append(coded.entry_query[entry[met]])
        trials.append(np.full(len(met), trial))
    hit_entry, hit_gold = np.concatenate(entries), np.concatenate(golds)
    case = np.concatenate(trials) * coded.n_queries + np.concatenate(queries)
    cases, pair = np.unique(case, return_inverse=True)
    query = cases % coded.n_queries
    hits = Hits(
        pair=pair,
        rank=coded.entry_rank[hit_entry],
        grade=coded.gold_grade[hit_gold],
        profile=coded.profile_of[query],
        returned=coded.returned[query],
    )
    return query, kernel.score(hits), cases // coded.n_queries
