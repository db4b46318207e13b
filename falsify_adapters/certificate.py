"""What an aggregate score alone can prove, without any rankings.

The score of the best constant ranking bounds the null means of every run. A score that lies tau
above it, and tau above what random documents score, cannot come from a system that never read the
query. A score below it may or may not: the score alone does not tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from falsify_adapters.ceiling import Ceiling, coded_ceiling
from falsify_adapters.coded import code_qrels
from falsify_adapters.errors import MeasureError, UsageError
from falsify_adapters.frames import as_qrels
from falsify_adapters.measures import Measure, make_kernel, measure_depth, parse_measure
from falsify_adapters.notes import Note
from falsify_adapters.nulls import expected_random
from falsify_adapters.provenance import describe_frame, one_blas_thread
from falsify_adapters.resampling import rounded
from falsify_adapters.results import plain

CertificateVerdict = Literal["CERTIFIED", "NOT CERTIFIED", "FAIL"]


#: Said once for all certificates of a report.
WHAT_IT_MEANS = (
    "A certificate compares one reported score with bounds that hold for every run: the point rule"
    " of Definition 1, without an interval. CERTIFIED: no ranking that ignores the query comes"
    " within tau of it. NOT CERTIFIED: one does, so the score alone proves nothing. FAIL: random"
    " documents come within tau of it."
)


@dataclass(frozen=True)
class NullBound:
    """What a null's mean cannot exceed, and so what the difference is at least.

    Parameters
    ----------
    bound : float
        Largest possible mean of the null, over all runs.
    delta : float
        Score minus `bound`: the system's difference is at least this.
    kind : str
        "exact" if some run reaches the bound, else "upper bound".
    """

    bound: float
    delta: float
    kind: str


@dataclass(frozen=True)
class Certificate:
    """What a reported score proves on its own.

    Parameters
    ----------
    measure : str
        As ir-measures prints it.
    score : float
        The reported score.
    tau : float
        The threshold.
    verdict : {"CERTIFIED", "NOT CERTIFIED", "FAIL"}
        See :data:`WHAT_IT_MEANS`.
    reason : str
        One sentence.
    bounds : dict of str to NullBound
        Under "A", "B", "C", "D"; empty where the score fails whatever the qrels are.
    ceiling : float or None
        The score of the best constant ranking.
    n_queries, corpus_size : int or None
        Of the benchmark, if known.
    corpus_size_source : str or None
        What states the corpus size.
    """

    system: str
    measure: str
    score: float
    tau: float
    verdict: CertificateVerdict
    reason: str
    bounds: Mapping[str, NullBound] = field(default_factory=dict, repr=False)
    ceiling: float | None = None
    n_queries: int | None = None
    corpus_size: int | None = None
    corpus_size_source: str | None = None
    benchmark: str | None = None
    split: str | None = None
    task: str | None = None
    subset: str | None = None
    model: str | None = None
    revision: str | None = None
    warnings: tuple[Note, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    role: Literal["run"] = "run"
    kind: Literal["certificate"] = "certificate"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        first = ("kind", "role", "benchmark", "split", "task", "subset", "model", "revision")
        names = [*first, *(name for name in self.__dataclass_fields__ if name not in first)]
        figures = {name: getattr(self, name) for name in names}
        figures["bounds"] = {name: asdict(bound) for name, bound in self.bounds.items()}
        figures["warnings"] = [asdict(note) for note in self.warnings]
        return dict(plain(figures))

    def _repr_html_(self) -> str:
        import html

        text = f"{self.system}, {self.benchmark or 'benchmark'}, {self.measure}: {self.score:.4f}"
        rows = [{"null": name, **asdict(bound)} for name, bound in self.bounds.items()]
        table = pd.DataFrame(rows).to_html(index=False, border=0, float_format="{:z.4f}".format)
        head = f"<p>{html.escape(text)} → <b>{self.verdict}</b><br>{html.escape(self.reason)}</p>"
        return head + (table if rows else "")


class Certifier:
    """The bounds of one benchmark and measure: computed once, for any number of scores.

    Parameters
    ----------
    qrels : DataFrame, mapping, or iterable of namedtuples
        As :func:`falsify_adapters.frames.as_qrels` takes them.
    measure : str or ir_measures.Measure
        A measure with a closed form for random documents: nDCG, P, R, AP, RR, Success.
    corpus_size : int, optional
        Documents in the corpus; without it the judged ones are counted, which makes random
        documents look better than they are.
    corpus_size_source : str, optional
        What states the size, for the report.
    corpus_ids : frozenset of str, optional
        Tells which relevant documents the corpus lacks.
    notes : iterable of Note
        Warnings from reading the qrels.

    Raises
    ------
    MeasureError
        If the measure has no closed form.

    Examples
    --------
    >>> qrels = {f"q{i}": {f"d{i}": 1} for i in range(40)}
    >>> certifier = Certifier(qrels, "nDCG@10", corpus_size=1000)
    >>> certificate = certifier.certify(0.6)
    >>> certificate.verdict, round(certificate.bounds["A"].bound, 4)
    ('CERTIFIED', 0.1136)
    >>> certifier.certify(0.15).verdict, certifier.certify(0.03).verdict
    ('NOT CERTIFIED', 'FAIL')
    """

    def __init__(
        self,
        qrels: Any,
        measure: str | Measure = "nDCG@10",
        *,
        corpus_size: int | None = None,
        corpus_size_source: str | None = None,
        corpus_ids: frozenset[str] | None = None,
        notes: tuple[Note, ...] = (),
    ) -> None:
        own_notes: list[Note] = []
        frame = as_qrels(qrels, notes=own_notes)
        measure = parse_measure(measure)
        self.measure = str(measure)
        self._frames = {"qrels": describe_frame(frame)}
        judged = len(frame["doc_id"].unique())
        self.estimated = corpus_size is None and corpus_ids is None
        self.corpus_size = len(corpus_ids) if corpus_ids is not None else (corpus_size or judged)
        self.corpus_size_source = "estimated" if self.estimated else corpus_size_source or "given"
        if self.corpus_size < 1:
            raise UsageError("the corpus size must be at least 1", found=str(self.corpus_size))
        if self.estimated:
            own_notes.append(
                Note(
                    "W-CORPUS-ESTIMATED",
                    f"corpus size not given: {judged} judged documents are taken instead, which"
                    " makes null C stronger than it is",
                )
            )
        self.notes = (*notes, *own_notes)
        gold = frame.loc[frame["relevance"] > 0, "doc_id"].unique()
        absent = frozenset() if corpus_ids is None else frozenset(gold) - corpus_ids
        self._coded, self._ids = code_qrels(frame, self.corpus_size, absent_gold=absent)
        self._kernel = make_kernel(measure, self._coded.profiles)
        self._depth = measure_depth(measure) or self.corpus_size
        if not self._kernel.closed_form:
            raise MeasureError(
                f"a score alone certifies nothing under {measure}",
                found="no closed form for random documents",
                hint="nDCG, P, R, AP, RR and Success have one",
            )

    @property
    def n_queries(self) -> int:
        """Number of judged queries."""
        return self._coded.n_queries

    @cached_property
    def ceiling(self) -> Ceiling:
        """The best constant ranking, and the bounds of the label nulls."""
        return coded_ceiling(self._coded, self._kernel, self._ids, self.measure)

    @cached_property
    def random_mean(self) -> float:
        """E[C] for rankings as deep as the measure looks: no shallower run can exceed it."""
        coded = self._coded
        depth = np.full(coded.n_queries, min(self._depth, self.corpus_size))
        means = expected_random(coded, self._kernel, depth)
        return float(means.mean())

    @one_blas_thread
    def certify(
        self, score: float, tau: float = 0.05, *, system: str = "run", **names: Any
    ) -> Certificate:
        """Say what a reported score proves.

        Parameters
        ----------
        score : float
            The reported score, in [0, 1].
        tau : float
            What each difference must reach.
        system : str
            The system's name.
        **names
            Other fields of :class:`Certificate`: ``benchmark``, ``split``, ``provenance``, ...
        """
        _check(score, tau)
        bounds = {
            name: NullBound(bound.value, rounded(score - bound.value), bound.kind)
            for name, bound in self.ceiling.bounds.items()
        }
        delta = rounded(score - self.random_mean)
        bounds["C"] = NullBound(self.random_mean, delta, "exact")
        verdict, reason = self._verdict(score, tau, bounds)
        return Certificate(
            system=system,
            measure=self.measure,
            score=score,
            tau=tau,
            verdict=verdict,
            reason=reason,
            bounds=dict(sorted(bounds.items())),
            ceiling=self.ceiling.score,
            n_queries=self.n_queries,
            corpus_size=self.corpus_size,
            corpus_size_source=self.corpus_size_source,
            warnings=(*self.notes, *names.pop("warnings", ())),
            provenance={**names.pop("provenance", {}), "frames": self._frames},
            **names,
        )

    def _verdict(
        self, score: float, tau: float, bounds: Mapping[str, NullBound]
    ) -> tuple[CertificateVerdict, str]:
        if score < tau or score == 0:
            return "FAIL", hopeless(score, tau)
        random = bounds["C"]
        if not _clears(random.delta, tau) and not self.estimated:
            return "FAIL", (
                f"random documents score {random.bound:.4f}: the difference {random.delta:z.4f} is"
                f" below tau = {tau:g}"
            )
        worst = max("ABD", key=lambda name: bounds[name].bound)
        least = bounds[worst]
        if all(_clears(bound.delta, tau) for bound in bounds.values()):
            return "CERTIFIED", (
                f"no ranking that ignores the query scores above {least.bound:.4f}, which is"
                f" {least.delta:.4f} less, at least tau = {tau:g}"
            )
        if least.bound + tau > 1:
            return "NOT CERTIFIED", (
                f"no score could be: a ranking that never read a query may score"
                f" {least.bound:.4f} here; only the rankings can tell"
            )
        return "NOT CERTIFIED", (
            f"a ranking that never read a query may score {least.bound:.4f}, and only"
            f" {least.bound + tau:.4f} would be certified"
        )


def failed_certificate(
    measure: str, score: float, tau: float = 0.05, *, system: str = "run", **names: Any
) -> Certificate | None:
    """Return the FAIL that follows from a score alone, on any benchmark; None if none does.

    No null mean is below 0, so a score below tau is less than tau above all of them.

    Parameters
    ----------
    measure : str
        As ir-measures prints it.
    score, tau : float
        The reported score and the threshold.
    system : str
        The system's name.
    **names
        Other fields of :class:`Certificate`.

    Examples
    --------
    >>> failed_certificate("nDCG@10", 0.0).verdict
    'FAIL'
    >>> failed_certificate("nDCG@10", 0.4) is None
    True
    """
    _check(score, tau)
    if score >= tau and score > 0:
        return None
    return Certificate(
        system=system,
        measure=measure,
        score=score,
        tau=tau,
        verdict="FAIL",
        reason=hopeless(score, tau),
        **names,
    )


def hopeless(score: float, tau: float) -> str:
    """Say why a score below tau, or of 0, fails on any benchmark."""
    if score == 0:
        return (
            "a score of exactly 0: not one relevant document within the cutoff of any query; such"
            " a score comes from a broken run (wrong ids, an empty index) more often than from a"
            " weak model"
        )
    return f"the score itself is below tau = {tau:g}, and no null mean is below 0"


def _clears(delta: float, tau: float) -> bool:
    return delta >= tau and delta > 0


def _check(score: float, tau: float) -> None:
    if not 0 <= score <= 1:
        raise UsageError("a score must lie in [0, 1]", found=f"{score:g}")
    if not 0 <= tau <= 1:
        raise UsageError("tau must lie in [0, 1]", found=f"{tau:g}")
