"""Run the gate: grade, compare the companion, look at ties, write the report."""

from __future__ import annotations

import math
from dataclasses import asdict

import pandas as pd

from falsify_adapters.errors import UsageError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import is_among
from falsify_adapters.gate.companion import strict_companion, strict_question
from falsify_adapters.gate.fifth_line import fifth_line
from falsify_adapters.gate.grading import Graded, grade, grade_all
from falsify_adapters.gate.tie_range import tie_extremes
from falsify_adapters.gate.together import dependence_notes, dependence_of
from falsify_adapters.gate.verdicts import verdict_under_ties
from falsify_adapters.gate.warnings import gate_notes
from falsify_adapters.measures import Measure, check_grade, parse_measure
from falsify_adapters.power import NO_POWER, power_of, power_sentence
from falsify_adapters.provenance import one_blas_thread, with_frames
from falsify_adapters.results import NULLS, GateConfig, GateReport, Power


@one_blas_thread
def run_gate(
    evaluation: Evaluation, measure: str | Measure = "nDCG@10", config: GateConfig | None = None
) -> GateReport:
    """Compare a system's score with the four nulls.

    Parameters
    ----------
    evaluation : Evaluation
        The run, the qrels and the corpus size.
    measure : str or ir_measures.Measure
        A measure with values in [0, 1] that is 0 without a relevant document.
    config : GateConfig, optional
        Settings; the defaults are tau 0.05, alpha 0.05, 1000 resamples and trials.

    Returns
    -------
    GateReport

    Raises
    ------
    MeasureError
        If the gate cannot grade the measure.
    UsageError
        If `evaluation` or `config` is something else, or labels are to be permuted on an
        evaluation with strata.

    Examples
    --------
    >>> qrels = {f"q{i}": {f"d{i}": 1} for i in range(40)}
    >>> run = {f"q{i}": {f"d{i}": 1.0, "d0": 0.5} for i in range(40)}
    >>> report = run_gate(Evaluation.create(run, qrels, corpus_size=1000), "RR@10")
    >>> report.score, report.verdict, round(report.nulls["C"].mean, 6)
    (1.0, 'PASS', 0.001487)
    """
    config = config or GateConfig()
    _check_types(evaluation, config)
    parsed = parse_measure(measure)
    about_grades = check_grade(parsed, evaluation.qrels)
    main, strict = _grade_with_companion(evaluation, parsed, config)
    extremes = tie_extremes(evaluation, parsed, main, config)
    ties = extremes.range() if extremes else None
    verdict, reason = verdict_under_ties(main.verdict, main.reason, ties)
    companion = strict_companion(*strict, verdict, config) if strict else None
    power = None
    if verdict == "UNDER-NS":
        power = _power(main, config)
        reason = _with_power(reason, power, main)
    dependence = dependence_of(evaluation, main, config)
    notes = [
        *evaluation.notes,
        *about_grades,
        *gate_notes(main, companion, ties, config),
        *dependence_notes(dependence),
    ]
    answered = is_among(evaluation.query_ids, evaluation.run["query_id"].cat.categories)
    return GateReport(
        role=evaluation.role,
        benchmark=evaluation.benchmark,
        split=evaluation.split,
        task=evaluation.task,
        subset=evaluation.subset,
        model=evaluation.model,
        revision=evaluation.revision,
        system=evaluation.system,
        measure=str(parsed),
        n_queries=evaluation.n_queries,
        corpus_size=evaluation.corpus_size,
        corpus_size_source=evaluation.corpus_size_source,
        score=main.score,
        score_answered=float(main.own[answered].mean()) if answered.any() else 0.0,
        tau=main.tau,
        verdict=verdict,
        definition_1=main.definition_1,
        reason=reason,
        nulls=main.nulls,
        distinct_nulls=len(main.expectations),
        companion=companion,
        ties=ties,
        ceiling=fifth_line(main.coded, main.kernel, main.score),
        warnings=tuple(notes),
        settings=asdict(config),
        provenance=with_frames(evaluation.provenance, run=evaluation.run, qrels=evaluation.qrels),
        per_query=_per_query(evaluation, main),
        power=power,
        dependence=dependence,
    )


def _grade_with_companion(
    evaluation: Evaluation, measure: Measure, config: GateConfig
) -> tuple[Graded, tuple[Evaluation, Measure, Graded] | None]:
    """Grade by the measure and by its strict companion, in one call if the gold is the same."""
    question = strict_question(evaluation, measure) if config.companion else None
    if question is None:
        return grade(evaluation, measure, config), None
    on_highest, strict = question
    if on_highest is evaluation:
        main, graded = grade_all(evaluation, [measure, strict], config)
    else:
        main, graded = grade(evaluation, measure, config), grade(on_highest, strict, config)
    return main, (on_highest, strict, graded)


def _check_types(evaluation: Evaluation, config: GateConfig) -> None:
    for given, expected, what, how in (
        (evaluation, Evaluation, "an Evaluation", "Evaluation.create(run, qrels, corpus_size=...)"),
        (config, GateConfig, "a GateConfig", "GateConfig(tau=0.05)"),
    ):
        if not isinstance(given, expected):
            raise UsageError(f"run_gate takes {what}", found=type(given).__name__, hint=how)


def _power(main: Graded, config: GateConfig) -> Power:
    if main.closed:
        return NO_POWER
    return power_of(main.nulls, main.standard_errors, len(main.own), main.tau, config)


def _with_power(reason: str, power: Power, main: Graded) -> str:
    attainable = main.nulls[power.null].attainable if power.null else math.nan
    sentence = power_sentence(power, len(main.own), attainable)
    return f"{reason}; {sentence}" if sentence else reason


def _per_query(evaluation: Evaluation, main: Graded) -> pd.DataFrame:
    columns = {name: main.draws[name].query_means for name in NULLS}
    return pd.DataFrame({"query_id": evaluation.query_ids, "score": main.own, **columns})
