"""Benchmarks and systems whose verdict is known beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np

from falsify_adapters.evaluation import Evaluation
from tests.benchmarks_made import Ranking, ranking

CORPUS_SIZE = 5000


def evaluation(run: dict[str, Ranking], gold: dict[str, Any], **names: Any) -> Evaluation:
    """Return an evaluation over a corpus of 5,000; `gold` gives one document or grades."""
    qrels = {q: docs if isinstance(docs, dict) else {docs: 1} for q, docs in gold.items()}
    held = {doc for docs in (*run.values(), *qrels.values()) for doc in docs}
    corpus = [*held, *(f"z{i:04}" for i in range(CORPUS_SIZE - len(held)))]
    return Evaluation.create(run, qrels, corpus_ids=corpus, **names)


def distinct_gold(n: int) -> dict[str, str]:
    """Each query has its own document."""
    return {f"q{i:03}": f"d{i:03}" for i in range(n)}


def right_for(n: int, share: float, seed: int = 0) -> Evaluation:
    """A system that finds the one relevant document of a share of the queries."""
    rng = np.random.default_rng(seed)
    gold = distinct_gold(n)
    hit = rng.permutation(n) < round(share * n)
    run = {
        query: ranking([doc if found else "x000", f"x{i:03}"])
        for i, ((query, doc), found) in enumerate(zip(gold.items(), hit, strict=True), 1)
    }
    return evaluation(run, gold)
