"""The score and the verdict if tied documents fall against, or for, the system."""

from __future__ import annotations

from dataclasses import replace

from falsify_adapters.evaluation import Evaluation
from falsify_adapters.gate.grading import Graded, Units, coded_for, judge
from falsify_adapters.measures import Measure, measure_depth
from falsify_adapters.nulls import own_scores
from falsify_adapters.resampling import ROUNDING
from falsify_adapters.results import GateConfig, Ties
from falsify_adapters.ties import reordered, tied_queries

#: Measures without a kernel for which brute force found no better order than the higher grade
#: first (tests/test_ties.py).
GRADE_FIRST_IS_BEST = frozenset({"Compat", "IPrec", "SetAP", "SetF", "SetP"})


def tie_range(
    evaluation: Evaluation, measure: Measure, main: Graded, config: GateConfig
) -> Ties | None:
    """Grade the run with all ties in the worst and in the best order; None without ties."""
    queries = tied_queries(evaluation.run, measure_depth(measure))
    if not queries:
        return None
    # the two extreme orders need a verdict, not precise trials; the kernel was checked already
    rough = replace(config, n_trials=max(config.least_trials, config.n_trials // 10))
    gain = main.kernel.gain if main.kernel.closed_form else None
    graded = {}
    for towards in ("worst", "best"):
        run = reordered(evaluation.run, evaluation.qrels, towards, gain)
        coded = coded_for(run, evaluation.qrels, evaluation, measure)
        own = own_scores(coded, main.kernel)
        moved = abs(float(own.mean()) - main.score) > ROUNDING
        graded[towards] = (
            judge(coded, main.kernel, own, Units.of(evaluation), rough) if moved else main
        )
    return Ties(
        queries=queries,
        low_score=graded["worst"].score,
        high_score=graded["best"].score,
        low_verdict=graded["worst"].verdict,
        high_verdict=graded["best"].verdict,
        exact=main.kernel.closed_form or measure.NAME in GRADE_FIRST_IS_BEST,
    )
