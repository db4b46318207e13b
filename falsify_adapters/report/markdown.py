"""The report as small Markdown tables, for a pull request or a README."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from falsify_adapters.audit import Audit
from falsify_adapters.notes import counted
from falsify_adapters.report.audits import audit_cells, audit_head, by_measure, ceiling_line
from falsify_adapters.report.beside import Sheet, dependence_lines, sheets
from falsify_adapters.report.groups import by_benchmark, title
from falsify_adapters.report.outcome import Outcome
from falsify_adapters.report.scores import markdown as scores_markdown
from falsify_adapters.report.text import number, printable, sentence
from falsify_adapters.results import NULLS, GateReport, NullResult


def to_markdown(outcome: Outcome) -> str:
    """Render an outcome: a table and the reasons per benchmark and measure, or a table of audits.

    Names and ids are escaped: they can neither leave their cell nor carry HTML or Markdown.
    """
    groups = by_benchmark(outcome.gate_reports())
    sections = [*_plan(outcome), *([_matrix(groups)] if len(groups) > 1 else [])]
    sections += [_section(group) for group in groups]
    sections += [_sheet(sheet) for sheet in sheets(outcome)]
    audits = outcome.audits()
    if audits:
        sections += [_audit_section(measure, group) for measure, group in by_measure(audits)]
    scores = scores_markdown(outcome, escape)
    return "\n".join([*sections, *([scores] if scores else [])])


def _plan(outcome: Outcome) -> Iterator[str]:
    said = outcome.plan_said()
    if said is not None:
        head, departures = said
        head = f"**{escape(head)}**" if departures else escape(head)
        yield "\n".join([head, "", *(f"- {escape(line)}" for line in departures)]).rstrip() + "\n"


def _matrix(groups: Sequence[Sequence[GateReport]]) -> str:
    """Lay out systems by benchmarks: verdict and score."""
    systems = dict.fromkeys((report.system, report.role) for group in groups for report in group)
    lines = [
        f"| system | {' | '.join(escape(title(group[0], ' · ')) for group in groups)} |",
        f"|{' --- |' * (len(groups) + 1)}",
    ]
    for system, role in systems:
        cells = [escape(system) + (f" ({role})" if role != "run" else "")]
        for group in groups:
            found = [r for r in group if (r.system, r.role) == (system, role)]
            cells.append(f"{found[0].verdict} {number(found[0].score, 4)}" if found else "")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _section(group: Sequence[GateReport]) -> str:
    first = group[0]
    head = ["system", "score", *NULLS, "verdict"]
    lines = [
        f"**{escape(title(first, ' · '))}** ({counted(first.n_queries, 'query')},"
        f" {counted(first.corpus_size, 'document')}, tau {first.tau:.4g})",
        "",
        f"| {' | '.join(head)} |",
        f"|{' --- |' + ' ---: |' * (len(head) - 2) + ' --- |'}",
        *(_row(report) for report in group),
        "",
        *([ceiling_line(first.ceiling), ""] if first.ceiling is not None else []),
        *(f"- {escape(r.system)}: {r.verdict}. {escape(sentence(r.reason))}" for r in group),
        *(f"- {escape(f'{r.system}: {line}')}" for r in group for line in dependence_lines(r)),
    ]
    return "\n".join(lines) + "\n"


def _sheet(sheet: Sheet) -> str:
    head, *rows = (
        [escape(cell.replace("\n", " ")) for cell in row] for row in (sheet.head, *sheet.rows)
    )
    lines = [
        f"**{escape(sheet.heading)}**",
        "",
        f"| {' | '.join(head)} |",
        f"|{' --- |' + ' ---: |' * (len(head) - 1)}",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        *(f"- {escape(line)}" for line in sheet.below),
    ]
    return "\n".join(lines) + "\n"


#: Counts of an audit, by the column's name.
_COUNTS = {
    "no relevant": "without_relevant",
    "same gold": "same_gold_set",
    "same text": "same_text",
    "text is a document": "text_is_document",
    "gold not in corpus": "gold_not_in_corpus",
}


def _audit_section(measure: str, group: Sequence[Audit]) -> str:
    own = audit_head(group)
    head = [*own, *_COUNTS]
    lines = [
        f"**{escape(measure)}**: what one ranking for all queries scores",
        "",
        f"| {' | '.join(head)} |",
        f"|{' --- |' + ' ---: |' * (len(head) - 1)}",
    ]
    for audit in group:
        name, *cells = audit_cells(audit, len(own))
        counts = [getattr(audit.findings, field) for field in _COUNTS.values()]
        cells += ["?" if count is None else f"{count:,}" for count in counts]
        lines.append(f"| {' | '.join([escape(name), *cells])} |")
    return "\n".join(lines) + "\n"


def _row(report: GateReport) -> str:
    system = escape(report.system)
    if report.role != "run":
        system += f" ({report.role})"
    cells = [_cell(report.nulls[name]) for name in NULLS]
    return f"| {' | '.join([system, number(report.score, 4), *cells, report.verdict])} |"


def _cell(null: NullResult) -> str:
    return f"{number(null.delta, sign=True)} [{number(null.low)}, {number(null.high)}]"


def escape(text: str) -> str:
    r"""Return text that Markdown shows as it is.

    Examples
    --------
    >>> escape("a|b <script> *x*")
    'a\\|b &lt;script&gt; \\*x\\*'
    """
    return re.sub(r"([\\`*_{}\[\]()#!|~])", r"\\\1", html.escape(printable(text), quote=False))
