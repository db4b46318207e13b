"""Grade one run under one measure: nulls, deltas, intervals, verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from falsify_adapters.blind import Best, best_constant, each_query
from falsify_adapters.bounds import Attainable, attainable
from falsify_adapters.coded import Coded, code
from falsify_adapters.errors import UsageError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import FloatArray, IntArray
from falsify_adapters.gate.distinct import coinciding_nulls
from falsify_adapters.gate.fifth_line import verdict_with_ceiling
from falsify_adapters.gate.query_units import Units
from falsify_adapters.gate.verdicts import gate_verdict, null_verdict
from falsify_adapters.kernels import Kernel
from falsify_adapters.measures import (
    IrMeasuresKernel,
    Measure,
    make_kernel,
    measure_depth,
    query_scores,
)
from falsify_adapters.nulls import (
    CrossMatrix,
    NullDraws,
    frequent_sets,
    moved_popularity,
    own_scores,
    permuted_gold,
    permuted_labels,
    popularity_gold,
    random_documents,
    uniform_gold,
)
from falsify_adapters.resampling import (
    ROUNDING,
    bootstrap_t,
    luck_margin,
    mean_ceiling,
    p_value,
    rounded,
)
from falsify_adapters.results import NULLS, GateConfig, NullResult, Verdict

#: Largest difference between a kernel and ir-measures that is rounding.
KERNEL_TOLERANCE = 1e-9
#: Queries (clusters, blocks) from which on equal influence values are taken for what they are.
ENOUGH_EQUAL = 20


@dataclass(frozen=True, eq=False)
class Graded:
    """One measure on one run: all that a report needs of it.

    Parameters
    ----------
    coded : Coded
        The evaluation in integer codes.
    kernel : Kernel
        The measure, checked against ir-measures.
    own : ndarray, shape (n_queries,)
        Score of each query.
    draws : dict of str to NullDraws
        The four nulls.
    nulls : dict of str to NullResult
        The comparison with each.
    standard_errors : dict of str to float
        Of each delta.
    ceiling : tuple of Best and float, or None
        The query-blind ceiling, and how far the ideal ranking lies above it, if the verdict asks.
    tau : float
        The threshold used.
    verdict, reason : str
        Before the order of ties is looked at.
    closed : bool
        Whether no system can pass on this benchmark.
    definition_1 : bool
        The point rule.
    expectations : tuple of tuple of str
        The nulls, grouped by expectation.
    fell_back : bool
        Whether a fast kernel disagreed with ir-measures.
    units : Units
        What was resampled and permuted together.
    reach : Attainable
        What any system can get here.
    """

    coded: Coded
    kernel: Kernel
    own: FloatArray
    draws: dict[str, NullDraws]
    nulls: dict[str, NullResult]
    standard_errors: dict[str, float]
    ceiling: tuple[Best, float] | None
    tau: float
    verdict: Verdict
    reason: str
    closed: bool
    definition_1: bool
    expectations: tuple[tuple[str, ...], ...]
    fell_back: bool
    units: Units
    reach: Attainable

    @property
    def score(self) -> float:
        """Mean over all evaluated queries."""
        return float(self.own.mean())


def grade(evaluation: Evaluation, measure: Measure, config: GateConfig) -> Graded:
    """Grade a run by one measure, as :func:`grade_all` does by several."""
    return grade_all(evaluation, [measure], config)[0]


def grade_all(
    evaluation: Evaluation, measures: Sequence[Measure], config: GateConfig
) -> list[Graded]:
    """Score a run with ir-measures, check the fast kernels against it, and judge the scores.

    All measures are asked for in one call of ir-measures.

    Raises
    ------
    MeasureError
        If the gate cannot grade the measure.
    UsageError
        If labels are to be permuted on an evaluation with strata.
    """
    units = Units.of(evaluation)
    if config.permute == "label" and units.stratum is not None:
        raise UsageError(
            'strata go with permute="query"',
            found='permute="label"',
            hint="labels are renamed over the whole benchmark",
        )
    coded = {depth: coded_to(evaluation, depth) for depth in set(map(measure_depth, measures))}
    scores = query_scores(evaluation.run, evaluation.qrels, *measures)
    return [
        _grade_coded(coded[measure_depth(measure)], measure, own, units, config)
        for measure, own in zip(measures, scores, strict=True)
    ]


def _grade_coded(
    coded: Coded, measure: Measure, own: FloatArray, units: Units, config: GateConfig
) -> Graded:
    kernel = make_kernel(measure, coded.profiles)
    fell_back = False
    # a NaN would compare as neither near nor far
    if not float(np.abs(own_scores(coded, kernel) - own).max()) <= KERNEL_TOLERANCE:
        kernel, fell_back = IrMeasuresKernel(measure, coded.profiles), True
    return judge(coded, kernel, own, units, config, fell_back=fell_back)


def coded_to(evaluation: Evaluation, depth: int | None, order: IntArray | None = None) -> Coded:
    """Return an evaluation in integer codes, the run's rows in this order, cut to a depth."""
    return code(
        evaluation.run,
        evaluation.qrels,
        _pool_sizes(evaluation),
        absent_gold=evaluation.absent_gold,
        depth=depth,
        order=order,
    )


