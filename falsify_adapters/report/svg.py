"""Inline SVG: horizontal positions in per cent, so that pictures grow and text does not.

Colours are CSS classes; the page's style sheet gives them a light and a dark value. Every picture
has a text that says the same.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from falsify_adapters.frames import FloatArray
from falsify_adapters.notes import counted, plural
from falsify_adapters.report.text import number
from falsify_adapters.results import NULL_NAMES, NULLS, GateReport, NullResult

#: Queries from which on a scatter plot counts them in cells instead of drawing each.
MANY_QUERIES = 400
#: Trials that differ by less are one value, off by rounding.
SAME = 1e-9
#: Vertical extent of the picture of one null, in pixels: the axis' top and bottom.
TOP, BOTTOM = 18, 168


def null_picture(report: GateReport, null: NullResult, name: str, top: float) -> str:
    """Draw the method: bar, red line, band, and the gap against tau.

    Parameters
    ----------
    report, null, name
        What is drawn.
    top : float
        Upper end of the axis, see :func:`picture_top`.
    """
    lowest, highest = float(null.trials.min()), float(null.trials.max())
    label = (
        f"Null {name}, {NULL_NAMES[name]}: the score is {number(report.score)}, the null's mean"
        f" {number(null.mean)}, its trials run from {number(lowest)} to {number(highest)}; the gap"
        f" is {number(null.delta, sign=True)}, tau is {report.tau:.4g}: {null.verdict}"
    )
    return _svg(BOTTOM + 10, label, _picture(report.score, null, report.tau, top))


def playground_picture(score: float, null: NullResult, tau: float, top: float) -> str:
    """Draw the same picture, hidden from screen readers: what moves is said in words beside it."""
    inside = "".join(_picture(score, null, tau, top))
    return (
        f'<svg class="chart" width="100%" height="{BOTTOM + 10}" aria-hidden="true">{inside}</svg>'
    )


def _picture(score: float, null: NullResult, tau: float, top: float) -> Iterable[str]:
    """Yield the parts of the picture of one null; the page's script finds them by their class."""

    def y(value: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * min(max(value / top, 0.0), 1.0)

    yield from _vertical_axis(top, y)
    lowest, highest = float(null.trials.min()), float(null.trials.max())
    yield _rect("14%", y(highest), "82%", max(y(lowest) - y(highest), 1.5), "band")
    yield _rect("20%", y(score), "24%", max(BOTTOM - y(score), 1), "bar")
    yield _line("14%", y(null.mean), "96%", y(null.mean), "null-mean")
    yield _line("14%", y(null.mean + tau), "96%", y(null.mean + tau), "tau")
    yield _line("54%", y(null.mean), "54%", y(score), "gap")
    yield _line("51%", y(score), "57%", y(score), "gap")
    middle = (y(null.mean) + y(score)) / 2
    # a label on top of the lines would hide them: beside a small gap it stands above
    near = abs(y(null.mean) - y(score)) < 20
    at = min(y(score), y(null.mean + tau)) - 6 if near else middle + 4
    yield _text("59%", at, number(null.delta, sign=True), "gap-label halo")
    if not near:
        yield _text("32%", y(score) - 6, number(score), "value halo", anchor="middle")


def picture_top(scores: Iterable[float], nulls: Iterable[NullResult], tau: float) -> float:
    """Return a round upper end for the axis of several pictures.

    Examples
    --------
    >>> picture_top([0.31], [], 0.05)
    0.4
    """
    highest = max([*scores, *(max(n.mean + tau, float(n.trials.max())) for n in nulls)])
    step = 0.1 if highest > 0.2 else 0.05
    return min(max(round(math.ceil(highest * 1.08 / step) * step, 2), step), 1.0)


def histogram(report: GateReport, null: NullResult, name: str) -> str:
    """Draw the distribution of a null's trials, and where the score stands."""
    trials, score = null.trials, report.score
    low, high = float(trials.min()), float(trials.max())
    spread = max(high - low, 0.004)
    near = score <= high + spread and score >= low - spread
    left = min(low, score) - 0.08 * spread if near else low - 0.08 * spread
    right = max(high, score) + 0.08 * spread if near else high + 0.35 * spread
    if high - low > SAME:
        counts, edges = np.histogram(trials, bins=24, range=(low, high))
    else:
        counts = np.array([len(trials)])
        edges = np.array([low - spread / 40, low + spread / 40])

    def x(value: float) -> str:
        return _percent(2 + 96 * (value - left) / (right - left))

    label = (
        f"Distribution of {counted(len(trials), 'trial')} of null {name}: {number(low, 4)} to"
        f" {number(high, 4)}, mean {number(null.mean, 4)}, luck margin"
        f" {number(null.luck_margin, 4)}; the score is {number(score, 4)}"
    )
    parts = [_line("0", 62, "100%", 62, "axis")]
    for count, start, end in zip(counts, edges[:-1], edges[1:], strict=True):
        if count:
            height = 46 * count / counts.max()
            width = _percent(96 * (end - start) / (right - left))
            parts.append(_rect(x(start), 62 - height, width, height, "null-bar"))
    parts.append(_line(x(null.mean), 12, x(null.mean), 62, "null-mean"))
    middle = 2 + 96 * (null.mean - left) / (right - left)
    anchor = "start" if middle < 15 else "end" if middle > 85 else "middle"
    parts.append(_text(x(null.mean), 78, number(null.mean), "tick", anchor=anchor))
    if near:
        parts.append(_line(x(score), 6, x(score), 62, "score"))
        parts.append(_text("100%", 10, f"score {number(score)}", "score-label", anchor="end"))
    elif score > high:
        parts.append(_text("100%", 10, f"score {number(score)} →", "score-label", anchor="end"))
    else:
        parts.append(_text("0", 10, f"← score {number(score)}", "score-label"))
    return _svg(82, label, parts)


def forest(report: GateReport) -> str:
    """Draw the four deltas with their intervals, against 0 and tau."""
    low, high = delta_range([report])
    x, tau = _horizontal(low, high), report.tau
    rows, height = 46, 46 * len(NULLS) + 34
    parts = [
        _line(x(0), 20, x(0), height - 20, "zero"),
        _line(x(tau), 20, x(tau), height - 20, "tau"),
        _text(x(tau), 12, f"tau {tau:.4g}", "tau-label", anchor=_anchor(x, tau)),
    ]
    for i, name in enumerate(NULLS):
        null, y = report.nulls[name], 26 + rows * i
        mark = f"v-{null.verdict.lower()}"
        figures = f"{number(null.delta, sign=True)} [{number(null.low)}, {number(null.high)}]"
        # under its row, a figure never lies on an interval
        parts += [
            _text("0", y + 10, name, "row-value halo"),
            _text("1.4em", y + 10, NULL_NAMES[name], "row-label halo"),
            _text("100%", y + 10, figures, "row-value halo", anchor="end"),
            _line(x(null.low), y + 25, x(null.high), y + 25, f"interval {mark}"),
            _dot(x(null.delta), y + 25, 5, f"point {mark}"),
        ]
    for tick in ticks(low, high, 5):
        parts.append(_text(x(tick), height - 4, f"{tick:g}", "tick", anchor=_anchor(x, tick)))
    label = "Deltas with their intervals: " + "; ".join(
        f"{name} {number(n.delta, sign=True)} from {number(n.low)} to {number(n.high)}, {n.verdict}"
        for name, n in report.nulls.items()
    )
    return _svg(height, f"{label}; tau is {report.tau:.4g}", parts)


def small_forest(report: GateReport, limits: tuple[float, float]) -> str:
    """Draw the four intervals as a small multiple, on an axis that all of them share."""
    x = _horizontal(*limits)
    parts = [
        _line(x(0), 2, x(0), 38, "zero"),
        _line(x(report.tau), 2, x(report.tau), 38, "tau"),
    ]
    for i, null in enumerate(report.nulls.values()):
        mark, y = f"v-{null.verdict.lower()}", 7 + 9 * i
        parts.append(_line(x(null.low), y, x(null.high), y, f"interval thin {mark}"))
        parts.append(_dot(x(null.delta), y, 3, f"point {mark}"))
    deltas = ", ".join(f"{k} {number(n.delta, sign=True)}" for k, n in report.nulls.items())
    return _svg(42, f"Deltas {deltas}; tau {report.tau:.4g}", parts, kind="chart small")


def delta_range(reports: Iterable[GateReport]) -> tuple[float, float]:
    """Return the ends of an axis that shows all deltas, 0 and tau."""
    values = [0.0]
    for report in reports:
        values.append(report.tau)
        for null in report.nulls.values():
            values += [null.low, null.high]
    low, high = min(values), max(values)
    pad = 0.04 * max(high - low, 0.1)
    return low - pad, high + pad


def per_query(own: FloatArray, expected: FloatArray, tau: float, name: str) -> str:
    """Draw each query's own score over what a null expects of it.

    Parameters
    ----------
    own, expected : ndarray, shape (n_queries,)
        Scores in [0, 1].
    tau : float
        For the line of what must be cleared.
    name : str
        The null.
    """
    right = picture_top([float(expected.max(initial=0.0))], [], tau)
    height, top, bottom = 300, 10, 262
    x = _horizontal(0.0, right, start=7.0)

    def y(value: float) -> float:
        return bottom - (bottom - top) * min(max(value, 0.0), 1.0)

    parts = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(_line(x(0), y(tick), x(right), y(tick), "grid"))
        parts.append(_text("0", y(tick) + 4, f"{tick:g}", "tick"))
    parts += [
        _text(x(tick), bottom + 16, f"{tick:g}", "tick", anchor=_anchor(x, tick))
        for tick in ticks(0.0, right, 5)
    ]
    caption = f"expected of the query under null {name}"
    parts.append(_text("50%", height - 4, caption, "tick", anchor="middle"))
    cells = _cells(own, expected, right) if len(own) > MANY_QUERIES else None
    if cells is None:
        parts += [_dot(x(e), y(o), 3.2, "query") for o, e in zip(own, expected, strict=True)]
    else:
        parts += [
            _rect(
                x(c["left"]),
                y(c["top"]),
                _percent(93 / 30 * 0.98),
                (bottom - top) / 20 - 0.6,
                f"cell c{c['shade']}",
            )
            for c in cells
        ]
    # both lines end at the first of the two axes that they meet
    for offset, kind in ((0.0, "null-mean"), (tau, "tau")):
        end = min(right, 1.0 - offset)
        parts.append(_line(x(0), y(offset), x(end), y(end + offset), kind))
    above = int((own - expected >= tau).sum())
    label = (
        f"Own score of each of {counted(len(own), 'query')} over what null {name} expects of it:"
        f" {above:,}"
        f" {plural(above, 'lies', 'lie')} at least tau = {tau:.4g} above"
    )
    return _svg(height, label, parts)


def _cells(own: FloatArray, expected: FloatArray, right: float) -> list[dict[str, Any]]:
    """Count queries in 30 by 20 cells; the shade grows with the logarithm of the count."""
    counts, e_edges, o_edges = np.histogram2d(
        np.clip(expected, 0, right), np.clip(own, 0, 1), bins=(30, 20), range=((0, right), (0, 1))
    )
    most = math.log1p(counts.max())
    return [
        {
            "left": float(e_edges[i]),
            "top": float(o_edges[j + 1]),
            "shade": 1 + min(4, int(5 * math.log1p(counts[i, j]) / most)),
        }
        for i, j in zip(*np.nonzero(counts), strict=True)
    ]


def ticks(low: float, high: float, most: int) -> list[float]:
    """Return round numbers in an interval, at most `most` of them.

    Examples
    --------
    >>> ticks(-0.03, 0.71, 5)
    [0.0, 0.2, 0.4, 0.6]
    """
    for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            return [round(k * step, 4) for k in range(first, last + 1)]
    return [0.0]


def _vertical_axis(top: float, y: Any) -> Iterable[str]:
    for tick in ticks(0.0, top, 5):
        yield _line("14%", y(tick), "96%", y(tick), "grid")
        yield _text("0", y(tick) + 4, f"{tick:g}", "tick")


def _horizontal(low: float, high: float, start: float = 0.5) -> Any:
    def x(value: float) -> str:
        inside = min(max((value - low) / (high - low), 0.0), 1.0)
        return _percent(start + (99.5 - start) * inside)

    return x


def _anchor(x: Any, value: float) -> str:
    """Keep a label inside the picture: at its edges it grows inwards."""
    place = float(x(value).rstrip("%"))
    return "start" if place < 9 else "end" if place > 91 else "middle"


def _svg(height: float, label: str, parts: Iterable[str], kind: str = "chart") -> str:
    inside = "".join(parts)
    return (
        f'<svg class="{kind}" width="100%" height="{_short(height)}" role="img"'
        f' aria-label="{html.escape(label)}">{inside}</svg>'
    )


def _element(name: str, attributes: Mapping[str, object], content: str = "") -> str:
    text = "".join(f' {key}="{_short(value)}"' for key, value in attributes.items())
    return f"<{name}{text}>{content}</{name}>" if content else f"<{name}{text}/>"


def _line(x1: str, y1: float, x2: str, y2: float, kind: str) -> str:
    return _element("line", {"class": kind, "x1": x1, "y1": y1, "x2": x2, "y2": y2})


def _rect(x: str, y: float, width: str, height: float, kind: str) -> str:
    return _element("rect", {"class": kind, "x": x, "y": y, "width": width, "height": height})


def _dot(x: str, y: float, radius: float, kind: str) -> str:
    return _element("circle", {"class": kind, "cx": x, "cy": y, "r": radius})


def _text(x: str, y: float, text: str, kind: str, anchor: str = "start") -> str:
    attributes: dict[str, object] = {"class": kind, "x": x, "y": y}
    if anchor != "start":
        attributes["text-anchor"] = anchor
    return _element("text", attributes, html.escape(text))


def _percent(value: float) -> str:
    return f"{_short(round(value, 2))}%"


def _short(value: object) -> str:
    """Write a number with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
