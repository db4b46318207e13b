"""Macro averages over the parts of a benchmark, such as the forums of cqadupstack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Literal

from falsify_adapters.results import GateReport, plain


@dataclass(frozen=True)
class MacroAverage:
    """One system's mean score over the parts of a benchmark. It has no verdict of its own.

    Parameters
    ----------
    benchmark, split, system, measure : str or None
        As in the reports that are averaged.
    n_parts : int
        Number of parts; each counts alike, however many queries it has.
    score, score_answered : float
        Means of the parts' scores.
    verdicts : dict of str to int
        How many parts reached each verdict.
    """

    benchmark: str | None
    split: str | None
    system: str
    measure: str
    n_parts: int
    score: float
    score_answered: float
    verdicts: dict[str, int]
    role: str = "average"
    kind: Literal["average"] = "average"
    verdict: None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        figures: dict[str, Any] = plain(asdict(self))
        return figures


def macro_averages(reports: Iterable[GateReport]) -> list[MacroAverage]:
    """Average each system's scores over the parts of each benchmark that has several."""
    groups: dict[tuple[Any, ...], dict[str, GateReport]] = {}
    for report in reports:
        if report.subset is not None:
            # two revisions of a model are never mixed
            key = (report.benchmark, report.split, report.system, report.measure, report.revision)
            groups.setdefault(key, {})[report.subset] = report
    return [
        MacroAverage(
            benchmark=key[0],
            split=key[1],
            system=key[2],
            measure=key[3],
            n_parts=len(parts),
            score=fmean(part.score for part in parts.values()),
            score_answered=fmean(part.score_answered for part in parts.values()),
            verdicts=dict(sorted(Counter(part.verdict for part in parts.values()).items())),
        )
        for key, parts in groups.items()
        if len(parts) > 1
    ]
