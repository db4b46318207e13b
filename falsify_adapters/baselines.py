"""Systems to grade against: BM25, and controls whose verdict is known beforehand.

A *control* is a run that the gate must judge rightly: ``popularity``, ``constant`` and ``random``
never read the query and must not pass; ``oracle`` returns the judgements themselves and passes
wherever anything can. Each answers every query of the qrels, as deep as the run it stands beside.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from falsify_adapters.bm25_index import BM25Index, Document, cached_index, fingerprint
from falsify_adapters.coded import code, segment_sums
from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import (
    FloatArray,
    IntArray,
    as_qrels,
    as_run,
    categories,
    codes,
    run_from_codes,
)
from falsify_adapters.kernels import Additive
from falsify_adapters.measures import make_kernel, parse_measure
from falsify_adapters.notes import counted, some
from falsify_adapters.progress import track

CONTROLS = ("popularity", "constant", "random", "oracle")


def bm25(
    documents: Iterable[Document] | Mapping[str, Any],
    queries: Mapping[str, str],
    *,
    k: int = 100,
    k1: float = 0.9,
    b: float = 0.4,
    cache_dir: str | Path | None = None,
    corpus_fingerprint: str | None = None,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Rank documents by BM25 over title and text.

    bm25s' Lucene variant, English stop words and Snowball stemming, words of two letters or more.
    Documents without a word of the query are not returned. Same input, same run: ties are broken
    by doc_id, descending.

    Parameters
    ----------
    documents : iterable of Document, or mapping
        Read once, never held: a generator over a file is fine. A mapping has BEIR's form
        ``{doc_id: {"title": ..., "text": ...}}`` or ``{doc_id: text}``.
    queries : mapping
        ``{query_id: text}``.
    k : int
        Number of documents per query.
    k1, b : float
        BM25's parameters; the defaults are Anserini's.
    cache_dir : path, optional
        Folder in which indexes are kept. Several processes may share it.
    corpus_fingerprint : str, optional
        With `cache_dir`: what identifies the documents, so that they need not be read to find
        their index. Computed from the documents if not given, which reads them twice.
    progress : bool, optional
        Draw progress bars; by default only on a terminal.

    Returns
    -------
    DataFrame
        A run frame (see :func:`falsify_adapters.frames.as_run`).

    Raises
    ------
    InputError
        If no document has a word, or no query shares one with any document.

    Notes
    -----
    Memory, measured on synthetic corpora of FEVER's shape (``tests/benchmarks/bm25_memory.py``):
    indexing peaks at 0.40 GB for a fiftieth of its 5,416,568 documents and at 0.88 GB for a tenth,
    on a straight line 6.3 GB for all of them. The index takes 0.29 GB on disk for a tenth, and is
    memory-mapped for searching (0.42 GB with the pages that 20 queries touched).

    Examples
    --------
    >>> bm25({"d1": "a cat sat", "d2": "a dog ran"}, {"q1": "dogs running", "q2": "cats"})
      query_id doc_id     score
    0       q1     d2  0.364814
    1       q2     d1  0.364814
    """
    if k < 1:
        raise UsageError("k must be at least 1", found=str(k))
    if not (k1 >= 0 and 0 <= b <= 1):
        raise UsageError("BM25 needs k1 >= 0 and 0 <= b <= 1", found=f"k1 {k1}, b {b}")
    corpus = _documents(documents)
    if cache_dir is None:
        index = BM25Index.build(corpus, k1=k1, b=b, progress=progress)
    else:
        if corpus_fingerprint is None:
            if isinstance(corpus, Iterator):
                raise UsageError(
                    "a stream of documents cannot be cached without a corpus_fingerprint",
                    hint="pass something that can be read twice, or name the corpus",
                )
            corpus_fingerprint = fingerprint(corpus)
        index = cached_index(
            corpus,
            k1=k1,
            b=b,
            cache_dir=Path(cache_dir),
            fingerprint=corpus_fingerprint,
            progress=progress,
        )
    return _search_all(index, queries, k, progress)


