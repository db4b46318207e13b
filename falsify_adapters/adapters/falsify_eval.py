"""The format of falsify-eval: one JSON object per question, `retrieved`, `gold` and maybe `rel`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from falsify_adapters.adapters.ranked import Ranked, evaluation_of
from falsify_adapters.adapters.records import Records, as_id, as_ids, required, row_id
from falsify_adapters.errors import InputError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.notes import counted

#: The grade that falsify-eval gives to gold without `rel`.
USUAL_GRADE = 3


def recognises(records: Records) -> bool:
    """Say whether this is the format."""
    return records.have("retrieved", "gold")


def evaluate(records: Records, **joining: Any) -> Evaluation:
    r"""Return the evaluation.

    Parameters
    ----------
    records : Records
        Rows with ``retrieved`` (ids, best first), ``gold`` (an id, or a list of them), and
        optionally ``rel`` (the grade, or a list of them; 3 without it) and ``query_id`` (the
        number of the row without it).
    **joining
        Keywords of :meth:`Evaluation.create`; falsify-eval's pool is ``corpus_ids``.

    Raises
    ------
    InputError
        If a row is not as it should be.

    Examples
    --------
    >>> records = Records([{"retrieved": ["a", "b"], "gold": "b"}], "bench.jsonl")
    >>> evaluate(records, corpus_size=5).qrels
      query_id doc_id  relevance
    0    row-1      b          3
    """
    return evaluation_of(_ranked(records), records, **joining)


def _ranked(records: Records) -> Iterator[Ranked]:
    for number, row in enumerate(records.rows):
        where = records.where(number)
        retrieved = as_ids(required(row, "retrieved", where), "retrieved", where)
        query_id = as_id(row.get("query_id", row_id(number)), "query_id", where)
        yield Ranked(query_id, retrieved, _gold(row, where), where)


def _gold(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    gold, grade = required(row, "gold", where), row.get("rel")
    grade = USUAL_GRADE if grade is None else grade
    ids = as_ids(gold, "gold", where) if isinstance(gold, list) else [as_id(gold, "gold", where)]
    grades = grade if isinstance(grade, list) else [grade] * len(ids)
    if len(grades) != len(ids) or len(set(ids)) != len(ids):
        raise InputError(
            f"{where}: gold names a document twice, or rel has another length",
            found=(
                f"{counted(len(ids), 'id')}, {len(set(ids))} different,"
                f" {counted(len(grades), 'grade')}"
            ),
        )
    return dict(zip(ids, grades, strict=True))
