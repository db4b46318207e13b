"""Comparisons, grades and other judgements in every form of report, whatever the names are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from falsify_adapters.dependence import Dependence
from falsify_adapters.gate import run_gate
from falsify_adapters.judgements import gate_by_grade, judge_again
from falsify_adapters.report.beside import dependence_lines, sheets
from falsify_adapters.report.html import to_html
from falsify_adapters.report.jsonfile import to_json
from falsify_adapters.report.markdown import to_markdown
from falsify_adapters.report.outcome import Outcome
from falsify_adapters.report.terminal import to_terminal
from falsify_adapters.results import GateConfig
from falsify_adapters.two_systems import compare_systems
from tests.gate_cases import right_for
from tests.hostile import NAMES

QUICK = GateConfig(n_boot=200, n_trials=100, companion=False)


@pytest.fixture(scope="module", params=["plain", "hostile"])
def outcome(request: pytest.FixtureRequest) -> Outcome:
    names = NAMES if request.param == "hostile" else ("old", "new", "other", "judge", "x", "y")
    old = replace(right_for(60, 0.2), system=names[0], benchmark=names[4])
    new = replace(right_for(60, 0.6, seed=1), system=names[1], benchmark=names[4])
    third = replace(right_for(60, 0.3, seed=2), system=names[2], benchmark=names[4])
    judged = {query: {"x001": 1} for query in old.query_ids[:50]}
    return Outcome(
        [
            *compare_systems(old, [new, third], config=QUICK),
            gate_by_grade(new, config=QUICK),
            judge_again(new, judged, config=QUICK, judge=names[3]),
        ]
    )


def test_each_kind_has_a_sheet_of_even_rows(outcome: Outcome) -> None:
    found = list(sheets(outcome))
    assert len(found) == 4
    for sheet in found:
        assert sheet.rows
        assert {len(row) for row in sheet.rows} == {len(sheet.head)}
        assert all(sheet.below)


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_the_terminal_stays_in_its_width(outcome: Outcome, width: int, ascii_only: bool) -> None:
    text = to_terminal(outcome, width=width, ascii_only=ascii_only)
    assert max(len(line) for line in text.splitlines()) <= width
    assert text.isascii() or not ascii_only
    assert "\x1b" not in text
    for word in ("BETTER", "UNDER-NS", "W-COMMON-QUERIES", "compared with", "at each grade"):
        assert word in " ".join(text.split())


def test_markdown_and_html_show_the_same_figures(outcome: Outcome) -> None:
    for sheet in sheets(outcome):
        for row in sheet.rows:
            figures = [line for cell in row[1:] for line in cell.split("\n") if line[-1:].isdigit()]
            for text in (to_markdown(outcome), to_html(outcome)):
                assert all(figure in text for figure in figures)
    for line in to_markdown(outcome).splitlines():
        assert not line.startswith("#")
        assert "<" not in line
    html = to_html(outcome)
    assert "<script>alert" not in html
    assert html == to_html(outcome)


def test_the_json_is_strict_and_the_same_again(outcome: Outcome) -> None:
    assert to_json(outcome) == to_json(outcome)
    assert b"NaN" not in to_json(outcome)


def test_sentences_say_what_hangs_together() -> None:
    one = right_for(60, 0.5)
    ids = one.query_ids
    blocks = Dependence(order=ids, block_length=6, order_from="order of queries.jsonl")
    report = run_gate(replace(one, dependence=blocks), config=QUICK)
    (line,) = dependence_lines(report)
    assert line.startswith("Blocks: 10 of 6 queries in a row (order of queries.jsonl). Intervals")
    strata = {query: str(i // 4) for i, query in enumerate(ids)}
    report = run_gate(replace(one, dependence=Dependence(strata=strata)), config=QUICK)
    (line,) = dependence_lines(report)
    assert line == (
        "Strata: null A permutes inside 5 (given; 15 small ones were merged); 8.33 % of its pairs"
        " are a query and its own answers."
    )
    assert list(dependence_lines(run_gate(one, config=QUICK))) == []
