"""The audit of benchmarks: a row each, then what is odd about them, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.box import Box
from rich.table import Table

from falsify_adapters.audit import Audit, in_order
from falsify_adapters.notes import counted
from falsify_adapters.report.text import number, share

LEGEND = (
    "How to read it: the ceiling is what one ranking scores that is the same for every query, made"
    " with all answers known; a range where only bounds are known. A system below it shows nothing"
    " that a ranking without reading could not. Held out, or from another split, is what such a"
    " ranking scores on queries that it was not made from: the rest is memorised. Documents are"
    " relevant to some query; spread is how many of them, equally popular, would spread the answers"
    " as thin; top is the share of queries that the most popular one answers."
)


def by_measure(audits: Sequence[Audit]) -> Iterator[tuple[str, list[Audit]]]:
    """Yield the audits of each measure, the highest ceiling first."""
    for measure, group in groupby(in_order(audits), key=lambda audit: audit.measure):
        yield measure, list(group)


def audit_table(group: Sequence[Audit], box: Box, clean: Callable[[str], str]) -> Table:
    """Lay out one row per benchmark for the terminal."""
    table = Table(box=box, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    head = audit_head(group)
    table.add_column(head[0], overflow="fold", min_width=12)
    for name in head[1:]:
        table.add_column(name, justify="right", no_wrap=True)
    for audit in group:
        table.add_row(*map(clean, audit_cells(audit, len(head))))
    return table


def audit_head(group: Sequence[Audit]) -> list[str]:
    """Return the names of the columns."""
    fitted = {audit.held_out.fitted_on for audit in group if audit.held_out}
    halves = fitted == {"random halves"}
    held_out = ["held out" if halves else f"from {', '.join(sorted(fitted))}"] if fitted else []
    return ["benchmark", "queries", "ceiling", *held_out, "documents", "spread", "top"]


def audit_cells(audit: Audit, n_columns: int) -> list[str]:
    """Return the cells of a row for so many columns: one more than usual has the held-out score."""
    ceiling = audit.ceiling
    cells = [
        audit.title,
        f"{ceiling.n_queries:,}",
        ceiling_text(ceiling.kind, ceiling.score, ceiling.upper),
    ]
    if n_columns > 6:
        cells.append(number(audit.held_out.score, 4) if audit.held_out else "")
    return [
        *cells,
        f"{ceiling.n_documents:,}",
        f"{ceiling.effective_documents:,.0f}",
        share(round(ceiling.largest_popularity / ceiling.n_queries, 3)),
    ]


def ceiling_text(kind: str, score: float, upper: float) -> str:
    """Return the ceiling, or the range in which it lies.

    Examples
    --------
    >>> ceiling_text("exact", 0.25, 0.25)
    '0.2500'
    """
    if kind == "exact":
        return number(score, 4)
    return f"{number(score, 4)}\N{EN DASH}{number(upper, 4)}"


def ceiling_line(ceiling: Mapping[str, Any]) -> str:
    """Return the fifth line of a gate report: what a ranking gets without reading a query."""
    text = ceiling_text(ceiling["kind"], ceiling["score"], ceiling["upper"])
    return f"Query-blind ceiling {text}: the most that one ranking for all queries scores here."


def oddities(audit: Audit) -> list[str]:
    """Return a phrase for each thing that is odd about a benchmark."""
    found = audit.findings
    odd = [
        (found.without_relevant, "{} without a relevant document"),
        (found.same_gold_set, "{} with the relevant documents of another"),
        (found.same_text, "{} with the text of another"),
        (found.text_is_document, "{} whose text is a document's"),
    ]
    phrases = [
        text.format(f"{count:,} of {counted(found.n_queries, 'query')}")
        for count, text in odd
        if count
    ]
    if found.gold_not_in_corpus:
        phrases.append(
            f"{found.gold_not_in_corpus:,} of"
            f" {counted(audit.ceiling.n_documents, 'relevant document')} not"
            " in the corpus"
        )
    return phrases
