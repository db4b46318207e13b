"""Error rates of the verdict, and its power: ours, Definition 1, and falsify-eval 0.2.0."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from falsify_eval import four_null_gate
from joblib import Parallel, delayed

from falsify_adapters.gate.grading import Graded, judge
from falsify_adapters.gate.query_units import Units
from falsify_adapters.nulls import own_scores
from falsify_adapters.power import power_of
from falsify_adapters.results import GateConfig
from tests.studies.coverage import true_delta
from tests.studies.simulated import (
    CORPUS_SIZE,
    DEPTH,
    GRADED,
    SINGLE,
    Gold,
    Process,
    coded,
    joined,
    lists,
    popularity_sample,
    same_for_all,
    uniform_sample,
)
from tests.studies.tables import Table, rate, study

TAU = 0.05
CONFIG = GateConfig(tau=TAU, n_trials=100, companion=False)

WORDS = """
How often is each verdict wrong? *False PASS*: a system that never reads the query passes, or one
whose true delta is exactly tau (0.05) does. *False FAIL*: a system whose true delta is above tau
fails. Three rules on the same benchmarks: the interval verdict of this package, the plain point
rule (Definition 1: every delta at least tau, with our expectations), and `falsify_eval`'s
`four_null_gate` 0.2.0 as it comes (50 trials, tau 0.05, permuted labels; single gold only).
Fresh benchmarks, systems and seeds each time. Systems of a given true delta are tuned on other
fresh benchmarks of the same size; *least mean delta* is what the graded ones measured on average,
against the null that is hardest.
"""

Candidates = tuple[Any, ...]
System = Callable[[np.random.Generator, Process, Gold], Candidates]


def constant(rng: np.random.Generator, process: Process, gold: Gold) -> Candidates:
    """Return the most popular document for every query, and nothing else."""
    del rng, process
    return same_for_all(_by_popularity(gold)[:1], gold.n_queries)


def popularity_order(rng: np.random.Generator, process: Process, gold: Gold) -> Candidates:
    """Return the ten most popular documents for every query."""
    del rng, process
    return same_for_all(_by_popularity(gold)[:DEPTH], gold.n_queries)


def sampled_popularity(rng: np.random.Generator, process: Process, gold: Gold) -> Candidates:
    """Draw ten documents by popularity for each query."""
    return popularity_sample(rng, process.weight, gold.n_queries)


def uniform(rng: np.random.Generator, process: Process, gold: Gold) -> Candidates:
    """Draw ten documents of the corpus for each query."""
    del process
    return uniform_sample(rng, gold.n_queries)


def shuffled(rng: np.random.Generator, process: Process, gold: Gold) -> Candidates:
    """Deal the rankings of a real system out to the wrong queries."""
    query, key, doc = process.run(rng, gold)
    return rng.permutation(gold.n_queries)[query], key, doc


def real(rng: np.random.Generator, process: Process, gold: Gold) -> Candidates:
    """Return the process' own system."""
    return process.run(rng, gold)


BLIND: dict[str, System] = {
    "constant": constant,
    "popularity order": popularity_order,
    "popularity sample": sampled_popularity,
    "uniform random": uniform,
    "shuffled real run": shuffled,
}


def mixture(share: float) -> System:
    """Return a real run in which a share of the queries is answered by popularity."""

    def system(rng: np.random.Generator, process: Process, gold: Gold) -> Candidates:
        blind = rng.random(gold.n_queries) < share
        own, other = process.run(rng, gold), popularity_sample(rng, process.weight, gold.n_queries)
        keep, take = ~blind[own[0]], blind[other[0]]
        return joined(tuple(c[keep] for c in own), tuple(c[take] for c in other))

    return system


def _by_popularity(gold: Gold) -> np.ndarray:
    return np.argsort(-np.bincount(gold.doc), kind="stable")


@dataclass(frozen=True)
class Case:
    """One system on one process at one size, graded over and over."""

    name: str
    process: Process
    system: System
    n: int
    reps: int
    falsify_reps: int = 0


@dataclass(frozen=True)
class Verdicts:
    """What the rules said of one case, one entry per benchmark."""

    case: Case
    verdicts: list[str]
    definition_1: list[bool]
    falsify: list[bool]
    least_delta: float

    def share(self, verdict: str) -> str:
        """Return how often the interval rule reached a verdict."""
        return rate([found == verdict for found in self.verdicts])


def graded(process: Process, gold: Gold, run: Candidates, config: GateConfig = CONFIG) -> Graded:
    """Judge a simulated run with the gate's own code."""
    benchmark = coded(gold, run)
    kernel = process.kernel(benchmark)
    return judge(benchmark, kernel, own_scores(benchmark, kernel), Units(), config)


