"""Coverage of the intervals, null by null, over benchmarks of known processes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from falsify_adapters.nulls import (
    CrossMatrix,
    permuted_gold,
    popularity_gold,
    random_documents,
    uniform_gold,
)
from falsify_adapters.resampling import centred_influence, t_interval, t_values
from falsify_adapters.results import NULLS
from studies.simulated import PROCESSES, Process

ALPHA = 0.05
N_BOOT = 1000


@dataclass(frozen=True)
class Deltas:
    """One benchmark's deltas: estimates, Monte Carlo errors, influence values."""

    delta: np.ndarray
    error: np.ndarray
    influence: np.ndarray


def deltas(process: Process, rng: np.random.Generator, n: int, n_trials: int = 100) -> Deltas:
    """Draw a benchmark and compare the system's score with the four nulls."""
    benchmark = process.draw(rng, n)
    kernel = process.kernel(benchmark)
    cross = CrossMatrix(benchmark, kernel)
    seed = int(rng.integers(2**31))
    nulls = (
        permuted_gold(cross, 1, seed),
        uniform_gold(cross, 1, seed),
        random_documents(benchmark, kernel, cross.own, 1, seed),
        popularity_gold(cross, kernel, n_trials, seed),
    )
    return Deltas(
        delta=cross.own.mean() - np.array([null.mean for null in nulls]),
        error=np.array([null.mean_error for null in nulls]),
        influence=np.stack([null.influence for null in nulls], axis=1),
    )


def true_delta(process: Process, n: int, reps: int, seed: int) -> np.ndarray:
    """Return the mean delta over fresh benchmarks of the same size."""
    rng = np.random.default_rng([seed, n, *process.name.encode(), 1])
    return np.mean([deltas(process, rng, n, 10).delta for _ in range(reps)], axis=0)
