"""The cross matrix: every query's ranking scored against every distinct gold set."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from falsify_adapters.coded import Coded
from falsify_adapters.frames import FloatArray, IntArray
from falsify_adapters.kernels import Additive, Hits, Kernel

#: Hits that are joined at once (about 100 bytes each).
CHUNK_HITS = 2_000_000
#: Largest number of cells for which the matrix is also kept dense.
DENSE_CELLS = 8_000_000


class CrossMatrix:
    """Scores of all rankings against all distinct gold sets, and their means.

    Parameters
    ----------
    coded : Coded
        The evaluation in integer codes.
    kernel : Kernel
        The measure.

    Attributes
    ----------
    own : ndarray, shape (n_queries,)
        Score of each ranking against its own gold set.
    row_mean : ndarray, shape (n_queries,)
        Mean of each ranking's scores over all queries' gold sets.
    set_mean : ndarray, shape (n_queries,)
        Mean of each ranking's scores over the distinct gold sets.
    column_mean : ndarray, shape (n_queries,)
        Mean score of all rankings against each query's gold set (0 for an empty one).
    """

    def __init__(self, coded: Coded, kernel: Kernel) -> None:
        self.coded = coded
        n, n_sets = coded.n_queries, len(coded.set_query)
        self.matrix = (
            _product(coded, kernel) if isinstance(kernel, Additive) else _joined(coded, kernel)
        )
        self.row_mean: FloatArray = self.matrix @ (coded.set_count / n)
        self.set_mean: FloatArray = self.matrix @ np.full(n_sets, 1.0 / n_sets)
        by_set: FloatArray = np.r_[self.matrix.T @ np.full(n, 1.0 / n), 0.0]
        self.column_mean = by_set[coded.set_of]
        self.own = own_scores(coded, kernel)

    @property
    def mean(self) -> float:
        """Mean over all pairs of a ranking and a query's gold set."""
        return float(self.row_mean.mean())

    def square_sum(self) -> float:
        """Return the sum of squares over all pairs of queries."""
        return float((self.matrix.power(2) @ self.coded.set_count.astype(np.float64)).sum())

    def trial_means(self, sets: npt.NDArray[np.integer[Any]]) -> FloatArray:
        """Return the mean score of each trial.

        Parameters
        ----------
        sets : ndarray, shape (n_trials, n_queries)
            The distinct gold set that each query gets; -1 for an empty one.
        """
        n = self.coded.n_queries
        if self._dense is not None:
            start = np.arange(n, dtype=np.int32) * self._dense.shape[1] + 1
            return self._dense.ravel()[sets + start].mean(axis=1)
        row = np.repeat(np.arange(n), np.diff(self.matrix.indptr))
        column, value = self.matrix.indices, self.matrix.data
        return np.array([value[trial[row] == column].sum() / n for trial in sets])

    @cached_property
    def _dense(self) -> FloatArray | None:
        n, n_sets = self.matrix.shape
        if n * (n_sets + 1) > DENSE_CELLS:
            return None
        dense = np.zeros((n, n_sets + 1))  # the first column is the empty gold set
        dense[:, 1:] = self.matrix.toarray()
        return dense


def own_scores(coded: Coded, kernel: Kernel) -> FloatArray:
    """Score each ranking against its own gold set, shape (n_queries,)."""
    key = coded.gold_query * coded.n_docs + coded.gold_doc  # ascending: gold rows are sorted
    wanted = coded.entry_query * coded.n_docs + coded.entry_doc
    place = np.minimum(np.searchsorted(key, wanted), max(len(key) - 1, 0))
    found = key[place] == wanted
    hits = Hits(
        pair=coded.entry_query[found],
        rank=coded.entry_rank[found],
        grade=coded.gold_grade[place[found]],
        profile=coded.profile_of,
        returned=coded.returned,
    )
    return kernel.score(hits)


def _set_rows(coded: Coded) -> tuple[IntArray, IntArray]:
    """Return the gold rows of the distinct sets, and each one's set."""
    count = coded.gold_count[coded.set_query]
    owner = np.repeat(np.arange(len(count)), count)
    start = np.cumsum(count) - count
    rows = np.arange(len(owner)) - start[owner] + coded.gold_start[coded.set_query][owner]
    return rows, owner


def _product(coded: Coded, kernel: Additive) -> Any:
    """Return the matrix of a measure that adds up: weights by rank times worths of documents."""
    rows, owner = _set_rows(coded)
    weights = sparse.csr_array(
        (
            kernel.weight(coded.entry_rank, coded.returned[coded.entry_query]),
            (coded.entry_query, coded.entry_doc),
        ),
        shape=(coded.n_queries, coded.n_docs),
    )
    profile = coded.profile_of[coded.set_query][owner]
    worths = sparse.csr_array(
        (kernel.worth(coded.gold_grade[rows], profile), (owner, coded.gold_doc[rows])),
        shape=(len(coded.set_query), coded.n_docs),
    )
    return (weights @ worths.T).tocsr()


def _joined(coded: Coded, kernel: Kernel) -> Any:
    """Return the matrix of any measure: join rankings and sets on documents, score the hits."""
    rows, owner = _set_rows(coded)
    by_doc = np.argsort(coded.gold_doc[rows], kind="stable")
    rows, owner = rows[by_doc], owner[by_doc]
    start = np.searchsorted(coded.gold_doc[rows], np.arange(coded.n_docs + 1))
    matches = np.diff(start)[coded.entry_doc]
    n_sets = len(coded.set_query)
    parts = []
    for chunk in _query_chunks(matches, coded.entry_start()):
        count = matches[chunk]
        entry = np.repeat(np.arange(chunk.start, chunk.stop), count)
        offset = np.arange(len(entry)) - np.repeat(np.cumsum(count) - count, count)
        gold = start[coded.entry_doc[entry]] + offset
        key = coded.entry_query[entry] * n_sets + owner[gold]
        order = np.argsort(key, kind="stable")  # entries came by rank, so ranks stay ascending
        pairs, pair = np.unique(key[order], return_inverse=True)
        hits = Hits(
            pair=pair,
            rank=coded.entry_rank[entry[order]],
            grade=coded.gold_grade[rows[gold[order]]],
            profile=coded.profile_of[coded.set_query[pairs % n_sets]],
            returned=coded.returned[pairs // n_sets],
        )
        parts.append((kernel.score(hits), pairs // n_sets, pairs % n_sets))
    value, row, column = (np.concatenate(list(part)) for part in zip(*parts, strict=True))
    return sparse.csr_array((value, (row, column)), shape=(coded.n_queries, n_sets))


def _query_chunks(matches: IntArray, entry_start: IntArray) -> list[slice]:
    """Cut the entries into slices of whole queries with at most about CHUNK_HITS matches each."""
    total = np.r_[0, np.cumsum(matches)]
    per_query = total[entry_start]
    chunk = (per_query[1:] - 1) // CHUNK_HITS
    last = np.flatnonzero(np.r_[chunk[1:] != chunk[:-1], True])
    bounds = np.r_[0, entry_start[last + 1]].tolist()
    return [slice(low, high) for low, high in pairwise(bounds)]