def verdicts(case: Case, seed: int) -> Verdicts:
    """Grade one case on fresh benchmarks."""
    rng = np.random.default_rng([seed, case.n, *case.name.encode(), *case.process.name.encode()])
    found, points, theirs, all_deltas = [], [], [], []
    for i in range(case.reps):
        gold = case.process.gold(rng, case.n)
        run = case.system(rng, case.process, gold)
        judged = graded(case.process, gold, run, replace(CONFIG, seed=int(rng.integers(2**31))))
        found.append(judged.verdict)
        points.append(judged.definition_1)
        all_deltas.append([null.delta for null in judged.nulls.values()])
        if i < case.falsify_reps:
            theirs.append(falsify_eval_passes(gold, run, seed=int(rng.integers(2**31))))
    least = float(np.mean(all_deltas, axis=0).min())
    return Verdicts(case, found, points, theirs, least)


DISCOUNT = (1.0 / np.log2(np.arange(2, DEPTH + 2))).tolist()


def single_gold_ndcg(retrieved: list[int], gold: int, _relevance: Any) -> float:
    """Return nDCG@10 for one relevant document, in falsify-eval's signature."""
    return DISCOUNT[retrieved.index(gold)] if gold in retrieved else 0.0


def falsify_eval_passes(gold: Gold, run: Candidates, seed: int) -> bool:
    """Return the verdict of falsify-eval's own gate with its own defaults."""
    n = gold.n_queries
    result = four_null_gate(
        lists(n, run),
        gold.doc.tolist(),
        [1] * n,
        single_gold_ndcg,
        item_pool=range(CORPUS_SIZE),
        k=DEPTH,
        tau=TAU,
        seed=seed,
    )
    return bool(result["gate_passes"])


def with_true_delta(process: Process, n: int, targets: Iterable[float], reps: int) -> list[Process]:
    """Return the process with systems of given true delta: interpolated over ability."""
    shares = np.array([0.15, 0.5, 1.0, 1.6])
    least = [true_delta(process.able(share), n, reps, 99).min() for share in shares]
    return [process.able(float(np.interp(t, [0.0, *least], [0.0, *shares]))) for t in targets]


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    sizes: tuple[int, ...]
    reps: int
    truth: int
    falsify: dict[int, int]
    mixture_sizes: tuple[int, ...]
    mixture_reps: int
    shares: tuple[float, ...]


