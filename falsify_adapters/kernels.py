"""Numpy twins of ir-measures' measures, for millions of (ranking, gold set) pairs at once.

A kernel scores *hits*: the ranks at which a ranking meets a gold set, and the grades found there.
All measures here are 0 without a relevant document and, given the hits, do not depend on the
other documents of the ranking. At every run of the gate the scores of the real (query, own gold
set) pairs are compared with ir-measures' own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from falsify_adapters.coded import Groups, segment_sums, unique_rows
from falsify_adapters.frames import FloatArray, IntArray, rank_in_query


@dataclass(frozen=True, eq=False)
class Hits:
    """Where rankings meet gold sets.

    Parameters
    ----------
    pair : ndarray, shape (n_hits,)
        The (ranking, gold set) pair of each hit, ascending.
    rank, grade : ndarray, shape (n_hits,)
        Rank (from 1, ascending within a pair) and grade of the document that was hit.
    profile : ndarray, shape (n_pairs,)
        Grade profile of each pair's gold set; -1 for an empty one.
    returned : ndarray, shape (n_pairs,)
        Documents that each pair's ranking holds, within the cutoff.
    """

    pair: IntArray
    rank: IntArray
    grade: IntArray
    profile: IntArray
    returned: IntArray


@dataclass(frozen=True, eq=False)
class Inclusion:
    """Rankings whose documents are relevant independently of each other.

    Parameters
    ----------
    query, rank : ndarray, shape (n_entries,)
        Entries by query and rank.
    probability : ndarray, shape (n_entries,)
        Chance that the entry is in its query's gold set.
    profile, returned : ndarray, shape (n_queries,)
        As in :class:`Hits`.
    exclusive : ndarray of bool, shape (n_queries,)
        Whether at most one document can be in the gold set (queries with one gold document).
    """

    query: IntArray
    rank: IntArray
    probability: FloatArray
    profile: IntArray
    returned: IntArray
    exclusive: np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, eq=False)
class RandomDraw:
    """Documents drawn uniformly, without replacement, for each query.

    Parameters
    ----------
    corpus_size, k : ndarray, shape (n_queries,)
        Documents to draw from, and number of documents drawn.
    relevant, gain : ndarray, shape (n_queries,)
        Relevant documents among those that can be drawn, and the sum of their gains.
    profile : ndarray, shape (n_queries,)
        As in :class:`Hits`.
    """

    corpus_size: IntArray
    k: IntArray
    relevant: IntArray
    gain: FloatArray
    profile: IntArray


class Kernel(ABC):
    """A measure on hits.

    Parameters
    ----------
    profiles : Groups
        The distinct grade profiles of the gold sets, each sorted from the highest grade down.
    cutoff : int or None
        Depth of the measure.
    rel : int
        Lowest grade that counts as relevant (binary measures).
    """

    #: Whether each formula below is exact (False: the measure is known through ir-measures only).
    closed_form: ClassVar[bool] = True

    def __init__(self, profiles: Groups, cutoff: int | None, rel: int = 1) -> None:
        self.profiles = profiles
        self.cutoff = cutoff
        self.rel = rel
        #: Relevant documents of each profile, a last 0 standing for the empty profile (-1).
        self.n_relevant = np.r_[
            np.bincount(
                profiles.owner(),
                weights=self.gain(profiles.values) > 0,
                minlength=len(profiles.length),
            ),
            0.0,
        ]

    def gain(self, grade: IntArray) -> FloatArray:
        """Return what a document of each grade is worth: 1 if relevant, for a binary measure."""
        return (grade >= self.rel).astype(np.float64)

    def mean_gain(self) -> FloatArray:
        """Return the mean gain of each profile's documents (0 for the empty profile, the last)."""
        total = np.bincount(
            self.profiles.owner(),
            weights=self.gain(self.profiles.values),
            minlength=len(self.profiles.length),
        )
        return np.r_[total / np.maximum(self.profiles.length, 1), 0.0]

    @abstractmethod
    def score(self, hits: Hits) -> FloatArray:
        """Return the score of each pair, shape (n_pairs,)."""

    @abstractmethod
    def random_mean(self, draw: RandomDraw) -> FloatArray:
        """Return each query's expected score for uniformly drawn documents."""

    @abstractmethod
    def inclusion_mean(self, entries: Inclusion) -> tuple[FloatArray, FloatArray]:
        """Return the expected score of each query, and its derivative by each entry's chance."""


