"""Null A inside strata, and null C over a pool of documents for each query, by brute force."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from falsify_adapters.bounds import attainable
from falsify_adapters.dependence import Dependence
from falsify_adapters.errors import UsageError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import FloatArray
from falsify_adapters.gate import calibration_curve, run_gate, sweep_gate
from falsify_adapters.gate.grading import coded_to
from falsify_adapters.measures import make_kernel, measure_depth, parse_measure
from falsify_adapters.nulls import own_scores, permuted_gold, random_documents
from falsify_adapters.results import GateConfig
from tests import naive
from tests.benchmarks_made import ALL, Benchmark, Gold, graded, ranking
from tests.gate_cases import evaluation
from tests.same_draws import assert_same_distribution
from tests.test_bounds import tiny
from tests.test_influence import assert_derivative


def strata_of(bench: Benchmark) -> list[int]:
    """Three strata of uneven sizes, not in the order of the queries."""
    return [(0, 1, 0, 2, 1, 0, 0, 2, 1)[i] for i in range(len(bench.queries))]


@pytest.mark.parametrize("measure", ["nDCG@5", "RR", "SetF"])
@pytest.mark.parametrize("kind", ALL)
def test_gold_sets_are_permuted_inside_strata(kind: str, measure: str) -> None:
    bench = ALL[kind]()
    stratum = np.array(strata_of(bench))
    matrix = naive.cross_matrix(measure, bench)
    cross = bench.prepared(measure).cross
    null = permuted_gold(cross, 2000, 1, stratum)
    same = stratum[:, None] == stratum[None, :]
    rows = (matrix * same).sum(axis=1) / same.sum(axis=1)
    np.testing.assert_allclose(null.query_means, rows, atol=1e-12)
    assert null.mean == pytest.approx(rows.mean())

    rng = random.Random(2)
    trials = []
    for _ in range(2000):
        donor = np.arange(len(stratum))
        for one in set(stratum.tolist()):
            members = np.flatnonzero(stratum == one).tolist()
            donor[members] = rng.sample(members, len(members))
        trials.append(matrix[np.arange(len(stratum)), donor].mean())
    assert_same_distribution(null.trials, np.array(trials))

    def delta(weight: FloatArray) -> float:
        owed = sum(
            weight[inside] @ matrix[np.ix_(inside, inside)] @ weight[inside] / weight[inside].sum()
            for inside in (np.flatnonzero(stratum == one) for one in set(stratum.tolist()))
        )
        return float((weight @ np.diag(matrix) - owed) / weight.sum())

    assert_derivative(null.influence, delta, cross.own.mean() - null.mean)


@pytest.mark.parametrize("measure", ["nDCG@3", "P@2", "R@3", "RR@3", "Success@2"])
def test_what_can_be_attained_inside_strata(measure: str) -> None:
    bench = tiny((1, 2), 1)
    stratum = np.array(strata_of(bench))
    p = bench.prepared(measure)
    ours = attainable(p.coded, p.kernel, stratum=stratum).delta["A"]
    docs = [doc for doc in bench.corpus if doc != "x00"]
    rankings = [ranking(order) for k in range(4) for order in itertools.permutations(docs, k)]
    best = []
    for i, query in enumerate(bench.queries):
        golds = [bench.gold(q) for q, s in zip(bench.queries, stratum, strict=True)
                 if s == stratum[i]]  # fmt: skip
        own = naive.score_all(measure, [(one, bench.gold(query)) for one in rankings])
        cases = [(one, gold) for one in rankings for gold in golds]
        owed = naive.score_all(measure, cases).reshape(len(rankings), len(golds)).mean(axis=1)
        best.append((own - owed).max())
    assert ours == pytest.approx(np.mean(best))


def test_strata_that_share_one_answer_let_nobody_pass() -> None:
    gold = {f"q{i:03}": f"d{i % 3}" for i in range(120)}
    run = {query: ranking([doc]) for query, doc in gold.items()}
    assert run_gate(evaluation(run, gold), "P@1").verdict == "PASS"
    together = Dependence(strata=gold)
    report = run_gate(evaluation(run, gold, dependence=together), "P@1")
    # knowing the stratum is knowing the answer
    assert report.verdict == "UNDER-NS"
    assert report.nulls["A"].delta == 0
    assert report.nulls["A"].attainable == pytest.approx(0)


def test_labels_cannot_be_permuted_inside_strata() -> None:
    gold = {f"q{i:03}": f"d{i % 3}" for i in range(30)}
    case = evaluation(
        {query: ranking([doc]) for query, doc in gold.items()},
        gold,
        dependence=Dependence(strata=gold),
    )
    by_label = GateConfig(permute="label")
    with pytest.raises(UsageError, match="strata"):
        run_gate(case, "P@1", by_label)
    with pytest.raises(UsageError, match="strata"):
        sweep_gate(case, "P@1", [0.1], by_label)
    with pytest.raises(UsageError, match="strata"):
        calibration_curve(case, "P@1", by_label)


@pytest.mark.parametrize("measure", ["nDCG@3", "P@3", "R@3", "RR@3", "AP@3", "Success@3", "Rprec"])
def test_each_query_has_its_own_pool(measure: str) -> None:
    pools = {"a": 4, "b": 6, "c": 5}
    gold: dict[str, Gold] = {"a": {"d0": 1}, "b": {"d0": 2, "d1": 1, "d5": 1}, "c": {"d2": 1}}
    run = {query: ranking(["d0", "d1", "d2"][: 2 + (query != "a")]) for query in pools}
    case = Evaluation.create(run, gold, corpus_size=10, pool_sizes=pools)
    parsed = parse_measure(measure)
    coded = coded_to(case, measure_depth(parsed))
    kernel = make_kernel(parsed, coded.profiles)
    null = random_documents(coded, kernel, own_scores(coded, kernel), 2000, 0)
    for i, (query, size) in enumerate(pools.items()):
        docs = [f"d{j}" for j in range(size)]
        every = [ranking(order) for order in itertools.permutations(docs, len(run[query]))]
        expected = naive.score_all(measure, [(one, gold[query]) for one in every]).mean()
        assert null.query_means[i] == pytest.approx(expected)
    error = null.trials.std() / np.sqrt(2000)
    assert abs(null.trials.mean() - null.mean) <= 4 * error


def test_clusters_of_one_query_change_nothing() -> None:
    bench = graded()
    alone = Dependence(clusters={query: query for query in bench.queries})
    config = GateConfig(companion=False)
    ours = run_gate(bench.evaluation(dependence=alone), "nDCG@5", config)
    plain = run_gate(bench.evaluation(), "nDCG@5", config)
    for name, null in ours.nulls.items():
        assert null.low == pytest.approx(plain.nulls[name].low)
        assert null.high == pytest.approx(plain.nulls[name].high)


def test_copies_of_queries_in_a_cluster_are_no_more_evidence() -> None:
    # each query four times over: as single queries they look like four times the evidence
    rng = np.random.default_rng(3)
    gold = {f"q{i:02}-{copy}": f"d{i:02}" for i in range(40) for copy in range(4)}
    hit = rng.random(40) < 0.5
    run = {q: ranking([doc if hit[int(q[1:3])] else "x"]) for q, doc in gold.items()}
    once = {q: doc for q, doc in gold.items() if q.endswith("-0")}
    clusters = Dependence(clusters={query: query[:3] for query in gold})
    config = GateConfig(companion=False)
    naive_one = run_gate(evaluation(run, gold), "P@1", config).nulls["C"]
    clustered = run_gate(evaluation(run, gold, dependence=clusters), "P@1", config).nulls["C"]
    single = run_gate(evaluation({q: run[q] for q in once}, once), "P@1", config).nulls["C"]
    assert clustered.delta == pytest.approx(single.delta)
    # other draws of the same size: the ends agree up to the wobble between seeds
    assert clustered.high - clustered.low == pytest.approx(single.high - single.low, rel=0.2)
    assert naive_one.high - naive_one.low == pytest.approx((single.high - single.low) / 2, rel=0.25)
