"""The report as one self-contained page: no network, readable without JavaScript, printable."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pandas as pd

from falsify_adapters import __version__
from falsify_adapters.errors import MissingExtraError
from falsify_adapters.notes import counted, plural
from falsify_adapters.playground import PREDICTORS, SHARES, Playground, Point, report_key
from falsify_adapters.provenance import describe_environment
from falsify_adapters.report import svg
from falsify_adapters.report.audits import LEGEND as AUDITED
from falsify_adapters.report.audits import audit_cells, audit_head, by_measure, oddities
from falsify_adapters.report.averages import MacroAverage
from falsify_adapters.report.beside import Sheet, dependence_lines, sheets
from falsify_adapters.report.groups import by_benchmark, title, warnings_of
from falsify_adapters.report.outcome import SCHEMA, Outcome
from falsify_adapters.report.scores import tables
from falsify_adapters.report.text import number, printable, sentence, share, shorten
from falsify_adapters.results import NULL_NAMES, NULLS, GateReport, NullResult, plain

if TYPE_CHECKING:
    from jinja2 import Environment

#: Longer names are cut in their middle, except where they are given in full.
LONGEST_NAME = 64
#: How many of the worst queries are named.
WORST = 10

#: What each null does, for people who have not read the method.
MEANINGS = {
    "A": "The right answers are shuffled among the queries. A system that reads the query loses"
    " its score; one that gives everybody the same keeps it.",
    "B": "Each query gets one of the benchmark's answer sets, drawn at random.",
    "C": "The system's ranking is replaced by random documents of the corpus.",
    "D": "The answers are drawn by popularity: documents that are often right are drawn often.",
}
LEADS = {
    "PASS": "None of the four nulls explains this score.",
    "FAIL": "Something that knows nothing of the queries comes within tau of this score.",
    "UNDER-NS": "These queries, or this order of ties, cannot tell.",
}
MARKS = {"PASS": "✓", "FAIL": "✗", "UNDER-NS": "?"}


def to_html(outcome: Outcome) -> str:
    """Render all reports of an outcome, playgrounds included.

    Parameters
    ----------
    outcome : Outcome
        What a command found.

    Returns
    -------
    str
        A whole HTML document. The same outcome gives the same bytes.

    Raises
    ------
    MissingExtraError
        If Jinja is not installed.
    """
    environment = _environment()
    reports = outcome.gate_reports()
    groups = [
        _Group(i, group, outcome.playgrounds) for i, group in enumerate(by_benchmark(reports))
    ]
    style, script = _resource("page.css"), _resource("page.js")
    page = environment.get_template("page.html").render(
        style=_raw(style),
        script=_raw(script),
        style_hash=_csp_hash(style),
        script_hash=_csp_hash(script),
        heading=_heading(outcome),
        runs=[report for report in reports if report.role == "run"],
        groups=groups,
        matrix=_Matrix(groups) if len(groups) > 1 else None,
        averages=[r for r in outcome.reports if isinstance(r, MacroAverage)],
        sheets=list(_sheets(outcome)),
        errors=outcome.errors,
        plan=outcome.plan_said(),
        skipped=outcome.skipped,
        settings=_shared_settings(reports),
        version=__version__,
        provenance=list(
            _flat(
                {
                    "schema": SCHEMA,
                    "environment": describe_environment(),
                    "call": outcome.call,
                    "plan": outcome.plan,
                }
            )
        ),
    )
    # a file name may hold half a character, which UTF-8 cannot carry
    return page.encode("utf-8", errors="backslashreplace").decode("utf-8")


class _Group:
    """The systems of one benchmark and measure."""

    def __init__(
        self, position: int, reports: Sequence[GateReport], playgrounds: Sequence[Playground]
    ) -> None:
        self.reports = reports
        self.first = reports[0]
        self.anchor = f"b{position + 1}"
        self.title = title(self.first, " · ")
        by_key = {ground.key: ground for ground in playgrounds}
        self.panels = [_Panel(f"{self.anchor}s{i + 1}", report) for i, report in enumerate(reports)]
        self.playgrounds = [
            _Ground(panel, by_key[report_key(panel.report)])
            for panel in self.panels
            if report_key(panel.report) in by_key
        ]
        self.warnings = warnings_of(reports)


class _Panel:
    """One system: its pictures and what else there is to say of it."""

    def __init__(self, anchor: str, report: GateReport) -> None:
        self.anchor = anchor
        self.report = report
        self.lead = LEADS[report.verdict]
        self.caution = _caution(report)
        nulls = report.nulls
        top = svg.picture_top([report.score], nulls.values(), report.tau)
        self.pictures = [
            {
                "name": name,
                "null": null,
                "picture": _raw(svg.null_picture(report, null, name, top)),
                "histogram": _raw(svg.histogram(report, null, name)),
            }
            for name, null in nulls.items()
        ]
        self.forest = _raw(svg.forest(report))
        self.figures = list(_figures(nulls))
        self.facts = list(_facts(report))
        self.settings = list(_flat({"settings": report.settings, **_named(report.provenance)}))
        self.closest = min(NULLS, key=lambda name: nulls[name].low)
        self.queries = _Queries(report, self.closest) if "A" in report.per_query else None


class _Queries:
    """Every query's own score beside what the closest null expects of it."""

    def __init__(self, report: GateReport, null: str) -> None:
        frame: pd.DataFrame = report.per_query
        gap = frame["score"] - frame[null]
        self.picture = _raw(
            svg.per_query(
                frame["score"].to_numpy(dtype=float),
                frame[null].to_numpy(dtype=float),
                report.tau,
                null,
            )
        )
        self.null = null
        self.total = len(frame)
        self.above = int((gap >= report.tau).sum())
        self.zero = int((frame["score"] == 0).sum())
        worst = frame.assign(gap=gap).sort_values(["gap", "query_id"], kind="stable").head(WORST)
        self.worst = [
            {"query_id": str(q), "score": float(s), "expected": float(e), "gap": float(g)}
            for q, s, e, g in zip(
                worst["query_id"], worst["score"], worst[null], worst["gap"], strict=True
            )
        ]


