"""Whether two samples of a benchmark's trials come from one distribution."""

from __future__ import annotations

import inspect

import numpy as np
from scipy import stats

from falsify_adapters.frames import FloatArray

#: How scipy calls a seed: rng from 1.15 on, random_state before.
SCIPY_SEED = "rng" if "rng" in inspect.signature(stats.bootstrap).parameters else "random_state"


def assert_same_distribution(ours: FloatArray, theirs: FloatArray) -> None:
    """Hold means within 4 standard errors, spreads within what the sample can tell, and shapes."""
    error = np.hypot(ours.std() / np.sqrt(len(ours)), theirs.std() / np.sqrt(len(theirs)))
    assert abs(ours.mean() - theirs.mean()) <= 4 * error + 1e-12
    if theirs.std() < 1e-12:
        assert ours.std() < 1e-12
        return
    kurtosis = stats.kurtosis(theirs) + 3
    n = min(len(ours), len(theirs))
    assert abs(np.log(ours.var() / theirs.var())) < 5 * np.sqrt(2 * (kurtosis - 1) / n)
    assert stats.ks_2samp(ours.round(9), theirs.round(9)).pvalue > 1e-4
