"""Files that hold one record per question: JSON, JSON lines, CSV or parquet, read as rows."""

from __future__ import annotations

import ast
import io
import json
import math
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from falsify_adapters.errors import InputError
from falsify_adapters.notes import some
from falsify_adapters.progress import progress
from falsify_adapters.readers.jsons import load_json
from falsify_adapters.readers.parquet import opened_parquet
from falsify_adapters.readers.source import Content, Source, label_of, open_content, open_source

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Records:
    """The rows of a file.

    Parameters
    ----------
    rows : list of mapping
        One per record; a file that is a single JSON object is one row.
    label : str
        How errors call the file.
    provenance : dict
        ``name``, ``format``, ``encoding``, ``compression``, ``sha256``, ``rows``.
    """

    rows: list[Row] = field(repr=False)
    label: str
    provenance: dict[str, Any] = field(default_factory=dict)

    def where(self, number: int) -> str:
        """Say where the row with this number (from 0) stands."""
        return f"{self.label}, record {number + 1}"

    def have(self, *keys: str) -> bool:
        """Say whether the first row has all of these keys."""
        return bool(self.rows) and all(key in self.rows[0] for key in keys)


def read_records(source: Source) -> Records:
    r"""Read a file of records.

    Parameters
    ----------
    source : str, Path or binary file
        A path, ``"-"`` for standard input, or a file opened in binary mode; plain, gzip or lz4.

    Returns
    -------
    Records

    Raises
    ------
    InputError
        If the file cannot be read, or holds no records.
    MissingExtraError
        If it needs lz4 or parquet and the extra is not installed.

    Examples
    --------
    >>> import io
    >>> read_records(io.BytesIO(b'{"gold": "a"}\n{"gold": "b"}\n')).rows
    [{'gold': 'a'}, {'gold': 'b'}]
    """
    label = label_of(source)
    stream, size, ours = open_source(source)
    try:
        with progress(f"reading {label}", size) as advance:
            content = open_content(stream, label, advance)
            form, rows = _rows(content)
    finally:
        if ours:
            stream.close()
    if not rows:
        raise InputError(f"{label} holds no records", hint="did the job that wrote it fail?")
    return Records(
        rows,
        label,
        {
            "name": content.name,
            "format": form,
            "encoding": content.encoding,
            "compression": content.compression,
            "sha256": content.sha256,
            "rows": len(rows),
        },
    )


def in_memory(rows: list[Any], label: str) -> Records:
    """Return records that came from no file, under a name for errors.

    Raises
    ------
    InputError
        If there are none, or one is no mapping.
    """
    if not rows:
        raise InputError(f"{label}: there are none")
    return Records(
        [as_object(row, f"{label}, record {n + 1}") for n, row in enumerate(rows)], label
    )


def _rows(content: Content) -> tuple[str, list[Row]]:
    if content.encoding == "binary":
        return "parquet", _parquet(content.everything(), content.label)
    if content.head.lstrip()[:1] in (b"{", b"["):
        return _json(content)
    return "csv", _csv(content.everything(), content.label)


def _json(content: Content) -> tuple[str, list[Row]]:
    text = content.everything()
    first, _, rest = text.lstrip().partition(b"\n")
    if not rest.strip() or not _parses(first):
        data = load_json(text, content.label)
        items = data if isinstance(data, list) else [data]
        return "json", [_object(item, f"{content.label}, record {n + 1}", first) for n, item in
                        enumerate(items)]  # fmt: skip
    rows = []
    for number, line in enumerate(text.split(b"\n"), start=1):
        if line.strip():
            where = f"{content.label}, line {number}"
            rows.append(_object(load_json(line, where), where, line))
    return "jsonl", rows


