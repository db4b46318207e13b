"""Runs and qrels in parquet, an optional extra."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd

from falsify_adapters.errors import InputError, MissingExtraError
from falsify_adapters.notes import some
from falsify_adapters.readers.layout import Kind, header_columns
from falsify_adapters.readers.source import LARGEST_WHOLE


def parquet_frame(data: bytes, kind: Kind, label: str) -> pd.DataFrame:
    """Return the columns that a run or qrels need, under the common names.

    Parameters
    ----------
    data : bytes
        The file.
    kind : {"run", "qrels"}
        What it is read as.
    label : str
        Name of the source, for errors.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError(
            f"{label} is a parquet file, which needs an optional package",
            hint="pip install 'falsify-adapters[parquet]'",
        ) from None
    try:
        file = parquet.ParquetFile(io.BytesIO(data))
        names = list(file.schema_arrow.names)
        at = _columns(names, kind, label)
        _check_size(file.metadata, label)
        table = file.read(columns=[names[position] for position in at.values()])
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{label} is not a valid parquet file", found=str(error)[:120]) from None
    value = "score" if kind == "run" else "relevance"
    wanted = {"query": "query_id", "doc": "doc_id", "value": value}
    return pd.DataFrame(
        {wanted[role]: _column(table.column(names[at[role]])) for role in wanted}, copy=False
    )


def _column(column: Any) -> pd.Series[Any]:
    # a dictionary is decoded; ids become objects, so that none passes through a float
    return pd.Series(column.to_pandas(strings_to_categorical=False, integer_object_nulls=True))


def _columns(names: list[str], kind: Kind, label: str) -> dict[str, int]:
    at = header_columns(names, kind)
    if at is None or "value" not in at:
        value = "score" if kind == "run" else "relevance"
        raise InputError(
            f"{label} lacks a column for query, document or {value}",
            found=f"columns {some(names, 8)}",
            hint=f"name them query_id, doc_id and {value}",
        )
    return {role: at[role] for role in ("query", "doc", "value")}


def _check_size(metadata: Any, label: str) -> None:
    size = sum(
        metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)
    )
    if size > LARGEST_WHOLE:
        raise InputError(
            f"{label} is too large to be read as a whole (limit {LARGEST_WHOLE >> 30} GiB)",
            found=f"{size} bytes unpacked",
            hint="write it as a TREC run, which is read in pieces",
        )
