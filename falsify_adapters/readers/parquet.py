"""Runs and qrels in parquet, an optional extra."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from falsify_adapters.errors import InputError, MissingExtraError
from falsify_adapters.notes import some
from falsify_adapters.readers.layout import Kind, Layout, header_columns
from falsify_adapters.readers.lines import Columns, FloatArray, Ids
from falsify_adapters.readers.source import LARGEST_WHOLE


@contextmanager
def opened_parquet(data: bytes, label: str) -> Iterator[Any]:
    """Open a file of bounded size as a ``pyarrow.parquet.ParquetFile``.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    InputError
        If the file is too large when unpacked, or whatever is done with it shows it damaged.
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
        _check_size(file.metadata, label)
        yield file
    except (pyarrow.ArrowException, OSError, ValueError, KeyError) as error:
        raise InputError(f"{label} cannot be read as parquet", found=str(error)[:120]) from None


def parquet_columns(data: bytes, kind: Kind, label: str) -> tuple[Layout, Columns]:
    """Return the columns that a run or qrels need, and where they stood.

    Parameters
    ----------
    data : bytes
        The file.
    kind : {"run", "qrels", "exclusions"}
        What it is read as.
    label : str
        Name of the source, for errors.
    """
    with opened_parquet(data, label) as file:
        names = tuple(file.schema_arrow.names)
        at = header_columns(names, kind)
        if at is None:
            raise InputError(
                f"{label} lacks a column for query or document",
                found=f"columns {some(names, 8)}",
                hint="name them query_id and doc_id",
            )
        table = file.read(columns=[names[position] for position in at.values()])
        columns = {role: table.column(names[position]) for role, position in at.items()}
        piece = Columns(
            _ids(columns["query"], label, "query id"),
            _ids(columns["doc"], label, "document id"),
            _floats(columns["value"], label, "score or grade") if "value" in at else None,
            _floats(columns["rank"], label, "rank") if "rank" in at else None,
        )
    return Layout("parquet", "", at, len(names), header=names), piece


def _ids(column: Any, label: str, role: str) -> Ids:
    import pyarrow as pa

    _refuse_missing(column, label, role)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_integer(kind)
    ):
        raise InputError(
            f"{label} has a {role} column that is neither text nor whole numbers",
            found=str(column.type),
            hint="write ids as text: a number may have lost zeros or digits already",
        )
    coded = column.cast(pa.large_string()).combine_chunks().dictionary_encode()
    codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return Ids(coded.dictionary.to_pylist(), codes)


def _floats(column: Any, label: str, role: str) -> FloatArray:
    import pyarrow as pa

    _refuse_missing(column, label, role)
    if pa.types.is_boolean(column.type):
        raise InputError(f"{label} has a {role} column of yes and no", hint="write 1 and 0")
    values = column.cast(pa.float64()).to_numpy()
    return np.asarray(values, dtype=np.float64)


def _refuse_missing(column: Any, label: str, role: str) -> None:
    if column.null_count:
        raise InputError(
            f"{label} has rows without a {role}", found=f"{column.null_count} of {len(column)}"
        )


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
