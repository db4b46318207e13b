"""Graded rankings and bare scores as one flat table, for CSV and Parquet: a row per score."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from falsify_adapters.certificate import Certificate
from falsify_adapters.errors import MissingExtraError
from falsify_adapters.report.csvfile import harmless
from falsify_adapters.report.models import FolderReport
from falsify_adapters.report.outcome import Outcome
from falsify_adapters.report.text import printable
from falsify_adapters.reproduce import Reproduction
from falsify_adapters.results import NULLS, GateReport, plain

_NAMES = ("kind", "role", "system", "model", "revision", "benchmark", "subset", "split", "measure")
_FIGURES = ("n_queries", "corpus_size", "corpus_size_source", "score", "score_answered")
_VERDICT = ("tau", "verdict", "definition_1", "reason")

#: Columns and their types: str, int, float or bool.
COLUMNS: dict[str, type] = {
    **dict.fromkeys(_NAMES, str),
    "n_queries": int,
    "corpus_size": int,
    "corpus_size_source": str,
    "score": float,
    "score_answered": float,
    "reported": float,
    "reproduced": str,
    "tau": float,
    "verdict": str,
    "definition_1": bool,
    "reason": str,
    **{f"{name}_{figure}": float for name in NULLS for figure in ("mean", "delta", "low", "high")},
    "ceiling": float,
    "warnings": str,
}


def rows(outcome: Outcome) -> Iterator[dict[str, Any]]:
    """Yield one row per gate report and certificate; a missing value is None.

    For certificates `X_mean` is the null's upper bound and `X_delta` a lower bound.
    """
    checks = {
        _key(report): report for report in outcome.reports if isinstance(report, Reproduction)
    }
    for report in outcome.reports:
        if not isinstance(report, (GateReport, Certificate)):
            continue
        row: dict[str, Any] = dict.fromkeys(COLUMNS)
        for name in (*_NAMES, *_FIGURES, *_VERDICT):
            row[name] = getattr(report, name, None)
        check = checks.get(_key(report))
        if isinstance(report, Certificate):
            row["reported"] = report.score
            row["ceiling"] = report.ceiling
            for name, bound in report.bounds.items():
                row |= {f"{name}_mean": bound.bound, f"{name}_delta": bound.delta}
        else:
            for name, null in report.nulls.items():
                row |= {f"{name}_{f}": getattr(null, f) for f in ("mean", "delta", "low", "high")}
            if check is not None:
                row |= {"reported": check.reported, "reproduced": check.status}
        row["warnings"] = " ".join(dict.fromkeys(note.code for note in report.warnings))
        yield dict(plain(row))


def fits(outcome: Outcome) -> bool:
    """Return whether the outcome is of folders, which may hold bare scores beside rankings."""
    return any(isinstance(report, FolderReport) for report in outcome.reports)


def to_csv(outcome: Outcome) -> bytes:
    """Return the table as CSV in UTF-8."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows(outcome):
        writer.writerow({name: _cell(value) for name, value in row.items()})
    return text.getvalue().encode("utf-8", errors="backslashreplace")


def to_parquet(outcome: Outcome) -> bytes:
    """Return the table as Parquet, with the same columns and types for any outcome.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    """
    if find_spec("pyarrow") is None:
        raise MissingExtraError(
            "writing Parquet needs pyarrow", hint="pip install 'falsify-adapters[parquet]'"
        )
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    schema = pa.schema([(name, types[kind]) for name, kind in COLUMNS.items()])
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for row in rows(outcome):
        for name, value in row.items():
            columns[name].append(printable(value) if isinstance(value, str) else value)
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns, schema=schema), buffer)
    return buffer.getvalue()


def _key(report: GateReport | Certificate | Reproduction) -> tuple[str | None, ...]:
    return (
        *(report.system, report.revision, report.task, report.subset, report.split),
        report.measure,
    )


def _cell(value: Any) -> Any:
    return harmless(value) if isinstance(value, str) else value
