"""The report as small Markdown tables, for a pull request or a README."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from falsify_adapters.report.groups import by_benchmark, title
from falsify_adapters.report.outcome import Outcome
from falsify_adapters.report.scores import markdown as scores_markdown
from falsify_adapters.report.text import number, printable
from falsify_adapters.results import NULLS, GateReport, NullResult


def to_markdown(outcome: Outcome) -> str:
    """Render an outcome: for gate reports a table and the reasons per benchmark and measure.

    Names and ids are escaped: they can neither leave their cell nor carry HTML or Markdown.
    """
    reports = outcome.gate_reports()
    sections = [_section(group) for group in by_benchmark(reports)]
    scores = scores_markdown(outcome, escape)
    return "\n".join([*sections, *([scores] if scores else [])])


def _section(group: Sequence[GateReport]) -> str:
    first = group[0]
    head = ["system", "score", *NULLS, "verdict"]
    lines = [
        f"**{escape(title(first, ' · '))}** ({first.n_queries:,} queries,"
        f" {first.corpus_size:,} documents, tau {first.tau:.4g})",
        "",
        f"| {' | '.join(head)} |",
        f"|{' --- |' + ' ---: |' * (len(head) - 2) + ' --- |'}",
        *(_row(report) for report in group),
        "",
        *(f"- {escape(r.system)}: {r.verdict}. {escape(r.reason)}" for r in group),
    ]
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
