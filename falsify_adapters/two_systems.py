"""Two systems on the same queries: which is better, and by more than the nulls explain.

A comparison has a verdict of its own and never a PASS: a system may be better than another one
while neither score means anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any, Literal

import numpy as np
import pandas as pd

from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import FloatArray
from falsify_adapters.gate.grading import ENOUGH_EQUAL, Graded, grade
from falsify_adapters.gate.warnings import degenerate_benchmark
from falsify_adapters.measures import Measure, check_grade, parse_measure
from falsify_adapters.notes import Note, counted, some
from falsify_adapters.paired import cohens_d, holm, sign_flip_test
from falsify_adapters.provenance import one_blas_thread, with_frames
from falsify_adapters.resampling import BOUNDED_DIFFERENCE, ROUNDING, bootstrap_t
from falsify_adapters.results import NULLS, GateConfig, plain

Comparative = Literal["BETTER", "WORSE", "NO DIFFERENCE", "UNDER-NS"]

#: What each verdict says; PASS is none of them.
MEANINGS: dict[Comparative, str] = {
    "BETTER": "the candidate scores more: the adjusted p-value is at most alpha",
    "WORSE": "the candidate scores less: the adjusted p-value is at most alpha",
    "NO DIFFERENCE": "both score the same on every query",
    "UNDER-NS": "the queries cannot tell which one scores more",
}
#: Random sign patterns where there are too many to count all.
N_FLIPS = 10_000
#: N times the most by which one query can move a difference of two scores, and of two deltas.
SCORE_REACH, DELTA_REACH = 2.0, 2 * BOUNDED_DIFFERENCE


@dataclass(frozen=True)
class Beyond:
    """The candidate's delta against one null, minus the baseline's.

    Parameters
    ----------
    difference : float
        What the candidate gains beyond what the null gains with it.
    low, high : float
        Its interval; NaN where it is unknown.
    """

    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class Comparison:
    """A candidate beside a baseline: same queries, same judgements, one measure.

    Parameters
    ----------
    baseline, candidate : str
        The systems' names.
    n_queries, n_units : int
        Evaluated queries, and the groups of them that vary together (clusters, blocks).
    baseline_score, candidate_score, difference : float
        Means over all evaluated queries, and candidate minus baseline.
    low, high : float
        Interval of the difference, confidence ``1 - alpha``; NaN where it is unknown (few
        queries, all alike).
    p_value, p_holm : float
        Sign-flip permutation test, two-sided; the second one adjusted for all candidates that
        were compared at once.
    exact : bool
        Whether all patterns of signs were counted.
    cohens_d : float
        For paired data, over queries; NaN where the differences do not vary.
    n_candidates : int
        Candidates over which `p_holm` is adjusted.
    patterns : int
        Patterns of signs that were looked at.
    better, worse, equal : int
        Queries on which the candidate scores more, less, the same.
    nulls : dict of str to Beyond
        Differences of the deltas, each interval with the gate's confidence (``1 - alpha/4``).
    beyond_nulls : bool or None
        Whether the candidate gains more than each null gains with it: True if all four intervals
        lie above 0, False if one does not reach above 0, None if the queries cannot tell.
    verdict : {"BETTER", "WORSE", "NO DIFFERENCE", "UNDER-NS"}
        See :data:`MEANINGS`.
    reason : str
        One sentence that says why.
    settings, provenance : mapping
        Those of the gate; and of the qrels and both runs, their files and frames.
    per_query : DataFrame
        ``query_id, baseline, candidate, difference``.
    """

    benchmark: str | None
    split: str | None
    task: str | None
    subset: str | None
    measure: str
    baseline: str
    candidate: str
    n_queries: int
    n_units: int
    baseline_score: float
    candidate_score: float
    difference: float
    low: float
    high: float
    p_value: float
    p_holm: float
    n_candidates: int
    exact: bool
    patterns: int
    cohens_d: float
    better: int
    worse: int
    equal: int
    nulls: dict[str, Beyond]
    beyond_nulls: bool | None
    verdict: Comparative
    reason: str
    warnings: tuple[Note, ...]
    settings: Mapping[str, Any] = field(repr=False)
    provenance: Mapping[str, Any] = field(repr=False)
    per_query: pd.DataFrame = field(repr=False, compare=False)
    kind: Literal["comparison"] = "comparison"
    role: Literal["comparison"] = "comparison"

    def to_dict(self) -> dict[str, Any]:
        """Return the figures, ready for JSON; what is undefined is None."""
        names = [name for name in self.__dataclass_fields__ if name != "per_query"]
        figures = {name: getattr(self, name) for name in names}
        figures["nulls"] = {name: asdict(null) for name, null in self.nulls.items()}
        figures["warnings"] = [asdict(note) for note in self.warnings]
        return plain({"kind": figures.pop("kind"), "role": figures.pop("role"), **figures})

    def to_frame(self) -> pd.DataFrame:
        """Return one row for the score and one per null: difference and interval."""
        rows = [{"of": "score", **asdict(Beyond(self.difference, self.low, self.high))}]
        rows += [{"of": f"delta {name}", **asdict(null)} for name, null in self.nulls.items()]
        frame = pd.DataFrame(rows)
        frame.insert(0, "candidate", self.candidate)
        frame.insert(0, "baseline", self.baseline)
        return frame

    def _repr_html_(self) -> str:
        table: str = self.to_frame().to_html(index=False, border=0, float_format="{:z.4f}".format)
        return table


@one_blas_thread
def compare_systems(
    baseline: Evaluation,
    candidates: Evaluation | Sequence[Evaluation],
    measure: str | Measure = "nDCG@10",
    config: GateConfig | None = None,
    *,
    n_flips: int = N_FLIPS,
) -> list[Comparison]:
    """Compare candidates with a baseline, query by query.

    Parameters
    ----------
    baseline : Evaluation
        The system to beat.
    candidates : Evaluation or sequence of Evaluation
        The other systems, on the same judgements. The p-values are adjusted over all of them
        (Holm 1979).
    measure : str or ir_measures.Measure
        As for :func:`falsify_adapters.gate.run_gate`.
    config : GateConfig, optional
        `alpha`, `n_boot`, `n_trials`, `seed` and how the nulls are drawn; `tau` plays no part.
    n_flips : int
        Random sign patterns where more than 16 queries differ.

    Returns
    -------
    list of Comparison
        One per candidate, in order.

    Raises
    ------
    InputError
        If a candidate was scored with other qrels or on another corpus.
    UsageError
        If there is no candidate, or the queries hang together in different ways.

    Notes
    -----
    A judged query that one of the systems does not answer counts 0 for it, whatever the other
    one did; a warning names it. Clusters and blocks of the queries flip their signs together, and
    are resampled together.

    Examples
    --------
    >>> qrels = {f"q{i}": {f"d{i}": 1} for i in range(30)}
    >>> old = {f"q{i}": {"d0": 1.0, f"d{i}": 0.5} for i in range(30)}
    >>> new = {f"q{i}": {f"d{i}": 1.0, "d0": 0.5} for i in range(30)}
    >>> first = Evaluation.create(old, qrels, corpus_size=999, system="old")
    >>> (found,) = compare_systems(first, first.with_run(new, system="new"), "RR@10")
    >>> round(found.difference, 4), found.verdict, found.better, found.equal
    (0.4833, 'BETTER', 29, 1)
    """
    config = config or GateConfig()
    tested = [candidates] if isinstance(candidates, Evaluation) else list(candidates)
    if not tested:
        raise UsageError("there is no candidate to compare", hint="give at least one")
    if n_flips < 100:
        raise UsageError("n_flips must be at least 100", found=str(n_flips))
    parsed = parse_measure(measure)
    check_grade(parsed, baseline.qrels)
    for candidate in tested:
        check_comparable(baseline, candidate)
    old = grade(baseline, parsed, config)
    pairs = [
        _Pair(baseline, one, old, grade(one, parsed, config), config, n_flips) for one in tested
    ]
    adjusted = holm([pair.test.p_value for pair in pairs])
    return [
        pair.comparison(str(parsed), p, len(pairs)) for pair, p in zip(pairs, adjusted, strict=True)
    ]


def check_comparable(baseline: Evaluation, candidate: Evaluation) -> None:
    """Refuse two evaluations that differ in more than the run.

    Raises
    ------
    InputError, UsageError
        As :func:`compare_systems` does.
    """
    columns = ["query_id", "doc_id", "relevance"]
    first, second = (e.qrels[columns].astype(object) for e in (baseline, candidate))
    if baseline.query_ids != candidate.query_ids or not first.equals(second):
        raise InputError(
            "the baseline was scored with other qrels",
            found=f"{baseline.system} on {_judged(baseline)}, {candidate.system} on"
            f" {_judged(candidate)}",
            hint="score both runs on the same qrels: a change of the judgements is no change of"
            " the system",
        )
    sizes = [(e.corpus_size, e.pool_sizes) for e in (baseline, candidate)]
    # estimated sizes are no statement about the corpus
    estimated = "estimated" in (baseline.corpus_size_source, candidate.corpus_size_source)
    if sizes[0] != sizes[1] and not estimated:
        raise InputError(
            "the baseline was scored on another corpus",
            found=f"{baseline.corpus_size} and {counted(candidate.corpus_size, 'document')}",
        )
    if baseline.dependence != candidate.dependence:
        raise UsageError("baseline and candidate name different clusters, blocks or strata")


def _judged(evaluation: Evaluation) -> str:
    qrels = evaluation.provenance.get("qrels", {})
    named = f"{qrels['name']}: " if "name" in qrels else ""
    return (
        f"{named}{counted(len(evaluation.qrels), 'judgement')} of"
        f" {counted(evaluation.n_queries, 'query')}"
    )


class _Pair:
    """A candidate and the baseline, graded."""

    def __init__(
        self,
        baseline: Evaluation,
        candidate: Evaluation,
        old: Graded,
        new: Graded,
        config: GateConfig,
        n_flips: int,
    ) -> None:
        self.baseline, self.candidate = baseline, candidate
        self.old, self.new, self.config = old, new, config
        difference = new.own - old.own
        self.differences = np.where(np.abs(difference) < ROUNDING, 0.0, difference)
        self.sums = new.units.sums(self.differences)
        self.test = sign_flip_test(self.sums, n_flips=n_flips, seed=config.seed)

    @property
    def n_units(self) -> int:
        return len(self.sums)

    def comparison(self, measure: str, p_holm: float, n_candidates: int) -> Comparison:
        notes = list(self._notes())
        score = self._intervals(
            self.differences[:, None],
            np.array([self.differences.mean()]),
            np.zeros(1),
            self.config.alpha,
            SCORE_REACH,
        )[0]
        nulls = self._beyond()
        verdict = self._verdict(score, p_holm, notes)
        beyond = _beyond_all(nulls)
        reason = self._reason(verdict, score, p_holm, n_candidates, beyond)
        known = self.candidate
        return Comparison(
            benchmark=known.benchmark,
            split=known.split,
            task=known.task,
            subset=known.subset,
            measure=measure,
            baseline=self.baseline.system,
            candidate=known.system,
            n_queries=len(self.differences),
            n_units=self.n_units,
            baseline_score=self.old.score,
            candidate_score=self.new.score,
            difference=score.difference,
            low=score.low,
            high=score.high,
            p_value=self.test.p_value,
            p_holm=p_holm,
            n_candidates=n_candidates,
            exact=self.test.exact,
            patterns=self.test.patterns,
            cohens_d=cohens_d(self.differences),
            better=int((self.differences > 0).sum()),
            worse=int((self.differences < 0).sum()),
            equal=int((self.differences == 0).sum()),
            nulls=nulls,
            beyond_nulls=beyond,
            verdict=verdict,
            reason=reason,
            warnings=tuple(notes),
            settings=asdict(self.config),
            provenance=self._provenance(),
            per_query=pd.DataFrame(
                {
                    "query_id": known.query_ids,
                    "baseline": self.old.own,
                    "candidate": self.new.own,
                    "difference": self.differences,
                }
            ),
        )

    def _provenance(self) -> dict[str, Any]:
        """Say where both runs come from; what else is known of the benchmark, once."""
        runs = {"baseline": self.baseline, "candidate": self.candidate}
        files = {
            name: one.provenance["run"] for name, one in runs.items() if "run" in one.provenance
        }
        shared = {key: value for key, value in self.candidate.provenance.items() if key != "run"}
        frames = {name: one.run for name, one in runs.items()}
        return with_frames({**shared, **files}, qrels=self.candidate.qrels, **frames)

    def _beyond(self) -> dict[str, Beyond]:
        old, new = self.old, self.new
        influence = np.stack([new.draws[k].influence - old.draws[k].influence for k in NULLS], 1)
        delta = np.array([new.nulls[k].delta - old.nulls[k].delta for k in NULLS])
        delta[np.abs(delta) < ROUNDING] = 0.0
        errors = [[one.nulls[k].mean_error for k in NULLS] for one in (old, new)]
        error = np.sqrt((np.array(errors) ** 2).sum(axis=0))
        # the same ranking meets the same draws: its trials' noise cancels
        error[(np.abs(influence).max(axis=0) < ROUNDING) & (delta == 0)] = 0.0
        found = self._intervals(influence, delta, error, self.config.alpha_each, DELTA_REACH)
        return dict(zip(NULLS, found, strict=True))

    def _intervals(
        self,
        influence: FloatArray,
        estimate: FloatArray,
        error: FloatArray,
        alpha: float,
        reach: float,
    ) -> list[Beyond]:
        units, n_drawn, share = self.new.units.resampling(influence)
        low, high, spread = bootstrap_t(
            units,
            estimate,
            error,
            alpha=alpha,
            n_boot=self.config.n_boot,
            seed=self.config.seed,
            n_drawn=n_drawn,
            largest_share=reach / BOUNDED_DIFFERENCE * (share or 1 / math.sqrt(len(influence))),
        )
        settled = (spread > 0) | (estimate == 0) | (self.n_units >= ENOUGH_EQUAL)
        settled &= self.n_units > 1
        ends = np.where(settled, [low, high], np.nan).T
        return [Beyond(float(e), *map(float, pair)) for e, pair in zip(estimate, ends, strict=True)]

    def _notes(self) -> Iterable[Note]:
        yield from degenerate_benchmark(self.new)
        for lacking, other in (
            (self.baseline, self.candidate),
            (self.candidate, self.baseline),
        ):
            missing = sorted(set(other.run["query_id"]) - set(lacking.run["query_id"]))
            if missing:
                yield Note(
                    "W-UNEQUAL-QUERIES",
                    f"{lacking.system} lacks {some(missing)}, which {other.system} answers: each"
                    f" counts as 0 for {lacking.system}",
                )

    def _verdict(self, score: Beyond, p_holm: float, notes: Sequence[Note]) -> Comparative:
        if not self.differences.any():
            return "NO DIFFERENCE"
        # one fact, however many queries ask for it
        if any(note.code == "W-BENCHMARK-DEGENERATE" for note in notes) or self.n_units == 1:
            return "UNDER-NS"
        if p_holm > self.config.alpha:
            return "UNDER-NS"
        return "BETTER" if score.difference > 0 else "WORSE"

    def _reason(
        self,
        verdict: Comparative,
        score: Beyond,
        p_holm: float,
        n_candidates: int,
        beyond: bool | None,
    ) -> str:
        old, new = self.baseline.system, self.candidate.system
        if verdict == "NO DIFFERENCE":
            return f"{new} and {old} score the same on every query"
        holm_words = f" (Holm over {n_candidates})" if n_candidates > 1 else ""
        head = (
            f"{new} scores {abs(score.difference):.4f} {'more' if score.difference > 0 else 'less'}"
            f" than {old}{_bracket(score)}, p = {p_holm:.3g}{holm_words}"
        )
        if verdict == "UNDER-NS":
            return f"{head}; {self._why_open()}"
        if verdict == "WORSE":
            return head
        return f"{head}; {_EXPLAINED[beyond]}"

    def _why_open(self) -> str:
        if self.n_units == 1:
            return "one query, or one cluster of them, decides nothing"
        if self.test.smallest > self.config.alpha:
            return (
                f"with {counted(int((self.sums != 0).sum()), 'difference')} the smallest p that"
                " any result"
                f" can have is {self.test.smallest:.3g}: too few queries to tell"
            )
        if len(self.new.coded.set_query) == 1:
            return "all queries ask for the same relevant documents: one fact decides nothing"
        return "the queries cannot tell which one scores more"


_EXPLAINED = {
    True: "no null gains as much",
    False: "a null gains as much: this is not for reading the queries better",
    None: "whether that is more than the nulls gain, the queries cannot tell",
}


def _bracket(one: Beyond) -> str:
    return "" if math.isnan(one.low) else f" [{one.low:z.4f}, {one.high:z.4f}]"


def _beyond_all(nulls: Mapping[str, Beyond]) -> bool | None:
    if all(null.low > 0 for null in nulls.values()):
        return True
    return False if any(null.high <= 0 for null in nulls.values()) else None


@dataclass(frozen=True)
class SubsetMeans:
    """Means of two systems' reported scores over the subsets that both have.

    Parameters
    ----------
    subsets : tuple of str
        What is averaged.
    baseline, candidate, difference : float
        Means, and candidate minus baseline. Bare scores have no queries, hence no test.
    notes : tuple of Note
        Which subsets were left out.
    """

    subsets: tuple[str, ...]
    baseline: float
    candidate: float
    difference: float
    notes: tuple[Note, ...] = ()


def compare_reported(
    baseline: Mapping[str, float], candidate: Mapping[str, float], *, common_only: bool = False
) -> SubsetMeans:
    """Average reported scores, such as MTEB's per language, over the same subsets for both.

    Parameters
    ----------
    baseline, candidate : mapping of str to float
        Score of each subset.
    common_only : bool
        Leave out what one of them lacks, with a warning, instead of refusing.

    Raises
    ------
    InputError
        If a subset is missing on one side and `common_only` is False, if none is common, or a
        score is not a number.

    Examples
    --------
    >>> means = compare_reported({"en": 0.6, "de": 0.5}, {"en": 0.7, "de": 0.5})
    >>> round(means.difference, 6)
    0.05
    """
    common = [name for name in baseline if name in candidate]
    sides = [
        f"{some(missing)} {'is' if len(missing) == 1 else 'are'} only in the {side}"
        for side, missing in (
            ("baseline", [name for name in baseline if name not in candidate]),
            ("candidate", [name for name in candidate if name not in baseline]),
        )
        if missing
    ]
    if not common or (sides and not common_only):
        raise InputError(
            "baseline and candidate have different subsets",
            found="; ".join(sides) or "no subset at all",
            hint="compare the subsets that both have (common_only=True), or run both on all",
        )
    for side in (baseline, candidate):
        bad = [name for name in common if not math.isfinite(side[name])]
        if bad:
            raise InputError("a reported score is not a number", found=f"{bad[0]}: {side[bad[0]]}")
    old, new = (fmean(side[name] for name in common) for side in (baseline, candidate))
    notes = (Note("W-COMMON-SUBSETS", f"{'; '.join(sides)}: left out"),) if sides else ()
    return SubsetMeans(tuple(common), old, new, new - old, notes)
