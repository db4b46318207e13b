"""Which of the four nulls have the same expectation on a benchmark."""

from __future__ import annotations

import numpy as np

from falsify_adapters.coded import Coded
from falsify_adapters.kernels import Hits, Kernel
from falsify_adapters.resampling import ROUNDING
from falsify_adapters.results import GateConfig


def coinciding_nulls(
    coded: Coded, kernel: Kernel, config: GateConfig, *, stratified: bool = False
) -> tuple[tuple[str, ...], ...]:
    """Group the nulls by expectation, as far as the benchmark's structure tells.

    Four groups of one mean four different expectations.
    """
    groups = [{"A"}, {"B"}, {"C"}, {"D"}]

    def join(one: str, other: str) -> None:
        a = next(group for group in groups if one in group)
        b = next(group for group in groups if other in group)
        if a is not b:
            groups.remove(b)
            a |= b

    single = bool((coded.gold_count == 1).all())
    # one gold document: its grade does not matter if all grades are worth the same at rank 1
    grade_free = single and _grade_free(coded, kernel)
    full = bool((coded.gold_count > 0).all())
    same_frequency = full and len(set(coded.set_count.tolist())) == 1
    if stratified:
        pass  # inside strata null A has an expectation of its own
    elif config.permute == "query":
        if same_frequency:
            join("A", "B")
        if config.marginal == "set" or grade_free:
            join("A", "D")
    elif grade_free:
        if len(coded.set_query) == coded.n_docs:
            join("A", "B")
        if len(set(coded.popularity.tolist())) == 1:
            join("A", "D")
    if config.marginal == "set" and same_frequency:
        join("B", "D")
    return tuple(tuple(sorted(group)) for group in groups)


def _grade_free(coded: Coded, kernel: Kernel) -> bool:
    profiles = np.unique(coded.profile_of)
    first = np.array([np.flatnonzero(coded.profile_of == profile)[0] for profile in profiles])
    ones = np.ones(len(first), dtype=np.int64)
    grades = coded.gold_grade[coded.gold_start[first]]
    values = kernel.score(Hits(np.arange(len(first)), ones, grades, profiles, ones))
    return bool(np.ptp(values) < ROUNDING)
