"""Power analysis: against statsmodels, and in every UNDER-NS report."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from scipy import stats
from statsmodels.stats.power import normal_power_het, normal_sample_size_one_tail

from falsify_adapters import Evaluation, GateConfig, run_gate
from falsify_adapters.power import power_of, power_sentence
from falsify_adapters.report.jsonfile import to_json
from falsify_adapters.report.outcome import Outcome
from falsify_adapters.results import NULLS, Power
from tests.report_factory import gate_report, null_result

CONFIG = GateConfig()
Z = stats.norm.ppf(1 - CONFIG.alpha_each / 2)


def normal_nulls(deltas: tuple[float, ...], error: float):
    """Return comparisons whose intervals are the normal ones."""
    nulls = {
        name: null_result(0.5 - delta, delta, Z * error)
        for name, delta in zip(NULLS, deltas, strict=True)
    }
    return nulls, dict.fromkeys(NULLS, error)


@pytest.mark.parametrize(("delta", "n", "error"), [(0.1, 80, 0.03), (0.07, 200, 0.02)])
def test_queries_against_statsmodels(delta: float, n: int, error: float) -> None:
    nulls, errors = normal_nulls((delta,) * 4, error)
    power = power_of(nulls, errors, n, 0.05, CONFIG)
    theirs = normal_sample_size_one_tail(
        delta - 0.05, 0.8, CONFIG.alpha_each / 2, std_null=error * n**0.5
    )
    assert power.queries == pytest.approx(theirs, abs=1)


def test_the_detectable_delta_has_the_power_that_statsmodels_gives_it() -> None:
    error = 0.02
    nulls, errors = normal_nulls((0.08,) * 4, error)
    power = power_of(nulls, errors, 100, 0.05, CONFIG)
    # the score is 0.5 and hardly moves, so that neither does its variance
    theirs = normal_power_het(
        power.minimum_detectable_delta - 0.05,
        100,
        CONFIG.alpha_each / 2,
        std_null=error * 10,
        std_alternative=error * 10,
        alternative="larger",
    )
    assert theirs == pytest.approx(0.8, abs=0.005)


def test_one_fail_is_enough_but_a_pass_takes_all() -> None:
    nulls, errors = normal_nulls((0.09, 0.08, 0.07, 0.06), 0.03)
    alone = [
        power_of({**nulls, **normal_nulls((d,) * 4, 0.03)[0]}, errors, 100, 0.05, CONFIG).queries
        for d in (0.09, 0.08, 0.07, 0.06)
    ]
    assert power_of(nulls, errors, 100, 0.05, CONFIG).queries == max(alone)
    nulls, errors = normal_nulls((0.02, 0.01, 0.07, 0.06), 0.03)
    fails = power_of(normal_nulls((0.01,) * 4, 0.03)[0], errors, 100, 0.05, CONFIG).queries
    assert power_of(nulls, errors, 100, 0.05, CONFIG).queries == fails


def test_a_delta_of_exactly_tau_takes_more_queries_than_anybody_has() -> None:
    nulls, errors = normal_nulls((0.05,) * 4, 0.03)
    power = power_of(nulls, errors, 100, 0.05, CONFIG)
    assert power.queries == 1_000_000
    assert "too close to tau for any number of queries" in power_sentence(power, 100, 0.9)


def test_what_nobody_can_reach_is_said() -> None:
    sentence = power_sentence(Power(0.8, "A", 0.4, 900), 20, 0.3)
    assert "no system can count on a PASS" in sentence
    assert "0.300 is the most" in sentence


@pytest.mark.parametrize(
    ("n", "tau", "config", "error"),
    [
        (1, 0.05, CONFIG, 0.03),
        (100, 0.95, CONFIG, 0.03),
        (100, 0.05, replace(CONFIG, decision="point"), 0.03),
        (100, 0.05, CONFIG, 0.0),
    ],
)
def test_nothing_is_promised_where_no_interval_decides(n, tau, config, error) -> None:
    nulls, errors = normal_nulls((0.07,) * 4, error)
    power = power_of(nulls, errors, n, tau, config)
    assert (power.minimum_detectable_delta, power.queries, power.null) == (None, None, None)
    assert power_sentence(power, n, 0.9) == ""


def undecided(n: int = 40):
    """Grade a system that finds every sixth answer: too little for so few queries."""
    qrels = {f"q{i}": {f"d{i}": 1} for i in range(n)}
    run = {f"q{i}": {f"d{i if i % 6 == 0 else n + i}": 1.0} for i in range(n)}
    return run_gate(Evaluation.create(run, qrels, corpus_size=1000), "RR@10")


def test_every_undecided_report_says_what_would_decide() -> None:
    report = undecided()
    assert report.verdict == "UNDER-NS"
    assert report.power.minimum_detectable_delta > 0.05
    assert report.power.queries > 40
    assert "a true delta must be about" in report.reason
    assert "queries would decide" in report.reason
    power = json.loads(to_json(Outcome([report])))["reports"][0]["power"]
    assert power["queries"] == report.power.queries
    assert power["chance"] == 0.8


def test_as_many_queries_as_asked_for_do_decide() -> None:
    # the same system on more queries has the same delta, up to the multiples of six
    assert undecided(undecided().power.queries).verdict == "PASS"


def test_a_decided_report_has_no_power_analysis() -> None:
    qrels = {f"q{i}": {f"d{i}": 1} for i in range(60)}
    run = {f"q{i}": {f"d{i}": 1.0} for i in range(60)}
    report = run_gate(Evaluation.create(run, qrels, corpus_size=1000), "RR@10")
    assert (report.verdict, report.power) == ("PASS", None)


def test_more_queries_are_not_asked_for_where_no_system_can_pass() -> None:
    qrels = {f"q{i}": {"d0": 1} for i in range(60)}
    report = run_gate(Evaluation.create({"q0": {"d0": 1.0}}, qrels, corpus_size=1000), "RR@10")
    assert report.verdict == "UNDER-NS"
    assert report.power == Power(0.8, None, None, None)
    assert "queries would decide" not in report.reason


def test_a_report_made_by_hand_may_lack_it() -> None:
    assert gate_report().to_dict()["power"] is None
