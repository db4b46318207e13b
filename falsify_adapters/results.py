"""What the gate takes and gives: frozen settings in, frozen reports out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from falsify_adapters.errors import UsageError, VerdictError
from falsify_adapters.notes import Note

Verdict = Literal["PASS", "FAIL", "UNDER-NS"]
#: Most resamples and trials: their figures have to fit into memory.
LARGEST_COUNT = 10_000_000
NULLS = ("A", "B", "C", "D")

#: One line per null, for people who have not read the method.
NULL_NAMES = {
    "A": "gold sets permuted over queries",
    "B": "gold sets drawn uniformly",
    "C": "random documents",
    "D": "gold drawn by popularity",
}


@dataclass(frozen=True)
class GateConfig:
    """Settings of the gate.

    Parameters
    ----------
    tau : float or "auto"
        Threshold that every delta must clear. "auto" takes the largest luck margin of the four
        nulls, at least 0.05, and needs ``decision="point"``.
    alpha : float
        Overall error level of the intervals (confidence ``1 - alpha``).
    n_boot, n_trials : int
        Bootstrap resamples of queries, and trials of each null.
    seed : int
        Same seed, same numbers.
    permute : {"query", "label"}
        Null A permutes gold sets over queries, or is a bijection over the distinct gold documents
        (what the ``falsify-eval`` library does).
    marginal : {"document", "set"}
        Null D draws documents by popularity, or whole gold sets by frequency.
    decision : {"interval", "point"}
        The verdict asks the whole interval, or the point estimate (Definition 1).
    correction : {"bonferroni", "none"}
        Each of the four intervals has confidence ``1 - alpha/4``, or ``1 - alpha``.
    companion : bool
        Also grade the strict companion measure.
    require_ceiling : bool
        The verdict also asks that the score lies at least tau above the query-blind ceiling, by
        the point: the ceiling is fitted to these very queries.

    Raises
    ------
    UsageError
        If a value makes no sense.

    Examples
    --------
    >>> GateConfig(tau=0.1).tau
    0.1
    """

    tau: float | Literal["auto"] = 0.05
    alpha: float = 0.05
    n_boot: int = 1000
    n_trials: int = 1000
    seed: int = 0
    permute: Literal["query", "label"] = "query"
    marginal: Literal["document", "set"] = "document"
    decision: Literal["interval", "point"] = "interval"
    correction: Literal["bonferroni", "none"] = "bonferroni"
    companion: bool = True
    require_ceiling: bool = False

    def __post_init__(self) -> None:
        if self.tau == "auto":
            if self.decision != "point":
                raise UsageError(
                    'tau="auto" belongs to decision="point"',
                    found=f"decision={self.decision!r}",
                    hint="beside intervals it would count the same noise twice",
                )
        elif not _is_number(self.tau) or not 0 <= self.tau <= 1:
            raise UsageError('tau must lie in [0, 1] or be "auto"', found=repr(self.tau))
        if not _is_number(self.alpha) or not 0 < self.alpha < 1:
            raise UsageError("alpha must lie between 0 and 1", found=repr(self.alpha))
        choices = {
            "permute": ("query", "label"),
            "marginal": ("document", "set"),
            "decision": ("interval", "point"),
            "correction": ("bonferroni", "none"),
        }
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise UsageError(
                    f"{name} must be one of {', '.join(allowed)}", found=repr(getattr(self, name))
                )
        for name in ("companion", "require_ceiling"):
            if not isinstance(getattr(self, name), bool):
                raise UsageError(f"{name} must be True or False", found=repr(getattr(self, name)))
        self._check_counts()

    def _check_counts(self) -> None:
        """Refuse numbers of draws from which nothing could be read at this alpha."""
        if self.least_boot > LARGEST_COUNT:
            raise UsageError(
                "alpha is so small that no number of resamples would do", found=repr(self.alpha)
            )
        leasts = {"n_boot": self.least_boot, "n_trials": self.least_trials, "seed": 0}
        for name, least in leasts.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise UsageError(f"{name} must be a whole number", found=repr(value))
            if value < least:
                beside = "" if name == "seed" else f" at alpha = {self.alpha:g}"
                raise UsageError(f"{name} must be at least {least}{beside}", found=str(value))
            if name != "seed" and value > LARGEST_COUNT:
                raise UsageError(f"{name} is too large (limit {LARGEST_COUNT})", found=str(value))

    @property
    def alpha_each(self) -> float:
        """Error level of each null's interval."""
        return self.alpha / len(NULLS) if self.correction == "bonferroni" else self.alpha

    @property
    def least_trials(self) -> int:
        """Fewest trials with which a p-value can reach `alpha_each`."""
        return max(100, math.ceil(1 / max(self.alpha_each, 1e-300)))

    @property
    def least_boot(self) -> int:
        """Fewest resamples that hold an interval's end: one of them beyond it."""
        return max(100, math.ceil(2 / max(self.alpha_each, 1e-300)))


