"""LlamaIndex: what its retriever evaluation returns, one row per query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from falsify_adapters.adapters.ranked import Ranked, evaluation_of
from falsify_adapters.adapters.records import Records, as_ids, required, row_id
from falsify_adapters.evaluation import Evaluation


def recognises(records: Records) -> bool:
    """Say whether this is the format."""
    return records.have("expected_ids", "retrieved_ids")


def evaluate(records: Records, **joining: Any) -> Evaluation:
    """Return the evaluation.

    Parameters
    ----------
    records : Records
        Rows with ``retrieved_ids`` (best first) and ``expected_ids``: node ids. A query's id is
        the number of its row, since LlamaIndex keeps the text only.
    **joining
        Keywords of :meth:`Evaluation.create`; the corpus size is the number of nodes in the index.

    Raises
    ------
    InputError
        If a row is not as it should be.

    Examples
    --------
    >>> row = {"query": "who?", "expected_ids": ["n1"], "retrieved_ids": ["n3", "n1"]}
    >>> evaluate(Records([row], "retrieval.jsonl"), corpus_size=40).n_queries
    1
    """
    return evaluation_of(_ranked(records), records, **joining)


def _ranked(records: Records) -> Iterator[Ranked]:
    for number, row in enumerate(records.rows):
        where = records.where(number)
        ids = {
            key: as_ids(required(row, key, where), key, where)
            for key in ("retrieved_ids", "expected_ids")
        }
        gold = dict.fromkeys(ids["expected_ids"], 1)
        yield Ranked(row_id(number), ids["retrieved_ids"], gold, where)
