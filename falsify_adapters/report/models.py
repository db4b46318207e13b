"""Means and verdicts per model, over subsets and tasks, as MTEB averages: for leaderboards."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any, Literal

from falsify_adapters.certificate import Certificate
from falsify_adapters.results import GateReport, plain

#: All verdicts, in the order of columns.
VERDICTS = ("PASS", "FAIL", "UNDER-NS", "CERTIFIED", "NOT CERTIFIED")
#: Revisions that say nothing.
_NO_REVISION = frozenset({None, "None", "external", "no_revision_available"})


@dataclass(frozen=True)
class ModelRow:
    """One model's mean score and verdicts.

    Parameters
    ----------
    system, measure : str
        The model, and the measure or "main score".
    n_tasks, n_graded : int
        Tasks, and graded parts of them (splits and subsets).
    mean_task : float
        Mean over tasks of the mean over a task's splits and subsets: what MTEB calls Mean (Task).
    mean_common : float or None
        The same over the tasks that all models of the table have; None if there are none.
    n_common : int
        Number of these.
    verdicts : dict of str to int
        How many graded parts reached each verdict.
    """

    system: str
    measure: str
    n_tasks: int
    n_graded: int
    mean_task: float
    mean_common: float | None
    n_common: int
    verdicts: dict[str, int]
    role: Literal["average"] = "average"
    kind: Literal["model"] = "model"
    verdict: None = None

    def share(self, verdict: str) -> float:
        """Return the share of the graded parts that reached a verdict."""
        return self.verdicts.get(verdict, 0) / self.n_graded

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        figures: dict[str, Any] = plain(asdict(self))
        return {**figures, "shares": plain({v: self.share(v) for v in self.verdicts})}


@dataclass(frozen=True)
class FolderReport:
    """What a walk over folders saw: files by kind, and irregular ones.

    Parameters
    ----------
    files : mapping of str to int
        Files by kind.
    oddities : mapping of str to int
        Files by kind of irregularity.
    examples : mapping of str to str
        One file of each kind.
    """

    files: Mapping[str, int]
    oddities: Mapping[str, int] = field(default_factory=dict)
    examples: Mapping[str, str] = field(default_factory=dict)
    role: Literal["summary"] = "summary"
    kind: Literal["folder"] = "folder"
    verdict: None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        figures: dict[str, Any] = plain(asdict(self))
        return figures


def model_rows(
    reports: Iterable[Any],
    default_splits: Callable[[str], tuple[str, ...]],
    *,
    by_measure: bool,
) -> list[ModelRow]:
    """Average each model's scores over the graded parts of each task, then over tasks.

    Of several revisions of a model, one counts for each part: a result with a known mteb version
    before one without, a real revision before ``external`` and its like, then the newest version,
    which is how MTEB joins revisions as far as the files say it. Splits that do not count for a
    task are left out, unless the task has no others.

    Parameters
    ----------
    reports : iterable of Report
        Gate reports and certificates; others are ignored.
    default_splits : callable
        Returns the splits of a task that count.
    by_measure : bool
        One row per model and measure; else every task counts with whatever was graded.
    """
    graded: dict[tuple[str, str], dict[tuple[str, str, str], Any]] = {}
    for report in reports:
        if not _counts(report):
            continue
        rows = graded.setdefault(
            (report.system, report.measure if by_measure else "main score"), {}
        )
        part = (report.task or "", report.split or "", report.subset or "")
        if part not in rows or _priority(report) > _priority(rows[part]):
            rows[part] = report
    counted = {key: _counted(rows, default_splits) for key, rows in graded.items()}
    result = []
    for (system, measure), rows in counted.items():
        tasks = _task_means(rows)
        rivals = [_tasks(other) for key, other in counted.items() if key[1] == measure]
        common = set.intersection(*rivals) if len(rivals) > 1 else set(tasks)
        result.append(
            ModelRow(
                system=system,
                measure=measure,
                n_tasks=len(tasks),
                n_graded=len(rows),
                mean_task=fmean(tasks.values()),
                mean_common=fmean(tasks[task] for task in sorted(common)) if common else None,
                n_common=len(common),
                verdicts={
                    verdict: count
                    for verdict in VERDICTS
                    if (count := Counter(r.verdict for r in rows.values())[verdict])
                },
            )
        )
    return sorted(result, key=lambda row: (row.measure, row.system))


def _counts(report: Any) -> bool:
    """Leave out controls, and scores that fail without qrels: only bad ones get that far."""
    if isinstance(report, Certificate):
        return bool(report.bounds)
    return isinstance(report, GateReport) and report.role == "run"


def _counted(
    rows: Mapping[tuple[str, str, str], Any], default_splits: Callable[[str], tuple[str, ...]]
) -> dict[tuple[str, str, str], Any]:
    counted: dict[tuple[str, str, str], Any] = {}
    for task in _tasks(rows):
        own = {part: report for part, report in rows.items() if part[0] == task}
        splits = default_splits(task)
        counted |= {part: report for part, report in own.items() if part[1] in splits} or own
    return counted


def _tasks(rows: Mapping[tuple[str, str, str], Any]) -> set[str]:
    return {task for task, _, _ in rows}


def _task_means(rows: Mapping[tuple[str, str, str], Any]) -> dict[str, float]:
    values: dict[str, list[float]] = {}
    for (task, _, _), report in rows.items():
        values.setdefault(task, []).append(_value(report))
    return {task: fmean(scores) for task, scores in sorted(values.items())}


def _value(report: GateReport | Certificate) -> float:
    """Return what MTEB prints: the mean over answered queries."""
    return report.score_answered if isinstance(report, GateReport) else report.score


def _priority(report: GateReport | Certificate) -> tuple[Any, ...]:
    version = str(report.provenance.get("mteb_version") or "")
    return (
        isinstance(report, GateReport),
        bool(version),
        report.revision not in _NO_REVISION,
        # the end of a range: the newest run that wrote to the file
        [int(number) for number in re.findall(r"\d+", version.split("-")[-1])],
        report.revision or "",
    )
