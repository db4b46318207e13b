"""Collect the rows of a file in little memory: each id once, codes for the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import numpy as np
import numpy.typing as npt
import pandas as pd

from falsify_adapters.errors import InputError
from falsify_adapters.frames import run_from_codes
from falsify_adapters.readers.lines import FloatArray, Ids, IntArray

#: Kept rows may grow by this factor before they are cut to the depth again.
GROWTH = 2
#: Fewer rows are never cut.
FIRST_CUT = 1 << 20


class Rows:
    """Rows in the order of the file, optionally only the best of each query.

    Parameters
    ----------
    depth : int, optional
        Documents to keep per query. Documents tied with the last one are kept too: which of them
        stays is decided by the ranking rule, once all rows are there.
    """

    def __init__(self, depth: int | None = None) -> None:
        self.depth = depth
        self.seen = 0
        self.queries: dict[str, int] = {}
        self._docs: dict[str, int] = {}
        self._parts: list[tuple[IntArray, IntArray, FloatArray]] = []
        self._size = 0
        self._next_cut = FIRST_CUT

    def query_codes(self, query: Ids) -> IntArray:
        """Return each row's query as a number that holds for the whole file."""
        return _interned(query.texts(), self.queries)[query.codes]

    def declare(self, queries: Iterable[str]) -> None:
        """Make queries known that may have no row."""
        _interned(list(queries), self.queries)

    def add(self, query_code: IntArray, doc: Ids, value: FloatArray) -> None:
        """Add a piece of the file."""
        self.seen += len(value)
        doc_code = doc.codes
        if self.depth is not None:
            keep = _best(query_code, value, self.depth)
            query_code, doc_code, value = query_code[keep], doc_code[keep], value[keep]
        used, position = np.unique(doc_code, return_inverse=True)
        known = _interned(doc.texts(used), self._docs)
        self._parts.append((query_code.astype(np.int32), known[position].astype(np.int32), value))
        self._size += len(value)
        if self.depth is not None and self._size > self._next_cut:
            self._cut()

    def run_frame(self, name: str, sign: float = 1.0) -> pd.DataFrame:
        """Return the rows as the common run frame, their values times `sign` as scores."""
        query_code, doc_code, value = self.arrays()
        if len(value) == 0:
            raise InputError(f"{name} is empty", hint="a run needs at least one row")
        return run_from_codes(
            list(self.queries), query_code, list(self._docs), doc_code, sign * value, name=name
        )

    def frame(self, value_name: str) -> pd.DataFrame:
        """Return the rows as a frame with categorical ids."""
        query_code, doc_code, value = self.arrays()
        return pd.DataFrame(
            {
                "query_id": _categorical(query_code, self.queries),
                "doc_id": _categorical(doc_code, self._docs),
                value_name: value,
            },
            copy=False,
        )

    def ids(self) -> Iterator[str]:
        """Return all query and document ids."""
        return chain(self.queries, self._docs)

    def arrays(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Return query codes, document codes and values of the kept rows, in one piece each."""
        if not self._parts:
            empty = np.zeros(0, dtype=np.int64)
            return empty, empty, np.zeros(0)
        query_code, doc_code, value = (
            np.concatenate(column) for column in zip(*self._parts, strict=True)
        )
        self._parts = [(query_code, doc_code, value)]
        return query_code, doc_code, value

    def _cut(self) -> None:
        """Drop the rows, and the ids, that fell below the depth."""
        assert self.depth is not None
        query_code, doc_code, value = self.arrays()
        keep = _best(query_code, value, self.depth)
        used, position = np.unique(doc_code[keep], return_inverse=True)
        texts = np.array(list(self._docs), dtype=object)[used]
        self._docs = {text: i for i, text in enumerate(texts)}
        self._parts = [(query_code[keep], position.astype(np.int32), value[keep])]
        self._size = int(keep.sum())
        self._next_cut = max(FIRST_CUT, GROWTH * self._size)


def _best(query_code: IntArray, value: FloatArray, depth: int) -> npt.NDArray[np.bool_]:
    """Mark each query's rows at or above its value at `depth`; undefined values stay marked."""
    if len(value) == 0:
        return np.zeros(0, dtype=bool)
    order = np.arange(len(value))
    same = query_code[1:] == query_code[:-1]
    ranked = (query_code[1:] > query_code[:-1]) | (same & (value[1:] <= value[:-1]))
    if not ranked.all():
        order = np.lexsort((-value, query_code))
    by_query, ordered = query_code[order], value[order]
    starts = np.flatnonzero(np.r_[True, by_query[1:] != by_query[:-1]])
    lengths = np.diff(np.r_[starts, len(ordered)])
    last = starts + np.minimum(depth, lengths) - 1
    limit = np.where(lengths > depth, ordered[last], -np.inf)
    limit[np.isnan(limit)] = -np.inf
    keep = np.empty(len(value), dtype=bool)
    keep[order] = (ordered >= np.repeat(limit, lengths)) | ~np.isfinite(ordered)
    return keep


def _interned(texts: list[str], table: dict[str, int]) -> IntArray:
    number = table.setdefault
    return np.fromiter(
        (number(text, len(table)) for text in texts), dtype=np.int64, count=len(texts)
    )


def _categorical(code: IntArray, table: dict[str, int]) -> pd.Categorical:
    return pd.Categorical.from_codes(code, pd.Index(list(table), dtype=object))
