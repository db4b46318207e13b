"""The paired tests against scipy, statsmodels and plain enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from falsify_adapters.paired import LARGEST_EXACT, cohens_d, holm, sign_flip_test
from tests.same_draws import SCIPY_SEED

DIFFERENCES = st.lists(
    st.one_of(st.integers(-1000, 1000).map(lambda k: k / 1000), st.sampled_from([0.0, 0.5, -0.5])),
    min_size=1,
    max_size=8,
)


@given(DIFFERENCES)
def test_few_differences_are_enumerated(values: list[float]) -> None:
    found = sign_flip_test(np.array(values))
    sums = [
        sum(sign * abs(v) for sign, v in zip(signs, values, strict=True))
        for signs in itertools.product((1, -1), repeat=len(values))
    ]
    tolerance = 1e-12 * max(1.0, sum(map(abs, values)))
    expected = np.mean([abs(s) >= abs(sum(values)) - 2 * tolerance for s in sums])
    assert found.exact
    assert found.p_value == pytest.approx(expected, abs=1e-12)
    assert found.smallest <= found.p_value <= 1


@pytest.mark.parametrize("seed", range(5))
def test_exact_p_values_are_those_of_scipy(seed: int) -> None:
    values = np.random.default_rng(seed).normal(0.3, 1, size=10)
    peer = stats.permutation_test(
        (values,), np.mean, permutation_type="samples", n_resamples=np.inf
    )
    assert sign_flip_test(values).p_value == pytest.approx(peer.pvalue, abs=1e-12)


def test_many_differences_are_sampled_and_agree_with_scipy() -> None:
    values = np.random.default_rng(0).normal(0.25, 1, size=60)
    found = sign_flip_test(values, n_flips=20_000, seed=1)
    peer = stats.permutation_test(
        (values,), np.mean, permutation_type="samples", n_resamples=20_000, **{SCIPY_SEED: 2}
    )
    assert not found.exact
    noise = np.sqrt(2 * peer.pvalue * (1 - peer.pvalue) / 20_000)
    assert found.p_value == pytest.approx(peer.pvalue, abs=4 * noise)
    assert sign_flip_test(values, n_flips=20_000, seed=1) == found
    assert sign_flip_test(values, n_flips=20_000, seed=2) != found


def test_a_sampled_p_value_is_never_0_and_counts_itself() -> None:
    found = sign_flip_test(np.full(40, 0.5), n_flips=999)
    assert found.p_value == found.smallest == 1 / 1000


def test_sampling_and_counting_agree_at_their_border() -> None:
    values = np.random.default_rng(3).normal(0.4, 1, size=LARGEST_EXACT)
    exact = sign_flip_test(values).p_value
    # a negligible difference more takes it beyond the border
    sampled = sign_flip_test(np.r_[values, 1e-9], n_flips=40_000)
    assert not sampled.exact
    noise = np.sqrt(exact * (1 - exact) / 40_000)
    assert sampled.p_value == pytest.approx(exact, abs=4 * noise)


@given(DIFFERENCES, st.integers(0, 2**31))
def test_signs_order_and_zeros_do_not_matter(values: list[float], seed: int) -> None:
    differences = np.array(values)
    p = sign_flip_test(differences).p_value
    shuffled = np.random.default_rng(seed).permutation(np.r_[-differences, 0.0])
    assert sign_flip_test(shuffled).p_value == pytest.approx(p, abs=1e-12)


def test_under_the_null_hypothesis_p_values_are_not_too_small() -> None:
    rng = np.random.default_rng(0)
    p = [sign_flip_test(rng.standard_t(3, size=12)).p_value for _ in range(400)]
    for alpha in (0.05, 0.2):
        share = np.mean(np.array(p) <= alpha)
        assert share <= alpha + 3 * np.sqrt(alpha * (1 - alpha) / 400)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_statsmodels(p_values: list[float]) -> None:
    expected = multipletests(p_values, method="holm")[1]
    np.testing.assert_allclose(holm(p_values), expected, atol=1e-12)


def test_cohens_d_is_t_over_the_root_of_n() -> None:
    values = np.random.default_rng(0).normal(0.3, 1, size=25)
    t = stats.ttest_1samp(values, 0).statistic
    assert cohens_d(values) == pytest.approx(t / 5)
    assert np.isnan(cohens_d(np.full(5, 0.4)))
    assert np.isnan(cohens_d(np.array([0.4])))
