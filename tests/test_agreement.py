"""Ids of runs against ids of qrels: hints, warnings, refusals."""

from __future__ import annotations

import unicodedata
from typing import Any

import pandas as pd
import pytest

from falsify_adapters.agreement import check_documents, why_apart
from falsify_adapters.errors import InputError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import as_qrels, as_run
from falsify_adapters.notes import Note

PLAIN = ["document-ä-01", "document-ö-02", "document-Ü-03"]


@pytest.mark.parametrize(
    ("run_ids", "qrels_ids", "words"),
    [
        (["7.0", "8.0"], ["7", "8"], "end in .0"),
        (["7", "8"], ["7.0", "8.0"], "end in .0"),
        (["7", "12"], ["007", "012"], "lack leading zeros"),
        (["0", "1"], ["000", "001"], "lack leading zeros"),
        (["DOC1", "DOC2"], ["doc1", "doc2"], "upper and lower case"),
        ([unicodedata.normalize("NFD", t) for t in PLAIN], PLAIN, "normal form"),
        (['"a"', '"b"'], ["a", "b"], "enclosed in quotes"),
        (["a ", "b "], ["a", "b"], "blanks at an end"),
        (["a.txt", "b.pdf"], ["a", "b"], "file suffix"),
        (["d1#0", "d2#13"], ["d1", "d2"], "number of a chunk"),
        (["d1_chunk_3", "d2_chunk_0"], ["d1", "d2"], "number of a chunk"),
        (["d1-p4", "d2-p11"], ["d1", "d2"], "number of a chunk"),
        (["corpus/x", "corpus/y"], ["x", "y"], "path in front"),
        (["MARCO_D12", "MARCO_D34"], ["12", "34"], "all run ids begin with 'MARCO_D': without"),
        (["12", "34"], ["MARCO_D12", "MARCO_D34"], "all qrels ids begin with 'MARCO_D': without"),
        (["c0ffee00-1111-2222-3"], ["c0ffee00-1111-2222-3333"], "all run ids have 20 characters"),
        (["c0ffee00-1111-2222-3333"], ["c0ffee00-1111-2222-3"], "all qrels ids have 20 characters"),
    ],
)
def test_a_simple_change_is_found(run_ids: Any, qrels_ids: Any, words: str) -> None:
    said = why_apart(run_ids, qrels_ids)
    assert said is not None
    assert words in said
    assert f"{len(run_ids)} of {len(qrels_ids)} would meet" in said


@pytest.mark.parametrize(
    ("run_ids", "qrels_ids"),
    [(["a", "b"], ["c", "d"]), ([], ["a"]), (["a"], []), (["same", "x1"], ["same", "y"])],
)
def test_no_change_is_made_up(run_ids: Any, qrels_ids: Any) -> None:
    assert why_apart(run_ids, qrels_ids) is None


def test_the_change_must_help_more_than_a_little() -> None:
    run_ids = [f"a{i}" for i in range(100)] + ["X"]
    assert why_apart(run_ids, [f"b{i}x" for i in range(100)] + ["x"]) is None


def test_a_large_collection_is_sampled() -> None:
    run_ids = [f"{i}.0" for i in range(300_000)]
    said = why_apart(run_ids, [str(i) for i in range(300_000)])
    assert said is not None
    assert "end in .0" in said


def create(run: Any, qrels: Any, **options: Any) -> Evaluation:
    return Evaluation.create(run, qrels, corpus_size=1000, **options)


def notes(evaluation: Evaluation) -> dict[str, str]:
    return {note.code: note.message for note in evaluation.notes}


def test_no_shared_query_is_refused_with_both_sides() -> None:
    with pytest.raises(InputError) as caught:
        create({"1.0": {"d": 1.0}, "2.0": {"d": 1.0}}, {"1": {"d": 1}, "2": {"d": 1}})
    for words in ("share no query", "run queries 1.0, 2.0", "qrels queries 1, 2", "end in .0"):
        assert words in str(caught.value)


