"""Evaluation: one system's run on one benchmark, everything that the gate needs to know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from falsify_adapters.agreement import check_documents, check_queries
from falsify_adapters.dependence import Dependence
from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.frames import (
    as_qrels,
    as_run,
    categories,
    codes,
    drop_pairs,
    drop_rows,
    is_among,
    rank_in_query,
)
from falsify_adapters.notes import Note, counted, plural, some

#: Most documents that a corpus may be said to have: whole numbers are exact up to here.
LARGEST_CORPUS = 2**53

CorpusSizeSource = Literal["given", "counted", "estimated"]


@dataclass(frozen=True)
class Evaluation:
    """A run, the qrels it is scored against, and the corpus both refer to.

    Build it with :meth:`create`, which validates; the fields are then taken as they are.

    Parameters
    ----------
    run, qrels : DataFrame
        The common frames (see :mod:`falsify_adapters.frames`).
    corpus_size : int
        Number of documents that the system could have returned.
    corpus_size_source : {"given", "counted", "estimated"}
        "estimated" counts the pooled documents (run and qrels): fewer than the corpus holds, so
        random retrieval looks better than it is, which is conservative.
    absent_gold : frozenset of str
        Relevant documents that the corpus lacks; empty when the corpus' ids are unknown.
    pool_sizes : mapping of str to int, optional
        Number of documents to choose from, by query, where each query has a pool of its own (a
        multiple-choice question's choices); `corpus_size` is then the largest of them.
    dependence : Dependence, optional
        Clusters, strata, or an order in time of the queries.
    system, benchmark, split, task, subset, model, revision : str or None
        Names for the report.
    role : {"run", "control", "baseline"}
        Only a run decides an exit status.
    notes : tuple of Note
        Warnings collected on the way here.
    provenance : mapping
        Where the inputs came from, for the report.
    """

    run: pd.DataFrame = field(repr=False)
    qrels: pd.DataFrame = field(repr=False)
    corpus_size: int
    corpus_size_source: CorpusSizeSource = "given"
    absent_gold: frozenset[str] = field(default=frozenset(), repr=False)
    pool_sizes: Mapping[str, int] | None = field(default=None, repr=False)
    dependence: Dependence | None = field(default=None, repr=False)
    system: str = "run"
    benchmark: str | None = None
    split: str | None = None
    task: str | None = None
    subset: str | None = None
    model: str | None = None
    revision: str | None = None
    role: Literal["run", "control", "baseline"] = "run"
    notes: tuple[Note, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def create(
        cls,
        run: Any,
        qrels: Any,
        *,
        corpus_size: int | None = None,
        corpus_ids: Iterable[str] | None = None,
        keep_self: bool = True,
        top_k: int | None = None,
        exclude: pd.DataFrame | None = None,
        notes: Iterable[Note] = (),
        **names: Any,
    ) -> Evaluation:
        """Validate a run and qrels and join them.

        Parameters
        ----------
        run, qrels : DataFrame, mapping, or iterable of namedtuples
            As :func:`as_run` and :func:`as_qrels` take them.
        corpus_size : int, optional
            Number of documents in the corpus.
        corpus_ids : iterable of str, optional
            The corpus' document ids: gives the size, and tells which relevant documents it lacks.
        keep_self : bool
            If False, documents whose id equals the query's id are removed from the run, as BEIR
            does before scoring.
        top_k : int, optional
            Cut every ranking to this depth, after the removal of self matches and exclusions.
        exclude : DataFrame, optional
            Documents to leave out of the run, per query: columns ``query_id, doc_id``, as
            :func:`falsify_adapters.readers.read_exclusions` returns them.
        notes : iterable of Note
            Warnings from earlier steps.
        **names
            The other fields of :class:`Evaluation`, by name.

        Raises
        ------
        InputError
            If run and qrels share no query, or a query returns more documents than the corpus
            holds.

        Examples
        --------
        >>> evaluation = Evaluation.create(
        ...     {"q1": {"d1": 1.0}}, {"q1": {"d1": 1}}, corpus_size=10, system="mine"
        ... )
        >>> evaluation.n_queries, evaluation.corpus_size, evaluation.corpus_size_source
        (1, 10, 'given')
        """
        collected = list(notes)
        if top_k is not None and top_k < 1:
            raise UsageError("top_k must be at least 1", found=str(top_k))
        run_frame = as_run(run)
        qrels_frame = as_qrels(qrels, notes=collected)
        check_queries(run_frame, qrels_frame, collected)
        run_frame = _judged_queries_only(run_frame, qrels_frame, collected)
        run_frame = _self_matches(run_frame, keep_self, collected)
        if exclude is not None:
            run_frame = _without_excluded(run_frame, exclude, collected)
        if top_k is not None:
            run_frame = drop_rows(run_frame, rank_in_query(codes(run_frame["query_id"])) > top_k)
        _note_queries(run_frame, qrels_frame, collected)
        ids = None if corpus_ids is None else frozenset(map(str, corpus_ids))
        check_documents(run_frame, qrels_frame, collected, corpus_ids=ids)
        size, source = _corpus_size(run_frame, qrels_frame, corpus_size, ids, collected)
        absent = _absent_gold(run_frame, qrels_frame, ids, collected)
        _check_depth(run_frame, size, source)
        return cls(
            run=run_frame,
            qrels=qrels_frame,
            corpus_size=size,
            corpus_size_source=source,
            absent_gold=absent,
            notes=tuple(collected),
            **names,
        )

    @property
    def n_queries(self) -> int:
        """Number of evaluated queries: every query of the qrels."""
        return len(self.qrels["query_id"].cat.categories)

    @property
    def query_ids(self) -> list[str]:
        """The evaluated queries' ids, sorted."""
        return list(self.qrels["query_id"].cat.categories)

    def with_run(self, run: Any, **names: Any) -> Evaluation:
        """Return the same benchmark with another run (a control, a second system)."""
        notes: list[Note] = []
        run_frame = _judged_queries_only(as_run(run), self.qrels, notes)
        _check_depth(run_frame, self.corpus_size, self.corpus_size_source)
        # the other run's file is not where this run came from
        provenance = {key: value for key, value in self.provenance.items() if key != "run"}
        return replace(
            self, run=run_frame, notes=tuple(notes), **{"provenance": provenance, **names}
        )


def _judged_queries_only(run: pd.DataFrame, qrels: pd.DataFrame, notes: list[Note]) -> pd.DataFrame:
    run_queries = run["query_id"].cat.categories
    judged = run_queries.isin(qrels["query_id"].cat.categories)
    if judged.all():
        return run
    extra = run_queries[~judged]
    notes.append(
        Note(
            "W-EXTRA-QUERIES",
            f"{len(extra)} of {counted(len(run_queries), 'query')} of the run"
            f" {plural(len(extra), 'has no judgements and is', 'have no judgements and are')}"
            f" ignored ({some(extra)})",
        )
    )
    return drop_rows(run, ~judged[codes(run["query_id"])])


def _self_matches(run: pd.DataFrame, keep: bool, notes: list[Note]) -> pd.DataFrame:
    query_codes, doc_codes = codes(run["query_id"]), codes(run["doc_id"])
    # position of each query's id among the document ids, -1 if no document is named so
    twin = pd.Index(categories(run["doc_id"])).get_indexer(categories(run["query_id"]))
    own = doc_codes == twin[query_codes]
    if not own.any():
        return run
    n_own, n_queries = int(own.sum()), len(np.unique(query_codes))
    done = "kept" if keep else "removed, as BEIR does"
    notes.append(
        Note(
            "W-SELF-MATCHES",
            f"{n_own} of {counted(n_queries, 'query')}"
            f" {plural(n_own, 'retrieves itself', 'retrieve themselves')} ({done})",
        )
    )
    return run if keep else drop_rows(run, own)


def _without_excluded(run: pd.DataFrame, exclude: pd.DataFrame, notes: list[Note]) -> pd.DataFrame:
    missing = [column for column in ("query_id", "doc_id") if column not in exclude.columns]
    if missing:
        raise InputError(f"the exclusions lack the column {', '.join(missing)}")
    kept = drop_pairs(run, exclude["query_id"], exclude["doc_id"])
    n_dropped = len(run) - len(kept)
    notes.append(
        Note(
            "W-EXCLUDED",
            f"{n_dropped} of the {counted(len(exclude), 'document')} to leave out"
            f" {plural(n_dropped, 'was', 'were')} in the run",
        )
    )
    return kept


def _note_queries(run: pd.DataFrame, qrels: pd.DataFrame, notes: list[Note]) -> None:
    queries = categories(qrels["query_id"])
    answered = is_among(queries, categories(run["query_id"]))
    empty = answered & ~is_among(queries, run["query_id"].unique())
    if empty.any():
        notes.append(
            Note(
                "W-EMPTY-RESULTS",
                f"for {int(empty.sum())} of {counted(len(queries), 'judged query')} the run"
                " returns nothing"
                f" ({some(queries[empty])}); each counts as 0",
            )
        )
    if not answered.all():
        missing = queries[~answered]
        notes.append(
            Note(
                "W-MISSING-QUERIES",
                f"{len(missing)} of {counted(len(queries), 'judged query')}"
                f" {plural(len(missing), 'is', 'are')} not in the run"
                f" ({some(missing)}); each counts as 0",
            )
        )
    relevant = np.zeros(len(queries), dtype=bool)
    relevant[codes(qrels["query_id"])[qrels["relevance"].to_numpy() > 0]] = True
    judged = np.zeros(len(queries), dtype=bool)
    judged[codes(qrels["query_id"])] = True
    if not relevant.any():
        raise InputError(
            "no query has a relevant document",
            found=f"{counted(len(qrels), 'judgement')}, all of them 0 or less",
        )
    if not relevant.all():
        n_bare = int((~relevant).sum())
        bare = queries[~judged]
        detail = f"; {some(bare)} has no judgements at all" if len(bare) else ""
        notes.append(
            Note(
                "W-NO-RELEVANT",
                f"{n_bare} of {counted(len(queries), 'query')} {plural(n_bare, 'has', 'have')} no"
                f" relevant document ({some(queries[~relevant])}) and"
                f" {plural(n_bare, 'counts', 'count')} as 0{detail}",
            )
        )


def _corpus_size(
    run: pd.DataFrame,
    qrels: pd.DataFrame,
    given: int | None,
    ids: frozenset[str] | None,
    notes: list[Note],
) -> tuple[int, CorpusSizeSource]:
    if given is not None:
        return _checked_size(given), "given"
    if ids is not None:
        return len(ids), "counted"
    pooled = len({*run["doc_id"].unique(), *qrels["doc_id"].unique()})
    notes.append(
        Note(
            "W-CORPUS-ESTIMATED",
            f"corpus size not given: {counted(pooled, 'pooled document')}"
            f" {plural(pooled, 'is', 'are')} taken instead, which makes null C stronger than it is",
        )
    )
    return pooled, "estimated"


def _checked_size(given: Any) -> int:
    """Return a corpus size that was given, if it is a number of documents."""
    whole = isinstance(given, (int, float, np.integer, np.floating)) and given % 1 == 0
    if isinstance(given, bool) or not whole:
        raise UsageError("the corpus size must be a whole number", found=repr(given))
    if given < 1:
        raise UsageError("the corpus size must be at least 1", found=str(given))
    if given > LARGEST_CORPUS:
        raise UsageError(f"the corpus size is too large (limit {LARGEST_CORPUS})", found=str(given))
    return int(given)


def _absent_gold(
    run: pd.DataFrame, qrels: pd.DataFrame, ids: frozenset[str] | None, notes: list[Note]
) -> frozenset[str]:
    if ids is None:
        return frozenset()
    strangers = [doc_id for doc_id in run["doc_id"].unique() if doc_id not in ids]
    if strangers:
        raise InputError(
            "the run returns documents that the corpus does not hold",
            found=f"{counted(len(strangers), 'document')} ({some(strangers)})",
            hint="is this a run over another corpus, or another version of it?",
        )
    gold = qrels.loc[qrels["relevance"] > 0, "doc_id"].unique()
    absent = frozenset(doc_id for doc_id in gold if doc_id not in ids)
    if absent:
        notes.append(
            Note(
                "W-GOLD-NOT-IN-CORPUS",
                f"{len(absent)} of {counted(len(gold), 'relevant document')}"
                f" {plural(len(absent), 'is', 'are')} not in the corpus"
                f" ({some(sorted(absent))}): no system can return them",
            )
        )
    return absent


def _check_depth(run: pd.DataFrame, size: int, source: CorpusSizeSource) -> None:
    deepest = int(np.bincount(codes(run["query_id"])).max()) if len(run) else 0
    if deepest > size:
        raise InputError(
            "a query returns more documents than the corpus holds",
            found=f"{counted(deepest, 'document')} for one query, corpus size {size} ({source})",
            hint="check the corpus size",
        )