FULL = Sizes(
    sizes=(40, 100, 300),
    reps=150,
    truth=150,
    falsify={40: 40, 100: 20, 300: 6},
    mixture_sizes=(40, 100, 300, 1000),
    mixture_reps=50,
    shares=(0.0, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
)
REDUCED = Sizes(
    sizes=(40, 100),
    reps=40,
    truth=60,
    falsify={40: 6},
    mixture_sizes=(100,),
    mixture_reps=30,
    shares=(0.0, 0.5, 1.0),
)
TARGETS = {"true delta = tau": 0.05, "true delta = 1.5 tau": 0.075, "true delta = 2 tau": 0.1}


def cases(sizes: Sizes) -> list[Case]:
    """List everything that is graded for the table of errors."""
    out = []
    for process in (SINGLE, GRADED):
        for n in sizes.sizes:
            theirs = sizes.falsify.get(n, 0) if process is SINGLE else 0
            for name, system in BLIND.items():
                out.append(Case(name, process, system, n, sizes.reps, theirs))
            able = with_true_delta(process, n, TARGETS.values(), sizes.truth)
            for name, tuned in zip(TARGETS, able, strict=True):
                out.append(Case(name, tuned, real, n, sizes.reps, theirs))
    return out


def mixtures(sizes: Sizes) -> list[Case]:
    """List the mixtures of a real run with popularity."""
    return [
        Case(f"{share:.0%}", SINGLE, mixture(share), n, sizes.mixture_reps)
        for n in sizes.mixture_sizes
        for share in sizes.shares
    ]


def grade_all(work: list[Case], seed: int, jobs: int) -> list[Verdicts]:
    """Grade all cases, on several processes."""
    if jobs == 1:
        return [verdicts(case, seed) for case in work]
    # the systems are closures: loky ships them by cloudpickle
    return list(Parallel(n_jobs=jobs)(delayed(verdicts)(case, seed) for case in work))


@dataclass(frozen=True)
class Promise:
    """What the power analysis said at one size, and what came of it."""

    n: int
    detectable: float
    passed: float
    queries: int
    decided: float


def promise(n: int, reps: int, truth: int, seed: int) -> Promise:
    """Compare the minimum detectable delta, and the queries asked for, with what happens.

    At true delta 0.1: the median minimum detectable delta over benchmarks, and how often a system
    with just this true delta passes; the median number of queries asked for, and how often a
    benchmark of that size decides.
    """
    (start,) = with_true_delta(SINGLE, n, [0.1], truth)
    rng = np.random.default_rng([seed, n, 5])
    found = []
    for _ in range(reps):
        gold = start.gold(rng, n)
        judged = graded(start, gold, start.run(rng, gold))
        power = power_of(judged.nulls, judged.standard_errors, n, TAU, CONFIG)
        found.append((power.minimum_detectable_delta, power.queries))
    detectable = float(np.median([delta for delta, _ in found if delta is not None]))
    asked = int(np.median([queries for _, queries in found if queries is not None]))
    (able,) = with_true_delta(SINGLE, n, [detectable], truth)
    passed = verdicts(Case("promise", able, real, n, reps), seed)
    later = verdicts(Case("later", start, real, asked, reps), seed)
    return Promise(
        n=n,
        detectable=detectable,
        passed=float(np.mean([v == "PASS" for v in passed.verdicts])),
        queries=asked,
        decided=float(np.mean([v != "UNDER-NS" for v in later.verdicts])),
    )


def make(*, full: bool, seed: int) -> list[Table]:
    """Make the tables."""
    sizes = FULL if full else REDUCED
    found = grade_all(cases(sizes), seed, 2 if full else 1)
    mixed = grade_all(mixtures(sizes), seed, 2 if full else 1)
    promises = [promise(n, sizes.reps // 2, sizes.truth, seed) for n in sizes.sizes]
    blind = [f for f in found if f.case.name in BLIND]
    at_tau = [f for f in found if f.case.name == "true delta = tau"]
    above = [f for f in found if f.case.name in list(TARGETS)[1:]]
    return [
        Table(
            "Errors",
            f"False PASS of systems that never read the query: {_passes(blind)} of"
            f" {sum(len(f.verdicts) for f in blind):,} benchmarks; at a true delta of exactly tau"
            f" {_share(at_tau, 'PASS')} (the point rule: "
            f"{rate([p for f in at_tau for p in f.definition_1])}). False FAIL above tau:"
            f" {_share(above, 'FAIL')}. A dash: falsify-eval takes one gold document per query.",
            pd.DataFrame([_error_row(f) for f in found]),
        ),
        Table(
            "Power: a real run with a share of queries answered by popularity",
            f"Single gold, skewed; {sizes.mixture_reps} benchmarks per row.",
            pd.DataFrame([_mixture_row(f) for f in mixed]),
        ),
        Table(
            "What the power analysis promises",
            "At a true delta of 0.1 (single gold): the median *minimum detectable delta* that the"
            " report names, and how often a system of just that true delta passes (promised: 0.8);"
            " the median number of *queries* that UNDER-NS reports ask for, and how often"
            " benchmarks of that size decide (promised: 0.8 if the measured delta is the true one)."
            " Benchmarks that stay undecided are mostly those that measured less than the truth:"
            " they ask for more queries than it takes.",
            pd.DataFrame([_promise_row(p) for p in promises]),
        ),
    ]


def _passes(found: list[Verdicts]) -> int:
    return sum(verdict == "PASS" for f in found for verdict in f.verdicts)


def _share(found: list[Verdicts], verdict: str) -> str:
    return rate([v == verdict for f in found for v in f.verdicts])


def _error_row(f: Verdicts) -> dict[str, str]:
    theirs = f"{rate(f.falsify, 2)} of {len(f.falsify)}" if f.falsify else "-"
    return {
        "process": f.case.process.name,
        "system": f.case.name,
        "N": f"{f.case.n}",
        "least mean delta": f"{f.least_delta:.3f}",
        "PASS": f.share("PASS"),
        "FAIL": f.share("FAIL"),
        "UNDER-NS": f.share("UNDER-NS"),
        "Definition 1 PASS": rate(f.definition_1),
        "falsify-eval PASS": theirs,
    }


def _mixture_row(f: Verdicts) -> dict[str, str]:
    return {
        "by popularity": f.case.name,
        "N": f"{f.case.n:,}",
        "least mean delta": f"{f.least_delta:.3f}",
        "PASS": f.share("PASS"),
        "FAIL": f.share("FAIL"),
        "UNDER-NS": f.share("UNDER-NS"),
        "Definition 1 PASS": rate(f.definition_1),
    }


def _promise_row(p: Promise) -> dict[str, str]:
    return {
        "N": f"{p.n}",
        "minimum detectable delta": f"{p.detectable:.3f}",
        "PASS there": f"{p.passed:.2f}",
        "queries asked for": f"{p.queries:,}",
        "decided then": f"{p.decided:.2f}",
    }


if __name__ == "__main__":
    study("error_rates", "How often is the verdict wrong?", WORDS, make)