class _Ground:
    """The playground of one run: a table that needs no script, and the data for the script."""

    def __init__(self, panel: _Panel, ground: Playground) -> None:
        report = panel.report
        self.anchor = f"{panel.anchor}p"
        self.report = report
        self.predictors = PREDICTORS
        self.taus = [f"{tau:g}" for tau in ground.taus]
        self.start = ground.taus.index(report.tau)
        self.rows = [
            (
                share(part),
                [ground.point(predictor, part) for predictor in PREDICTORS if predictor != "run"],
            )
            for part in SHARES
        ]
        points = ground.points
        nulls = [null for point in points for null in point.nulls.values()]
        self.top = svg.picture_top([point.score for point in points], nulls, report.tau)
        start = ground.point("run", 0.0)
        self.pictures = [
            (
                name,
                _raw(svg.playground_picture(start.score, start.nulls[name], report.tau, self.top)),
            )
            for name in NULLS
        ]
        self.verdict = start.at(self.start)
        self.data = _json(
            {
                "taus": list(ground.taus),
                "labels": self.taus,
                "top": self.top,
                "axis": [svg.TOP, svg.BOTTOM],
                "predictors": list(PREDICTORS),
                "points": [_point(point) for point in points],
                "index": [
                    [points.index(ground.point(predictor, part)) for part in SHARES]
                    for predictor in PREDICTORS
                ],
            }
        )

    def at_start(self, point: Point) -> dict[str, str]:
        """Return what the table shows of a mixture at the report's own threshold."""
        step = point.at(self.start)
        return {
            "verdict": step.verdict,
            "mark": MARKS[step.verdict],
            "score": number(point.score, 2),
        }


class _Matrix:
    """Systems by benchmarks, each cell a small multiple."""

    def __init__(self, groups: Sequence[_Group]) -> None:
        self.groups = groups
        reports = [report for group in groups for report in group.reports]
        limits = svg.delta_range(reports)
        names = dict.fromkeys((report.system, report.role) for report in reports)
        self.rows = [
            (name, role, [_cell(group, name, role, limits) for group in groups])
            for name, role in names
        ]


def _cell(
    group: _Group, system: str, role: str, limits: tuple[float, float]
) -> dict[str, Any] | None:
    for panel in group.panels:
        report = panel.report
        if (report.system, report.role) == (system, role):
            picture = _raw(svg.small_forest(report, limits))
            return {"report": report, "anchor": panel.anchor, "picture": picture}
    return None


def _heading(outcome: Outcome) -> dict[str, Any]:
    """Return the page's first words: the verdict of the only run, or how many passed."""
    reports, audits = outcome.gate_reports(), outcome.audits()
    runs = [report for report in reports if report.role == "run"]
    if len(runs) == 1:
        caution = _caution(runs[0])
        return {"report": runs[0], "lead": LEADS[runs[0].verdict], "caution": caution}
    if not runs and audits:
        below = "The most that one ranking, the same for every query, can score."
        return {"report": None, "lead": "What a benchmark gives away for free", "below": below}
    scores = [report for report in outcome.reports if report.kind == "certificate"]
    if not runs and scores:
        below = "Each by itself, without the rankings behind it."
        return {"report": None, "lead": "What reported scores prove", "below": below}
    n_groups = len(by_benchmark(reports))
    below = (
        f"{counted(len(runs), 'graded run')} on {n_groups}"
        f" {plural(n_groups, 'benchmark or measure', 'benchmarks or measures')}: would something"
        " that knows nothing of the queries score as much?"
    )
    return {"report": None, "lead": _tally([run.verdict for run in runs]), "below": below}


