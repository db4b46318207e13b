"""The query-blind ceiling: how far one constant ranking gets on a benchmark.

The strongest system that never reads the query returns one ranking to everybody. Its score is a
property of the qrels alone: no run is needed, and no run's null means can lie above it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd

from falsify_adapters.blind import (
    Bound,
    best_constant,
    best_ranking,
    constant_scores,
    drawn_bound,
    each_query,
    each_set_once,
    mean_score,
)
from falsify_adapters.coded import Coded, code_qrels
from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.frames import as_qrels
from falsify_adapters.kernels import Kernel
from falsify_adapters.measures import Measure, make_kernel, parse_measure
from falsify_adapters.notes import Note, counted
from falsify_adapters.results import plain


@dataclass(frozen=True)
class Ceiling:
    """The best score of a constant ranking on one benchmark.

    Parameters
    ----------
    measure : str
        As ir-measures prints it.
    score : float
        What `ranking` scores, the mean over all queries of the qrels.
    kind : {"exact", "lower bound"}
        Whether no constant ranking scores higher, or some may.
    upper : float
        No constant ranking scores higher than this; `score` itself if that is exact.
    ranking : tuple of str
        Document ids, best first, as deep as the measure looks.
    bounds : dict of str to Bound
        Under "A", "B", "D": what no run's expected score under that null can exceed. "D" is for
        gold drawn document by document; where whole gold sets are drawn, "A" holds for it too.
    n_queries, n_documents : int
        Queries of the qrels, and documents that are relevant to any of them.
    effective_documents : float
        Exponential of the entropy of the popularity: how many equally popular documents would
        spread the answers as thin.
    largest_popularity : int
        For how many queries the most popular document is relevant.
    top_share : float
        Share of `score` that the first document of `ranking` earns alone; NaN if the score is 0.
    remarks : tuple of str
        What is to be said about this measure.
    warnings : tuple of Note
        About the qrels.
    """

    measure: str
    score: float
    kind: Literal["exact", "lower bound"]
    upper: float
    ranking: tuple[str, ...] = field(repr=False)
    bounds: Mapping[str, Bound] = field(repr=False)
    n_queries: int
    n_documents: int
    effective_documents: float
    largest_popularity: int
    top_share: float
    remarks: tuple[str, ...] = field(default=(), repr=False)
    warnings: tuple[Note, ...] = field(default=(), repr=False)

    def to_dict(self, *, ranks: int = 10) -> dict[str, Any]:
        """Return the figures, ready for JSON, with the first `ranks` documents of the ranking."""
        figures = {name: getattr(self, name) for name in self.__dataclass_fields__}
        figures["ranking"] = self.ranking[:ranks]
        figures["bounds"] = {name: asdict(bound) for name, bound in self.bounds.items()}
        figures["warnings"] = [asdict(note) for note in self.warnings]
        return plain(figures)

    def _repr_html_(self) -> str:
        rows = [{"": f"ceiling ({self.kind})", "value": self.score}]
        rows += [
            {"": f"E[{name}] at most ({bound.kind})", "value": bound.value}
            for name, bound in self.bounds.items()
        ]
        table = pd.DataFrame(rows).to_html(index=False, border=0, float_format="{:.4f}".format)
        return (
            f"<p>Query-blind ceiling, {self.measure}, {counted(self.n_queries, 'query')}</p>{table}"
        )


def query_blind_ceiling(
    qrels: Any,
    measure: str | Measure = "nDCG@10",
    *,
    absent_gold: frozenset[str] = frozenset(),
) -> Ceiling:
    """Return the best score that a ranking reaches which is the same for every query.

    Parameters
    ----------
    qrels : DataFrame, mapping, or iterable of namedtuples
        As :func:`falsify_adapters.frames.as_qrels` takes them.
    measure : str or ir_measures.Measure
        What the gate can grade. Exact for measures that add up over documents (nDCG, P, R, SetP,
        SetR) and wherever the bounds meet; for others a ranking that is good, and an upper bound.
    absent_gold : frozenset of str
        Relevant documents that the corpus lacks: no ranking can hold them.

    Returns
    -------
    Ceiling

    Raises
    ------
    InputError
        If no query has a relevant document.
    MeasureError
        If the gate cannot grade the measure.

    Examples
    --------
    >>> qrels = {"q1": {"d1": 1}, "q2": {"d1": 1, "d2": 1}, "q3": {"d3": 1}}
    >>> ceiling = query_blind_ceiling(qrels, "R@1")
    >>> ceiling.score, ceiling.kind, ceiling.ranking
    (0.5, 'exact', ('d1',))
    >>> sorted(ceiling.bounds), round(ceiling.bounds["B"].value, 4)
    (['A', 'B', 'D'], 0.5)
    """
    notes: list[Note] = []
    parsed = parse_measure(measure)
    frame = as_qrels(qrels, notes=notes)
    coded, ids = code_qrels(frame, corpus_size=len(frame), absent_gold=absent_gold)
    return coded_ceiling(coded, make_kernel(parsed, coded.profiles), ids, str(parsed), notes)


@dataclass(frozen=True)
class HeldOut:
    """What a constant ranking scores on queries that it was not made from.

    Parameters
    ----------
    measure : str
        As ir-measures prints it.
    score : float
        Mean of `scores`.
    scores : tuple of float
        One per repeat.
    fitted_on : str
        "random halves", or what the ranking was made from.
    seed : int or None
        Of the random halves.
    """

    measure: str
    score: float
    scores: tuple[float, ...] = field(repr=False)
    fitted_on: str = "random halves"
    seed: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures, ready for JSON."""
        return plain(asdict(self))


