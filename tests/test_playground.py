"""The playground: every point and every threshold is what the gate says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from falsify_adapters import baselines
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import as_run
from falsify_adapters.gate import run_gate, sweep_gate
from falsify_adapters.playground import (
    PREDICTORS,
    SHARES,
    TAU,
    Playground,
    _mixtures,
    make_playground,
    mixed_run,
    report_key,
)
from falsify_adapters.results import NULLS, GateConfig

CONFIG = GateConfig(n_trials=160, n_boot=160)


def benchmark(n: int = 60, skill: float = 0.6, *, ties: bool = False) -> Evaluation:
    rng = np.random.default_rng(n)
    qrels = {f"q{i}": {f"d{rng.zipf(1.5) % 50}": 1 + i % 2, f"e{i % 7}": 1} for i in range(n)}
    run = {
        query: {
            **{f"n{j}": (0.5 if ties else 0.5 - j / 100) for j in range(4)},
            **({next(iter(gold)): 0.5 if ties else 0.9} if rng.random() < skill else {}),
        }
        for query, gold in list(qrels.items())[: n - 3]
    }
    return Evaluation.create(run, qrels, corpus_size=500, system="mine", benchmark="toy")


@pytest.fixture(scope="module", params=["plain", "ties", "ceiling", "point"])
def made(request: pytest.FixtureRequest) -> tuple[Evaluation, GateConfig, Playground]:
    evaluation = benchmark(ties=request.param == "ties")
    config = {
        "ceiling": replace(CONFIG, require_ceiling=True),
        "point": replace(CONFIG, decision="point", tau="auto"),
    }.get(request.param, CONFIG)
    report = run_gate(evaluation, "nDCG@10", config)
    return evaluation, config, make_playground(evaluation, report, config, progress=False)


def test_each_point_is_what_the_gate_says_at_every_threshold(
    made: tuple[Evaluation, GateConfig, Playground],
) -> None:
    evaluation, config, ground = made
    rng = np.random.default_rng(0)
    runs = list(_mixtures(evaluation, "nDCG@10", config.seed, None))
    for predictor, share, run in [runs[0], *(runs[i] for i in rng.choice(len(runs), 5))]:
        point = ground.point(predictor, share)
        for position in rng.choice(len(ground.taus), 5):
            tau = ground.taus[position]
            graded = run_gate(evaluation.with_run(run), "nDCG@10", replace(config, tau=tau))
            step = point.at(int(position))
            assert step.verdict == graded.verdict
            reason = step.reason.replace(TAU, f"{tau:g}")
            assert graded.reason == reason or graded.reason.startswith(f"{reason}; ")
            assert graded.reason == reason or graded.power is not None
            assert step.nulls == "".join(graded.nulls[name].verdict[0] for name in NULLS)
            assert point.score == graded.score
            assert point.nulls["D"].low == graded.nulls["D"].low


def test_share_zero_is_the_report(made: tuple[Evaluation, GateConfig, Playground]) -> None:
    evaluation, config, ground = made
    report = run_gate(evaluation, "nDCG@10", config)
    assert ground.key == report_key(report)
    for predictor in PREDICTORS:
        point = ground.point(predictor, 0.0)
        assert point.score == report.score
        assert point.at(ground.taus.index(report.tau)).verdict == report.verdict


def test_the_whole_share_is_the_predictor_itself() -> None:
    evaluation = benchmark()
    report = run_gate(evaluation, "nDCG@10", CONFIG)
    ground = make_playground(evaluation, report, CONFIG, progress=False)
    blind = evaluation.with_run(baselines.popularity(evaluation.qrels, 5))
    assert ground.point("popularity", 1.0).score == run_gate(blind, "nDCG@10", CONFIG).score
    for predictor in ("constant", "popularity"):
        assert ground.point(predictor, 1.0).at(5).verdict == "FAIL"
    assert {p.share for p in ground.points if p.predictor == "random"} == set(SHARES[1:])


def test_larger_shares_replace_more_of_the_same_queries() -> None:
    evaluation = benchmark()
    replaced: set[str] = set()
    for name, share, run in _mixtures(evaluation, "nDCG@10", 0, None):
        if name != "constant":
            continue
        rows = run.merge(as_run(evaluation.run), on=["query_id", "doc_id"], how="left")
        new = {q for q, s in zip(rows["query_id"], rows["score_y"], strict=True) if np.isnan(s)}
        assert replaced <= new
        assert len(new) == round(share * evaluation.n_queries)
        replaced = new


def test_a_mixture_forgets_no_answered_query() -> None:
    run = as_run({"q1": {"a": 1.0}, "q2": {}, "q3": {"b": 2.0, "c": 1.0}})
    other = as_run({"q1": {"x": 1.0}, "q2": {"x": 1.0}, "q3": {"x": 1.0}, "q4": {"x": 1.0}})
    mixed = mixed_run(run, other, ["q1", "q4"])
    assert list(mixed["query_id"].cat.categories) == ["q1", "q2", "q3", "q4"]
    assert mixed[["query_id", "doc_id"]].to_numpy().tolist() == [
        *(["q1", "x"], ["q3", "b"], ["q3", "c"], ["q4", "x"])
    ]
    assert run["query_id"].cat.categories.tolist() == ["q1", "q2", "q3"]


def test_steps_are_ascending_and_differ() -> None:
    evaluation = benchmark(n=40)
    report = run_gate(evaluation, "R@5", CONFIG)
    for point in make_playground(evaluation, report, CONFIG, progress=False).points:
        starts = [step.start for step in point.steps]
        assert starts[0] == 0
        assert starts == sorted(set(starts))


def test_a_sweep_draws_nothing_anew() -> None:
    evaluation = benchmark()
    alone = sweep_gate(evaluation, "nDCG@10", [0.3], CONFIG)
    among = sweep_gate(evaluation, "nDCG@10", np.linspace(0, 1, 21), replace(CONFIG, tau=0.9))
    assert alone.steps[0] == among.steps[6] or abs(among.steps[6].tau - 0.3) < 1e-12
    assert [null.low for null in alone.nulls.values()] == [n.low for n in among.nulls.values()]


def test_a_popularity_sample_follows_the_popularity() -> None:
    # d0 is relevant to 3 of 4 pairs; a draw without repeats of both is certain to hold both
    qrels = {f"q{i}": {"d0" if i % 4 else "d1": 1} for i in range(2000)}
    first = baselines.popularity_sample(qrels, 1, seed=1)["doc_id"]
    assert (first == "d0").mean() == pytest.approx(0.75, abs=0.04)
    both = baselines.popularity_sample(qrels, 9, seed=1)
    assert both.groupby("query_id", observed=True)["doc_id"].nunique().eq(2).all()
    assert baselines.popularity_sample(qrels, 1, exclude=["d0"])["doc_id"].unique().tolist() == [
        "d1"
    ]