def test_swapped_columns_are_suspected() -> None:
    with pytest.raises(InputError, match="look swapped"):
        create({"d1": {"q1": 1.0}, "d2": {"q2": 1.0}}, {"q1": {"d1": 1}, "q2": {"d2": 1}})


def test_a_few_shared_queries_with_a_cause_are_noted() -> None:
    run = {f"{i:03}": {"d": 1.0} for i in range(1, 120)}
    found = create(run, {str(i): {"d": 1} for i in range(1, 120)})
    assert "only 20 of 119 judged queries are in the run" in notes(found)["W-ID-OVERLAP"]
    assert "leading zeros" in notes(found)["W-ID-OVERLAP"]


def test_no_judged_document_with_a_cause_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        create({"q": {"D1": 2.0, "D2": 1.0}}, {"q": {"d1": 1, "d2": 0}})
    for words in ("none of the 2 documents", "D1, D2", "d1, d2", "upper and lower case"):
        assert words in str(caught.value)


def test_no_judged_document_without_a_cause_is_noted() -> None:
    found = create({"q": {"x": 2.0, "y": 1.0}}, {"q": {"d1": 1}})
    assert "none of the 2 documents of the run is judged" in notes(found)["W-ID-OVERLAP"]


def test_ids_are_never_changed() -> None:
    found = create({"q": {"D1": 2.0, "d1": 1.0}}, {"q": {"d1": 1, "D1": 0}})
    assert found.run["doc_id"].tolist() == ["D1", "d1"]


def test_sparse_judgements_are_no_reason_to_warn() -> None:
    """One judgement per query, as in MS MARCO, found at rank 1: judged@10 is 0.1, and fine."""
    run = {f"q{i}": {f"d{i}": 10.0} | {f"x{j}": float(j) for j in range(9)} for i in range(20)}
    qrels = {f"q{i}": {f"d{i}": 1} for i in range(20)}
    assert "W-UNJUDGED" not in notes(create(run, qrels))


def test_hardly_any_judged_document_is_noted() -> None:
    run = {f"q{i}": {f"x{i}-{j}": float(j) for j in range(10)} for i in range(20)}
    run["q0"]["d0"] = 99.0
    found = notes(create(run, {f"q{i}": {f"d{i}": 1} for i in range(20)}))
    assert "judged@10 is 0.005000 (1 of 200 documents)" in found["W-UNJUDGED"]
    assert "19 of 20 queries have no judged document" in found["W-UNJUDGED"]


def test_exclusions_are_left_out_and_counted() -> None:
    exclude = pd.DataFrame({"query_id": ["q1", "q1", "q9"], "doc_id": ["e1", "e2", "d"]})
    run = {"q1": {"e1": 3.0, "d": 2.0}, "q2": {"e1": 1.0, "d": 0.5}}
    found = create(run, {"q1": {"d": 1}, "q2": {"d": 1}}, exclude=exclude, top_k=1)
    assert found.run["doc_id"].tolist() == ["d", "e1"]
    assert notes(found)["W-EXCLUDED"] == "1 of the 3 documents to leave out was in the run"
    with pytest.raises(InputError, match="lack the column doc_id"):
        create(run, {"q1": {"d": 1}}, exclude=exclude[["query_id"]])


def test_a_document_that_nobody_judged_is_not_the_last_one_of_the_query_before() -> None:
    # by number the pair (query 1, no document) would follow the last judged one of query 0
    qrels = as_qrels({f"q{i}": {"a": 1, "z": 1} for i in range(4)})
    run = as_run({"q0": {"a": 1.0}} | {f"q{i}": {"x": 2.0, "y": 1.0} for i in (1, 2, 3)})
    notes: list[Note] = []
    check_documents(run, qrels, notes)
    assert [note.code for note in notes] == ["W-UNJUDGED"]
    assert "(1 of 7 documents); 3 of 4 queries" in notes[0].message
