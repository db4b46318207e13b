"""What run and qrels frames take, refuse, and how they rank."""

from __future__ import annotations

import random
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsify_adapters.errors import InputError
from falsify_adapters.frames import as_qrels, as_run, drop_pairs, rank_in_query, stable_order
from falsify_adapters.notes import FalsifyWarning, Note

RUN = {"q2": {"d1": 0.5, "d3": 0.5, "d2": 0.9}, "q10": {"d1": 1.0}}
QRELS = {"q2": {"d1": 1, "d2": 0}, "q10": {"d9": 2}}


def rows(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.itertuples(index=False)]


def forms(data: dict[str, dict[str, Any]], row: Any, value: str) -> dict[str, Any]:
    """Return the same data in every form that ir-measures takes, in shuffled row order."""
    tuples = [row(q, d, v) for q, docs in data.items() for d, v in docs.items()]
    random.Random(1).shuffle(tuples)
    columns = {"query_id": [], "doc_id": [], value: []}
    for one in tuples:
        columns["query_id"].append(one.query_id)
        columns["doc_id"].append(one.doc_id)
        columns[value].append(getattr(one, value))
    frame = pd.DataFrame(columns)
    return {
        "dict": data,
        "tuples": tuples,
        "generator": (one for one in tuples),
        "frame": frame,
        "categorical": frame.astype({"query_id": "category", "doc_id": "category"}),
        "string dtype": frame.astype({"query_id": "string", "doc_id": "string"}),
        "more columns": frame.assign(rank=0, tag="x")[["tag", value, "doc_id", "query_id", "rank"]],
        "odd index": frame.set_index(pd.Index(range(5, 5 + len(frame)))),
    }


@pytest.mark.parametrize("form", forms({}, ir_measures.ScoredDoc, "score"))
def test_every_form_gives_the_same_run(form: str) -> None:
    made = as_run(forms(RUN, ir_measures.ScoredDoc, "score")[form])
    # queries in the order of their ids as text; ties by doc_id, descending
    assert rows(made) == [
        ("q10", "d1", 1.0),
        ("q2", "d2", 0.9),
        ("q2", "d3", 0.5),
        ("q2", "d1", 0.5),
    ]
    assert rows(as_run(made)) == rows(made)


@pytest.mark.parametrize("form", forms({}, ir_measures.Qrel, "relevance"))
def test_every_form_gives_the_same_qrels(form: str) -> None:
    made = as_qrels(forms(QRELS, ir_measures.Qrel, "relevance")[form])
    assert rows(made) == [("q10", "d9", 2), ("q2", "d1", 1), ("q2", "d2", 0)]
    assert rows(as_qrels(made)) == rows(made)


def test_inputs_are_left_alone() -> None:
    frame = pd.DataFrame({"query_id": ["b", "a"], "doc_id": ["x", "y"], "score": [1, 2]})
    before = frame.copy(deep=True)
    as_run(frame)
    pd.testing.assert_frame_equal(frame, before)
    nested = {"q": {"d": 1.0}}
    made = as_run(nested)
    made.loc[0, "score"] = 9.0
    assert nested == {"q": {"d": 1.0}}


def test_a_generator_is_consumed_once() -> None:
    seen = []

    def produce() -> Any:
        for doc in ("d1", "d2"):
            seen.append(doc)
            yield ir_measures.ScoredDoc("q", doc, 1.0)

    assert len(as_run(produce())) == 2
    assert seen == ["d1", "d2"]


@settings(deadline=None, max_examples=80)
@given(
    st.dictionaries(
        st.text("d1-é", min_size=1, max_size=3),
        st.sampled_from([0.0, -0.0, 1.0, 1.0 + 1e-12, -2.5, 1e300, 5e-324]),
        min_size=1,
    )
)
def test_ranking_is_by_score_then_by_doc_id_descending(docs: dict[str, float]) -> None:
    ranked = as_run({"q": docs})["doc_id"].tolist()
    assert ranked == sorted(docs, key=lambda doc: (docs[doc], doc), reverse=True)


def test_scores_are_compared_in_float64() -> None:
    close = {"q": {"a": 1.0 + 2**-40, "b": 1.0}}
    assert as_run(close)["doc_id"].tolist() == ["a", "b"]
    assert np.float32(1.0 + 2**-40) == np.float32(1.0)


def test_whole_numbers_are_ids_and_7_is_the_text_7() -> None:
    made = as_run([ir_measures.ScoredDoc(7, 3, 1.0), ir_measures.ScoredDoc("7", "4", 0.5)])
    assert rows(made) == [("7", "3", 1.0), ("7", "4", 0.5)]
    frame = pd.DataFrame({"query_id": [1, 2], "doc_id": [10, 9], "relevance": [1, 1]})
    assert rows(as_qrels(frame)) == [("1", "10", 1), ("2", "9", 1)]


