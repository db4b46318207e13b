"""What stands beside the gate's verdicts, in words and tables: the same for every kind of output.

Clusters, blocks and strata; two systems; grades; other judgements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from falsify_adapters.notes import counted
from falsify_adapters.report.outcome import Outcome
from falsify_adapters.report.text import number, sentence
from falsify_adapters.results import NULLS, GateReport

if TYPE_CHECKING:
    from falsify_adapters.judgements import GradeTable, SecondJudgement
    from falsify_adapters.two_systems import Comparison

_BEYOND = {True: "yes", False: "no", None: "unclear"}


@dataclass(frozen=True)
class Sheet:
    """A table with a heading and sentences below it.

    Parameters
    ----------
    heading : str
        What the table is about.
    head : tuple of str
        Column names; the first column is a name, the others are figures or short words.
    rows : tuple of tuple of str
        Cells; a line end in a cell is where it may break.
    below : tuple of str
        Sentences.
    made : tuple of tuple of str and mapping
        What each part was made with, after its name: settings, and where the inputs come from.
    """

    heading: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    below: tuple[str, ...]
    made: tuple[tuple[str, Mapping[str, Any]], ...] = ()


def sheets(outcome: Outcome) -> Iterator[Sheet]:
    """Yield the comparisons, by baseline; then the tables by grade; then other judgements."""
    kinds = {report.kind for report in outcome.reports}
    if not kinds & {"comparison", "grades", "judgements"}:
        return  # their modules need not be imported
    from falsify_adapters.judgements import GradeTable, SecondJudgement
    from falsify_adapters.two_systems import Comparison

    compared = [report for report in outcome.reports if isinstance(report, Comparison)]
    for group in _grouped(compared, "baseline"):
        yield _comparisons(group)
        yield _beyond(group)
    for report in outcome.reports:
        if isinstance(report, GradeTable):
            yield _grades(report)
    again = [report for report in outcome.reports if isinstance(report, SecondJudgement)]
    for judged in _grouped(again, "measure"):
        yield _judgements(judged)


def _grouped(reports: Sequence[Any], name: str) -> list[list[Any]]:
    """Split reports by benchmark, measure and another field."""
    groups: dict[tuple[Any, ...], list[Any]] = {}
    for report in reports:
        groups.setdefault((_where(report), getattr(report, name)), []).append(report)
    return list(groups.values())


def _where(report: Any) -> str:
    places = (report.benchmark, report.task, report.subset, report.split)
    named = list(dict.fromkeys(place for place in places if place)) or ["benchmark"]
    return " · ".join([*named, report.measure])


def _comparisons(group: Sequence[Comparison]) -> Sheet:
    first = group[0]
    several = first.n_candidates > 1
    facts = counted(first.n_queries, "query")
    if first.n_units != first.n_queries:
        facts += f" in {counted(first.n_units, 'group')} that vary together"
    # the reason starts with a name, which keeps its case
    below = [f"{c.candidate}: {c.verdict}. {c.reason}." for c in group]
    below += [f"{note.code}  {note.message}" for note in _notes(group)]
    return Sheet(
        f"{_where(first)} · compared with {first.baseline}, which scores"
        f" {number(first.baseline_score, 4)} ({facts})",
        (
            *("candidate", "score", "difference", f"p{' (Holm)' if several else ''}", "d"),
            *("better\nworse", "verdict"),
        ),
        tuple(
            (
                c.candidate,
                number(c.candidate_score, 4),
                _with_interval(c.difference, c.low, c.high),
                f"{c.p_holm:.3g}",
                number(c.cohens_d, 2),
                f"{c.better:,}\n{c.worse:,}",
                c.verdict,
            )
            for c in group
        ),
        tuple(below),
        tuple((c.candidate, _made(c)) for c in group),
    )


def _beyond(group: Sequence[Comparison]) -> Sheet:
    return Sheet(
        "What the candidate gains beyond what each null gains with it",
        ("candidate", *NULLS, "beyond all"),
        tuple(
            (
                c.candidate,
                *(_with_interval(n.difference, n.low, n.high) for n in c.nulls.values()),
                _BEYOND[c.beyond_nulls],
            )
            for c in group
        ),
        (
            "How to read it: the verdict asks whether the scores differ (sign-flip test, p at most"
            " alpha); d is Cohen's d for paired data. Beyond all: the differences to all four"
            " nulls grow, by their intervals. No comparison is a PASS: see each system's own"
            " verdict. Comparisons decide no exit status.",
        ),
    )


def _grades(table: GradeTable) -> Sheet:
    return Sheet(
        f"{_where(table)} · {table.system} at each grade ({counted(table.n_queries, 'query')})",
        ("grade", "relevant", "queries", "score", *NULLS, "verdict"),
        tuple(
            (
                f"≥ {row.grade}",
                f"{row.relevant:,}",
                f"{row.queries:,}",
                number(row.report.score, 4),
                *(number(null.delta, sign=True) for null in row.report.nulls.values()),
                row.report.verdict,
            )
            for row in table.rows
        ),
        (
            "Lower grades count as not relevant; queries is how many still have a relevant"
            " document, the others count 0.",
        ),
        ((table.system, _made(table)),),
    )


def _judgements(group: Sequence[SecondJudgement]) -> Sheet:
    below = [f"{j.system}, {j.judge}: {sentence(j.reason)}" for j in group]
    below += [f"{note.code}  {note.message}" for note in _notes(group)]
    below.append(
        "Jaccard: relevant for both over relevant for either, mean over queries; kappa: Cohen's,"
        " over the documents that both judged."
    )
    return Sheet(
        f"{_where(group[0])} · other judgements",
        ("system", "judgements", "queries", "Jaccard", "kappa", "score", "verdict"),
        tuple(
            (
                j.system,
                f"main\n{j.judge}",
                f"{j.n_queries:,}",
                number(j.overlap.jaccard),
                number(j.overlap.kappa),
                f"{number(j.first.score, 4)}\n{number(j.second.score, 4)}",
                f"{j.first.verdict}\n{j.second.verdict}",
            )
            for j in group
        ),
        tuple(below),
        tuple((f"{j.system}, {j.judge}", _made(j)) for j in group),
    )


def _made(report: Any) -> dict[str, Any]:
    return {"settings": report.settings, **report.provenance}


def _notes(group: Sequence[Any]) -> list[Any]:
    return list(dict.fromkeys(note for report in group for note in report.warnings))


def _with_interval(value: float, low: float, high: float) -> str:
    interval = "unknown" if math.isnan(low) else f"{number(low)}…{number(high)}"
    return f"{number(value, sign=True)}\n{interval}"


def dependence_lines(report: GateReport) -> Iterator[str]:
    """Say which queries were resampled together and permuted among themselves."""
    known = report.dependence
    if known is None:
        return
    clusters, blocks, strata = (known[name] for name in ("clusters", "blocks", "strata"))
    if clusters is not None:
        yield (
            f"Clusters: {clusters['clusters']:,} among {counted(report.n_queries, 'query')}, the"
            " largest"
            f" holds {clusters['largest']:,} ({clusters['source']}). {_widening(known)}"
        )
    if blocks is not None:
        yield (
            f"Blocks: {blocks['blocks']:,} of {counted(blocks['length'], 'query')} in a row"
            f" ({blocks['source']}). {_widening(known)}"
        )
    if strata is not None:
        merged = sum(len(group) for group in strata["merged"])
        small = f"; {merged} small ones were merged" if merged else ""
        yield (
            f"Strata: null A permutes inside {strata['strata']:,} ({strata['source']}{small});"
            f" {100 * strata['self_pairs']:.3g} % of its pairs are a query and its own answers."
        )


def _widening(known: Any) -> str:
    times = ", ".join(
        f"{name} {number(times, 2)}" if times is not None else f"{name} n/a"
        for name, times in known["widening"].items()
    )
    return f"Intervals over those of queries taken one by one: {times}."
