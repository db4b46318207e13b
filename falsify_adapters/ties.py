"""Tied scores: how many queries have them, and the rankings in which they fall best or worst."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import pandas as pd

from falsify_adapters.frames import (
    FloatArray,
    IntArray,
    codes,
    judgement_rows,
    places,
    rank_in_query,
)


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


def tie_orders(
    run: pd.DataFrame,
    qrels: pd.DataFrame,
    gain: Callable[[IntArray], FloatArray] | None = None,
) -> dict[Literal["worst", "best"], IntArray]:
    """Return the rows of the run with each group of ties in the worst and in the best order.

    The document that is worth more first is best for every measure that grows when such a document
    moves up, and that order is the worst when turned round.

    Parameters
    ----------
    run, qrels : DataFrame
        The common frames.
    gain : callable, optional
        What a document of each grade is worth; by default its grade.

    Returns
    -------
    dict of str to ndarray, shape (n_rows,)
        Row numbers of `run`, by whether the order is best or worst for the system.

    Examples
    --------
    >>> from falsify_adapters.frames import as_qrels, as_run
    >>> run = as_run({"q1": {"d1": 2.0, "d2": 1.0, "d3": 1.0}})
    >>> orders = tie_orders(run, as_qrels({"q1": {"d2": 1}}))
    >>> run["doc_id"].tolist(), orders["best"].tolist(), orders["worst"].tolist()
    (['d1', 'd3', 'd2'], [0, 2, 1], [0, 1, 2])
    """
    query, score, _ = _columns(run)
    new_group = np.r_[True, (query[1:] != query[:-1]) | (score[1:] != score[:-1])][: len(query)]
    tied = np.flatnonzero(~new_group | np.r_[~new_group[1:], False])
    grade = _own_grades(run, qrels, tied)
    worth = gain(grade) if gain is not None else grade.astype(np.float64)
    group = np.cumsum(new_group)[tied]
    worst, best = np.arange(len(query)), np.arange(len(query))
    worst[tied] = tied[np.lexsort((worth, group))]
    best[tied] = tied[np.lexsort((-worth, group))]
    return {"worst": worst, "best": best}


def _columns(run: pd.DataFrame) -> tuple[IntArray, FloatArray, IntArray]:
    query = codes(run["query_id"])
    return query, run["score"].to_numpy(), rank_in_query(query)


def _own_grades(run: pd.DataFrame, qrels: pd.DataFrame, rows: IntArray) -> IntArray:
    """Return the grade of some rows of the run for their own query, 0 if they are not judged."""
    query = places(run["query_id"], qrels["query_id"], rows)
    row = judgement_rows(query, places(run["doc_id"], qrels["doc_id"], rows), qrels)
    return np.where(row >= 0, np.maximum(qrels["relevance"].to_numpy()[row], 0), 0)
