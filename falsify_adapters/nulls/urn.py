"""Gold sets drawn one document after another; most draws are never looked at.

Most draws fall on documents that the query's ranking does not hold and change nothing. So only
the draws that fall on the ranking's own documents are placed (a coin toss for each draw), and the
others are filled in where they matter: when a draw comes so late that repeats before it decide
whether it still counts. This is the same distribution at a cost that grows with the hits. Where
so many draws are repeats that there are fewer documents than draws (one document may have nearly
all the weight), each document gets a time of arrival instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from falsify_adapters.coded import Coded
from falsify_adapters.frames import BoolArray, FloatArray, IntArray
from falsify_adapters.nulls.draws import bernoulli_cells
from falsify_adapters.nulls.pool import Pool

Documents = npt.NDArray[np.int32]
Lookup = Callable[[IntArray, Documents], BoolArray]

#: Draws of cases that are filled in at once (four bytes each, a few times over).
FILLED_CELLS = 250_000
#: Cells from which on a query's draws are filled in on their own.
ALONE_CELLS = 20_000
#: Largest table (one byte per query and document) for looking up a ranking's documents.
TABLE_CELLS = 32_000_000


@dataclass(frozen=True, eq=False)
class Urn:
    """Each document as often in the urn as its weight says; whatever is drawn is put back.

    Parameters
    ----------
    pool : Pool
        The documents that can be drawn.
    """

    pool: Pool

    @property
    def coded(self) -> Coded:
        """The evaluation in integer codes."""
        return self.pool.coded

    def hits(
        self, queries: IntArray, n_trials: int, rng: np.random.Generator
    ) -> tuple[IntArray, IntArray]:
        """Draw gold sets of some queries; return the ranked documents among them.

        Returns
        -------
        case, entry : ndarray, shape (n_hits,)
            Ascending. The case is ``query * n_trials + trial``.
        """
        n_entries = len(self.coded.entry_doc)
        long = self.by_arrival[queries]
        case, draw, entry = self._draws(queries[~long], n_trials, rng)
        counted = self._counted(case, draw, entry, n_trials, rng)
        found = [case[counted] * n_entries + entry[counted]]
        found += [self._first_arrivals(query, n_trials, rng) for query in queries[long].tolist()]
        return np.divmod(np.sort(np.concatenate(found)), n_entries)

    @cached_property
    def by_arrival(self) -> BoolArray:
        """Whether a query needs so many draws that a time for each document costs less."""
        return self.last_draw >= len(self.pool.weight)

    def _first_arrivals(self, query: int, n_trials: int, rng: np.random.Generator) -> IntArray:
        """Draw gold sets of a query as :mod:`falsify_adapters.nulls.pool` says: the first to come.

        Returns the hits as ``case * n_entries + entry``.
        """
        coded, weight = self.coded, self.pool.weight
        low, high = coded.entry_start()[query : query + 2].tolist()
        last = int(coded.gold_count[query]) - 1
        n_entries, step, found = len(coded.entry_doc), max(1, FILLED_CELLS // len(weight)), []
        for trial in range(0, n_trials, step):
            rows = min(step, n_trials - trial)
            time = rng.standard_exponential((rows, len(weight))) / weight
            own = time[:, coded.entry_doc[low:high]]
            row, entry = np.nonzero(own <= np.partition(time, last, axis=1)[:, last : last + 1])
            found.append((query * n_trials + trial + row) * n_entries + low + entry)
        return np.concatenate(found)

    @cached_property
    def last_draw(self) -> IntArray:
        """Draws after which each query's gold set is complete, but for rare cases.

        Mean plus four standard deviations (and three) of the number of draws until m documents
        are distinct (classical occupancy). About one case in ten thousand needs more; its gold set
        then lacks its last document, which moves a mean by far less than the trials' standard
        error.
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
        weights, size, _ = self.pool.classes
        kinds, first, which = np.unique(
            self.coded.gold_count, return_index=True, return_inverse=True
        )
        time = self.pool.times[first]
        draws, margin = kinds.astype(np.float64), np.zeros(len(kinds))
        some = (kinds > 1) & np.isfinite(time)
        left = np.exp(-np.outer(time[some], weights))
        slope = (left * size) @ weights / self.pool.total  # new documents per draw, at the end
        draws[some] = time[some] * self.pool.total
        spread = (left * (1.0 - left)) @ size - draws[some] * slope**2
        margin[some] = 4.0 * np.sqrt(np.maximum(spread, 0.0)) / slope + 3.0
        return draws[which], margin[which]

    def _draws(
        self, queries: IntArray, n_trials: int, rng: np.random.Generator
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Return case, number of the draw, and entry of every draw that falls on the ranking."""
        coded = self.coded
        limit = self.last_draw[queries]
        share = self.pool.own_weight()[queries] / self.pool.total
        line, cell = bernoulli_cells(rng, limit * n_trials, share)
        trial, draw = np.divmod(cell, limit[line])
        query = queries[line]
        # pick the document by weight, in whole numbers
        ladder = np.cumsum(self.pool.weight[coded.entry_doc])
        start = np.r_[0, ladder][coded.entry_start()]
        mark = start[query] + rng.integers(0, np.diff(start)[query])
        return query * n_trials + trial, draw, np.searchsorted(ladder, mark, side="right")

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
        sure = draw < self.sure_draw[case // n_trials]
        counted = first & sure
        late = np.flatnonzero(first & ~sure)
        if not late.size:
            return counted
        # the late ones count only if enough earlier draws were repeats: fill those draws in
        document = self.coded.entry_doc[entry]
        cases, begin, n_late = np.unique(case[late], return_index=True, return_counts=True)
        query = cases // n_trials
        length = np.maximum.reduceat(draw[late], begin)
        first_draw = np.searchsorted(case, cases)
        for some in _stretches(query, length):
            row, known = _spread(first_draw[some], np.searchsorted(case, cases[some], "right"))
            early = draw[known] < length[some][row]
            row, known = row[early], known[early]
            places = (row, draw[known], document[known])
            filled = self._filled(query[some], length[some], places, rng)
            row, which = _spread(begin[some], begin[some] + n_late[some])
            hit = late[which]
            new = draw[hit] - _repeats(filled[row], draw[hit], self.coded.n_docs)
            counted[hit] = new < self.coded.gold_count[query[some]][row]
        return counted

    def _filled(
        self,
        query: IntArray,
        length: IntArray,
        known: tuple[IntArray, IntArray, IntArray],
        rng: np.random.Generator,
    ) -> Documents:
        """Return the first `length` draws of some cases as documents, shape (n_cases, longest).

        `known` holds row, column and document of the draws that fell on the query's ranking; the
        others are drawn by weight, none from the ranking. What stands beyond a row's length means
        nothing.
        """
        size, (row, column, document) = (len(query), int(length.max())), known
        if query[0] == query[-1]:
            tickets = self._other_tickets(int(query[0]))
            filled = tickets[rng.integers(0, len(tickets), size, dtype=np.int32)]
            filled[row, column] = document
            return filled
        filled = self._tickets[rng.integers(0, self.pool.total, size, dtype=np.int32)]
        is_own = self._own_lookup(query)
        unfit = is_own(np.arange(len(query))[:, None], filled)
        unfit &= np.arange(size[1]) < length[:, None]
        unfit[row, column] = False
        filled[row, column] = document
        row, column = np.nonzero(unfit)
        while row.size:
            drawn = self._tickets[rng.integers(0, self.pool.total, len(row), dtype=np.int32)]
            filled[row, column] = drawn
            again = is_own(row, drawn)
            row, column = row[again], column[again]
        return filled

    def _other_tickets(self, query: int) -> Documents:
        """Return the tickets of the documents that the ranking of a query lacks."""
        own = np.zeros(self.coded.n_docs, dtype=bool)
        start = self.coded.entry_start()
        own[self.coded.entry_doc[start[query] : start[query + 1]]] = True
        # all documents may be its own: then there is nothing to fill in
        others = self._tickets[~own[self._tickets]]
        return others if len(others) else self._tickets[:1]

    @cached_property
    def _tickets(self) -> Documents:
        """Each document as often as its weight says: one of these drawn is a draw by weight."""
        return np.repeat(np.arange(len(self.pool.weight), dtype=np.int32), self.pool.weight)

    def _own_lookup(self, query: IntArray) -> Callable[[IntArray, Documents], BoolArray]:
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

        def search(owner: IntArray, document: Documents) -> BoolArray:
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


def _repeats(document: Documents, length: IntArray, n_docs: int) -> IntArray:
    """Return how many of the first `length` documents of each row stood in the row before.

    Sorts the rows, in place: short rows of small numbers sort faster than they are looked up.
    """
    column = np.arange(document.shape[1], dtype=np.int32)
    # what comes later is made different from everything
    np.copyto(document, n_docs + column, where=column >= length[:, None])
    document.sort(axis=1)
    repeats: IntArray = (document[:, 1:] == document[:, :-1]).sum(axis=1)
    return repeats


def _stretches(query: IntArray, length: IntArray) -> Iterator[IntArray]:
    """Group rows of different lengths, ascending by query, into stretches of few cells.

    A query with many cells stands alone: its own documents are left out once, not in every draw.
    """
    cells = np.bincount(query, weights=length)
    alone = np.flatnonzero(cells > ALONE_CELLS)
    groups = [np.arange(*np.searchsorted(query, [one, one + 1])) for one in alone.tolist()]
    groups.append(np.flatnonzero(cells[query] <= ALONE_CELLS))
    for group in groups:
        by_length = group[np.argsort(length[group], kind="stable")]
        for part in _bounded(length[by_length]):
            yield np.sort(by_length[part])


def _bounded(length: IntArray) -> list[slice]:
    """Cut ascending lengths into stretches of few cells (count times largest length)."""
    bounds = [0]
    while bounds[-1] < len(length):
        low = bounds[-1]
        cells = np.arange(1, len(length) - low + 1) * length[low:]
        bounds.append(low + max(1, int(np.searchsorted(cells, FILLED_CELLS, side="right"))))
    return [slice(low, high) for low, high in pairwise(bounds)]


def _spread(begin: IntArray, end: IntArray) -> tuple[IntArray, IntArray]:
    """Return the numbers of all ranges end to end, and which range each is from."""
    count = end - begin
    row = np.repeat(np.arange(len(count)), count)
    return row, np.arange(len(row)) + (begin - np.cumsum(count) + count)[row]
