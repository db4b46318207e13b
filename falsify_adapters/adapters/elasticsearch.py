"""Elasticsearch's rank_eval: the response holds the rankings, the request the ratings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from falsify_adapters.adapters.ranked import Ranked, evaluation_of
from falsify_adapters.adapters.records import (
    Records,
    as_id,
    as_list,
    as_object,
    in_memory,
    required,
)
from falsify_adapters.errors import InputError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.notes import counted, some


def recognises(records: Records) -> bool:
    """Say whether this is a response."""
    return len(records.rows) == 1 and records.have("details", "metric_score")


def recognises_request(records: Records) -> bool:
    """Say whether this is a request."""
    return len(records.rows) == 1 and records.have("requests")


def evaluate(records: Records, gold: Records, **joining: Any) -> Evaluation:
    """Return the evaluation.

    Parameters
    ----------
    records : Records
        The response: ``details.{query}.hits[].hit`` with ``_index`` and ``_id``, in rank order.
    gold : Records
        The request: ``requests[]`` with ``id`` and ``ratings``. The response alone would not do:
        it rates what was returned and says nothing of what was missed.
    **joining
        Keywords of :meth:`Evaluation.create`; the corpus size is the index's document count.

    Raises
    ------
    InputError
        If request or response is not as it should be, or a rating contradicts the request.

    Examples
    --------
    >>> request = {
    ...     "requests": [{"id": "q1", "ratings": [{"_index": "i", "_id": "7", "rating": 1}]}]
    ... }
    >>> hits = [{"hit": {"_index": "i", "_id": "7"}, "rating": 1}]
    >>> response = {"details": {"q1": {"hits": hits}}}
    >>> evaluate(
    ...     Records([response], "response.json"), Records([request], "request.json"), corpus_size=9
    ... ).run
      query_id doc_id  score
    0       q1    i/7    1.0
    """
    joining = {"provenance": {"qrels": dict(gold.provenance)}, **joining}
    return evaluation_of(_ranked(records, gold), records, **joining)


def from_elasticsearch(
    response: Mapping[str, Any], request: Mapping[str, Any], **joining: Any
) -> Evaluation:
    """Return the evaluation of what the client sent and got.

    Parameters
    ----------
    response, request : mapping
        Bodies of the response (``client.rank_eval(...).body``) and the request. Left unchanged.
    **joining
        As for :func:`evaluate`.

    Examples
    --------
    >>> document = {"_index": "i", "_id": "7"}
    >>> request = {"requests": [{"id": "q1", "ratings": [{**document, "rating": 2}]}]}
    >>> response = {"details": {"q1": {"hits": [{"hit": document, "rating": 2}]}}}
    >>> from_elasticsearch(response, request, corpus_size=9).n_queries
    1
    """
    return evaluate(in_memory([response], "response"), in_memory([request], "request"), **joining)


def _ranked(records: Records, gold: Records) -> Iterator[Ranked]:
    ratings = _ratings(gold)
    details = as_object(_only(records, "details")["details"], f"{records.label}, details")
    strangers = [query for query in details if query not in ratings]
    if strangers:
        raise InputError(
            f"{records.label} answers queries that {gold.label} does not ask",
            found=some(strangers),
            hint="give the request that this is the response to",
        )
    for query, grades in ratings.items():
        # a query that failed inside the engine is in the request only
        where = f"{records.label}, query {query!r}"
        retrieved = _hits(details[query], grades, where) if query in details else None
        yield Ranked(query, retrieved, grades, where)


def _hits(detail: Mapping[str, Any], grades: Mapping[str, Any], where: str) -> list[str]:
    """Return the documents of a query's hits, whose ratings must be those of the request."""
    documents = []
    for item in as_list(required(detail, "hits", where), "hits", where):
        document = _document(required(item, "hit", where), where)
        rating = item.get("rating")
        if rating != grades.get(document):
            raise InputError(
                f"{where}: document {document} is rated otherwise in the request",
                found=f"{rating} in the response, {grades.get(document)} in the request",
                hint="give the request that this is the response to",
            )
        documents.append(document)
    return documents


def _ratings(gold: Records) -> dict[str, dict[str, Any]]:
    ratings: dict[str, dict[str, Any]] = {}
    for request in as_list(_only(gold, "requests")["requests"], "requests", gold.label):
        query = as_id(required(request, "id", gold.label), "id", gold.label)
        where = f"{gold.label}, request {query!r}"
        if query in ratings:
            raise InputError(f"{where} stands twice")
        grades = ratings[query] = {}
        for rating in as_list(required(request, "ratings", where), "ratings", where):
            document = _document(rating, where)
            if document in grades:
                raise InputError(f"{where} rates {document} twice")
            grades[document] = required(rating, "rating", where)
    return ratings


def _document(item: Mapping[str, Any], where: str) -> str:
    """Name a document with its index: ids are unique inside an index only."""
    return "/".join(as_id(required(item, key, where), key, where) for key in ("_index", "_id"))


def _only(records: Records, key: str) -> Mapping[str, Any]:
    if len(records.rows) != 1 or key not in records.rows[0]:
        raise InputError(
            f"{records.label} is not a rank_eval {'request' if key == 'requests' else 'response'}",
            found=(
                f"{counted(len(records.rows), 'record')}, the first with {some(records.rows[0], 5)}"
            ),
            hint="first the request (requests[].ratings), then the response (details)",
        )
    return records.rows[0]
