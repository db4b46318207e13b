"""sentence-transformers: the predictions that its InformationRetrievalEvaluator writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from falsify_adapters.evaluation import Evaluation
from falsify_adapters.readers import read_run
from falsify_adapters.readers.source import Source


def from_sentence_transformers(
    predictions: Source,
    relevant_docs: Mapping[Any, Iterable[Any]],
    corpus: Iterable[Any] | None = None,
    **joining: Any,
) -> Evaluation:
    r"""Return the evaluation of a predictions file (``write_predictions=True``).

    Parameters
    ----------
    predictions : str, Path or binary file
        ``..._predictions_<score function>.jsonl``.
    relevant_docs : mapping
        As the evaluator takes it: the ids of the relevant documents by query id.
    corpus : iterable, optional
        As the evaluator takes it; its ids (the keys) give the corpus size.
    **joining
        Keywords of :meth:`Evaluation.create`.

    Raises
    ------
    InputError
        If the file cannot be read, or as :meth:`Evaluation.create` raises it.

    Examples
    --------
    >>> import io
    >>> line = b'{"query_id": 1, "query": "?", "results": [{"corpus_id": 7, "score": 0.5}]}\n'
    >>> from_sentence_transformers(io.BytesIO(line), {1: {7}}, {7: "x", 8: "y"}).corpus_size
    2
    """
    file = read_run(predictions)
    gold = {str(query): {str(doc): 1 for doc in docs} for query, docs in relevant_docs.items()}
    if corpus is not None:
        joining = {"corpus_ids": [str(doc) for doc in corpus], **joining}
    evaluation = Evaluation.create(file.frame, gold, **joining)
    return replace(
        evaluation,
        notes=(*file.notes, *evaluation.notes),
        provenance={**evaluation.provenance, "run": dict(file.provenance)},
    )
