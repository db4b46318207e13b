"""Coverage where queries hang together: paraphrases, and scores that are correlated in time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy import special

from falsify_adapters.gate.query_units import Units
from falsify_adapters.resampling import ROUNDING, bootstrap_t
from falsify_adapters.results import NULLS
from tests.studies.coverage import Deltas, deltas, true_delta
from tests.studies.simulated import SINGLE, Gold, Process
from tests.studies.tables import Table, study

N_BOOT = 1000
ALPHA = 0.05
#: Chance that a system finds a question's answer in all of its paraphrases, or in none, varies
#: like this over questions: results within a cluster correlate by 1 / (2 a + 1) = 0.5.
SPREAD = 0.5
#: Of the hidden ability in time: correlation of neighbours, and its standard deviation.
MEMORY, SWING = 0.8, 2.0

WORDS = """
Do the intervals cover where queries do not vary on their own? Once with what belongs together
named (`--clusters`, `--blocks`), once ignoring it. The system, the popular documents and the other
results are those of the process "single gold, skewed" (`tests/studies/simulated.py`); the true
delta is the mean over other fresh benchmarks that hang together in the same way.
"""


@dataclass(frozen=True)
class Paraphrased(Process):
    """Every question stands `size` times: same relevant documents, similar results."""

    size: int = 1

    def gold(self, rng: np.random.Generator, n: int) -> Gold:
        """Draw the questions' relevant documents, and repeat them for each paraphrase."""
        once = super().gold(rng, n // self.size)
        query = once.query[:, None] * self.size + np.arange(self.size)
        order = np.argsort(query.ravel(), kind="stable")
        return Gold(
            n,
            query.ravel()[order],
            np.repeat(once.doc, self.size)[order],
            np.repeat(once.grade, self.size)[order],
        )


def paraphrases(size: int) -> Paraphrased:
    """Return a process whose queries come in clusters of `size`."""

    def ability(rng: np.random.Generator, n: int) -> np.ndarray:
        return np.repeat(rng.beta(SPREAD, SPREAD, n // size), size)

    plain = {name: getattr(SINGLE, name) for name in SINGLE.__dataclass_fields__}
    return Paraphrased(**{**plain, "name": f"clusters of {size}", "ability": ability}, size=size)


def in_time(memory: float) -> Process:
    """Return a process whose ability drifts from query to query."""

    def ability(rng: np.random.Generator, n: int) -> np.ndarray:
        hidden = rng.normal(size=n)
        for i in range(1, n):
            hidden[i] = memory * hidden[i - 1] + np.sqrt(1 - memory**2) * hidden[i]
        return special.expit(SWING * hidden)

    return replace(SINGLE, name=f"memory {memory}", ability=ability)


def clusters_of(size: int) -> Callable[[int], Units]:
    """Return the clusters of neighbours."""
    return lambda n: Units(cluster=np.arange(n) // size)


def blocks_of(length: int) -> Callable[[int], Units]:
    """Return blocks in the order of the queries."""
    return lambda n: Units(order=np.arange(n), block_length=length)


def alone(n: int) -> Units:
    """Return queries that are resampled one by one."""
    del n
    return Units()


@dataclass(frozen=True)
class Held:
    """How often intervals hold the true delta, and how wide they are: one value per null."""

    covered: np.ndarray
    width: np.ndarray


def interval(found: Deltas, units: Units, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the intervals, as the gate makes them."""
    resampled, n_drawn, share = units.resampling(found.influence)
    low, high, _ = bootstrap_t(
        resampled,
        found.delta,
        found.error,
        alpha=ALPHA,
        n_boot=N_BOOT,
        seed=seed,
        n_drawn=n_drawn,
        largest_share=share,
    )
    return low, high


def held(
    process: Process,
    n: int,
    ways: dict[str, Callable[[int], Units]],
    reps: tuple[int, int],
    seed: int,
) -> dict[str, Held]:
    """Count how often the intervals of each way of resampling hold the true delta."""
    count, for_truth = reps
    truth = true_delta(process, n, for_truth, seed)
    rng = np.random.default_rng([seed, n, *process.name.encode(), 0])
    ends: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in ways}
    for i in range(count):
        found = deltas(process, rng, n, 50)
        for name, way in ways.items():
            ends[name].append(interval(found, way(n), i))
    out = {}
    for name, pairs in ends.items():
        low, high = (np.array(side) for side in zip(*pairs, strict=True))
        covers = (low <= truth + ROUNDING) & (truth - ROUNDING <= high)
        out[name] = Held(covers.mean(axis=0), (high - low).mean(axis=0))
    return out


def make(*, full: bool, seed: int) -> list[Table]:
    """Make the tables."""
    n = 200 if full else 100
    reps = (600, 600) if full else (100, 200)
    sizes = (1, 2, 5, 10)
    lengths = (5, 10, 20) if full else (10,)
    jobs = [
        (paraphrases(size), n, {"ignored": alone, f"clusters of {size}": clusters_of(size)})
        for size in sizes
    ]
    jobs += [
        (
            in_time(memory),
            2 * n,
            {"ignored": alone, **{f"blocks of {k}": blocks_of(k) for k in lengths}},
        )
        for memory in (0.0, 0.5, MEMORY)
    ]
    results = Parallel(n_jobs=2)(
        delayed(held)(process, size, ways, reps, seed) for process, size, ways in jobs
    )
    rows: list[list[dict[str, str]]] = [[], []]
    for i, ((process, size, _), result) in enumerate(zip(jobs, results, strict=True)):
        for name, one in result.items():
            wider = (one.width / result["ignored"].width).mean()
            rows[i >= len(sizes)].append(
                {
                    "queries": process.name,
                    "N": str(size),
                    "resampled": "one by one" if name == "ignored" else name,
                    **{null: f"{c:.3f}" for null, c in zip(NULLS, one.covered, strict=True)},
                    "width": f"{wider:.2f}",
                }
            )
    error = np.sqrt(0.05 * 0.95 / reps[0])
    return [
        Table(
            "Paraphrases",
            f"Every question stands 1, 2, 5 or 10 times; results within a cluster correlate by"
            f" {1 / (2 * SPREAD + 1):.2f}. Coverage at nominal 0.95 over {reps[0]:,} benchmarks"
            f" (standard error {error:.3f}), null by null; width: beside queries one by one.",
            pd.DataFrame(rows[0]),
        ),
        Table(
            "Correlation in time",
            "The ability of the system drifts from query to query: a first-order process whose"
            f" neighbours correlate by 0, 0.5 or {MEMORY}, on the logit scale with deviation"
            f" {SWING:g}; queries are resampled one by one, and in blocks. Longer memory takes"
            " longer blocks: too short ones restore a part only, much longer ones cost little.",
            pd.DataFrame(rows[1]),
        ),
    ]


if __name__ == "__main__":
    study("dependence", "Do the intervals cover if queries hang together?", WORDS, make)