def _sheets(outcome: Outcome) -> Iterator[tuple[Sheet, list[tuple[str, list[tuple[str, str]]]]]]:
    """Yield the tables of all that is no gate report, with what each was made from."""
    for sheet in sheets(outcome):
        yield sheet, [(name, list(_flat(facts))) for name, facts in sheet.made]
    audits = list(by_measure(outcome.audits()))
    for measure, group in audits:
        head = audit_head(group)
        below = [f"{audit.title}: {phrase}" for audit in group for phrase in oddities(audit)]
        below += [f"{note} [{audit.title}]" for audit in group for note in audit.warnings]
        rows = tuple(tuple(audit_cells(audit, len(head))) for audit in group)
        heading = f"What {measure} gives away for free"
        made = [(audit.title, list(_flat(audit.provenance))) for audit in group]
        legend = [AUDITED] if measure == audits[-1][0] else []
        yield Sheet(heading, tuple(head), rows, (*below, *legend)), made
    hashes = _hashed_scores(outcome)
    for table in tables(outcome):
        yield Sheet(table.heading, table.head, table.rows, table.below), []
    if hashes:
        yield Sheet("Where these scores come from", (), (), ()), [("all files", hashes)]


def _hashed_scores(outcome: Outcome) -> list[tuple[str, str]]:
    """Return files and frames behind reported scores, each once: there may be thousands."""
    rows = {}
    for report in outcome.reports:
        if report.kind in ("certificate", "reproduction"):
            for key, value in _flat(getattr(report, "provenance", {})):
                if key.rpartition(" ")[2] == "sha256":
                    rows[value] = _source_of(report, key.rpartition(" ")[0])
    return [(name, sha256) for sha256, name in rows.items()]


def _source_of(report: Any, place: str) -> str:
    """Name what has a hash in the provenance of a report on a score."""
    if not place:
        return str(report.provenance.get("file"))
    facts = report.provenance.get(place)
    named = facts.get("name") if isinstance(facts, Mapping) else None
    return f"{place} {named or report.task or ''}".strip()


def _caution(report: GateReport) -> str:
    """Return what must stand beside the verdict: that a blind ranking scores more, if one does."""
    ceiling = report.ceiling
    return f"But {ceiling['sentence']}." if ceiling is not None and ceiling["below"] else ""


def _tally(verdicts: Sequence[str]) -> str:
    """Say how many runs reached which verdict.

    Examples
    --------
    >>> _tally(["PASS", "FAIL", "PASS"])
    '2 of 3 runs pass, 1 fails'
    >>> _tally(["UNDER-NS", "UNDER-NS"])
    'None of 2 runs passes, 2 are undecided'
    """
    if not verdicts:
        return "No run was graded"
    passed, failed, open_ = (verdicts.count(v) for v in MARKS)
    n = len(verdicts)
    if passed == n:
        return "The run passes" if n == 1 else f"All {counted(n, 'run')} pass"
    parts = [
        f"{passed} of {counted(n, 'run')} {plural(passed, 'passes', 'pass')}"
        if passed
        else f"None of {counted(n, 'run')} passes"
    ]
    if failed:
        parts.append(f"{failed} fail{'s' * (failed == 1)}")
    if open_:
        parts.append(f"{open_} {'is' if open_ == 1 else 'are'} undecided")
    return ", ".join(parts)


