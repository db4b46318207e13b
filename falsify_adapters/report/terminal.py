"""The report on a terminal: one table per benchmark and measure, then the reasons in words.

Everything is readable without having read the method, at 80 columns, and without colours.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from falsify_adapters.audit import Audit
from falsify_adapters.notes import counted, plural
from falsify_adapters.report.audits import LEGEND as AUDIT_LEGEND
from falsify_adapters.report.audits import audit_table, by_measure, ceiling_line, oddities
from falsify_adapters.report.averages import MacroAverage
from falsify_adapters.report.beside import Sheet, dependence_lines, sheets
from falsify_adapters.report.groups import by_benchmark, title, warnings_of
from falsify_adapters.report.outcome import Outcome
from falsify_adapters.report.scores import MOST_ROWS, tables
from falsify_adapters.report.scores import Table as ScoreTable
from falsify_adapters.report.text import number, plain_ascii, printable, sentence, share, shorten
from falsify_adapters.results import NULLS, GateReport, NullResult

if TYPE_CHECKING:
    import pandas as pd

#: The colours of verdicts; the marks and words say the same without them.
STYLES = {"PASS": "bold green", "FAIL": "bold red", "UNDER-NS": "bold yellow"}
#: Those of certificates.
CERTIFICATE_STYLES = {"CERTIFIED": "green", "NOT CERTIFIED": "yellow", "FAIL": "red"}

#: From this width on, a delta and its interval share one line.
WIDE = 132
NARROWEST = 80
#: Prose is not set wider than this.
LONGEST_LINE = 110
#: Longer names are cut in the table: 15 columns at 80, folded once.
LONGEST_NAME = 30

LEGEND = {
    "A": "the right answers, shuffled among the queries",
    "B": "one of the benchmark's answer sets, drawn at random for each query",
    "C": "random documents of the corpus instead of the system's ranking",
    "D": "answers drawn by popularity: documents often right are drawn often",
}


@dataclass(frozen=True)
class Signs:
    """The characters of a table that differ between Unicode and plain ASCII."""

    to: str
    marks: dict[str, str]
    dot: str
    box: box.Box
    clean: Callable[[str], str]


UNICODE = Signs("…", {"PASS": "✓", "FAIL": "✗", "UNDER-NS": "?"}, " · ", box.SIMPLE_HEAD, printable)
PLAIN = Signs(
    "~",
    {"PASS": "+", "FAIL": "x", "UNDER-NS": "?"},
    " - ",
    box.Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True),
    lambda text: plain_ascii(printable(text)),
)


def to_terminal(
    outcome: Outcome, *, width: int = 80, color: bool = False, ascii_only: bool = False
) -> str:
    """Render all gate reports of an outcome.

    Parameters
    ----------
    outcome : Outcome
        What the command found. Refusals are not part of the text: they belong on standard error.
    width : int
        Columns of the terminal; below 80 the text is made for 80.
    color : bool
        Write ANSI colours.
    ascii_only : bool
        Use nothing beyond ASCII.

    Returns
    -------
    str
        Lines without trailing blanks.
    """
    signs = PLAIN if ascii_only else UNICODE
    width = max(width, NARROWEST)
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        no_color=not color,
        color_system="standard" if color else None,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
    )
    reports = outcome.gate_reports()
    with console.capture() as captured:
        for group in by_benchmark(reports):
            _print_group(console, group, signs, wide=width >= WIDE)
        averages = [report for report in outcome.reports if isinstance(report, MacroAverage)]
        for average in averages:
            alike = {a.split for a in averages if a.benchmark == average.benchmark}
            text = _average(average, split=len(alike) > 1)
            _print_item(console, Text(signs.clean(text)))
        if reports:
            _print_legend(console, reports, signs)
        for table in tables(outcome, most_rows=MOST_ROWS):
            _print_scores(console, table, signs)
        for sheet in sheets(outcome):
            _print_sheet(console, sheet, signs)
        if outcome.audits():
            _print_audits(console, outcome.audits(), signs)
        _print_plan(console, outcome, signs)
        for skip in outcome.skipped:
            _print_item(console, Text(signs.clean(f"left out {skip.input}: {skip.reason}")))
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def _print_group(
    console: Console, group: Sequence[GateReport], signs: Signs, *, wide: bool
) -> None:
    first = group[0]
    facts = f"{counted(first.n_queries, 'query')}, {counted(first.corpus_size, 'document')}"
    facts += f" ({first.corpus_size_source}), tau {first.tau:.4g}"
    heading = Text(signs.clean(title(first, signs.dot)), style="bold")
    _print_item(console, Text.assemble(heading, signs.dot, facts))
    console.print(_table(group, signs, wide=wide))
    console.print()
    if first.ceiling is not None:
        _print_item(console, Text(signs.clean(ceiling_line(first.ceiling))), indent=1)
    for report in group:
        verdict = (report.verdict, STYLES[report.verdict])
        reason = signs.clean(sentence(report.reason))
        head = Text.assemble((signs.clean(report.system), "bold"), ": ", verdict, f". {reason}")
        _print_item(console, head, indent=1)
        for line in remarks(report):
            _print_item(console, Text(signs.clean(line)), indent=3)
        if report.curve is not None:
            _print_curve(console, report.curve, signs)
    for note, systems in warnings_of(group):
        message = f"{note.message} [{', '.join(systems)}]" if systems else note.message
        text = Text.assemble((note.code, "yellow"), f"  {signs.clean(message)}")
        _print_item(console, text, indent=1)
    console.print()


def _print_plan(console: Console, outcome: Outcome, signs: Signs) -> None:
    said = outcome.plan_said()
    if said is not None:
        head, departures = said
        _print_item(console, Text(signs.clean(head), style="bold" if departures else ""))
        for line in departures:
            _print_item(console, Text(signs.clean(line)), indent=2)


def _print_curve(console: Console, curve: pd.DataFrame, signs: Signs) -> None:
    """Print how wide the intervals are, and what the verdict is, with fewer queries."""
    many = int(curve["subsamples"].max())
    title = f"Width of the intervals, and verdicts, of {counted(many, 'subsample')} of the queries:"
    _print_item(console, Text(title), indent=3)
    table = Table(box=signs.box, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for head in ("queries", *NULLS, *STYLES):
        table.add_column(head, justify="right", no_wrap=True)
    for row in curve.to_dict("records"):
        widths = [number(row[f"width_{name}"]) for name in NULLS]
        table.add_row(f"{row['n_queries']}", *widths, *(f"{row[verdict]}" for verdict in STYLES))
    console.print(Padding(table, (0, 0, 0, 5)))


def _print_scores(console: Console, table: ScoreTable, signs: Signs) -> None:
    _print_item(console, Text(signs.clean(table.heading), style="bold"))
    if table.rows:
        drawn = Table(box=signs.box, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
        for i, name in enumerate(table.head):
            # a heading may take several lines, a number not
            drawn.add_column(
                signs.clean(name).replace(" ", "\n") if i and len(name) > 7 else signs.clean(name),
                min_width=None if i else 12,
                overflow="fold",
                justify="right" if i else "left",
                no_wrap=bool(i),
            )
        for row in table.rows:
            drawn.add_row(
                *(Text(signs.clean(cell), CERTIFICATE_STYLES.get(cell, "")) for cell in row)
            )
        console.print(drawn)
    for line in table.below:
        _print_item(console, Text(signs.clean(line)), indent=1)
    console.print()


def _print_sheet(console: Console, sheet: Sheet, signs: Signs) -> None:
    _print_item(console, Text(signs.clean(sheet.heading), style="bold"))
    table = Table(box=signs.box, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column(signs.clean(sheet.head[0]), overflow="fold", min_width=8)
    for name in sheet.head[1:]:
        column = "\n".join(map(signs.clean, name.split("\n")))
        table.add_column(column, justify="right", overflow="fold")
    for row in sheet.rows:
        # names are cut here and stand in full below the table
        cells = [shorten(row[0], LONGEST_NAME), *(c.replace("…", signs.to) for c in row[1:])]
        lines = [[signs.clean(line) for line in cell.split("\n")] for cell in cells]
        table.add_row(*(Text("\n".join(cell), STYLES.get(cell[0], "")) for cell in lines))
    console.print(table)
    console.print()
    for line in sheet.below:
        _print_item(console, Text(signs.clean(line)), indent=1)
    console.print()


def _print_audits(console: Console, audits: Sequence[Audit], signs: Signs) -> None:
    for measure, group in by_measure(audits):
        _print_item(console, Text(signs.clean(f"What {measure} gives away for free"), style="bold"))
        console.print(audit_table(group, signs.box, signs.clean))
        console.print()
        for audit in group:
            for phrase in oddities(audit):
                head = (signs.clean(audit.title), "bold")
                _print_item(console, Text.assemble(head, f": {signs.clean(phrase)}"), indent=1)
    for audit in audits:
        for note in audit.warnings:
            _print_item(console, Text(signs.clean(f"{note} [{audit.title}]")), indent=1)
    _print_item(console, Text(signs.clean(AUDIT_LEGEND)))


def _print_item(console: Console, text: Text, *, indent: int = 0, hang: int = 2) -> None:
    """Print a paragraph, its first line indented, its further lines by `hang` more."""
    lines = text.wrap(console, min(console.width, LONGEST_LINE) - indent - hang)
    for i, line in enumerate(lines):
        line.rstrip()
        console.print(Text(" " * (indent + (hang if i else 0))) + line)


def _table(group: Sequence[GateReport], signs: Signs, *, wide: bool) -> Table:
    """Lay out one row per system; narrow terminals get a row of two lines."""
    table = Table(box=signs.box, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("system", overflow="fold", min_width=8)
    table.add_column("score" if wide else "score\nverdict", justify="right", no_wrap=True)
    for name in NULLS:
        table.add_column(name if wide else f"{name}  ", justify="right", no_wrap=True)
    if wide:
        table.add_column("verdict", no_wrap=True)
    for report in group:
        # the full name stands in the sentence below the table
        system = Text(shorten(signs.clean(report.system), LONGEST_NAME))
        if signs is PLAIN:
            system = Text(plain_ascii(system.plain))
        if report.role != "run":
            system.append(f"{' ' if wide else chr(10)}({report.role})")
            system.stylize("dim")
        score, verdict = number(report.score, 4), Text(report.verdict, STYLES[report.verdict])
        cells = [_cell(report.nulls[name], signs, wide=wide) for name in NULLS]
        if wide:
            table.add_row(system, score, *cells, verdict)
        else:
            table.add_row(system, Text(f"{score}\n") + verdict, *cells)
    return table


def _cell(null: NullResult, signs: Signs, *, wide: bool) -> Text:
    delta = f"{number(null.delta, sign=True)} {signs.marks[null.verdict]}"
    interval = f"{number(null.low)}{signs.to}{number(null.high)}"
    text = Text(delta, style=STYLES[null.verdict].removeprefix("bold "))
    return text.append(f"  {interval:>13}" if wide else f"\n{interval}", style="default not bold")


def remarks(report: GateReport) -> Iterator[str]:
    """Say what neither the table nor a warning shows of one system."""
    warned = {note.code for note in report.warnings}
    if report.ceiling is not None and report.ceiling["below"]:
        yield sentence(report.ceiling["sentence"])
    companion = report.companion
    if companion is not None and not companion.agrees and "W-COMPANION" not in warned:
        yield (
            f"The strict companion disagrees: {companion.measure} on each query's"
            f" highest-graded documents, {number(companion.score, 4)}, is {companion.verdict}."
        )
    ties = report.ties
    if ties is not None and ties.high_score > ties.low_score and "W-TIES" not in warned:
        verdicts = " or ".join(dict.fromkeys((ties.low_verdict, ties.high_verdict)))
        yield (
            f"Ties: {counted(ties.queries, 'query')} {plural(ties.queries, 'has', 'have')} tied"
            " scores that reach into the cutoff; by their"
            f" order the score lies between {number(ties.low_score, 4)} and"
            f" {number(ties.high_score, 4)}, and the verdict is {verdicts}."
        )
    yield from dependence_lines(report)
    if report.definition_1 != (report.verdict == "PASS"):
        does = "holds" if report.definition_1 else "does not hold"
        yield f"The plain point rule, every difference at least tau, {does}."
    if number(report.score_answered, 4) != number(report.score, 4):
        yield (
            f"BEIR and MTEB print {number(report.score_answered, 4)} for this run: they average"
            " over the answered queries only."
        )


def _average(average: MacroAverage, *, split: bool) -> str:
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in average.verdicts.items())
    return (
        f"{average.benchmark}{f' {average.split}' if split else ''}, {average.measure}:"
        f" {average.system} has the macro average"
        f" {number(average.score, 4)} over {average.n_parts} parts ({verdicts})."
    )


def _print_legend(console: Console, reports: Sequence[GateReport], signs: Signs) -> None:
    settings = reports[0].settings
    confidence = share(1 - settings.get("alpha", 0.05))
    taus = ", ".join(dict.fromkeys(f"{report.tau:.4g}" for report in reports))
    passed, failed, unsure = (signs.marks[verdict] for verdict in STYLES)
    joint = "" if settings.get("correction") == "none" else ", for the four together"
    _print_item(
        console,
        Text(
            "How to read it: A to D are the score minus what it would be with something that knows"
            f" nothing of the queries, and the interval of that difference ({confidence}"
            f" confidence{joint}):"
        ),
    )
    for name, meaning in LEGEND.items():
        _print_item(console, Text.assemble("  ", (name, "bold"), f"  {meaning}"), hang=5)
    if settings.get("decision") == "point":
        rule = (
            f"{passed} the difference is at least tau = {taus}; {failed} it is not."
            " PASS takes all four."
        )
    else:
        rule = (
            f"{passed} the whole interval is at or above tau = {taus}; {failed} it is below;"
            f" {unsure} tau lies inside, too few queries to tell. PASS takes all four; one {failed}"
            " is a FAIL, if any system can pass; else UNDER-NS."
        )
    _print_item(console, Text(rule))
    if any(report.role == "control" for report in reports):
        _print_item(
            console, Text("Controls show what the gate catches; they decide no exit status.")
        )
