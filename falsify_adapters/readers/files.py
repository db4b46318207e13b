"""Read a run, qrels, or a list of exclusions from a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.frames import as_qrels, codes, drop_rows, rank_in_query
from falsify_adapters.notes import Note, counted, plural, some
from falsify_adapters.progress import progress
from falsify_adapters.readers.jsons import JsonReader, Pair
from falsify_adapters.readers.layout import Kind, Layout
from falsify_adapters.readers.lines import Columns, FloatArray, Ids, IntArray, columns
from falsify_adapters.readers.parquet import parquet_columns
from falsify_adapters.readers.ranks import (
    RankCheck,
    judge,
    note_rising_lines,
    third_column_is_rank,
)
from falsify_adapters.readers.rows import Rows
from falsify_adapters.readers.sniff import sniff
from falsify_adapters.readers.source import Content, Source, label_of, open_content, open_source

ScoreOrder = Literal["descending", "ascending"]

#: Rows of JSON that are collected before they become arrays.
BATCH = 1 << 17


@dataclass(frozen=True)
class RunFile:
    """A run read from a file.

    Parameters
    ----------
    frame : DataFrame
        The common run frame (see :func:`falsify_adapters.frames.as_run`).
    notes : tuple of Note
        What the reader has to say about the file.
    provenance : dict
        ``name`` (base name), ``format``, ``columns``, ``encoding``, ``compression``, ``sha256``
        (of the content after decompression), ``rows`` in the file and ``rows_kept``.
    """

    frame: pd.DataFrame = field(repr=False)
    notes: tuple[Note, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class QrelsFile:
    """Qrels read from a file; the first fields are those of :class:`RunFile`.

    Parameters
    ----------
    frame, notes, provenance
        As there.
    order : tuple of str
        The queries in the order of their first appearance in the file.
    """

    frame: pd.DataFrame = field(repr=False)
    notes: tuple[Note, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
    order: tuple[str, ...] = field(default=(), repr=False)


def read_run(
    source: Source,
    *,
    format: str | None = None,
    depth: int | None = None,
    score_order: ScoreOrder | None = None,
    rank_from_column: bool = False,
    notes: list[Note] | None = None,
) -> RunFile:
    r"""Read a run.

    Parameters
    ----------
    source : str, Path or binary file
        A path, ``"-"`` for standard input, or a file opened in binary mode. Compression, encoding
        and format are found from the content; the suffix does not matter.
    format : {"trec", "tsv", "csv", "msmarco", "json", "jsonl", "parquet"}, optional
        The format, where the guess is wrong.
    depth : int, optional
        Keep only the best `depth` documents of each query, and those tied with the last of them,
        while reading. Repeated documents are then looked for among the kept ones only, which a
        note says.
    score_order : {"descending", "ascending"}, optional
        "ascending" if smaller scores are better (distances); they are negated. Without it scores
        are taken as descending, and a run whose rank column says the reverse is refused.
    rank_from_column : bool
        Rank by the rank column and ignore the scores.
    notes : list of Note, optional
        Collects the notes, which the result holds too.

    Returns
    -------
    RunFile

    Raises
    ------
    InputError
        If the file cannot be read, no format fits, or a row is not as it should be; the message
        names the file and the line or the ids.
    UsageError
        If an option has a value that makes no sense.
    MissingExtraError
        If the file needs lz4 or parquet and the extra is not installed.

    Examples
    --------
    >>> import io
    >>> run = read_run(io.BytesIO(b"q1 Q0 d1 1 2.5 mine\nq1 Q0 d2 2 1.5 mine\n"))
    >>> run.frame
      query_id doc_id  score
    0       q1     d1    2.5
    1       q1     d2    1.5
    >>> run.provenance["format"], run.provenance["rows"]
    ('trec', 2)
    """
    if depth is not None and depth < 1:
        raise UsageError("depth must be at least 1", found=str(depth))
    if score_order not in (None, "descending", "ascending"):
        raise UsageError("score_order must be 'descending' or 'ascending'", found=repr(score_order))
    if rank_from_column and score_order is not None:
        raise UsageError("rank_from_column and score_order exclude each other")
    reader = _RunReader(label_of(source), depth, score_order, rank_from_column, format)
    frame, provenance = _read(source, "run", format, reader)
    return RunFile(frame, _final_notes(reader, notes), provenance)


def read_qrels(
    source: Source, *, format: str | None = None, notes: list[Note] | None = None
) -> QrelsFile:
    r"""Read qrels.

    Parameters
    ----------
    source, format, notes
        As :func:`read_run` takes them.

    Returns
    -------
    QrelsFile

    Raises
    ------
    InputError, UsageError, MissingExtraError
        As :func:`read_run` does.

    Examples
    --------
    >>> import io
    >>> read_qrels(io.BytesIO(b"query-id\tcorpus-id\tscore\n01\t1e5\t1\n")).frame
      query_id doc_id  relevance
    0       01    1e5          1
    """
    reader = _QrelsReader(label_of(source))
    frame, provenance = _read(source, "qrels", format, reader)
    order = tuple(map(str, reader.rows.queries))
    return QrelsFile(frame, _final_notes(reader, notes), provenance, order)


def read_exclusions(source: Source) -> pd.DataFrame:
    r"""Read documents to leave out per query: two columns, with or without a header.

    Parameters
    ----------
    source
        As :func:`read_run` takes it.

    Returns
    -------
    DataFrame
        Columns ``query_id, doc_id``; repeated rows stand once.

    Examples
    --------
    >>> import io
    >>> read_exclusions(io.BytesIO(b"q1 d7\nq1 d9\n"))
      query_id doc_id
    0       q1     d7
    1       q1     d9
    """
    reader = _ExclusionsReader(label_of(source))
    frame, _ = _read(source, "exclusions", None, reader)
    return frame


class _Reader:
    """What the three readers have in common: rows come in pieces and leave as a frame."""

    def __init__(self, label: str, depth: int | None = None) -> None:
        self.label = label
        self.rows = Rows(depth)
        self.notes: list[Note] = []

    def start(self, layout: Layout | None) -> None:
        """Learn the layout of a table; None for other formats."""

    def add(self, piece: Columns) -> None:
        query_code = self.rows.query_codes(piece.query)
        self.rows.add(query_code, piece.doc, self.values(query_code, piece))

    def values(self, query_code: IntArray, piece: Columns) -> FloatArray:
        del query_code
        return np.zeros(len(piece)) if piece.value is None else piece.value

    def frame(self) -> pd.DataFrame:
        return self.rows.frame("value")


class _QrelsReader(_Reader):
    def start(self, layout: Layout | None) -> None:
        if layout is not None and "value" not in layout.columns:
            raise _no_value(layout, self.label, "grade")

    def frame(self) -> pd.DataFrame:
        return as_qrels(self.rows.frame("relevance"), notes=self.notes, name=self.label)


class _ExclusionsReader(_Reader):
    def frame(self) -> pd.DataFrame:
        pairs = self.rows.frame("value")[["query_id", "doc_id"]].astype(object)
        return pairs.drop_duplicates().reset_index(drop=True)


class _RunReader(_Reader):
    def __init__(
        self,
        label: str,
        depth: int | None,
        score_order: ScoreOrder | None,
        rank_from_column: bool,
        format: str | None,
    ) -> None:
        super().__init__(label, depth)
        self.depth = depth
        self.score_order = score_order
        self.rank_from_column = rank_from_column
        self.by_rank = rank_from_column or format == "msmarco"
        self.by_column, self.by_line = RankCheck(), RankCheck()
        self.ask_third_column = self.third_is_rank = False

    def start(self, layout: Layout | None) -> None:
        at = {} if layout is None else layout.columns
        if self.rank_from_column and "rank" not in at:
            raise UsageError(
                f"{self.label} has no rank column to rank by",
                hint="only TREC runs and tables whose header names a rank have one",
            )
        if layout is None:
            return
        if layout.name == "msmarco":
            self.by_rank = True
        elif "value" not in at and "rank" in at:
            self.by_rank = True
            self.notes.append(
                Note("W-RANK-AS-SCORE", f"{self.label} has no scores: ranked by its rank column")
            )
        elif "value" not in at:
            raise _no_value(layout, self.label, "score")
        elif not layout.header and "rank" not in at and self.score_order is None:
            # what the third column is shows only when all of it is there
            self.ask_third_column = True
            self.rows.depth = None

    def values(self, query_code: IntArray, piece: Columns) -> FloatArray:
        if self.by_rank:
            rank = piece.value if piece.rank is None else piece.rank
            assert rank is not None
            return -rank
        assert piece.value is not None
        value = -piece.value if self.score_order == "ascending" else piece.value
        if piece.rank is not None:
            self.by_column.add(query_code, piece.rank, value)
        elif self.score_order is None:
            self.by_line.add(query_code, np.arange(len(value), dtype=np.float64), value)
        return value

    def frame(self) -> pd.DataFrame:
        if self.ask_third_column:
            self._decide_third_column()
        if not self.by_rank:
            agreement = self.by_column.result()
            judge(agreement, self.label, score_order=self.score_order, notes=self.notes)
            note_rising_lines(self.by_line.result(), self.rows.seen, self.label, self.notes)
        run = self.rows.run_frame(self.label, -1.0 if self.third_is_rank else 1.0)
        if self.by_rank:
            self._refuse_equal_ranks(run)
        if self.depth is None:
            return run
        run = drop_rows(run, _below(run, self.depth))
        if len(run) < self.rows.seen:
            self.notes.append(
                Note(
                    "W-DEPTH",
                    f"{self.label}: only the best {counted(self.depth, 'document')} per query,"
                    " and those tied"
                    f" with the last, were kept while reading ({len(run)} of {self.rows.seen}"
                    " rows); repeated documents were looked for among these only",
                )
            )
        return run

    def _decide_third_column(self) -> None:
        query_code, _, value = self.rows.arrays()
        if third_column_is_rank(query_code, value, self.label):
            self.by_rank = self.third_is_rank = True
            self.notes.append(
                Note("W-RANK-AS-SCORE", f"{self.label}: third column read as rank (MS MARCO)")
            )

    def _refuse_equal_ranks(self, run: pd.DataFrame) -> None:
        query_code, rank = codes(run["query_id"]), -run["score"].to_numpy()
        equal = np.flatnonzero((query_code[1:] == query_code[:-1]) & (rank[1:] == rank[:-1]))
        if equal.size:
            row = run.iloc[equal[0]]
            raise InputError(
                f"{self.label} gives several documents of a query the same rank",
                found=f"query {row['query_id']!r}, rank {0.0 - row['score']:g}"
                f" ({equal.size} such rows in all)",
                hint="the rank column cannot be used: rank by score",
            )


def _below(run: pd.DataFrame, depth: int) -> npt.NDArray[np.bool_]:
    """Mark the rows that score less than the document at `depth` of their query."""
    query, score = codes(run["query_id"]), run["score"].to_numpy()
    rank = rank_in_query(query)
    limit = np.full(len(run["query_id"].cat.categories), -np.inf)
    limit[query[rank == depth]] = score[rank == depth]
    return score < limit[query]


def _read(
    source: Source, kind: Kind, format: str | None, reader: _Reader
) -> tuple[pd.DataFrame, dict[str, Any]]:
    stream, size, ours = open_source(source)
    try:
        with progress(f"reading {label_of(source)}", size) as advance:
            content = open_content(stream, reader.label, advance)
            return _read_content(content, kind, format, reader)
    finally:
        if ours:
            stream.close()


def _read_content(
    content: Content, kind: Kind, format: str | None, reader: _Reader
) -> tuple[pd.DataFrame, dict[str, Any]]:
    if (content.encoding == "binary") != (format == "parquet") and format is not None:
        raise InputError(f"{content.label} is not in the format {format}", found="other content")
    layout: Layout | None
    if content.encoding == "binary":
        layout, piece = parquet_columns(content.everything(), kind, content.label)
        found = layout.name
        reader.start(layout)
        reader.add(piece)
    else:
        guess = sniff(content.head, kind, content.label, whole=content.whole, format=format)
        layout = guess if isinstance(guess, Layout) else None
        found = guess.name if isinstance(guess, Layout) else guess
        reader.start(layout)
        if isinstance(guess, Layout):
            _read_table(content, guess, reader)
        else:
            _read_json(content, guess, kind, reader)
    frame = reader.frame()
    return frame, {
        "name": content.name,
        "format": found,
        "columns": None if layout is None else str(layout),
        "encoding": content.encoding,
        "compression": content.compression,
        "sha256": content.sha256,
        "rows": reader.rows.seen,
        "rows_kept": len(frame),
    }


def _read_table(content: Content, layout: Layout, reader: _Reader) -> None:
    line, quotes = 1, False
    if layout.comments:
        reader.notes.append(
            Note(
                "W-COMMENT-LINES",
                f"{content.label}: {layout.comments} comment lines at the top were skipped",
            )
        )
    for number, chunk in enumerate(content.chunks()):
        lines = chunk.count(b"\n")
        if number == 0 and layout.skip:
            chunk = chunk.split(b"\n", layout.skip)[-1]
            line, lines = line + layout.skip, lines - layout.skip
        if chunk:
            reader.add(columns(chunk, layout, content.label, line))
        line += lines
        quotes = quotes or b'"' in chunk
    if quotes and not layout.quoted:
        _note_quotes(reader)


def _note_quotes(reader: _Reader) -> None:
    found = [text for text in reader.rows.ids() if len(text) > 1 and text[0] == text[-1] == '"']
    if found:
        reader.notes.append(
            Note(
                "W-QUOTED-IDS",
                f"{reader.label}: {counted(len(found), 'id')}"
                f" {plural(len(found), 'stands', 'stand')} in quotation marks, taken as"
                f" part of the id ({some(found)})",
            )
        )


def _read_json(content: Content, format: str, kind: Kind, reader: _Reader) -> None:
    if kind == "exclusions":
        raise InputError(
            f"{content.label} is JSON", hint="exclusions are lines of query and document"
        )
    source = JsonReader(kind, content.label, lambda query: reader.rows.declare([query]))
    if format == "json":
        _add_pairs(source.whole(content.everything()), reader)
        return
    line = 1
    for chunk in content.chunks():
        _add_pairs(source.lines(chunk, line), reader)
        line += chunk.count(b"\n")


def _add_pairs(pairs: Iterator[Pair], reader: _Reader) -> None:
    while batch := list(islice(pairs, BATCH)):
        queries, docs, values = zip(*batch, strict=True)
        reader.add(Columns(_ids(queries), _ids(docs), np.array(values, dtype=np.float64), None))


def _ids(texts: tuple[str, ...]) -> Ids:
    code, distinct = pd.factorize(np.array(texts, dtype=object))
    return Ids(list(distinct), code.astype(np.int64))


def _no_value(layout: Layout, label: str, what: str) -> InputError:
    return InputError(
        f"{label} names no column for the {what}",
        found=f"header {some(layout.header, 8)}",
        hint="name it score" if what == "score" else "name it score or relevance",
    )


def _final_notes(reader: _Reader, notes: list[Note] | None) -> tuple[Note, ...]:
    """Return the reader's notes, with the base name in place of a path of this machine."""
    name = reader.label.replace("\\", "/").rsplit("/", 1)[-1]
    final = tuple(
        Note(note.code, note.message.replace(reader.label, name)) for note in reader.notes
    )
    if notes is not None:
        notes.extend(final)
    return final
