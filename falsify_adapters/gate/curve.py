"""The calibration curve: interval widths and verdicts over N, on the user's own benchmark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from falsify_adapters.coded import subset
from falsify_adapters.errors import UsageError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import IntArray
from falsify_adapters.gate.grading import Graded, grade, judge
from falsify_adapters.gate.query_units import Units
from falsify_adapters.measures import IrMeasuresKernel, Measure, make_kernel, parse_measure
from falsify_adapters.provenance import one_blas_thread
from falsify_adapters.results import NULLS, GateConfig

#: Fewest queries of a subsample.
SMALLEST = 10


@one_blas_thread
def calibration_curve(
    evaluation: Evaluation,
    measure: str | Measure = "nDCG@10",
    config: GateConfig | None = None,
    *,
    sizes: Iterable[int] | None = None,
    n_subsamples: int = 20,
) -> pd.DataFrame:
    """Grade random subsamples of the queries, drawn without replacement, of several sizes.

    A subsample is a benchmark of its own: its gold sets and popularities are those of its
    queries. Subsamples of half of the queries and more overlap, so that their verdicts vary less
    than those of fresh benchmarks would. Documents stay in the order in which they are ranked,
    ties included.

    Parameters
    ----------
    evaluation : Evaluation
        The run, the qrels and the corpus size.
    measure : str or ir_measures.Measure
        As for :func:`falsify_adapters.gate.run_gate`.
    config : GateConfig, optional
        Settings; the subsamples take as few trials of each null as the intervals need.
    sizes : iterable of int, optional
        Numbers of queries; by default all of them, halved again and again down to 10.
    n_subsamples : int
        Subsamples of each size below all queries.

    Returns
    -------
    DataFrame
        One row per size, ascending: ``n_queries, subsamples`` (those that hold a relevant
        document at all); the mean score and the mean width of each null's interval (``score``,
        ``width_A`` to ``width_D``); how many subsamples got each verdict (``PASS``, ``FAIL``,
        ``UNDER-NS``).

    Raises
    ------
    UsageError
        If a size is below 2 or above the number of queries.

    Examples
    --------
    >>> qrels = {f"q{i:02}": {f"d{i}": 1} for i in range(40)}
    >>> run = {f"q{i:02}": {f"d{i if i % 3 else 0}": 1.0, "d1": 0.5} for i in range(40)}
    >>> curve = calibration_curve(
    ...     Evaluation.create(run, qrels, corpus_size=1000), "RR@10", n_subsamples=5
    ... )
    >>> curve[["n_queries", "subsamples"]].values.tolist()
    [[10, 5], [20, 5], [40, 1]]
    >>> bool(curve["width_A"].is_monotonic_decreasing)
    True
    """
    config = config or GateConfig()
    parsed = parse_measure(measure)
    main = grade(evaluation, parsed, config)
    rough = replace(config, n_trials=config.least_trials)
    units = Units.of(evaluation)
    n = len(main.own)
    rng = np.random.default_rng([config.seed, *b"curve"])
    rows = []
    for size in _sizes(sizes, n):
        parts = [main]
        if size < n:
            drawn = [np.sort(rng.choice(n, size, replace=False)) for _ in range(n_subsamples)]
            # without any relevant document there is nothing to draw answers from
            gradable = [queries for queries in drawn if main.coded.gold_count[queries].any()]
            parts = [_part(main, units, parsed, queries, rough) for queries in gradable]
        if parts:
            rows.append(_row(size, parts))
    return pd.DataFrame(rows)


def _sizes(sizes: Iterable[int] | None, n: int) -> list[int]:
    if sizes is None:
        halves = [n]
        while halves[-1] // 2 >= SMALLEST:
            halves.append(halves[-1] // 2)
        return halves[::-1]
    chosen = sorted(set(sizes))
    if not chosen or chosen[0] < 2 or chosen[-1] > n:
        raise UsageError(f"subsamples have 2 to {n} queries here", found=str(chosen))
    return chosen


def _part(
    main: Graded, units: Units, measure: Measure, queries: IntArray, config: GateConfig
) -> Graded:
    coded = subset(main.coded, queries)
    make = IrMeasuresKernel if main.fell_back else make_kernel
    return judge(
        coded, make(measure, coded.profiles), main.own[queries], units.part(queries), config
    )


def _row(size: int, parts: list[Graded]) -> dict[str, Any]:
    verdicts = Counter(part.verdict for part in parts)
    widths = {
        f"width_{name}": float(np.mean([p.nulls[name].high - p.nulls[name].low for p in parts]))
        for name in NULLS
    }
    score = float(np.mean([part.score for part in parts]))
    counts = {verdict: verdicts[verdict] for verdict in ("PASS", "FAIL", "UNDER-NS")}
    return {"n_queries": size, "subsamples": len(parts), "score": score, **widths, **counts}
