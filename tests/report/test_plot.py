"""Plots: what matplotlib was told to draw."""

from __future__ import annotations

import sys

import pytest

from falsify_adapters import plot
from falsify_adapters.errors import InputError, MissingExtraError
from tests.hostile import NAMES
from tests.report_factory import gate_report


def test_one_report_shows_each_null_and_the_intervals() -> None:
    report = gate_report(score=0.5, deltas=(0.4, 0.3, 0.06, 0.0))
    *nulls, intervals = plot(report).axes
    assert len(nulls) == 4
    for axes, null in zip(nulls, report.nulls.values(), strict=True):
        (bar, *_) = axes.patches
        assert bar.get_height() == 0.5
        heights = {line.get_ydata()[0] for line in axes.lines}
        assert heights == {null.mean, null.mean + report.tau}
    drawn = {
        (round(line.get_xdata()[0], 9), round(line.get_xdata()[1], 9))
        for line in intervals.lines
        if len(line.get_xdata()) == 2
    }
    for null in report.nulls.values():
        assert (round(null.low, 9), round(null.high, 9)) in drawn


def test_several_reports_get_a_row_per_null() -> None:
    figure = plot([gate_report(), gate_report("popularity", (0.0, 0.0, 0.1, 0.0))])
    (axes,) = figure.axes
    assert len(axes.get_yticks()) == 8
    assert [text.get_text() for text in axes.texts] == ["PASS", "FAIL"]


def test_a_notebook_shows_it_and_the_bytes_are_the_same() -> None:
    first, second = (plot(gate_report())._repr_png_() for _ in range(2))
    assert first.startswith(b"\x89PNG")
    assert first == second


@pytest.mark.parametrize("name", [NAMES[0], NAMES[4], NAMES[6], "$x_1", "a\x1b"])
def test_hostile_names_are_drawn_as_text(name: str) -> None:
    assert plot(gate_report(name))._repr_png_()
    assert plot([gate_report(name)])._repr_png_()


def test_nothing_to_plot_and_nothing_to_plot_with(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="nothing to plot"):
        plot([])
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"falsify-adapters\[report\]"):
        plot(gate_report())
