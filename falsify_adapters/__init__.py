"""Does a retrieval score mean anything? The four-null gate for BEIR, MTEB and TREC results.

The public names are loaded when they are first used, so that importing the package stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from falsify_adapters.adapters.beir import gate_beir, load_beir
    from falsify_adapters.adapters.ir_datasets import load_ir_datasets
    from falsify_adapters.adapters.mteb import load_mteb
    from falsify_adapters.adapters.sources import load
    from falsify_adapters.audit import audit_benchmark
    from falsify_adapters.ceiling import Ceiling, held_out_ceiling, query_blind_ceiling
    from falsify_adapters.comparison import compare, matrix
    from falsify_adapters.dependence import Dependence
    from falsify_adapters.errors import (
        FalsifyError,
        InputError,
        MeasureError,
        MissingExtraError,
        UsageError,
        VerdictError,
    )
    from falsify_adapters.evaluation import Evaluation
    from falsify_adapters.frames import as_qrels, as_run
    from falsify_adapters.gate import calibration_curve, run_gate
    from falsify_adapters.judgements import gate_by_grade, judge_again
    from falsify_adapters.notes import FalsifyWarning, Note
    from falsify_adapters.readers import read_qrels, read_run
    from falsify_adapters.report.plot import plot
    from falsify_adapters.results import GateConfig, GateReport, NullResult
    from falsify_adapters.two_systems import compare_systems

#: Where each public name lives.
_HOME = {
    "Ceiling": "ceiling",
    "Dependence": "dependence",
    "Evaluation": "evaluation",
    "FalsifyError": "errors",
    "FalsifyWarning": "notes",
    "GateConfig": "results",
    "GateReport": "results",
    "InputError": "errors",
    "MeasureError": "errors",
    "MissingExtraError": "errors",
    "Note": "notes",
    "NullResult": "results",
    "UsageError": "errors",
    "VerdictError": "errors",
    "as_qrels": "frames",
    "as_run": "frames",
    "audit_benchmark": "audit",
    "calibration_curve": "gate",
    "compare": "comparison",
    "compare_systems": "two_systems",
    "gate_beir": "adapters.beir",
    "gate_by_grade": "judgements",
    "held_out_ceiling": "ceiling",
    "judge_again": "judgements",
    "load": "adapters.sources",
    "load_beir": "adapters.beir",
    "load_ir_datasets": "adapters.ir_datasets",
    "load_mteb": "adapters.mteb",
    "matrix": "comparison",
    "plot": "report.plot",
    "query_blind_ceiling": "ceiling",
    "read_qrels": "readers",
    "read_run": "readers",
    "run_gate": "gate",
}

__all__ = [
    "Ceiling",
    "Dependence",
    "Evaluation",
    "FalsifyError",
    "FalsifyWarning",
    "GateConfig",
    "GateReport",
    "InputError",
    "MeasureError",
    "MissingExtraError",
    "Note",
    "NullResult",
    "UsageError",
    "VerdictError",
    "__version__",
    "as_qrels",
    "as_run",
    "audit_benchmark",
    "calibration_curve",
    "compare",
    "compare_systems",
    "gate_beir",
    "gate_by_grade",
    "held_out_ceiling",
    "judge_again",
    "load",
    "load_beir",
    "load_ir_datasets",
    "load_mteb",
    "matrix",
    "plot",
    "query_blind_ceiling",
    "read_qrels",
    "read_run",
    "run_gate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
