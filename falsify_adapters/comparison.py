"""Several reports side by side: one row each, or systems by benchmarks."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.notes import some
from falsify_adapters.results import NULLS, GateReport

#: Columns of :func:`compare`, in order.
COLUMNS = (
    *("system", "role", "corpus", "measure", "n_queries", "corpus_size", "score", "tau"),
    *NULLS,
    *("closest", "delta", "low", "high", "verdict"),
)


def compare(reports: Iterable[GateReport]) -> pd.DataFrame:
    """Return one row per report.

    Parameters
    ----------
    reports : iterable of GateReport
        In any order; rows keep it.

    Returns
    -------
    DataFrame
        Columns ``system, role, corpus, measure, n_queries, corpus_size, score, tau``; the four
        deltas ``A, B, C, D``; the null that comes ``closest`` with its ``delta, low, high``; and
        the ``verdict``. A corpus is named by benchmark, task, subset and split.

    Raises
    ------
    InputError
        If there is no report.

    Examples
    --------
    >>> from falsify_adapters import Evaluation, run_gate
    >>> qrels = {f"q{i}": {f"d{i}": 1} for i in range(40)}
    >>> run = {f"q{i}": {f"d{i}": 1.0, "d0": 0.5} for i in range(40)}
    >>> evaluation = Evaluation.create(run, qrels, corpus_size=999, system="mine", benchmark="toy")
    >>> frame = compare([run_gate(evaluation, "RR@10")])
    >>> frame[["system", "corpus", "score", "verdict"]].values.tolist()
    [['mine', 'toy', 1.0, 'PASS']]
    """
    reports = list(reports) if isinstance(reports, Iterable) else [reports]  # one slips in alone
    strangers = [type(report).__name__ for report in reports if not isinstance(report, GateReport)]
    if strangers:
        raise InputError("what is compared are gate reports", found=strangers[0])
    rows = [_row(report) for report in reports]
    if not rows:
        raise InputError("there is nothing to compare", hint="give at least one gate report")
    return pd.DataFrame(rows, columns=list(COLUMNS))


def matrix(reports: Iterable[GateReport], figure: str = "verdict") -> pd.DataFrame:
    """Return systems by corpora.

    Parameters
    ----------
    reports : iterable of GateReport
        At most one per system, corpus and measure.
    figure : str
        Which column of :func:`compare` fills the cells.

    Returns
    -------
    DataFrame
        One row per system, one column per corpus in order of first appearance; a column per corpus
        and measure where there are several measures. A missing combination is missing (None, NaN).

    Raises
    ------
    UsageError
        If there is no such figure.
    InputError
        If there is no report, or two for the same cell.

    Examples
    --------
    >>> from falsify_adapters import Evaluation, run_gate
    >>> qrels = {f"q{i}": {f"d{i}": 1} for i in range(40)}
    >>> run = {f"q{i}": {f"d{i}": 1.0, "d0": 0.5} for i in range(40)}
    >>> evaluation = Evaluation.create(run, qrels, corpus_size=999, system="mine", benchmark="toy")
    >>> matrix([run_gate(evaluation, "RR@10")]).to_dict()
    {'toy': {'mine': 'PASS'}}
    """
    frame = compare(reports)
    if figure not in frame.columns:
        raise UsageError(
            f"no figure is called {figure!r}", hint=f"one of {', '.join(frame.columns)}"
        )
    several = frame["measure"].nunique() > 1
    keys = ["corpus", "measure"] if several else ["corpus"]
    twice = frame.duplicated(["system", *keys])
    if twice.any():
        raise InputError(
            "two reports are about the same system, corpus and measure",
            found=some(frame.loc[twice, "system"]),
            hint="give each system a name of its own",
        )
    table = frame.pivot(index="system", columns=keys, values=figure)
    columns = frame[keys].drop_duplicates()
    order = pd.MultiIndex.from_frame(columns) if several else pd.Index(columns["corpus"])
    return table.reindex(index=pd.Index(frame["system"].unique(), name="system"), columns=order)


def corpus_name(report: GateReport) -> str:
    """Name the corpus of a report; an MTEB task is its own benchmark and is not said twice."""
    names = (report.benchmark, report.task, report.subset, report.split)
    return "/".join(dict.fromkeys(name for name in names if name)) or "benchmark"


def _row(report: GateReport) -> dict[str, object]:
    closest = min(NULLS, key=lambda name: report.nulls[name].low)
    null = report.nulls[closest]
    return {
        "system": report.system,
        "role": report.role,
        "corpus": corpus_name(report),
        "measure": report.measure,
        "n_queries": report.n_queries,
        "corpus_size": report.corpus_size,
        "score": report.score,
        "tau": report.tau,
        **{name: report.nulls[name].delta for name in NULLS},
        "closest": closest,
        "delta": null.delta,
        "low": null.low,
        "high": null.high,
        "verdict": report.verdict,
    }
