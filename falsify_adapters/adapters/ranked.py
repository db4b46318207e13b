"""Ranked lists with their gold, one per question: what most evaluation logs hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from falsify_adapters.adapters.records import Records
from falsify_adapters.chunks import best_chunks, best_grades
from falsify_adapters.errors import InputError
from falsify_adapters.evaluation import Evaluation


@dataclass(frozen=True)
class Ranked:
    """One question.

    Parameters
    ----------
    query_id : str
        Its id.
    retrieved : sequence of str or None
        Document ids, the best first; None if the system gave no answer at all.
    gold : mapping of str to number
        Grade of each relevant document.
    where : str
        Where it stands, for errors.
    """

    query_id: str
    retrieved: Sequence[str] | None
    gold: Mapping[str, Any]
    where: str


def evaluation_of(
    ranked: Iterable[Ranked], records: Records, *, chunks: str | None = None, **joining: Any
) -> Evaluation:
    """Return the evaluation of ranked lists; rank 1 gets the highest score.

    Parameters
    ----------
    ranked : iterable of Ranked
        The questions.
    records : Records
        The file that they come from.
    chunks : str, optional
        Regular expression for the part of an id that only names a chunk: the best chunk then
        stands for its document, among what was retrieved and what is relevant.
    **joining
        Keywords of :meth:`Evaluation.create`.

    Raises
    ------
    InputError
        If a question or, in one list, a document stands twice, or as :meth:`Evaluation.create`
        raises it.

    Examples
    --------
    >>> one = Ranked("q1", ["d2", "d1"], {"d1": 1}, "record 1")
    >>> evaluation_of([one], Records([], "log"), corpus_size=9).run
      query_id doc_id  score
    0       q1     d2    2.0
    1       q1     d1    1.0
    """
    run: dict[str, dict[str, int]] = {}
    gold: dict[str, dict[str, Any]] = {}
    for one in ranked:
        if one.query_id in gold:
            raise InputError(
                f"{one.where} repeats a query id",
                found=one.query_id,
                hint="are these several runs in one file? Write one file for each",
            )
        gold[one.query_id] = dict(one.gold)
        if one.retrieved is not None:
            run[one.query_id] = scores_by_rank(one.retrieved, one.where)
    provenance = {"run": dict(records.provenance), **joining.pop("provenance", {})}
    joining["provenance"] = provenance
    if chunks is None:
        return Evaluation.create(run, gold, **joining)
    documents = best_chunks(run, chunks)
    return Evaluation.create(documents, best_grades(gold, chunks), **joining)


def scores_by_rank(retrieved: Sequence[str], where: str) -> dict[str, int]:
    """Return a score for each document of a ranked list: how many are not above it."""
    scores = {doc: len(retrieved) - i for i, doc in enumerate(retrieved)}
    if len(scores) < len(retrieved):
        again = next(doc for i, doc in enumerate(retrieved) if doc in retrieved[:i])
        raise InputError(
            f"{where} lists a document more than once",
            found=f"{again!r:.80}",
            hint="keep each document once, at its best rank",
        )
    return scores
