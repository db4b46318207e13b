"""Which reports share a table (same benchmark, same measure), and their common warnings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from falsify_adapters.notes import Note
from falsify_adapters.results import GateReport


def by_benchmark(reports: Iterable[GateReport]) -> list[list[GateReport]]:
    """Split reports into groups of one benchmark and measure, in order of first appearance."""
    groups: dict[tuple[str | None, ...], list[GateReport]] = {}
    for report in reports:
        key = (report.benchmark, report.split, report.task, report.subset, report.measure)
        groups.setdefault(key, []).append(report)
    return list(groups.values())


def title(report: GateReport, separator: str) -> str:
    """Name a group by its first report: benchmark, split, task, subset, measure."""
    where = [report.benchmark, report.task, report.subset, report.split]
    # an MTEB task is its own benchmark: do not say it twice
    names = list(dict.fromkeys(name for name in where if name))
    return separator.join([*(names or ["benchmark"]), report.measure])


def warnings_of(reports: Sequence[GateReport]) -> list[tuple[Note, list[str]]]:
    """Return each warning once, with the systems it belongs to; with none if these are all.

    What is odd about a control is no concern of the reader; the JSON has it.
    """
    runs = [report for report in reports if report.role == "run"] or reports
    systems: dict[Note, dict[str, None]] = {}
    for report in runs:
        for note in report.warnings:
            systems.setdefault(note, {})[report.system] = None
    everyone = len({report.system for report in runs})
    return [
        (note, [] if len(named) == everyone else list(named)) for note, named in systems.items()
    ]
