"""Evaluations as integer arrays: what the kernels and nulls compute on.

Only documents that are relevant for some query can change a score, so the run is reduced to its
*entries*: the ranked documents that occur in any gold set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from falsify_adapters.frames import (
    BoolArray,
    FloatArray,
    IntArray,
    categories,
    codes,
    compact,
    is_among,
    rank_in_query,
)


@dataclass(frozen=True, eq=False)
class Groups:
    """Lists of whole numbers of different lengths, as one flat array.

    Parameters
    ----------
    start : ndarray, shape (n + 1,)
        List ``i`` is ``values[start[i]:start[i + 1]]``.
    values : ndarray
        All lists, one after another.
    """

    start: IntArray
    values: IntArray

    @property
    def length(self) -> IntArray:
        """Length of each list."""
        return np.diff(self.start)

    def owner(self) -> IntArray:
        """Return the list that each value belongs to."""
        return np.repeat(np.arange(len(self.start) - 1), self.length)


@dataclass(frozen=True, eq=False)
class Coded:
    """A run and its gold sets in integer codes.

    Parameters
    ----------
    n_queries, n_docs : int
        Evaluated queries, distinct gold documents.
    corpus_size : ndarray, shape (n_queries,)
        Documents that could have been returned for each query: the corpus, or the query's own
        pool (the choices of a multiple-choice question).
    returned : ndarray, shape (n_queries,)
        Documents that the run returned for each query, within the cutoff.
    entry_query, entry_rank, entry_doc : ndarray, shape (n_entries,)
        The run's gold documents (of any query), by query and rank; ranks count from 1.
    gold_start : ndarray, shape (n_queries + 1,)
        Query ``i`` has the gold rows ``gold_start[i]:gold_start[i + 1]``.
    gold_doc, gold_grade, gold_present : ndarray, shape (n_gold,)
        Document, grade (above 0), and whether the corpus holds the document.
    """

    n_queries: int
    n_docs: int
    corpus_size: IntArray
    returned: IntArray
    entry_query: IntArray
    entry_rank: IntArray
    entry_doc: IntArray
    gold_start: IntArray
    gold_doc: IntArray
    gold_grade: IntArray
    gold_present: BoolArray

    @cached_property
    def gold_count(self) -> IntArray:
        """Number of gold documents of each query."""
        return np.diff(self.gold_start)

    @cached_property
    def gold_query(self) -> IntArray:
        """Query of each gold row."""
        return np.repeat(np.arange(self.n_queries), self.gold_count)

    @cached_property
    def popularity(self) -> IntArray:
        """Number of queries for which each document is gold."""
        return np.bincount(self.gold_doc, minlength=self.n_docs)

    @cached_property
    def _sets(self) -> tuple[IntArray, IntArray]:
        rows = np.stack([self.gold_doc, self.gold_grade], axis=1)
        return _distinct(rows, self.gold_start)

    @property
    def set_of(self) -> IntArray:
        """Number of each query's gold set among the distinct ones; -1 for an empty set."""
        return self._sets[0]

    @property
    def set_query(self) -> IntArray:
        """The first query that has each distinct gold set."""
        return self._sets[1]

    @cached_property
    def set_count(self) -> IntArray:
        """Number of queries that have each distinct gold set."""
        return np.bincount(self.set_of[self.set_of >= 0], minlength=len(self.set_query))

    @cached_property
    def _profiles(self) -> tuple[IntArray, Groups]:
        top = int(self.gold_grade.max(initial=0))
        order = np.argsort(self.gold_query * (top + 1) + top - self.gold_grade, kind="stable")
        grades = self.gold_grade[order]
        profile_of, first = _distinct(grades[:, None], self.gold_start)
        length = self.gold_count[first]
        start = np.r_[0, np.cumsum(length)]
        rows = np.arange(start[-1]) + np.repeat(self.gold_start[first] - start[:-1], length)
        return profile_of, Groups(start, grades[rows])

    @property
    def profile_of(self) -> IntArray:
        """Grade profile of each query: its gold grades whatever the documents; -1 if empty."""
        return self._profiles[0]

    @property
    def profiles(self) -> Groups:
        """The distinct grade profiles, each sorted from the highest grade down."""
        return self._profiles[1]

    def entry_start(self) -> IntArray:
        """Return where each query's entries start, shape (n_queries + 1,)."""
        counts = np.bincount(self.entry_query, minlength=self.n_queries)
        return np.r_[0, np.cumsum(counts)]

    def same_rankings(self) -> bool:
        """Whether all queries got the same ranking, as far as gold documents go."""
        if len(self.entry_query) % self.n_queries or len(set(self.returned.tolist())) > 1:
            return False
        rows = np.stack([self.entry_rank, self.entry_doc], axis=1)
        return len(_distinct(rows, self.entry_start())[1]) <= 1 and (
            np.diff(self.entry_start()).min() == np.diff(self.entry_start()).max()
        )