def _figures(nulls: Mapping[str, NullResult]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield name, explanation and the four values of each figure."""
    rows: tuple[tuple[str, str, Callable[[NullResult], str]], ...] = (
        ("null mean", "what the null scores on average", lambda n: number(n.mean, 4)),
        ("delta", "the score minus that", lambda n: number(n.delta, 4, sign=True)),
        ("from", "lower end of its interval", lambda n: number(n.low, 4)),
        ("to", "upper end of its interval", lambda n: number(n.high, 4)),
        (
            "p-value",
            "how often the null's trials reach the score; a test for A only",
            lambda n: f"{n.p_value:.3g}",
        ),
        (
            "luck margin",
            "how far above its mean the null gets by luck",
            lambda n: number(n.luck_margin, 4),
        ),
        (
            "adjusted",
            "delta as a share of what can be gained over the null",
            lambda n: number(n.adjusted, 4),
        ),
        (
            "attainable",
            "the largest delta that any system can reach here",
            lambda n: ("" if n.attainable_exact else "≤ ") + number(n.attainable, 4),
        ),
        ("verdict", "of this null alone", lambda n: n.verdict),
    )
    for name, meaning, show in rows:
        yield name, meaning, [show(nulls[null]) for null in NULLS]


def _facts(report: GateReport) -> Iterator[tuple[str, str]]:
    """Yield what else was looked at, as term and sentence."""
    if report.ceiling is not None:
        yield "Query-blind ceiling", sentence(report.ceiling["sentence"])
    companion = report.companion
    if companion is not None:
        agrees = "It agrees." if companion.agrees else "It does not agree."
        if companion.verdict == "not applicable":
            agrees = "No system could pass it here."
        yield (
            "Strict companion",
            f"{companion.measure} on each query's highest-graded documents is"
            f" {number(companion.score, 4)}: {companion.verdict}. {agrees}",
        )
    yield "Ties", _ties(report)
    for line in dependence_lines(report):
        kind, _, said = line.partition(": ")
        yield kind, sentence(said)
    does = "holds" if report.definition_1 else "does not hold"
    yield "Point rule", f"The plain rule, every delta at least tau, {does} (Definition 1)."
    same = report.distinct_nulls < len(NULLS)
    yield (
        "Different nulls",
        f"The four nulls test {report.distinct_nulls} different expectations on this benchmark"
        + ("; those that coincide are one number, not several." if same else "."),
    )
    if number(report.score_answered, 4) != number(report.score, 4):
        yield (
            "Answered queries",
            f"BEIR and MTEB print {number(report.score_answered, 4)}: they average over the"
            " answered queries only.",
        )


def _ties(report: GateReport) -> str:
    ties = report.ties
    if ties is None:
        return "No tied scores reach into the cutoff."
    if number(ties.low_score, 6) == number(ties.high_score, 6):
        return (
            f"{counted(ties.queries, 'query')} {plural(ties.queries, 'has', 'have')} tied"
            " scores; their order does not move the score."
        )
    verdicts = " or ".join(dict.fromkeys((ties.low_verdict, ties.high_verdict)))
    return (
        f"{counted(ties.queries, 'query')} {plural(ties.queries, 'has', 'have')} tied scores. By"
        " their order the score lies between"
        f" {number(ties.low_score, 4)} and {number(ties.high_score, 4)}, and the verdict is"
        f" {verdicts}."
    )


def _shared_settings(reports: Sequence[GateReport]) -> Mapping[str, Any]:
    return reports[0].settings if reports else {}


def _named(provenance: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key): value for key, value in provenance.items()}


def _flat(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested settings as one line each."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(item, f"{prefix} {key}".strip())
    elif isinstance(value, (list, tuple)):
        yield prefix, ", ".join(str(plain(item)) for item in value)
    elif value is not None:
        yield prefix, str(plain(value))


def _point(point: Point) -> dict[str, Any]:
    nulls = [
        [
            round(value, 5)
            for value in (
                *(null.mean, null.delta, null.low, null.high),
                *(float(null.trials.min()), float(null.trials.max())),
            )
        ]
        for null in (point.nulls[name] for name in NULLS)
    ]
    steps = [[step.start, step.nulls, step.verdict, step.reason] for step in point.steps]
    return {"score": round(point.score, 5), "nulls": nulls, "steps": steps}


@dataclass(frozen=True)
class _Markup:
    """Text that is HTML already, for Jinja."""

    text: str

    def __html__(self) -> str:
        return self.text


def _raw(text: str) -> _Markup:
    return _Markup(text)


def _json(value: Any) -> _Markup:
    """Return JSON that no text inside it can end or change."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return _raw(text)


def _csp_hash(text: str) -> str:
    """Return what the content security policy calls this one script or style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _resource(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text("utf-8")


def _short_name(text: object) -> str:
    return shorten(printable(str(text)), LONGEST_NAME)


def _full_name(text: object) -> str:
    return printable(str(text))


def _environment() -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise MissingExtraError(
            "the HTML report needs Jinja",
            hint="pip install 'falsify-adapters[report]'",
        ) from None
    environment = Environment(
        loader=PackageLoader("falsify_adapters.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "counted": counted,
        "name": _short_name,
        "full": _full_name,
        "number": number,
        "share": share,
        "sentence": sentence,
    }
    environment.globals |= {"MARKS": MARKS, "MEANINGS": MEANINGS, "NULL_NAMES": NULL_NAMES}
    return environment
