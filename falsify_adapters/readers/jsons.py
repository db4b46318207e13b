"""Runs and qrels in JSON: a dict of dict, a list of rows, or JSON lines."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from falsify_adapters.errors import InputError
from falsify_adapters.readers.layout import NUMBER, Kind, header_columns

#: (query id, document id, value) of each row, and queries that may have no row.
Pair = tuple[str, str, float]

#: What BEIR's save_results writes: scores of measures, not rankings.
_AGGREGATES = {"ndcg", "map", "recall", "precision"}


class JsonReader:
    """Turns JSON values into rows.

    Parameters
    ----------
    kind : {"run", "qrels"}
        What is read.
    label : str
        Name of the source, for errors.
    declare : callable
        Told each query id, also of queries without rows.
    """

    def __init__(self, kind: Kind, label: str, declare: Callable[[str], object]) -> None:
        self.kind = kind
        self.label = label
        self.declare = declare

    def whole(self, text: bytes) -> Iterator[Pair]:
        """Yield the rows of a JSON document."""
        data = load_json(text, self.label)
        if isinstance(data, list):
            for number, item in enumerate(data, start=1):
                yield from self._object(item, f"{self.label}, entry {number}")
        else:
            yield from self._object(data, self.label)

    def lines(self, chunk: bytes, first: int) -> Iterator[Pair]:
        """Yield the rows of a piece of JSON lines whose first line has number `first`."""
        for number, line in enumerate(chunk.removesuffix(b"\n").split(b"\n"), start=first):
            if line.strip():
                where = f"{self.label}, line {number}"
                yield from self._object(load_json(line, where), where)

    def _object(self, item: Any, where: str) -> Iterator[Pair]:
        if not isinstance(item, dict):
            raise InputError(
                f"{where} is not a JSON object",
                found=type(item).__name__,
                hint="a run is {query: {document: score}}, or one object per line",
            )
        names = list(item)
        at = header_columns(names, self.kind) or self._results_columns(names)
        if at is not None and not isinstance(item[names[at["query"]]], dict):
            yield from self._row(item, names, at, where)
            return
        if at is not None and all(_is_numbered(item[name]) for name in names):
            raise InputError(
                f"{where} holds a table column by column",
                hint="write it row by row: to_json(orient='records', lines=True) in pandas",
            )
        yield from self._dict_of_dict(item, where)

    def _dict_of_dict(self, item: dict[str, Any], where: str) -> Iterator[Pair]:
        self._refuse_other_shapes(item, where)
        for query, documents in item.items():
            if not isinstance(documents, dict):
                raise InputError(
                    f"{where} is not a dict of dict",
                    found=f"{type(documents).__name__} under {query[:80]!r}",
                    hint="the form is {query: {document: value}}",
                )
            self.declare(query)
            for doc, value in documents.items():
                yield query, doc, self._value(value, query, doc, where)

    def _refuse_other_shapes(self, item: dict[str, Any], where: str) -> None:
        if any(_depth(part) > 1 for part in item.values()):
            raise InputError(
                f"{where} holds several subsets or splits, as MTEB writes them",
                found=f"the keys {', '.join(list(item)[:5])[:80]}",
                hint="use the MTEB command, or take one subset and split out of it",
            )
        if set(item) >= _AGGREGATES:
            raise InputError(
                f"{where} holds scores of measures, not rankings",
                found=f"the keys {', '.join(item)}",
                hint="give the results dict that the retrieval returned",
            )

    def _results_columns(self, names: list[str]) -> dict[str, int] | None:
        """Find the query of a sentence-transformers line, whose documents are a list."""
        if "results" not in names:
            return None
        found = header_columns([*names, "doc_id"], self.kind)
        return None if found is None else {"query": found["query"]}

    def _row(
        self, item: dict[str, Any], names: list[str], at: dict[str, int], where: str
    ) -> Iterator[Pair]:
        query = self._id(item[names[at["query"]]], "query", where)
        self.declare(query)
        if "doc" not in at:
            yield from self._results(item["results"], query, where)
            return
        if "value" not in at:
            raise InputError(
                f"{where} has no score or grade", found=f"the keys {', '.join(names)[:80]}"
            )
        doc = self._id(item[names[at["doc"]]], "document", where)
        yield query, doc, self._value(item[names[at["value"]]], query, doc, where)

    def _results(self, results: Any, query: str, where: str) -> Iterator[Pair]:
        if not isinstance(results, list):
            raise InputError(f"{where}: results is not a list", found=type(results).__name__)
        for entry in results:
            names = list(entry) if isinstance(entry, dict) else []
            at = header_columns(["query_id", *names], self.kind)
            if at is None or "value" not in at:
                raise InputError(
                    f"{where} has a result without corpus_id or score", found=repr(entry)[:80]
                )
            doc = self._id(entry[names[at["doc"] - 1]], "document", where)
            yield query, doc, self._value(entry[names[at["value"] - 1]], query, doc, where)

    def _id(self, value: Any, role: str, where: str) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        raise InputError(
            f"{where} has a {role} id that is neither text nor a whole number",
            found=f"{value!r:.80}",
            hint="write ids as text",
        )

    def _value(self, value: Any, query: str, doc: str, where: str) -> float:
        try:
            if isinstance(value, str) and NUMBER.fullmatch(value.strip()):
                return float(value)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                return float(value)
        except OverflowError:
            return math.inf
        raise InputError(
            f"{where} has a score or grade that is not a number",
            found=f"{value!r:.40} for query {query[:40]!r}, document {doc[:40]!r}",
        )


def load_json(text: bytes, where: str) -> Any:
    """Parse JSON; refuse what is cut, badly encoded, or has a key twice."""
    try:
        return json.loads(text.decode(), object_pairs_hook=_unique)
    except _RepeatedKeyError as error:
        raise InputError(
            f"{where} has the key {str(error)!r} twice in one object",
            hint="JSON readers keep one of the two and drop the other: repair the file",
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{where} is not valid UTF-8", found=str(error)[:120], hint="save it as UTF-8"
        ) from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"{where} is not valid JSON",
            found=f"{error.msg} (line {error.lineno}, column {error.colno})",
            hint="was the file cut?",
        ) from None
    except (ValueError, RecursionError) as error:  # thousands of digits, or of brackets
        raise InputError(f"{where} is not valid JSON", found=str(error)[:120]) from None


class _RepeatedKeyError(Exception):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise _RepeatedKeyError(counts.most_common(1)[0][0])
    return table


def _depth(item: Any) -> int:
    """Return how deep the dicts go, looking at the first entry of each."""
    depth = 0
    while isinstance(item, dict):
        depth += 1
        item = next(iter(item.values()), None)
    return depth


def _is_numbered(column: Any) -> bool:
    """Tell a column of a table, as pandas writes it, from the documents of a query."""
    if not isinstance(column, dict) or not column:
        return False
    return list(column) == [str(row) for row in range(len(column))]
