"""Queries that vary together, as numbers: clusters, blocks in time, strata."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from falsify_adapters.coded import segment_sums
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import FloatArray, IntArray
from falsify_adapters.resampling import block_units, cluster_units


@dataclass(frozen=True, eq=False)
class Units:
    """The evaluated queries' clusters, blocks and strata, as numbers.

    Parameters
    ----------
    cluster, order, stratum : ndarray, shape (n_queries,), or None
        Number of each query's cluster, the queries in the order of time, number of each query's
        stratum.
    block_length : int
        Queries per block of `order`.
    """

    cluster: IntArray | None = None
    order: IntArray | None = None
    stratum: IntArray | None = None
    block_length: int = 1

    @classmethod
    def of(cls, evaluation: Evaluation) -> Units:
        """Turn what an evaluation says of its queries into numbers."""
        known, query_ids = evaluation.dependence, evaluation.query_ids
        if known is None:
            return cls()
        return cls(
            cluster=known.cluster_codes(query_ids) if known.clusters is not None else None,
            order=known.positions(query_ids) if known.order is not None else None,
            stratum=known.stratum_codes(query_ids) if known.strata is not None else None,
            block_length=known.block_length,
        )

    def part(self, queries: IntArray) -> Units:
        """Return the units of some of the queries (ascending), numbered afresh."""
        order = self.order
        if order is not None:
            number = np.full(len(order), -1)
            number[queries] = np.arange(len(queries))
            order = number[order]
            order = order[order >= 0]
        return Units(
            cluster=_renumbered(self.cluster, queries),
            order=order,
            stratum=_renumbered(self.stratum, queries),
            block_length=self.block_length,
        )

    def resampling(self, influence: FloatArray) -> tuple[FloatArray, int | None, float | None]:
        """Return what :func:`bootstrap_t` resamples: units, how many, and their largest share."""
        if self.cluster is not None:
            units, share = cluster_units(influence, self.cluster)
            return units, None, share
        if self.order is not None:
            return block_units(influence, self.order, self.block_length)
        return influence, None, None

    def sums(self, values: FloatArray) -> FloatArray:
        """Return the sum of values, shape (n_queries,), over each cluster, or block in time.

        Blocks do not overlap here; the last one takes the queries that are left over.
        """
        if self.cluster is not None:
            return segment_sums(values, self.cluster, self.count(len(values)))
        if self.order is None:
            return values
        starts = np.arange(self.count(len(values))) * self.block_length
        return np.add.reduceat(values[self.order], starts)

    def count(self, n_queries: int) -> int:
        """Return how many groups of queries vary on their own."""
        if self.cluster is not None:
            return int(self.cluster.max()) + 1
        return n_queries if self.order is None else n_queries // self.block_length

    def largest(self) -> int:
        """Return how many queries at most vary together."""
        return self.block_length if self.cluster is None else int(np.bincount(self.cluster).max())


def _renumbered(group: IntArray | None, queries: IntArray) -> IntArray | None:
    return None if group is None else np.unique(group[queries], return_inverse=True)[1]
