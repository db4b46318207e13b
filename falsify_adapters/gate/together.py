"""What a report says of clusters, blocks and strata: how many, which merged, what they change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from falsify_adapters.evaluation import Evaluation
from falsify_adapters.gate.grading import Graded, intervals
from falsify_adapters.gate.query_units import Units
from falsify_adapters.notes import Note, counted, plural, some
from falsify_adapters.resampling import ROUNDING
from falsify_adapters.results import NULLS, GateConfig

#: Below so many clusters or blocks an interval covers less often than it says (docs/studies).
FEW_UNITS = 20


def dependence_of(
    evaluation: Evaluation, main: Graded, config: GateConfig
) -> dict[str, Any] | None:
    """Describe what was resampled and permuted together, and by how much it widened the intervals.

    Returns
    -------
    dict or None
        ``clusters`` (``source, clusters, largest, alone``), ``blocks`` (``source, length,
        blocks``) and ``strata`` (``source, strata, merged, self_pairs``), each None where there
        are none; ``plain``, the intervals if queries were resampled one by one; ``widening``,
        widths over plain widths by null. None for an evaluation without dependence.
    """
    known, units = evaluation.dependence, main.units
    if known is None:
        return None
    query_ids = evaluation.query_ids
    found: dict[str, Any] = {"clusters": None, "blocks": None, "strata": None}
    if units.cluster is not None:
        size = np.bincount(units.cluster)
        found["clusters"] = {
            "source": known.clusters_from,
            "clusters": len(size),
            "largest": int(size.max()),
            "alone": int((size == 1).sum()),
        }
    if units.order is not None:
        found["blocks"] = {
            "source": known.order_from,
            "length": units.block_length,
            "blocks": units.count(len(query_ids)),
        }
    if units.stratum is not None:
        groups = known.strata_groups(query_ids)
        found["strata"] = {
            "source": known.strata_from,
            "strata": len(groups),
            "merged": [group for group in groups if len(group) > 1],
            "self_pairs": len(groups) / len(query_ids),
        }
    return {**found, **_beside_plain(main, config)}


def _beside_plain(main: Graded, config: GateConfig) -> dict[str, Any]:
    if main.units.cluster is None and main.units.order is None:
        return {"plain": None, "widening": None}
    low, high, _ = intervals(
        np.stack([main.draws[name].influence for name in NULLS], axis=1),
        np.array([main.nulls[name].delta for name in NULLS]),
        np.array([main.draws[name].mean_error for name in NULLS]),
        main.score,
        Units(),
        config,
    )
    plain = dict(zip(NULLS, np.stack([low, high], axis=1).tolist(), strict=True))
    return {
        "plain": plain,
        "widening": {
            name: (null.high - null.low) / (plain[name][1] - plain[name][0])
            if plain[name][1] - plain[name][0] > ROUNDING
            else None
            for name, null in main.nulls.items()
        },
    }


def dependence_notes(dependence: dict[str, Any] | None) -> Iterator[Note]:
    """Yield the warnings about clusters, blocks and strata."""
    if dependence is None:
        return
    strata = dependence["strata"]
    if strata and strata["merged"]:
        groups = [f"{group[0]} to {group[-1]} ({len(group)})" for group in strata["merged"]]
        yield Note(
            "W-STRATA-MERGED",
            f"small strata were merged with their neighbours into {some(groups)}; null A permutes"
            f" inside {strata['strata']} {plural(strata['strata'], 'stratum', 'strata')}",
        )
    for one in ("cluster", "block"):
        held = dependence[f"{one}s"]
        if held and (count := held[f"{one}s"]) < FEW_UNITS:
            yield Note(
                "W-FEW-CLUSTERS",
                f"the intervals rest on {counted(count, one)} of queries: with fewer than"
                f" {FEW_UNITS} they may cover the true delta less often than they say",
            )