@dataclass(frozen=True)
class NullResult:
    """The comparison of the system's score with one null.

    Parameters
    ----------
    mean, mean_error : float
        The null's expected score and its Monte Carlo standard error (0 where it is exact).
    delta : float
        Score minus `mean`.
    low, high : float
        Interval of `delta`.
    p_value : float
        ``(1 + #{trial >= score}) / (1 + n_trials)``. A permutation test of 0 for null A; for the
        others it only places the score among the null's draws (Phipson and Smyth 2010).
    luck_margin : float
        The ``1 - alpha/4`` quantile of the trials minus their mean.
    adjusted : float
        ``delta / (best reachable score - mean)``; NaN if no score is above the mean.
    attainable : float
        Largest delta that any system can reach on this benchmark; an upper bound of it where
        `attainable_exact` is False.
    verdict : {"PASS", "FAIL", "UNDER-NS"}
        For this null alone.
    trials : ndarray, shape (n_trials,)
        The null's scores, one per trial.
    """

    mean: float
    mean_error: float
    delta: float
    low: float
    high: float
    p_value: float
    luck_margin: float
    adjusted: float
    attainable: float
    attainable_exact: bool
    verdict: Verdict
    trials: npt.NDArray[np.float64] = field(repr=False, compare=False)

    @property
    def above_zero(self) -> bool:
        """Whether the whole interval lies above 0."""
        return self.low > 0

    def to_dict(self) -> dict[str, Any]:
        """Return the figures without the trials, ready for JSON."""
        figures = asdict(self)
        del figures["trials"]
        return plain({**figures, "above_zero": self.above_zero})


@dataclass(frozen=True)
class Ties:
    """How far the order of tied documents moves the score.

    Parameters
    ----------
    queries : int
        Queries with tied scores that reach into the cutoff.
    low_score, high_score : float
        The score if all ties fall against, or for, the system.
    low_verdict, high_verdict : str
        The gate's verdict in these two cases.
    exact : bool
        False: a higher grade first is not known to be the best order for this measure, so the
        true range may be wider.
    """

    queries: int
    low_score: float
    high_score: float
    low_verdict: Verdict
    high_verdict: Verdict
    exact: bool = True


@dataclass(frozen=True)
class Power:
    """What the interval verdict can show with this many queries.

    Parameters
    ----------
    chance : float
        The chance of a PASS that `minimum_detectable_delta` and `queries` stand for.
    null : str or None
        The null against which a PASS is hardest.
    minimum_detectable_delta : float or None
        True delta from which on a system passes with this chance; None where no interval decides
        (a single query, no spread, a threshold that no system can clear, ``decision="point"``).
    queries : int or None
        Queries of this kind that would decide if the measured deltas are the true ones; None
        where more queries would not help or no null is undecided.
    """

    chance: float
    null: str | None
    minimum_detectable_delta: float | None
    queries: int | None


