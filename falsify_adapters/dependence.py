"""How the queries of a benchmark hang together: clusters, strata, an order in time.

Queries are resampled to see how far a score could have come out otherwise. Paraphrases of one
question, or queries of one session, do not vary on their own: they are resampled together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.frames import IntArray
from falsify_adapters.notes import counted, some

#: Smaller strata than this are merged: a permutation inside them would leave many in place.
SMALL_STRATUM = 10


@dataclass(frozen=True)
class Dependence:
    """What belongs together among the queries.

    Parameters
    ----------
    clusters : mapping of str to str, optional
        Cluster of each query; queries that are not listed stand alone.
    strata : mapping of str to str, optional
        Stratum of each query: null A permutes gold sets inside strata only.
    order : sequence of str, optional
        The queries in the order of time, for a block bootstrap.
    block_length : int
        Queries per block of `order`.
    clusters_from, strata_from, order_from : str
        Where these came from, in words, for the report.

    Raises
    ------
    UsageError
        If clusters and an order are both given, or the block length makes no sense.

    Examples
    --------
    >>> together = Dependence(clusters={"q1": "a", "q2": "a"})
    >>> together.cluster_codes(["q1", "q2", "q3"])
    array([0, 0, 1])
    """

    clusters: Mapping[str, str] | None = None
    strata: Mapping[str, str] | None = None
    order: Sequence[str] | None = None
    block_length: int = 1
    clusters_from: str = "given"
    strata_from: str = "given"
    order_from: str = "given"

    def __post_init__(self) -> None:
        if self.clusters is not None and self.order is not None:
            raise UsageError("give clusters or blocks, not both")
        if self.block_length < 1:
            raise UsageError("a block holds at least one query", found=str(self.block_length))

    def cluster_codes(self, query_ids: Sequence[str]) -> IntArray:
        """Return the cluster number of each query, shape (n_queries,)."""
        clusters = self.clusters or {}
        numbers: dict[tuple[bool, str], int] = {}
        codes = []
        for query_id in query_ids:
            named = query_id in clusters
            key = (named, clusters[query_id] if named else query_id)
            codes.append(numbers.setdefault(key, len(numbers)))
        return np.array(codes, dtype=np.int64)

    def positions(self, query_ids: Sequence[str]) -> IntArray:
        """Return the queries' numbers in the order of time, shape (n_queries,)."""
        number = {query_id: i for i, query_id in enumerate(query_ids)}
        listed = [number[query_id] for query_id in self.order or () if query_id in number]
        if len(set(listed)) != len(query_ids) or len(listed) != len(query_ids):
            missing = sorted(set(query_ids) - set(self.order or ()))
            raise InputError(
                "the order in time does not name every evaluated query once",
                found=f"{len(set(listed))} of {counted(len(query_ids), 'query')}"
                + (f"; {some(missing)} missing" if missing else "; one of them twice"),
            )
        if self.block_length > len(query_ids) // 2:
            raise UsageError(
                "a block may hold at most half of the queries",
                found=f"{self.block_length} of {len(query_ids)}",
            )
        return np.array(listed, dtype=np.int64)

    def stratum_codes(self, query_ids: Sequence[str]) -> IntArray:
        """Return the stratum number of each query, small strata merged (see `grouped_strata`)."""
        groups = self.strata_groups(query_ids)
        number = {name: i for i, group in enumerate(groups) for name in group}
        return np.array([number[self._stratum(query_id)] for query_id in query_ids], dtype=np.int64)

    def strata_groups(self, query_ids: Sequence[str]) -> list[list[str]]:
        """Return the names of the strata; those that were merged stand in one list."""
        return grouped_strata([self._stratum(query_id) for query_id in query_ids])

    def _stratum(self, query_id: str) -> str:
        strata = self.strata or {}
        if query_id not in strata:
            raise InputError(
                f"query {query_id!r} has no stratum",
                found=f"{counted(len(strata), 'query')} with one",
                hint="every evaluated query needs a stratum",
            )
        return strata[query_id]


def grouped_strata(names: Sequence[str], smallest: int = SMALL_STRATUM) -> list[list[str]]:
    """Merge small strata with their neighbours.

    Strata are taken in the order of their names (numbers by value) and put together until each
    holds at least `smallest` queries; what is left at the end joins the last one.

    Parameters
    ----------
    names : sequence of str
        The stratum of each query.
    smallest : int
        Queries that a stratum holds at least.

    Returns
    -------
    list of list of str
        The names of each stratum.

    Examples
    --------
    >>> grouped_strata(["1", "1", "2", "10", "10"], smallest=2)
    [['1'], ['2', '10']]
    """
    counts = Counter(names)
    groups: list[list[str]] = [[]]
    held = 0
    for name in sorted(counts, key=_by_value):
        if held >= smallest:
            groups.append([])
            held = 0
        groups[-1].append(name)
        held += counts[name]
    if held < smallest and len(groups) > 1:
        last = groups.pop()
        groups[-1].extend(last)
    return groups


def _by_value(name: str) -> tuple[int, float, str]:
    return (0, float(name), name) if name.isdecimal() else (1, 0.0, name)
