"""Documents and queries in BEIR's forms: files of JSON lines, dicts, or rows of a data set."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from falsify_adapters.bm25_index import Document, fingerprint
from falsify_adapters.errors import InputError
from falsify_adapters.readers.source import open_content, open_source


class Corpus(Protocol):
    """Where a data set's texts come from; nothing is held that is not already in memory."""

    def has_documents(self) -> bool:
        """Whether the documents are at hand (a folder may hold qrels alone)."""

    def has_queries(self) -> bool:
        """Whether the queries' texts are at hand."""

    def doc_ids(self) -> Iterator[str]:
        """Yield every document's id."""

    def documents(self) -> Iterator[Document]:
        """Yield every document."""

    def queries(self) -> Iterator[tuple[str, str]]:
        """Yield every query's id and text, of all splits."""

    def fingerprint(self) -> str:
        """Return what identifies the documents: equal fingerprints, equal documents."""

    def files(self) -> Mapping[str, Path]:
        """Return the files behind "corpus" and "queries", as far as there are any."""


class FolderCorpus:
    """``corpus.jsonl`` and ``queries.jsonl`` of a folder, plain or gzip, read line by line.

    Parameters
    ----------
    folder : Path
        The data set's folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def has_documents(self) -> bool:
        """Whether the folder holds a corpus."""
        return self._find("corpus") is not None

    def has_queries(self) -> bool:
        """Whether the folder holds queries."""
        return self._find("queries") is not None

    def doc_ids(self) -> Iterator[str]:
        """Yield every document's id; texts are parsed and dropped."""
        for _, _, doc_id in self._records("corpus"):
            yield doc_id

    def documents(self) -> Iterator[Document]:
        """Yield every document."""
        for where, record, doc_id in self._records("corpus"):
            yield Document(doc_id, _text(record, "title", where), _text(record, "text", where))

    def queries(self) -> Iterator[tuple[str, str]]:
        """Yield every query."""
        for where, record, query_id in self._records("queries"):
            yield query_id, _text(record, "text", where)

    def queries_path(self) -> Path:
        """Return the queries' file."""
        return self._require("queries")

    def fingerprint(self) -> str:
        """Return a checksum of the corpus file."""
        with self._require("corpus").open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()

    def files(self) -> Mapping[str, Path]:
        """Return the files that the folder holds."""
        found = {name: self._find(name) for name in ("corpus", "queries")}
        return {name: path for name, path in found.items() if path is not None}

    def _find(self, name: str) -> Path | None:
        candidates = (self.folder / f"{name}.jsonl", self.folder / f"{name}.jsonl.gz")
        return next((path for path in candidates if path.is_file()), None)

    def _require(self, name: str) -> Path:
        path = self._find(name)
        if path is None:
            raise InputError(
                f"{self.folder.name} has no {name}.jsonl",
                found=_listing(self.folder),
                hint="BEIR's layout is corpus.jsonl, queries.jsonl and qrels/SPLIT.tsv",
            )
        return path

    def _records(self, name: str) -> Iterator[tuple[str, Mapping[str, Any], str]]:
        path = self._require(name)
        for number, line in _lines(path):
            where = f"{path.name}, line {number}"
            try:
                record = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise InputError(f"{where} is not JSON", found=str(error)[:120]) from error
            if not isinstance(record, dict):
                raise InputError(f"{where} is not a JSON object", found=line[:80].strip())
            yield where, record, _id(record, where)


class MemoryCorpus:
    """What BEIR's loaders return: dicts, or the rows of a Hugging Face data set.

    Parameters
    ----------
    corpus : mapping or iterable of mappings, optional
        ``{doc_id: {"title": ..., "text": ...}}`` or rows with ``id`` (or ``_id``), ``title`` and
        ``text``. None if there are no documents.
    queries : mapping or iterable of mappings, optional
        ``{query_id: text}`` or rows with ``id`` (or ``_id``) and ``text``.
    """

    def __init__(self, corpus: Any, queries: Any = None) -> None:
        self._corpus = corpus
        self._queries = {} if queries is None else queries

    def has_documents(self) -> bool:
        """Whether a corpus was given."""
        return self._corpus is not None

    def has_queries(self) -> bool:
        """Whether queries were given."""
        return bool(self._queries)

    def doc_ids(self) -> Iterator[str]:
        """Yield every document's id."""
        corpus = self._corpus
        if isinstance(corpus, Mapping):
            yield from (_id({"_id": doc_id}, "the corpus") for doc_id in corpus)
            return
        if hasattr(corpus, "select_columns"):  # a column store need not decode the texts
            corpus = corpus.select_columns(["_id" if "_id" in corpus.column_names else "id"])
        yield from (_id(row, "the corpus") for row in _rows(corpus, "corpus"))

    def documents(self) -> Iterator[Document]:
        """Yield every document."""
        for doc_id, record in _pairs(self._corpus, "corpus"):
            where = f"document {doc_id!r}"
            if isinstance(record, str):
                yield Document(doc_id, "", record)
            else:
                yield Document(doc_id, _text(record, "title", where), _text(record, "text", where))

    def queries(self) -> Iterator[tuple[str, str]]:
        """Yield every query."""
        for query_id, record in _pairs(self._queries, "queries"):
            text = {"text": record} if isinstance(record, str) else record
            yield query_id, _text(text, "text", f"query {query_id!r}")

    def fingerprint(self) -> str:
        """Return a checksum of ids and texts."""
        return fingerprint(self.documents())

    def files(self) -> Mapping[str, Path]:
        """Return nothing: what is in memory has no file."""
        return {}


def _pairs(source: Any, name: str) -> Iterator[tuple[str, Any]]:
    if isinstance(source, Mapping):
        for key, value in source.items():
            yield _id({"_id": key}, f"the {name}"), value
    else:
        for row in _rows(source, name):
            yield _id(row, f"the {name}"), row


def _rows(source: Any, name: str) -> Iterator[Mapping[str, Any]]:
    if not isinstance(source, Iterable) or isinstance(source, (str, bytes)):
        raise InputError(
            f"the {name} have a form that is not understood",
            found=type(source).__name__,
            hint="give what BEIR's GenericDataLoader or HFDataLoader returns",
        )
    for row in source:
        if not isinstance(row, Mapping):
            raise InputError(f"the {name} have a row that is not a mapping", found=repr(row)[:80])
        yield row


def _id(record: Mapping[str, Any], where: str) -> str:
    value = record.get("_id", record.get("id"))
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        raise InputError(f"{where} has no _id", found=repr(value))
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"{where}: _id holds half a character", found=ascii(value)) from None
    return value


def _text(record: Mapping[str, Any], field: str, where: str) -> str:
    value = record.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InputError(f"{where}: {field} is not text", found=repr(value)[:80])
    return value


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the non-blank lines of a text file, plain or compressed, with their numbers."""
    stream, _, _ = open_source(path)
    with stream:
        number = 0
        for chunk in open_content(stream, path.name).chunks():
            for raw in chunk.split(b"\n")[:-1]:
                number += 1
                if raw and not raw.isspace():
                    yield number, _decoded(raw, f"{path.name}, line {number}")


def _decoded(raw: bytes, where: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{where} is not valid UTF-8", found=str(error)) from error


def _listing(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir())
    return ", ".join(names[:8]) + (" ..." if len(names) > 8 else "") if names else "an empty folder"
