"""The score and the verdict if tied documents fall against, or for, the system."""

from __future__ import annotations

from dataclasses import dataclass, replace

from falsify_adapters.evaluation import Evaluation
from falsify_adapters.gate.grading import Graded, at_tau, coded_to, judge
from falsify_adapters.gate.query_units import Units
from falsify_adapters.measures import Measure, measure_depth
from falsify_adapters.nulls import own_scores
from falsify_adapters.resampling import ROUNDING
from falsify_adapters.results import GateConfig, Ties
from falsify_adapters.ties import tie_orders, tied_queries

#: Measures without a kernel for which brute force found no better order than the higher grade
#: first (tests/test_tie_orders.py).
GRADE_FIRST_IS_BEST = frozenset({"Compat", "IPrec", "SetAP", "SetF", "SetP"})


@dataclass(frozen=True, eq=False)
class TieExtremes:
    """A run graded with all ties in the worst, and in the best order.

    Parameters
    ----------
    queries : int
        Queries with ties that reach into the cutoff.
    worst, best : Graded
        The two grades.
    exact : bool
        Whether these orders are known to be the worst and the best for the measure.
    """

    queries: int
    worst: Graded
    best: Graded
    exact: bool = True

    def range(self) -> Ties:
        """Return what the report shows of them."""
        return Ties(
            queries=self.queries,
            low_score=self.worst.score,
            high_score=self.best.score,
            low_verdict=self.worst.verdict,
            high_verdict=self.best.verdict,
            exact=self.exact,
        )

    def at_tau(self, tau: float, config: GateConfig) -> TieExtremes:
        """Judge both at another threshold."""
        return replace(
            self,
            worst=at_tau(self.worst, tau, config),
            best=at_tau(self.best, tau, config),
        )


def tie_extremes(
    evaluation: Evaluation, measure: Measure, main: Graded, config: GateConfig
) -> TieExtremes | None:
    """Grade the run with all ties in the worst and in the best order; None without ties."""
    queries = tied_queries(evaluation.run, measure_depth(measure))
    if not queries:
        return None
    # the two extreme orders need a verdict, not precise trials; the kernel was checked already
    rough = replace(config, n_trials=max(config.least_trials, config.n_trials // 10))
    gain = main.kernel.gain if main.kernel.closed_form else None
    units, graded = Units.of(evaluation), {}
    for towards, order in tie_orders(evaluation.run, evaluation.qrels, gain).items():
        coded = coded_to(evaluation, measure_depth(measure), order)
        own = own_scores(coded, main.kernel)
        moved = abs(float(own.mean()) - main.score) > ROUNDING
        graded[towards] = judge(coded, main.kernel, own, units, rough, like=main) if moved else main
    exact = main.kernel.closed_form or measure.NAME in GRADE_FIRST_IS_BEST
    return TieExtremes(queries, graded["worst"], graded["best"], exact)