class Additive(Kernel):
    """Measures that add up over documents: nDCG, P, R, SetP, SetR.

    The score of a pair is the sum over hits of ``weight(rank) * gain(grade) / norm(profile)``.
    """

    #: Whether the weight of a rank depends on how many documents the ranking holds.
    weighs_depth: ClassVar[bool] = False

    def weight(self, rank: IntArray, returned: IntArray) -> FloatArray:
        """Return the weight of each rank in a ranking of so many documents."""
        del returned
        return np.ones(len(rank))

    def norm(self) -> FloatArray:
        """Return each profile's normaliser, with a last entry for the empty profile."""
        return self.n_relevant

    def worth(self, grade: IntArray, profile: IntArray) -> FloatArray:
        """Return gain over normaliser: what a document adds at weight 1."""
        norm = self.norm()[profile]
        return np.divide(self.gain(grade), norm, out=np.zeros(len(norm)), where=norm > 0)

    def mean_worth(self) -> FloatArray:
        """Return the mean worth of each profile's documents."""
        norm = self.norm()
        return np.divide(self.mean_gain(), norm, out=np.zeros(len(norm)), where=norm > 0)

    def score(self, hits: Hits) -> FloatArray:
        value = self.weight(hits.rank, hits.returned[hits.pair]) * self.worth(
            hits.grade, hits.profile[hits.pair]
        )
        return segment_sums(value, hits.pair, len(hits.profile))

    def random_mean(self, draw: RandomDraw) -> FloatArray:
        depths, which = np.unique(draw.k, return_inverse=True)
        weights = np.zeros(len(depths))
        for i, depth in enumerate(depths.tolist()):
            rank = np.arange(1, depth + 1)
            weights[i] = self.weight(rank, np.full(depth, depth)).sum()
        norm = self.norm()[draw.profile]
        value = weights[which] * draw.gain / draw.corpus_size
        return np.divide(value, norm, out=np.zeros(len(norm)), where=norm > 0)

    def inclusion_mean(self, entries: Inclusion) -> tuple[FloatArray, FloatArray]:
        slope = (
            self.weight(entries.rank, entries.returned[entries.query])
            * self.mean_worth()[entries.profile[entries.query]]
        )
        mean = segment_sums(slope * entries.probability, entries.query, len(entries.profile))
        return mean, slope


class NDCG(Additive):
    """nDCG with linear gain (or a gain table) and the log2 discount; ideal from all judgments."""

    def __init__(
        self, profiles: Groups, cutoff: int | None, gains: dict[int, int] | None = None
    ) -> None:
        self.gains = gains or {}
        super().__init__(profiles, cutoff)
        owner = profiles.owner()
        value = self.gain(profiles.values)
        if self.gains:
            # grades fall within a profile, their gains need not
            value = value[np.lexsort((-value, owner))]
        rank = rank_in_query(owner)
        if cutoff is not None:
            within = rank <= cutoff
            owner, value, rank = owner[within], value[within], rank[within]
        ideal = value * self.weight(rank, rank)
        self._norm = np.r_[segment_sums(ideal, owner, len(profiles.length)), 0.0]

    def gain(self, grade: IntArray) -> FloatArray:
        value = grade.astype(np.float64)
        for old, new in self.gains.items():
            value[grade == old] = new
        return value

    def weight(self, rank: IntArray, returned: IntArray) -> FloatArray:
        del returned
        return 1.0 / np.log2(rank + 1.0)

    def norm(self) -> FloatArray:
        return self._norm


class Precision(Additive):
    """P@k: relevant documents over the cutoff, however many were returned."""

    def norm(self) -> FloatArray:
        assert self.cutoff is not None
        return np.full(len(self.n_relevant), float(self.cutoff))


class Recall(Additive):
    """R@k and SetR: relevant documents found over relevant documents."""


