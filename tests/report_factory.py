"""Gate reports made by hand, for tests of what is done with them."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd

from falsify_adapters.notes import Note
from falsify_adapters.results import GateConfig, GateReport, NullResult, Ties


def null_result(mean: float, delta: float, half: float = 0.04, verdict: Any = None) -> NullResult:
    low, high = delta - half, delta + half
    if verdict is None:
        verdict = "PASS" if low >= 0.05 else "FAIL" if high < 0.05 else "UNDER-NS"
    return NullResult(
        mean=mean,
        mean_error=0.0,
        delta=delta,
        low=low,
        high=high,
        p_value=0.001 if delta > 0.02 else 0.4,
        luck_margin=0.02,
        adjusted=delta / (1 - mean),
        attainable=0.9,
        attainable_exact=True,
        verdict=verdict,
        trials=np.full(100, mean),
    )


def gate_report(
    system: str = "bm25",
    deltas: tuple[float, float, float, float] = (0.3078, 0.3077, 0.3081, 0.3061),
    **changes: Any,
) -> GateReport:
    score = changes.pop("score", 0.3177)
    nulls = {
        name: null_result(score - delta, delta) for name, delta in zip("ABCD", deltas, strict=True)
    }
    verdicts = {null.verdict for null in nulls.values()}
    verdict = "PASS" if verdicts == {"PASS"} else "FAIL" if "FAIL" in verdicts else "UNDER-NS"
    failed = [name for name, null in nulls.items() if null.verdict == "FAIL"]
    report = GateReport(
        role="run",
        benchmark="nfcorpus",
        split="test",
        task=None,
        subset=None,
        model=None,
        revision=None,
        system=system,
        measure="nDCG@10",
        n_queries=323,
        corpus_size=3633,
        corpus_size_source="counted",
        score=score,
        score_answered=score,
        tau=0.05,
        verdict=verdict,
        definition_1=all(delta >= 0.05 for delta in deltas),
        reason=f"fails {', '.join(failed)}" if failed else "clears all four nulls",
        nulls=nulls,
        distinct_nulls=4,
        companion=None,
        ties=None,
        warnings=(),
        settings=asdict(GateConfig()),
        provenance={},
        per_query=pd.DataFrame({"query_id": ["q1"], "score": [score]}),
    )
    return replace(report, **changes)


def ties(queries: int = 12, low: float = 0.30, high: float = 0.33) -> Ties:
    return Ties(queries, low, high, "PASS", "PASS")


def note(code: str = "W-TIES", message: str = "12 queries have tied scores") -> Note:
    return Note(code, message)