def test_queries_without_rows_stay_known() -> None:
    qrels = as_qrels({"q1": {}, "q2": {"d": 1}})
    assert list(qrels["query_id"].cat.categories) == ["q1", "q2"]
    run = as_run({"q1": {}, "q2": {"d": 1.0}})
    assert list(run["query_id"].cat.categories) == ["q1", "q2"]
    assert list(as_run(run)["query_id"].cat.categories) == ["q1", "q2"]


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"query_id": ["q", "q"], "doc_id": ["d1", "d2"], **columns})


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({}, "empty"),
        ({"q": {}}, "empty"),
        ([], "empty"),
        (None, "form that is not understood"),
        ("run.trec", "form that is not understood"),
        (7, "form that is not understood"),
        ({"q": ["d1", "d2"]}, "not a dict of dict"),
        ([("q", "d", 1.0)], "row without query_id"),
        (frame(), "lacks the column score"),
        (frame(relevance=[1, 2]), "lacks the column score"),
        (frame(score=[1.0, float("nan")]), "not a finite number.*document 'd2'"),
        (frame(score=[1.0, float("inf")]), "not a finite number"),
        (frame(score=["1.0", "high"]), "'high' for query 'q'"),
        (frame(score=[None, 1.0]), "not a"),
        (frame(score=[True, False]), "not a number"),
        ({"q": {"d": 10**400}}, "not a"),
        ({"": {"d": 1.0}}, "empty query_id"),
        ({"q": {"": 1.0}}, "empty doc_id"),
        ({"q": {None: 1.0}}, "doc_id is not text"),
        ({"q": {1.5: 1.0}}, "doc_id is not text"),
        ({"q": {float("nan"): 1.0}}, "doc_id is not text"),
        ({True: {"d": 1.0}}, "query_id is not text"),
        ([ir_measures.ScoredDoc(["q"], "d", 1.0)], r"query_id is not text; found: \['q'\] \(list"),
        (frame(doc_id=["d", {"d": 1}], score=[1.0, 2.0]), "doc_id is not text; found: .*dict"),
        ({"q": {"a\0b": 1.0}}, "NUL"),
        ({"q": {"\ud800": 1.0}}, "lone surrogate"),
        (
            [ir_measures.ScoredDoc("q", "d", 1.0), ir_measures.ScoredDoc("q", "d", 1.0)],
            "more than once.*query 'q', document 'd'",
        ),
        ([ir_measures.ScoredDoc("q", 5, 1.0), ir_measures.ScoredDoc("q", "5", 2.0)], "more than"),
    ],
)
def test_runs_that_are_refused(data: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        as_run(data)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({}, "empty"),
        ({"q": {"d": 0.5}}, "not a whole number"),
        ({"q": {"d": float("nan")}}, "not a number"),
        ({"q": {"d": 10**7}}, "too large"),
        ({"q": {"d": "yes"}}, "not a number"),
        ({"q": {"d": None}}, "not a number"),
        (
            [ir_measures.Qrel("q", "d", 1), ir_measures.Qrel("q", "d", 2)],
            "twice, differently.*grades 1 and 2",
        ),
    ],
)
def test_qrels_that_are_refused(data: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        as_qrels(data)


def test_equal_judgements_are_dropped_with_a_note() -> None:
    twice = [ir_measures.Qrel("q", "d", 1), ir_measures.Qrel("q", "d", 1)]
    notes: list[Note] = []
    assert rows(as_qrels(twice, notes=notes)) == [("q", "d", 1)]
    assert [note.code for note in notes] == ["W-DUPLICATE-JUDGEMENTS"]
    with pytest.warns(FalsifyWarning, match="W-DUPLICATE-JUDGEMENTS"):
        as_qrels(twice)


def test_large_grades_are_noted() -> None:
    notes: list[Note] = []
    as_qrels({"q": {"d": 101}}, notes=notes)
    assert [note.code for note in notes] == ["W-LARGE-GRADES"]


def test_numbers_in_text_are_read() -> None:
    assert as_run(frame(score=["0.5", "1e-3"]))["score"].tolist() == [0.5, 0.001]
    assert as_qrels(frame(relevance=["2", "-1"]))["relevance"].tolist() == [2, -1]
    nullable = frame(relevance=pd.array([1, 2], dtype="Int64"))
    assert as_qrels(nullable)["relevance"].tolist() == [1, 2]


def test_ranks_start_anew_for_each_query() -> None:
    assert rank_in_query(np.array([], dtype=np.int64)).tolist() == []
    assert rank_in_query(np.array([3, 3, 1, 4, 4, 4])).tolist() == [1, 2, 1, 1, 2, 3]


def test_pairs_are_dropped_and_the_rest_stays() -> None:
    run = as_run(RUN)
    left = drop_pairs(run, ["q2", "q2", "none"], ["d3", "d9", "d1"])
    assert rows(left) == [row for row in rows(run) if row[:2] != ("q2", "d3")]


@pytest.mark.parametrize("column", ["query_id", "doc_id", "score"])
def test_a_column_that_stands_twice_is_refused(column: str) -> None:
    frame = as_run({"q1": {"d1": 1.0, "d2": 0.5}})
    with pytest.raises(InputError, match=f"has the column {column} more than once"):
        as_run(pd.concat([frame, frame[[column]]], axis=1))


@pytest.mark.parametrize("largest", [1, 2**20, 2**40, 2**58, 2**60, 2**62, 2**63 - 1])
def test_numbers_of_any_size_are_ordered(largest: int) -> None:
    key = np.array([largest, 0, largest, largest - 1, 1, 0, largest // 2])
    assert stable_order(key).tolist() == np.argsort(key, kind="stable").tolist()