class SetPrecision(Additive):
    """SetP: relevant documents over returned documents."""

    weighs_depth = True

    def weight(self, rank: IntArray, returned: IntArray) -> FloatArray:
        del rank
        return 1.0 / np.maximum(returned, 1)

    def norm(self) -> FloatArray:
        return np.ones(len(self.n_relevant))


class Binary(Kernel):
    """Measures on the relevant hits alone, not additive."""

    def _relevant(self, hits: Hits) -> tuple[IntArray, IntArray]:
        """Return pair and rank of the hits that count as relevant."""
        keep = hits.grade >= self.rel
        return hits.pair[keep], hits.rank[keep]

    def _chances(self, entries: Inclusion) -> tuple[FloatArray, FloatArray]:
        """Return each entry's chance to be relevant, and the share of gold that is relevant."""
        share = self.mean_gain()[entries.profile[entries.query]]
        return entries.probability * share, share


class AveragePrecision(Binary):
    """AP and AP@k, over all relevant documents of the query."""

    def score(self, hits: Hits) -> FloatArray:
        pair, rank = self._relevant(hits)
        precision = rank_in_query(pair) / rank
        total = segment_sums(precision, pair, len(hits.profile))
        return total / np.maximum(self.n_relevant[hits.profile], 1)

    def random_mean(self, draw: RandomDraw) -> FloatArray:
        deepest = max(int(draw.k.max(initial=0)), 1)
        harmonic = np.r_[0.0, np.cumsum(1.0 / np.arange(1, deepest + 1))][draw.k]
        pairs = (draw.relevant - 1) / np.maximum(draw.corpus_size - 1, 1)
        total = draw.relevant / draw.corpus_size * (harmonic + pairs * (draw.k - harmonic))
        total = np.where(draw.relevant > 0, total, 0.0)
        return total / np.maximum(self.n_relevant[draw.profile], 1)

    def inclusion_mean(self, entries: Inclusion) -> tuple[FloatArray, FloatArray]:
        chance, share = self._chances(entries)
        n_queries = len(entries.profile)
        # with one gold document no other can stand above it
        others = np.where(entries.exclusive[entries.query], 0.0, chance)
        above = _sums_above(others, entries.query, n_queries)
        below = _sums_below(others / entries.rank, entries.query, n_queries)
        scale = 1.0 / np.maximum(self.n_relevant[entries.profile], 1)
        value = chance * (1.0 + above) / entries.rank
        mean = segment_sums(value, entries.query, n_queries) * scale
        single = entries.exclusive[entries.query]
        slope = (1.0 + above) / entries.rank + np.where(single, 0.0, below)
        return mean, share * slope * scale[entries.query]


class ReciprocalRank(Binary):
    """RR and RR@k: one over the rank of the first relevant document."""

    def score(self, hits: Hits) -> FloatArray:
        pair, rank = self._relevant(hits)
        first = rank_in_query(pair) == 1
        return segment_sums(1.0 / rank[first], pair[first], len(hits.profile))

    def random_mean(self, draw: RandomDraw) -> FloatArray:
        kinds, which = unique_rows(draw.corpus_size, draw.relevant, draw.k)
        value = np.zeros(len(kinds[0]))
        for i, (size, relevant, depth) in enumerate(np.stack(kinds, axis=1).tolist()):
            rank = np.arange(1, depth + 1)
            hit = np.minimum(relevant / (size - rank + 1.0), 1.0)
            none_above = np.r_[1.0, np.cumprod(1.0 - hit)[:-1]][:depth]
            value[i] = (none_above * hit / rank).sum()
        return value[which]

    def _value(self, rank: IntArray) -> FloatArray:
        return 1.0 / rank

    def inclusion_mean(self, entries: Inclusion) -> tuple[FloatArray, FloatArray]:
        chance, share = self._chances(entries)
        n_queries = len(entries.profile)
        single = entries.exclusive[entries.query]
        chance_other = np.where(single, 0.0, chance)
        none_above = _products_above(1.0 - chance_other, entries.query, n_queries)
        value = self._value(entries.rank)
        reached = none_above * chance * value
        mean = segment_sums(reached, entries.query, n_queries)
        # what the ranking earns below this entry, given that nothing above or here is relevant
        later = _sums_below(np.where(single, 0.0, reached), entries.query, n_queries)
        rest = 1.0 - chance_other
        lost = np.divide(later, rest, out=np.zeros(len(rest)), where=rest > 0)
        return mean, share * (none_above * value - lost)