def held_out_ceiling(
    qrels: Any,
    measure: str | Measure = "nDCG@10",
    *,
    fit: Any = None,
    fitted_on: str = "other qrels",
    repeats: int = 20,
    seed: int = 0,
    absent_gold: frozenset[str] = frozenset(),
) -> HeldOut:
    """Return what the best constant ranking scores on queries that it has not seen.

    The ceiling itself knows all answers; this is what of it carries over to new queries. The rest
    is memorised.

    Parameters
    ----------
    qrels, measure, absent_gold
        As for :func:`query_blind_ceiling`.
    fit : DataFrame, mapping, or iterable of namedtuples, optional
        Qrels of other queries over the same documents (a train split), from which the ranking is
        made. Without them it is made from a random half of the queries and scored on the other
        half, `repeats` times.
    fitted_on : str
        What to call `fit`.
    repeats, seed : int
        Number of random halves, and their seed.

    Raises
    ------
    InputError
        If there is only one query, or nothing to make a ranking from.

    Examples
    --------
    >>> same = {f"q{i}": {"d1": 1} for i in range(10)}
    >>> own = {f"q{i}": {f"d{i}": 1} for i in range(10)}
    >>> held_out_ceiling(same, "P@1").score, held_out_ceiling(own, "P@1").score
    (1.0, 0.0)
    """
    if repeats < 1:
        raise UsageError("repeats must be at least 1", found=str(repeats))
    parsed = parse_measure(measure)
    coded, ids = code_qrels(as_qrels(qrels, notes=[]), 1, absent_gold=absent_gold)
    kernel = make_kernel(parsed, coded.profiles)
    if fit is not None:
        ranking = _ranking_from(fit, parsed, ids, absent_gold)
        score = float(constant_scores(coded, kernel, ranking).mean())
        return HeldOut(str(parsed), score, (score,), fitted_on)
    n = coded.n_queries
    if n < 2:
        raise InputError("one query cannot be cut into halves", found=f"{n} query")
    rng = np.random.default_rng([seed, n])
    scores = []
    for _ in range(repeats):
        order = rng.permutation(n)
        weight = np.zeros(n)
        weight[order[: n // 2]] = 1.0 / (n // 2)
        ranking = best_ranking(coded, kernel, weight)
        scores.append(float(constant_scores(coded, kernel, ranking)[order[n // 2 :]].mean()))
    return HeldOut(str(parsed), float(np.mean(scores)), tuple(scores), seed=seed)


def _ranking_from(fit: Any, measure: Measure, ids: Any, absent_gold: frozenset[str]) -> Any:
    """Return the best ranking for other qrels, as positions among `ids`; -1 for other documents."""
    coded, fit_ids = code_qrels(as_qrels(fit, notes=[]), 1, absent_gold=absent_gold)
    if not len(coded.gold_doc):
        raise InputError("no query of the fitted qrels has a relevant document")
    kernel = make_kernel(measure, coded.profiles)
    ranking = best_ranking(coded, kernel, each_query(coded))
    return pd.Index(ids).get_indexer(fit_ids[ranking])


def coded_ceiling(
    coded: Coded,
    kernel: Kernel,
    doc_ids: Any,
    measure: str,
    notes: list[Note] | tuple[Note, ...] = (),
) -> Ceiling:
    """Return the ceiling of qrels in integer codes: :func:`query_blind_ceiling` after reading.

    Parameters
    ----------
    coded : Coded
        The qrels; a run in it plays no part.
    kernel : Kernel
        The measure.
    doc_ids : sequence of str
        Id of each document of `coded`.
    measure : str
        The measure's name.
    notes : list of Note
        Warnings about the qrels.
    """
    if not len(coded.gold_doc):
        raise InputError(
            "no query has a relevant document", found=counted(coded.n_queries, "query")
        )
    weight = each_query(coded)
    best = best_constant(coded, kernel, weight)
    alone = mean_score(coded, kernel, best.ranking[:1], weight)
    share = coded.popularity / coded.popularity.sum()
    return Ceiling(
        measure=measure,
        score=best.score,
        kind="exact" if best.bound.kind == "exact" else "lower bound",
        upper=best.bound.value,
        ranking=tuple(doc_ids[best.ranking].tolist()),
        bounds={
            "A": best.bound,
            "B": best_constant(coded, kernel, each_set_once(coded)).bound,
            "D": drawn_bound(coded, kernel),
        },
        n_queries=coded.n_queries,
        n_documents=coded.n_docs,
        effective_documents=float(np.exp(-(share * np.log(share)).sum())),
        largest_popularity=int(coded.popularity.max()),
        top_share=alone / best.score if best.score > 0 else math.nan,
        remarks=_remarks(measure, kernel, best.bound),
        warnings=tuple(notes),
    )


def _remarks(measure: str, kernel: Kernel, bound: Bound) -> tuple[str, ...]:
    remarks = []
    if bound.kind != "exact":
        remarks.append(
            f"{measure} does not add up over documents: the ceiling lies between the score of the"
            f" ranking found and {bound.value:.4f} ({bound.how})"
        )
    if kernel.cutoff is None:
        remarks.append(f"{measure} has no cutoff: the ranking holds every relevant document")
    return tuple(remarks)
