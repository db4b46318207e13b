"""Runs of chunks against judgements of documents: the best chunk stands for its document."""

from __future__ import annotations

import re
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
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"{pattern!r} is not a regular expression", found=str(error)) from None
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
