"""Null C: closed forms against every possible ranking, and against simulation."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from falsify_adapters.nulls import random_documents
from tests import naive
from tests.benchmarks_made import ALL, Benchmark, Gold, odd, ranking
from tests.same_draws import assert_same_distribution

CLOSED = [
    *("nDCG@4", "nDCG", "P@4", "R@4", "RR@4", "RR", "AP@4", "AP", "Success@4", "Rprec", "SetP"),
    *("SetR", "P(rel=2)@4", "RR(rel=2)", "AP(rel=2)@4", "nDCG(gains={1:1,2:5})@4"),
]
#: Six documents, of which the corpus may lack some; "gone" is relevant and not in the corpus.
GOLD: dict[str, Gold] = {
    "none": {},
    "one": {"d0": 1},
    "two": {"d0": 2, "d4": 1},
    "five": {"d0": 1, "d1": 2, "d2": 1, "d3": 2, "d4": 1},
    "all": {f"d{i}": 1 + i % 2 for i in range(6)},
    "gone": {"d1": 1, "gone": 2, "gone too": 1},
    "only gone": {"gone": 1},
}


@pytest.mark.parametrize("returned", [1, 2, 4, 6])
@pytest.mark.parametrize("measure", CLOSED)
def test_closed_forms_are_means_over_every_ranking(measure: str, returned: int) -> None:
    corpus = [f"d{i}" for i in range(6)]
    run = {query: ranking(corpus[:returned]) for query in GOLD}
    qrels = {query: gold or {"d0": 0} for query, gold in GOLD.items()}
    bench = Benchmark(run, qrels, corpus)
    p = bench.prepared(measure)
    null = random_documents(p.coded, p.kernel, p.own, 100, 0)
    every = [ranking(order) for order in itertools.permutations(corpus, returned)]
    expected = [
        naive.score_all(measure, [(one, bench.gold(q)) for one in every]).mean()
        for q in bench.queries
    ]
    np.testing.assert_allclose(null.query_means, expected, atol=1e-12)
    assert null.mean == pytest.approx(np.mean(expected))
    assert null.mean_error == 0
    np.testing.assert_allclose(null.influence, p.own - expected, atol=1e-12)


@pytest.mark.parametrize("kind", ALL)
def test_trials_are_draws_from_the_definition(kind: str) -> None:
    bench = ALL[kind]()
    measures = ["nDCG@5", "AP@5", "RR@5", "P(rel=2)@5", "Success@5"]
    expected = naive.random_runs(measures, bench, 5, 1000, 31)
    for measure in measures:
        p = bench.prepared(measure)
        null = random_documents(p.coded, p.kernel, p.own, 2000, 32)
        assert_same_distribution(null.trials, expected[measure].mean(axis=1))


@pytest.mark.parametrize("measure", ["SetF", "SetAP", "Compat(p=0.8)", "IPrec@0.1"])
def test_measures_without_a_closed_form_are_simulated(measure: str) -> None:
    bench = odd()
    expected = naive.random_runs([measure], bench, None, 1000, 33)[measure]
    p = bench.prepared(measure)
    null = random_documents(p.coded, p.kernel, p.own, 1000, 34)
    assert_same_distribution(null.trials, expected.mean(axis=1))
    assert null.mean == null.trials.mean()
    assert null.mean_error == pytest.approx(null.trials.std(ddof=1) / np.sqrt(1000))
    errors = np.hypot(expected.std(axis=0), expected.std(axis=0)) / np.sqrt(1000)
    assert (abs(null.query_means - expected.mean(axis=0)) <= 4 * errors + 1e-12).all()


def test_a_corpus_full_of_relevant_documents() -> None:
    # four of five documents relevant, three returned: at least two hits in every draw
    corpus = [f"d{i}" for i in range(5)]
    bench = Benchmark(
        {"q1": ranking(corpus[:3]), "q2": ranking(corpus)},
        {"q1": dict.fromkeys(corpus[:4], 1), "q2": dict.fromkeys(corpus, 1)},
        corpus,
    )
    p = bench.prepared("P@3")
    null = random_documents(p.coded, p.kernel, p.own, 3000, 1)
    assert null.mean == pytest.approx((0.8 + 1) / 2)
    expected = naive.random_runs(["P@3"], bench, 3, 1000, 2)["P@3"].mean(axis=1)
    assert_same_distribution(null.trials, expected)


def test_a_large_corpus_makes_chance_small_but_not_zero() -> None:
    bench = odd()
    evaluation = bench.evaluation()
    p = bench.prepared("nDCG@5")
    large = replace(p.coded, corpus_size=np.full_like(p.coded.corpus_size, 10_000_000))
    null = random_documents(large, p.kernel, p.own, 100, 0)
    small = random_documents(p.coded, p.kernel, p.own, 100, 0)
    ratio = evaluation.corpus_size / 10_000_000
    assert null.mean == pytest.approx(small.mean * ratio)


@pytest.mark.parametrize(("size", "gold", "drawn"), [(20, 5, 8), (12, 9, 6), (9, 4, 9), (50, 2, 3)])
def test_numbers_of_hits_are_hypergeometric(size: int, gold: int, drawn: int) -> None:
    corpus = [f"d{i:02}" for i in range(size)]
    bench = Benchmark(
        {"q": ranking(corpus[:drawn])}, {"q": dict.fromkeys(corpus[:gold], 1)}, corpus
    )
    p = bench.prepared(f"P@{drawn}")
    trials = random_documents(p.coded, p.kernel, p.own, 20_000, 3).trials * drawn
    for hits in range(drawn + 1):
        chance = stats.hypergeom(size, gold, drawn).pmf(hits)
        share = np.mean(trials.round() == hits)
        assert abs(share - chance) <= 5 * np.sqrt(chance * (1 - chance) / 20_000) + 1e-9
