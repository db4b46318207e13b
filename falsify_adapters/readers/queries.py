"""Files about queries: their texts with other columns, and one name for each query."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from falsify_adapters.errors import InputError
from falsify_adapters.notes import some
from falsify_adapters.readers.source import Source, label_of, open_content, open_source

#: What the first column of a header is called.
ID_NAMES = frozenset({"query_id", "query-id", "query", "qid", "_id", "id"})


@dataclass(frozen=True)
class Queries:
    """The queries of a file, in its order.

    Parameters
    ----------
    name : str
        What errors and reports call the file.
    texts : dict of str to str
        Text of each query; "" where there is none.
    columns : dict of str to dict
        The other fields, those under ``metadata`` included: value of each query that has one.
    """

    name: str
    texts: dict[str, str] = field(repr=False)
    columns: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)

    def column(self, name: str) -> dict[str, str]:
        """Return one of the other fields.

        Raises
        ------
        InputError
            If no query has it.
        """
        if name not in self.columns:
            there = f"columns {some(sorted(self.columns), 8)}" if self.columns else "no columns"
            raise InputError(
                f"{self.name} has no column {name!r}",
                found=there,
                hint="give a file with query_id and name, or a field of the queries' metadata",
            )
        return self.columns[name]


def read_queries(source: Source) -> Queries:
    r"""Read queries: JSON lines as BEIR has them, or lines of query_id, tab, text.

    Parameters
    ----------
    source : str, Path or binary file
        As :func:`falsify_adapters.readers.read_run` takes it.

    Raises
    ------
    InputError
        If the file cannot be read, a line is not as it should be, or a query stands twice.

    Examples
    --------
    >>> import io
    >>> found = read_queries(
    ...     io.BytesIO(b'{"_id": "q1", "text": "cats", "metadata": {"topic": "pets"}}\n')
    ... )
    >>> found.texts, found.column("topic")
    ({'q1': 'cats'}, {'q1': 'pets'})
    """
    label = label_of(source)
    texts: dict[str, str] = {}
    columns: dict[str, dict[str, str]] = {}
    for where, line in _lines(source, label):
        query_id, text, others = (_json if line.lstrip()[:1] == "{" else _tabbed)(line, where)
        if query_id in texts:
            raise InputError(f"{where}: query {query_id!r} stands twice")
        texts[query_id] = text
        for name, value in others.items():
            columns.setdefault(name, {})[query_id] = value
    if not texts:
        raise InputError(f"{label} is empty", hint="one query per line")
    return Queries(label, texts, columns)


def read_names(source: Source) -> dict[str, str]:
    r"""Read one name for each query, such as its cluster: query_id and name, tab or comma between.

    A first line that starts with ``query_id`` (or ``query-id, qid, _id, id, query``) is a header.

    Parameters
    ----------
    source : str, Path or binary file
        As :func:`falsify_adapters.readers.read_run` takes it.

    Returns
    -------
    dict of str to str
        In the order of the file.

    Raises
    ------
    InputError
        If the file is empty, a line has not two fields, or a query has two names.

    Examples
    --------
    >>> import io
    >>> read_names(io.BytesIO(b"query_id,topic\nq1,pets\nq2,pets\n"))
    {'q1': 'pets', 'q2': 'pets'}
    """
    label = label_of(source)
    names: dict[str, str] = {}
    delimiter = None
    for number, (where, line) in enumerate(_lines(source, label)):
        delimiter = delimiter or ("\t" if "\t" in line else ",")
        try:
            fields = [part.strip() for part in next(csv.reader([line], delimiter=delimiter))]
        except csv.Error as error:  # a field of more than 128 KiB
            raise InputError(f"{where} cannot be read", found=str(error)) from None
        if number == 0 and fields[0].lower() in ID_NAMES:
            continue
        if len(fields) != 2 or not all(fields):
            raise InputError(
                f"{where} has not two fields",
                found=repr(line[:80]),
                hint="a line reads: query_id, tab or comma, name",
            )
        query_id, name = fields
        if names.setdefault(query_id, name) != name:
            raise InputError(
                f"{where}: query {query_id!r} has two names", found=f"{names[query_id]!r}, {name!r}"
            )
    if not names:
        raise InputError(f"{label} is empty", hint="one line per query: query_id and name")
    return names


def _lines(source: Source, label: str) -> Iterator[tuple[str, str]]:
    """Yield the lines that are not blank, and where each stands."""
    stream, _, ours = open_source(source)
    try:
        content = open_content(stream, label)
        if content.encoding == "binary":
            raise InputError(f"{label} is a parquet file", hint="save it as JSON lines or as text")
        number = 0
        for chunk in content.chunks():
            for line in chunk.decode("utf-8").split("\n")[:-1]:
                number += 1
                if line.strip():
                    yield f"{label}, line {number}", line
    finally:
        if ours:
            stream.close()


def _json(line: str, where: str) -> tuple[str, str, dict[str, str]]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not JSON", found=str(error)[:120]) from None
    query_id = record.get("_id", record.get("id", record.get("query_id")))
    if not isinstance(query_id, (str, int)) or isinstance(query_id, bool) or query_id == "":
        raise InputError(f"{where} has no _id", found=repr(query_id))
    text = record.get("text", "")
    if not isinstance(text, str):
        raise InputError(f"{where}: the text is no text", found=repr(text)[:80])
    others = {key: value for key, value in record.items() if key not in {*ID_NAMES, "text"}}
    metadata = others.pop("metadata", None)
    if isinstance(metadata, Mapping):
        others |= metadata
    return str(query_id), text, {name: str(v) for name, v in others.items() if _is_name(v)}


def _is_name(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and value != ""


def _tabbed(line: str, where: str) -> tuple[str, str, dict[str, str]]:
    query_id, tab, text = line.partition("\t")
    if not tab or not query_id.strip():
        raise InputError(
            f"{where} is no query",
            found=repr(line[:80]),
            hint="JSON lines with _id and text, or query_id, tab, text",
        )
    return query_id.strip(), text.strip(), {}
