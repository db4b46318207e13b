"""The strict companion: recall of each query's highest-graded documents."""

from __future__ import annotations

import numpy as np
import pandas as pd

from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import codes, drop_rows
from falsify_adapters.gate.grading import Graded, grade
from falsify_adapters.measures import Measure, measure_depth, parse_measure
from falsify_adapters.results import Companion, GateConfig

#: Depth of the strict companion when the measure has none.
COMPANION_DEPTH = 10


def strict_companion(
    evaluation: Evaluation, measure: Measure, main: Graded, config: GateConfig
) -> Companion | None:
    """Grade recall of each query's highest-graded documents, unless that is the measure itself."""
    depth = measure_depth(measure) or COMPANION_DEPTH
    strict = parse_measure(f"R@{depth}")
    qrels = _highest_grades(evaluation.qrels)
    if strict == measure and len(qrels) == int((evaluation.qrels["relevance"] > 0).sum()):
        return None
    graded = grade(evaluation.run, qrels, evaluation, strict, config)
    verdict = "not applicable" if graded.closed else graded.verdict
    return Companion(
        measure=str(strict),
        score=graded.score,
        verdict=verdict,
        agrees=graded.closed or graded.verdict == main.verdict,
        nulls=graded.nulls,
    )


def _highest_grades(qrels: pd.DataFrame) -> pd.DataFrame:
    """Keep each query's documents of its highest grade; the queries stay what they are."""
    query = codes(qrels["query_id"])
    grade = qrels["relevance"].to_numpy()
    top = np.zeros(len(qrels["query_id"].cat.categories), dtype=np.int64)
    np.maximum.at(top, query, grade)
    return drop_rows(qrels, (grade <= 0) | (grade < top[query]))
