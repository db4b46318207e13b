"""The sources whose files hold rankings and gold together, and how to tell them apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from falsify_adapters.adapters import (
    choices,
    elasticsearch,
    falsify_eval,
    llamaindex,
    ragas,
    recommender,
)
from falsify_adapters.adapters.records import Records, read_records
from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.notes import Note, some
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
    measure : str
        What is graded by default.
    ranks_choices : bool
        Whether `evaluate` takes ``score``: what ranks the choices.
    """

    title: str
    evaluate: Callable[..., Evaluation]
    recognises: Callable[[Records], bool] | None = None
    gold: str | None = None
    measure: str = "nDCG@10"
    ranks_choices: bool = False


#: Every source by the name that ``--from`` takes.
SOURCES: dict[str, Source] = {
    "elasticsearch": Source(
        "rank_eval responses", elasticsearch.evaluate, gold="the request of rank_eval"
    ),
    "falsify-eval": Source(
        "retrieved and gold, one question per line", falsify_eval.evaluate, falsify_eval.recognises
    ),
    "llamaindex": Source(
        "LlamaIndex retrieval results", llamaindex.evaluate, llamaindex.recognises
    ),
    "lm-eval": Source(
        "lm-evaluation-harness samples",
        choices.evaluate_harness,
        choices.recognises_harness,
        measure=choices.MEASURE,
        ranks_choices=True,
    ),
    "olmes": Source(
        "OLMES predictions",
        choices.evaluate_olmes,
        choices.recognises_olmes,
        measure=choices.MEASURE,
        ranks_choices=True,
    ),
    "ragas": Source("RAGAS samples", ragas.evaluate, ragas.recognises),
    "recommender": Source(
        "recommended items (user_id, item_id, score)",
        recommender.evaluate,
        gold="the held-out items (user_id, item_id)",
    ),
}


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
    r"""Read a file that holds rankings and gold.

    Parameters
    ----------
    path : str, Path or binary file
        JSON, JSON lines, CSV or parquet; ``"-"`` for standard input.
    source : str, optional
        A key of :data:`SOURCES`. Without it the source is guessed from the keys of the first
        record, and a note says which.
    gold : str, Path or binary file, optional
        The gold file, for the sources that keep it apart.
    **joining
        Keywords of :meth:`Evaluation.create` (``corpus_size``, ``top_k``, ...), and ``score`` for
        multiple choice.

    Returns
    -------
    Evaluation
        With ``provenance["source"]``.

    Raises
    ------
    InputError
        If the file cannot be read, or no source or several fit.
    UsageError
        If there is no such source, a gold file is lacking or superfluous, or a score of choices
        is named where there are none.

    Examples
    --------
    >>> import io
    >>> evaluation = load(io.BytesIO(b'{"retrieved": ["a", "b"], "gold": "b"}'), corpus_size=9)
    >>> evaluation.provenance["source"], evaluation.notes[0].code
    ('falsify-eval', 'W-SOURCE-GUESSED')
    """
    records = read_records(path)
    name = guess(records) if source is None else source
    chosen = find_source(name)
    if (gold is None) != (chosen.gold is None):
        raise UsageError(
            f"{name} takes {'no' if chosen.gold is None else 'a'} gold file",
            hint="its files hold the gold" if chosen.gold is None else f"give {chosen.gold}",
        )
    if "score" in joining and not chosen.ranks_choices:
        raise UsageError(
            f"{name} holds no choices to rank by a score",
            hint="only multiple choice does: "
            + ", ".join(key for key, one in SOURCES.items() if one.ranks_choices),
        )
    files = (records,) if gold is None else (records, read_records(gold))
    evaluation = chosen.evaluate(*files, **joining)
    notes = evaluation.notes
    if source is None:
        said = f"{PurePath(records.label).name} was taken for {name}: {chosen.title}"
        notes = (Note("W-SOURCE-GUESSED", said), *notes)
    return replace(evaluation, notes=notes, provenance={**evaluation.provenance, "source": name})


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
        hint="name the source if you know it, or give qrels and a run",
    )
