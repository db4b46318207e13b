"""Recommenders: a user is a query, an item a document, held-out interactions are the gold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from falsify_adapters.adapters.records import Records, Row, as_id, as_number, required
from falsify_adapters.adapters.renamed import renamed
from falsify_adapters.evaluation import Evaluation

COLUMNS = {"query_id": "user_id", "doc_id": "item_id", "score": "score"}


def recognises(records: Records) -> bool:
    """Say whether these are recommended items."""
    return records.have("user_id", "item_id", "score")


def recognises_held_out(records: Records) -> bool:
    """Say whether these are held-out items: they have no score."""
    return records.have("user_id", "item_id") and not records.have("score")


def from_recommendations(
    recommended: pd.DataFrame,
    held_out: pd.DataFrame,
    columns: Mapping[str, str] | None = None,
    **joining: Any,
) -> Evaluation:
    """Return the evaluation of recommended items.

    Parameters
    ----------
    recommended : DataFrame
        One row per user and recommended item, with a score: higher is better.
    held_out : DataFrame
        One row per user and relevant item. A column of grades counts only if `columns` names it
        as ``relevance``; every row is relevant otherwise.
    columns : mapping of str to str, optional
        Their names for ``query_id``, ``doc_id``, ``score`` and ``relevance`` where they are not
        ``user_id``, ``item_id`` and ``score``.
    **joining
        Keywords of :meth:`Evaluation.create`; the corpus size is the number of items.

    Raises
    ------
    InputError
        If a column is missing, or as :meth:`Evaluation.create` raises it.

    Examples
    --------
    >>> recommended = pd.DataFrame({"user_id": [1], "item_id": [7], "score": [0.9]})
    >>> held_out = pd.DataFrame({"user_id": [1], "item_id": [7]})
    >>> from_recommendations(recommended, held_out, corpus_size=500).qrels
      query_id doc_id  relevance
    0        1      7          1
    """
    columns = {**COLUMNS, **(columns or {})}
    keys = ("query_id", "doc_id")
    run = renamed(recommended, {key: columns[key] for key in (*keys, "score")}, "recommended")
    graded = ("relevance",) if "relevance" in columns else ()
    qrels = renamed(held_out, {key: columns[key] for key in (*keys, *graded)}, "held_out")
    if not graded:
        qrels = qrels.drop_duplicates().assign(relevance=1)
    return Evaluation.create(run, qrels, **joining)


def evaluate(records: Records, gold: Records, **joining: Any) -> Evaluation:
    """Return the evaluation of two files with the usual column names: top K and held out."""
    joining = {
        "provenance": {"run": dict(records.provenance), "qrels": dict(gold.provenance)},
        **joining,
    }
    return from_recommendations(
        _frame(records, "user_id", "item_id", "score"),
        _frame(gold, "user_id", "item_id"),
        **joining,
    )


def _frame(records: Records, *keys: str) -> pd.DataFrame:
    def cell(row: Row, key: str, number: int) -> Any:
        where = records.where(number)
        value = required(row, key, where)
        return as_number(value, key, where) if key == "score" else as_id(value, key, where)

    table = {key: [cell(row, key, i) for i, row in enumerate(records.rows)] for key in keys}
    return pd.DataFrame({key: pd.Series(values, dtype=object) for key, values in table.items()})
