"""Tied scores: how many queries have them, and the rankings in which they fall best or worst."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import pandas as pd

from falsify_adapters.frames import FloatArray, IntArray, codes, rank_in_query


def tied_queries(run: pd.DataFrame, depth: int | None) -> int:
    """Count the queries in which documents with equal scores reach into the cutoff.

    Examples
    --------
    >>> from falsify_adapters.frames import as_run
    >>> tied_queries(as_run({"q1": {"d1": 1.0, "d2": 0.5, "d3": 0.5}, "q2": {"d1": 1.0}}), 2)
    1
    >>> tied_queries(as_run({"q1": {"d1": 1.0, "d2": 0.5, "d3": 0.5}}), 1)
    0
    """
    query, score, rank = _columns(run)
    tied = (query[1:] == query[:-1]) & (score[1:] == score[:-1])
    if depth is not None:
        tied &= rank[:-1] <= depth
    return len(np.unique(query[1:][tied]))


def reordered(
    run: pd.DataFrame,
    qrels: pd.DataFrame,
    towards: Literal["best", "worst"],
    gain: Callable[[IntArray], FloatArray] | None = None,
) -> pd.DataFrame:
    """Return the run with each group of ties in the best or the worst order for the system.

    The document that is worth more first is best for every measure that grows when such a document
    moves up, and that order is the worst when turned round.

    Parameters
    ----------
    run, qrels : DataFrame
        The common frames.
    towards : {"best", "worst"}
        Which order.
    gain : callable, optional
        What a document of each grade is worth; by default its grade.
    """
    query, score, _ = _columns(run)
    grade = _own_grades(run, qrels)
    worth = gain(grade) if gain is not None else grade.astype(np.float64)
    order = np.lexsort((-worth if towards == "best" else worth, -score, query))
    return run.iloc[order].reset_index(drop=True)


def _columns(run: pd.DataFrame) -> tuple[IntArray, FloatArray, IntArray]:
    query = codes(run["query_id"])
    return query, run["score"].to_numpy(), rank_in_query(query)


def _own_grades(run: pd.DataFrame, qrels: pd.DataFrame) -> IntArray:
    """Return the grade of each run row for its own query, 0 if it is not judged."""
    to_query = qrels["query_id"].cat.categories.get_indexer(run["query_id"].cat.categories)
    to_doc = qrels["doc_id"].cat.categories.get_indexer(run["doc_id"].cat.categories)
    n_docs = len(qrels["doc_id"].cat.categories)
    key = codes(qrels["query_id"]) * n_docs + codes(qrels["doc_id"])  # ascending
    doc = to_doc[codes(run["doc_id"])]
    wanted = to_query[codes(run["query_id"])] * n_docs + doc
    place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    judged = (key[place] == wanted) & (doc >= 0)
    return np.where(judged, np.maximum(qrels["relevance"].to_numpy()[place], 0), 0)
