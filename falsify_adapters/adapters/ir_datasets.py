"""ir_datasets: judgements, corpus size and query texts by a data set's id.

Nothing here imports ir_datasets before a data set is asked for.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from falsify_adapters.adapters.files import read_run_beside
from falsify_adapters.errors import FalsifyError, InputError, MissingExtraError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import as_qrels
from falsify_adapters.notes import Note, some
from falsify_adapters.provenance import frame_sha256
from falsify_adapters.readers import QrelsFile
from falsify_adapters.readers.queries import Queries

#: What says that a name is a data set's id and no file.
PREFIX = "irds:"
_ID = re.compile(r"[a-z0-9][\w.+-]*(/[\w.+-]+)*")
_ENDINGS = (".txt", ".tsv", ".csv", ".json", ".jsonl", ".trec", ".qrels", ".gz", ".lz4", ".parquet")
#: Fields of judgements about less than a document; a document then has several grades.
PARTS = ("subtopic_id", "start")


@dataclass(frozen=True, eq=False)
class Collection:
    """A data set of ir_datasets; what it holds is read when it is asked for.

    Parameters
    ----------
    name : str
        The id, such as ``beir/nfcorpus/test``.
    dataset : ir_datasets.Dataset
        What ``ir_datasets.load`` returned.
    """

    name: str
    dataset: Any = field(repr=False)

    @cached_property
    def judged(self) -> QrelsFile:
        """The judgements, as if they had been read from a file.

        Raises
        ------
        InputError
            If the data set has none, has them for parts of documents, or cannot be read.
        """
        if not self.dataset.has_qrels():
            below = [name for name in _ids() if name.startswith(f"{self.name}/")]
            raise InputError(
                f"{PREFIX}{self.name} has no judgements",
                found=f"{some(below, 6)} below it" if below else None,
                hint="name one of its splits" if below else "give the qrels as a file",
            )
        self._refuse_parts()
        with _reading(self.name, "judgements", "give qrels as a file"):
            rows = [(one.query_id, one.doc_id, one.relevance) for one in self.dataset.qrels_iter()]
        notes: list[Note] = []
        table = pd.DataFrame(rows, columns=["query_id", "doc_id", "relevance"])
        frame = as_qrels(table, notes=notes, name=f"{PREFIX}{self.name}")
        provenance = {
            "name": self.name,
            "format": "ir_datasets",
            "version": version("ir-datasets"),
            "sha256": frame_sha256(frame),
            "rows": len(rows),
            "rows_kept": len(frame),
        }
        order = tuple(dict.fromkeys(query_id for query_id, _, _ in rows))
        return QrelsFile(frame, tuple(notes), provenance, order)

    def _refuse_parts(self) -> None:
        fields = getattr(self.dataset.qrels_cls(), "_fields", ())
        if any(name in fields for name in PARTS) or "relevance" not in fields:
            raise InputError(
                f"the judgements of {PREFIX}{self.name} are not one grade for each document",
                found=f"the fields {some(fields, 8)}",
                hint="make qrels of them (query_id, doc_id, relevance) and give the file",
            )

    @cached_property
    def corpus_size(self) -> int | None:
        """Number of documents, as ir_datasets states it, else counted; None if it has no corpus.

        Raises
        ------
        InputError
            If they must be counted and cannot be read.
        """
        if not self.dataset.has_docs():
            return None
        stated = self.dataset.docs_metadata().get("count") if self._has_metadata else None
        if stated is not None:
            return int(stated)
        with _reading(self.name, "documents", "give the number of documents"):
            return sum(1 for _ in self.dataset.docs_iter())

    @property
    def _has_metadata(self) -> bool:
        # only data sets in ir_datasets' registry have it
        return hasattr(self.dataset, "docs_metadata")

    @cached_property
    def queries(self) -> Queries:
        """Text and other fields of the queries.

        Raises
        ------
        InputError
            If the data set has no queries, or they cannot be read.
        """
        if not self.dataset.has_queries():
            raise InputError(f"{PREFIX}{self.name} has no queries", hint="give --queries FILE")
        texts: dict[str, str] = {}
        columns: dict[str, dict[str, str]] = {}
        with _reading(self.name, "queries", "give --queries FILE"):
            for query in self.dataset.queries_iter():
                fields = query._asdict()
                query_id = fields.pop("query_id")
                texts[query_id] = _text(query, fields)
                for name, value in fields.items():
                    if isinstance(value, (str, int)):
                        columns.setdefault(name, {})[query_id] = str(value)
        return Queries(f"{PREFIX}{self.name}", texts, columns)

    def evaluate(self, run: Any, **joining: Any) -> Evaluation:
        """Join a run to the data set.

        Parameters
        ----------
        run : path, DataFrame, mapping, or iterable of namedtuples
            A run file or a run.
        **joining
            Keywords of :meth:`Evaluation.create`; the corpus size is the data set's, unless
            `corpus_size` or `corpus_ids` is given.

        Raises
        ------
        InputError
            If the data set or the run cannot be read, or they do not belong together.
        """
        judged = self.judged
        provenance = {"qrels": dict(judged.provenance)}
        notes = judged.notes
        if isinstance(run, (str, Path)):
            file = read_run_beside(run, judged.frame)
            run, notes = file.frame, (*file.notes, *notes)
            provenance["run"] = dict(file.provenance)
        if not {"corpus_size", "corpus_ids"} & joining.keys():
            joining["corpus_size"] = self.corpus_size
        evaluation = Evaluation.create(
            run, judged.frame, **{"benchmark": self.name, "provenance": provenance, **joining}
        )
        return replace(evaluation, notes=(*notes, *evaluation.notes))


def load_ir_datasets(name: str, run: Any, **joining: Any) -> Evaluation:
    """Join a run to the judgements of a data set of ir_datasets.

    Parameters
    ----------
    name : str
        Its id, with or without ``irds:`` before it.
    run, **joining
        As :meth:`Collection.evaluate` takes them.

    Returns
    -------
    Evaluation
        With the data set's corpus size.

    Raises
    ------
    InputError
        If there is no such data set, it has no judgements or cannot be read, or as
        :meth:`Evaluation.create` raises it.
    MissingExtraError
        If ir_datasets is not installed.
    """
    return open_collection(name).evaluate(run, **joining)


def open_collection(name: str) -> Collection:
    """Open a data set of ir_datasets by its id; nothing of it is read yet.

    Parameters
    ----------
    name : str
        Its id, with or without ``irds:`` before it.

    Raises
    ------
    InputError
        If there is no such data set.
    MissingExtraError
        If ir_datasets is not installed.
    """
    plain = name.removeprefix(PREFIX)
    try:
        import ir_datasets
    except ImportError:
        raise MissingExtraError(
            f"{PREFIX}{plain} is a data set of ir_datasets, which is not installed",
            hint="pip install 'falsify-adapters[ir-datasets]'",
        ) from None
    try:
        return Collection(plain, ir_datasets.load(plain))
    except KeyError:
        near = difflib.get_close_matches(plain, _ids(), 3)
        raise InputError(
            f"ir_datasets has no data set {plain[:80]!r}",
            hint=f"did you mean {' or '.join(near)}?" if near else "see its catalog of ids",
        ) from None


def as_collection_name(place: str) -> str:
    """Put ``irds:`` before a bare id of ir_datasets; leave all else, files first, as it is.

    Examples
    --------
    >>> as_collection_name("irds:beir/nfcorpus/test"), as_collection_name("no/such/file.trec")
    ('irds:beir/nfcorpus/test', 'no/such/file.trec')
    """
    # looking an id up makes ir_datasets' folder in the user's home: not for a mistyped file
    if not _ID.fullmatch(place) or place.endswith(_ENDINGS) or _exists(place):
        return place
    try:
        open_collection(place)
    except FalsifyError:  # no id, or no ir_datasets: then it is a file, which is not there
        return place
    return PREFIX + place


def _exists(place: str) -> bool:
    try:
        return Path(place).exists()
    except (OSError, ValueError):  # longer than any path, or with a NUL
        return False


def _ids() -> list[str]:
    import ir_datasets

    return list(ir_datasets.registry)


def _text(query: Any, fields: Mapping[str, Any]) -> str:
    if hasattr(query, "default_text"):
        return str(query.default_text())
    return str(fields.get("text", ""))


@contextmanager
def _reading(name: str, what: str, instead: str) -> Iterator[None]:
    """Turn whatever goes wrong inside ir_datasets, which downloads, unpacks and parses."""
    try:
        yield
    except Exception as error:
        raise InputError(
            f"the {what} of {PREFIX}{name} cannot be read",
            found=f"{type(error).__name__}: {str(error)[:160]}",
            hint="ir_datasets downloads data when it is first used, and some must be asked for (its"
            f" catalog says which); or {instead}",
        ) from error
