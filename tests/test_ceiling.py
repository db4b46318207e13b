"""The query-blind ceiling against public figures, ir-measures, and brute force."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsify_adapters import (
    Evaluation,
    GateConfig,
    InputError,
    MeasureError,
    UsageError,
    held_out_ceiling,
    query_blind_ceiling,
    read_qrels,
    run_gate,
)
from falsify_adapters.measures import parse_measure

Qrels = dict[str, dict[str, int]]

#: nDCG@10 of the best constant ranking, and held out (issue 6; mean of 20 random halves).
FIGURES = {
    "bright-pony": (0.9408, 0.93),
    "climate-fever": (0.2513, 0.25),
    "trec-covid": (0.1641, 0.09),
    "nfcorpus": (0.0756, 0.066),
    "scifact": (0.0488, 0.010),
}
EXACT = ["nDCG@2", "nDCG", "P@2", "P(rel=2)@3", "R@3", "R(rel=2)@2", "SetR", "SetP"]
BOUNDED = [
    "AP",
    "AP@2",
    "AP(rel=2)",
    "RR",
    "RR@2",
    "RR(rel=2)@3",
    "Success@1",
    "Success@2",
    "Rprec",
]
#: Only ir-measures knows these.
FOREIGN = ["SetF", "SetAP", "IPrec@0.5"]
DOCS = ("d0", "d1", "d2", "d3", "d4")


@st.composite
def small_qrels(draw: st.DrawFn, max_queries: int = 5) -> Qrels:
    """Qrels over five documents with grades 0 to 3; the first query has a relevant document."""
    n_queries = draw(st.integers(1, max_queries))
    grades = st.integers(0, 3)
    qrels = {
        f"q{i}": draw(st.dictionaries(st.sampled_from(DOCS), grades, min_size=1, max_size=5))
        for i in range(n_queries)
    }
    qrels["q0"][draw(st.sampled_from(DOCS))] = draw(st.integers(1, 3))
    return qrels


def constant_run(qrels: Qrels, ranking: Any) -> dict[str, dict[str, float]]:
    scores = {doc_id: float(len(ranking) - rank) for rank, doc_id in enumerate(ranking)}
    return dict.fromkeys(qrels, scores)


def score(measure: Any, qrels: Qrels, run: dict[str, dict[str, float]]) -> float:
    return float(ir_measures.calc_aggregate([measure], qrels, run)[measure])


def brute_force(measure: Any, qrels: Qrels, docs: tuple[str, ...] = DOCS) -> float:
    """Score every ranking of the documents: of all of them, and shorter ones where depth counts."""
    depths = range(1, len(docs) + 1) if measure.NAME.startswith("Set") else [len(docs)]
    rankings = (order for depth in depths for order in itertools.permutations(docs, depth))
    return max(score(measure, qrels, constant_run(qrels, ranking)) for ranking in rankings)


@pytest.mark.parametrize("name", FIGURES)
def test_public_qrels_have_the_published_ceilings(data_dir: Path, name: str) -> None:
    qrels = read_qrels(data_dir / "qrels" / f"{name}.qrels").frame
    ceiling = query_blind_ceiling(qrels)
    assert (ceiling.kind, ceiling.upper) == ("exact", ceiling.score)
    assert round(ceiling.score, 4) == FIGURES[name][0]
    held_out = held_out_ceiling(qrels, repeats=100)
    error = np.std(held_out.scores, ddof=1) / math.sqrt(20)  # of the mean of 20, as published
    digits = 0.5 * 10.0 ** -(len(str(FIGURES[name][1])) - 2)
    assert abs(held_out.score - FIGURES[name][1]) < 2.5 * error + digits


@pytest.mark.parametrize("name", EXACT)
@given(qrels=small_qrels(max_queries=4))
@settings(max_examples=8, deadline=None)
def test_exact_measures_reach_the_best_of_all_rankings(name: str, qrels: Qrels) -> None:
    measure = parse_measure(name)
    ceiling = query_blind_ceiling(qrels, measure)
    assert ceiling.kind == "exact"
    assert ceiling.score == pytest.approx(brute_force(measure, qrels), abs=1e-12)


@pytest.mark.parametrize("name", BOUNDED + FOREIGN)
@given(qrels=small_qrels(max_queries=4))
@settings(max_examples=8, deadline=None)
def test_other_measures_lie_between_their_bounds(name: str, qrels: Qrels) -> None:
    measure = parse_measure(name)
    ceiling = query_blind_ceiling(qrels, measure)
    best = brute_force(measure, qrels)
    assert ceiling.score <= best + 1e-9
    assert best <= ceiling.upper + 1e-9
    if ceiling.kind == "exact":
        assert ceiling.score == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("name", [*EXACT, *BOUNDED, *FOREIGN])
@given(qrels=small_qrels())
@settings(max_examples=15, deadline=None)
def test_the_ranking_scores_the_ceiling_through_ir_measures(name: str, qrels: Qrels) -> None:
    measure = parse_measure(name)
    ceiling = query_blind_ceiling(qrels, measure)
    # without a relevant document for the measure there is nothing to rank
    ranking = ceiling.ranking or ("stranger",)
    reached = score(measure, qrels, constant_run(qrels, ranking))
    assert ceiling.score == pytest.approx(reached, abs=1e-12)


@pytest.mark.parametrize(
    "measure", ["nDCG@10", "P@5", "R@100", "AP@20", "RR@10", "Success@5", "Rprec"]
)
def test_the_ranking_of_real_qrels_scores_the_ceiling(data_dir: Path, measure: str) -> None:
    frame = read_qrels(data_dir / "nfcorpus" / "qrels" / "test.tsv").frame
    ceiling = query_blind_ceiling(frame, measure)
    qrels: Qrels = {}
    for query_id, doc_id, grade in frame.itertuples(index=False):
        qrels.setdefault(query_id, {})[doc_id] = grade
    reached = score(parse_measure(measure), qrels, constant_run(qrels, ceiling.ranking))
    assert ceiling.score == pytest.approx(reached, abs=1e-12)


def exact_inclusion(weights: tuple[int, ...], count: int) -> list[float]:
    """Chance of each document to be among `count` successive draws, by following every draw."""
    chance = [0.0] * len(weights)

    def follow(taken: tuple[int, ...], probability: float, left: int) -> None:
        if len(taken) == count:
            for document in taken:
                chance[document] += probability
            return
        for document, weight in enumerate(weights):
            if document not in taken:
                follow((*taken, document), probability * weight / left, left - weight)

    follow((), 1.0, sum(weights))
    return chance


def drawn_mean(measure: Any, qrels: Qrels, run: dict[str, dict[str, float]]) -> float:
    """E[D] of a run: every draw of gold documents and every deal of grades, by ir-measures."""
    gold = {q: [g for g in row.values() if g > 0] for q, row in qrels.items()}
    weights: dict[str, int] = {}
    for row in qrels.values():
        for doc_id, grade in row.items():
            if grade > 0:
                weights[doc_id] = weights.get(doc_id, 0) + 1
    cases: list[tuple[str, float, str]] = []
    drawn_qrels: Qrels = {}
    drawn_run = {}
    for query_id, grades in gold.items():
        deals = sorted(set(itertools.permutations(grades)))
        for docs in itertools.permutations(weights, len(grades)):
            probability, left = 1.0, sum(weights.values())
            for doc_id in docs:
                probability *= weights[doc_id] / left
                left -= weights[doc_id]
            for deal in deals:
                name = f"c{len(cases)}"
                cases.append((name, probability / len(deals), query_id))
                drawn_qrels[name] = dict(zip(docs, deal, strict=True))
                if query_id in run:
                    drawn_run[name] = run[query_id]
    values = {m.query_id: m.value for m in ir_measures.iter_calc([measure], drawn_qrels, drawn_run)}
    return sum(p * values.get(name, 0.0) for name, p, query in cases if gold[query]) / len(qrels)


@pytest.mark.parametrize(
    "name", ["nDCG@2", "R@2", "P@3", "SetP", "AP@3", "RR", "Success@2", "Rprec"]
)
@given(data=st.data())
@settings(max_examples=8, deadline=None)
def test_no_run_exceeds_its_bounds(name: str, data: st.DataObject) -> None:
    measure = parse_measure(name)
    qrels = data.draw(small_qrels(max_queries=4))
    for row in qrels.values():  # few enough draws to follow all of them
        for doc_id in list(row)[3:]:
            del row[doc_id]
    qrels["q0"]["d0"] = 1
    run = {
        query_id: {
            doc_id: -float(rank) for rank, doc_id in enumerate(data.draw(st.permutations(DOCS)))
        }
        for query_id in qrels
    }
    bounds = query_blind_ceiling(qrels, measure).bounds
    pairs = {(i, j): score(measure, {"q": qrels[j]}, {"q": run[i]}) for i in qrels for j in qrels}
    assert sum(pairs.values()) / len(qrels) ** 2 <= bounds["A"].value + 1e-9
    sets = {tuple(sorted((d, g) for d, g in row.items() if g > 0)): j for j, row in qrels.items()}
    sets.pop((), None)
    of_sets = [pairs[i, j] for i in qrels for j in sets.values()]
    assert sum(of_sets) / len(of_sets) <= bounds["B"].value + 1e-9
    assert drawn_mean(measure, qrels, run) <= bounds["D"].value + 1e-9


@given(qrels=small_qrels(max_queries=4))
@settings(max_examples=15, deadline=None)
def test_the_popularity_order_is_the_best_run_against_null_d(qrels: Qrels) -> None:
    """Whatever the numbers of gold documents and the grades: E[D] is largest for that order."""
    for row in qrels.values():
        for doc_id in list(row)[3:]:
            del row[doc_id]
    qrels["q0"]["d0"] = 1
    popularity = {d: sum(row.get(d, 0) > 0 for row in qrels.values()) for d in DOCS}
    order = sorted(DOCS, key=lambda d: -popularity[d])
    measure = parse_measure("nDCG@2")
    by_popularity = drawn_mean(measure, qrels, constant_run(qrels, order))
    for ranking in itertools.permutations(DOCS, 2):
        other = drawn_mean(measure, qrels, constant_run(qrels, ranking))
        assert other <= by_popularity + 1e-12


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=6),
    st.integers(1, 5),
)
@settings(deadline=None)
def test_the_chances_of_popular_documents_are_bounded(weights: list[int], count: int) -> None:
    from falsify_adapters.blind import top_chances

    count = min(count, len(weights))
    weights = sorted(weights, reverse=True)
    exact = exact_inclusion(tuple(weights), count)
    assert (np.diff(exact) <= 1e-12).all()
    bound = top_chances(np.array(weights), np.array([count]), len(weights))[count]
    assert (np.cumsum(exact) <= bound + 1e-10).all()
    if count in (1, len(weights)):
        assert bound == pytest.approx(np.cumsum(exact), abs=1e-9)


def test_the_bound_for_d_is_tight_on_real_qrels(data_dir: Path) -> None:
    """Within 3 percent of a simulation of the draw, on NFCorpus."""
    from falsify_adapters.blind import top_chances
    from falsify_adapters.coded import code_qrels

    frame = read_qrels(data_dir / "qrels" / "nfcorpus.qrels").frame
    coded, _ = code_qrels(frame, 1)
    popularity = np.sort(coded.popularity)[::-1]
    rng = np.random.default_rng(0)
    for count in (16, 72, 475):
        arrival = rng.exponential(size=(2000, len(popularity))) / popularity
        last = np.partition(arrival, count - 1, axis=1)[:, [count - 1]]
        drawn = (arrival[:, :10] <= last).sum(axis=1)
        bound = top_chances(popularity, np.array([count]), 10)[count][-1]
        error = drawn.std() / math.sqrt(len(drawn))
        assert drawn.mean() - 4 * error <= bound <= 1.03 * drawn.mean() + 4 * error


def test_no_null_mean_of_a_real_run_exceeds_its_bound(data_dir: Path) -> None:
    qrels = read_qrels(data_dir / "nfcorpus" / "qrels" / "test.tsv").frame
    ceiling = query_blind_ceiling(qrels)
    queries: Qrels = {query_id: {} for query_id in qrels["query_id"].cat.categories}
    run = constant_run(queries, ceiling.ranking)
    report = run_gate(
        Evaluation.create(run, qrels, corpus_size=3633), "nDCG@10", GateConfig(companion=False)
    )
    assert report.nulls["A"].mean == pytest.approx(ceiling.bounds["A"].value, abs=1e-12)
    for name in "BD":
        assert report.nulls[name].mean <= ceiling.bounds[name].value + 1e-12


def test_documents_that_the_corpus_lacks_are_in_no_ranking() -> None:
    qrels = {"q1": {"gone": 1, "d1": 1}, "q2": {"gone": 1}, "q3": {"gone": 1}}
    whole = query_blind_ceiling(qrels, "R@1")
    without = query_blind_ceiling(qrels, "R@1", absent_gold=frozenset({"gone"}))
    assert (whole.ranking, without.ranking) == (("gone",), ("d1",))
    # the missing document still counts as one that should have been found
    assert without.score == pytest.approx(0.5 / 3)
    assert without.bounds["D"].value >= 0.5 / 3


def test_all_relevant_documents_missing_leaves_a_ceiling_of_zero() -> None:
    ceiling = query_blind_ceiling({"q1": {"d1": 1}}, "nDCG@10", absent_gold=frozenset({"d1"}))
    assert (ceiling.score, ceiling.ranking) == (0.0, ())
    assert math.isnan(ceiling.top_share)
    assert ceiling.to_dict()["top_share"] is None


def test_one_document_for_everybody_is_a_ceiling_of_one() -> None:
    ceiling = query_blind_ceiling({f"q{i}": {"d": 1} for i in range(7)}, "RR@10")
    assert (ceiling.score, ceiling.kind, ceiling.top_share) == (1.0, "exact", 1.0)
    assert (ceiling.effective_documents, ceiling.largest_popularity) == (1.0, 7)


def test_equally_popular_documents_are_all_effective() -> None:
    ceiling = query_blind_ceiling({f"q{i}": {f"d{i}": 1} for i in range(8)}, "nDCG@10")
    assert ceiling.effective_documents == pytest.approx(8)
    assert {bound.kind for bound in ceiling.bounds.values()} == {"exact"}


def test_the_ceiling_is_the_same_whatever_the_order_of_rows() -> None:
    rows = [ir_measures.Qrel(f"q{i % 9}", f"d{i % 5}{i % 2}", 1 + i % 2) for i in range(45)]
    first = query_blind_ceiling(rows, "AP@3")
    assert query_blind_ceiling(rows[::-1], "AP@3").to_dict() == first.to_dict()


def test_a_result_is_plain_in_json_and_a_table_in_a_notebook() -> None:
    ceiling = query_blind_ceiling({"q1": {"d1": 1}, "q2": {"d2": 1}}, "AP")
    figures = ceiling.to_dict()
    assert figures["bounds"]["A"]["kind"] == "exact"
    assert figures["ranking"] == ["d1", "d2"]
    assert "<table" in ceiling._repr_html_()


@pytest.mark.parametrize(
    ("qrels", "measure", "error"),
    [
        ({"q1": {"d1": 0}}, "nDCG@10", InputError),
        ({}, "nDCG@10", InputError),
        ({"q1": {"d1": 1}}, "Bpref", MeasureError),
        ({"q1": {"d1": 1}}, "nonsense@3", MeasureError),
    ],
)
def test_what_has_no_ceiling_is_refused(qrels: Qrels, measure: str, error: type) -> None:
    with pytest.raises(error):
        query_blind_ceiling(qrels, measure)


def test_held_out_from_other_queries() -> None:
    qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}}
    fit = {"a": {"d2": 1, "new": 1}, "b": {"d2": 1}}
    assert held_out_ceiling(qrels, "R@1", fit=fit).score == 0.5
    # a document that only the other queries know takes a rank all the same
    assert (
        held_out_ceiling(qrels, "RR@2", fit={"a": {"new": 1}, "b": {"new": 1, "d1": 1}}).score
        == 0.25
    )


def test_held_out_is_the_mean_over_halves_that_nobody_else_computed() -> None:
    qrels: Qrels = {f"q{i}": {f"d{i % 3}": 1 + i % 2, "all": 1} for i in range(11)}
    measure = parse_measure("nDCG@2")
    found = held_out_ceiling(qrels, measure, repeats=3, seed=5)
    queries = sorted(qrels)
    rng = np.random.default_rng([5, 11])
    expected = []
    for _ in range(3):
        order = rng.permutation(11)
        half = {queries[i]: qrels[queries[i]] for i in order[:5]}
        rest = {queries[i]: qrels[queries[i]] for i in order[5:]}
        ranking = query_blind_ceiling(half, measure).ranking
        expected.append(score(measure, rest, constant_run(rest, ranking)))
    assert found.scores == pytest.approx(expected, abs=1e-12)


def test_held_out_same_seed_same_numbers() -> None:
    qrels = {f"q{i}": {f"d{i % 4}": 1} for i in range(20)}
    assert held_out_ceiling(qrels, seed=1) == held_out_ceiling(qrels, seed=1)
    assert held_out_ceiling(qrels, seed=1) != held_out_ceiling(qrels, seed=2)


def test_held_out_refuses_what_it_cannot_do() -> None:
    with pytest.raises(InputError, match="halves"):
        held_out_ceiling({"q1": {"d1": 1}})
    with pytest.raises(UsageError, match="repeats"):
        held_out_ceiling({"q1": {"d1": 1}, "q2": {"d1": 1}}, repeats=0)
    with pytest.raises(InputError, match="fitted"):
        held_out_ceiling({"q1": {"d1": 1}}, fit={"q2": {"d1": 0}})
