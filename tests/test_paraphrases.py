"""Queries that are near-duplicates of each other are found by the rule that is stated."""

from __future__ import annotations

import itertools
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falsify_adapters import paraphrases
from falsify_adapters.errors import MissingExtraError
from falsify_adapters.paraphrases import ALIKE, similar_queries


def likeness(one: str, other: str) -> float:
    """Return 100 minus the insertions and deletions over both lengths, in plain loops."""
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        new = [i]
        for j, b in enumerate(other, 1):
            new.append(row[j - 1] if a == b else 1 + min(row[j], new[j - 1]))
        row = new
    return 100 * (1 - row[-1] / max(1, len(one) + len(other)))


def normal(text: str) -> str:
    kept = "".join(char if char.isalnum() else " " for char in text.lower())
    return " ".join(sorted(kept.split()))


def by_hand(texts: dict[str, str]) -> dict[str, str]:
    """Link all pairs that are alike, until nothing moves."""
    plain = {query: normal(text) for query, text in texts.items()}
    label = {query: i for i, query in enumerate(texts)}
    moved = True
    while moved:
        moved = False
        for a, b in itertools.combinations(texts, 2):
            alike = plain[a] and plain[b] and likeness(plain[a], plain[b]) >= ALIKE - 1e-9
            if alike and label[a] != label[b]:
                label[a] = label[b] = min(label[a], label[b])
                moved = True
    names = list(texts)
    return {query: names[number] for query, number in label.items()}


WORDS = st.sampled_from(["cats", "cat", "carts", "Is", "is", "the", "good?", "good", "123", "?"])


@given(st.lists(st.lists(WORDS, max_size=5).map(" ".join), max_size=8))
def test_the_groups_are_those_of_plain_loops(texts: list[str]) -> None:
    by_id = {f"q{i}": text for i, text in enumerate(texts)}
    assert similar_queries(by_id) == by_hand(by_id)


def test_what_the_rule_groups_and_what_not() -> None:
    texts = {
        "a": "How do vaccines work?",
        "b": "how do vaccines work",
        "c": "Vaccines: how do work",
        "d": "How do vaccines works",
        "e": "In what way do vaccines protect people?",
        "f": "",
        "g": "",
        "h": "???",
    }
    groups = similar_queries(texts)
    assert {groups[query] for query in "abcd"} == {"a"}
    assert groups["e"] == "e"  # other words: not found, as documented
    # nothing can be said of queries without text
    assert [groups[query] for query in "fgh"] == ["f", "g", "h"]
    assert similar_queries({}) == {}


def test_many_texts_are_compared_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {f"q{i}": f"number {i % 40} of something {'xyz'[i % 3]}" for i in range(120)}
    whole = similar_queries(texts)
    monkeypatch.setattr(paraphrases, "CHUNK_PAIRS", 500)
    assert similar_queries(texts) == whole


def test_without_rapidfuzz_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    with pytest.raises(MissingExtraError, match=r"falsify-adapters\[text\]"):
        similar_queries({"a": "x"})
