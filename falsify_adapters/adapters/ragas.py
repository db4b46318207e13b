"""RAGAS: single-turn samples, by the ids of the contexts or else by their texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from falsify_adapters.adapters.ranked import Ranked, evaluation_of
from falsify_adapters.adapters.records import (
    Records,
    as_ids,
    as_list,
    in_memory,
    required,
    row_id,
)
from falsify_adapters.errors import InputError
from falsify_adapters.evaluation import Evaluation

BY_ID = ("retrieved_context_ids", "reference_context_ids")
BY_TEXT = ("retrieved_contexts", "reference_contexts")


def recognises(records: Records) -> bool:
    """Say whether this is the format."""
    return records.have(*BY_ID) or records.have(*BY_TEXT)


def evaluate(records: Records, **joining: Any) -> Evaluation:
    """Return the evaluation.

    Parameters
    ----------
    records : Records
        Samples with ``retrieved_context_ids`` and ``reference_context_ids``, or with the texts
        ``retrieved_contexts`` and ``reference_contexts``, whose hash is then the document's id:
        contexts meet only if they are equal to the letter. A query's id is its row's number.
    **joining
        Keywords of :meth:`Evaluation.create`; the corpus size is the number of chunks indexed.

    Raises
    ------
    InputError
        If a row is not as it should be, or the samples have ids in part only.

    Examples
    --------
    >>> row = {"user_input": "?", "retrieved_contexts": ["x", "y"], "reference_contexts": ["y"]}
    >>> evaluate(Records([row], "samples.jsonl"), corpus_size=40).qrels["doc_id"].iloc[0]
    'sha256:a1fce4363854ff88'
    """
    return evaluation_of(_ranked(records, _keys(records)), records, **joining)


def from_ragas(dataset: Any, **joining: Any) -> Evaluation:
    """Return the evaluation of samples in memory.

    Parameters
    ----------
    dataset : ragas.EvaluationDataset, or iterable of dict
        The dataset, or what its ``to_list()`` returns. Left unchanged.
    **joining
        As for :func:`evaluate`.

    Examples
    --------
    >>> row = {"retrieved_context_ids": [7, 9], "reference_context_ids": [9]}
    >>> from_ragas([row], corpus_size=40).n_queries
    1
    """
    rows = dataset.to_list() if hasattr(dataset, "to_list") else list(dataset)
    return evaluate(in_memory(rows, "the RAGAS samples"), **joining)


def _keys(records: Records) -> tuple[str, str]:
    for keys in (BY_ID, BY_TEXT):
        if all(row.get(key) is not None for row in records.rows for key in keys):
            return keys
    number, row = next(
        (number, row)
        for number, row in enumerate(records.rows)
        if any(row.get(key) is None for key in BY_TEXT)
    )
    raise InputError(
        f"{records.where(number)} has neither ids nor texts of what was retrieved and what was"
        " to be found, or other records have not",
        found=f"values under {', '.join(key for key in row if row[key] is not None)}",
        hint=f"every sample needs {' and '.join(BY_ID)}, or every one {' and '.join(BY_TEXT)}",
    )


def _ranked(records: Records, keys: tuple[str, str]) -> Iterator[Ranked]:
    for number, row in enumerate(records.rows):
        where = records.where(number)
        retrieved, gold = (_documents(required(row, key, where), key, where) for key in keys)
        yield Ranked(row_id(number), retrieved, dict.fromkeys(gold, 1), where)


def _documents(value: Any, key: str, where: str) -> list[str]:
    if key in BY_ID:
        return as_ids(value, key, where)
    texts = as_list(value, key, where)
    if not all(isinstance(text, str) for text in texts):
        raise InputError(f"{where}: {key} holds something else than texts")
    return [text_id(text) for text in texts]


def text_id(text: str) -> str:
    """Return a document id that stands for a text.

    Examples
    --------
    >>> text_id("x")
    'sha256:2d711642b726b044'
    """
    return f"sha256:{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:16]}"
