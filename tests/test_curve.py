"""The calibration curve: subsamples are graded as if the other queries had never been asked."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsify_adapters import Evaluation, GateConfig, UsageError, calibration_curve, run_gate
from falsify_adapters.coded import code, subset
from falsify_adapters.report.jsonfile import to_json
from falsify_adapters.report.outcome import Outcome
from falsify_adapters.report.terminal import to_terminal
from tests.cli_runs import report as command_report

CONFIG = GateConfig(n_trials=100, n_boot=200, companion=False)


def benchmark(n: int, seed: int = 0) -> Evaluation:
    """Draw a graded benchmark with shared gold documents and a middling system."""
    rng = np.random.default_rng(seed)
    qrels, run = {}, {}
    for i in range(n):
        gold = rng.choice(30, rng.integers(1, 5), replace=False)
        qrels[f"q{i:03}"] = {f"d{d:02}": int(rng.integers(1, 4)) for d in gold}
        shown = np.r_[gold[: rng.integers(0, 3)], rng.integers(0, 60, 6)]
        run[f"q{i:03}"] = {f"d{d:02}": float(-r) for r, d in enumerate(dict.fromkeys(shown))}
    return Evaluation.create(run, qrels, corpus_size=100, system="mine", benchmark="drawn")


def part(evaluation: Evaluation, chosen: list[str]) -> Evaluation:
    """Make the benchmark of some queries from scratch."""
    run = evaluation.run[evaluation.run["query_id"].isin(chosen)]
    qrels = evaluation.qrels[evaluation.qrels["query_id"].isin(chosen)]
    return Evaluation.create(
        run.astype({"query_id": str, "doc_id": str}),
        qrels.astype({"query_id": str, "doc_id": str}),
        corpus_size=evaluation.corpus_size,
    )


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 50), st.data())
def test_a_subset_of_codes_is_the_code_of_the_subset(seed: int, data) -> None:
    evaluation = benchmark(12, seed)
    picked = sorted(data.draw(st.sets(st.integers(0, 11), min_size=1)))
    whole = code(evaluation.run, evaluation.qrels, 100, depth=5)
    ours = subset(whole, np.array(picked))
    fresh = part(evaluation, [evaluation.query_ids[i] for i in picked])
    theirs = code(fresh.run, fresh.qrels, 100, depth=5)
    for name, value in vars(theirs).items():
        if not name.startswith("_"):
            assert np.array_equal(getattr(ours, name), value), name


def test_the_last_row_is_the_whole_benchmark() -> None:
    evaluation = benchmark(48)
    curve = calibration_curve(evaluation, "nDCG@5", CONFIG, n_subsamples=3)
    report = run_gate(evaluation, "nDCG@5", CONFIG)
    assert curve["n_queries"].tolist() == [12, 24, 48]
    assert curve["subsamples"].tolist() == [3, 3, 1]
    last = curve.iloc[-1]
    assert last["score"] == report.score
    for name, null in report.nulls.items():
        assert last[f"width_{name}"] == pytest.approx(null.high - null.low)
    assert last[report.verdict] == 1
    assert (curve[["PASS", "FAIL", "UNDER-NS"]].sum(axis=1) == curve["subsamples"]).all()


def test_a_subsample_is_graded_like_a_benchmark_of_its_own() -> None:
    evaluation = benchmark(30)
    curve = calibration_curve(evaluation, "AP@5", CONFIG, sizes=[14], n_subsamples=1)
    rng = np.random.default_rng([CONFIG.seed, *b"curve"])
    chosen = [evaluation.query_ids[i] for i in sorted(rng.choice(30, 14, replace=False))]
    report = run_gate(part(evaluation, chosen), "AP@5", CONFIG)
    assert curve["score"][0] == pytest.approx(report.score)
    for name, null in report.nulls.items():
        assert curve[f"width_{name}"][0] == pytest.approx(null.high - null.low)


def test_intervals_narrow_with_the_root_of_the_number_of_queries() -> None:
    curve = calibration_curve(
        benchmark(400), "nDCG@5", CONFIG, sizes=[50, 200], n_subsamples=15
    ).set_index("n_queries")
    for name in "ABCD":
        assert curve[f"width_{name}"][50] / curve[f"width_{name}"][200] == pytest.approx(2, rel=0.2)


def test_same_seed_same_curve() -> None:
    again = [
        calibration_curve(benchmark(20), "RR@5", replace(CONFIG, seed=s), n_subsamples=2)
        for s in (1, 1, 2)
    ]
    assert again[0].equals(again[1])
    assert not again[0].equals(again[2])


@pytest.mark.parametrize("sizes", [[1], [21], []])
def test_impossible_sizes_are_refused(sizes: list[int]) -> None:
    with pytest.raises(UsageError, match="2 to 20 queries"):
        calibration_curve(benchmark(20), "RR@5", CONFIG, sizes=sizes)


def test_queries_without_an_answer_are_no_obstacle() -> None:
    qrels = {f"q{i:02}": {"d1": int(i == 0)} for i in range(20)}
    evaluation = Evaluation.create({"q00": {"d1": 1.0}}, qrels, corpus_size=50)
    curve = calibration_curve(evaluation, "RR@5", CONFIG, n_subsamples=5)
    assert curve["subsamples"].tolist()[-1] == 1


def test_the_report_carries_the_curve() -> None:
    evaluation = benchmark(40)
    curve = calibration_curve(evaluation, "nDCG@5", CONFIG, n_subsamples=2)
    report = replace(run_gate(evaluation, "nDCG@5", CONFIG), curve=curve)
    rows = json.loads(to_json(Outcome([report])))["reports"][0]["curve"]
    assert [row["n_queries"] for row in rows] == [10, 20, 40]
    text = to_terminal(Outcome([report]), ascii_only=True)
    assert "Width of the intervals, and verdicts, of 2 subsamples" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_command_adds_it_on_request(tmp_path) -> None:
    evaluation = benchmark(24)
    evaluation.run.to_csv(tmp_path / "mine.tsv", sep="\t", index=False)
    evaluation.qrels.to_csv(tmp_path / "qrels.tsv", sep="\t", index=False)
    files = [tmp_path / "qrels.tsv", tmp_path / "mine.tsv"]
    common = [*files, "--corpus-size", "100", "--n-boot", "200", "--n-trials", "100", "-q"]
    for extra, expected in (([], False), (["--curve"], True)):
        (one,) = command_report("ir", *common, *extra)["reports"]
        assert ("curve" in one) is expected