def _pool_sizes(evaluation: Evaluation) -> int | IntArray:
    if evaluation.pool_sizes is None:
        return evaluation.corpus_size
    return np.array([evaluation.pool_sizes[query_id] for query_id in evaluation.query_ids])


def judge(
    coded: Coded,
    kernel: Kernel,
    own: FloatArray,
    units: Units,
    config: GateConfig,
    *,
    fell_back: bool = False,
    like: Graded | None = None,
) -> Graded:
    """Compare scores with the four nulls.

    `like` is the same run in another order of ties: what does not depend on the order, or can be
    told from it, is not computed again.
    """
    draws = _draw_nulls(coded, kernel, own, units, config, like)
    reach = like.reach if like else _reach(coded, kernel, units, config)
    tau = _tau(draws, config)
    nulls, errors = _compare(coded, own, draws, units, reach, tau, config)
    ceiling = None
    if config.require_ceiling:
        best = best_constant(coded, kernel, each_query(coded))
        ceiling = (best, reach.best_score - best.score)
    return Graded(
        coded=coded,
        kernel=kernel,
        own=own,
        draws=draws,
        nulls=nulls,
        standard_errors=errors,
        ceiling=ceiling,
        tau=tau,
        **_decision(nulls, own, units, ceiling, tau, config),
        expectations=coinciding_nulls(coded, kernel, config, stratified=units.stratum is not None),
        fell_back=fell_back,
        units=units,
        reach=reach,
    )


def _reach(coded: Coded, kernel: Kernel, units: Units, config: GateConfig) -> Attainable:
    return attainable(
        coded,
        kernel,
        labels=config.permute == "label",
        sets=config.marginal == "set",
        stratum=units.stratum,
    )


def at_tau(graded: Graded, tau: float, config: GateConfig) -> Graded:
    """Judge the same deltas and intervals at another threshold; nothing is drawn again."""
    settled = _settled(graded.coded, graded.units, graded.standard_errors)
    nulls = {
        name: replace(
            null,
            verdict=null_verdict(null.delta, null.low, null.high, tau, config)
            if settled[name]
            else "UNDER-NS",
        )
        for name, null in graded.nulls.items()
    }
    decision = _decision(nulls, graded.own, graded.units, graded.ceiling, tau, config)
    return replace(graded, nulls=nulls, tau=tau, **decision)


def _decision(
    nulls: dict[str, NullResult],
    own: FloatArray,
    units: Units,
    ceiling: tuple[Best, float] | None,
    tau: float,
    config: GateConfig,
) -> dict[str, Any]:
    """Return the fields of :class:`Graded` that depend on nothing but figures and threshold."""
    verdict, reason = gate_verdict(nulls, units.count(len(own)), tau, config)
    closed = any(null.attainable < tau for null in nulls.values())
    if ceiling is not None and not closed:
        best, room = ceiling
        closed = room < tau
        verdict, reason = verdict_with_ceiling(verdict, reason, best, float(own.mean()), room, tau)
    return {
        "verdict": verdict,
        "reason": reason,
        "closed": closed,
        "definition_1": all(n.delta >= tau and n.delta > 0 for n in nulls.values()),
    }


