"""Small random benchmarks, each odd in some way that real ones are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from falsify_adapters.coded import Coded
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import FloatArray
from falsify_adapters.gate.grading import coded_to
from falsify_adapters.kernels import Kernel
from falsify_adapters.measures import make_kernel, measure_depth, parse_measure
from falsify_adapters.nulls import CrossMatrix, own_scores

Ranking = dict[str, float]
Gold = dict[str, int]


@dataclass(frozen=True)
class Benchmark:
    """A run, qrels and corpus as plain Python holds them."""

    run: dict[str, Ranking]
    qrels: dict[str, Gold]
    corpus: list[str]

    @property
    def queries(self) -> list[str]:
        return sorted(self.qrels)

    def gold(self, query: str) -> Gold:
        """Return what is relevant to a query, with grades."""
        return {doc: grade for doc, grade in self.qrels[query].items() if grade > 0}

    def evaluation(self, **names: Any) -> Evaluation:
        return Evaluation.create(self.run, self.qrels, corpus_ids=self.corpus, **names)

    def prepared(self, measure: str | Any) -> Prepared:
        evaluation = self.evaluation()
        parsed = parse_measure(measure)
        coded = coded_to(evaluation, measure_depth(parsed))
        kernel = make_kernel(parsed, coded.profiles)
        return Prepared(coded, kernel, CrossMatrix(coded, kernel), own_scores(coded, kernel))


@dataclass(frozen=True)
class Prepared:
    """What the nulls take."""

    coded: Coded
    kernel: Kernel
    cross: CrossMatrix
    own: FloatArray


def ranking(docs: Any) -> Ranking:
    """Return a ranking in this order, with strictly falling scores."""
    return {doc: float(-place) for place, doc in enumerate(docs)}


def made(
    seed: int,
    *,
    n_queries: int = 8,
    n_docs: int = 12,
    sizes: tuple[int, ...] = (1, 2, 3),
    top_grade: int = 1,
    skew: float = 1.0,
    depth: int = 12,
    others: int = 8,
    skill: float = 0.5,
) -> Benchmark:
    """Make a benchmark.

    `sizes` are the gold sets' sizes in turn, drawn from `n_docs` documents with Zipf exponent
    `skew`; `others` more documents are never relevant. A ranking puts each relevant document
    first with chance `skill`.
    """
    rng = np.random.default_rng(seed)
    docs = [f"d{i:02}" for i in range(n_docs)]
    corpus = docs + [f"x{i:02}" for i in range(others)]
    weight = np.arange(1, n_docs + 1) ** -skew
    run: dict[str, Ranking] = {}
    qrels: dict[str, Gold] = {}
    for i in range(n_queries):
        size = sizes[i % len(sizes)]
        gold = rng.choice(n_docs, size=size, replace=False, p=weight / weight.sum())
        grades = rng.integers(1, top_grade + 1, size=size)
        query = f"q-{i + 10}"
        qrels[query] = {docs[j]: int(grade) for j, grade in zip(gold, grades, strict=True)}
        found = [docs[j] for j in gold if rng.random() < skill]
        rest = [corpus[j] for j in rng.permutation(len(corpus)) if corpus[j] not in found]
        run[query] = ranking([*found, *rest][:depth])
    return Benchmark(run, qrels, corpus)


def single_skewed(seed: int = 1) -> Benchmark:
    """One relevant document per query, a few of them popular."""
    return made(seed, sizes=(1,), n_docs=6, skew=1.5, depth=7)


def graded(seed: int = 2) -> Benchmark:
    """Several relevant documents per query, in three grades."""
    return made(seed, sizes=(1, 2, 3, 5), top_grade=3)


def odd(seed: int = 3) -> Benchmark:
    """Empty gold set, unanswered query, short and empty runs, absent gold, equal gold sets."""
    base = made(seed, n_queries=9, sizes=(2, 3, 1), top_grade=2)
    a, b, c, d, e, f, *_ = base.queries
    run, qrels = dict(base.run), dict(base.qrels)
    qrels[a] = {"d00": 0, "x01": -1}  # judged, nothing relevant
    del run[b]
    run[c] = ranking(list(run[c])[:2])
    qrels[d] = {**qrels[d], "gone": 2}
    qrels[e] = {"d01": 1, "d02": 2}
    qrels[f] = dict(qrels[e])
    run[f] = dict(run[e])
    return Benchmark(run, qrels, base.corpus)


def one_ranking(base: Benchmark) -> Benchmark:
    """The same rankings for all queries: a system that reads no query."""
    first = base.run[base.queries[0]]
    return replace(base, run={query: dict(first) for query in base.queries})


def crowded(seed: int = 4) -> Benchmark:
    """Popularity-skewed pool of 12 documents, up to all of them relevant: draws repeat often."""
    base = made(seed, n_queries=8, n_docs=12, sizes=(1, 1, 2, 4, 1, 11), top_grade=2, skew=2.0)
    run = dict(base.run)
    for i, query in enumerate(base.queries):
        if i % 3 == 0:  # the popular ones first
            run[query] = ranking([f"d{(i + j) % 12:02}" for j in range(5)])
    qrels = dict(base.qrels)
    qrels[base.queries[1]] = {f"d{i:02}": 1 + i % 2 for i in range(12)}
    return Benchmark(run, qrels, base.corpus)


ALL = {"single": single_skewed, "graded": graded, "odd": odd, "crowded": crowded}