def _parses(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _object(item: Any, where: str, text: bytes) -> Row:
    if not isinstance(item, dict):
        raise InputError(f"{where} is not a JSON object", found=text[:60].decode(errors="replace"))
    return item


def _csv(data: bytes, label: str) -> list[Row]:
    """Read a table with a header; every cell stays text, an empty one is a missing value."""
    header = data.split(b"\n", 1)[0]
    delimiter = "\t" if b"\t" in header and b"," not in header else ","
    try:
        table = pd.read_csv(io.BytesIO(data), dtype=str, keep_default_na=False, sep=delimiter)
    except (ValueError, UnicodeDecodeError) as error:  # pandas' ParserError is a ValueError
        raise InputError(
            f"{label} is neither JSON nor a table with a header", found=str(error)[:120]
        ) from None
    rows = table.to_dict("records")
    return [{str(k): v if v != "" else None for k, v in row.items()} for row in rows]


def _parquet(data: bytes, label: str) -> list[Row]:
    with opened_parquet(data, label) as file:
        rows: list[Row] = file.read().to_pylist()
    return rows


def row_id(number: int) -> str:
    """Name the row with this number (from 0), where the tool keeps no query id.

    A bare number could be the id of a document as well, which would look like a self match.

    Examples
    --------
    >>> row_id(0)
    'row-1'
    """
    return f"row-{number + 1}"


def as_object(value: Any, where: str) -> Row:
    """Return what must be a JSON object."""
    if not isinstance(value, Mapping):
        raise InputError(f"{where} is not as it should be", found=f"{value!r:.60}, no JSON object")
    return value


def required(row: Any, key: str, where: str) -> Any:
    """Return a value that a record, or an object in it, must have."""
    row = as_object(row, where)
    if row.get(key) is None:
        raise InputError(f"{where} lacks {key!r}", found=f"the keys {some(row, 8)}")
    return row[key]


def as_list(value: Any, key: str, where: str) -> list[Any]:
    """Return a list; in a CSV cell it is written as a Python literal.

    Examples
    --------
    >>> as_list("['d1', 'd2']", "retrieved", "a.csv, record 1")
    ['d1', 'd2']
    """
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "("):
        value = _literal(value, key, where)
    if isinstance(value, (list, tuple)):
        return list(value)
    raise InputError(f"{where}: {key} is not a list", found=f"{value!r:.60}")


def _literal(text: str, key: str, where: str) -> Any:
    if _strings_without_comma(text):
        raise InputError(
            f"{where}: the list in {key} has no commas (printed from a numpy array?)",
            found=f"{text:.60}",
            hint="turn the arrays into lists before writing csv, or write parquet",
        )
    for parse in (ast.literal_eval, json.loads):
        try:
            return parse(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
    raise InputError(
        f"{where}: {key} is not a list that can be read",
        found=f"{text:.60}",
        hint="a csv cell holds a list as Python or JSON writes it",
    )


def _strings_without_comma(text: str) -> bool:
    """Python joins neighbouring texts into one, silently."""
    before = None
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.STRING and before == tokenize.STRING:
                return True
            if token.type not in (tokenize.NL, tokenize.NEWLINE):
                before = token.type
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass
    return False


def as_ids(value: Any, key: str, where: str) -> list[str]:
    """Return a list of ids as text.

    Examples
    --------
    >>> as_ids([7, "d2"], "retrieved", "record 1")
    ['7', 'd2']
    """
    return [as_id(item, key, where) for item in as_list(value, key, where)]


def as_number(value: Any, key: str, where: str) -> float:
    """Return a number, also one that is written as text; NaN is none."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isnan(number):
        raise InputError(f"{where}: {key} is not a number", found=f"{value!r:.60}")
    return number


def _is_whole(text: str) -> bool:
    """Say whether a text holds no half of a character, which nothing downstream can encode."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def as_id(value: Any, key: str, where: str) -> str:
    """Return an id as text; a number with a fraction is none."""
    if isinstance(value, str) and value and _is_whole(value):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise InputError(
        f"{where}: {key} holds an id that is neither text nor a whole number",
        found=f"{value!r:.60}",
        hint="write ids as text",
    )
