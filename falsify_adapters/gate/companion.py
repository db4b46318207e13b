"""The strict companion: recall of each query's highest-graded documents."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import codes, drop_rows
from falsify_adapters.gate.grading import Graded
from falsify_adapters.gate.tie_range import tie_extremes
from falsify_adapters.gate.verdicts import verdict_under_ties
from falsify_adapters.measures import Measure, measure_depth, parse_measure
from falsify_adapters.results import Companion, GateConfig, Verdict

#: Depth of the strict companion when the measure has none.
COMPANION_DEPTH = 10


def strict_question(evaluation: Evaluation, measure: Measure) -> tuple[Evaluation, Measure] | None:
    """Return what the strict companion grades: recall of each query's highest-graded documents.

    None if that is the measure itself. The evaluation is the same one if all relevant documents
    are of their query's highest grade.
    """
    depth = measure_depth(measure) or COMPANION_DEPTH
    strict = parse_measure(f"R@{depth}")
    qrels = _highest_grades(evaluation.qrels)
    if len(qrels) < int((evaluation.qrels["relevance"] > 0).sum()):
        return replace(evaluation, qrels=qrels), strict
    return None if strict == measure else (evaluation, strict)


def strict_companion(
    evaluation: Evaluation, measure: Measure, graded: Graded, verdict: Verdict, config: GateConfig
) -> Companion:
    """Compare the strict companion's verdict with the one that the report shows for the measure.

    Both look at the order of ties: a verdict that hangs on ties would not agree with itself
    otherwise.

    Parameters
    ----------
    evaluation, measure
        From :func:`strict_question`.
    graded : Graded
        The run, graded by that measure.
    verdict : str
        The one that the report shows.
    config : GateConfig
        Settings.
    """
    extremes = tie_extremes(evaluation, measure, graded, config)
    ties = extremes.range() if extremes else None
    own_verdict, _ = verdict_under_ties(graded.verdict, graded.reason, ties)
    return Companion(
        measure=str(measure),
        score=graded.score,
        verdict="not applicable" if graded.closed else own_verdict,
        agrees=graded.closed or own_verdict == verdict,
        nulls=graded.nulls,
    )


def _highest_grades(qrels: pd.DataFrame) -> pd.DataFrame:
    """Keep each query's documents of its highest grade; the queries stay what they are."""
    query = codes(qrels["query_id"])
    grade = qrels["relevance"].to_numpy()
    top = np.zeros(len(qrels["query_id"].cat.categories), dtype=np.int64)
    np.maximum.at(top, query, grade)
    return drop_rows(qrels, (grade <= 0) | (grade < top[query]))
