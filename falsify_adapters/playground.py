"""The playground: a real run mixed with predictors that read no query, graded at each share.

Every point is graded by the gate itself, and its verdict is taken at every threshold, so that a
report can show them all without computing anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pandas as pd
from pandas.api.types import union_categoricals

from falsify_adapters import baselines
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import as_run, codes
from falsify_adapters.gate import sweep_gate
from falsify_adapters.gate.thresholds import AtThreshold
from falsify_adapters.measures import Measure, parse_measure
from falsify_adapters.progress import track
from falsify_adapters.results import NULLS, GateConfig, GateReport, NullResult, Verdict

#: What can be mixed into the real run, and what it does, in words.
PREDICTORS = {
    "run": "the system itself",
    "constant": "the one ranking that scores best when every query gets it",
    "popularity": "the documents that are most often right, for every query",
    "popularity-sample": "a ranking drawn for each query, popular documents more often",
    "random": "a ranking drawn uniformly from the corpus for each query",
}
#: Shares of the queries that the predictor answers.
SHARES = tuple(step / 10 for step in range(11))
#: Stands for the threshold in the sentences of a step.
TAU = "{tau}"


@dataclass(frozen=True)
class Step:
    """What holds from one threshold on, up to the next step.

    Parameters
    ----------
    start : int
        Position of the threshold in :attr:`Playground.taus`.
    nulls : str
        The verdicts of A to D, one letter each: P, F, U.
    verdict, reason : str
        The gate's; `reason` holds ``{tau}`` where the threshold belongs.
    """

    start: int
    nulls: str
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class Point:
    """One mixture.

    Parameters
    ----------
    predictor : str
        A key of :data:`PREDICTORS`.
    share : float
        Share of the queries that it answers; the real run answers the others.
    score : float
        Mean over all queries.
    nulls : dict of str to NullResult
        As in a report.
    steps : tuple of Step
        The verdict at every threshold.
    """

    predictor: str
    share: float
    score: float
    nulls: dict[str, NullResult]
    steps: tuple[Step, ...]

    def at(self, position: int) -> Step:
        """Return what holds at a threshold, given by its position."""
        return [step for step in self.steps if step.start <= position][-1]


@dataclass(frozen=True)
class Playground:
    """All mixtures of one run.

    Parameters
    ----------
    key : tuple
        Which report it belongs to, see :func:`report_key`.
    taus : tuple of float
        The thresholds, ascending; that of the report is among them.
    points : tuple of Point
        For each predictor all shares; the real run, mixed with nothing, is one point.
    """

    key: tuple[str | None, ...]
    taus: tuple[float, ...]
    points: tuple[Point, ...]

    def point(self, predictor: str, share: float) -> Point:
        """Return one mixture; at share 0 every predictor is the real run."""
        wanted = ("run", 0.0) if predictor == "run" or share == 0 else (predictor, share)
        return next(p for p in self.points if (p.predictor, p.share) == wanted)


def report_key(report: GateReport) -> tuple[str | None, ...]:
    """Return what tells one report from all others of a document."""
    where = (report.benchmark, report.split, report.task, report.subset)
    return (*where, report.system, report.role, report.measure)


def make_playground(
    evaluation: Evaluation,
    report: GateReport,
    config: GateConfig,
    *,
    corpus_ids: Iterable[str] | None = None,
    progress: bool | None = None,
) -> Playground:
    """Grade the mixtures of a run with every predictor.

    Parameters
    ----------
    evaluation : Evaluation
        The run and its benchmark.
    report : GateReport
        What the gate found for it; names the measure and the threshold.
    config : GateConfig
        The settings of the report.
    corpus_ids : iterable of str, optional
        The corpus' ids, for the uniform draw.
    progress : bool, optional
        Draw a progress bar; by default only on a terminal.

    Returns
    -------
    Playground

    Examples
    --------
    >>> from falsify_adapters.gate import run_gate
    >>> qrels = {f"q{i}": {f"d{i % 20}": 1} for i in range(60)}
    >>> run = {f"q{i}": {f"d{i % 20}": 1.0, "d0": 0.5} for i in range(60)}
    >>> evaluation = Evaluation.create(run, qrels, corpus_size=1000)
    >>> config = GateConfig(n_trials=160, n_boot=160)
    >>> report = run_gate(evaluation, "RR@10", config)
    >>> ground = make_playground(evaluation, report, config)
    >>> len(ground.points), ground.point("constant", 1.0).at(5).verdict
    (41, 'FAIL')
    """
    measure = parse_measure(report.measure)
    taus = tuple(sorted({*(step / 100 for step in range(101)), report.tau}))
    points = []
    mixtures = list(_mixtures(evaluation, measure, config.seed, corpus_ids))
    for predictor, share, run in track(mixtures, "mixing", show=progress):
        sweep = sweep_gate(evaluation.with_run(run), measure, taus, config)
        points.append(Point(predictor, share, sweep.score, sweep.nulls, _steps(sweep.steps)))
    return Playground(report_key(report), taus, tuple(points))


def mixed_run(
    run: pd.DataFrame, predictor: pd.DataFrame, query_ids: Collection[str]
) -> pd.DataFrame:
    """Return `run` with the given queries answered by `predictor` instead.

    Examples
    --------
    >>> run = as_run({"q1": {"d1": 1.0}, "q2": {"d2": 1.0}})
    >>> mixed_run(run, as_run({"q1": {"x": 1.0}, "q2": {"x": 1.0}}), ["q2"])
      query_id doc_id  score
    0       q1     d1    1.0
    1       q2      x    1.0
    """
    kept = _only(run, query_ids, keep=False)
    taken = _only(predictor, query_ids, keep=True)
    return as_run(
        pd.DataFrame(
            {name: union_categoricals([kept[name], taken[name]]) for name in ("query_id", "doc_id")}
            | {"score": np.concatenate([kept["score"], taken["score"]])}
        )
    )


def _only(run: pd.DataFrame, query_ids: Collection[str], *, keep: bool) -> pd.DataFrame:
    """Keep, or leave out, some queries, and forget that the others were answered."""
    listed = run["query_id"].cat.categories.isin(list(query_ids)) == keep
    rows = run[listed[codes(run["query_id"])]]
    categories = run["query_id"].cat.categories[listed]
    return rows.assign(query_id=rows["query_id"].cat.set_categories(categories))


def _mixtures(
    evaluation: Evaluation, measure: Measure, seed: int, corpus_ids: Iterable[str] | None
) -> Iterator[tuple[str, float, pd.DataFrame]]:
    yield "run", 0.0, evaluation.run
    # the queries that a larger share replaces include those of a smaller one
    order = np.random.default_rng([seed, *b"mix"]).permutation(evaluation.query_ids).tolist()
    for name, predictor in _predictors(evaluation, measure, seed, corpus_ids):
        for share in SHARES[1:]:
            yield (
                name,
                share,
                mixed_run(evaluation.run, predictor, order[: round(share * len(order))]),
            )


def _predictors(
    evaluation: Evaluation, measure: Measure, seed: int, corpus_ids: Iterable[str] | None
) -> Iterator[tuple[str, pd.DataFrame]]:
    qrels, absent = evaluation.qrels, evaluation.absent_gold
    depth = int(np.bincount(codes(evaluation.run["query_id"])).max(initial=1))
    yield "constant", baselines.constant(qrels, measure, depth, exclude=absent)
    yield "popularity", baselines.popularity(qrels, depth, exclude=absent)
    yield (
        "popularity-sample",
        baselines.popularity_sample(qrels, depth, seed=seed, exclude=absent),
    )
    yield (
        "random",
        baselines.random(
            qrels,
            depth,
            seed=seed,
            corpus_ids=corpus_ids,
            corpus_size=evaluation.corpus_size,
        ),
    )


def _steps(thresholds: Iterable[AtThreshold]) -> tuple[Step, ...]:
    """Join neighbouring thresholds at which nothing but the threshold differs."""
    steps = [
        Step(
            position,
            "".join(at.nulls[name][0] for name in NULLS),
            at.verdict,
            at.reason.replace(f"tau = {at.tau:g}", f"tau = {TAU}"),
        )
        for position, at in enumerate(thresholds)
    ]
    groups = groupby(steps, key=lambda step: (step.nulls, step.verdict, step.reason))
    return tuple(next(group) for _, group in groups)
