"""Two systems: what is tested, what is never significant, what is refused or warned about."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError, replace
from typing import Any, get_args

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from falsify_adapters.dependence import Dependence
from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.gate import run_gate
from falsify_adapters.results import GateConfig
from falsify_adapters.two_systems import (
    MEANINGS,
    Comparative,
    compare_reported,
    compare_systems,
)
from tests.benchmarks_made import made, ranking
from tests.gate_cases import evaluation, right_for
from tests.same_draws import SCIPY_SEED

QUICK = GateConfig(n_boot=400, n_trials=100)


def codes(report: Any) -> dict[str, str]:
    return {note.code: note.message for note in report.warnings}


def test_a_comparison_never_says_pass() -> None:
    assert (
        set(MEANINGS)
        == set(get_args(Comparative))
        == {
            "BETTER",
            "WORSE",
            "NO DIFFERENCE",
            "UNDER-NS",
        }
    )


def test_a_better_system_is_better_and_the_other_way_round_worse() -> None:
    weak, strong = right_for(80, 0.3), right_for(80, 0.8, seed=1)
    (up,) = compare_systems(weak, replace(strong, system="strong"), config=QUICK)
    (down,) = compare_systems(strong, replace(weak, system="weak"), config=QUICK)
    assert (up.verdict, down.verdict) == ("BETTER", "WORSE")
    assert up.difference == pytest.approx(0.5) == pytest.approx(-down.difference)
    assert up.p_value == pytest.approx(down.p_value, rel=0.5)
    assert (up.better, up.worse, up.equal) == (down.worse, down.better, down.equal)
    assert up.beyond_nulls is True
    assert down.beyond_nulls is False
    assert up.low < 0.5 < up.high
    assert up.per_query["difference"].mean() == pytest.approx(up.difference)
    with pytest.raises(FrozenInstanceError):
        up.verdict = "WORSE"  # type: ignore[misc]


def test_the_figures_are_those_of_two_gates() -> None:
    bench = made(1, n_queries=30, n_docs=40, sizes=(1, 2, 3), skew=1.0, depth=10)
    old = bench.evaluation()
    other = made(2, n_queries=30, n_docs=40, sizes=(1, 2, 3), skew=1.0, depth=10)
    queries = dict(zip(bench.queries, other.queries, strict=True))
    new = old.with_run({q: other.run[o] for q, o in queries.items() if o in other.run})
    (found,) = compare_systems(old, new, "nDCG@5", QUICK)
    first, second = (run_gate(e, "nDCG@5", QUICK) for e in (old, new))
    assert found.difference == pytest.approx(second.score - first.score)
    for name, null in found.nulls.items():
        expected = second.nulls[name].delta - first.nulls[name].delta
        assert null.difference == pytest.approx(expected, abs=1e-9)
        assert null.low <= null.difference <= null.high
    scores = [report.per_query["score"].to_numpy() for report in (first, second)]
    peer = stats.permutation_test(
        scores,
        lambda x, y: np.mean(y - x),
        permutation_type="samples",
        n_resamples=20_000,
        vectorized=False,
        **{SCIPY_SEED: 0},
    )
    noise = np.sqrt(2 * peer.pvalue * (1 - peer.pvalue) / 10_000)
    assert found.p_value == pytest.approx(peer.pvalue, abs=4 * noise + 1e-4)


def test_the_interval_of_the_difference_is_scipys_studentised_bootstrap() -> None:
    weak, strong = right_for(150, 0.4), right_for(150, 0.5, seed=3)
    config = GateConfig(n_boot=4000, n_trials=100)
    (found,) = compare_systems(weak, strong, config=config)
    differences = found.per_query["difference"].to_numpy()
    peer = stats.bootstrap(
        (differences,), np.mean, n_resamples=4000, method="BCa", **{SCIPY_SEED: 1}
    )
    low, high = peer.confidence_interval
    width = high - low
    assert found.low == pytest.approx(low, abs=0.08 * width)
    assert found.high == pytest.approx(high, abs=0.08 * width)


def test_identical_runs_differ_in_nothing() -> None:
    one = right_for(40, 0.5)
    rescored = one.with_run(one.run.assign(score=one.run["score"] / 100), system="again")
    (found,) = compare_systems(one, rescored, config=QUICK)
    assert (found.verdict, found.difference, found.p_value) == ("NO DIFFERENCE", 0.0, 1.0)
    assert (found.low, found.high, found.equal) == (0.0, 0.0, 40)
    assert found.beyond_nulls is False
    for null in found.nulls.values():
        assert (null.difference, null.low, null.high) == (0.0, 0.0, 0.0)
    document = json.dumps(found.to_dict(), allow_nan=False)
    assert "NaN" not in document


@pytest.mark.parametrize(("n", "p"), [(5, 2 / 2**5), (6, 2 / 2**6), (12, 2 / 2**12)])
def test_all_better_by_the_same_amount(n: int, p: float) -> None:
    gold = {f"q{i}": f"d{i}" for i in range(n)}
    second = {q: ranking(["x", d]) for q, d in gold.items()}
    first = {q: ranking([d, "x"]) for q, d in gold.items()}
    old = evaluation(second, gold, system="old")
    (found,) = compare_systems(old, evaluation(first, gold, system="new"), config=QUICK)
    assert found.p_value == pytest.approx(p)
    assert found.exact
    # a deviation of 0 is no certainty: neither the interval nor d is known
    assert math.isnan(found.low)
    assert math.isnan(found.cohens_d)
    assert found.to_dict()["low"] is None
    assert found.verdict == ("BETTER" if p <= 0.05 else "UNDER-NS")
    if n == 5:
        assert "too few queries to tell" in found.reason


def test_popularity_gains_no_more_than_the_nulls_do() -> None:
    # the candidate returns what is often right to everybody, the baseline what nobody wants
    n = 120
    rng = np.random.default_rng(0)
    gold = {f"q{i:03}": f"d{rng.choice([0, 0, 0, 1, 1, 2]):d}" for i in range(n)}
    blind = {q: ranking(["d0", "d1", "d2"]) for q in gold}
    useless = {q: ranking(["x0", "x1", "x2"]) for q in gold}
    old = evaluation(useless, gold, system="useless")
    (found,) = compare_systems(old, evaluation(blind, gold, system="popular"), config=QUICK)
    assert found.verdict == "BETTER"
    assert found.difference > 0.5
    assert found.beyond_nulls is False
    assert found.nulls["A"].difference == pytest.approx(0, abs=1e-12)
    assert "a null gains as much" in found.reason


def test_several_candidates_share_the_error_level() -> None:
    old = right_for(60, 0.4)
    others = [replace(right_for(60, 0.4 + s / 50, seed=s), system=f"s{s}") for s in (1, 4, 7)]
    found = compare_systems(old, others, config=QUICK)
    assert [c.candidate for c in found] == ["s1", "s4", "s7"]
    expected = multipletests([c.p_value for c in found], method="holm")[1]
    np.testing.assert_allclose([c.p_holm for c in found], expected)
    assert {c.n_candidates for c in found} == {3}
    (alone,) = compare_systems(old, others[1], config=QUICK)
    assert alone.p_holm == alone.p_value == found[1].p_value


def test_paraphrases_flip_their_signs_together() -> None:
    weak, strong = right_for(48, 0.2), right_for(48, 0.6, seed=1)
    pairs = {query: str(i // 12) for i, query in enumerate(weak.query_ids)}
    known = Dependence(clusters=pairs)
    (plain,) = compare_systems(weak, strong, config=QUICK)
    (found,) = compare_systems(
        replace(weak, dependence=known), replace(strong, dependence=known), config=QUICK
    )
    assert plain.verdict == "BETTER"
    assert (found.n_units, found.n_queries) == (4, 48)
    assert found.exact
    assert found.p_value >= 2 / 2**4
    assert found.verdict == "UNDER-NS"
    one = Dependence(clusters=dict.fromkeys(weak.query_ids, "x"))
    (single,) = compare_systems(
        replace(weak, dependence=one), replace(strong, dependence=one), config=QUICK
    )
    assert (single.verdict, single.p_value) == ("UNDER-NS", 1.0)
    assert "one cluster" in single.reason


def test_what_differs_in_more_than_the_run_is_refused() -> None:
    one = right_for(20, 0.5)
    regraded = one.qrels.assign(relevance=2)
    with pytest.raises(InputError, match="baseline was scored with other qrels"):
        compare_systems(one, replace(one, qrels=regraded))
    with pytest.raises(InputError, match="baseline was scored with other qrels"):
        compare_systems(one, right_for(21, 0.5))
    with pytest.raises(InputError, match="another corpus"):
        compare_systems(one, replace(one, corpus_size=77))
    with pytest.raises(UsageError, match="different clusters"):
        compare_systems(one, replace(one, dependence=Dependence(clusters={})))
    with pytest.raises(UsageError, match="no candidate"):
        compare_systems(one, [])
    with pytest.raises(UsageError, match="n_flips"):
        compare_systems(one, one, n_flips=10)


def test_a_query_that_one_of_them_misses_is_named_and_counts_0() -> None:
    qrels = {f"q{i}": {"a": 1} if i % 2 else {"b": 1} for i in range(8)}
    full = {q: ranking(list(docs)) for q, docs in qrels.items()}
    part = {q: docs for q, docs in full.items() if q not in ("q2", "q5")}
    old = Evaluation.create(full, qrels, corpus_size=50, system="old")
    new = Evaluation.create(part, qrels, corpus_size=50, system="new")
    (found,) = compare_systems(old, new, config=QUICK)
    assert "new lacks q2, q5, which old answers" in codes(found)["W-UNEQUAL-QUERIES"]
    assert found.difference == pytest.approx(-0.25)
    (back,) = compare_systems(new, old, config=QUICK)
    assert "new lacks q2, q5" in codes(back)["W-UNEQUAL-QUERIES"]
    assert back.difference == pytest.approx(0.25)
    (same,) = compare_systems(new, new, config=QUICK)
    assert "W-UNEQUAL-QUERIES" not in codes(same)


def test_reported_scores_are_averaged_over_the_same_subsets() -> None:
    old, new = {"en": 0.6, "de": 0.5, "fi": 0.1}, {"en": 0.58, "de": 0.48}
    with pytest.raises(InputError, match="fi is only in the baseline"):
        compare_reported(old, new)
    with pytest.raises(InputError, match="fi is only in the candidate"):
        compare_reported(new, old)
    common = compare_reported(old, new, common_only=True)
    assert common.subsets == ("en", "de")
    assert common.difference == pytest.approx(-0.02)
    (note,) = common.notes
    assert (note.code, note.message) == ("W-COMMON-SUBSETS", "fi is only in the baseline: left out")
    with pytest.raises(InputError, match="different subsets"):
        compare_reported({"a": 0.1}, {"b": 0.1}, common_only=True)
    with pytest.raises(InputError, match="not a number"):
        compare_reported({"a": math.nan}, {"a": 0.1})


def test_the_figures_are_the_same_again() -> None:
    weak, strong = right_for(60, 0.4), right_for(60, 0.5, seed=1)
    (one,), (two,) = (compare_systems(weak, strong, config=QUICK) for _ in range(2))
    assert one.to_dict() == two.to_dict()
    assert one.to_dict()["kind"] == "comparison"
    assert list(one.to_frame()["of"]) == ["score", *(f"delta {name}" for name in "ABCD")]
    assert "delta A" in one._repr_html_()
