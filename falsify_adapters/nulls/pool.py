"""The documents that can be drawn as gold, and their chances to be.

Each query keeps its number of gold documents; they are drawn one after another in proportion to
their weights, and a repeat is drawn again. That is the same as if each document came at a random
time of its own, exponential with its weight as rate, and the first ones were taken (Rosén 1972).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from falsify_adapters.coded import Coded, segment_sums
from falsify_adapters.frames import BoolArray, FloatArray, IntArray
from falsify_adapters.kernels import Inclusion


@dataclass(frozen=True, eq=False)
class Pool:
    """The documents that can be drawn as gold, with their weights.

    Parameters
    ----------
    coded : Coded
        The evaluation in integer codes.
    weight : ndarray, shape (n_docs,)
        Positive whole numbers: the popularity of each document.
    """

    coded: Coded
    weight: IntArray

    @cached_property
    def total(self) -> int:
        """Sum of all weights."""
        return int(self.weight.sum())

    @cached_property
    def classes(self) -> tuple[IntArray, IntArray, IntArray]:
        """The distinct weights, how many documents have each, and each document's class."""
        weights, of_document, size = np.unique(self.weight, return_inverse=True, return_counts=True)
        return weights, size, of_document

    @cached_property
    def times(self) -> FloatArray:
        """Each query's t, with which a document of weight p is drawn with chance 1 - exp(-p t).

        The time by which as many documents as the query needs have come on average. Infinite where
        every document is drawn.
        """
        kinds, which = np.unique(self.coded.gold_count, return_inverse=True)
        time = self.time_of(kinds)
        # exclusive draws: chance p / total, exactly
        single = (kinds == 1) & (len(self.weight) > 1)
        time[single] = 1.0 / self.total
        return time[which]

    def time_of(self, counts: FloatArray | IntArray) -> FloatArray:
        """Return the times by which so many documents have come on average.

        Solves ``sum_d (1 - exp(-p_d t)) = m`` for each m (Newton; the sum is concave, so the steps
        never overshoot). Infinite from the number of documents on.
        """
        weights, size, _ = self.classes
        counts = np.maximum(counts, 0.0)
        time = counts / self.total
        solvable = counts < len(self.weight)
        for _ in range(200):
            left = np.exp(-np.outer(time, weights)) * size
            step = (counts - (size.sum() - left.sum(axis=1))) / np.maximum(left @ weights, 1e-300)
            step = np.where(solvable, np.maximum(step, 0.0), 0.0)
            time = time + step
            if (step <= 1e-13 * time).all():
                break
        return np.where(solvable, time, np.inf)

    def own_weight(self) -> FloatArray:
        """Return the weight of the documents that each query's ranking holds."""
        weight = self.weight[self.coded.entry_doc].astype(np.float64)
        return segment_sums(weight, self.coded.entry_query, self.coded.n_queries)

    def _survival(self) -> FloatArray:
        """Return each entry's exp(-p t); 1 where one document is drawn, which is then exact."""
        time = self.times[self.coded.entry_query]
        weight = self.weight[self.coded.entry_doc]
        single = self.coded.gold_count[self.coded.entry_query] == 1
        return np.where(single, 1.0, np.exp(-weight * time))

    def inclusion(self) -> Inclusion:
        """Return the rankings' entries with their chances to be drawn as gold."""
        coded = self.coded
        single = coded.gold_count[coded.entry_query] == 1
        alone = self.weight[coded.entry_doc] / self.total
        return Inclusion(
            query=coded.entry_query,
            rank=coded.entry_rank,
            probability=np.where(single, alone, 1.0 - self._survival()),
            profile=coded.profile_of,
            returned=coded.returned,
            exclusive=coded.gold_count == 1,
        )

    def owed(self, slope: FloatArray, counts: BoolArray) -> FloatArray:
        """Return what each query adds to the null's total by adding its documents to the pool.

        Parameters
        ----------
        slope : ndarray, shape (n_entries,)
            Derivative of the query's expected score by each entry's chance.
        counts : ndarray of bool, shape (n_gold,)
            The gold rows that add weight to the pool.

        Returns
        -------
        ndarray, shape (n_queries,)
            Sum over the query's gold documents e of ``d (sum_i h_i) / d p_e``.
        """
        coded = self.coded
        time = np.where(np.isfinite(self.times), self.times, 0.0)  # all drawn: nothing moves
        gained = slope * time[coded.entry_query] * self._survival()
        gained = np.where(np.isfinite(self.times[coded.entry_query]), gained, 0.0)
        by_doc = segment_sums(gained, coded.entry_doc, coded.n_docs)
        # every other document's chance falls when one gets more weight
        entry_loss = gained * self.weight[coded.entry_doc]
        lost = segment_sums(entry_loss, coded.entry_query, coded.n_queries)
        kinds, which = np.unique(coded.gold_count, return_inverse=True)
        kind_time = np.zeros(len(kinds))
        kind_time[which] = time
        weights, size, class_of = self.classes
        left = np.where((kinds == 1)[:, None], 1.0, np.exp(-np.outer(kind_time, weights)))
        moved = (left * size) @ weights  # sum over documents of p exp(-p t)
        lost_kind = segment_sums(lost, which, len(kinds))
        rate = np.divide(lost_kind, moved, out=np.zeros(len(kinds)), where=moved > 0)
        by_class = (left * rate[:, None]).sum(axis=0)
        by_doc -= by_class[class_of]
        return segment_sums(
            np.where(counts, by_doc[coded.gold_doc], 0.0), coded.gold_query, coded.n_queries
        )
