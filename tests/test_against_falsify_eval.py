"""The nulls of the falsify-eval library, where it can grade: one gold document per query."""

from __future__ import annotations

import math

import falsify_eval
import numpy as np
import pytest

from falsify_adapters.gate import run_gate
from falsify_adapters.results import GateConfig
from tests.benchmarks_made import Benchmark, made

N_TRIALS = 1500
K = 5


def ndcg(retrieved: list[str], gold: str, _: object) -> float:
    return 1 / math.log2(retrieved.index(gold) + 2) if gold in retrieved[:K] else 0.0


def recall(retrieved: list[str], gold: str, _: object) -> float:
    return float(gold in retrieved[:K])


METRICS = {"nDCG@5": ndcg, "R@5": recall}


def dominated() -> Benchmark:
    """One document answers most queries."""
    base = made(3, n_queries=20, n_docs=10, sizes=(1,), depth=K)
    qrels = dict(base.qrels)
    for query in base.queries[:14]:
        qrels[query] = {"d00": 1}
    return Benchmark(base.run, qrels, base.corpus)


BENCHMARKS = {
    "even": lambda: made(1, n_queries=20, n_docs=15, sizes=(1,), skew=0.0, depth=K),
    "skewed": lambda: made(2, n_queries=25, n_docs=10, sizes=(1,), skew=1.0, depth=K),
    "steep": lambda: made(4, n_queries=25, n_docs=10, sizes=(1,), skew=2.0, depth=K, skill=0.2),
    "dominated": dominated,
}


@pytest.mark.parametrize("measure", METRICS)
@pytest.mark.parametrize("kind", BENCHMARKS)
def test_means_of_all_four_nulls(kind: str, measure: str) -> None:
    bench = BENCHMARKS[kind]()
    config = GateConfig(permute="label", n_trials=N_TRIALS, companion=False)
    report = run_gate(bench.evaluation(), measure, config)
    metric = METRICS[measure]
    retrieved = [list(bench.run[query]) for query in bench.queries]
    gold = [next(iter(bench.gold(query))) for query in bench.queries]
    nothing = [None] * len(gold)
    trials = {
        "A": falsify_eval.null_a_permuted(retrieved, gold, nothing, metric, n_trials=N_TRIALS),
        "B": falsify_eval.null_b_uniform(retrieved, gold, nothing, metric, n_trials=N_TRIALS),
        "C": falsify_eval.null_c_random_retrieval(
            gold, nothing, metric, k=K, item_pool=bench.corpus, n_trials=N_TRIALS
        ),
        "D": falsify_eval.null_d_marginal_matched(
            retrieved, gold, nothing, metric, n_trials=N_TRIALS
        ),
    }
    score = np.mean([metric(r, g, None) for r, g in zip(retrieved, gold, strict=True)])
    assert report.score == pytest.approx(score)
    for name, theirs in trials.items():
        ours = report.nulls[name]
        error = theirs.std() / np.sqrt(N_TRIALS)
        assert abs(ours.mean - theirs.mean()) <= 4 * error, name
        assert ours.trials.std() == pytest.approx(theirs.std(), rel=0.15), name
    # both draw labels evenly from the same list
    assert report.nulls["A"].mean == pytest.approx(report.nulls["B"].mean)


def test_the_library_as_a_whole_comes_to_the_same_deltas() -> None:
    bench = BENCHMARKS["skewed"]()
    retrieved = [list(bench.run[query]) for query in bench.queries]
    gold = [next(iter(bench.gold(query))) for query in bench.queries]
    theirs = falsify_eval.four_null_gate(
        retrieved, gold, [None] * len(gold), recall, item_pool=bench.corpus, k=K, n_trials=400
    )
    report = run_gate(bench.evaluation(), "R@5", GateConfig(permute="label", companion=False))
    for name, null in report.nulls.items():
        assert null.delta == pytest.approx(theirs["deltas"][name], abs=0.03)
        assert theirs["passes"][name] == (null.delta >= 0.05)
    assert report.definition_1 == theirs["gate_passes"]
