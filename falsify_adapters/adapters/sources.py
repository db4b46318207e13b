"""The sources whose files hold rankings and gold together, and how to tell them apart."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

from falsify_adapters.adapters import (
    choices,
    elasticsearch,
    falsify_eval,
    ir_datasets,
    llamaindex,
    ragas,
    recommender,
)
from falsify_adapters.adapters.files import read_run_beside
from falsify_adapters.adapters.records import Records, read_records, row_id
from falsify_adapters.chunks import best_chunks
from falsify_adapters.errors import FalsifyError, InputError, UsageError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.notes import Note, some
from falsify_adapters.readers import read_qrels
from falsify_adapters.readers.queries import Queries
from falsify_adapters.readers.source import LARGEST_WHOLE, label_of, open_source
from falsify_adapters.readers.source import Source as File


@dataclass(frozen=True)
class Source:
    """A tool whose files can be graded.

    Parameters
    ----------
    title : str
        What its files hold, for messages.
    evaluate : callable
        Takes the records (and, with `gold`, those of the gold file) and keywords of
        :meth:`Evaluation.create`; returns the evaluation.
    recognises : callable, optional
        Says whether records are of this source; None if it must be named.
    gold : str, optional
        What the gold file is, for sources with two files.
    recognises_gold : callable, optional
        Says whether records are this source's gold file.
    measure : str
        What is graded by default.
    ranks_choices : bool
        Whether `evaluate` takes ``score``: what ranks the choices.
    takes_chunks : bool
        Whether `evaluate` takes ``chunks``: documents may be retrieved in pieces.
    query_id : str, optional
        Key of the queries' ids; without it, or where it is lacking, the record's number counts.
    text : str, optional
        Key of the queries' texts.
    about : str, optional
        Key of an object with more about the query; by default the record itself.
    """

    title: str
    evaluate: Callable[..., Evaluation]
    recognises: Callable[[Records], bool] | None = None
    gold: str | None = None
    recognises_gold: Callable[[Records], bool] | None = None
    measure: str = "nDCG@10"
    ranks_choices: bool = False
    takes_chunks: bool = False
    query_id: str | None = None
    text: str | None = None
    about: str | None = None


#: Every source by the name that ``--from`` takes.
SOURCES: dict[str, Source] = {
    "elasticsearch": Source(
        "rank_eval responses",
        elasticsearch.evaluate,
        elasticsearch.recognises,
        gold="the request of rank_eval",
        recognises_gold=elasticsearch.recognises_request,
        takes_chunks=True,
    ),
    "falsify-eval": Source(
        "retrieved and gold, one question per line",
        falsify_eval.evaluate,
        falsify_eval.recognises,
        takes_chunks=True,
        query_id="query_id",
        text="query",
    ),
    "llamaindex": Source(
        "LlamaIndex retrieval results",
        llamaindex.evaluate,
        llamaindex.recognises,
        takes_chunks=True,
        text="query",
    ),
    "lm-eval": Source(
        "lm-evaluation-harness samples",
        choices.evaluate_harness,
        choices.recognises_harness,
        measure=choices.MEASURE,
        ranks_choices=True,
        query_id="doc_id",
        about="doc",
    ),
    "olmes": Source(
        "OLMES predictions",
        choices.evaluate_olmes,
        choices.recognises_olmes,
        measure=choices.MEASURE,
        ranks_choices=True,
        query_id="doc_id",
    ),
    "ragas": Source(
        "RAGAS samples",
        ragas.evaluate,
        ragas.recognises,
        takes_chunks=True,
        text="user_input",
    ),
    "recommender": Source(
        "recommended items (user_id, item_id, score)",
        recommender.evaluate,
        recommender.recognises,
        gold="the held-out items (user_id, item_id)",
        recognises_gold=recommender.recognises_held_out,
    ),
}


@dataclass(frozen=True)
class Log:
    """A file that holds rankings, joined to its gold.

    Parameters
    ----------
    evaluation : Evaluation
        What the gate grades.
    queries : Queries or None
        What the file says about the queries: their texts, and other fields as columns.
    order : tuple of str
        The queries in the order of the file; empty where it has no record for each.
    """

    evaluation: Evaluation
    queries: Queries | None = field(default=None, repr=False)
    order: tuple[str, ...] = field(default=(), repr=False)


def find_source(name: str) -> Source:
    """Return a source by its name.

    Raises
    ------
    UsageError
        If there is none.
    """
    if name not in SOURCES:
        raise UsageError("unknown source", found=name, hint=f"one of {', '.join(SOURCES)}")
    return SOURCES[name]


def load(
    path: File, source: str | None = None, *, gold: File | None = None, **joining: Any
) -> Evaluation:
    r"""Read what another tool wrote, whatever tool it was, and join it to its gold.

    Parameters
    ----------
    path : str, Path or binary file
        A log with rankings and gold: JSON, JSON lines, CSV or parquet. With `gold`, also a run in
        any format that :func:`falsify_adapters.read_run` reads. ``"-"`` is standard input.
    source : str, optional
        A key of :data:`SOURCES`. Without it the source is guessed from the content, and a note
        says what the file was taken for.
    gold : str, Path or binary file, optional
        The right answers, where they are kept apart: the gold file of a source with two files,
        qrels, or ``irds:`` and the id of a data set of ir_datasets.
    **joining
        Keywords of :meth:`Evaluation.create` (``corpus_size``, ``top_k``, ...); ``score`` for
        multiple choice; ``chunks``, a regular expression, where documents come in pieces.

    Returns
    -------
    Evaluation
        With ``provenance["source"]`` if it is a log.

    Raises
    ------
    InputError
        If the file cannot be read, or no source or several fit.
    UsageError
        If there is no such source, a gold file is lacking or superfluous, or an option does not
        fit the source.

    Examples
    --------
    >>> import io
    >>> evaluation = load(io.BytesIO(b'{"retrieved": ["a", "b"], "gold": "b"}'), corpus_size=9)
    >>> print(evaluation.notes[0])  # doctest: +ELLIPSIS
    W-SOURCE-GUESSED: input was taken for falsify-eval: retrieved and gold, one question...
    >>> run, qrels = io.BytesIO(b"q1 Q0 d1 1 2.5 mine\n"), io.BytesIO(b"q1 0 d1 1\n")
    >>> print(load(run, gold=qrels, corpus_size=9).notes[0])
    W-SOURCE-GUESSED: input was taken for a run and input for its qrels
    """
    return load_log(path, source, gold=gold, **joining).evaluation


def load_log(
    path: File, source: str | None = None, *, gold: File | None = None, **joining: Any
) -> Log:
    """Read a file as :func:`load` does; return also what it says about the queries."""
    if source is None and gold is not None:
        path, gold = _seekable(path), _seekable(gold)
        found = guess_gold(gold)
        if found is None:
            return Log(_load_run(path, gold, **joining))
        return _joined(found, read_records(path), read_records(gold), guessed=True, **joining)
    records = read_records(path)
    name = guess(records) if source is None else source
    kept_apart = find_source(name).gold
    if (gold is None) != (kept_apart is None):
        raise UsageError(
            f"{name} takes {'no' if kept_apart is None else 'a'} gold file",
            hint="its files hold the gold" if kept_apart is None else f"give {kept_apart}",
        )
    apart = None if gold is None else read_records(gold)
    return _joined(name, records, apart, guessed=source is None, **joining)


def _joined(
    name: str, records: Records, gold: Records | None, *, guessed: bool, **joining: Any
) -> Log:
    """Join the records of a known source."""
    chosen = find_source(name)
    _check_options(name, chosen, joining)
    files = (records,) if gold is None else (records, gold)
    evaluation = chosen.evaluate(*files, **joining)
    notes = evaluation.notes
    if guessed:
        said = f"{_base_name(records.label)} was taken for {name}: {chosen.title}"
        notes = (Note("W-SOURCE-GUESSED", said), *notes)
    provenance = {**evaluation.provenance, "source": name}
    evaluation = replace(evaluation, notes=notes, provenance=provenance)
    if gold is not None:
        return Log(evaluation)
    return Log(evaluation, *_queries(records, chosen))


def _check_options(name: str, chosen: Source, joining: dict[str, Any]) -> None:
    """Refuse what only other sources take."""
    if "score" in joining and not chosen.ranks_choices:
        raise UsageError(
            f"{name} holds no choices to rank by a score",
            hint="only multiple choice does: "
            + ", ".join(key for key, one in SOURCES.items() if one.ranks_choices),
        )
    if joining.get("chunks") is None:
        joining.pop("chunks", None)
    elif not chosen.takes_chunks:
        what = "a question's choices" if chosen.ranks_choices else "recommended items"
        raise UsageError(f"{name} has no chunks of documents", hint=f"{what} have no parts")


def _queries(records: Records, chosen: Source) -> tuple[Queries, tuple[str, ...]]:
    """Return what the records say about the queries, and their order."""
    texts: dict[str, str] = {}
    columns: dict[str, dict[str, str]] = {}
    order: dict[str, None] = {}
    for number, row in enumerate(records.rows):
        given = None if chosen.query_id is None else row.get(chosen.query_id)
        query_id = row_id(number) if given is None else str(given)
        order[query_id] = None
        if chosen.text is not None and isinstance(row.get(chosen.text), str):
            texts[query_id] = row[chosen.text]
        about = row if chosen.about is None else row.get(chosen.about)
        for key, value in (about if isinstance(about, Mapping) else {}).items():
            if isinstance(value, (str, int)):
                columns.setdefault(str(key), {})[query_id] = str(value)
    return Queries(records.label, texts, columns), tuple(order)


def _load_run(path: File, gold: File, **joining: Any) -> Evaluation:
    """Join a run to qrels; `chunks` is as for logs."""
    chunks = joining.pop("chunks", None)
    if "score" in joining:
        raise UsageError("a run holds no choices to rank by a score")
    if isinstance(gold, str) and gold.startswith(ir_datasets.PREFIX):
        collection = ir_datasets.open_collection(gold)
        judged, qrels_name = collection.judged, gold
        if joining.get("corpus_size") is None and joining.get("corpus_ids") is None:
            joining["corpus_size"] = collection.corpus_size
    else:
        judged, qrels_name = read_qrels(gold), _base_name(label_of(gold))
    file = read_run_beside(path, judged.frame)
    run = file.frame if chunks is None else best_chunks(file.frame, chunks)
    provenance = {"run": dict(file.provenance), "qrels": dict(judged.provenance)}
    run_name = _base_name(label_of(path))
    said = f"{run_name} was taken for a run and {qrels_name} for its qrels"
    notes = (
        Note("W-SOURCE-GUESSED", said),
        *file.notes,
        *judged.notes,
        *joining.pop("notes", ()),
    )
    joining = {"provenance": provenance, **joining}
    return Evaluation.create(run, judged.frame, notes=notes, **joining)


def _base_name(label: str) -> str:
    """Return how reports call a file: without its folder."""
    return PurePath(label).name


def guess_gold(path: File) -> str | None:
    """Return the name of the source whose gold file this is; None if it is none, or not there."""
    if isinstance(path, str) and path.startswith(ir_datasets.PREFIX):
        return None
    try:
        records = read_records(path)
    except FalsifyError:
        return None
    finally:
        if not isinstance(path, (str, os.PathLike)):
            path.seek(0)
    fitting = [
        name
        for name, source in SOURCES.items()
        if source.recognises_gold is not None and source.recognises_gold(records)
    ]
    return fitting[0] if len(fitting) == 1 else None


def _seekable(path: File) -> File:
    """Return a file that can be read twice, even if it came through a pipe."""
    if isinstance(path, str) and path.startswith(ir_datasets.PREFIX):
        return path
    stream, size, ours = open_source(path)
    try:
        if ours and size is not None:
            return path
        kept = io.BytesIO(stream.read(LARGEST_WHOLE))
        kept.name = label_of(path)
        return kept
    finally:
        if ours:
            stream.close()


def guess(records: Records) -> str:
    """Return the name of the source that wrote these records.

    Raises
    ------
    InputError
        If none or several fit.

    Examples
    --------
    >>> guess(Records([{"expected_ids": [], "retrieved_ids": []}], "x.jsonl"))
    'llamaindex'
    """
    fitting = [
        name
        for name, source in SOURCES.items()
        if source.recognises is not None and source.recognises(records)
    ]
    if len(fitting) == 1:
        return fitting[0]
    raise InputError(
        f"{records.label} fits {'no known source' if not fitting else ' and '.join(fitting)}",
        found=f"the keys {some(records.rows[0], 8)}",
        hint="name the source if you know it; a run needs its qrels beside it",
    )
