"""Which way round a ranking is: rank columns, distances, MS MARCO's third column."""

from __future__ import annotations

import io
from typing import Any

import pytest

from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.readers import RunFile, ScoreOrderError, read_run


def run(lines: list[str], **options: Any) -> RunFile:
    return read_run(io.BytesIO("\n".join(lines).encode()), **options)


def trec(scores: dict[str, list[float]]) -> list[str]:
    """Write each query's scores in the order of its ranks."""
    return [
        f"{query} Q0 d{rank} {rank} {score} t"
        for query, values in scores.items()
        for rank, score in enumerate(values, start=1)
    ]


def codes(found: RunFile) -> list[str]:
    return [note.code for note in found.notes]


def order(found: RunFile) -> list[str]:
    return found.frame["doc_id"].tolist()


def test_scores_that_fall_with_the_rank_need_no_word() -> None:
    assert codes(run(trec({"q1": [3, 2, 1], "q2": [3, 3, 1]}))) == []


def test_most_queries_reversed_is_refused() -> None:
    with pytest.raises(ScoreOrderError, match="in 2 of 3 queries"):
        run(trec({"q1": [1, 2, 3], "q2": [1, 2], "q3": [2, 1]}))


def test_half_of_the_queries_reversed_is_noted() -> None:
    found = run(trec({"q1": [1, 2, 3], "q2": [3, 2, 1]}))
    assert codes(found) == ["W-RANK-DISAGREES"]
    assert "1 of 2 queries (50.0% of rank neighbours are inverted)" in found.notes[0].message


@pytest.mark.parametrize(
    ("score_order", "said"), [("ascending", "the smallest first"), ("descending", "as trec_eval")]
)
def test_the_note_says_which_scores_come_first(score_order: str, said: str) -> None:
    found = run(trec({"q1": [1, 2, 3], "q2": [3, 2, 1]}), score_order=score_order)
    assert f"; ranked by score, {said}" in found.notes[0].message


def test_a_query_with_ties_only_tells_nothing() -> None:
    with pytest.raises(ScoreOrderError, match="in 1 of 1 query"):
        run(trec({"q1": [1, 2, 3], "q2": [1, 1], "q3": [5]}))


def test_equal_ranks_tell_nothing() -> None:
    lines = ["q1 Q0 a 0 1.0 t", "q1 Q0 b 0 2.0 t", "q1 Q0 c 0 3.0 t"]
    assert codes(run(lines)) == []
    assert order(run(lines)) == ["c", "b", "a"]


def test_the_order_of_lines_does_not_matter_for_the_check() -> None:
    lines = trec({"q1": [1, 2, 3], "q2": [1, 2, 3]})
    with pytest.raises(ScoreOrderError, match="in 2 of 2 queries"):
        run([lines[i] for i in (5, 0, 3, 2, 1, 4)])


def test_depth_does_not_hide_the_reversal() -> None:
    with pytest.raises(ScoreOrderError, match="in 1 of 1 query"):
        run(trec({"q1": [1, 2, 3, 4, 5]}), depth=1)


def test_the_user_decides() -> None:
    lines = trec({"q1": [1, 2, 3], "q2": [1, 2]})
    assert order(run(lines, score_order="ascending")) == ["d1", "d2", "d3", "d1", "d2"]
    assert order(run(lines, rank_from_column=True)) == ["d1", "d2", "d3", "d1", "d2"]
    trusted = run(lines, score_order="descending")
    assert order(trusted) == ["d3", "d2", "d1", "d2", "d1"]
    assert codes(trusted) == ["W-RANK-DISAGREES"]


def test_ascending_scores_that_run_against_their_ranks_are_noted() -> None:
    assert codes(run(trec({"q1": [3, 2, 1]}), score_order="ascending")) == ["W-RANK-DISAGREES"]


def test_ranking_by_a_column_that_cannot_rank() -> None:
    with pytest.raises(InputError, match=r"the same rank; found: query 'q1', rank 0"):
        run(["q1 Q0 a 0 1.0 t", "q1 Q0 b 0 2.0 t"], rank_from_column=True)
    with pytest.raises(UsageError, match="has no rank column"):
        run(["query-id\tcorpus-id\tscore", "q1\td1\t1.0"], rank_from_column=True)
    with pytest.raises(UsageError, match="has no rank column"):
        run(['{"q1": {"d1": 1.0}}'], rank_from_column=True)


@pytest.mark.parametrize(
    "options",
    [
        {"depth": 0},
        {"score_order": "up"},
        {"score_order": "ascending", "rank_from_column": True},
    ],
)
def test_options_that_make_no_sense(options: Any) -> None:
    with pytest.raises(UsageError):
        run(trec({"q1": [1]}), **options)


# -- a third column without a name ----------------------------------------------------------------


@pytest.mark.parametrize("first", [0, 1])
def test_counted_from_the_best_is_a_rank(first: int) -> None:
    found = run([f"q{q}\td{i}\t{i + first}" for q in range(2) for i in range(3)])
    assert codes(found) == ["W-RANK-AS-SCORE"]
    assert order(found) == ["d0", "d1", "d2"] * 2


def test_falling_whole_numbers_are_scores() -> None:
    found = run(["q1\ta\t3", "q1\tb\t2", "q1\tc\t1", "q2\ta\t2", "q2\tb\t2"])
    assert codes(found) == []
    assert order(found) == ["a", "b", "c", "b", "a"]


def test_numbers_with_decimals_are_scores() -> None:
    assert order(run(["q1\ta\t1.5", "q1\tb\t2.5"])) == ["b", "a"]


@pytest.mark.parametrize("numbers", [[2, 1, 3], [1, 2, 4], [5, 6, 7], [3, 1, 2]])
def test_whole_numbers_that_may_be_either_are_refused(numbers: list[int]) -> None:
    lines = [f"q1\td{i}\t{number}" for i, number in enumerate(numbers)]
    with pytest.raises(InputError, match=r"may be a rank or a score.*--format msmarco"):
        run(lines)
    ranks = run(lines, format="msmarco").frame
    scores = run(lines, score_order="descending").frame
    assert ranks["doc_id"].tolist() == scores["doc_id"].tolist()[::-1]


def test_a_name_in_a_header_decides() -> None:
    found = run(["query-id\tcorpus-id\tscore", "q1\ta\t1", "q1\tb\t2"])
    assert (order(found), codes(found)) == (["b", "a"], [])


def test_depth_cuts_ranks_at_the_right_end() -> None:
    found = run([f"q1\td{i}\t{i}" for i in range(1, 6)], depth=2)
    assert order(found) == ["d1", "d2"]
    assert codes(found) == ["W-RANK-AS-SCORE", "W-DEPTH"]


# -- files without ranks --------------------------------------------------------------------------


def rising(queries: int, documents: int) -> list[str]:
    rows = [f"q{q}\td{d}\t{d}.5" for q in range(queries) for d in range(documents)]
    return ["query-id\tcorpus-id\tscore", *rows]


def test_documents_by_rising_score_in_every_query_are_noted() -> None:
    found = run(rising(5, 3))
    assert codes(found) == ["W-SCORES-ASCEND"]
    assert "all 5 queries" in found.notes[0].message
    assert codes(run(rising(5, 3), score_order="ascending")) == []


def test_a_few_short_lists_may_rise_by_chance() -> None:
    assert codes(run(rising(4, 3))) == codes(run(rising(5, 2))) == []
    assert codes(run([*rising(5, 3), "q9\ta\t2", "q9\tb\t1"])) == []
