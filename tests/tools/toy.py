"""A small benchmark of our own that every tool is run on. Needs nothing but Python."""

from __future__ import annotations

import random

N, N_DOCS, K = 40, 60, 5
QUERIES = {f"q{i}": f"question number {i} about thing {i % 7}" for i in range(N)}
CORPUS = {f"d{i}": f"passage {i} says that thing {i % 7} is {i * i}" for i in range(N_DOCS)}
#: One right document, and a second one for every third query.
GOLD = {f"q{i}": [f"d{i}", f"d{i + 10}"][: 2 if i % 3 == 0 else 1] for i in range(N)}


def ranking(query_id: str) -> list[str]:
    """Return five documents: for two thirds of the queries a right one is among them."""
    rng = random.Random(query_id)
    found = rng.sample(sorted(CORPUS), K)
    if rng.random() < 2 / 3 and GOLD[query_id][0] not in found:
        found[rng.randrange(K)] = GOLD[query_id][0]
    return found


RANKED = {query_id: ranking(query_id) for query_id in QUERIES}
