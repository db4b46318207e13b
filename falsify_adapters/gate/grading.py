"""Grade one run under one measure: nulls, deltas, intervals, verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from falsify_adapters.bounds import Attainable, attainable
from falsify_adapters.coded import Coded, code
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import FloatArray
from falsify_adapters.gate.distinct import coinciding_nulls
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
    own_scores,
    permuted_gold,
    permuted_labels,
    popularity_gold,
    random_documents,
    uniform_gold,
)
from falsify_adapters.resampling import ROUNDING, bootstrap_t, luck_margin, p_value
from falsify_adapters.results import NULLS, GateConfig, NullResult, Verdict

#: Largest difference between a kernel and ir-measures that is rounding.
KERNEL_TOLERANCE = 1e-9
#: Queries from which on equal influence values are taken for what they are.
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
    tau : float
        The threshold used.
    verdict, reason : str
        Before the order of ties is looked at.
    definition_1 : bool
        The point rule.
    expectations : tuple of tuple of str
        The nulls, grouped by expectation.
    fell_back : bool
        Whether a fast kernel disagreed with ir-measures.
    """

    coded: Coded
    kernel: Kernel
    own: FloatArray
    draws: dict[str, NullDraws]
    nulls: dict[str, NullResult]
    standard_errors: dict[str, float]
    tau: float
    verdict: Verdict
    reason: str
    definition_1: bool
    expectations: tuple[tuple[str, ...], ...]
    fell_back: bool

    @property
    def score(self) -> float:
        """Mean over all evaluated queries."""
        return float(self.own.mean())


def grade(
    run: pd.DataFrame,
    qrels: pd.DataFrame,
    evaluation: Evaluation,
    measure: Measure,
    config: GateConfig,
) -> Graded:
    """Score a run with ir-measures, check the fast kernel against it, and judge the scores."""
    coded = coded_for(run, qrels, evaluation, measure)
    own = query_scores(run, qrels, measure)
    kernel = make_kernel(measure, coded.profiles)
    fell_back = False
    # a NaN would compare as neither near nor far
    if not float(np.abs(own_scores(coded, kernel) - own).max()) <= KERNEL_TOLERANCE:
        kernel, fell_back = IrMeasuresKernel(measure, coded.profiles), True
    return judge(coded, kernel, own, config, fell_back=fell_back)


def coded_for(
    run: pd.DataFrame, qrels: pd.DataFrame, evaluation: Evaluation, measure: Measure
) -> Coded:
    """Return the integer codes of a run cut to the measure's depth."""
    return code(
        run,
        qrels,
        evaluation.corpus_size,
        absent_gold=evaluation.absent_gold,
        depth=measure_depth(measure),
    )


def judge(
    coded: Coded, kernel: Kernel, own: FloatArray, config: GateConfig, *, fell_back: bool = False
) -> Graded:
    """Compare scores with the four nulls."""
    draws = _draw_nulls(coded, kernel, own, config)
    reach = attainable(
        coded, kernel, labels=config.permute == "label", sets=config.marginal == "set"
    )
    tau = _tau(draws, config)
    nulls, errors = _compare(coded, own, draws, reach, tau, config)
    verdict, reason = gate_verdict(nulls, len(own), tau, config)
    return Graded(
        coded=coded,
        kernel=kernel,
        own=own,
        draws=draws,
        nulls=nulls,
        standard_errors=errors,
        tau=tau,
        verdict=verdict,
        reason=reason,
        definition_1=all(null.delta >= tau and null.delta > 0 for null in nulls.values()),
        expectations=coinciding_nulls(coded, kernel, config),
        fell_back=fell_back,
    )


def _draw_nulls(
    coded: Coded, kernel: Kernel, own: FloatArray, config: GateConfig
) -> dict[str, NullDraws]:
    cross = CrossMatrix(coded, kernel)
    n_trials, seed = config.n_trials, config.seed
    by_label = config.permute == "label"
    by_set = config.marginal == "set"
    return {
        "A": permuted_labels(coded, kernel, own, n_trials, seed)
        if by_label
        else permuted_gold(cross, n_trials, seed),
        "B": uniform_gold(cross, n_trials, seed),
        "C": random_documents(coded, kernel, own, n_trials, seed),
        "D": frequent_sets(cross, n_trials, seed)
        if by_set
        else popularity_gold(cross, kernel, n_trials, seed),
    }


def _tau(draws: dict[str, NullDraws], config: GateConfig) -> float:
    if config.tau != "auto":
        return float(config.tau)
    margins = [luck_margin(draw.trials, config.alpha_each) for draw in draws.values()]
    return max(0.05, *margins)


def _compare(
    coded: Coded,
    own: FloatArray,
    draws: dict[str, NullDraws],
    reach: Attainable,
    tau: float,
    config: GateConfig,
) -> tuple[dict[str, NullResult], dict[str, float]]:
    score = float(own.mean())
    delta = np.array([_rounded(score - draws[name].mean) for name in NULLS])
    error = np.array([draws[name].mean_error for name in NULLS])
    influence = np.stack([draws[name].influence for name in NULLS], axis=1)
    low, high, standard_error = bootstrap_t(
        influence,
        delta,
        error,
        alpha=config.alpha_each,
        n_boot=config.n_boot,
        seed=config.seed,
    )
    low, high = np.maximum(low, -1.0), np.minimum(high, 1.0)
    same = coded.same_rankings()
    best = {**reach.delta, "C": reach.best_score - draws["C"].mean}
    results = {}
    for i, name in enumerate(NULLS):
        draw = draws[name]
        room = reach.best_score - draw.mean
        settled = standard_error[i] > 0 or same or len(own) >= ENOUGH_EQUAL
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
            if settled and len(own) > 1
            else "UNDER-NS",
            trials=draw.trials,
        )
    return results, dict(zip(NULLS, standard_error.tolist(), strict=True))


def _rounded(delta: float) -> float:
    return 0.0 if abs(delta) < ROUNDING else delta