class Success(ReciprocalRank):
    """Success@k: 1 if any of the top k documents is relevant."""

    def score(self, hits: Hits) -> FloatArray:
        pair, _ = self._relevant(hits)
        first = rank_in_query(pair) == 1
        return np.bincount(pair[first], minlength=len(hits.profile)).astype(np.float64)

    def random_mean(self, draw: RandomDraw) -> FloatArray:
        return 1.0 - none_drawn(draw.corpus_size, draw.relevant, draw.k)

    def _value(self, rank: IntArray) -> FloatArray:
        return np.ones(len(rank))


class RPrecision(Binary):
    """Rprec: precision at the number of the query's relevant documents."""

    def _within(self, query: IntArray, rank: IntArray, profile: IntArray) -> FloatArray:
        relevant = self.n_relevant[profile][query]
        return np.where(rank <= relevant, 1.0 / np.maximum(relevant, 1), 0.0)

    def score(self, hits: Hits) -> FloatArray:
        pair, rank = self._relevant(hits)
        value = self._within(pair, rank, hits.profile)
        return segment_sums(value, pair, len(hits.profile))

    def random_mean(self, draw: RandomDraw) -> FloatArray:
        relevant = self.n_relevant[draw.profile]
        depth = np.minimum(draw.k, relevant)
        return depth * draw.relevant / draw.corpus_size / np.maximum(relevant, 1)

    def inclusion_mean(self, entries: Inclusion) -> tuple[FloatArray, FloatArray]:
        chance, share = self._chances(entries)
        weight = self._within(entries.query, entries.rank, entries.profile)
        mean = segment_sums(weight * chance, entries.query, len(entries.profile))
        return mean, share * weight


def none_drawn(corpus_size: IntArray | int, marked: IntArray, k: IntArray) -> FloatArray:
    """Return the chance that `k` draws without replacement miss all `marked` documents.

    Parameters
    ----------
    corpus_size, marked, k : ndarray, shape (n,)
        Documents to draw from, how many of them are marked, and number of draws.

    Examples
    --------
    >>> none_drawn(np.array([4, 4]), np.array([1, 2]), np.array([2, 3]))
    array([0.5, 0. ])
    """
    (sizes, marks, depths), which = unique_rows(corpus_size, marked, k)
    value = np.ones(len(sizes))
    # one factor per draw; cutoffs make most rankings equally deep
    for drawn in range(int(depths.max(initial=0))):
        going = depths > drawn
        value[going] *= np.clip(1.0 - marks[going] / (sizes[going] - drawn), 0.0, None)
    return value[which]


def _sums_above(values: FloatArray, owner: IntArray, n: int) -> FloatArray:
    """Return the sum of the values above each entry, within its query."""
    table, cell = _table(values, owner, n, fill=0.0)
    above = np.cumsum(table, axis=1) - table
    return above[cell]


def _sums_below(values: FloatArray, owner: IntArray, n: int) -> FloatArray:
    """Return the sum of the values below each entry, within its query."""
    table, cell = _table(values, owner, n, fill=0.0)
    below = np.cumsum(table[:, ::-1], axis=1)[:, ::-1] - table
    return below[cell]


def _products_above(values: FloatArray, owner: IntArray, n: int) -> FloatArray:
    """Return the product of the values above each entry, within its query."""
    table, cell = _table(values, owner, n, fill=1.0)
    above = np.ones_like(table)
    np.cumprod(table[:, :-1], axis=1, out=above[:, 1:])
    return above[cell]


def _table(
    values: FloatArray, owner: IntArray, n: int, fill: float
) -> tuple[FloatArray, tuple[IntArray, IntArray]]:
    """Lay the values out as one row per query; return the table and each value's cell."""
    column = rank_in_query(owner) - 1
    table = np.full((n, int(column.max(initial=0)) + 1), fill)
    table[owner, column] = values
    return table, (owner, column)
