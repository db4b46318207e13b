"""Plots of reports with matplotlib, for notebooks and papers."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from falsify_adapters.comparison import corpus_name
from falsify_adapters.errors import InputError, MissingExtraError
from falsify_adapters.report.text import printable, shorten
from falsify_adapters.results import NULL_NAMES, NULLS, GateReport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCORE, NULL, INK, MUTED = "#2f5d8a", "#b4232a", "#1d2127", "#5a616b"
VERDICTS = {"PASS": "#17653a", "FAIL": "#9e1b20", "UNDER-NS": "#775000"}


def plot(report: GateReport | Iterable[GateReport]) -> Figure:
    """Draw one report, or several side by side.

    Parameters
    ----------
    report : GateReport or iterable of GateReport
        One report: for each null the score beside the null's trials, and the four deltas with
        their intervals. Several: the four intervals of each report, one row per report.

    Returns
    -------
    matplotlib.figure.Figure
        Not known to pyplot: show it as the last line of a notebook cell, or ``savefig`` it.

    Raises
    ------
    InputError
        If there is no report.
    MissingExtraError
        If matplotlib is not installed.

    Examples
    --------
    >>> from falsify_adapters import Evaluation, run_gate
    >>> qrels = {f"q{i}": {f"d{i}": 1} for i in range(40)}
    >>> run = {f"q{i}": {f"d{i}": 1.0, "d0": 0.5} for i in range(40)}
    >>> report = run_gate(Evaluation.create(run, qrels, corpus_size=1000), "RR@10")
    >>> len(plot(report).axes)
    5
    """
    reports = [report] if isinstance(report, GateReport) else list(report)
    if not reports:
        raise InputError("there is nothing to plot", hint="give at least one gate report")
    return _one(reports[0]) if isinstance(report, GateReport) else _several(reports)


def _one(report: GateReport) -> Figure:
    figure = _figure((9.0, 4.6))
    grid = figure.add_gridspec(2, 4, height_ratios=(3, 2))
    top = max(report.score, *(float(null.trials.max()) for null in report.nulls.values()))
    shared: Any = None
    for i, name in enumerate(NULLS):
        axes = figure.add_subplot(grid[0, i], sharey=shared)
        shared = shared or axes
        _draw_null(axes, report, name)
        axes.set_ylim(0, min(1.0, 1.18 * max(top, report.tau)))
        if i:
            axes.tick_params(labelleft=False)
    shared.set_ylabel(report.measure)
    _draw_intervals(figure.add_subplot(grid[1, :]), [(name, report, name) for name in NULLS])
    figure.suptitle(f"{_title(report)}: {report.verdict}", color=VERDICTS[report.verdict])
    return figure


def _several(reports: Sequence[GateReport]) -> Figure:
    figure = _figure((9.0, 1.2 + 0.8 * len(reports)))
    rows = [(_title(r) if name == "A" else "", r, name) for r in reports for name in NULLS]
    axes = figure.add_subplot()
    _draw_intervals(axes, rows)
    for i, report in enumerate(reports):
        place = (1.01, 4 * i + 1.5)
        axes.annotate(
            report.verdict,
            place,
            xycoords=axes.get_yaxis_transform(),
            va="center",
            color=VERDICTS[report.verdict],
            weight="bold",
        )
        if i:
            axes.axhline(4 * i - 0.5, color="#dcdcd5", linewidth=0.8)
    axes.set_title("A to D, top to bottom", loc="left", fontsize=9, color=MUTED)
    return figure


def _draw_null(axes: Axes, report: GateReport, name: str) -> None:
    """Draw bar, null mean, the trials' band, and what must be cleared."""
    null = report.nulls[name]
    axes.bar([0], [report.score], width=0.5, color=SCORE)
    axes.axhspan(float(null.trials.min()), float(null.trials.max()), color=NULL, alpha=0.18, lw=0)
    axes.axhline(null.mean, color=NULL, linewidth=2)
    axes.axhline(null.mean + report.tau, color=INK, linewidth=1, linestyle="--")
    arrow = {"arrowstyle": "-|>", "color": INK, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (0.48, report.score), (0.48, null.mean), arrowprops=arrow)
    middle = max((report.score + null.mean) / 2, 0)
    axes.annotate(f" {null.delta:+.3f}", (0.5, middle), va="center", fontsize=9, weight="bold")
    axes.set_title(f"{name}: {NULL_NAMES[name]}", fontsize=9)
    axes.set_xlim(-0.5, 1.15)
    axes.set_xticks([])
    _bare(axes)


def _draw_intervals(axes: Axes, rows: Sequence[tuple[str, GateReport, str]]) -> None:
    """Draw one interval per row, the first on top."""
    axes.axvline(0, color=MUTED, linewidth=0.8)
    for y, (_, report, name) in enumerate(rows):
        null = report.nulls[name]
        color = VERDICTS[null.verdict]
        axes.plot([null.low, null.high], [y, y], color=color, linewidth=3, alpha=0.45)
        axes.plot([null.delta], [y], "o", color=color, markersize=5)
        axes.plot([report.tau] * 2, [y - 0.5, y + 0.5], color=INK, linewidth=1, linestyle="--")
    axes.set_yticks(range(len(rows)), [label for label, _, _ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("score minus the null's mean, with its interval; dashed: tau")
    _bare(axes)


def _bare(axes: Axes) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _title(report: GateReport) -> str:
    # matplotlib reads text between dollars as a formula
    name = printable(f"{report.system} · {corpus_name(report)}").replace("$", r"\$")
    return shorten(name, 48)


def _figure(size: tuple[float, float]) -> Figure:
    """Return a figure that a notebook shows, whatever backend is chosen and none."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(
            "plots need matplotlib", hint="pip install 'falsify-adapters[report]'"
        ) from None

    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=80)
            return buffer.getvalue()

    return ShownFigure(figsize=size, layout="constrained")
