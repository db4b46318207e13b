"""Null D against its definition in plain Python, repeats and full gold sets included."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from falsify_adapters.gate.grading import grade
from falsify_adapters.gate.tie_range import tie_extremes
from falsify_adapters.measures import parse_measure
from falsify_adapters.nulls import (
    CrossMatrix,
    Pool,
    moved_popularity,
    permuted_gold,
    popularity_gold,
)
from falsify_adapters.results import GateConfig
from tests import naive
from tests.benchmarks_made import ALL, Benchmark, crowded, graded, made, ranking, single_skewed
from tests.same_draws import assert_same_distribution

MEASURES = ["nDCG@5", "P(rel=2)@3", "RR@5", "AP", "R@10", "Rprec", "SetP", "Success(rel=2)@5"]
N_TRIALS = 2000


@pytest.mark.parametrize("kind", ALL)
def test_trials_are_draws_from_the_definition(kind: str) -> None:
    bench = ALL[kind]()
    measures = [*MEASURES, "SetF"]
    expected = naive.label_trials(measures, bench, naive.popularity_draw, N_TRIALS, 21)
    for measure in measures:
        p = bench.prepared(measure)
        null = popularity_gold(p.cross, p.kernel, N_TRIALS, 22)
        assert_same_distribution(null.trials, expected[measure])
        error = np.hypot(null.mean_error, expected[measure].std() / np.sqrt(N_TRIALS))
        assert abs(null.mean - expected[measure].mean()) <= 4 * error + 1e-12
        assert null.query_means.mean() == pytest.approx(null.mean, abs=1e-12)


@pytest.mark.parametrize("size", [2, 5, 11, 12])
def test_repeats_are_redrawn_in_a_pool_of_twelve_documents(size: int) -> None:
    # eleven queries make one document popular; one query needs `size` of the twelve
    docs = [f"d{i:02}" for i in range(12)]
    qrels = {f"q{i:02}": {docs[0]: 1} for i in range(11)}
    qrels["q99"] = {doc: 1 + (i == 3) for i, doc in enumerate(docs[12 - size :])}
    qrels |= {f"r{i:02}": {doc: 1} for i, doc in enumerate(docs)}
    run = {query: ranking(docs[:1]) for query in qrels}
    run["q99"] = ranking([docs[0], docs[5], docs[11], docs[7]])
    bench = Benchmark(run, qrels, docs)
    for measure in ("R@5", "nDCG@5"):
        p = bench.prepared(measure)
        query = bench.queries.index("q99")
        null = popularity_gold(p.cross, p.kernel, 2000, 1)
        expected = naive.label_trials([measure], bench, naive.popularity_draw, 2000, 2)[measure]
        assert_same_distribution(null.trials, expected)
        if size == 12:  # all documents are drawn: only the grades are dealt
            everything = dict.fromkeys(docs, 1)
            if measure == "R@5":
                exact = naive.score_all(measure, [(run["q99"], everything)])[0]
                assert null.query_means[query] == pytest.approx(exact)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_chances_are_those_of_drawing_one_after_another(size: int) -> None:
    docs = [f"d{i}" for i in range(6)]
    qrels = {f"q{i}": {docs[min(i * i // 4, 5)]: 1} for i in range(6)}
    qrels["q8"] = dict.fromkeys(docs[6 - size :], 1)
    bench = Benchmark({q: ranking(docs) for q in qrels}, qrels, docs)
    p = bench.prepared("P@1")
    gold = sorted({d for g in qrels.values() for d in g})
    popularity = dict(zip(gold, p.coded.popularity, strict=True))
    pool = list(popularity)
    exact = dict.fromkeys(pool, 0.0)
    for order in itertools.permutations(pool, size):
        chance, left = 1.0, float(sum(popularity.values()))
        for doc in order:
            chance *= popularity[doc] / left
            left -= popularity[doc]
        for doc in order:
            exact[doc] += chance
    # one ranking per document: P@1 is 1 where that document was drawn
    for doc in pool:
        alone = Benchmark({q: ranking([doc]) for q in qrels}, qrels, docs).prepared("P@1")
        null = popularity_gold(alone.cross, alone.kernel, 20000, 3)
        drawn = null.query_means[bench.queries.index("q8")]
        assert drawn == pytest.approx(exact[doc], abs=4 * np.sqrt(0.25 / 20000))
        # the approximation behind the influence values
        chance = Pool(alone.coded, alone.coded.popularity).inclusion()
        approximate = chance.probability[chance.query == bench.queries.index("q8")]
        assert approximate == pytest.approx([exact[doc]], abs=0.03)


@pytest.mark.parametrize("measure", ["nDCG@3", "RR@5", "AP", "P@5", "Success@2", "SetF"])
def test_one_relevant_document_makes_d_equal_a(measure: str) -> None:
    p = single_skewed().prepared(measure)
    d = popularity_gold(p.cross, p.kernel, 100, 0)
    assert d.mean == pytest.approx(permuted_gold(p.cross, 100, 0).mean, abs=1e-14)
    assert d.mean_error == 0
    a = permuted_gold(p.cross, 100, 0).influence
    np.testing.assert_allclose(d.influence - d.influence.mean(), a - a.mean(), atol=1e-12)


def test_a_ranking_of_all_documents_leaves_nothing_to_fill_in() -> None:
    whole = made(4, n_queries=6, n_docs=9, sizes=(2, 5, 8), top_grade=1, depth=9)
    p = whole.prepared("nDCG@9")
    expected = naive.label_trials(["nDCG@9"], whole, naive.popularity_draw, N_TRIALS, 5)["nDCG@9"]
    assert_same_distribution(popularity_gold(p.cross, p.kernel, N_TRIALS, 6).trials, expected)


def test_chunks_do_not_change_the_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = crowded()
    expected = naive.label_trials(["nDCG@5"], bench, naive.popularity_draw, N_TRIALS, 5)["nDCG@5"]
    p = bench.prepared("nDCG@5")
    monkeypatch.setattr("falsify_adapters.nulls.popularity.CHUNK_DRAWS", 500)
    for name in ("FILLED_CELLS", "ALONE_CELLS", "TABLE_CELLS"):
        monkeypatch.setattr(f"falsify_adapters.nulls.urn.{name}", 500)
    null = popularity_gold(p.cross, p.kernel, N_TRIALS, 6)
    assert_same_distribution(null.trials, expected)


def test_a_large_pool_is_drawn_from_as_defined() -> None:
    bench = made(9, n_queries=40, n_docs=150, sizes=(1, 3, 20, 60), top_grade=2, depth=40)
    expected = naive.label_trials(["AP", "nDCG@10"], bench, naive.popularity_draw, 150, 7)
    for measure, theirs in expected.items():
        p = bench.prepared(measure)
        ours = popularity_gold(p.cross, p.kernel, 1000, 8)
        assert_same_distribution(ours.trials, theirs)


@pytest.mark.parametrize("measure", ["nDCG@5", "AP", "RR", "Success@3", "Rprec", "SetP", "SetF"])
def test_a_run_without_any_relevant_document_scores_0(measure: str) -> None:
    bench = graded()
    unhit = Benchmark({q: ranking(["x00"]) for q in bench.queries}, bench.qrels, bench.corpus)
    p = unhit.prepared(measure)
    null = popularity_gold(p.cross, p.kernel, 100, 0)
    assert null.mean == 0
    assert not null.trials.any()
    assert not null.influence.any()


@pytest.mark.parametrize("kind", ["graded", "crowded"])
def test_drawn_gold_sets_are_complete(kind: str) -> None:
    # rankings that hold every document find every gold set whole, however late its last draw came
    bench = ALL[kind]()
    whole = Benchmark({q: ranking(bench.corpus) for q in bench.queries}, bench.qrels, bench.corpus)
    p = whole.prepared("R@20")
    trials = popularity_gold(p.cross, p.kernel, 5000, 1).trials
    assert trials.max() == pytest.approx(1)
    assert (trials < 1 - 1e-9).mean() < 0.002


def turned_round(bench: Benchmark, queries: list[str]) -> Benchmark:
    run = {query: ranking(list(bench.run[query])[::-1]) for query in queries}
    return replace(bench, run={**bench.run, **run})


@pytest.mark.parametrize("measure", ["nDCG@5", "RR@5", "AP", "Success@3"])
def test_another_order_moves_the_null_as_drawing_again_would(measure: str) -> None:
    bench = made(5, n_queries=60, n_docs=30, sizes=(1, 1, 1, 2, 4), skew=1.5, depth=10)
    some = [query for query in bench.queries if len(bench.qrels[query]) == 1]
    some.append(next(query for query in bench.queries if len(bench.qrels[query]) == 2))
    before, after = bench.prepared(measure), turned_round(bench, some).prepared(measure)
    known = popularity_gold(before.cross, before.kernel, 300, 1)
    moved = moved_popularity(after.cross, after.kernel, known, before.coded)
    again = popularity_gold(after.cross, after.kernel, 5000, 2)
    assert moved is not None
    error = np.hypot(known.mean_error, again.mean_error)
    assert abs(known.mean - again.mean) > 0.02 + 4 * error
    assert abs(moved.mean - again.mean) < 4 * error
    assert np.abs(moved.query_means - again.query_means).max() < 0.02 + 4 * np.sqrt(0.25 / 300)
    trial_error = again.trials.std() / np.sqrt(300)
    assert abs(moved.trials.mean() - again.trials.mean()) < 4 * trial_error
    np.testing.assert_allclose(moved.influence, again.influence, atol=1e-12)


@pytest.mark.parametrize("measure", ["nDCG@5", "RR@5", "Success@3"])
def test_a_move_that_the_closed_form_cannot_tell_is_drawn_again(measure: str) -> None:
    bench = made(5, n_queries=12, n_docs=30, sizes=(1, 2, 4), skew=1.5, depth=10)
    turned = turned_round(bench, bench.queries)
    before, after = bench.prepared(measure), turned.prepared(measure)
    known = popularity_gold(before.cross, before.kernel, 5000, 1)
    assert moved_popularity(after.cross, after.kernel, known, before.coded) is None


def test_both_ends_of_tied_runs_have_the_null_of_their_own_order() -> None:
    bench = made(5, n_queries=40, n_docs=30, sizes=(1, 2, 4), skew=1.5, depth=10)
    tied = replace(
        bench, run={query: dict.fromkeys(docs, 1.0) for query, docs in bench.run.items()}
    )
    evaluation, measure, config = (
        tied.evaluation(),
        parse_measure("RR@5"),
        GateConfig(n_trials=5000),
    )
    extremes = tie_extremes(evaluation, measure, grade(evaluation, measure, config), config)
    assert extremes is not None
    for graded_so in (extremes.worst, extremes.best):
        ours, cross = graded_so.draws["D"], CrossMatrix(graded_so.coded, graded_so.kernel)
        again = popularity_gold(cross, graded_so.kernel, 5000, 2)
        assert abs(ours.mean - again.mean) < 4 * np.hypot(ours.mean_error, again.mean_error)
        c = graded_so.draws["C"]
        np.testing.assert_allclose(c.influence, graded_so.own - c.query_means)
