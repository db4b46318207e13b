"""Run files beside their qrels: what only both together can say."""

from __future__ import annotations

import os
from typing import Any

import pandas as pd

from falsify_adapters.errors import FalsifyError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.measures import parse_measure, query_scores
from falsify_adapters.readers import RunFile, ScoreOrderError, read_run
from falsify_adapters.readers.source import Source

#: The measure that tells which reading of a run is right.
MEASURE = "nDCG@10"


def read_run_beside(source: Source, qrels: pd.DataFrame, **options: Any) -> RunFile:
    """Read a run; where its scores run against its ranks, say what both readings would score.

    Parameters
    ----------
    source : str, Path or binary file
        As :func:`falsify_adapters.readers.read_run` takes it.
    qrels : DataFrame
        The common qrels frame.
    **options
        Options of :func:`falsify_adapters.readers.read_run`.

    Returns
    -------
    RunFile

    Raises
    ------
    ScoreOrderError
        With the score of each reading, if the source is a path and can be read again.
    InputError, UsageError, MissingExtraError
        As :func:`falsify_adapters.readers.read_run` raises them.
    """
    try:
        return read_run(source, **options)
    except ScoreOrderError as error:
        if str(source) == "-" or not isinstance(source, (str, os.PathLike)):
            raise
        try:
            depth = options.get("depth")
            by_score = _score(read_run(source, depth=depth, score_order="descending"), qrels)
            by_rank = _score(read_run(source, depth=depth, rank_from_column=True), qrels)
        except (
            FalsifyError
        ):  # ranks that repeat, or other ids than the qrels': said by itself later
            raise error from None
        raise ScoreOrderError(
            error.lacks,
            found=f"{MEASURE} = {by_score:.6f} by score, {by_rank:.6f} by rank",
            hint=error.hint,
        ) from None


def _score(file: RunFile, qrels: pd.DataFrame) -> float:
    evaluation = Evaluation.create(file.frame, qrels)
    scores = query_scores(evaluation.run, evaluation.qrels, parse_measure(MEASURE))
    return float(scores.mean())
