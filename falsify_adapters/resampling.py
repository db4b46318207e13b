"""Bootstrap-t intervals on influence values, p-values, luck margins. Arrays only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from falsify_adapters.frames import FloatArray, IntArray

#: Differences below this are rounding, not effects.
ROUNDING = 1e-12
#: N times the most by which one query can move a score minus the mean of null A.
BOUNDED_DIFFERENCE = 3.0
#: Resamples times queries that are held at once.
CHUNK_CELLS = 4_000_000
#: Resamples times queries up to which the resamples are kept (40 MB).
KEPT_CELLS = 10_000_000

Counts = npt.NDArray[np.int32]


def bootstrap_t(
    influence: FloatArray,
    estimate: FloatArray,
    error: FloatArray,
    *,
    alpha: float,
    n_boot: int,
    seed: int,
    n_drawn: int | None = None,
    largest_share: float | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return studentised bootstrap intervals for several means at once.

    One set of resampled units serves all columns. The influence values are centred, so that
    only their spread matters; the intervals are placed around `estimate`, and widened by the
    Monte Carlo error of the estimates.

    Parameters
    ----------
    influence : ndarray, shape (n_units, n_columns)
        Influence of each query on each estimate; of each cluster or block, where queries are
        resampled together (see :func:`cluster_units`, :func:`block_units`).
    estimate, error : ndarray, shape (n_columns,)
        The estimates and their Monte Carlo standard errors.
    alpha : float
        Each interval has confidence ``1 - alpha``.
    n_boot, seed : int
        Number of resamples, and their seed.
    n_drawn : int, optional
        Units in a resample, by default as many as there are (fewer for overlapping blocks).
    largest_share : float, optional
        Root of the sum of the squared shares of all queries that the units hold, by default that
        of equal units; it scales the widest interval possible.

    Returns
    -------
    low, high, standard_error : ndarray, shape (n_columns,)
        A column without spread or error gives ``low == high == estimate``.

    Notes
    -----
    A resample without spread has an infinite t value, not a zero one: so few distinct values say
    nothing about the end of the interval. No half width exceeds that of the bounded differences
    inequality (McDiarmid 1989) for a query that moves a score in [0, 1] by 1/N and a null's mean by
    2/N. For nulls A and C no query moves more, so there the cap holds whatever the distribution. A
    query can move B's mean further where gold sets repeat, and D's where it holds far more gold
    documents than the others: for these the cap is a convention that the coverage studies hold.
    """
    drawn = n_drawn or len(influence)
    centred, standard_error = centred_influence(influence, drawn)
    t = t_values(centred, drawn, n_boot, seed)
    share = largest_share or 1 / np.sqrt(drawn)
    low, high = t_interval(t, share, estimate, standard_error, error, alpha)
    return low, high, standard_error