def _settled(coded: Coded, units: Units, standard_errors: dict[str, float]) -> dict[str, bool]:
    """Say for each null whether its interval means anything: equal values on few queries do not."""
    n = units.count(coded.n_queries)
    enough = n >= ENOUGH_EQUAL or coded.same_rankings()
    return {name: n > 1 and (enough or error > 0) for name, error in standard_errors.items()}


def _draw_nulls(
    coded: Coded,
    kernel: Kernel,
    own: FloatArray,
    units: Units,
    config: GateConfig,
    like: Graded | None,
) -> dict[str, NullDraws]:
    cross = CrossMatrix(coded, kernel)
    n_trials, seed = config.n_trials, config.seed
    by_label = config.permute == "label"
    by_set = config.marginal == "set"
    return {
        "A": permuted_labels(coded, kernel, own, n_trials, seed)
        if by_label
        else permuted_gold(cross, n_trials, seed, units.stratum),
        "B": uniform_gold(cross, n_trials, seed),
        "C": replace(like.draws["C"], influence=own - like.draws["C"].query_means)
        if like
        else random_documents(coded, kernel, own, n_trials, seed),
        "D": frequent_sets(cross, n_trials, seed)
        if by_set
        else _popularity(cross, kernel, config, like),
    }


def _popularity(
    cross: CrossMatrix, kernel: Kernel, config: GateConfig, like: Graded | None
) -> NullDraws:
    moved = None
    if like and kernel.closed_form:
        moved = moved_popularity(cross, kernel, like.draws["D"], like.coded)
    return moved or popularity_gold(cross, kernel, config.n_trials, config.seed)


def _tau(draws: dict[str, NullDraws], config: GateConfig) -> float:
    if config.tau != "auto":
        return float(config.tau)
    margins = [luck_margin(draw.trials, config.alpha_each) for draw in draws.values()]
    return max(0.05, *margins)


def _compare(
    coded: Coded,
    own: FloatArray,
    draws: dict[str, NullDraws],
    units: Units,
    reach: Attainable,
    tau: float,
    config: GateConfig,
) -> tuple[dict[str, NullResult], dict[str, float]]:
    score = float(own.mean())
    delta = np.array([rounded(score - draws[name].mean) for name in NULLS])
    error = np.array([draws[name].mean_error for name in NULLS])
    influence = np.stack([draws[name].influence for name in NULLS], axis=1)
    low, high, standard_error = intervals(influence, delta, error, score, units, config)
    errors = dict(zip(NULLS, standard_error.tolist(), strict=True))
    settled = _settled(coded, units, errors)
    best = {**reach.delta, "C": reach.best_score - draws["C"].mean}
    results = {}
    for i, name in enumerate(NULLS):
        draw = draws[name]
        room = reach.best_score - draw.mean
        results[name] = NullResult(
            mean=draw.mean,
            mean_error=draw.mean_error,
            delta=float(delta[i]),
            low=float(low[i]),
            high=float(high[i]),
            p_value=p_value(score, draw.trials),
            luck_margin=luck_margin(draw.trials, config.alpha_each),
            adjusted=float(delta[i]) / room if room > ROUNDING else math.nan,
            attainable=best[name],
            attainable_exact=reach.exact or name == "C",
            verdict=null_verdict(float(delta[i]), float(low[i]), float(high[i]), tau, config)
            if settled[name]
            else "UNDER-NS",
            trials=draw.trials,
        )
    return results, errors


def intervals(
    influence: FloatArray,
    delta: FloatArray,
    error: FloatArray,
    score: float,
    units: Units,
    config: GateConfig,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the ends of the deltas' intervals and their standard errors, units resampled."""
    resampled, n_drawn, largest_share = units.resampling(influence)
    low, high, standard_error = bootstrap_t(
        resampled,
        delta,
        error,
        alpha=config.alpha_each,
        n_boot=config.n_boot,
        seed=config.seed,
        n_drawn=n_drawn,
        largest_share=largest_share,
    )
    # a null scores at least 0, so no delta exceeds the score
    independent = len(influence) / units.largest()
    high = np.minimum(high, mean_ceiling(score, independent, config.alpha_each))
    return np.maximum(low, -1.0), high, standard_error
