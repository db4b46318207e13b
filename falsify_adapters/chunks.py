"""Runs of chunks against judgements of documents: the best chunk stands for its document."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

from falsify_adapters.errors import UsageError
from falsify_adapters.frames import as_run, categories, codes
from falsify_adapters.notes import some


def best_chunks(run: Any, pattern: str) -> pd.DataFrame:
    r"""Rank documents by the best of their chunks.

    Parameters
    ----------
    run : DataFrame, mapping, or iterable of namedtuples
        A run of chunks, as :func:`falsify_adapters.frames.as_run` takes it.
    pattern : str
        Regular expression for the part of a chunk's id that is not the document's.

    Returns
    -------
    DataFrame
        The common run frame, one row per query and document.

    Raises
    ------
    UsageError
        If the pattern is no regular expression, fits no id, or leaves nothing of an id.

    Examples
    --------
    >>> best_chunks({"q1": {"d1#0": 0.9, "d2#7": 0.8, "d1#4": 0.7}}, r"#\d+$")
      query_id doc_id  score
    0       q1     d1    0.9
    1       q1     d2    0.8
    """
    frame = as_run(run)
    compiled = _compiled(pattern)
    chunk_ids = categories(frame["doc_id"])
    doc_ids = [compiled.sub("", chunk_id) for chunk_id in chunk_ids]
    if not all(doc_ids):
        raise UsageError(
            f"the chunk pattern {pattern!r} leaves nothing of an id",
            found=chunk_ids[doc_ids.index("")],
        )
    if doc_ids == list(chunk_ids):
        raise UsageError(
            f"the chunk pattern {pattern!r} fits no document id of the run",
            found=f"documents {some(chunk_ids)}",
        )
    number, names = pd.factorize(pd.Series(doc_ids, dtype=object))
    document = pd.Categorical.from_codes(number[codes(frame["doc_id"])], pd.Index(names))
    # rows stand in rank order, so the first of a document is its best
    return as_run(frame.assign(doc_id=document).drop_duplicates(["query_id", "doc_id"]))


def best_grades(gold: Mapping[str, Mapping[str, Any]], pattern: str) -> dict[str, dict[str, Any]]:
    r"""Give each document the highest grade of its chunks.

    Parameters
    ----------
    gold : mapping of str to mapping of str to number
        Grades by query and chunk or document; ids that the pattern does not fit are documents.
    pattern : str
        As for :func:`best_chunks`.

    Examples
    --------
    >>> best_grades({"q1": {"d1#0": 1, "d1#4": 3, "d2": 1}}, r"#\d+$")
    {'q1': {'d1': 3, 'd2': 1}}
    """
    compiled = _compiled(pattern)
    grades: dict[str, dict[str, Any]] = {}
    for query, documents in gold.items():
        best = grades[query] = {}
        for chunk_id, grade in documents.items():
            doc_id = compiled.sub("", chunk_id)
            best[doc_id] = max(best.get(doc_id, grade), grade)
    return grades


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(f"{pattern!r} is not a regular expression", found=str(error)) from None
