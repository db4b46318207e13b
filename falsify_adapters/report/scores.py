"""Certificates, reproduced scores and means per model, as text for terminals and Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from falsify_adapters.certificate import WHAT_IT_MEANS, Certificate
from falsify_adapters.notes import counted
from falsify_adapters.report.models import VERDICTS, FolderReport, ModelRow
from falsify_adapters.report.outcome import Outcome
from falsify_adapters.report.text import number
from falsify_adapters.reproduce import Reproduction

#: Rows that a terminal shows; the files have all of them.
MOST_ROWS = 60

_ALSO = (
    "The score that MTEB reports may leave out queries without an answer, which makes it larger"
    " than the mean over all queries."
)


@dataclass(frozen=True)
class Table:
    """A table, its heading, and what is said below it.

    Parameters
    ----------
    heading : str
        Above the table.
    head : tuple of str
        Column names; the first column is text, the others are numbers or short words.
    rows : tuple of tuple of str
        Cells.
    below : tuple of str
        Paragraphs.
    """

    heading: str
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    below: tuple[str, ...] = ()


def tables(outcome: Outcome, *, most_rows: int | None = None) -> Iterator[Table]:
    """Yield what an outcome holds beside gate reports.

    Parameters
    ----------
    outcome : Outcome
        What a command found.
    most_rows : int, optional
        Longest table of certificates.
    """
    certificates = [r for r in outcome.reports if isinstance(r, Certificate)]
    yield from _certificates(certificates, most_rows)
    checks = [report for report in outcome.reports if isinstance(report, Reproduction)]
    if checks:
        yield _reproductions(checks, most_rows)
    rows = [report for report in outcome.reports if isinstance(report, ModelRow)]
    if rows:
        unbounded = sum(not certificate.bounds for certificate in certificates)
        yield _models(rows, unbounded)
    for report in outcome.reports:
        if isinstance(report, FolderReport):
            yield _folder(report)


def _certificates(certificates: Sequence[Certificate], most_rows: int | None) -> Iterator[Table]:
    groups: dict[tuple[str | None, ...], list[Certificate]] = {}
    for certificate in certificates:
        key = (certificate.task, certificate.split, certificate.subset, certificate.measure)
        groups.setdefault(key, []).append(certificate)
    left = most_rows
    for group in groups.values():
        shown = group if left is None else group[: max(left, 0)]
        left = None if left is None else left - len(shown)
        if shown:
            yield _group(group, shown)
    if certificates:
        counts = Counter[str](certificate.verdict for certificate in certificates)
        total = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
        hidden = len(certificates) - (most_rows or len(certificates))
        more = f" {hidden} more are in the files that --json and --csv write." if hidden > 0 else ""
        yield Table(
            f"{counted(len(certificates), 'score')}: {total}.{more}", below=(WHAT_IT_MEANS, _ALSO)
        )


def _group(group: Sequence[Certificate], shown: Sequence[Certificate]) -> Table:
    first = group[0]
    names = list(dict.fromkeys(n for n in (first.task, first.subset, first.split) if n))
    facts = [f"tau {first.tau:.4g}"]
    if first.corpus_size is not None:
        facts.insert(0, f"{counted(first.corpus_size, 'document')} ({first.corpus_size_source})")
    if first.n_queries is not None:
        facts.insert(0, counted(first.n_queries, "query"))
    heading = f"{' · '.join([*names, first.measure])} · reported scores ({', '.join(facts)})"
    below = []
    if first.ceiling is not None:
        bounds = ", ".join(f"{name} {bound.bound:.4f}" for name, bound in first.bounds.items())
        below.append(
            f"A ranking that never reads a query scores {first.ceiling:.4f}. The nulls' means are"
            f" at most: {bounds}."
        )
    rows = []
    for certificate in shown:
        deltas = [
            number(certificate.bounds[name].delta, sign=True) if certificate.bounds else "-"
            for name in "ABCD"
        ]
        score = number(certificate.score, 4)
        rows.append((_system(certificate), score, *deltas, certificate.verdict))
    zeros = [_system(c) for c in shown if c.score == 0]
    if zeros:
        below.append(f"{', '.join(zeros)}: {_first_upper(group_reason(group))}.")
    codes = {(note.code, note.message) for c in group for note in c.warnings}
    below += [f"{code}: {message}" for code, message in sorted(codes)]
    head = ("system", "score", *(f"{name} ≥" for name in "ABCD"), "verdict")
    return Table(heading, head, tuple(rows), tuple(below))


def group_reason(group: Sequence[Certificate]) -> str:
    """Return why a score of exactly 0 fails."""
    return next(certificate.reason for certificate in group if certificate.score == 0)


def _system(report: Certificate | Reproduction) -> str:
    revision = report.revision
    return f"{report.system} ({revision[:8]})" if revision else report.system


def _reproductions(checks: Sequence[Reproduction], most_rows: int | None) -> Table:
    counts = Counter(check.status for check in checks)
    heading = (
        f"Reported scores recomputed from the rankings: {counts['equal']} equal,"
        f" {counts['explained']} explained, {counts['not reproduced']} not reproduced"
    )
    lines = []
    for check in checks:
        if check.status != "equal":
            parts = dict.fromkeys(n for n in (check.task, check.subset, check.split) if n)
            lines.append(f"{_system(check)}, {', '.join(parts)}, {check.measure}: {check}.")
    hidden = len(lines) - (most_rows or len(lines))
    if hidden > 0:
        lines = [*lines[:most_rows], f"{hidden} more are in the file that --json writes."]
    return Table(heading, below=tuple(lines))


def _models(rows: Sequence[ModelRow], unbounded: int) -> Table:
    used = [verdict for verdict in VERDICTS if any(verdict in row.verdicts for row in rows)]
    several = len({row.measure for row in rows}) > 1
    ragged = any(row.n_tasks != row.n_common for row in rows)
    head = ["model", *(["measure"] if several else []), "tasks", "mean (task)"]
    common = max(row.n_common for row in rows)
    if ragged and common:
        head.append(f"mean over {common} common")
    body = []
    for row in rows:
        cells = [row.system, *([row.measure] if several else []), str(row.n_tasks)]
        cells.append(number(row.mean_task, 4))
        if ragged and common:
            cells.append("-" if row.mean_common is None else number(row.mean_common, 4))
        cells += [f"{row.verdicts.get(v, 0)} ({row.share(v):.0%})" for v in used]
        body.append(tuple(cells))
    below = []
    if ragged:
        below.append(
            "The models have results on different tasks: their means over all tasks cannot be"
            f" compared.{'' if common else ' No task is common to all of them.'}"
        )
    if unbounded:
        below.append(
            f"Not in this table: {counted(unbounded, 'score')} below tau on tasks whose qrels"
            " are not at hand."
        )
    measure = "main scores" if rows[0].measure == "main score" else rows[0].measure
    title = "Models" if several else f"Models, {measure}"
    return Table(
        f"{title} (verdicts per split and subset that counts)",
        (*head, *used),
        tuple(body),
        tuple(below),
    )


def _folder(report: FolderReport) -> Table:
    files = ", ".join(f"{kind} {count:,}" for kind, count in report.files.items())
    lines = [
        f"{count:,} x {oddity}, such as {report.examples.get(oddity, '')}"
        for oddity, count in sorted(report.oddities.items())
    ]
    return Table(f"Files: {files or 'none'}", below=tuple(lines))


def markdown(outcome: Outcome, escape: Callable[[str], str]) -> str:
    """Render the tables as Markdown."""
    return "\n".join(_markdown(table, escape) for table in tables(outcome))


def _markdown(table: Table, escape: Callable[[str], str]) -> str:
    lines = [f"**{escape(table.heading)}**", ""]
    if table.rows:
        lines += [
            f"| {' | '.join(map(escape, table.head))} |",
            f"|{' --- |' + ' ---: |' * (len(table.head) - 1)}",
            *(f"| {' | '.join(map(escape, row))} |" for row in table.rows),
            "",
        ]
    lines += [f"- {escape(line)}" for line in table.below]
    return "\n".join(lines) + "\n"


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]
