"""The gate: verdicts, intervals, notes, and what must not change a number."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsify_adapters.errors import MeasureError, UsageError, VerdictError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.gate import run_gate
from falsify_adapters.gate.verdicts import gate_verdict, null_verdict
from falsify_adapters.kernels import Precision
from falsify_adapters.results import GateConfig, GateReport, NullResult
from falsify_adapters.two_systems import compare_systems
from tests.benchmarks_made import ALL, Benchmark, crowded, graded, made, one_ranking, ranking
from tests.gate_cases import distinct_gold, evaluation, right_for
from tests.strategies import qrels, rankings

QUICK = GateConfig(n_boot=200, n_trials=100, companion=False)


def codes(report: GateReport) -> list[str]:
    return [note.code for note in report.warnings]


# Verdicts of one null, and of the four together


@pytest.mark.parametrize(
    ("delta", "low", "high", "tau", "verdict"),
    [
        (0.2, 0.1, 0.3, 0.05, "PASS"),
        (0.2, 0.05, 0.3, 0.05, "PASS"),
        (0.2, 0.049, 0.3, 0.05, "UNDER-NS"),
        (0.04, 0.01, 0.05, 0.05, "UNDER-NS"),
        (0.04, 0.01, 0.0499, 0.05, "FAIL"),
        (-0.2, -0.3, -0.1, 0.05, "FAIL"),
        (0.0, 0.0, 0.0, 0.05, "FAIL"),
        # at tau = 0 an interval that only touches 0 is no pass, and a delta of 0 fails
        (0.1, 0.01, 0.2, 0.0, "PASS"),
        (0.1, 0.0, 0.2, 0.0, "UNDER-NS"),
        (0.0, 0.0, 0.0, 0.0, "FAIL"),
        (0.1, -0.1, 0.2, 0.0, "UNDER-NS"),
    ],
)
def test_the_whole_interval_decides(
    delta: float, low: float, high: float, tau: float, verdict: str
) -> None:
    assert null_verdict(delta, low, high, tau, GateConfig()) == verdict


@pytest.mark.parametrize(
    ("delta", "tau", "verdict"),
    [(0.05, 0.05, "PASS"), (0.0499, 0.05, "FAIL"), (0.0, 0.0, "FAIL"), (1e-3, 0.0, "PASS")],
)
def test_the_point_rule_looks_at_delta_alone(delta: float, tau: float, verdict: str) -> None:
    point = GateConfig(decision="point")
    assert null_verdict(delta, -1.0, 1.0, tau, point) == verdict


def null(verdict: str, *, attainable: float = 0.9, p_value: float = 0.001) -> NullResult:
    low, high = {"PASS": (0.2, 0.4), "FAIL": (-0.1, 0.01), "UNDER-NS": (-0.1, 0.2)}[verdict]
    return NullResult(
        mean=0.1,
        mean_error=0.0,
        delta=(low + high) / 2,
        low=low,
        high=high,
        p_value=p_value,
        luck_margin=0.01,
        adjusted=0.2,
        attainable=attainable,
        attainable_exact=True,
        verdict=verdict,  # type: ignore[arg-type]
        trials=np.zeros(3),
    )


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ("PASS PASS PASS PASS", "PASS"),
        ("PASS PASS PASS FAIL", "FAIL"),
        ("FAIL UNDER-NS PASS PASS", "FAIL"),
        ("PASS UNDER-NS PASS PASS", "UNDER-NS"),
        ("UNDER-NS UNDER-NS UNDER-NS UNDER-NS", "UNDER-NS"),
    ],
)
def test_all_four_must_pass(verdicts: str, expected: str) -> None:
    nulls = dict(zip("ABCD", map(null, verdicts.split()), strict=True))
    verdict, reason = gate_verdict(nulls, 100, 0.05, GateConfig())
    assert verdict == expected
    # the reason names the nulls that decided
    for name, one in nulls.items():
        assert (f"{name}" in reason) or one.verdict != expected or expected == "PASS"


def test_what_comes_before_the_four_verdicts() -> None:
    passing = dict.fromkeys("ABCD", null("PASS"))
    unreachable = {**passing, "B": null("FAIL", attainable=0.04)}
    verdict, reason = gate_verdict(unreachable, 100, 0.05, GateConfig())
    assert (verdict, reason[:35]) == ("UNDER-NS", "no system can pass here: against B ")
    assert gate_verdict(passing, 1, 0.05, GateConfig())[0] == "UNDER-NS"
    improbable = {**passing, "A": null("PASS", p_value=0.0126)}
    assert gate_verdict(improbable, 100, 0.05, GateConfig())[0] == "UNDER-NS"
    assert gate_verdict(improbable, 100, 0.05, GateConfig(correction="none"))[0] == "PASS"
    assert gate_verdict(improbable, 100, 0.05, GateConfig(decision="point"))[0] == "PASS"


def test_a_difference_that_rounds_to_0_has_no_sign() -> None:
    tiny = replace(null("FAIL"), delta=-1e-17, low=-1e-6, high=-0.0)
    reason = gate_verdict(dict.fromkeys("ABCD", tiny), 100, 0.05, GateConfig())[1]
    assert "the difference of 0.0000 [0.0000, 0.0000] is" in reason
    closed = replace(tiny, attainable=-1e-17)
    reason = gate_verdict(dict.fromkeys("ABCD", closed), 100, 0.05, GateConfig())[1]
    assert "can reach is 0.0000, below" in reason


# Systems whose verdict is known


def test_a_good_system_passes() -> None:
    report = run_gate(right_for(200, 0.7), "nDCG@10")
    assert report.verdict == "PASS"
    assert report.definition_1
    assert report.score == pytest.approx(0.7)
    assert report.raise_for_verdict() is report
    assert all(one.above_zero and one.verdict == "PASS" for one in report.nulls.values())
    assert report.nulls["A"].delta == pytest.approx(0.7 - 0.7 / 200)


def test_a_system_that_finds_nothing_fails() -> None:
    report = run_gate(right_for(200, 0.0), "nDCG@10")
    assert report.verdict == "FAIL"
    assert not report.definition_1
    assert report.nulls["A"].p_value == 1
    with pytest.raises(VerdictError, match="FAIL"):
        report.raise_for_verdict()


def test_a_perfect_run_on_two_queries_proves_nothing() -> None:
    report = run_gate(right_for(2, 1.0), "nDCG@10")
    assert report.score == 1
    assert report.verdict == "UNDER-NS"
    assert report.definition_1  # the point rule would have passed it


@pytest.mark.parametrize("n", [2, 5, 19])
def test_queries_that_all_agree_are_too_few_below_twenty(n: int) -> None:
    report = run_gate(right_for(n, 1.0), "nDCG@10")
    assert report.verdict == "UNDER-NS"
    assert "all alike" in report.reason
    assert run_gate(right_for(20, 1.0), "nDCG@10").verdict == "PASS"


@pytest.mark.parametrize("found", [0.0, 1.0])
def test_one_query_is_under_ns(found: float) -> None:
    for decision in ("interval", "point"):
        config = GateConfig(decision=decision)  # type: ignore[arg-type]
        report = run_gate(right_for(1, found), "nDCG@10", config)
        assert report.verdict == "UNDER-NS"
        json.dumps(report.to_dict(), allow_nan=False)


def test_few_queries_cannot_tell() -> None:
    report = run_gate(right_for(30, 0.1), "nDCG@10")
    assert report.verdict == "UNDER-NS"
    assert report.nulls["A"].low < 0.05 < report.nulls["A"].high
    assert "W-SMALL-N" in codes(report)


def test_a_fail_on_few_queries_does_not_exclude_rare_wins() -> None:
    # below ln(alpha / 8) / ln(1 - tau) = 99 queries
    assert "W-RARE-WINS" in codes(run_gate(right_for(98, 0.0), "nDCG@10"))
    assert "W-RARE-WINS" not in codes(run_gate(right_for(99, 0.0), "nDCG@10"))


@pytest.mark.parametrize("hits", [0, 1, 2, 3, 5])
def test_a_few_hits_among_many_queries_are_a_fail(hits: int) -> None:
    # resamples without any hit say nothing about the upper end: the ceiling of the score does
    for n in (300, 1000):
        report = run_gate(right_for(n, hits / n), "R@10")
        assert report.verdict == "FAIL"
        assert all(one.high < 0.05 for one in report.nulls.values())
    assert run_gate(right_for(60, 1 / 60), "R@10").verdict == "UNDER-NS"


def test_a_benchmark_with_one_answer_lets_nobody_pass() -> None:
    gold = dict.fromkeys(distinct_gold(120), "d000")
    report = run_gate(evaluation({q: ranking(["d000"]) for q in gold}, gold), "nDCG@10")
    assert report.score == 1
    assert report.verdict == "UNDER-NS"
    assert "no system can pass here" in report.reason
    assert {"W-BENCHMARK-DEGENERATE", "W-UNREACHABLE"} <= set(codes(report))
    assert report.nulls["A"].attainable == pytest.approx(0)
    assert report.nulls["A"].verdict == "FAIL"


def test_recall_at_ten_of_five_hundred_relevant_documents_is_out_of_reach() -> None:
    gold = {f"q{i}": {f"d{i}-{j}": 1 for j in range(500)} for i in range(8)}
    run = {query: ranking(list(docs)[:10]) for query, docs in gold.items()}
    report = run_gate(evaluation(run, gold), "R@10")
    assert report.score == pytest.approx(0.02)
    assert report.verdict == "UNDER-NS"
    assert report.nulls["A"].attainable == pytest.approx(0.02 * 7 / 8)


def test_tau_one_is_out_of_reach_and_no_error() -> None:
    assert run_gate(right_for(40, 1.0), "nDCG@10", GateConfig(tau=1)).verdict == "UNDER-NS"


def test_the_verdict_follows_tau() -> None:
    verdicts = [
        run_gate(right_for(300, 0.5), "nDCG@10", GateConfig(tau=tau)).verdict
        for tau in (0.0, 0.2, 0.5, 0.9)
    ]
    assert verdicts == ["PASS", "PASS", "UNDER-NS", "FAIL"]


# Constant systems


MEASURES = ["nDCG@3", "P@2", "R@5", "RR", "AP", "Success@2", "Rprec", "SetP", "SetF"]


@settings(deadline=None, max_examples=40)
@given(
    judged=qrels(),
    one=rankings(1),
    measure=st.sampled_from(MEASURES),
    tau=st.sampled_from([0.0, 0.05]),
    seed=st.integers(0, 3),
)
def test_a_constant_run_has_delta_0_against_a(
    judged: Any, one: Any, measure: str, tau: float, seed: int
) -> None:
    run = dict.fromkeys(judged, one)
    config = replace(QUICK, tau=tau, seed=seed)
    a = run_gate(Evaluation.create(run, judged, corpus_size=30), measure, config).nulls["A"]
    assert (a.delta, a.low, a.high) == (0, 0, 0)
    if len(judged) > 1:
        assert a.verdict == "FAIL"
        assert a.p_value == 1


@pytest.mark.parametrize("measure", ["nDCG@10", "AP", "Compat(p=0.8)"])
@pytest.mark.parametrize("kind", ["single", "graded", "crowded"])
def test_a_constant_run_fails_the_gate_at_tau_0(kind: str, measure: str) -> None:
    bench = one_ranking(ALL[kind]())
    report = run_gate(bench.evaluation(), measure, replace(QUICK, tau=0.0))
    assert report.verdict == "FAIL"
    assert report.nulls["A"].verdict == "FAIL"


# Settings


def test_bonferroni_makes_the_intervals_wider() -> None:
    case = right_for(100, 0.5)
    wide = run_gate(case, "nDCG@10").nulls["A"]
    narrow = run_gate(case, "nDCG@10", GateConfig(correction="none")).nulls["A"]
    assert wide.low < narrow.low < narrow.high < wide.high
    assert GateConfig().alpha_each == 0.0125
    assert GateConfig(correction="none").alpha_each == 0.05


def test_tau_auto_is_the_largest_luck_margin() -> None:
    config = GateConfig(tau="auto", decision="point")
    report = run_gate(right_for(12, 0.5), "nDCG@10", config)
    margins = [one.luck_margin for one in report.nulls.values()]
    assert report.tau == max(margins) > 0.05
    for one in report.nulls.values():
        quantile = np.quantile(one.trials, 1 - 0.0125)
        assert one.luck_margin == pytest.approx(max(quantile - one.trials.mean(), 0))
    assert run_gate(right_for(300, 0.5), "nDCG@10", config).tau == 0.05


def test_the_point_rule_can_be_the_verdict() -> None:
    case = right_for(30, 0.1)
    assert run_gate(case, "nDCG@10").verdict == "UNDER-NS"
    point = run_gate(case, "nDCG@10", GateConfig(decision="point"))
    assert point.verdict == "PASS"
    assert point.definition_1
    assert "W-FEW-BOOT" not in codes(point)


@pytest.mark.parametrize(
    "settings_",
    [
        *({"tau": value} for value in (-0.1, 1.1, math.nan, "Auto", "0.05", None, True)),
        {"tau": "auto"},
        *({"alpha": value} for value in (0, 1, -1, math.nan, "x", None)),
        *({"n_boot": value} for value in (0, 99, 150, 1e3, "1000", None, True)),
        *({"n_trials": value} for value in (0, 99, 500.5)),
        {"alpha": 0.01, "n_trials": 399},
        {"alpha": 0.001},
        *({"seed": value} for value in (-1, 0.5, None)),
        *({"permute": "x"}, {"marginal": "label"}, {"decision": None}, {"correction": "holm"}),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings_: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(settings_))) as refused:
        GateConfig(**settings_)
    assert "\n" not in str(refused.value)


def test_settings_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        GateConfig().tau = 0.1  # type: ignore[misc]


# Which nulls are one number


@pytest.mark.parametrize(
    ("gold", "config", "same"),
    [
        # one document per query, all different: A, B and D are one number
        (distinct_gold(8), {}, "A, B and D"),
        # one document per query, some repeated: A and D
        ({**distinct_gold(8), "q000": "d001"}, {}, "A and D"),
        ({**distinct_gold(8), "q000": "d001"}, {"permute": "label"}, "A and B"),
        (distinct_gold(8), {"permute": "label"}, "A, B and D"),
        # several documents, gold sets all different
        ({f"q{i}": {f"d{i}": 1, "d0": 2, "e": 1} for i in range(1, 9)}, {}, "A and B"),
        (
            {f"q{i}": {f"d{i}": 1, "d0": 2, "e": 1} for i in range(1, 9)},
            {"marginal": "set"},
            "A, B and D",
        ),
        (
            {f"q{i}": {f"d{i // 2 * 2 % 6}": 1, "d9": 2} for i in range(8)},
            {"marginal": "set"},
            "A and D",
        ),
        ({f"q{i}": {f"d{i // 2 * 2 % 6}": 1, "d9": 2} for i in range(8)}, {}, None),
    ],
)
def test_coinciding_nulls_are_counted_and_named(
    gold: dict[str, Any], config: dict[str, Any], same: str | None
) -> None:
    docs = sorted({doc for d in gold.values() for doc in ([d] if isinstance(d, str) else d)})
    rng = np.random.default_rng(1)
    run = {query: ranking(rng.permutation(docs)[:5].tolist()) for query in gold}
    report = run_gate(evaluation(run, gold), "nDCG@5", replace(QUICK, **config))
    notes = [note.message for note in report.warnings if note.code == "W-COINCIDING-NULLS"]
    if same is None:
        assert (report.distinct_nulls, notes) == (4, [])
        return
    group = same.replace(" and", ",").split(", ")
    assert notes[0].startswith(f"{same} have the same expectation")
    assert report.distinct_nulls == 5 - len(group)
    means = [report.nulls[name].mean for name in group]
    assert means == pytest.approx([means[0]] * len(means), abs=1e-12)


def test_a_grade_that_counts_keeps_null_d_apart() -> None:
    gold = {f"q{i}": {f"d{i}": 1 + i % 2} for i in range(8)}
    run = {query: ranking([f"d{(i + 1) % 8}"]) for i, query in enumerate(gold)}
    assert run_gate(evaluation(run, gold), "nDCG@5", QUICK).distinct_nulls == 2
    assert run_gate(evaluation(run, gold), "P(rel=2)@5", QUICK).distinct_nulls == 3


# The companion


def test_the_companion_is_recall_of_the_highest_grade() -> None:
    bench = made(1, n_queries=40, n_docs=60, sizes=(3, 4), top_grade=3)
    report = run_gate(bench.evaluation(), "nDCG@5")
    assert report.companion is not None
    assert report.companion.measure == "R@5"
    top = {
        query: {d: 1 for d, g in docs.items() if g == max(docs.values())}
        for query, docs in bench.qrels.items()
    }
    plain = Benchmark(bench.run, top, bench.corpus)
    expected = run_gate(plain.evaluation(), "R@5", GateConfig(companion=False))
    assert report.companion.score == pytest.approx(expected.score)
    assert report.companion.verdict == expected.verdict


def test_a_companion_that_disagrees_flags_the_report() -> None:
    # finds the weakly relevant documents of each query and never the best one
    gold = {f"q{i:03}": {f"best{i}": 3, **{f"d{i}-{j}": 1 for j in range(6)}} for i in range(120)}
    run = {
        query: ranking([doc for doc in docs if "best" not in doc]) for query, docs in gold.items()
    }
    report = run_gate(evaluation(run, gold), "P@5")
    assert report.companion is not None
    assert (report.verdict, report.companion.verdict) == ("PASS", "FAIL")
    assert not report.companion.agrees
    assert "W-COMPANION" in codes(report)


def test_an_unreachable_companion_does_not_apply() -> None:
    gold = {f"q{i:03}": {f"d{i}-{j}": 1 for j in range(200)} for i in range(25)}
    run = {query: ranking(list(docs)[:5]) for query, docs in gold.items()}
    report = run_gate(evaluation(run, gold, corpus_size=10**6), "P@5")
    assert report.companion is not None
    assert (report.companion.verdict, report.companion.agrees) == ("not applicable", True)
    assert report.verdict == "PASS"


def test_no_companion_beside_itself() -> None:
    case = right_for(30, 0.5)
    assert run_gate(case, "R@10").companion is None
    assert run_gate(case, "R@5").companion is None
    assert run_gate(case, "AP", QUICK).companion is None
    companion = run_gate(case, "AP").companion
    assert companion is not None
    assert companion.measure == "R@10"


# What must not change a number


def figures(report: GateReport) -> dict[str, Any]:
    """Return all that a report says, but not the hashes of what it was given."""
    found = report.to_dict()
    del found["provenance"]["frames"]
    return found


def test_same_seed_same_numbers_other_seed_others() -> None:
    case = graded().evaluation()
    first = figures(run_gate(case, "nDCG@5"))
    assert figures(run_gate(case, "nDCG@5")) == first
    other = figures(run_gate(case, "nDCG@5", GateConfig(seed=1)))
    assert other["nulls"]["D"]["mean"] != first["nulls"]["D"]["mean"]
    assert other["score"] == first["score"]


@pytest.mark.parametrize("kind", ALL)
def test_the_order_of_input_rows_does_not_matter(kind: str) -> None:
    bench = ALL[kind]()
    turned = Benchmark(
        {q: dict(reversed(bench.run[q].items())) for q in reversed(list(bench.run))},
        {q: dict(reversed(bench.qrels[q].items())) for q in reversed(list(bench.qrels))},
        bench.corpus[::-1],
    )
    for measure in ("nDCG@5", "SetF"):
        ours, theirs = (run_gate(b.evaluation(), measure, QUICK) for b in (bench, turned))
        assert figures(ours) == figures(theirs)


def test_names_do_not_matter_as_long_as_their_order_stays() -> None:
    bench = crowded()

    def renamed(text: str) -> str:
        return "prefix " + "".join(chr(ord(char) + 300) for char in text)

    other = Benchmark(
        {renamed(q): {renamed(d): s for d, s in docs.items()} for q, docs in bench.run.items()},
        {renamed(q): {renamed(d): g for d, g in docs.items()} for q, docs in bench.qrels.items()},
        [renamed(doc) for doc in bench.corpus],
    )
    ours = figures(run_gate(bench.evaluation(), "nDCG@5", QUICK))
    theirs = figures(run_gate(other.evaluation(), "nDCG@5", QUICK))
    ours.pop("warnings"), theirs.pop("warnings")
    assert ours == theirs


SCRIPT = """
import json
from falsify_adapters.gate import run_gate
from falsify_adapters.results import GateConfig
from tests.benchmarks_made import ALL
config = GateConfig(n_trials=100, n_boot=200)
print(json.dumps([
    run_gate(make().evaluation(), measure, config).to_dict()
    for make in ALL.values() for measure in ("nDCG@5", "SetF")
]))
"""


def test_the_hash_seed_of_python_does_not_matter() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_scores_matter_only_by_their_order() -> None:
    bench = graded()
    warped = {
        q: {d: math.atan(s / 7) * 1e-9 for d, s in docs.items()} for q, docs in bench.run.items()
    }
    other = replace(bench, run=warped)
    ours, theirs = (run_gate(b.evaluation(), "nDCG@5", QUICK) for b in (bench, other))
    assert figures(ours) == figures(theirs)


def test_documents_that_nobody_judged_matter_only_by_their_rank() -> None:
    bench = graded()
    swap = {f"x{i:02}": f"y{i:02}" for i in range(20)}
    other = Benchmark(
        {q: {swap.get(d, d): s for d, s in docs.items()} for q, docs in bench.run.items()},
        bench.qrels,
        [swap.get(doc, doc) for doc in bench.corpus],
    )
    ours, theirs = (run_gate(b.evaluation(), "AP", QUICK) for b in (bench, other))
    assert figures(ours) == figures(theirs)


# The kernel and ir-measures


@pytest.mark.parametrize("wrong", [0.5, math.nan])
def test_a_wrong_kernel_is_found_out_and_replaced(
    wrong: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = graded().evaluation()
    right = run_gate(case, "P@5", QUICK)
    monkeypatch.setattr(Precision, "norm", lambda self: np.full(len(self.n_relevant), wrong))
    report = run_gate(case, "P@5", QUICK)
    assert "W-FALLBACK" in codes(report)
    assert report.score == right.score
    for name in "AB":
        assert report.nulls[name].mean == pytest.approx(right.nulls[name].mean)
        assert report.nulls[name].low == pytest.approx(right.nulls[name].low)
    for name in "CD":
        error = math.hypot(report.nulls[name].mean_error, right.nulls[name].mean_error)
        assert abs(report.nulls[name].mean - right.nulls[name].mean) <= 4 * error


# Reports


@pytest.mark.parametrize("measure", ["nDCG@5", "P@5", "SetF"])
@pytest.mark.parametrize("kind", ALL)
def test_reports_are_plain_json(kind: str, measure: str) -> None:
    report = run_gate(ALL[kind]().evaluation(benchmark="toy"), measure)
    text = json.dumps(report.to_dict(), allow_nan=False)
    assert json.loads(text)["kind"] == "gate"
    assert set(report.to_dict()["nulls"]) == set("ABCD")
    assert report.to_frame()["null"].tolist() == list("ABCD")
    assert report._repr_html_().startswith("<p>")
    assert "array" not in repr(report)
    per_query = report.per_query
    assert per_query["score"].mean() == pytest.approx(report.score)
    for name in "ABCD":
        mean = report.nulls[name].mean
        assert per_query[name].mean() == pytest.approx(mean, abs=1e-12), name


def test_html_escapes_names() -> None:
    report = run_gate(right_for(30, 0.5), "P@1", QUICK)
    shown = replace(report, system="<b>a & b</b>", benchmark="<i>")._repr_html_()
    assert "<b>a" not in shown
    assert "<i>" not in shown
    assert "&lt;b&gt;a &amp; b" in shown


def test_deltas_are_score_minus_mean_and_lie_in_their_interval() -> None:
    for make in ALL.values():
        report = run_gate(make().evaluation(), "nDCG@5", QUICK)
        for one in report.nulls.values():
            assert one.delta == pytest.approx(report.score - one.mean, abs=1e-12)
            assert -1 <= one.low <= one.delta <= one.high <= 1
            assert 0 < one.p_value <= 1
            assert one.luck_margin >= 0


def test_score_answered_leaves_out_what_the_run_leaves_out() -> None:
    gold = distinct_gold(40)
    run = {query: ranking([doc]) for query, doc in list(gold.items())[:30]}
    report = run_gate(evaluation(run, gold), "nDCG@10")
    assert report.score == pytest.approx(0.75)
    assert report.score_answered == 1


def test_an_interval_end_near_tau_asks_for_more_resamples() -> None:
    case = right_for(300, 0.5)
    low = run_gate(case, "nDCG@10").nulls["A"].low
    assert "W-FEW-BOOT" in codes(run_gate(case, "nDCG@10", GateConfig(tau=low + 1e-4)))
    assert "W-FEW-BOOT" not in codes(run_gate(case, "nDCG@10", GateConfig(tau=low - 0.05)))


@pytest.mark.parametrize("name", ["n_boot", "n_trials"])
def test_numbers_of_draws_that_fit_into_no_memory_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} is too large"):
        GateConfig(**{name: 10**9})  # type: ignore[arg-type]


@pytest.mark.parametrize("alpha", [5e-324, 1e-300, 1e-9])
def test_an_alpha_that_no_number_of_draws_serves_is_refused(alpha: float) -> None:
    with pytest.raises(UsageError, match="alpha is so small") as refused:
        GateConfig(alpha=alpha)
    assert len(str(refused.value)) < 100


def test_a_grade_that_no_document_has_is_refused_and_one_that_some_lack_is_noted() -> None:
    run = {f"q{i}": {f"d{i}": 1.0} for i in range(40)}
    qrels = {f"q{i}": {f"d{i}": 1 + i % 2} for i in range(40)}
    evaluation = Evaluation.create(run, qrels, corpus_size=999)
    with pytest.raises(MeasureError, match=r"AP\(rel=5\) takes grade 5 .* the highest grade is 2"):
        run_gate(evaluation, "AP(rel=5)")
    with pytest.raises(MeasureError, match="takes grade 3 and more"):
        compare_systems(evaluation, evaluation.with_run(run), "P(rel=3)@1")
    found = run_gate(evaluation, "P(rel=2)@1")
    assert found.score == 0.5
    (note,) = (note for note in found.warnings if note.code == "W-NO-RELEVANT")
    assert note.message.startswith("20 of 40 queries have no document of grade 2 or more (q0, q10")
    assert "W-NO-RELEVANT" not in {note.code for note in run_gate(evaluation, "P@1").warnings}


def test_what_is_no_evaluation_is_refused() -> None:
    for wrong in (None, ({}, {}), {"q": {"d": 1.0}}):
        with pytest.raises(UsageError, match="run_gate takes an Evaluation"):
            run_gate(wrong, "nDCG@10")  # type: ignore[arg-type]
    evaluation = Evaluation.create({"q": {"d": 1.0}}, {"q": {"d": 1}}, corpus_size=9)
    with pytest.raises(UsageError, match="run_gate takes a GateConfig"):
        run_gate(evaluation, "nDCG@10", {"tau": 0.1})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="companion must be True or False"):
        GateConfig(companion="no")  # type: ignore[arg-type]
