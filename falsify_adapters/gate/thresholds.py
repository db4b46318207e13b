"""The gate's verdict at many thresholds, from one set of trials and resamples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from falsify_adapters.evaluation import Evaluation
from falsify_adapters.gate.grading import at_tau, grade
from falsify_adapters.gate.tie_range import tie_extremes
from falsify_adapters.gate.verdicts import verdict_under_ties
from falsify_adapters.measures import Measure, parse_measure
from falsify_adapters.provenance import one_blas_thread
from falsify_adapters.results import GateConfig, NullResult, Verdict


@dataclass(frozen=True)
class AtThreshold:
    """The verdicts at one threshold.

    Parameters
    ----------
    tau : float
        The threshold.
    nulls : dict of str to str
        Verdict of each null.
    verdict, reason : str
        The gate's verdict and why, the order of ties included; without how many queries would
        decide, which is another number at each threshold.
    """

    tau: float
    nulls: dict[str, Verdict]
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class Sweep:
    """One run graded at many thresholds.

    Parameters
    ----------
    score : float
        Mean over all evaluated queries.
    nulls : dict of str to NullResult
        As in a report, with the verdicts at the threshold of the settings.
    steps : tuple of AtThreshold
        In the order of the thresholds asked for.
    """

    score: float
    nulls: dict[str, NullResult]
    steps: tuple[AtThreshold, ...]


@one_blas_thread
def sweep_gate(
    evaluation: Evaluation,
    measure: str | Measure,
    taus: Iterable[float],
    config: GateConfig | None = None,
) -> Sweep:
    """Return what :func:`run_gate` says at each threshold, at little more than the price of one.

    Parameters
    ----------
    evaluation, measure, config
        As for :func:`run_gate`; ``config.tau`` does not matter for the steps.
    taus : iterable of float
        The thresholds.

    Returns
    -------
    Sweep

    Examples
    --------
    >>> qrels = {f"q{i}": {f"d{i}": 1} for i in range(40)}
    >>> run = {f"q{i}": {f"d{i}": 1.0, "d0": 0.5} for i in range(40)}
    >>> evaluation = Evaluation.create(run, qrels, corpus_size=1000)
    >>> [step.verdict for step in sweep_gate(evaluation, "RR@10", [0.05, 0.99]).steps]
    ['PASS', 'UNDER-NS']
    """
    config = config or GateConfig()
    parsed = parse_measure(measure)
    main = grade(evaluation, parsed, config)
    extremes = tie_extremes(evaluation, parsed, main, config)
    steps = []
    for tau in taus:
        here = at_tau(main, tau, config)
        ties = extremes.at_tau(tau, config).range() if extremes else None
        verdict, reason = verdict_under_ties(here.verdict, here.reason, ties)
        nulls = {name: null.verdict for name, null in here.nulls.items()}
        steps.append(AtThreshold(tau, nulls, verdict, reason))
    return Sweep(main.score, main.nulls, tuple(steps))
