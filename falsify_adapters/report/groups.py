"""Which reports share a table: same benchmark, same measure."""

from __future__ import annotations

from collections.abc import Iterable

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
