"""Null D: gold documents are drawn by popularity, the number of queries that they are gold for.

Each query keeps its number of gold documents and their grades; the documents are drawn one after
another, a repeat is drawn again, and the grades are dealt at random.

Most draws fall on documents that the query's ranking does not hold and change nothing. So only
the draws that fall on the ranking's own documents are placed (a coin toss for each draw), and the
others are filled in where they matter: when a draw comes so late that repeats before it decide
whether it still counts. This is the same distribution at a cost that grows with the hits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from falsify_adapters.coded import BoolArray, Coded, segment_sums
from falsify_adapters.frames import FloatArray, IntArray
from falsify_adapters.kernels import Hits, Inclusion, Kernel
from falsify_adapters.nulls.cross import CrossMatrix
from falsify_adapters.nulls.draws import (
    NullDraws,
    bernoulli_cells,
    distinct_integers,
    generator,
    trial_chunks,
)
from falsify_adapters.nulls.permuted import permuted_gold

#: Draws handled at once (about 100 bytes each).
CHUNK_DRAWS = 1_000_000
#: Largest table (four bytes per case and document) for finding first occurrences.
FIRST_CELLS = 250_000
#: Largest table (one byte per query and document) for looking up a ranking's documents.
TABLE_CELLS = 32_000_000


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
    approximate, slope = kernel.inclusion_mean(pool.inclusion())
    single = coded.gold_count == 1
    trials = np.zeros(n_trials)
    several = np.zeros(n_trials)  # the same, of the queries with several gold documents alone
    query_sum = np.zeros(coded.n_queries)
    for query, trial, value in pool.trial_scores(kernel, n_trials, generator(seed, "D")):
        trials += segment_sums(value, trial, n_trials)
        several += segment_sums(np.where(single[query], 0.0, value), trial, n_trials)
        query_sum += segment_sums(value, query, coded.n_queries)
    n = coded.n_queries
    # with one gold document the expectation is exact; the trials give the rest
    query_means = np.where(single, approximate, query_sum / n_trials)
    return NullDraws(
        mean=float(np.where(single, approximate, 0.0).sum() + several.mean()) / n,
        mean_error=float(several.std(ddof=1) / np.sqrt(n_trials)) / n,
        query_means=query_means,
        influence=cross.own - approximate - pool.owed(slope, np.ones(len(coded.gold_doc), bool)),
        trials=trials / n,
    )


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


@dataclass(frozen=True, eq=False)
class Pool:
    """The documents that can be drawn as gold, with their weights.

    Parameters
    ----------
    coded : Coded
        The evaluation in integer codes.
    weight : ndarray, shape (n_docs,)
        Positive whole numbers: the popularity of each document.
    """

    coded: Coded
    weight: IntArray

    @property
    def total(self) -> int:
        """Sum of all weights."""
        return int(self.weight.sum())

    @cached_property
    def times(self) -> FloatArray:
        """Each query's t, with which a document of weight p is drawn with chance 1 - exp(-p t).

        Solves ``sum_d (1 - exp(-p_d t)) = m`` for each number m of gold documents (Newton; the
        sum is concave, so the steps never overshoot). Infinite where every document is drawn.
        """
        classes, size = np.unique(self.weight, return_counts=True)
        kinds, which = np.unique(self.coded.gold_count, return_inverse=True)
        time = kinds / self.total
        open_end = kinds >= len(self.weight)
        for _ in range(200):
            left = np.exp(-np.outer(time, classes)) * size
            step = (kinds - (size.sum() - left.sum(axis=1))) / (left @ classes)
            step[open_end | (kinds == 0)] = 0.0
            time = time + np.maximum(step, 0.0)
            if (step <= 1e-13 * np.maximum(time, 1e-300)).all():
                break
        time[kinds == 1] = 1.0 / self.total  # exclusive draws: chance p / total, exactly
        time[open_end] = np.inf
        return time[which]

    @cached_property
    def last_draw(self) -> IntArray:
        """Draws after which each query's gold set is complete, but for rare cases.

        Mean plus five standard deviations (and three) of the number of draws until m documents
        are distinct (classical occupancy). Of a pool of many documents about one case in a million
        needs more, of a skewed pool of a dozen up to three in a thousand; their gold sets then
        lack their last document, which moves a mean by far less than the trials' standard error.
        """
        draws, margin = self._completion
        return np.ceil(draws + margin).astype(np.int64)

    @cached_property
    def sure_draw(self) -> IntArray:
        """Draws that come before each query's gold set is complete, but for rare cases.

        At least m; the mirror image of :attr:`last_draw`.
        """
        draws, margin = self._completion
        return np.maximum(np.floor(draws - margin).astype(np.int64), self.coded.gold_count)

    @cached_property
    def _completion(self) -> tuple[FloatArray, FloatArray]:
        """Mean number of draws until each query's gold set is complete, and a wide margin."""
        classes, size = np.unique(self.weight, return_counts=True)
        kinds, first, which = np.unique(
            self.coded.gold_count, return_index=True, return_inverse=True
        )
        time = self.times[first]
        draws, margin = kinds.astype(np.float64), np.zeros(len(kinds))
        some = (kinds > 1) & np.isfinite(time)
        left = np.exp(-np.outer(time[some], classes))
        slope = (left * size) @ classes / self.total  # new documents per draw, at the end
        draws[some] = time[some] * self.total
        spread = (left * (1.0 - left)) @ size - draws[some] * slope**2
        margin[some] = 5.0 * np.sqrt(np.maximum(spread, 0.0)) / slope + 3.0
        return draws[which], margin[which]

    def _survival(self) -> FloatArray:
        """Return each entry's exp(-p t); 1 where one document is drawn, which is then exact."""
        time = self.times[self.coded.entry_query]
        weight = self.weight[self.coded.entry_doc]
        single = self.coded.gold_count[self.coded.entry_query] == 1
        return np.where(single, 1.0, np.exp(-weight * time))

    def inclusion(self) -> Inclusion:
        """Return the rankings' entries with their chances to be drawn as gold."""
        coded = self.coded
        single = coded.gold_count[coded.entry_query] == 1
        alone = self.weight[coded.entry_doc] / self.total
        return Inclusion(
            query=coded.entry_query,
            rank=coded.entry_rank,
            probability=np.where(single, alone, 1.0 - self._survival()),
            profile=coded.profile_of,
            returned=coded.returned,
            exclusive=coded.gold_count == 1,
        )

    def owed(self, slope: FloatArray, counts: BoolArray) -> FloatArray:
        """Return what each query adds to the null's total by adding its documents to the pool.

        Parameters
        ----------
        slope : ndarray, shape (n_entries,)
            Derivative of the query's expected score by each entry's chance.
        counts : ndarray of bool, shape (n_gold,)
            The gold rows that add weight to the pool.

        Returns
        -------
        ndarray, shape (n_queries,)
            Sum over the query's gold documents e of ``d (sum_i h_i) / d p_e``.
        """
        coded = self.coded
        time = np.where(np.isfinite(self.times), self.times, 0.0)  # all drawn: nothing moves
        gained = slope * time[coded.entry_query] * self._survival()
        gained = np.where(np.isfinite(self.times[coded.entry_query]), gained, 0.0)
        by_doc = segment_sums(gained, coded.entry_doc, coded.n_docs)
        # every other document's chance falls when one gets more weight
        entry_loss = gained * self.weight[coded.entry_doc]
        lost = segment_sums(entry_loss, coded.entry_query, coded.n_queries)
        kinds, which = np.unique(coded.gold_count, return_inverse=True)
        kind_time = np.zeros(len(kinds))
        kind_time[which] = time
        classes, class_of = np.unique(self.weight, return_inverse=True)
        size = np.bincount(class_of)
        left = np.where((kinds == 1)[:, None], 1.0, np.exp(-np.outer(kind_time, classes)))
        moved = (left * size) @ classes  # sum over documents of p exp(-p t)
        lost_kind = segment_sums(lost, which, len(kinds))
        rate = np.divide(lost_kind, moved, out=np.zeros(len(kinds)), where=moved > 0)
        by_class = (left * rate[:, None]).sum(axis=0)
        by_doc -= by_class[class_of]
        return segment_sums(
            np.where(counts, by_doc[coded.gold_doc], 0.0), coded.gold_query, coded.n_queries
        )

    def trial_scores(
        self, kernel: Kernel, n_trials: int, rng: np.random.Generator
    ) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
        """Yield query, trial and score of every (query, trial) whose draw meets the ranking."""
        coded = self.coded
        grades = np.unique(coded.gold_grade)
        graded = len(np.unique(kernel.gain(grades))) > 1 or not kernel.closed_form
        for queries in self._chunks(n_trials):
            case, entry = self._drawn_entries(queries, n_trials, rng)
            new_case = np.r_[True, np.diff(case) > 0][: len(case)]
            cases, pair = case[new_case], np.cumsum(new_case) - 1
            count = np.bincount(pair)
            query = cases // n_trials
            first_gold = coded.gold_start[query]
            if graded:
                dealt = distinct_integers(rng, count, coded.gold_count[query])
            else:
                dealt = np.zeros(len(pair), dtype=np.int64)
            hits = Hits(
                pair=pair,
                rank=coded.entry_rank[entry],
                grade=coded.gold_grade[first_gold[pair] + dealt],
                profile=coded.profile_of[query],
                returned=coded.returned[query],
            )
            yield query, cases % n_trials, kernel.score(hits)

    def _chunks(self, n_trials: int) -> list[IntArray]:
        """Cut the queries that can be hit at all into chunks of bounded work."""
        share = self._own_weight() / self.total
        work = share * self.last_draw * n_trials
        queries = np.flatnonzero((work > 0) & (self.coded.gold_count > 0))
        chunk = np.cumsum(work[queries]) // CHUNK_DRAWS
        return np.split(queries, np.flatnonzero(np.diff(chunk)) + 1) if len(queries) else []

    def _own_weight(self) -> FloatArray:
        """Return the weight of the documents that each query's ranking holds."""
        weight = self.weight[self.coded.entry_doc].astype(np.float64)
        return segment_sums(weight, self.coded.entry_query, self.coded.n_queries)

    def _drawn_entries(
        self, queries: IntArray, n_trials: int, rng: np.random.Generator
    ) -> tuple[IntArray, IntArray]:
        """Draw gold sets; return the case (query x n_trials + trial) and entry of every hit.

        Ascending by case and entry.
        """
        coded = self.coded
        everything = coded.gold_count[queries] >= len(self.weight)
        case, draw, entry = self._draws(queries[~everything], n_trials, rng)
        keep = self._counted(case, draw, entry, n_trials, rng)
        case, entry = case[keep], entry[keep]
        if everything.any():
            start = coded.entry_start()
            for query in queries[everything].tolist():
                own = np.arange(start[query], start[query + 1])
                trials = np.arange(query * n_trials, (query + 1) * n_trials)
                case = np.r_[case, np.repeat(trials, len(own))]
                entry = np.r_[entry, np.tile(own, n_trials)]
        order = np.lexsort((entry, case))
        return case[order], entry[order]

    def _draws(
        self, queries: IntArray, n_trials: int, rng: np.random.Generator
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Return case, number of the draw, and entry of every draw that falls on the ranking."""
        coded = self.coded
        limit = self.last_draw[queries]
        share = self._own_weight()[queries] / self.total
        line, cell = bernoulli_cells(rng, limit * n_trials, share)
        trial, draw = cell // limit[line], cell % limit[line]
        query = queries[line]
        # pick the document by weight, in whole numbers
        ladder = np.cumsum(self.weight[coded.entry_doc])
        start = coded.entry_start()
        below = np.r_[0, ladder][start]
        mark = below[query] + rng.integers(0, (below[1:] - below[:-1])[query])
        entry = np.searchsorted(ladder, mark, side="right")
        return query * n_trials + trial, draw, entry

    def _counted(
        self,
        case: IntArray,
        draw: IntArray,
        entry: IntArray,
        n_trials: int,
        rng: np.random.Generator,
    ) -> BoolArray:
        """Return which draws bring a document into the gold set before it is complete.

        The draws come ascending by case and number.
        """
        first = _first_entries(case, entry)
        needed = self.coded.gold_count[case // n_trials]
        sure = draw < self.sure_draw[case // n_trials]
        counted = first & sure
        late = np.flatnonzero(first & ~sure)
        if not late.size:
            return counted
        # the late ones count only if enough earlier draws were repeats: fill those draws in
        starts = np.flatnonzero(np.r_[True, np.diff(case[late]) > 0])
        which = np.cumsum(np.r_[False, np.diff(case[late]) > 0])
        cases = case[late[starts]]
        length = np.maximum.reduceat(draw[late], starts)
        for low, high in _bounded(length, self.coded.n_docs):
            known = slice(*np.searchsorted(case, [cases[low], cases[high - 1] + 1]))
            new = self._new_documents(
                cases[low:high],
                length[low:high],
                (case[known], draw[known], self.coded.entry_doc[entry[known]]),
                n_trials,
                rng,
            )
            part = slice(*np.searchsorted(which, [low, high]))
            start = np.cumsum(length[low:high]) - length[low:high]
            seen = np.r_[0, np.cumsum(new)]
            at = start[which[part] - low]
            counted[late[part]] = seen[at + draw[late[part]]] - seen[at] < needed[late[part]]
        return counted

    def _new_documents(
        self,
        cases: IntArray,
        length: IntArray,
        known: tuple[IntArray, IntArray, IntArray],
        n_trials: int,
        rng: np.random.Generator,
    ) -> BoolArray:
        """Fill in the first `length` draws of some cases; return which bring a new document.

        `known` holds case, number and document of the draws that fell on the cases' rankings.
        """
        owner = np.repeat(np.arange(len(cases)), length)
        document = np.full(len(owner), -1)
        case, draw, known_document = known
        at = np.minimum(np.searchsorted(cases, case), len(cases) - 1)
        here = (cases[at] == case) & (draw < length[at])
        start = np.cumsum(length) - length
        document[start[at[here]] + draw[here]] = known_document[here]
        unknown = np.flatnonzero(document < 0)
        document[unknown] = self._others(cases // n_trials, owner[unknown], rng)
        return _first_of(owner, document, len(cases), self.coded.n_docs)

    def _others(self, query: IntArray, owner: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw a document by weight for each owner, none from the ranking of ``query[owner]``."""
        is_own = self._own_lookup(query)
        document = self._tickets[rng.integers(0, self.total, size=len(owner))]
        undecided = np.flatnonzero(is_own(owner, document))
        while undecided.size:
            drawn = self._tickets[rng.integers(0, self.total, size=len(undecided))]
            document[undecided] = drawn
            undecided = undecided[is_own(owner[undecided], drawn)]
        return document

    @cached_property
    def _tickets(self) -> IntArray:
        """Each document as often as its weight says: one of these drawn is a draw by weight."""
        return np.repeat(np.arange(len(self.weight)), self.weight)

    def _own_lookup(self, query: IntArray) -> Callable[[IntArray, IntArray], BoolArray]:
        """Return a function that tells which documents stand in the ranking of ``query[owner]``."""
        coded = self.coded
        queries, line = np.unique(query, return_inverse=True)
        if len(queries) * coded.n_docs <= TABLE_CELLS:
            line_of = np.full(coded.n_queries, -1)
            line_of[queries] = np.arange(len(queries))
            here = line_of[coded.entry_query] >= 0
            table = np.zeros((len(queries), coded.n_docs), dtype=bool)
            table[line_of[coded.entry_query[here]], coded.entry_doc[here]] = True
            return lambda owner, document: table[line[owner], document]
        own = np.sort(coded.entry_query * coded.n_docs + coded.entry_doc)

        def search(owner: IntArray, document: IntArray) -> BoolArray:
            key = query[owner] * coded.n_docs + document
            return own[np.minimum(np.searchsorted(own, key), len(own) - 1)] == key

        return search


def _first_entries(case: IntArray, entry: IntArray) -> BoolArray:
    """Return which draws are the first of their entry in their case; most cases have one draw."""
    first = np.ones(len(case), dtype=bool)
    again = np.r_[False, case[1:] == case[:-1]]
    crowded = np.flatnonzero(again | np.r_[again[1:], False])
    order = crowded[np.lexsort((crowded, entry[crowded], case[crowded]))]
    same = (np.diff(case[order]) == 0) & (np.diff(entry[order]) == 0)
    first[order[1:][same]] = False
    return first


def _first_of(owner: IntArray, document: IntArray, n_owners: int, n_docs: int) -> BoolArray:
    """Return which documents stand for the first time among those of their owner."""
    key = owner * n_docs + document
    position = np.arange(len(key))
    if n_owners * n_docs <= FIRST_CELLS:
        # written from the last to the first, a cell ends up with its first position
        seen = np.empty(n_owners * n_docs, dtype=np.int32)
        seen[key[::-1]] = position[::-1]
        return seen[key] == position
    order = np.argsort(key, kind="stable")
    first = np.zeros(len(key), dtype=bool)
    first[order] = np.r_[True, np.diff(key[order]) > 0][: len(key)]
    return first


def _bounded(length: IntArray, n_docs: int) -> list[tuple[int, int]]:
    """Cut a list of lengths into stretches of bounded sum, and of few cells if that is cheap."""
    few = max(FIRST_CELLS // n_docs, 1)
    cheap = few * float(length.mean()) > FIRST_CELLS / 100
    size = np.arange(len(length)) // few if cheap else 0
    chunk = np.maximum(np.cumsum(length) // CHUNK_DRAWS, size)
    cuts = np.flatnonzero(np.diff(chunk)) + 1
    return list(pairwise(np.r_[0, cuts, len(length)].tolist()))
