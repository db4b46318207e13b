"""Benchmarks and runs drawn from known processes, straight into integer codes.

A process says how many relevant documents a query has, how popular documents are, and how well
the system finds them. Every call draws fresh queries, so that the expected delta over benchmarks
of one size can be had to any precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from falsify_adapters.coded import Coded
from falsify_adapters.frames import rank_in_query
from falsify_adapters.kernels import Kernel
from falsify_adapters.measures import make_kernel, parse_measure

DEPTH = 10
CORPUS_SIZE = 5000
MOST_DOCUMENTS = 1_000_000


@dataclass(frozen=True)
class Gold:
    """Relevant documents as flat rows, sorted by query and document, without repeats."""

    n_queries: int
    query: np.ndarray
    doc: np.ndarray
    grade: np.ndarray


@dataclass(frozen=True)
class Process:
    """How benchmarks and runs come about.

    Parameters
    ----------
    name, measure : str
        What it is called, and the measure that scores it.
    weight : ndarray, shape (n_docs,)
        Popularity of the documents that can be relevant, from the most popular down.
    count : callable
        ``(rng, n) -> draws per query`` (repeats are dropped).
    grades : tuple of float
        Chances of the grades 1, 2, ...
    ability : callable
        ``(rng, n) -> chance per query`` that the system finds a relevant document.
    place : float
        Mean of the exponential rank offset of what it finds; 0 puts it at the top, best first.
    filler : {"popular", "foreign"}
        Other documents: drawn by popularity, or documents that nobody asks for.
    """

    name: str
    measure: str
    weight: np.ndarray = field(repr=False)
    count: Callable[[np.random.Generator, int], np.ndarray]
    ability: Callable[[np.random.Generator, int], np.ndarray]
    grades: tuple[float, ...] = (1.0,)
    place: float = 2.0
    filler: str = "popular"

    def gold(self, rng: np.random.Generator, n: int) -> Gold:
        """Draw the queries' relevant documents."""
        count = self.count(rng, n)
        query = np.repeat(np.arange(n), count)
        key = np.unique(query * len(self.weight) + by_weight(rng, self.weight, len(query)))
        grade = 1 + rng.choice(len(self.grades), p=self.grades, size=len(key))
        return Gold(n, key // len(self.weight), key % len(self.weight), grade)

    def run(self, rng: np.random.Generator, gold: Gold) -> tuple[np.ndarray, ...]:
        """Draw the system's candidates: query, sort key (low is good), document."""
        n = gold.n_queries
        found = rng.random(len(gold.query)) < self.ability(rng, n)[gold.query]
        key = -1.0 - gold.grade + rng.exponential(1.0, len(gold.grade)) * 0.5
        if self.place:
            key = rng.exponential(self.place, len(gold.query))
        filler = popularity_sample(rng, self.weight, n) if self.filler == "popular" else ()
        return joined((gold.query[found], key[found], gold.doc[found]), filler)

    def draw(self, rng: np.random.Generator, n: int) -> Coded:
        """Draw a fresh benchmark of `n` queries with the system's run."""
        gold = self.gold(rng, n)
        return coded(gold, self.run(rng, gold))

    def able(self, share: float) -> Process:
        """Return the same process with a system that finds `share` times as much."""
        return replace(self, ability=lambda rng, n: share * self.ability(rng, n))

    def kernel(self, benchmark: Coded) -> Kernel:
        """Return the measure for one benchmark."""
        return make_kernel(parse_measure(self.measure), benchmark.profiles)


def zipf(n_docs: int, exponent: float) -> np.ndarray:
    """Return popularity weights that fall with a power of the rank."""
    return np.arange(1.0, n_docs + 1) ** -exponent


def by_weight(rng: np.random.Generator, weight: np.ndarray, size: int) -> np.ndarray:
    """Draw document numbers in proportion to their weight."""
    ladder = np.cumsum(weight)
    return np.searchsorted(ladder, rng.random(size) * ladder[-1], side="right")


def popularity_sample(rng: np.random.Generator, weight: np.ndarray, n: int) -> tuple[Any, ...]:
    """Draw DEPTH documents by popularity for each query: a system that never reads it."""
    doc = by_weight(rng, weight, n * DEPTH)
    return np.repeat(np.arange(n), DEPTH), np.tile(np.arange(DEPTH, dtype=float), n), doc


def uniform_sample(rng: np.random.Generator, n: int) -> tuple[Any, ...]:
    """Draw DEPTH documents of the corpus for each query."""
    doc = rng.integers(0, CORPUS_SIZE, n * DEPTH)
    return np.repeat(np.arange(n), DEPTH), np.tile(np.arange(DEPTH, dtype=float), n), doc


def same_for_all(docs: np.ndarray, n: int) -> tuple[Any, ...]:
    """Return one ranking for each of `n` queries."""
    k = len(docs)
    return np.repeat(np.arange(n), k), np.tile(np.arange(k, dtype=float), n), np.tile(docs, n)


def joined(*parts: tuple[Any, ...]) -> tuple[Any, ...]:
    """Join candidate lists."""
    full = [part for part in parts if len(part)]
    return tuple(np.concatenate(column) for column in zip(*full, strict=True))


def ranked(candidates: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rank the candidates (low keys first, repeats dropped): query, rank, document."""
    query, key, doc = candidates
    order = np.lexsort((key, query))
    query, doc = query[order], doc[order]
    _, first = np.unique(query * MOST_DOCUMENTS + doc, return_index=True)
    keep = np.sort(first)
    query, doc = query[keep], doc[keep]
    rank = rank_in_query(query)
    top = rank <= DEPTH
    return query[top], rank[top], doc[top]


def coded(gold: Gold, candidates: tuple[Any, ...]) -> Coded:
    """Rank the candidates and return the integer codes of the evaluation."""
    query, rank, doc = ranked(candidates)
    names, gold_doc = np.unique(gold.doc, return_inverse=True)
    place = np.minimum(np.searchsorted(names, doc), len(names) - 1)
    entry = names[place] == doc
    return Coded(
        n_queries=gold.n_queries,
        n_docs=len(names),
        corpus_size=np.full(gold.n_queries, CORPUS_SIZE),
        # what is missing in a list are documents that nobody asks for
        returned=np.full(gold.n_queries, DEPTH),
        entry_query=query[entry],
        entry_rank=rank[entry],
        entry_doc=place[entry],
        gold_start=np.r_[0, np.cumsum(np.bincount(gold.query, minlength=gold.n_queries))],
        gold_doc=gold_doc,
        gold_grade=gold.grade,
        gold_present=np.ones(len(gold_doc), dtype=bool),
    )


def lists(
    n: int, candidates: tuple[Any, ...], first_filler: int = CORPUS_SIZE - DEPTH
) -> list[list[int]]:
    """Return the rankings as lists; gaps hold documents that nobody asks for."""
    table = np.tile(np.arange(first_filler, first_filler + DEPTH), (n, 1))
    query, rank, doc = ranked(candidates)
    table[query, rank - 1] = doc
    return table.tolist()


def _always(chance: float) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, n: np.full(n, chance)


def _one(rng: np.random.Generator, n: int) -> np.ndarray:
    del rng
    return np.ones(n, dtype=np.int64)


SINGLE = Process("single gold, skewed", "nDCG@10", zipf(300, 1.0), _one, _always(0.5))
GRADED = Process(
    "multi gold, graded",
    "nDCG@10",
    zipf(800, 0.8),
    count=lambda rng, n: rng.geometric(0.12, n),
    ability=lambda rng, n: rng.beta(2.0, 3.0, n),
    grades=(0.6, 0.3, 0.1),
)
HEAVY = Process(
    "heavy tails",
    "AP@10",
    zipf(800, 0.8),
    count=lambda rng, n: np.clip(rng.lognormal(1.0, 1.3, n), 1, 60).astype(np.int64),
    ability=lambda rng, n: rng.beta(0.15, 0.6, n),
)
RARE_WINS = Process(
    "rare wins", "RR@10", zipf(300, 0.5), _one, _always(0.03), place=0.0, filler="foreign"
)
RARE_LOSSES = replace(RARE_WINS, name="rare losses", ability=_always(0.97))
NEAR_0 = Process(
    "scores near 0",
    "R@10",
    zipf(800, 0.5),
    count=lambda rng, n: np.full(n, 20),
    ability=_always(0.01),
    filler="foreign",
)
NEAR_1 = Process(
    "scores near 1",
    "nDCG@10",
    zipf(800, 0.5),
    count=lambda rng, n: np.full(n, 3),
    ability=_always(0.999),
    grades=(0.5, 0.3, 0.2),
    place=0.0,
    filler="foreign",
)
PROCESSES = (SINGLE, GRADED, HEAVY, RARE_WINS, RARE_LOSSES, NEAR_0, NEAR_1)
#: Where coverage may fall short: the report warns about benchmarks that look like these.
RARE = frozenset({"rare wins", "rare losses", "scores near 0", "scores near 1"})
