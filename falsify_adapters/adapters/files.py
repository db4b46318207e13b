"""Run files beside their qrels: what only both together can say."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from falsify_adapters.errors import FalsifyError, InputError
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


def refuse_stored_score(path: str | Path, judged: Mapping[str, Any]) -> None:
    """Refuse a JSON file with a score in it where a run is needed; other files are let through.

    Parameters
    ----------
    path : str or Path
        A report of this package, or an object with numbers and, perhaps, the ``qrels`` they were
        scored with.
    judged : mapping
        Provenance of the qrels at hand.

    Raises
    ------
    InputError
        That says whether the score belongs to other qrels.
    """
    stored = _json_object(path)
    if stored is None:
        return
    qrels = stored.get("qrels")
    reports = stored.get("reports")
    if isinstance(reports, list) and reports:
        provenance = reports[0].get("provenance") if isinstance(reports[0], Mapping) else None
        qrels = provenance.get("qrels") if isinstance(provenance, Mapping) else None
    of_score = qrels if isinstance(qrels, Mapping) else {"name": qrels}
    key = "sha256" if "sha256" in of_score else "name"
    name, here = of_score.get("name"), judged.get("name")
    if name is not None and of_score[key] != judged.get(key):
        raise InputError(
            f"{path}: the baseline was scored with other qrels",
            found=f"{name}, here {here}" + (" with other content" if name == here else ""),
            hint=_BOTH_RUNS,
        )
    raise InputError(f"{path} holds a score and no run", hint=_BOTH_RUNS)


_BOTH_RUNS = (
    "give the baseline's run: both systems are then scored on the same qrels, query by query"
)


def _json_object(path: str | Path) -> dict[str, Any] | None:
    try:
        found = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _score(file: RunFile, qrels: pd.DataFrame) -> float:
    evaluation = Evaluation.create(file.frame, qrels)
    (scores,) = query_scores(evaluation.run, evaluation.qrels, parse_measure(MEASURE))
    return float(scores.mean())
