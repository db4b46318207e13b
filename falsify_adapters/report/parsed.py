"""Reports read back from the JSON that commands write, to be shown again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from falsify_adapters.audit import Audit, Findings
from falsify_adapters.blind import Bound
from falsify_adapters.ceiling import Ceiling, HeldOut
from falsify_adapters.errors import InputError
from falsify_adapters.notes import CODES, Note
from falsify_adapters.results import Companion, GateReport, NullResult, Power, Ties


def gate_report(parsed: Mapping[str, Any]) -> GateReport:
    """Make a gate report from its JSON, which must fit the schema.

    What the JSON leaves out stays out: the trials of the nulls and the scores of single queries.

    Raises
    ------
    InputError
        If it holds a warning that this version does not know.

    Examples
    --------
    >>> from falsify_adapters import Evaluation, GateConfig, run_gate
    >>> evaluation = Evaluation.create({"q1": {"d1": 1.0}}, {"q1": {"d1": 1}}, corpus_size=9)
    >>> report = run_gate(evaluation, "RR@10", GateConfig(n_boot=160))
    >>> gate_report(report.to_dict()).to_dict() == report.to_dict()
    True
    """
    fields = dict(parsed)
    companion, ties, power = (fields[name] for name in ("companion", "ties", "power"))
    return GateReport(
        **fields
        | {
            "nulls": _nulls(fields["nulls"]),
            "companion": companion
            and Companion(**companion | {"nulls": _nulls(companion["nulls"])}),
            "ties": ties and Ties(**ties),
            "power": power and Power(**power),
            "curve": pd.DataFrame(fields["curve"]) if fields.get("curve") else None,
            "warnings": _notes(fields["warnings"]),
            "per_query": pd.DataFrame(),
        }
    )


def audit(parsed: Mapping[str, Any]) -> Audit:
    """Make an audit from its JSON, which must fit the schema.

    Raises
    ------
    InputError
        If it holds a warning that this version does not know.

    Examples
    --------
    >>> from falsify_adapters import audit_benchmark
    >>> made = audit_benchmark({"q1": {"d1": 1}, "q2": {"d1": 1}}, "R@1", held_out=True)
    >>> audit(made.to_dict()).to_dict() == made.to_dict()
    True
    """
    ceiling, held_out = parsed["ceiling"], parsed["held_out"]
    return Audit(
        name=parsed["benchmark"],
        split=parsed["split"],
        measure=parsed["measure"],
        ceiling=Ceiling(
            **_numbers(ceiling)
            | {
                "ranking": tuple(ceiling["ranking"]),
                "bounds": {name: Bound(**bound) for name, bound in ceiling["bounds"].items()},
                "remarks": tuple(ceiling["remarks"]),
                "warnings": _notes(ceiling["warnings"]),
            }
        ),
        held_out=held_out and HeldOut(**held_out | {"scores": tuple(held_out["scores"])}),
        findings=Findings(**parsed["findings"]),
        warnings=_notes(parsed["warnings"]),
        provenance=parsed["provenance"],
    )


def _nulls(parsed: Mapping[str, Mapping[str, Any]]) -> dict[str, NullResult]:
    return {
        name: NullResult(
            **{key: value for key, value in _numbers(figures).items() if key != "above_zero"},
            trials=np.zeros(0),
        )
        for name, figures in parsed.items()
    }


def _numbers(parsed: Mapping[str, Any]) -> dict[str, Any]:
    """Return figures in which what is undefined is NaN again."""
    return {name: np.nan if value is None else value for name, value in parsed.items()}


def _notes(parsed: list[Mapping[str, str]]) -> tuple[Note, ...]:
    unknown = [note["code"] for note in parsed if note["code"] not in CODES]
    if unknown:
        raise InputError(
            f"the report has the warning {unknown[0]}, which this version does not know",
            hint="use the version that made the report",
        )
    return tuple(Note(**note) for note in parsed)
