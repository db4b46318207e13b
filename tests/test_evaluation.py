"""How run, qrels and corpus are joined, and what is said about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.gate import run_gate

RUN = {"q1": {"d1": 3.0, "d2": 2.0, "q1": 1.0}, "q2": {"d2": 1.0}}
QRELS = {"q1": {"d1": 1, "d2": 0}, "q2": {"d3": 2}}


def codes_of(evaluation: Evaluation) -> list[str]:
    return [note.code for note in evaluation.notes]


def create(run: Any = RUN, qrels: Any = QRELS, **names: Any) -> Evaluation:
    return Evaluation.create(run, qrels, **{"corpus_size": 100, **names})


def test_every_judged_query_is_evaluated() -> None:
    evaluation = create(qrels={**QRELS, "q3": {"d1": 1}, "q4": {"d1": 0}, "q5": {}})
    assert evaluation.query_ids == ["q1", "q2", "q3", "q4", "q5"]
    assert evaluation.n_queries == 5
    assert codes_of(evaluation) == ["W-SELF-MATCHES", "W-MISSING-QUERIES", "W-NO-RELEVANT"]
    # q1 finds its document first, the others score 0
    assert run_gate(evaluation, "RR@10").score == pytest.approx(1 / 5)


def test_unjudged_queries_of_the_run_are_ignored() -> None:
    evaluation = create({**RUN, "q9": {"d1": 1.0}})
    assert evaluation.run["query_id"].unique().tolist() == ["q1", "q2"]
    assert "W-EXTRA-QUERIES" in codes_of(evaluation)


def test_run_and_qrels_without_a_common_query_are_refused() -> None:
    with pytest.raises(InputError, match="share no query"):
        create({"a": {"d1": 1.0}})


def test_self_matches_are_kept_or_removed_as_asked() -> None:
    assert len(create().run) == 4
    removed = create(keep_self=False)
    assert len(removed.run) == 3
    assert removed.notes[0].message == "1 of 2 queries retrieves itself (removed, as BEIR does)"
    others = create({"q1": {"q2": 1.0}, "q2": {"q1": 1.0, "d1": 0.5}})
    assert "W-SELF-MATCHES" not in codes_of(others)


def test_a_run_without_any_judged_document_is_no_stranger_if_the_corpus_holds_both() -> None:
    # "x1" and "d1" look like the same ids with another prefix, and are not
    run = {"q1": {f"x{i}": 1.0 for i in range(9)}}
    qrels = {"q1": {f"d{i}": 1 for i in range(9)}}
    with pytest.raises(InputError, match="judged"):
        create(run, qrels)
    corpus = [*run["q1"], *qrels["q1"], "z"]
    evaluation = create(run, qrels, corpus_size=None, corpus_ids=corpus)
    assert codes_of(evaluation) == ["W-ID-OVERLAP"]
    assert run_gate(evaluation, "RR@10").score == 0


def test_top_k_cuts_after_self_matches_are_removed() -> None:
    run = {"q1": {"q1": 9.0, "d1": 3.0, "d2": 2.0}}
    evaluation = create(run, {"q1": {"d1": 1}}, keep_self=False, top_k=1)
    assert evaluation.run["doc_id"].tolist() == ["d1"]
    with pytest.raises(UsageError, match="top_k"):
        create(top_k=0)


def test_a_run_of_self_matches_alone_scores_0() -> None:
    evaluation = create({"q1": {"q1": 1.0}}, {"q1": {"d1": 1}, "q2": {"d2": 1}}, keep_self=False)
    report = run_gate(evaluation, "nDCG@10")
    assert (report.score, report.verdict) == (0.0, "FAIL")


@pytest.mark.parametrize(
    ("given", "size", "source"),
    [
        ({"corpus_size": 50}, 50, "given"),
        ({"corpus_size": None, "corpus_ids": ["d1", "d2", "d3", "d4", "q1"]}, 5, "counted"),
        ({"corpus_size": None}, 4, "estimated"),
    ],
)
def test_corpus_size(given: dict[str, Any], size: int, source: str) -> None:
    evaluation = create(**given)
    assert (evaluation.corpus_size, evaluation.corpus_size_source) == (size, source)
    assert ("W-CORPUS-ESTIMATED" in codes_of(evaluation)) == (source == "estimated")


def test_whole_numbers_are_ids_in_the_corpus_too() -> None:
    evaluation = create({1: {7: 1.0}}, {1: {7: 1, 9: 1}}, corpus_size=None, corpus_ids=[7, 8])
    assert (evaluation.corpus_size, evaluation.absent_gold) == (2, {"9"})


def test_impossible_corpora_are_refused() -> None:
    with pytest.raises(UsageError, match="at least 1"):
        create(corpus_size=0)
    with pytest.raises(InputError, match="more documents than the corpus holds"):
        create(corpus_size=2)
    with pytest.raises(InputError, match="returns documents that the corpus does not hold"):
        create(corpus_size=None, corpus_ids=["d1", "d3"])


def test_gold_that_the_corpus_lacks_is_told() -> None:
    evaluation = create(corpus_size=None, corpus_ids=["d1", "d2", "q1"])
    assert evaluation.absent_gold == {"d3"}
    assert "W-GOLD-NOT-IN-CORPUS" in codes_of(evaluation)


def test_qrels_without_any_relevant_document_are_refused() -> None:
    with pytest.raises(InputError, match="no query has a relevant document"):
        create(qrels={"q1": {"d1": 0}, "q2": {"d1": -1}})


def test_another_run_on_the_same_benchmark() -> None:
    first = create(benchmark="toy", split="test")
    second = first.with_run({"q2": {"d3": 1.0}, "unjudged": {"d1": 1.0}}, system="other")
    assert (second.benchmark, second.system, second.corpus_size) == ("toy", "other", 100)
    assert codes_of(second) == ["W-EXTRA-QUERIES"]
    assert run_gate(second, "RR@10").score == 0.5
    with pytest.raises(InputError, match="more documents than"):
        create(corpus_size=3).with_run({"q1": {f"d{i}": 1.0 for i in range(4)}})


def test_notes_of_earlier_steps_come_first() -> None:
    from falsify_adapters.notes import Note

    earlier = Note("W-LARGE-GRADES", "counts")
    assert create(notes=[earlier]).notes[0] == earlier
    with pytest.raises(KeyError, match="W-NONE"):
        Note("W-NONE", "no such code")


@pytest.mark.parametrize(
    "size", [0, -5, 1.5, "250", float("nan"), float("inf"), True, 10**30, 1e300, [5]]
)
def test_a_corpus_size_that_is_none_is_refused(size: Any) -> None:
    with pytest.raises(UsageError, match="corpus size"):
        Evaluation.create({"q": {"d": 1.0}}, {"q": {"d": 1}}, corpus_size=size, system="s")


@pytest.mark.parametrize("size", [250, 250.0, np.int64(250), np.float32(250), 2**53])
def test_a_corpus_size_of_any_number_type_is_taken(size: Any) -> None:
    evaluation = Evaluation.create({"q": {"d": 1.0}}, {"q": {"d": 1}}, corpus_size=size, system="s")
    assert type(evaluation.corpus_size) is int
    assert evaluation.corpus_size == size