def code(
    run: pd.DataFrame,
    qrels: pd.DataFrame,
    corpus_size: int | IntArray,
    *,
    absent_gold: frozenset[str] = frozenset(),
    depth: int | None = None,
    order: IntArray | None = None,
) -> Coded:
    """Turn the common frames into integer arrays.

    Parameters
    ----------
    run, qrels : DataFrame
        The common frames.
    corpus_size : int or ndarray, shape (n_queries,)
        Documents in the corpus, or in each query's own pool.
    absent_gold : frozenset of str
        Relevant documents that the corpus lacks.
    depth : int, optional
        Keep only so many documents per query.
    order : ndarray, shape (n_rows,), optional
        Row numbers of `run` in another order within each query (see
        :func:`falsify_adapters.ties.tie_orders`).

    Examples
    --------
    >>> from falsify_adapters.frames import as_qrels, as_run
    >>> coded = code(
    ...     as_run({"q1": {"d1": 2.0, "d9": 1.0}}),
    ...     as_qrels({"q1": {"d1": 1, "d2": 2}, "q2": {"d2": 1}}),
    ...     corpus_size=10,
    ... )
    >>> coded.entry_rank.tolist(), coded.gold_count.tolist(), coded.popularity.tolist()
    ([1], [2, 1], [1, 2])
    """
    gold, gold_ids = code_qrels(qrels, corpus_size, absent_gold=absent_gold)
    run_query, run_rank, run_doc = _ranked(run, qrels, gold_ids, depth, order)
    entry = run_doc >= 0
    return replace(
        gold,
        returned=np.bincount(run_query, minlength=gold.n_queries),
        entry_query=run_query[entry],
        entry_rank=run_rank[entry],
        entry_doc=run_doc[entry],
    )


def code_qrels(
    qrels: pd.DataFrame, corpus_size: int | IntArray, *, absent_gold: frozenset[str] = frozenset()
) -> tuple[Coded, npt.NDArray[Any]]:
    """Turn qrels into integer arrays, with a run that returns nothing.

    Parameters
    ----------
    qrels, corpus_size, absent_gold
        As for :func:`code`.

    Returns
    -------
    Coded
    ndarray of str, shape (n_docs,)
        The gold documents' ids, sorted: document ``i`` of the arrays is the ``i``-th of them.

    Examples
    --------
    >>> from falsify_adapters.frames import as_qrels
    >>> coded, ids = code_qrels(as_qrels({"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 1}}), 10)
    >>> ids.tolist(), coded.gold_doc.tolist(), coded.popularity.tolist()
    (['d1', 'd3'], [0, 1], [1, 1])
    """
    relevance = qrels["relevance"].to_numpy()
    gold = relevance > 0
    all_ids = categories(qrels["doc_id"])
    doc_code = codes(qrels["doc_id"])[gold]
    # number the gold documents in the order of their ids
    used, gold_doc = compact(doc_code, len(all_ids))
    gold_ids = all_ids[used]
    query_code = codes(qrels["query_id"])[gold]
    n_queries = len(qrels["query_id"].cat.categories)
    present = np.ones(len(gold_ids), dtype=bool)
    if absent_gold:
        present = ~is_among(gold_ids, absent_gold)
    nothing = np.zeros(0, dtype=np.int64)
    coded = Coded(
        n_queries=n_queries,
        n_docs=len(gold_ids),
        corpus_size=np.broadcast_to(np.asarray(corpus_size, dtype=np.int64), n_queries),
        returned=np.zeros(n_queries, dtype=np.int64),
        entry_query=nothing,
        entry_rank=nothing,
        entry_doc=nothing,
        gold_start=np.r_[0, np.cumsum(np.bincount(query_code, minlength=n_queries))],
        gold_doc=gold_doc,
        gold_grade=relevance[gold].astype(np.int64),
        gold_present=present[gold_doc],
    )
    return coded, gold_ids


def _ranked(
    run: pd.DataFrame,
    qrels: pd.DataFrame,
    gold_ids: npt.NDArray[Any],
    depth: int | None,
    order: IntArray | None,
) -> tuple[IntArray, IntArray, IntArray]:
    """Return query, rank and gold document (-1 if it is none) of each run row within the depth."""
    query = codes(run["query_id"])
    rank = rank_in_query(query)
    doc = codes(run["doc_id"])
    if order is not None:
        doc = doc[order]
    if depth is not None:
        keep = rank <= depth
        query, rank, doc = query[keep], rank[keep], doc[keep]
    to_query = qrels["query_id"].cat.categories.get_indexer(run["query_id"].cat.categories)
    # look up only the documents that are still there, each once
    used, doc = compact(doc, len(run["doc_id"].cat.categories))
    to_gold = pd.Index(gold_ids, dtype=object).get_indexer(categories(run["doc_id"])[used])
    return to_query[query].astype(np.int64), rank, to_gold[doc].astype(np.int64)