def controls(
    evaluation: Evaluation,
    measure: Any,
    *,
    seed: int = 0,
    corpus_ids: Iterable[str] | None = None,
) -> Iterator[Evaluation]:
    """Yield the controls that stand beside an evaluated run, one at a time.

    Parameters
    ----------
    evaluation : Evaluation
        The benchmark; its run only says how deep the controls go.
    measure : measure or str
        What ``constant`` is to do best at.
    seed : int
        Seed of ``random``.
    corpus_ids : iterable of str, optional
        The corpus' ids, for ``random`` to draw from.

    Yields
    ------
    Evaluation
        With ``role="control"`` and the control's name as its system.

    Raises
    ------
    UsageError
        If each query has its own documents to choose from and the run does not rank all of them.
    """
    pools = _own_pools(evaluation)
    qrels, absent = evaluation.qrels, evaluation.absent_gold
    depth = int(np.bincount(codes(evaluation.run["query_id"])).max(initial=1))
    for name in CONTROLS:
        if name == "popularity":
            run = popularity(qrels, depth, exclude=absent)
        elif name == "constant":
            run = constant(qrels, measure, depth, exclude=absent)
        elif name == "random" and pools is not None:
            run = _shuffled_pools(pools, seed)
        elif name == "random":
            run = random(
                qrels,
                depth,
                seed=seed,
                corpus_ids=corpus_ids,
                corpus_size=evaluation.corpus_size,
            )
        else:
            run = oracle(qrels, depth, exclude=absent)
        if pools is not None:
            run = as_run(run.merge(pools, on=["query_id", "doc_id"]))
        made = {"computed": name, **({"seed": seed} if name == "random" else {})}
        provenance = {**evaluation.provenance, "run": made}
        yield evaluation.with_run(run, system=name, role="control", provenance=provenance)


def _own_pools(evaluation: Evaluation) -> pd.DataFrame | None:
    """Return the documents that each query chooses from; None if all choose from the corpus."""
    sizes = evaluation.pool_sizes
    if sizes is None:
        return None
    pools = evaluation.run[["query_id", "doc_id"]].astype(object)
    ranked = pools["query_id"].value_counts()
    cut = [query for query, size in sizes.items() if ranked.get(query, 0) < size]
    if cut:
        raise UsageError(
            "controls choose among all of a query's documents, and the run does not rank them all",
            found=f"{some(cut)}",
            hint="leave --top-k away",
        )
    return pools