def centred_influence(
    influence: FloatArray, n_drawn: int | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return influence values less their mean, and the standard error of each column's mean."""
    centred = influence - influence.mean(axis=0)
    centred[np.abs(centred) < ROUNDING] = 0.0
    return centred, np.sqrt((centred**2).mean(axis=0) / (n_drawn or len(influence)))


def t_interval(
    t: FloatArray,
    largest_share: float,
    estimate: FloatArray,
    standard_error: FloatArray,
    error: FloatArray,
    alpha: float,
) -> tuple[FloatArray, FloatArray]:
    """Turn resampled t values, shape (n_boot, n_columns), into the ends of the intervals."""
    # conservative ends: no interpolation, least of all between a number and infinity
    lower_t = np.quantile(t, alpha / 2, axis=0, method="lower")
    upper_t = np.quantile(t, 1 - alpha / 2, axis=0, method="higher")
    scale = np.where(standard_error > 0, standard_error, 1.0)
    noise = special.ndtri(1 - alpha / 2) * error
    # an infinite end says less than the inequality does (see bootstrap_t for where it is proven)
    far = BOUNDED_DIFFERENCE * largest_share * np.sqrt(np.log(2 / alpha) / 2)
    low = estimate - _widened(np.minimum(upper_t * scale, far), noise)
    high = estimate + _widened(np.minimum(-lower_t * scale, far), noise)
    return low, high


def mean_ceiling(mean: float, n: float, alpha: float) -> float:
    """Return the upper confidence limit of a mean of scores in [0, 1], whatever their distribution.

    Exceeded by the true mean with a chance of at most ``alpha / 2``. A few hits among many misses
    are all that a resample may lack, so that the bootstrap cannot bound them; this does.

    Parameters
    ----------
    mean : float
        Mean of the scores.
    n : float
        Number of independent scores. Where scores come in independent groups: all scores over the
        size of the largest group.
    alpha : float
        Error level of a two-sided interval.

    Notes
    -----
    The Chernoff-Hoeffding bound (Hoeffding 1963, theorem 1): the largest u whose relative entropy
    ``mean ln(mean / u) + (1 - mean) ln((1 - mean) / (1 - u))`` is at most ``ln(2 / alpha) / n``.

    Examples
    --------
    >>> round(mean_ceiling(0.0, 98, 0.0125), 4), round(mean_ceiling(0.0, 99, 0.0125), 4)
    (0.0505, 0.05)
    >>> round(mean_ceiling(0.001, 1000, 0.0125), 4)
    0.0081
    """
    if mean >= 1:
        return 1.0

    def beyond(u: float) -> float:
        entropy = special.rel_entr(mean, u) + special.rel_entr(1 - mean, 1 - u)
        return float(entropy - np.log(2 / alpha) / n)

    return float(optimize.bisect(beyond, mean, 1.0, xtol=1e-12))


def cluster_units(influence: FloatArray, cluster: IntArray) -> tuple[FloatArray, float]:
    """Return what each cluster of queries contributes, and the clusters' root sum of squares.

    Influence values are summed per cluster (Cameron, Gelbach and Miller 2008).

    Parameters
    ----------
    influence : ndarray, shape (n_queries, n_columns)
        Influence of each query.
    cluster : ndarray, shape (n_queries,)
        Number of each query's cluster, from 0 without gaps.

    Returns
    -------
    units : ndarray, shape (n_clusters, n_columns)
        Scaled so that their mean moves as the mean over queries does.
    largest_share : float
        For :func:`bootstrap_t`.
    """
    centred = influence - influence.mean(axis=0)
    size = np.bincount(cluster)
    units = np.zeros((len(size), influence.shape[1]))
    np.add.at(units, cluster, centred)
    n = len(influence)
    return units * (len(size) / n), float(np.sqrt((size.astype(np.float64) ** 2).sum()) / n)


def block_units(
    influence: FloatArray, order: IntArray, length: int
) -> tuple[FloatArray, int, float]:
    """Return the means of all overlapping blocks of queries in time, the last ones wrapped.

    Parameters
    ----------
    influence : ndarray, shape (n_queries, n_columns)
        Influence of each query.
    order : ndarray, shape (n_queries,)
        The queries in the order of time.
    length : int
        Queries per block.

    Returns
    -------
    units : ndarray, shape (n_queries, n_columns)
        Mean of the block that starts at each query (the circular block bootstrap of Politis and
        Romano 1992: every query stands in as many blocks).
    n_drawn : int
        Blocks in a resample.
    largest_share : float
        For :func:`bootstrap_t`.
    """
    centred = (influence - influence.mean(axis=0))[order]
    n = len(centred)
    wrapped = np.cumsum(np.concatenate([np.zeros((1, centred.shape[1])), centred, centred]), axis=0)
    units = (wrapped[length : n + length] - wrapped[:n]) / length
    n_drawn = max(2, round(n / length))
    return units, n_drawn, float(np.sqrt(length / n))


def _widened(half_width: FloatArray, noise: FloatArray) -> FloatArray:
    """Add independent noise to a half width (which a lopsided bootstrap can make negative)."""
    return np.where(half_width < 0, -1.0, 1.0) * np.hypot(half_width, noise)


def t_values(centred: FloatArray, drawn: int, n_boot: int, seed: int) -> FloatArray:
    """Return the t value of each resample and column, shape (n_boot, n_columns)."""
    moments = np.concatenate([centred, centred**2], axis=1)
    counts = _resamples(len(centred), drawn, n_boot, seed)
    means = np.concatenate([part.astype(np.float64) @ moments for part in counts]) / drawn
    mean, square = means[:, : centred.shape[1]], means[:, centred.shape[1] :]
    variance = (square - mean**2) / drawn
    # an exact zero comes out as rounding noise of the size of the squares
    flat = variance <= 1e-13 * (centred**2).max(axis=0, initial=0.0) / drawn
    with np.errstate(divide="ignore", invalid="ignore"):
        t = mean / np.sqrt(np.where(flat, 0.0, variance))
    return np.where(flat, np.where(mean == 0, 0.0, np.copysign(np.inf, mean)), t)


def _resamples(n: int, drawn: int, n_boot: int, seed: int) -> Iterable[Counts]:
    """Return how often each unit is drawn in each resample, in chunks of (n_rows, n)."""
    if n * n_boot <= KEPT_CELLS:
        return _kept_resamples(n, drawn, n_boot, seed)
    return _drawn_resamples(n, drawn, n_boot, seed)


@lru_cache(maxsize=1)
def _kept_resamples(n: int, drawn: int, n_boot: int, seed: int) -> tuple[Counts, ...]:
    """Keep the last resamples: the companion, and the next system, are given the same ones."""
    kept = tuple(_drawn_resamples(n, drawn, n_boot, seed))
    for counts in kept:
        counts.flags.writeable = False
    return kept


def _drawn_resamples(n: int, drawn: int, n_boot: int, seed: int) -> Iterator[Counts]:
    rng = np.random.default_rng([seed, *b"boot"])
    step = max(1, CHUNK_CELLS // n)
    for low in range(0, n_boot, step):
        rows = min(step, n_boot - low)
        units = rng.integers(0, n, size=(rows, drawn), dtype=np.int32)
        units += np.arange(rows, dtype=np.int32)[:, None] * n
        counts = np.bincount(units.ravel(), minlength=rows * n).reshape(rows, n)
        yield counts.astype(np.int32)


def effective_queries(influence: FloatArray) -> FloatArray:
    """Return on how many queries the spread of each column rests.

    ``(sum c^2)^2 / sum c^4`` of the centred values (a participation ratio): about the number of
    wins if wins are rare, a third of the queries if the values are normal, 0 without spread.
    The bootstrap cannot know what it has seen less than about five times.

    Parameters
    ----------
    influence : ndarray, shape (n_queries, n_columns)
        Influence of each query on each estimate.

    Examples
    --------
    >>> one_win = np.array([[1.0]] + [[0.0]] * 99)
    >>> effective_queries(one_win).round(2)
    array([1.02])
    """
    squares = centred_influence(influence)[0] ** 2
    fourth = (squares**2).sum(axis=0)
    total = squares.sum(axis=0) ** 2
    return np.divide(total, fourth, out=np.zeros(len(total)), where=fourth > 0)


def rounded(delta: float) -> float:
    """Return a difference, 0 where it is rounding.

    Examples
    --------
    >>> rounded(0.3 - 0.1 - 0.2), rounded(0.25)
    (0.0, 0.25)
    """
    return 0.0 if abs(delta) < ROUNDING else delta


def p_value(score: float, trials: FloatArray) -> float:
    """Return ``(1 + #{trial >= score}) / (1 + n_trials)``, which is never 0.

    Source: Phipson and Smyth (2010).

    Examples
    --------
    >>> p_value(0.5, np.array([0.1, 0.5, 0.2]))
    0.5
    """
    return float((1 + (trials >= score - ROUNDING).sum()) / (1 + len(trials)))


def luck_margin(trials: FloatArray, alpha: float) -> float:
    """Return how far above its mean a null gets by luck: the ``1 - alpha`` quantile minus the mean.

    Examples
    --------
    >>> round(luck_margin(np.arange(101.0), 0.05), 6)
    45.0
    """
    return max(0.0, float(np.quantile(trials, 1 - alpha) - trials.mean()))
