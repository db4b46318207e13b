"""The studies at reduced size: what their tables claim holds, up to Monte Carlo error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from falsify_adapters.nulls import CrossMatrix, permuted_gold
from falsify_adapters.resampling import bootstrap_t, effective_queries, p_value
from falsify_adapters.results import GateConfig
from tests.same_draws import SCIPY_SEED
from tests.studies import case_studies, coverage, error_rates, tables, tau_auto, worked_example
from tests.studies.simulated import GRADED, PROCESSES, RARE, RARE_LOSSES, RARE_WINS, SINGLE, coded

SEED = 0


def margin(share: float, n: int, errors: float = 3.0) -> float:
    """Return so many Monte Carlo standard errors of a share."""
    return errors * float(np.sqrt(share * (1 - share) / n))


@pytest.mark.parametrize("process", PROCESSES, ids=lambda p: p.name)
def test_intervals_cover(process) -> None:
    reps = 150
    found = coverage.cell(process, 40, (reps, 20, 150), SEED)
    assert 0 <= found.warned <= 1
    assert np.all(found.strict >= found.covered - 1e-9)
    # the cap never excludes a truth that unbounded ends would hold
    assert np.all(found.strict >= found.uncapped - 1e-9)
    if process.name in RARE:
        return
    assert found.covered.min() >= 0.92 - margin(0.92, reps)
    assert found.strict.min() >= 0.96 - margin(0.96, reps)
    assert found.peers["percentile"].shape == found.peers["BCa"].shape == (4,)


def test_benchmarks_of_rare_events_are_warned_about_and_others_are_not() -> None:
    rng = np.random.default_rng(SEED)
    share = {
        process.name: np.mean(
            [
                (effective_queries(coverage.deltas(process, rng, 60, 10).influence) < 5).any()
                for _ in range(40)
            ]
        )
        for process in (RARE_WINS, RARE_LOSSES, SINGLE, GRADED)
    }
    assert min(share[RARE_WINS.name], share[RARE_LOSSES.name]) >= 0.8
    assert max(share[SINGLE.name], share[GRADED.name]) <= 0.05


def test_the_study_counts_what_lies_outside() -> None:
    # a truth shifted by five standard errors is hardly ever covered
    rng = np.random.default_rng(SEED)
    found = [coverage.deltas(SINGLE, rng, 100, 10) for _ in range(20)]
    truth = np.mean([f.delta for f in found], axis=0)
    held = []
    for i, f in enumerate(found):
        low, high, error = bootstrap_t(
            f.influence, f.delta, f.error, alpha=0.05, n_boot=500, seed=i
        )
        held.append((low <= truth + 5 * error) & (high >= truth + 5 * error))
    assert np.mean(held) < 0.1


@pytest.fixture(scope="module")
def errors() -> list[error_rates.Verdicts]:
    """Grade systems of known kind on fresh benchmarks."""
    return [
        error_rates.verdicts(case, SEED)
        for case in error_rates.cases(
            error_rates.Sizes((60,), 30, 60, {60: 3}, (), 0, ()),
        )
    ]


def test_a_system_that_never_reads_the_query_does_not_pass(errors) -> None:
    blind = [f for f in errors if f.case.name in error_rates.BLIND]
    assert len(blind) == 10
    assert sum(v == "PASS" for f in blind for v in f.verdicts) == 0
    for f in blind:
        if f.case.name in ("constant", "popularity order"):
            assert set(f.verdicts) == {"FAIL"}


def test_at_a_true_delta_of_tau_few_pass_and_few_fail(errors) -> None:
    at_tau = [f for f in errors if f.case.name == "true delta = tau"]
    flat = [v for f in at_tau for v in f.verdicts]
    assert np.mean([v == "PASS" for v in flat]) <= 0.025 + margin(0.025, len(flat))
    assert np.mean([v == "FAIL" for v in flat]) <= 0.05 + margin(0.05, len(flat))
    # which is what the point rule cannot say of itself
    assert np.mean([p for f in at_tau for p in f.definition_1]) > 0.2


def test_systems_above_tau_do_not_fail(errors) -> None:
    above = [
        v for f in errors for v in f.verdicts if "1.5" in f.case.name or "2 tau" in f.case.name
    ]
    assert np.mean([v == "FAIL" for v in above]) <= 0.02 + margin(0.02, len(above))


def test_falsify_eval_stood_beside_it(errors) -> None:
    single = [f for f in errors if f.case.process.measure == "nDCG@10" and f.falsify]
    assert {len(f.falsify) for f in single} == {3}
    assert not any(p for f in single for p in f.falsify if f.case.name == "constant")


def test_power_grows_with_queries_and_falls_with_the_share_of_popularity() -> None:
    def passed(share: float, n: int) -> float:
        case = error_rates.Case("mixed", SINGLE, error_rates.mixture(share), n, 20)
        return float(np.mean([v == "PASS" for v in error_rates.verdicts(case, SEED).verdicts]))

    assert passed(0.0, 100) >= 0.9
    assert passed(1.0, 100) == 0
    assert passed(0.5, 40) < passed(0.5, 300)


def test_the_minimum_detectable_delta_is_detected_as_often_as_promised() -> None:
    found = error_rates.promise(100, 60, 80, SEED)
    assert 0.8 - margin(0.8, 60) - 0.05 <= found.passed <= 0.8 + margin(0.8, 60) + 0.05
    assert found.decided >= 0.8 - margin(0.8, 60)


def test_tau_auto_falls_to_its_floor_with_queries_and_labels() -> None:
    def tau(labels: int, n: int) -> float:
        process = tau_auto.label_process(labels)
        return float(np.mean(tau_auto.margins(process, error_rates.real, n, 4, 200, SEED).tau))

    assert tau(12, 20) > tau(12, 100) > tau(12, 1000) >= 0.05
    assert tau(12, 40) > tau(3000, 40) >= 0.05


def test_a_constant_predictor_beats_a_under_labels_and_never_under_queries() -> None:
    gold, runs = worked_example.benchmark(800, worked_example.N_DOCUMENTS, SEED)
    config = GateConfig(n_trials=100, companion=False)
    by_query = worked_example.ours(gold, runs["constant"], config).nulls
    assert (by_query["A"].delta, by_query["A"].low, by_query["A"].high) == (0.0, 0.0, 0.0)
    by_label = GateConfig(n_trials=100, companion=False, permute="label")
    for run in runs.values():
        ours = worked_example.ours(gold, run, by_label).nulls
        theirs = worked_example.theirs(gold, run, SEED)
        for name, delta in theirs.items():
            # the same nulls: what is left is the noise of their 50 trials
            noise = ours[name].trials.std() / np.sqrt(50)
            assert ours[name].delta == pytest.approx(delta, abs=4.5 * noise + 1e-9), name
    assert worked_example.ours(gold, runs["constant"], by_label).nulls["A"].low > 0.05


def test_the_case_studies_come_out_as_printed_with_their_construction(data_dir: Path) -> None:
    evaluations = case_studies.systems(data_dir / "nfcorpus", "nDCG@10")
    corpus = case_studies._corpus_ids(data_dir / "nfcorpus")
    found = case_studies.their_deltas(evaluations["popularity"], corpus, 2)
    assert found["score"] == pytest.approx(0.066, abs=0.0006)
    assert found["C"] == pytest.approx(0.056, abs=0.002)
    bm25 = case_studies.their_deltas(evaluations["bm25"], corpus, 2)
    assert max(bm25["A"], bm25["D"]) < 0.02
    (report,) = [
        report
        for name, report in case_studies.reports(
            data_dir / "nfcorpus", GateConfig(n_trials=100, companion=False)
        )
        if name == "bm25" and report.measure == "nDCG@10"
    ]
    assert report.verdict == "PASS"
    assert report.nulls["A"].delta > 0.25


# --- the same statistics elsewhere ---------------------------------------------------------------


def test_null_a_against_scipys_permutation_test() -> None:
    rng = np.random.default_rng(SEED)
    benchmark = SINGLE.draw(rng, 6)
    cross = CrossMatrix(benchmark, SINGLE.kernel(benchmark))
    dense = cross.matrix.toarray()[:, benchmark.set_of]

    def score(order):
        return dense[np.arange(6), order].mean()

    # all 720 pairings: scipy's p-value counts the observed one among them
    theirs = stats.permutation_test(
        (np.arange(6),), score, permutation_type="pairings", alternative="greater", n_resamples=1000
    )
    ours = permuted_gold(cross, 20_000, SEED)
    assert len(theirs.null_distribution) == 720
    assert ours.mean == pytest.approx(theirs.null_distribution.mean())
    error = np.sqrt(theirs.pvalue * (1 - theirs.pvalue) / 20_000)
    assert p_value(cross.own.mean(), ours.trials) == pytest.approx(theirs.pvalue, abs=5 * error)


def test_bootstrap_t_against_a_plain_loop_and_students_t() -> None:
    rng = np.random.default_rng(SEED)
    values = rng.gamma(1.0, 1.0, 30) / 20
    low, high, error = bootstrap_t(
        values[:, None],
        values[:1] * 0 + values.mean(),
        np.zeros(1),
        alpha=0.05,
        n_boot=4000,
        seed=1,
    )
    t = []
    for _ in range(4000):
        part = rng.choice(values, 30)
        t.append((part.mean() - values.mean()) / (part.std() / np.sqrt(30)))
    plain = values.mean() - np.quantile(t, [0.975, 0.025]) * values.std() / np.sqrt(30)
    assert [low[0], high[0]] == pytest.approx(plain, abs=0.15 * error[0])
    # for normal values it comes to Student's interval
    normal = rng.normal(0.3, 0.05, 200)
    low, high, _ = bootstrap_t(
        normal[:, None], np.array([normal.mean()]), np.zeros(1), alpha=0.05, n_boot=4000, seed=1
    )
    student = stats.ttest_1samp(normal, 0).confidence_interval(0.95)
    assert [low[0], high[0]] == pytest.approx(list(student), abs=0.001)


def test_coverage_takes_scipys_intervals_as_they_are() -> None:
    found = coverage.deltas(SINGLE, np.random.default_rng(3), 50, 10)
    (low, high), _ = coverage.scipy_intervals(found, 0)
    values = found.influence[:, 2] - found.influence[:, 2].mean() + found.delta[2]
    theirs = stats.bootstrap(
        (values,),
        np.mean,
        method="percentile",
        n_resamples=5000,
        **{SCIPY_SEED: np.random.default_rng(1)},
    ).confidence_interval
    error = values.std() / np.sqrt(50)
    assert [low[2], high[2]] == pytest.approx(list(theirs), abs=0.25 * error)


# --- the scripts ---------------------------------------------------------------------------------


def test_a_full_study_writes_its_table_with_seed_versions_and_time(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(tables, "DOCS", tmp_path)
    table = tables.Table("One", "Words.", pd.DataFrame({"N": ["40"], "who": ["a"]}))
    tables.study("tiny", "Tiny", "About.", lambda **_: [table], ["--full", "--seed", "3"])
    text = (tmp_path / "tiny.md").read_text("utf-8")
    assert "| N | who |\n| ---: | --- |\n| 40 | a |" in text
    for piece in ("--seed 3", "numpy", "minutes"):
        assert piece in text
    tables.study("small", "Small", "About.", lambda **_: [table], [])
    assert not (tmp_path / "small.md").exists()


def test_simulated_benchmarks_rank_without_repeats() -> None:
    for process in PROCESSES:
        gold = process.gold(np.random.default_rng(1), 30)
        run = process.run(np.random.default_rng(2), gold)
        benchmark = coded(gold, run)
        cells = benchmark.entry_query * benchmark.n_docs + benchmark.entry_doc
        assert len(np.unique(cells)) == len(cells)
        ranks = benchmark.entry_query * 100 + benchmark.entry_rank
        assert len(np.unique(ranks)) == len(ranks)
        assert len(benchmark.entry_rank) or process.name in RARE
        assert set(benchmark.entry_rank.tolist()) <= set(range(1, 11))
