"""The terminal report: what stands in it, at which width, in which characters."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from falsify_adapters.report.averages import macro_averages
from falsify_adapters.report.groups import warnings_of
from falsify_adapters.report.outcome import Outcome, Skip
from falsify_adapters.report.terminal import LEGEND, to_terminal
from falsify_adapters.results import Companion
from tests.report_factory import gate_report, note, ties

LONG = "SPLADE_P_P_ENSEMBLE_DISTIL_with_a_name_that_goes_on"


def many() -> Outcome:
    return Outcome(
        [
            gate_report(warnings=(note("W-SMALL-N", "43 queries"),), score_answered=0.3332),
            gate_report(LONG, (0.08, 0.081, 0.079, 0.0761), score=0.09, ties=ties()),
            gate_report("popularity", (0.0, 0.001, 0.031, -0.0161), score=0.04, role="control"),
            gate_report("bm25", benchmark="scifact", measure="R@10"),
        ],
        skipped=[Skip("notes.log", "not a run")],
    )


@pytest.mark.parametrize("width", [20, 80, 100, 131, 132, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = to_terminal(many(), width=width).splitlines()
    assert max(map(len, lines)) <= max(width, 80)


@pytest.mark.parametrize("width", [80, 200])
def test_every_figure_of_the_table_is_there_in_full(width: int) -> None:
    text = to_terminal(many(), width=width)
    for figure in ("0.3177", "+0.308 ✓", "0.268…0.348", "+0.076 ?", "-0.016 ✗", "-0.056…0.024"):
        assert figure in text, figure
    for verdict in ("PASS", "UNDER-NS", "FAIL"):
        assert verdict in text
    for line in text.splitlines():
        assert line == line.rstrip()


def test_a_row_takes_one_line_when_there_is_room() -> None:
    text = to_terminal(Outcome([gate_report()]), width=132)
    (row,) = [line for line in text.splitlines() if line.startswith("bm25 ")]
    assert row.endswith("PASS")
    assert row.count("…") == 4


def test_one_table_per_benchmark_and_measure() -> None:
    text = to_terminal(many(), width=80)
    titles = [line for line in text.splitlines() if " documents (" in line]
    assert titles == [
        "nfcorpus · test · nDCG@10 · 323 queries, 3,633 documents (counted), tau 0.05",
        "scifact · test · R@10 · 323 queries, 3,633 documents (counted), tau 0.05",
    ]


def test_each_system_gets_a_sentence_under_its_full_name() -> None:
    text = to_terminal(many(), width=200)
    assert "bm25: PASS. Clears all four nulls." in text
    assert f"{LONG}: UNDER-NS." in text
    assert "popularity: FAIL. Fails A, B, D." in text


def test_the_legend_explains_every_null_and_mark_once() -> None:
    text = re.sub(r"\s+", " ", to_terminal(many(), width=80))
    for meaning in LEGEND.values():
        assert text.count(meaning) == 1
    assert "✓ the whole interval is at or above tau = 0.05" in text
    assert "95% confidence" in text
    assert "Controls show" in text
    assert "Controls show" not in to_terminal(Outcome([gate_report()]))


def test_the_legend_follows_the_settings() -> None:
    settings = {"decision": "point", "correction": "none", "alpha": 0.1}
    text = to_terminal(Outcome([gate_report(settings=settings, tau=0.123)]))
    assert "the difference is at least tau = 0.123" in text
    assert "90%" in text
    assert "for the four together" not in text


def test_a_warning_that_one_run_carries_twice_is_not_both_runs() -> None:
    own = note("W-TIES", "3 queries tie")
    reports = [gate_report("a", warnings=(own, own)), gate_report("b")]
    assert warnings_of(reports) == [(own, ["a"])]
    assert warnings_of(reports[:1]) == [(own, [])]


def test_a_warning_stands_once_and_names_its_systems() -> None:
    shared, own = note("W-SMALL-N", "43 queries"), note("W-TIES", "3 queries tie")
    reports = [gate_report("a", warnings=(shared, own)), gate_report("b", warnings=(shared,))]
    text = to_terminal(Outcome(reports))
    assert text.count("W-SMALL-N  43 queries\n") == 1
    assert "W-TIES  3 queries tie [a]" in text
    reports.append(gate_report("random", role="control", warnings=(note("W-COMPANION", "no"),)))
    with_control = to_terminal(Outcome(reports))
    assert "W-COMPANION" not in with_control
    assert "W-SMALL-N  43 queries\n" in with_control


def test_what_neither_table_nor_warning_says_is_said() -> None:
    companion = Companion("R@10", 0.12, "FAIL", False, {})
    report = gate_report(ties=ties(), companion=companion, definition_1=False, score_answered=0.4)
    text = re.sub(r"\s+", " ", to_terminal(Outcome([report])))
    assert "12 queries have tied scores" in text
    assert "strict companion disagrees: R@10" in text
    assert "point rule, every difference at least tau, does not hold" in text
    assert "BEIR and MTEB print 0.4000" in text
    quiet = to_terminal(
        Outcome([gate_report(companion=replace(companion, verdict="PASS", agrees=True))])
    )
    for word in ("companion", "Ties", "point rule", "BEIR and MTEB"):
        assert word not in quiet


def test_ascii_is_ascii() -> None:
    report = gate_report("modèle·β", reason="delta ≥ tau … café")
    text = to_terminal(Outcome([report, *many().reports]), ascii_only=True)
    assert text.isascii()
    assert "0.268~0.348" in text
    assert "delta >= tau ... caf\\xe9" in text.replace("Delta", "delta")


def test_colours_only_when_asked() -> None:
    assert "\x1b[" not in to_terminal(many(), color=False)
    colored = to_terminal(many(), color=True)
    assert "\x1b[1;32mPASS" in colored
    without = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", colored).splitlines()]
    assert without == to_terminal(many(), color=False).splitlines()


HOSTILE = ["\x1b[2J\x1b[31m", "a\u202eb", "x\ry", "[bold]x[/bold]", "\udc80"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_cannot_act_on_the_terminal(text: str) -> None:
    report = gate_report(text, reason=f"because of {text}", warnings=(note("W-TIES", text),))
    for ascii_only in (False, True):
        shown = to_terminal(Outcome([report]), ascii_only=ascii_only)
        assert not set(shown) & set("\x1b\u202e\r\udc80")
        if text.startswith("[bold]"):
            assert "[bold]x[/bold]: PASS" in shown
        shown.encode("utf-8")


def test_the_parts_of_a_benchmark_get_their_average() -> None:
    parts = [
        gate_report(benchmark="cqadupstack", subset="android", score=0.3, score_answered=0.3),
        gate_report(benchmark="cqadupstack", subset="physics", score=0.5, score_answered=0.5),
        gate_report("other", benchmark="cqadupstack", subset="physics"),
        gate_report(),
    ]
    (average,) = macro_averages(parts)
    assert (average.system, average.n_parts, average.score) == ("bm25", 2, 0.4)
    text = to_terminal(Outcome([*parts, average]))
    assert "bm25 has the macro average 0.4000 over 2 parts (2 PASS)" in text
    assert "cqadupstack · android · test" in text


def test_an_empty_outcome_is_an_empty_text() -> None:
    assert to_terminal(Outcome()).strip() == ""