def subset(coded: Coded, queries: IntArray) -> Coded:
    """Return the benchmark of some of the queries, as if the others had never been asked.

    Parameters
    ----------
    coded : Coded
        The whole benchmark.
    queries : ndarray
        The queries to keep, ascending. One of them at least must have a relevant document.

    Examples
    --------
    >>> from falsify_adapters.frames import as_qrels, as_run
    >>> run = as_run({"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d1": 1.0}})
    >>> part = subset(code(run, as_qrels({"q1": {"d1": 1}, "q2": {"d2": 1}}), 10), np.array([1]))
    >>> part.n_queries, part.n_docs, part.entry_doc.tolist()
    (1, 1, [])
    """
    number = np.full(coded.n_queries, -1)
    number[queries] = np.arange(len(queries))
    gold = number[coded.gold_query] >= 0
    documents, gold_doc = np.unique(coded.gold_doc[gold], return_inverse=True)
    # documents that only other queries ask for are no entries any more
    place = np.full(coded.n_docs, -1)
    place[documents] = np.arange(len(documents))
    entry = (number[coded.entry_query] >= 0) & (place[coded.entry_doc] >= 0)
    return Coded(
        n_queries=len(queries),
        n_docs=len(documents),
        corpus_size=coded.corpus_size[queries],
        returned=coded.returned[queries],
        entry_query=number[coded.entry_query[entry]],
        entry_rank=coded.entry_rank[entry],
        entry_doc=place[coded.entry_doc[entry]],
        gold_start=np.r_[0, np.cumsum(coded.gold_count[queries])],
        gold_doc=gold_doc,
        gold_grade=coded.gold_grade[gold],
        gold_present=coded.gold_present[gold],
    )


def _distinct(rows: IntArray, start: IntArray) -> tuple[IntArray, IntArray]:
    """Return the number of each list among the distinct ones (-1: empty), and their firsts.

    Lists are compared by a checksum first; then every list is compared with the first of its kind,
    so that two lists with one checksum are still told apart.
    """
    length = np.diff(start)
    filled = np.flatnonzero(length)
    label = np.full(len(length), -1, dtype=np.int64)
    if not filled.size:
        return label, filled
    key = np.add.reduceat(_checksums(rows), start[filled]) + length[filled].astype(np.uint64)
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    # number them in the order of their first appearance
    order = np.argsort(first)
    number = np.empty(len(first), dtype=np.int64)
    number[order] = np.arange(len(first))
    label[filled] = number[which]
    firsts = filled[first[order]]
    if not _as_their_firsts(rows, start, filled, firsts[label[filled]]):
        return _distinct_by_bytes(rows, start)
    return label, firsts


def _checksums(rows: IntArray) -> npt.NDArray[np.uint64]:
    """Return a number per row that looks random (the mixing step of splitmix64)."""
    mixed = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        mixed = (mixed ^ column.astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed


def _as_their_firsts(rows: IntArray, start: IntArray, lists: IntArray, firsts: IntArray) -> bool:
    """Whether each list is the same as the one that is said to be the first of its kind."""
    later = lists != firsts
    lists, firsts = lists[later], firsts[later]
    length = np.diff(start)[lists]
    if (length != np.diff(start)[firsts]).any():
        return False
    own = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    own_rows = own + np.repeat(start[lists], length)
    return bool((rows[own_rows] == rows[own + np.repeat(start[firsts], length)]).all())


def _distinct_by_bytes(rows: IntArray, start: IntArray) -> tuple[IntArray, IntArray]:
    """Do what :func:`_distinct` does, one list at a time."""
    rows = np.ascontiguousarray(rows)
    number: dict[bytes, int] = {}
    first: list[int] = []
    label = np.full(len(start) - 1, -1, dtype=np.int64)
    bounds = start.tolist()
    for i in range(len(label)):
        if bounds[i] == bounds[i + 1]:
            continue
        key = rows[bounds[i] : bounds[i + 1]].tobytes()
        known = number.setdefault(key, len(first))
        if known == len(first):
            first.append(i)
        label[i] = known
    return label, np.array(first, dtype=np.int64)


def segment_sums(values: FloatArray, owner: IntArray, n: int) -> FloatArray:
    """Return the sum of the values of each owner, shape (n,)."""
    return np.bincount(owner, weights=values, minlength=n).astype(np.float64, copy=False)


def unique_rows(*columns: IntArray | int) -> tuple[list[IntArray], IntArray]:
    """Return the distinct rows of columns of whole numbers from 0 on, and each row's number.

    A single number stands for a column of it.

    Examples
    --------
    >>> unique_rows(np.array([1, 0, 1]), np.array([2, 5, 2]))
    ([array([0, 1]), array([5, 2])], array([1, 0, 1]))
    """
    columns = np.broadcast_arrays(*columns)
    key = columns[0]
    for column in columns[1:]:
        # numbers stay small: those of the distinct rows so far, then the next column's values
        key = np.unique(key, return_inverse=True)[1] * (int(column.max(initial=0)) + 1) + column
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    return [column[first] for column in columns], which
