"""Clusters, blocks, strata: nothing changes where there are none; the rest by brute force."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.regression.linear_model import OLS

from falsify_adapters.dependence import Dependence, grouped_strata
from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.gate import run_gate
from falsify_adapters.gate.grading import ENOUGH_EQUAL
from falsify_adapters.gate.query_units import Units
from falsify_adapters.nulls import permuted_gold
from falsify_adapters.resampling import block_units, bootstrap_t, cluster_units
from falsify_adapters.results import GateConfig
from tests import naive
from tests.benchmarks_made import made
from tests.gate_cases import right_for

QUICK = GateConfig(n_boot=400, n_trials=100, companion=False)


def graded(**dependence) -> dict:
    evaluation = right_for(60, 0.5)
    known = Dependence(**dependence) if dependence else None
    report = run_gate(replace(evaluation, dependence=known), "nDCG@10", QUICK).to_dict()
    return {name: report[name] for name in ("score", "nulls", "verdict", "tau")}


def test_singletons_one_stratum_and_blocks_of_one_change_nothing() -> None:
    ids = right_for(60, 0.5).query_ids
    plain = graded()
    assert graded(clusters={query: query for query in ids}) == plain
    assert graded(clusters={}) == plain
    assert graded(order=ids, block_length=1) == plain
    assert graded(strata=dict.fromkeys(ids, "all")) == plain
    # a resample of blocks of one is one of queries, in another order
    backwards = graded(order=ids[::-1], block_length=1)
    for name, null in plain["nulls"].items():
        assert backwards["nulls"][name]["low"] == pytest.approx(null["low"], abs=0.05)


def test_cluster_units_are_sums_and_move_as_the_mean_over_queries_does() -> None:
    rng = np.random.default_rng(1)
    influence, cluster = rng.normal(size=(30, 2)), np.r_[np.arange(8), rng.integers(0, 8, 22)]
    units, share = cluster_units(influence, cluster)
    centred = influence - influence.mean(axis=0)
    by_hand = np.array([centred[cluster == c].sum(axis=0) for c in range(8)]) * 8 / 30
    np.testing.assert_allclose(units, by_hand, atol=1e-12)
    assert share == pytest.approx(np.sqrt(sum(np.sum(cluster == c) ** 2 for c in range(8))) / 30)
    # the standard error is the cluster-robust one of a mean
    _, _, error = bootstrap_t(units, np.zeros(2), np.zeros(2), alpha=0.05, n_boot=100, seed=0)
    sums = by_hand * 30 / 8
    np.testing.assert_allclose(error, np.sqrt((sums**2).sum(axis=0)) / 30, atol=1e-12)


def test_the_cluster_robust_error_is_statsmodels() -> None:
    rng = np.random.default_rng(2)
    cluster = np.repeat(np.arange(12), 3)
    values = rng.normal(size=12)[cluster] + rng.normal(size=36)
    fit = OLS(values, np.ones(36)).fit(
        cov_type="cluster", cov_kwds={"groups": cluster, "use_correction": False}
    )
    units, share = cluster_units(values[:, None], cluster)
    *_, error = bootstrap_t(
        units, np.zeros(1), np.zeros(1), alpha=0.05, n_boot=100, seed=0, largest_share=share
    )
    assert error[0] == pytest.approx(fit.bse[0], rel=1e-9)


@given(st.integers(4, 25), st.data())
def test_block_units_are_means_of_all_circular_blocks(n: int, data: st.DataObject) -> None:
    length = data.draw(st.integers(1, n // 2))
    rng = np.random.default_rng(n)
    influence, order = rng.normal(size=(n, 1)), rng.permutation(n)
    units, drawn, share = block_units(influence, order, length)
    centred = (influence - influence.mean())[order, 0]
    by_hand = [np.mean([centred[(i + k) % n] for k in range(length)]) for i in range(n)]
    np.testing.assert_allclose(units[:, 0], by_hand, atol=1e-12)
    assert units.mean() == pytest.approx(0, abs=1e-12)  # every query in as many blocks
    assert drawn == max(2, round(n / length))
    assert share == pytest.approx(np.sqrt(length / n))


@given(st.integers(2, 40), st.data())
def test_sums_over_units_lose_nothing(n: int, data: st.DataObject) -> None:
    values = np.random.default_rng(n).normal(size=n)
    length = data.draw(st.integers(1, max(1, n // 2)))
    order = np.random.default_rng(n + 1).permutation(n)
    blocks = Units(order=order, block_length=length)
    sums = blocks.sums(values)
    assert len(sums) == blocks.count(n) == n // length
    assert sums.sum() == pytest.approx(values.sum())
    np.testing.assert_allclose(sums[0], values[order[:length]].sum() if len(sums) > 1 else sums[0])
    cluster = np.unique(np.random.default_rng(n).integers(0, 5, n), return_inverse=True)[1]
    clusters = Units(cluster=cluster)
    expected = [values[cluster == c].sum() for c in range(clusters.count(n))]
    np.testing.assert_allclose(clusters.sums(values), expected)
    np.testing.assert_array_equal(Units().sums(values), values)


# Null A inside strata


def arrangements(strata: list[list[int]]):
    """Yield every permutation that leaves each stratum to itself."""
    for parts in itertools.product(*(list(itertools.permutations(s)) for s in strata)):
        moved = {}
        for stratum, part in zip(strata, parts, strict=True):
            moved |= dict(zip(stratum, part, strict=True))
        yield [moved[i] for i in sorted(moved)]


@pytest.mark.parametrize("measure", ["nDCG@5", "AP@5", "RR@5"])
def test_the_mean_inside_strata_is_that_of_all_permutations(measure: str) -> None:
    bench = made(3, n_queries=7, n_docs=6, sizes=(1, 2, 3), skew=1.0, depth=5)
    stratum = np.array([0, 1, 0, 1, 0, 2, 1])
    matrix = naive.cross_matrix(measure, bench)
    scores = [
        matrix[np.arange(7), moved].mean() for moved in arrangements([[0, 2, 4], [1, 3, 6], [5]])
    ]
    null = permuted_gold(bench.prepared(measure).cross, 4000, 0, stratum)
    assert null.mean == pytest.approx(np.mean(scores), abs=1e-12)
    assert null.mean_error == 0
    # the trials are draws from exactly these arrangements
    assert {round(x, 9) for x in null.trials} <= {round(x, 9) for x in scores}
    assert null.trials.mean() == pytest.approx(null.mean, abs=5 * np.std(scores) / np.sqrt(4000))
    assert null.trials.std() == pytest.approx(np.std(scores), rel=0.1)


def test_the_influence_inside_strata_is_the_derivative_of_the_weighted_delta() -> None:
    bench = made(4, n_queries=8, n_docs=8, sizes=(1, 2), skew=1.0, depth=6)
    stratum = np.array([0, 1, 0, 1, 0, 1, 1, 0])
    matrix = naive.cross_matrix("nDCG@5", bench)

    def delta(weight: np.ndarray) -> float:
        """Return score minus null of a benchmark in which query t stands weight[t] times."""
        null = 0.0
        for s in (0, 1):
            w = np.where(stratum == s, weight, 0.0)
            null += w @ matrix @ w / w.sum()
        return float((weight @ np.diag(matrix) - null) / weight.sum())

    step, numerical = 1e-6, []
    for t in range(8):
        up, down = np.ones(8), np.ones(8)
        up[t] += step
        down[t] -= step
        numerical.append(8 * (delta(up) - delta(down)) / (2 * step))
    null = permuted_gold(bench.prepared("nDCG@5").cross, 1, 0, stratum)
    np.testing.assert_allclose(
        null.influence - null.influence.mean(), np.array(numerical), atol=1e-6
    )


def test_strata_take_away_what_only_the_number_of_answers_explains() -> None:
    # even queries have one answer, odd ones nine; a run that only knows which is which
    qrels, run = {}, {}
    rng = random.Random(0)
    for i in range(80):
        name = f"q{i:02}"
        kind = "many" if i % 2 else "one"
        pool = [f"{kind}{k}" for k in range(12)]
        qrels[name] = dict.fromkeys(rng.sample(pool, 9 if i % 2 else 1), 1)
        run[name] = {doc: 1.0 - k / 100 for k, doc in enumerate(pool)}
    evaluation = Evaluation.create(run, qrels, corpus_size=10_000)
    strata = {query: str(len(docs)) for query, docs in qrels.items()}
    plain = run_gate(evaluation, "nDCG@10", QUICK)
    inside = run_gate(replace(evaluation, dependence=Dependence(strata=strata)), "nDCG@10", QUICK)
    assert plain.nulls["A"].verdict == "PASS"
    assert inside.nulls["A"].delta == pytest.approx(0, abs=1e-12)
    assert inside.verdict == "FAIL"
    for name in "BCD":
        assert inside.nulls[name].to_dict() == plain.nulls[name].to_dict()


# What the report says


def test_the_report_says_how_many_clusters_and_how_much_wider() -> None:
    evaluation = right_for(120, 0.5)
    ids = evaluation.query_ids
    pairs = {query: str(i // 4) for i, query in enumerate(ids)}
    known = Dependence(clusters=pairs, clusters_from="a file")
    report = run_gate(replace(evaluation, dependence=known), "nDCG@10", QUICK)
    plain = run_gate(evaluation, "nDCG@10", QUICK)
    clusters = report.dependence["clusters"]
    assert clusters == {"source": "a file", "clusters": 30, "largest": 4, "alone": 0}
    for name, null in report.nulls.items():
        low, high = report.dependence["plain"][name]
        assert (low, high) == (plain.nulls[name].low, plain.nulls[name].high)
        widening = report.dependence["widening"][name]
        assert widening == pytest.approx((null.high - null.low) / (high - low))
    assert report.to_dict()["dependence"]["clusters"]["clusters"] == 30
    assert plain.dependence is None


def test_repeating_every_query_narrows_nothing_if_the_repeats_are_named() -> None:
    once = right_for(60, 0.5)
    ids = once.query_ids
    qrels = {q: {} for q in ids}
    for row in once.qrels.itertuples():
        qrels[row.query_id][row.doc_id] = row.relevance
    run = {q: {} for q in ids}
    for row in once.run.itertuples():
        run[row.query_id][row.doc_id] = row.score
    many = {f"{q}-{k}": docs for q, docs in qrels.items() for k in range(3)}
    runs = {f"{q}-{k}": docs for q, docs in run.items() for k in range(3)}
    names = {query: query.rsplit("-", 1)[0] for query in many}
    repeated = Evaluation.create(runs, many, corpus_size=once.corpus_size)
    named = replace(repeated, dependence=Dependence(clusters=names))
    first, naively, rightly = (run_gate(e, "nDCG@10", QUICK) for e in (once, repeated, named))
    width = {
        key: report.nulls["C"].high - report.nulls["C"].low
        for key, report in (("once", first), ("naive", naively), ("right", rightly))
    }
    assert width["right"] == pytest.approx(width["once"], rel=0.01)
    assert width["naive"] == pytest.approx(width["once"] / np.sqrt(3), rel=0.15)


def test_equal_values_are_counted_by_cluster() -> None:
    n = 2 * ENOUGH_EQUAL
    # every query is right at rank 1 and has an answer of its own: no spread against any null
    evaluation = right_for(n, 1.0)
    assert run_gate(evaluation, "nDCG@10", QUICK).verdict == "PASS"
    ids = evaluation.query_ids

    def verdict(per_cluster: int) -> str:
        clusters = {query: str(i // per_cluster) for i, query in enumerate(ids)}
        known = replace(evaluation, dependence=Dependence(clusters=clusters))
        return run_gate(known, "nDCG@10", QUICK).verdict

    assert verdict(2) == "PASS"
    assert verdict(4) == "UNDER-NS"
    one = run_gate(
        replace(evaluation, dependence=Dependence(clusters=dict.fromkeys(ids, "x"))), config=QUICK
    )
    assert one.verdict == "UNDER-NS"
    assert "one cluster" in one.reason
    blocks = Dependence(order=ids, block_length=n // 2)
    assert run_gate(replace(evaluation, dependence=blocks), config=QUICK).verdict == "UNDER-NS"


def test_few_clusters_and_merged_strata_are_warned_about() -> None:
    evaluation = right_for(60, 0.5)
    ids = evaluation.query_ids
    few = {query: str(i // 10) for i, query in enumerate(ids)}
    strata = {query: str(min(i // 4, 10)) for i, query in enumerate(ids)}
    known = Dependence(clusters=few, strata=strata, strata_from="number of relevant documents")
    report = run_gate(replace(evaluation, dependence=known), config=QUICK)
    notes = {note.code: note.message for note in report.warnings}
    assert "6 clusters" in notes["W-FEW-CLUSTERS"]
    assert "0 to 2 (3), 3 to 5 (3), 6 to 8 (3)" in notes["W-STRATA-MERGED"]
    held = report.dependence["strata"]
    assert held["strata"] == 4
    assert held["merged"] == [["0", "1", "2"], ["3", "4", "5"], ["6", "7", "8"], ["9", "10"]]
    assert held["self_pairs"] == pytest.approx(4 / 60)


def messages(n: int, share: float, **dependence) -> dict[str, str]:
    known = replace(right_for(n, share), dependence=Dependence(**dependence))
    return {note.code: note.message for note in run_gate(known, config=QUICK).warnings}


def test_the_share_of_self_pairs_is_that_inside_strata() -> None:
    ids = right_for(120, 0.5).query_ids
    assert "W-SMALL-N" not in messages(120, 0.5)
    small = messages(120, 0.5, strata={q: str(min(i // 20, 4)) for i, q in enumerate(ids)})
    assert "1/20 to 1/40" in small["W-SMALL-N"]
    assert "0.950 to 0.975" in small["W-SMALL-N"]
    assert "chance 1/60:" in messages(60, 0.5)["W-SMALL-N"]
    halves = messages(60, 0.5, strata={q: str(i // 30) for i, q in enumerate(ids[:60])})
    assert "with 30 queries in a stratum" in halves["W-SMALL-N"]
    assert "chance 1/30:" in halves["W-SMALL-N"]


def test_rare_wins_and_events_are_counted_by_what_varies_on_its_own() -> None:
    ids = right_for(200, 0.0).query_ids
    assert "W-RARE-WINS" not in messages(200, 0.0)
    pairs = {query: str(i // 4) for i, query in enumerate(ids)}
    assert messages(200, 0.0, clusters=pairs)["W-RARE-WINS"].startswith("50 clusters of queries")
    blocks = messages(200, 0.0, order=ids, block_length=4)
    assert blocks["W-RARE-WINS"].startswith("50 blocks of queries")
    # 20 wins are enough by themselves, not if they are one cluster's
    found = right_for(200, 0.1)
    won = {i for i, score in enumerate(run_gate(found, config=QUICK).per_query["score"]) if score}
    assert len(won) == 20
    one = {query: "won" if i in won else query for i, query in enumerate(ids)}
    assert "W-RARE-EVENTS" not in messages(200, 0.1)
    assert "on about 1 of 181 clusters" in messages(200, 0.1, clusters=one)["W-RARE-EVENTS"]


def test_few_units_are_put_into_words_by_their_number() -> None:
    together = dict.fromkeys(right_for(20, 0.5).query_ids, "one")
    said = messages(20, 0.5, clusters=together)
    assert "rests on less than 1 of 1 cluster of" in said["W-RARE-EVENTS"]
    assert "rest on 1 cluster of" in said["W-FEW-CLUSTERS"]


# The strata themselves


@given(st.lists(st.sampled_from([*"123ab", "10", "11", "1-2"]), min_size=1, max_size=60))
def test_strata_are_merged_in_order_until_each_is_large_enough(names: list[str]) -> None:
    groups = grouped_strata(names, smallest=5)
    flat = [name for group in groups for name in group]
    assert sorted(flat) == sorted(set(names))
    sizes = [sum(names.count(name) for name in group) for group in groups]
    assert all(size >= 5 for size in sizes) or len(groups) == 1
    numbers = [int(name) for name in flat if name.isdecimal()]
    assert numbers == sorted(numbers)


def test_a_stratum_named_like_a_range_is_its_own() -> None:
    names = ["1"] * 2 + ["2"] * 3 + ["1-2"] * 5
    assert grouped_strata(names, smallest=5) == [["1", "2"], ["1-2"]]
    ids = [f"q{i:02}" for i in range(40)]
    named = Dependence(strata=dict(zip(ids, [n for n in names for _ in range(4)], strict=True)))
    # eight 1s are too few and join the 2s
    assert named.stratum_codes(ids).tolist() == [0] * 20 + [1] * 20


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(UsageError, match="not both"):
        Dependence(clusters={}, order=[])
    with pytest.raises(UsageError, match="at least one"):
        Dependence(order=["a"], block_length=0)
    with pytest.raises(InputError, match="no stratum"):
        Dependence(strata={"a": "1"}).stratum_codes(["a", "b"])
    with pytest.raises(InputError, match="does not name every"):
        Dependence(order=["a"]).positions(["a", "b"])
    with pytest.raises(InputError, match="twice"):
        Dependence(order=["a", "b", "a"]).positions(["a", "b"])
    with pytest.raises(UsageError, match="half"):
        Dependence(order=["a", "b"], block_length=2).positions(["a", "b"])
