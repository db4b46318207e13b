"""The query-blind ceiling in the gate's report, and inside its verdict where that is asked for."""

from __future__ import annotations

from typing import Any

import pytest

from falsify_adapters import Evaluation, GateConfig, query_blind_ceiling, run_gate
from falsify_adapters.blind import Best, Bound
from falsify_adapters.gate.fifth_line import verdict_with_ceiling
from falsify_adapters.report.markdown import to_markdown
from falsify_adapters.report.outcome import Outcome
from falsify_adapters.report.terminal import to_terminal
from tests.cli_runs import report, write_qrels, write_run

QUICK = {"n_boot": 200, "n_trials": 200, "companion": False}


def benchmark(n_queries: int, popular: int) -> dict[str, dict[str, int]]:
    """Queries with an answer of their own; the first `popular` of them share another."""
    return {
        f"q{i:03}": {f"d{i:03}": 1} | ({"all": 1} if i < popular else {}) for i in range(n_queries)
    }


def run(qrels: dict[str, dict[str, int]], right: int) -> dict[str, dict[str, float]]:
    """Find the own answer of the first `right` queries, and nothing for the others."""
    docs = {q: f"d{i:03}" if i < right else f"x{i:03}" for i, q in enumerate(qrels)}
    return {query_id: {doc_id: 1.0} for query_id, doc_id in docs.items()}


def graded(n_queries: int, popular: int, right: int, measure: str = "P@1", **config: Any) -> Any:
    qrels = benchmark(n_queries, popular)
    evaluation = Evaluation.create(run(qrels, right), qrels, corpus_size=5000)
    return run_gate(evaluation, measure, GateConfig(**QUICK, **config))


def test_the_report_holds_the_ceiling_of_its_qrels() -> None:
    found = graded(60, 30, 40).ceiling
    ceiling = query_blind_ceiling(benchmark(60, 30), "P@1")
    assert (found["score"], found["upper"], found["kind"]) == (ceiling.score, 0.5, "exact")


@pytest.mark.parametrize(
    ("right", "below", "words"),
    [
        (20, True, "more than this system (0.3333)"),
        (30, False, "as much as this system"),
        (45, False, "this system scores 0.2500 more"),
    ],
)
def test_a_plain_sentence_says_on_which_side_the_score_is(
    right: int, below: bool, words: str
) -> None:
    ceiling = graded(60, 30, right).ceiling
    assert ceiling["below"] is below
    assert words in ceiling["sentence"]


def test_the_ceiling_is_outside_the_verdict_unless_asked_for() -> None:
    below = graded(200, 160, 120)
    assert (below.verdict, below.ceiling["below"]) == ("PASS", True)
    asked = graded(200, 160, 120, require_ceiling=True)
    assert asked.verdict == "FAIL"
    assert "fails the query-blind ceiling" in asked.reason
    assert asked.definition_1 == below.definition_1
    assert asked.nulls["A"].verdict == "PASS"


def test_a_score_well_above_the_ceiling_passes_with_it_too() -> None:
    assert graded(200, 40, 120, require_ceiling=True).verdict == "PASS"


def test_a_failure_stays_a_failure_with_its_own_reason() -> None:
    plain, asked = graded(200, 40, 0), graded(200, 40, 0, require_ceiling=True)
    assert (asked.verdict, plain.verdict) == ("FAIL", "FAIL")
    assert asked.reason == plain.reason


def test_where_the_ceiling_leaves_no_room_nobody_can_pass() -> None:
    asked = graded(200, 195, 200, require_ceiling=True)
    assert asked.verdict == "UNDER-NS"
    assert asked.reason.startswith("no system can pass here: the ideal ranking is 0.0250 above")


def best(score: float, upper: float) -> Best:
    kind: Any = "exact" if score == upper else "upper bound"
    return Best(ranking=None, score=score, bound=Bound(upper, kind, "test"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("score", "verdict"),
    [(0.2, "FAIL"), (0.34, "FAIL"), (0.36, "UNDER-NS"), (0.449, "UNDER-NS"), (0.46, "PASS")],
)
def test_between_the_bounds_of_a_ceiling_nobody_knows(score: float, verdict: str) -> None:
    found, _ = verdict_with_ceiling("PASS", "clears", best(0.3, 0.4), score, 0.7, 0.05)
    assert found == verdict


def test_the_ceiling_never_turns_a_doubt_into_a_pass() -> None:
    found = verdict_with_ceiling("UNDER-NS", "too few", best(0.1, 0.1), 0.9, 0.9, 0.05)
    assert found == ("UNDER-NS", "too few")


def test_a_score_at_the_ceiling_fails_at_tau_0_too() -> None:
    found, _ = verdict_with_ceiling("PASS", "clears", best(0.3, 0.3), 0.3, 0.7, 0.0)
    assert found == "FAIL"


def test_ties_are_judged_by_the_same_rule() -> None:
    """If ties fall against the system it is below the ceiling: UNDER-NS, not PASS."""
    qrels = benchmark(200, 100)
    tied = {
        query_id: {f"d{i:03}": 1.0, f"x{i:03}": 1.0 if i % 2 else 0.5}
        for i, query_id in enumerate(qrels)
    }
    evaluation = Evaluation.create(tied, qrels, corpus_size=5000)
    plain = run_gate(evaluation, "P@1", GateConfig(**QUICK))
    asked = run_gate(evaluation, "P@1", GateConfig(**QUICK, require_ceiling=True))
    assert plain.verdict == "PASS"
    assert asked.ties is not None
    assert (asked.ties.low_verdict, asked.ties.high_verdict) == ("FAIL", "PASS")
    assert asked.verdict == "UNDER-NS"


def test_the_reports_show_it_as_a_fifth_line() -> None:
    outcome = Outcome([graded(60, 30, 20)])
    text = " ".join(to_terminal(outcome).split())
    assert "Query-blind ceiling 0.5000" in text
    assert "more than this system (0.3333)" in text
    assert "Query-blind ceiling 0.5000" in to_markdown(outcome)
    assert outcome.reports[0].to_dict()["ceiling"]["below"] is True


def test_a_greedy_ceiling_is_shown_as_a_range() -> None:
    found = graded(60, 30, 20, measure="AP@5")
    ceiling = found.ceiling
    assert ceiling["kind"] == "lower bound"
    assert f"{ceiling['score']:.4f}\N{EN DASH}{ceiling['upper']:.4f}" in to_terminal(
        Outcome([found])
    )


def test_the_command_line_asks_for_it(tmp_path: Any) -> None:
    inputs = [write_qrels(tmp_path / "q.qrels", 40), write_run(tmp_path / "r.trec", 40)]
    options = ["--corpus-size", "1000", "-m", "P@1"]
    plain = report("ir", *inputs, *options)["reports"][0]
    asked = report("ir", *inputs, *options, "--require-ceiling")["reports"][0]
    assert (plain["settings"]["require_ceiling"], asked["settings"]["require_ceiling"]) == (
        False,
        True,
    )
