"""What the nulls are by definition, in plain loops, scored by ir-measures itself."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

import ir_measures
import numpy as np

from falsify_adapters.frames import FloatArray
from tests.benchmarks_made import Benchmark, Gold, Ranking, ranking


def measure_of(measure: str | Any) -> Any:
    return ir_measures.parse_measure(measure) if isinstance(measure, str) else measure


def positive(run: Mapping[str, float]) -> Ranking:
    """Return the same ranking with scores above 0, as real systems give them."""
    return {doc: score + 1000.0 for doc, score in run.items()}


def aggregate(measure: str | Any, run: Mapping[str, Ranking], gold: Mapping[str, Gold]) -> float:
    """Return ir-measures' aggregate over all queries of `gold`, the empty sets as 0."""
    # gdeval reads numbers only; a judgement of grade 0 keeps a query without gold in the mean
    number = {query: str(i) for i, query in enumerate(sorted(gold))}
    qrels = {number[query]: {**docs, "never": 0} for query, docs in gold.items()}
    runs = {number[query]: positive(docs) for query, docs in run.items() if query in number}
    parsed = measure_of(measure)
    return float(ir_measures.calc_aggregate([parsed], qrels, runs)[parsed])


def score_all(measure: str | Any, cases: Iterable[tuple[Ranking, Gold]]) -> FloatArray:
    """Return ir-measures' score of each (ranking, gold set)."""
    pairs = list(cases)
    qrels = {str(i): {**gold, "never": 0} for i, (_, gold) in enumerate(pairs)}
    run = {str(i): positive(docs) for i, (docs, _) in enumerate(pairs) if docs}
    values = {
        metric.query_id: metric.value
        for metric in ir_measures.iter_calc([measure_of(measure)], qrels, run)
    }
    return np.array([values.get(str(i), 0.0) for i in range(len(pairs))])


def cross_matrix(measure: str | Any, bench: Benchmark) -> FloatArray:
    """Return M[i, j]: ranking of query i against the gold set of query j."""
    queries = bench.queries
    cases = [(bench.run.get(i, {}), bench.gold(j)) for i in queries for j in queries]
    return score_all(measure, cases).reshape(len(queries), len(queries))


def distinct_sets(bench: Benchmark) -> list[Gold]:
    sets = {tuple(sorted(bench.gold(query).items())) for query in bench.queries}
    return [dict(one) for one in sorted(sets) if one]


def popularity_draw(bench: Benchmark, rng: random.Random) -> dict[str, Gold]:
    """Null D's definition: draw from the list of all pairs, redraw repeats, deal the grades."""
    tickets = [doc for query in bench.queries for doc in bench.gold(query)]
    drawn = {}
    for query in bench.queries:
        grades = list(bench.gold(query).values())
        docs: list[str] = []
        while len(docs) < len(grades):
            doc = rng.choice(tickets)
            if doc not in docs:
                docs.append(doc)
        rng.shuffle(grades)
        drawn[query] = dict(zip(docs, grades, strict=True))
    return drawn


def uniform_draw(bench: Benchmark, rng: random.Random) -> dict[str, Gold]:
    """Null B's definition: each query gets one of the distinct gold sets."""
    sets = distinct_sets(bench)
    return {query: rng.choice(sets) for query in bench.queries}


def permuted_draw(bench: Benchmark, rng: random.Random) -> dict[str, Gold]:
    """Null A's definition: the gold sets permuted over the queries."""
    donors = bench.queries[:]
    rng.shuffle(donors)
    return {q: bench.gold(donor) for q, donor in zip(bench.queries, donors, strict=True)}


def renamed_draw(bench: Benchmark, rng: random.Random) -> dict[str, Gold]:
    """Null A with labels: a bijection over the gold documents."""
    docs = sorted({doc for query in bench.queries for doc in bench.gold(query)})
    names = docs[:]
    rng.shuffle(names)
    rename = dict(zip(docs, names, strict=True))
    return {q: {rename[d]: g for d, g in bench.gold(q).items()} for q in bench.queries}


def frequent_draw(bench: Benchmark, rng: random.Random) -> dict[str, Gold]:
    """Null D with whole sets: each query gets the gold set of a random query."""
    return {query: bench.gold(rng.choice(bench.queries)) for query in bench.queries}


def label_trials(
    measures: Iterable[str], bench: Benchmark, draw: Any, n_trials: int, seed: int
) -> dict[str, FloatArray]:
    """Return the benchmark's score in each trial of a null that draws gold sets."""
    rng = random.Random(seed)
    draws = [draw(bench, rng) for _ in range(n_trials)]
    # the same query meets the same gold set in many trials: each pair is scored once
    keys = [(q, tuple(sorted(gold[q].items()))) for gold in draws for q in bench.queries]
    pairs = sorted(set(keys))
    place = {pair: i for i, pair in enumerate(pairs)}
    where = np.array([place[key] for key in keys]).reshape(n_trials, -1)
    cases = [(bench.run.get(q, {}), dict(gold)) for q, gold in pairs]
    return {measure: score_all(measure, cases)[where].mean(axis=1) for measure in measures}


def random_runs(
    measures: Iterable[str], bench: Benchmark, cutoff: int | None, n_trials: int, seed: int
) -> dict[str, FloatArray]:
    """Null C's definition: as many random documents as the run returned within the cutoff.

    Returns scores of shape (n_trials, n_queries).
    """
    rng = random.Random(seed)
    depth = {q: len(list(bench.run.get(q, {}))[:cutoff]) for q in bench.queries}
    cases = [
        (ranking(rng.sample(bench.corpus, depth[query])), bench.gold(query))
        for _ in range(n_trials)
        for query in bench.queries
    ]
    return {
        measure: score_all(measure, cases).reshape(n_trials, len(bench.queries))
        for measure in measures
    }
