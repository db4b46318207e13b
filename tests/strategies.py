"""Hypothesis strategies for runs and qrels."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

DOCS = [f"d{i}" for i in range(9)]
QUERIES = ["q-1", "q-2", "q 3", "4"]


def qrels(top_grade: int = 3, lowest: int = -1) -> Any:
    """Judgements of a few queries; at least one document is relevant."""
    grades = st.dictionaries(
        st.sampled_from(DOCS), st.integers(lowest, top_grade), min_size=1, max_size=7
    )
    judged = st.fixed_dictionaries(
        {QUERIES[0]: grades}, optional=dict.fromkeys(QUERIES[1:], grades)
    )
    return judged.map(lambda made: {**made, "always": {DOCS[0]: 1}})


def rankings(min_size: int = 0) -> Any:
    """One ranking, as scores without ties."""
    return st.lists(st.sampled_from(DOCS), unique=True, min_size=min_size).map(
        lambda docs: {doc: float(-i) for i, doc in enumerate(docs)}
    )


def runs() -> Any:
    """Rankings of all queries, some empty; the first query returns something."""
    return st.fixed_dictionaries(
        {QUERIES[0]: rankings(1), **dict.fromkeys(QUERIES[1:], rankings())}
    )
