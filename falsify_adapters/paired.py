"""Paired tests on two systems' scores of the same queries. Arrays only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from falsify_adapters.frames import FloatArray
from falsify_adapters.resampling import ROUNDING

#: Up to so many differences that are not 0, all patterns of signs are counted.
LARGEST_EXACT = 16
#: Signs that are held at once.
CHUNK_CELLS = 4_000_000


@dataclass(frozen=True)
class SignFlips:
    """A sign-flip permutation test of a mean difference of 0, two-sided.

    Parameters
    ----------
    p_value : float
        Share of sign patterns whose sum lies at least as far from 0 as the observed one.
    patterns : int
        Patterns looked at.
    exact : bool
        Whether these were all patterns.
    smallest : float
        The smallest p-value that so many differences could give.
    """

    p_value: float
    patterns: int
    exact: bool
    smallest: float


def sign_flip_test(differences: FloatArray, *, n_flips: int = 10_000, seed: int = 0) -> SignFlips:
    """Test whether differences are symmetric around 0.

    Parameters
    ----------
    differences : ndarray, shape (n_units,)
        One difference per query, or its sum over each group of queries that vary together.
    n_flips, seed : int
        Random patterns where there are too many to count all, and their seed.

    Notes
    -----
    Differences of 0 have no sign and change nothing. Up to 16 others are enumerated; beyond that
    ``p = (1 + #{pattern at least as far}) / (1 + n_flips)``, which is never 0 (Phipson and Smyth
    2010).

    Examples
    --------
    >>> sign_flip_test(np.full(5, 0.4)).p_value
    0.0625
    >>> sign_flip_test(np.zeros(5)).p_value
    1.0
    """
    values = np.abs(differences[np.abs(differences) >= ROUNDING])
    observed = abs(float(differences.sum()))
    # sums in another order differ by rounding
    reach = observed - ROUNDING * max(1.0, float(values.sum()))
    if len(values) <= LARGEST_EXACT:
        sums = np.zeros(1)
        for value in values:
            sums = np.concatenate([sums + value, sums - value])
        p = float((np.abs(sums) >= reach).mean())
        return SignFlips(p, len(sums), True, min(1.0, 2.0 / len(sums)))
    rng = np.random.default_rng([seed, *b"flips"])
    as_far = 0
    step = max(1, CHUNK_CELLS // len(values))
    for start in range(0, n_flips, step):
        rows = min(step, n_flips - start)
        signs = rng.integers(0, 2, size=(rows, len(values)), dtype=np.int8) * 2 - 1
        as_far += int((np.abs(signs @ values) >= reach).sum())
    return SignFlips((1 + as_far) / (1 + n_flips), n_flips, False, 1 / (1 + n_flips))


def cohens_d(differences: FloatArray) -> float:
    """Return Cohen's d for paired data: mean difference over the differences' deviation.

    NaN where it is undefined: fewer than two differences, or all of them equal.

    Examples
    --------
    >>> round(cohens_d(np.array([0.0, 0.2, 0.4])), 6)
    1.0
    """
    if len(differences) < 2:
        return float("nan")
    deviation = float(differences.std(ddof=1))
    return float(differences.mean()) / deviation if deviation >= ROUNDING else float("nan")


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for several tests (Holm 1979), in the order given.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [0.0] * len(p_values)
    running = 0.0
    for place, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        running = max(running, min(1.0, (len(p_values) - place) * p_values[i]))
        adjusted[i] = running
    return adjusted
