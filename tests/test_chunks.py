"""The best chunk of a document stands for it."""

from __future__ import annotations

import pytest

from falsify_adapters.chunks import best_chunks
from falsify_adapters.errors import UsageError

RUN = {"q1": {"a#1": 0.5, "a#2": 0.9, "b#1": 0.7}, "q2": {"b#9": 0.1, "c": 0.1}}


def test_each_document_once_with_its_best_score() -> None:
    found = best_chunks(RUN, r"#\d+$")
    assert found.to_numpy().tolist() == [
        ["q1", "a", 0.9],
        ["q1", "b", 0.7],
        ["q2", "c", 0.1],
        ["q2", "b", 0.1],
    ]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [("(", "is not a regular expression"), (r"\$\d+", "fits no document id"), (".*", "nothing of")],
)
def test_patterns_that_make_no_sense(pattern: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        best_chunks(RUN, pattern)
