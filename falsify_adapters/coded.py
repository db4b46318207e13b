"""Evaluations as integer arrays: what the kernels and nulls compute on.

Only documents that are relevant for some query can change a score, so the run is reduced to its
*entries*: the ranked documents that occur in any gold set.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from falsify_adapters.frames import (
    FloatArray,
    IntArray,
    categories,
    codes,
    rank_in_query,
)

BoolArray = npt.NDArray[np.bool_]


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
    n_queries, n_docs, corpus_size : int
        Evaluated queries, distinct gold documents, documents in the corpus.
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
    corpus_size: int
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
        order = np.lexsort((-self.gold_grade, self.gold_query))
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
    corpus_size: int,
    *,
    absent_gold: frozenset[str] = frozenset(),
    depth: int | None = None,
) -> Coded:
    """Turn the common frames into integer arrays.

    Parameters
    ----------
    run, qrels : DataFrame
        The common frames.
    corpus_size : int
        Documents in the corpus.
    absent_gold : frozenset of str
        Relevant documents that the corpus lacks.
    depth : int, optional
        Keep only so many documents per query.

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
    relevance = qrels["relevance"].to_numpy()
    gold = relevance > 0
    qrels_doc = codes(qrels["doc_id"])[gold]
    # number the gold documents in the order of their ids
    gold_codes, gold_doc = np.unique(qrels_doc, return_inverse=True)
    gold_ids = categories(qrels["doc_id"])[gold_codes]
    query_code = codes(qrels["query_id"])[gold]
    n_queries = len(qrels["query_id"].cat.categories)
    gold_start = np.r_[0, np.cumsum(np.bincount(query_code, minlength=n_queries))]
    present = np.ones(len(gold_ids), dtype=bool)
    if absent_gold:
        present = ~np.isin(gold_ids, np.array(sorted(absent_gold), dtype=object))

    run_query, run_rank, run_doc = _ranked(run, qrels, gold_ids, depth)
    entry = run_doc >= 0
    return Coded(
        n_queries=n_queries,
        n_docs=len(gold_ids),
        corpus_size=corpus_size,
        returned=np.bincount(run_query, minlength=n_queries),
        entry_query=run_query[entry],
        entry_rank=run_rank[entry],
        entry_doc=run_doc[entry],
        gold_start=gold_start,
        gold_doc=gold_doc.astype(np.int64),
        gold_grade=relevance[gold].astype(np.int64),
        gold_present=present[gold_doc],
    )


def _ranked(
    run: pd.DataFrame, qrels: pd.DataFrame, gold_ids: npt.NDArray[Any], depth: int | None
) -> tuple[IntArray, IntArray, IntArray]:
    """Return query, rank and gold document (-1 if it is none) of each run row within the depth."""
    query = codes(run["query_id"])
    rank = rank_in_query(query)
    doc = codes(run["doc_id"])
    if depth is not None:
        keep = rank <= depth
        query, rank, doc = query[keep], rank[keep], doc[keep]
    to_query = pd.Index(categories(qrels["query_id"])).get_indexer(categories(run["query_id"]))
    # look up only the documents that are still there, each once
    used, doc = np.unique(doc, return_inverse=True)
    to_gold = pd.Index(gold_ids).get_indexer(categories(run["doc_id"])[used])
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
        corpus_size=coded.corpus_size,
        returned=coded.returned[queries],
        entry_query=number[coded.entry_query[entry]],
        entry_rank=coded.entry_rank[entry],
        entry_doc=place[coded.entry_doc[entry]],
        gold_start=np.r_[0, np.cumsum(coded.gold_count[queries])],
        gold_doc=gold_doc,
        gold_grade=coded.gold_grade[gold],
        gold_present=coded.gold_present[gold],
    )


def with_order(run: pd.DataFrame, order: IntArray) -> pd.DataFrame:
    """Return the run with its rows in another order (ranks follow the rows)."""
    return run.iloc[order].reset_index(drop=True)


def _distinct(rows: IntArray, start: IntArray) -> tuple[IntArray, IntArray]:
    """Return the number of each list among the distinct ones (-1: empty), and their firsts."""
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


def unique_pairs(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the distinct pairs of two arrays of whole numbers from 0 on, and each row's pair.

    Examples
    --------
    >>> unique_pairs(np.array([1, 0, 1]), np.array([2, 5, 2]))
    (array([0, 1]), array([5, 2]), array([1, 0, 1]))
    """
    stride = int(second.max(initial=0)) + 1
    pairs, which = np.unique(first * stride + second, return_inverse=True)
    return pairs // stride, pairs % stride, which
