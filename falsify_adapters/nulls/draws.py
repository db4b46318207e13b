"""What a null gives, and the random draws that the nulls share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from falsify_adapters.frames import FloatArray, IntArray, stable_order

#: Above this chance it is cheaper to toss a coin for every cell than to place the successes.
DENSE_CHANCE = 0.2
#: Trials times queries (or draws of them) that are held at once.
CHUNK_CELLS = 4_000_000


@dataclass(frozen=True, eq=False)
class NullDraws:
    """One null on one benchmark.

    Parameters
    ----------
    mean : float
        Expected score of the null.
    mean_error : float
        Monte Carlo standard error of `mean`; 0 where it is exact.
    query_means : ndarray, shape (n_queries,)
        Expected score of each query.
    influence : ndarray, shape (n_queries,)
        Influence of each query on the delta (own score minus what the null owes to the query).
    trials : ndarray, shape (n_trials,)
        Scores of the null, one per trial.
    """

    mean: float
    mean_error: float
    query_means: FloatArray
    influence: FloatArray
    trials: FloatArray


def trial_chunks(n_trials: int, n_queries: int) -> list[int]:
    """Cut the trials into numbers of trials that are small enough to hold at once.

    Examples
    --------
    >>> trial_chunks(1000, 10_000)
    [400, 400, 200]
    """
    step = max(1, CHUNK_CELLS // n_queries)
    return [min(step, n_trials - low) for low in range(0, n_trials, step)]


def bounded_groups(work: FloatArray, most: int) -> list[IntArray]:
    """Cut queries into groups of neighbours with about `most` of work, or one query, each.

    Examples
    --------
    >>> bounded_groups(np.array([3.0, 3.0, 9.0, 1.0]), 6)
    [array([0, 1]), array([2]), array([3])]
    """
    cut = np.flatnonzero(np.diff((np.cumsum(work) - work) // most)) + 1
    return np.split(np.arange(len(work)), cut) if len(work) else []


def line_groups(
    sizes: IntArray, chance: FloatArray, cells: FloatArray | float = 1.0
) -> list[IntArray]:
    """Cut the lines of :func:`bernoulli_cells` into groups that are small enough to toss at once.

    A success is counted as so many `cells`.
    """
    tossed = np.where(chance > DENSE_CHANCE, 1.0, chance) * sizes
    return bounded_groups(np.maximum(tossed, cells * chance * sizes), CHUNK_CELLS)


def generator(seed: int, stream: str) -> np.random.Generator:
    """Return the random numbers of one null: independent of the other nulls' under one seed.

    Examples
    --------
    >>> bool(generator(1, "A").random() == generator(1, "A").random())
    True
    """
    return np.random.default_rng([seed, *stream.encode()])


def distinct_integers(rng: np.random.Generator, counts: IntArray, bounds: IntArray) -> IntArray:
    """Draw whole numbers without repeats within each group.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    counts, bounds : ndarray, shape (n_groups,)
        How many numbers each group gets, out of ``range(bound)``.

    Returns
    -------
    ndarray, shape (counts.sum(),)
        Group after group; within a group in random order.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> sorted(distinct_integers(rng, np.array([3]), np.array([3])).tolist())
    [0, 1, 2]
    """
    owner = np.repeat(np.arange(len(counts)), counts)
    bound = bounds[owner]
    value = rng.integers(0, bound)
    stride = int(bounds.max(initial=1))
    # numbers that stand already are drawn again: every set of distinct numbers is equally likely
    check = np.flatnonzero(counts[owner] > 1)
    while check.size:
        key = owner[check] * stride + value[check]
        order = stable_order(key)
        again = check[order[1:][key[order][1:] == key[order][:-1]]]
        value[again] = rng.integers(0, bound[again])
        crowded = np.zeros(len(counts), dtype=bool)
        crowded[owner[again]] = True
        check = check[crowded[owner[check]]]
    return value


def bernoulli_cells(
    rng: np.random.Generator, sizes: IntArray, chance: FloatArray
) -> tuple[IntArray, IntArray]:
    """Return the successes among independent coin tosses, at a cost that grows with them only.

    Parameters
    ----------
    rng : Generator
        Source of randomness.
    sizes, chance : ndarray, shape (n_lines,)
        Number of tosses of each line, and their chance of success.

    Returns
    -------
    line, cell : ndarray
        Where the successes are, ascending by line and cell.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> line, cell = bernoulli_cells(rng, np.array([2, 3]), np.array([0.0, 1.0]))
    >>> line.tolist(), cell.tolist()
    ([1, 1, 1], [0, 1, 2])
    """
    dense = chance > DENSE_CHANCE
    counts = rng.binomial(np.where(dense, 0, sizes), np.where(dense, 0.0, chance))
    line = np.repeat(np.arange(len(sizes)), counts)
    start = np.cumsum(sizes) - sizes
    won = _distinct_cells(rng, line, start, sizes)
    which = np.flatnonzero(dense)
    if which.size:
        size = sizes[which]
        cells = np.arange(size.sum()) + np.repeat(start[which] - np.cumsum(size) + size, size)
        tossed = rng.random(len(cells)) < np.repeat(chance[which], size)
        counts[which] = np.add.reduceat(tossed, np.cumsum(size) - size)
        won = np.r_[won, cells[tossed]]
        line = np.repeat(np.arange(len(sizes)), counts)
    return line, np.sort(won) - start[line]


def _distinct_cells(
    rng: np.random.Generator, line: IntArray, start: IntArray, sizes: IntArray
) -> IntArray:
    """Draw a cell for each entry of `line` (ascending), ascending, without repeats."""
    won = np.sort(start[line] + rng.integers(0, np.maximum(sizes, 1)[line]))
    # cells that stand already are drawn again: every set of cells is equally likely
    while (again := np.flatnonzero(won[1:] == won[:-1]) + 1).size:
        won[again] = start[line[again]] + rng.integers(0, sizes[line[again]])
        won.sort()
    return won
