"""The pictures: what is drawn stands where the figures say."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from falsify_adapters.report import svg
from tests.report_factory import gate_report


def lines(picture: str, kind: str) -> list[dict[str, str]]:
    tree = ElementTree.fromstring(picture)
    return [element.attrib for element in tree.iter() if kind in element.get("class", "").split()]


def test_the_bar_is_the_score_and_the_red_line_the_mean() -> None:
    report = gate_report(score=0.5, deltas=(0.4, 0.3, 0.2, 0.1))
    for name, null in report.nulls.items():
        picture = svg.null_picture(report, null, name, top=1.0)
        height = svg.BOTTOM - svg.TOP
        (bar,), (mean,), (tau,) = (lines(picture, k) for k in ("bar", "null-mean", "tau"))
        assert float(bar["height"]) == pytest.approx(0.5 * height, abs=0.01)
        assert float(mean["y1"]) == pytest.approx(svg.BOTTOM - null.mean * height, abs=0.01)
        assert float(tau["y1"]) == pytest.approx(svg.BOTTOM - (null.mean + 0.05) * height, abs=0.01)
        gap = lines(picture, "gap")[0]
        drawn = (float(gap["y1"]) - float(gap["y2"])) / height
        assert drawn == pytest.approx(null.delta, abs=0.001)


def test_the_band_holds_all_trials() -> None:
    report = gate_report(score=0.5)
    null = replace(report.nulls["A"], mean=0.2, trials=np.array([0.1, 0.2, 0.4]))
    (band,) = lines(svg.null_picture(report, null, "A", top=0.5), "band")
    height = svg.BOTTOM - svg.TOP
    assert float(band["height"]) == pytest.approx(0.3 / 0.5 * height, abs=0.01)


def test_a_histogram_counts_every_trial() -> None:
    report = gate_report(score=0.5)
    trials = np.random.default_rng(0).normal(0.2, 0.02, 1000)
    picture = svg.histogram(report, replace(report.nulls["A"], trials=trials, mean=0.2), "A")
    heights = [float(bar["height"]) for bar in lines(picture, "null-bar")]
    counts = np.histogram(trials, bins=24)[0]
    assert np.allclose(np.array(heights) / 46, counts[counts > 0] / counts.max(), atol=0.001)
    assert "score 0.500 →" in picture


@pytest.mark.parametrize(
    ("score", "text"), [(0.21, ">score 0.210<"), (0.01, "← score 0.010"), (0.9, "score 0.900 →")]
)
def test_a_histogram_shows_where_the_score_lies(score: float, text: str) -> None:
    null = replace(gate_report().nulls["A"], trials=np.linspace(0.19, 0.22, 100), mean=0.205)
    picture = svg.histogram(gate_report(score=score), null, "A")
    assert text in picture
    assert bool(lines(picture, "score")) == ("→" not in text and "←" not in text)


def test_the_forest_puts_pass_right_of_tau_and_fail_left_of_it() -> None:
    report = gate_report(deltas=(0.3, 0.06, -0.2, 0.0))
    picture = svg.forest(report)
    (tau,) = lines(picture, "tau")
    at = float(tau["x1"].rstrip("%"))
    ends = [(float(i["x1"][:-1]), float(i["x2"][:-1])) for i in lines(picture, "interval")]
    assert [i["class"].split()[-1] for i in lines(picture, "interval")] == [
        *("v-pass", "v-under-ns", "v-fail", "v-fail")
    ]
    assert ends[0][0] > at
    assert ends[1][0] < at < ends[1][1]
    assert ends[2][1] < at
    assert all(0 <= x <= 100 for pair in ends for x in pair)


def test_few_queries_are_points_and_many_are_cells() -> None:
    rng = np.random.default_rng(0)
    few = svg.per_query(rng.random(50), rng.random(50) / 5, 0.05, "A")
    assert len(lines(few, "query")) == 50
    many = svg.per_query(rng.random(5000), rng.random(5000) / 5, 0.05, "A")
    assert not lines(many, "query")
    assert 0 < len(lines(many, "cell")) <= 600
    for picture in (few, many):
        for x in re.findall(r'cx="([\d.]+)%"', picture):
            assert 0 <= float(x) <= 100


def test_query_points_stand_at_their_scores() -> None:
    own, expected = np.array([1.0, 0.0, 0.5]), np.array([0.1, 0.0, 0.2])
    points = lines(svg.per_query(own, expected, 0.05, "A"), "query")
    heights = [float(point["cy"]) for point in points]
    assert heights == pytest.approx([10, 262, 136])
    places = [float(point["cx"][:-1]) for point in points]
    assert places[1] < places[0] < places[2]
    assert places[2] - places[1] == pytest.approx(2 * (places[0] - places[1]), abs=0.05)


def test_labels_are_escaped() -> None:
    report = gate_report()
    assert "<b>" not in svg._svg(10, '"<b>"', [])
    ElementTree.fromstring(svg.small_forest(report, svg.delta_range([report])))