@dataclass(frozen=True)
class Companion:
    """The strict companion: recall of each query's highest-graded documents.

    Parameters
    ----------
    measure : str
        ``R@k``.
    score : float
        The system's score under it.
    verdict : str
        The gate's verdict under it, the order of ties included, or "not applicable" where no
        system could pass.
    agrees : bool
        False if its verdict is not the one that the report shows for the measure; True where it
        is not applicable.
    nulls : dict of str to NullResult
        As in the main report.
    """

    measure: str
    score: float
    verdict: Literal["PASS", "FAIL", "UNDER-NS", "not applicable"]
    agrees: bool
    nulls: dict[str, NullResult]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures, ready for JSON."""
        return plain(
            {
                "measure": self.measure,
                "score": self.score,
                "verdict": self.verdict,
                "agrees": self.agrees,
                "nulls": {name: null.to_dict() for name, null in self.nulls.items()},
            }
        )


@dataclass(frozen=True)
class GateReport:
    """What the gate found for one system, benchmark and measure.

    Parameters
    ----------
    measure : str
        As ir-measures prints it.
    n_queries : int
        Evaluated queries.
    score, score_answered : float
        Mean over all evaluated queries, and over those that the run answers (what BEIR and MTEB
        print).
    tau : float
        The threshold used.
    verdict : {"PASS", "FAIL", "UNDER-NS"}
        The gate's verdict.
    definition_1 : bool
        The plain point rule: every delta is at least tau.
    nulls : dict of str to NullResult
        Under the keys "A", "B", "C", "D".
    distinct_nulls : int
        How many different expectations the four nulls test on this benchmark.
    reason : str
        One sentence that says why the verdict is what it is.
    ceiling : mapping
        The query-blind ceiling, outside the verdict unless asked for: ``score``, ``kind``,
        ``upper``, ``below`` and ``sentence``.
    per_query : DataFrame
        ``query_id, score`` and the query's expected score under each null (columns A to D).
    power : Power or None
        What so many queries can show; in every UNDER-NS report.
    curve : DataFrame or None
        Widths and verdicts over the number of queries (see
        :func:`falsify_adapters.gate.curve.calibration_curve`), if asked for.
    dependence : mapping or None
        Clusters, blocks and strata of the queries, and how much they widened the intervals (see
        :func:`falsify_adapters.gate.together.dependence_of`).
    """

    role: str
    benchmark: str | None
    split: str | None
    task: str | None
    subset: str | None
    model: str | None
    revision: str | None
    system: str
    measure: str
    n_queries: int
    corpus_size: int
    corpus_size_source: str
    score: float
    score_answered: float
    tau: float
    verdict: Verdict
    definition_1: bool
    reason: str
    nulls: dict[str, NullResult]
    distinct_nulls: int
    companion: Companion | None
    ties: Ties | None
    warnings: tuple[Note, ...]
    settings: Mapping[str, Any] = field(repr=False)
    provenance: Mapping[str, Any] = field(repr=False)
    per_query: pd.DataFrame = field(repr=False, compare=False)
    ceiling: Mapping[str, Any] | None = None
    kind: Literal["gate"] = "gate"
    power: Power | None = None
    curve: pd.DataFrame | None = field(default=None, repr=False, compare=False)
    dependence: Mapping[str, Any] | None = field(default=None, repr=False)

    def raise_for_verdict(self) -> GateReport:
        """Return the report itself, or raise unless the verdict is PASS.

        Raises
        ------
        VerdictError
            With the verdict and the reason.
        """
        if self.verdict != "PASS":
            where = f" on {self.benchmark}" if self.benchmark else ""
            raise VerdictError(
                f"{self.system}{where}, {self.measure}: {self.verdict}", found=self.reason
            )
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, ready for JSON: no NaN, 12 significant digits."""
        out = {
            name: getattr(self, name)
            for name in ("kind", "role", "benchmark", "split", "task", "subset", "model")
        }
        out |= {
            name: getattr(self, name)
            for name in (
                *("revision", "system", "measure", "n_queries", "corpus_size"),
                *("corpus_size_source", "score", "score_answered", "tau", "verdict"),
                *("definition_1", "reason"),
            )
        }
        out["nulls"] = {name: null.to_dict() for name, null in self.nulls.items()}
        out["distinct_nulls"] = self.distinct_nulls
        out["ceiling"] = self.ceiling
        out["companion"] = self.companion.to_dict() if self.companion else None
        out["ties"] = asdict(self.ties) if self.ties else None
        out["power"] = asdict(self.power) if self.power else None
        if self.curve is not None:
            out["curve"] = self.curve.to_dict("records")
        out["dependence"] = self.dependence
        out["warnings"] = [asdict(note) for note in self.warnings]
        out["settings"] = dict(self.settings)
        out["provenance"] = dict(self.provenance)
        return plain(out)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per null with its figures."""
        rows = [{"null": name, **null.to_dict()} for name, null in self.nulls.items()]
        frame = pd.DataFrame(rows)
        frame.insert(0, "measure", self.measure)
        frame.insert(0, "benchmark", self.benchmark)
        frame.insert(0, "system", self.system)
        return frame

    def _repr_html_(self) -> str:
        columns = ["null", "mean", "delta", "low", "high", "p_value", "verdict"]
        table = self.to_frame()[columns].to_html(
            index=False, border=0, float_format="{:z.4f}".format
        )
        title = f"{self.system} · {self.benchmark or 'benchmark'} · {self.measure}"
        head = f"{_escape(title)}: {self.score:.4f} → <b>{self.verdict}</b>"
        return f"<p>{head}<br>{_escape(self.reason)}</p>{table}"


def plain(value: Any) -> Any:
    """Return `value` with plain Python types, floats at 12 significant digits, NaN as None.

    Examples
    --------
    >>> plain({"a": np.float64(1) / 3, "b": float("nan"), "c": (np.int64(2),)})
    {'a': 0.333333333333, 'b': None, 'c': [2]}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return float(f"{number:.12g}") if math.isfinite(number) else None
    return value


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _escape(text: str) -> str:
    import html

    return html.escape(text)
