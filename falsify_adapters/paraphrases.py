"""Group queries that ask the same thing in nearly the same words.

The rule: texts are put in lower case, everything but letters and digits becomes a blank, and
words are sorted. Two queries belong together if these texts are equal, or if they are at least
90 % alike: 1 minus the insertions and deletions that turn one into the other, over the length of
both. What is alike to the same query is one group (single linkage). Paraphrases in other words
are not found: name them in a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from falsify_adapters.errors import MissingExtraError

#: Per cent of likeness from which on two texts are near-duplicates.
ALIKE = 90.0
#: The rule in one line, for reports.
RULE = f"query texts equal, or at least {ALIKE:.0f} % alike (words sorted, single linkage)"
#: Pairs of texts that are compared at once.
CHUNK_PAIRS = 2_000_000


def similar_queries(texts: Mapping[str, str], alike: float = ALIKE) -> dict[str, str]:
    """Return the group of each query: the id of its first member.

    Parameters
    ----------
    texts : mapping of str to str
        Text of each query. A query without text stands alone.
    alike : float
        Per cent of likeness from which on two texts belong together.

    Returns
    -------
    dict of str to str
        The first query of each query's group, in the order of `texts`.

    Raises
    ------
    MissingExtraError
        If rapidfuzz is not installed.

    Examples
    --------
    >>> similar_queries({"q1": "Is coal bad?", "q2": "is coal  bad", "q3": "What is tea?"})
    {'q1': 'q1', 'q2': 'q1', 'q3': 'q3'}
    """
    _, utils, _ = _rapidfuzz()
    plain = {query_id: utils.default_process(text) for query_id, text in texts.items()}
    sorted_words = {query_id: " ".join(sorted(text.split())) for query_id, text in plain.items()}
    distinct = list(dict.fromkeys(text for text in sorted_words.values() if text))
    label = dict(zip(distinct, _linked(distinct, alike).tolist(), strict=True))
    first: dict[Any, str] = {}
    return {
        query_id: first.setdefault(label[text], query_id) if text else query_id
        for query_id, text in sorted_words.items()
    }


def _linked(texts: Sequence[str], alike: float) -> Any:
    """Return the number of the connected group of each text."""
    process, _, indel = _rapidfuzz()
    n = len(texts)
    pairs: list[Any] = []
    step = max(1, CHUNK_PAIRS // max(n, 1))
    for start in range(0, n, step):
        rows = texts[start : start + step]
        likeness = process.cdist(
            rows,
            texts[start:],
            scorer=indel.normalized_similarity,
            score_cutoff=alike / 100,
        )
        found = np.argwhere(likeness > 0)
        pairs.append(found + start)
    one, other = np.concatenate(pairs).T if pairs else np.zeros((2, 0), dtype=np.int64)
    graph = coo_array((np.ones(len(one), dtype=np.int8), (one, other)), shape=(n, n))
    return connected_components(graph, directed=False)[1] if n else np.zeros(0, dtype=np.int64)


def _rapidfuzz() -> Any:
    try:
        from rapidfuzz import process, utils
        from rapidfuzz.distance import Indel
    except ImportError:
        raise MissingExtraError(
            "grouping queries by their text needs rapidfuzz",
            hint='pip install "falsify-adapters[text]"',
        ) from None
    return process, utils, Indel
