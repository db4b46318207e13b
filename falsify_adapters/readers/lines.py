"""From lines of text to columns: a fast way for regular pieces, a careful way for the others.

The fast way finds all fields of a piece at once with numpy and is only taken where every line has
the same, expected form. Whatever it does not like goes the careful way, line by line, which
decides and names the line. Both give the same columns.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from falsify_adapters.errors import InputError
from falsify_adapters.readers.layout import INTEGER, NUMBER, Layout

#: Ids up to this many bytes are compared as machine words, longer ones as Python text.
WORD_BYTES = 128

_NUMBER_BYTES = np.zeros(256, dtype=bool)
_NUMBER_BYTES[list(b"0123456789+-.eE\0")] = True

Bytes = npt.NDArray[np.uint8]
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Ids:
    """A column of ids: the distinct ones, and each row's position among them.

    The distinct ones are text, or rows of UTF-8 bytes filled up with NUL: most ids of a deep run
    are never needed as text.
    """

    distinct: list[str] | Bytes
    codes: IntArray

    def texts(self, positions: IntArray | None = None) -> list[str]:
        """Return the distinct ids as text, or those at some positions."""
        if isinstance(self.distinct, list):
            if positions is None:
                return self.distinct
            return [self.distinct[position] for position in positions.tolist()]
        rows = self.distinct if positions is None else self.distinct[positions]
        if len(rows) == 0:
            return []
        # ids hold no line end: decoding all at once is several times faster
        return b"\n".join(rows.view(f"S{rows.shape[1]}").ravel().tolist()).decode().split("\n")


@dataclass(frozen=True)
class Columns:
    """The rows of one piece of a file, in the order of the file."""

    query: Ids
    doc: Ids
    value: FloatArray | None
    rank: FloatArray | None

    def __len__(self) -> int:
        return len(self.query.codes)


class _NotRegularError(Exception):
    """The fast way does not apply; the careful way decides."""


def columns(chunk: bytes, layout: Layout, label: str, line: int) -> Columns:
    """Return the columns of a piece of whole lines.

    Parameters
    ----------
    chunk : bytes
        UTF-8 text that ends with a line end.
    layout : Layout
        How the lines are built.
    label : str
        Name of the source, for errors.
    line : int
        Number of the first line, counted from 1.
    """
    try:
        return fast_columns(chunk, layout)
    except _NotRegularError:
        return careful_columns(chunk, layout, label, line)


def careful_columns(chunk: bytes, layout: Layout, label: str, line: int) -> Columns:
    """Read line by line; refuse the first line that is not as it should be."""
    queries: list[str] = []
    docs: list[str] = []
    values: list[float] = []
    ranks: list[float] = []
    at = layout.columns
    for number, fields in _split_lines(chunk, layout, label, line):
        where = f"{label}, line {number}"
        query, doc = fields[at["query"]], fields[at["doc"]]
        if not query or not doc:
            raise InputError(
                f"{where} has an empty {'query' if not query else 'document'} id",
                found=layout.delimiter.join(fields)[:80],
            )
        queries.append(query)
        docs.append(doc)
        if "value" in at:
            values.append(_number(fields[at["value"]], where, number, "value", layout))
        if "rank" in at:
            ranks.append(_number(fields[at["rank"]], where, number, "rank", layout))
    return Columns(
        _factorized(queries),
        _factorized(docs),
        np.array(values, dtype=np.float64) if "value" in at else None,
        np.array(ranks, dtype=np.float64) if "rank" in at else None,
    )


def split(line: str, layout: Layout) -> list[str]:
    """Return the fields of one line; ValueError if its quotes do not fit."""
    if layout.quoted and '"' in line:
        try:
            rows = list(csv.reader([line], delimiter=layout.delimiter, strict=True))
        except csv.Error as error:
            raise ValueError(str(error)) from None
        if len(rows) != 1:
            raise ValueError("a quoted field runs over the end of the line")
        return rows[0]
    if layout.delimiter == " ":
        return [field for field in line.replace("\t", " ").split(" ") if field]
    return line.split(layout.delimiter)


def _split_lines(
    chunk: bytes, layout: Layout, label: str, first: int
) -> Iterator[tuple[int, list[str]]]:
    for number, raw in enumerate(chunk.removesuffix(b"\n").split(b"\n"), start=first):
        where = f"{label}, line {number}"
        try:
            line = raw.decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"{where} is not valid UTF-8",
                found=f"byte {raw[error.start]:#04x} after {raw[: error.start][-20:]!r}",
                hint="save the file as UTF-8 (was it Latin-1?)",
            ) from None
        if "\r" in line:
            raise InputError(
                f"{where} holds a carriage return",
                found=repr(line[:80]),
                hint="lines end in a line feed, or in carriage return and line feed",
            )
        if not line.strip(" \t"):
            continue
        try:
            fields = split(line, layout)
        except ValueError as error:
            raise InputError(f"{where} has quotes that do not match", found=str(error)) from None
        yield number, _of_length(fields, layout, where)


def _of_length(fields: list[str], layout: Layout, where: str) -> list[str]:
    n = layout.n_fields
    if len(fields) == n:
        return fields
    if len(fields) > n and layout.tag_runs_on and _is_tag(fields, layout):
        return fields[:n]
    separated = {"\t": "tabs", ",": "commas", " ": "blanks"}[layout.delimiter]
    hint = f"fields are separated by {separated}"
    if layout.delimiter == " " and len(fields) > n:
        hint += "; if ids hold blanks, separate the fields by tabs"
    if fields[0].startswith("#"):
        hint += "; comments may only stand at the top of the file"
    raise InputError(
        f"{where} has {len(fields)} fields where {n} are expected",
        found=" ".join(fields)[:80],
        hint=hint,
    )


def _is_tag(fields: list[str], layout: Layout) -> bool:
    """Tell a run tag with blanks in it from a document id with blanks, which shifts the fields."""
    if not INTEGER.fullmatch(fields[3]) or not NUMBER.fullmatch(fields[4]):
        return False
    shifted = INTEGER.fullmatch(fields[-3]) and NUMBER.fullmatch(fields[-2])
    return layout.delimiter == "\t" or not shifted


def _number(text: str, where: str, line: int, role: str, layout: Layout) -> float:
    text = text.strip()
    if NUMBER.fullmatch(text):
        return float(text)
    hint = None
    if role == "rank":
        hint = "the fourth field of a TREC run is the rank" if layout.name == "trec" else None
    elif text.count(",") == 1 and NUMBER.fullmatch(text.replace(",", ".")):
        hint = "write decimals with a point"
    elif line == 1 and not layout.header:
        hint = "if this is a header, name the columns query-id, corpus-id and score"
    what = "rank" if role == "rank" else "score or grade"
    raise InputError(
        f"{where}: {text[:40]!r} is not a number", found=f"in place of a {what}", hint=hint
    )


def fast_columns(chunk: bytes, layout: Layout) -> Columns:
    """Read a piece in which every line has the same, expected form."""
    if (layout.quoted and b'"' in chunk) or b"\r" in chunk or not chunk:
        raise _NotRegularError
    text = np.frombuffer(chunk, dtype=np.uint8)
    starts, ends = _fields(text, layout)
    if not chunk.isascii():
        try:
            chunk.decode()
        except UnicodeDecodeError:
            raise _NotRegularError from None
    # room behind the last field, so that a whole word can be read at each start
    text = np.concatenate([text, np.zeros(WORD_BYTES, dtype=np.uint8)])
    at = layout.columns

    def field(role: str) -> tuple[IntArray, IntArray]:
        return starts[:, at[role]], ends[:, at[role]]

    return Columns(
        _ids(text, *field("query")),
        _ids(text, *field("doc")),
        _floats(text, *field("value")) if "value" in at else None,
        _floats(text, *field("rank")) if "rank" in at else None,
    )


def _fields(text: Bytes, layout: Layout) -> tuple[IntArray, IntArray]:
    """Return start and end of each field, one row per line."""
    new_line = text == 10
    if layout.delimiter == " ":
        gap = (text == 32) | (text == 9) | new_line
        edges = np.flatnonzero(gap[1:] != gap[:-1]) + 1
        if not gap[0]:
            edges = np.concatenate([[0], edges])
        starts, ends = edges[0::2], edges[1::2]
    else:
        stops = np.flatnonzero((text == ord(layout.delimiter)) | new_line)
        starts, ends = np.concatenate([[0], stops[:-1] + 1]), stops
    line_ends = np.flatnonzero(new_line)
    # fields that begin before each line end, and so in each line
    before = np.searchsorted(starts, line_ends, side="right" if layout.delimiter != " " else "left")
    if len(starts) != len(line_ends) * layout.n_fields or not np.array_equal(
        before, layout.n_fields * np.arange(1, len(line_ends) + 1)
    ):
        raise _NotRegularError
    shape = (-1, layout.n_fields)
    return starts.reshape(shape), ends.reshape(shape)


def _matrix(text: Bytes, starts: IntArray, ends: IntArray) -> Bytes:
    """Return one row of bytes per field, filled up with NUL (which no text holds)."""
    lengths = ends - starts
    longest = int(lengths.max())
    if longest > WORD_BYTES or int(lengths.min()) == 0:
        raise _NotRegularError
    width = -(-longest // 8) * 8
    rows = np.lib.stride_tricks.sliding_window_view(text, width)[starts]
    rows[np.arange(width) >= lengths[:, None]] = 0
    return rows


def _ids(text: Bytes, starts: IntArray, ends: IntArray) -> Ids:
    rows = _matrix(text, starts, ends)
    words = rows.view(np.uint64)
    key = words[:, 0]
    for column in range(1, words.shape[1]):
        key = (key ^ (key >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + words[:, column]
    codes, distinct = pd.factorize(key)
    codes = codes.astype(np.int64)
    first = np.empty(len(distinct), dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    if words.shape[1] > 1 and not np.array_equal(words[first][codes], words):
        raise _NotRegularError  # two ids with one key: once in 10^13 pairs
    return Ids(rows[first], codes)


def _floats(text: Bytes, starts: IntArray, ends: IntArray) -> FloatArray:
    rows = _matrix(text, starts, ends)
    if not _NUMBER_BYTES[rows].all():
        raise _NotRegularError
    width = rows.shape[1]
    if width == 8 and rows.max() <= ord("9") and not (rows[rows != 0] < ord("0")).any():
        return _integers(rows)
    try:
        return rows.view(f"S{width}").ravel().astype(np.float64)
    except ValueError:
        raise _NotRegularError from None


def _integers(rows: Bytes) -> FloatArray:
    """Read columns of plain digits, such as ranks, several times faster than numpy does."""
    value = np.zeros(len(rows), dtype=np.int64)
    for column in range(rows.shape[1]):
        digit = rows[:, column]
        value = np.where(digit != 0, value * 10 + digit - 48, value)
    return value.astype(np.float64)


def _factorized(texts: list[str]) -> Ids:
    codes, distinct = pd.factorize(np.array(texts, dtype=object))
    return Ids([str(text) for text in distinct], codes.astype(np.int64))
