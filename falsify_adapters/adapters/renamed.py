"""Frames with other column names than ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from falsify_adapters.errors import InputError
from falsify_adapters.frames import FloatArray
from falsify_adapters.notes import Note, some
from falsify_adapters.readers.ranks import RankCheck, judge


def renamed(frame: pd.DataFrame, columns: Mapping[str, str], name: str) -> pd.DataFrame:
    """Return some columns of a frame under our names.

    Parameters
    ----------
    frame : DataFrame
        Left unchanged; an index that holds a column is turned back into one.
    columns : mapping of str to str
        Its column for each of ours, like ``{"doc_id": "docno"}``.
    name : str
        How errors call the frame.

    Raises
    ------
    InputError
        If it lacks a column.

    Examples
    --------
    >>> theirs = pd.DataFrame({"qid": ["1"], "docno": ["d1"], "score": [0.5], "docid": [0]})
    >>> renamed(theirs, {"query_id": "qid", "doc_id": "docno", "score": "score"}, "run")
      query_id doc_id  score
    0        1     d1    0.5
    """
    if any(column in frame.index.names for column in columns.values()):
        frame = frame.reset_index()
    missing = [column for column in columns.values() if column not in frame.columns]
    if missing:
        raise InputError(
            f"{name} frame lacks the column {', '.join(missing)}",
            found=f"columns {some(frame.columns, 8)}",
            hint="say which columns hold query, document and value",
        )
    repeated = [column for column in columns.values() if (frame.columns == column).sum() > 1]
    if repeated:
        raise InputError(
            f"{name} frame has the column {', '.join(repeated)} more than once",
            found=f"columns {some(frame.columns, 8)}",
            hint="keep one of each",
        )
    return pd.DataFrame({ours: frame[theirs].to_numpy() for ours, theirs in columns.items()})


def check_ranks(query_ids: Any, ranks: Any, scores: Any, name: str, notes: list[Note]) -> None:
    """Refuse a frame whose scores run against its ranks (distances?); note what is less.

    Parameters
    ----------
    query_ids, ranks, scores : array-like, shape (n_rows,)
        Columns of the frame.
    name : str
        How the error calls the frame.
    notes : list of Note
        Collects the note.

    Raises
    ------
    ScoreOrderError
        If they do so in most queries.
    """
    query_code = pd.factorize(pd.Series(query_ids))[0].astype(np.int64)
    check = RankCheck()
    check.add(query_code, _numbers(ranks, "rank", name), _numbers(scores, "score", name))
    judge(check.result(), name, score_order=None, notes=notes)


def _numbers(column: Any, what: str, name: str) -> FloatArray:
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} has a {what} that is no number", found=str(error)[:80]) from None
