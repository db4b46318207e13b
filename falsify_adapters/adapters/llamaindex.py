"""LlamaIndex: what its retriever evaluation returns, one row per query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from falsify_adapters.adapters.ranked import Ranked, evaluation_of
from falsify_adapters.adapters.records import Records, as_ids, in_memory, required, row_id
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


def from_llamaindex(results: Iterable[Any], **joining: Any) -> Evaluation:
    """Return the evaluation of what a retriever evaluation returned.

    Parameters
    ----------
    results : iterable of RetrievalEvalResult
        What ``RetrieverEvaluator`` returned for each query. Left unchanged.
    **joining
        As for :func:`evaluate`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> one = SimpleNamespace(expected_ids=["n1"], retrieved_ids=["n3", "n1"])
    >>> from_llamaindex([one], corpus_size=40).qrels["doc_id"].tolist()
    ['n1']
    """
    keys = ("expected_ids", "retrieved_ids")
    rows = [{key: getattr(one, key, None) for key in keys} for one in results]
    return evaluate(in_memory(rows, "the LlamaIndex results"), **joining)


def from_nodes(
    retrieved: Mapping[Any, Iterable[Any]], relevant: Mapping[Any, Any], **joining: Any
) -> Evaluation:
    """Return the evaluation of what retrievers returned.

    Parameters
    ----------
    retrieved : mapping of query id to iterable of NodeWithScore
        What ``retriever.retrieve(...)`` returned, best first. Left unchanged.
    relevant : mapping of query id to collection of node ids, or to mapping of node id to grade
        The right answers.
    **joining
        As for :func:`evaluate`; `chunks` too, a regular expression for the part of a node's id
        that is not its document's.

    Raises
    ------
    InputError
        If these are no nodes, a list holds a node twice, or as :meth:`Evaluation.create` raises.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> node = SimpleNamespace(node_id="n3", score=0.5)
    >>> from_nodes({"q1": [node]}, {"q1": ["n3"]}, corpus_size=40).run["doc_id"].tolist()
    ['n3']
    """

    def ranked() -> Iterator[Ranked]:
        for query in dict.fromkeys((*relevant, *retrieved)):
            where = f"query {query!r}"
            gold = relevant.get(query, {})
            pairs = gold.items() if isinstance(gold, Mapping) else [(doc, 1) for doc in gold]
            found = None
            if query in retrieved:
                ids = [getattr(node, "node_id", None) for node in retrieved[query]]
                found = as_ids(ids, "node_id", where)
            grades = {str(doc): grade for doc, grade in pairs}
            yield Ranked(str(query), found, grades, where)

    return evaluation_of(ranked(), Records([], "the LlamaIndex nodes"), **joining)


def _ranked(records: Records) -> Iterator[Ranked]:
    for number, row in enumerate(records.rows):
        where = records.where(number)
        ids = {
            key: as_ids(required(row, key, where), key, where)
            for key in ("retrieved_ids", "expected_ids")
        }
        gold = dict.fromkeys(ids["expected_ids"], 1)
        yield Ranked(row_id(number), ids["retrieved_ids"], gold, where)
