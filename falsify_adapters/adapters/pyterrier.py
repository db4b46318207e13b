"""PyTerrier: result frames (`qid, docno, score, rank`) and qrels frames (`qid, docno, label`)."""

from __future__ import annotations

from typing import Any

import pandas as pd

from falsify_adapters.adapters.renamed import check_ranks, renamed
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.notes import Note

RUN = {"query_id": "qid", "doc_id": "docno", "score": "score"}
QRELS = {"query_id": "qid", "doc_id": "docno", "relevance": "label"}


def from_pyterrier(results: pd.DataFrame, qrels: pd.DataFrame, **joining: Any) -> Evaluation:
    """Return the evaluation of a transformer's results.

    Parameters
    ----------
    results : DataFrame
        What a transformer returns; ``docid``, Terrier's own number, is no document id here.
    qrels : DataFrame
        What ``dataset.get_qrels()`` returns.
    **joining
        Keywords of :meth:`Evaluation.create`; the corpus size is
        ``index.getCollectionStatistics().getNumberOfDocuments()``.

    Raises
    ------
    InputError
        If a column is missing, scores run against ranks, or as :meth:`Evaluation.create` raises.

    Examples
    --------
    >>> results = pd.DataFrame({"qid": ["1"], "docno": ["d1"], "score": [7.5], "rank": [0]})
    >>> qrels = pd.DataFrame({"qid": ["1"], "docno": ["d1"], "label": [1]})
    >>> from_pyterrier(results, qrels, corpus_size=100).corpus_size
    100
    """
    notes: list[Note] = list(joining.pop("notes", ()))
    run = renamed(results, RUN, "results")
    if "rank" in results.columns:
        check_ranks(run["query_id"], results["rank"], run["score"], "results", notes)
    return Evaluation.create(run, renamed(qrels, QRELS, "qrels"), notes=notes, **joining)