def _shuffled_pools(pools: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Rank every query's own documents at random."""
    rng = np.random.default_rng(seed)
    return pools.sort_values(["query_id", "doc_id"]).assign(score=rng.random(len(pools)))


def popularity(qrels: Any, depth: int, *, exclude: Collection[str] = ()) -> pd.DataFrame:
    """Rank documents by the number of queries for which they are relevant, for every query alike.

    Parameters
    ----------
    qrels : DataFrame, mapping, or iterable of namedtuples
        The judgements.
    depth : int
        Length of the ranking; fewer if fewer documents are relevant to anything.
    exclude : collection of str
        Documents that cannot be returned, because the corpus lacks them.

    Examples
    --------
    >>> popularity({"q1": {"d1": 1}, "q2": {"d1": 1, "d2": 1}}, depth=2)
      query_id doc_id  score
    0       q1     d1    2.0
    1       q1     d2    1.0
    2       q2     d1    2.0
    3       q2     d2    1.0
    """
    frame = as_qrels(qrels, notes=[])
    return _same_for_all(frame, _popularity_order(frame, exclude)[: _positive(depth)])


def constant(
    qrels: Any, measure: Any, depth: int, *, exclude: Collection[str] = ()
) -> pd.DataFrame:
    """Give every query the one ranking that scores best: the best that can be had without reading.

    For a measure that adds up over documents (nDCG, P, R) this is exact: documents are sorted by
    their mean gain over the queries, each query's gains divided by its normaliser. For any other
    measure it is the popularity order.

    Parameters
    ----------
    qrels : DataFrame, mapping, or iterable of namedtuples
        The judgements.
    measure : ir-measures measure or str
        The measure to be best at.
    depth : int
        Length of the ranking; fewer if fewer documents are relevant to anything.
    exclude : collection of str
        Documents that cannot be returned, because the corpus lacks them.

    Examples
    --------
    One document is relevant to two queries among many others, one to a single query alone: recall
    is served better by the second.

    >>> many = {f"d{i}": 1 for i in range(9)}
    >>> qrels = {"q1": {"common": 1, **many}, "q2": {"common": 1, **many}, "q3": {"rare": 1}}
    >>> constant(qrels, "R@1", depth=1)["doc_id"].unique().tolist()
    ['rare']
    """
    frame = as_qrels(qrels, notes=[])
    worth = _query_blind_worth(frame, measure)
    if worth is None:
        order = _popularity_order(frame, exclude)
    else:
        order = _best_first(frame, worth, exclude)
    return _same_for_all(frame, order[: _positive(depth)])


def random(
    qrels: Any,
    depth: int,
    *,
    seed: int = 0,
    corpus_ids: Iterable[str] | None = None,
    corpus_size: int | None = None,
) -> pd.DataFrame:
    """Draw every query's ranking uniformly from the corpus, without repeats.

    Parameters
    ----------
    qrels : DataFrame, mapping, or iterable of namedtuples
        The judgements; their queries are answered.
    depth : int
        Length of the rankings; fewer if the corpus is smaller.
    seed : int
        Same seed, same run.
    corpus_ids : iterable of str, optional
        The documents to draw from.
    corpus_size : int, optional
        Without `corpus_ids`: the size of the corpus. The judged documents are then taken to be in
        it, and the others get invented ids.

    Examples
    --------
    >>> run = random({"q1": {"d1": 1}}, depth=3, corpus_size=100)
    >>> len(run), run["doc_id"].nunique()
    (3, 3)
    """
    frame = as_qrels(qrels, notes=[])
    names, size = _pool(frame, corpus_ids, corpus_size)
    k = min(_positive(depth), size)
    n_queries = len(frame["query_id"].cat.categories)
    rng = np.random.default_rng(seed)
    drawn = np.stack([rng.choice(size, k, replace=False) for _ in range(n_queries)])
    used, doc_code = np.unique(drawn, return_inverse=True)
    known = frozenset(names)
    doc_ids = [names[i] if i < len(names) else _invented(known, i) for i in used.tolist()]
    return _ranked_run(frame, doc_ids, doc_code.reshape(n_queries, k))


def popularity_sample(
    qrels: Any, depth: int, *, seed: int = 0, exclude: Collection[str] = ()
) -> pd.DataFrame:
    """Draw every query's ranking without repeats, popular documents first and most often.

    The next document of a ranking is drawn with a chance in proportion to the number of queries
    for which it is relevant.

    Parameters
    ----------
    qrels : DataFrame, mapping, or iterable of namedtuples
        The judgements.
    depth : int
        Length of the rankings; fewer if fewer documents are relevant to anything.
    seed : int
        Same seed, same run.
    exclude : collection of str
        Documents that cannot be returned, because the corpus lacks them.

    Examples
    --------
    >>> qrels = {f"q{i}": {"often": 1, f"d{i}": 1} for i in range(50)}
    >>> run = popularity_sample(qrels, depth=1)
    >>> bool(0.35 < (run["doc_id"] == "often").mean() < 0.65)
    True
    """
    frame = as_qrels(qrels, notes=[])
    order = _popularity_order(frame, exclude)
    doc_code = codes(frame["doc_id"])[frame["relevance"].to_numpy() > 0]
    weight = np.bincount(doc_code, minlength=len(categories(frame["doc_id"])))[order]
    k = min(_positive(depth), len(order))
    rng = np.random.default_rng([seed, *b"popularity"])
    # the largest of log(weight) + Gumbel noise, in descending order, are draws without repeats
    log_weight = np.log(weight)
    rows = [
        np.argsort(-(log_weight + rng.gumbel(size=len(order))), kind="stable")[:k]
        for _ in range(len(categories(frame["query_id"])))
    ]
    return _ranked_run(frame, categories(frame["doc_id"]), order[np.stack(rows)])


def shuffled(run: Any, *, seed: int = 0) -> pd.DataFrame:
    """Give every query the ranking of another one: as good a run, for other questions.

    Parameters
    ----------
    run : DataFrame, mapping, or iterable of namedtuples
        At least two queries.
    seed : int
        Same seed, same run.

    Examples
    --------
    >>> shuffled({"q1": {"d1": 1.0}, "q2": {"d2": 1.0}})
      query_id doc_id  score
    0       q1     d2    1.0
    1       q2     d1    1.0
    """
    frame = as_run(run)
    n = len(categories(frame["query_id"]))
    if n < 2:
        raise InputError("nothing can be shuffled", found="a run of one query")
    order = np.random.default_rng([seed, *b"shuffled"]).permutation(n)
    to = np.empty(n, dtype=np.int64)
    to[order] = np.roll(order, 1)  # one round through all queries: none keeps its own
    return run_from_codes(
        list(categories(frame["query_id"])),
        to[codes(frame["query_id"])],
        list(categories(frame["doc_id"])),
        codes(frame["doc_id"]),
        frame["score"].to_numpy(),
    )


def oracle(qrels: Any, depth: int, *, exclude: Collection[str] = ()) -> pd.DataFrame:
    """Return each query's relevant documents, best grade first: the ideal ranking.

    Rankings are filled up with the most popular documents that are not relevant to the query, so
    that they are as deep as the others.

    Parameters
    ----------
    qrels : DataFrame, mapping, or iterable of namedtuples
        The judgements.
    depth : int
        Length of the rankings; fewer if fewer documents are relevant to anything.
    exclude : collection of str
        Documents that cannot be returned, because the corpus lacks them.

    Examples
    --------
    >>> oracle({"q1": {"d1": 1, "d2": 2}, "q2": {"d3": 1}}, depth=2)
      query_id doc_id  score
    0       q1     d2    2.0
    1       q1     d1    1.0
    2       q2     d3    2.0
    3       q2     d2    1.0
    """
    frame = as_qrels(qrels, notes=[])
    filler = _popularity_order(frame, exclude)
    k = min(_positive(depth), len(filler))
    doc_ids = categories(frame["doc_id"])
    usable = _usable(doc_ids, exclude)
    query_code, doc_code = codes(frame["query_id"]), codes(frame["doc_id"])
    grade = frame["relevance"].to_numpy()
    gold = np.flatnonzero((grade > 0) & usable[doc_code])
    gold = gold[np.lexsort((-doc_code[gold], -grade[gold], query_code[gold]))]
    starts = np.searchsorted(query_code[gold], np.arange(len(categories(frame["query_id"])) + 1))
    rankings = np.empty((len(starts) - 1, k), dtype=np.int64)
    for query, (start, stop) in enumerate(pairwise(starts)):
        own = doc_code[gold[start:stop]][:k]
        # k fillers and as many as may be relevant themselves always hold k others
        others = filler[: k + len(own)]
        others = others[~np.isin(others, own)]
        rankings[query] = np.concatenate([own, others])[:k]
    return _ranked_run(frame, doc_ids, rankings)


def _search_all(
    index: BM25Index, queries: Mapping[str, str], k: int, progress: bool | None
) -> pd.DataFrame:
    query_ids: list[str] = []
    doc_ids: list[str] = []
    scores: list[float] = []
    for query_id, text in track(queries.items(), "searching", show=progress):
        if not isinstance(text, str):
            raise InputError(f"query {query_id!r} has no text", found=repr(text)[:80])
        found = index.search(text, k)
        query_ids.extend([query_id] * len(found))
        doc_ids.extend(doc_id for _, doc_id in found)
        scores.extend(score for score, _ in found)
    if not scores:
        raise InputError(
            "BM25 finds nothing",
            found=f"{counted(len(queries), 'query')}, none with a word of any document",
            hint="are queries and corpus in the same language?",
        )
    frame = pd.DataFrame({"query_id": query_ids, "doc_id": doc_ids, "score": scores})
    return as_run(frame, name="the BM25 run")


def _documents(documents: Iterable[Document] | Mapping[str, Any]) -> Iterable[Document]:
    if not isinstance(documents, Mapping):
        return documents
    return [_document(doc_id, content) for doc_id, content in documents.items()]


def _document(doc_id: str, content: Any) -> Document:
    if isinstance(content, str):
        return Document(doc_id, "", content)
    if isinstance(content, Mapping):
        title, text = content.get("title") or "", content.get("text") or ""
        if isinstance(title, str) and isinstance(text, str):
            return Document(doc_id, title, text)
    raise InputError(
        f"document {doc_id!r} has no text",
        found=repr(content)[:80],
        hint='the form is {doc_id: text} or {doc_id: {"title": ..., "text": ...}}',
    )


def _query_blind_worth(qrels: pd.DataFrame, measure: Any) -> FloatArray | None:
    """Return each document's mean normalised gain, or None if the measure does not add up."""
    # only the gold side matters: the run may be any
    run = as_run(qrels[["query_id", "doc_id"]].head(1).assign(score=1.0))
    coded = code(run, qrels, corpus_size=len(qrels))
    kernel = make_kernel(parse_measure(measure), coded.profiles)
    if not isinstance(kernel, Additive):
        return None
    share = kernel.worth(coded.gold_grade, coded.profile_of[coded.gold_query])
    worth = np.zeros(len(categories(qrels["doc_id"])))
    gold_codes = np.unique(codes(qrels["doc_id"])[qrels["relevance"].to_numpy() > 0])
    worth[gold_codes] = segment_sums(share, coded.gold_doc, coded.n_docs) / coded.n_queries
    return worth


def _popularity_order(qrels: pd.DataFrame, exclude: Collection[str]) -> IntArray:
    doc_code = codes(qrels["doc_id"])[qrels["relevance"].to_numpy() > 0]
    n_docs = len(categories(qrels["doc_id"]))
    return _best_first(qrels, np.bincount(doc_code, minlength=n_docs).astype(np.float64), exclude)


def _best_first(qrels: pd.DataFrame, worth: FloatArray, exclude: Collection[str]) -> IntArray:
    """Return the codes of the documents worth something, best first, ties by doc_id descending."""
    doc_ids = categories(qrels["doc_id"])
    usable = np.flatnonzero((worth > 0) & _usable(doc_ids, exclude))
    if not usable.size:
        raise InputError(
            "no control can be made: no relevant document is in the corpus",
            found=counted(len(doc_ids), "judged document"),
        )
    return usable[np.lexsort((-usable, -worth[usable]))]


def _usable(doc_ids: npt.NDArray[Any], exclude: Collection[str]) -> npt.NDArray[np.bool_]:
    return np.asarray(~pd.Index(doc_ids).isin(list(exclude)))


def _same_for_all(qrels: pd.DataFrame, order: IntArray) -> pd.DataFrame:
    n_queries = len(categories(qrels["query_id"]))
    return _ranked_run(qrels, categories(qrels["doc_id"]), np.tile(order, (n_queries, 1)))


def _ranked_run(
    qrels: pd.DataFrame, doc_ids: Sequence[str] | npt.NDArray[Any], rankings: IntArray
) -> pd.DataFrame:
    """Make a run frame of an array with one row of document codes, best first, per query."""
    n_queries, depth = rankings.shape
    query_ids = qrels["query_id"].cat.categories
    frame = pd.DataFrame(
        {
            "query_id": pd.Categorical.from_codes(
                np.repeat(np.arange(n_queries), depth), query_ids
            ),
            "doc_id": pd.Categorical.from_codes(rankings.ravel(), pd.Index(doc_ids, dtype=object)),
            "score": np.tile(np.arange(depth, 0, -1), n_queries),
        }
    )
    return as_run(frame, name="the control")


def _pool(
    qrels: pd.DataFrame, corpus_ids: Iterable[str] | None, corpus_size: int | None
) -> tuple[Sequence[str], int]:
    """Return the known documents, sorted, and the number of documents to draw from."""
    if corpus_ids is not None:
        names = sorted(set(corpus_ids))
        return names, len(names)
    judged = list(categories(qrels["doc_id"]))
    if corpus_size is None:
        return judged, len(judged)
    # a corpus smaller than its judgements: draw from as many of them as it holds
    return judged[:corpus_size], corpus_size


def _invented(known: Collection[str], position: int) -> str:
    """Name a document that nobody judged, unlike any judged one."""
    doc_id = f"unjudged-{position}"
    while doc_id in known:
        doc_id += "-"
    return doc_id


def _positive(depth: int) -> int:
    if depth < 1:
        raise UsageError("the depth must be at least 1", found=str(depth))
    return depth
