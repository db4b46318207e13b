"""Reports to JSON and back, exactly: every digit, every array, every type.

The published JSON document rounds to 12 digits and leaves out the trials, from which the HTML page
draws. What is kept of a finished unit must give the same documents as the unit itself. Nothing is
ever unpickled: only the classes named here are made, from their own fields.
"""

from __future__ import annotations

import base64
import io
import json
import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd

from falsify_adapters.errors import FalsifyError

#: Classes that may be kept, by module.
KEPT = {
    "falsify_adapters.judgements": ("AtGrade", "GradeTable", "Overlap", "SecondJudgement"),
    "falsify_adapters.notes": ("Note",),
    "falsify_adapters.playground": ("Playground", "Point", "Step"),
    "falsify_adapters.report.outcome": ("Refusal",),
    "falsify_adapters.results": ("Companion", "GateReport", "NullResult", "Power", "Ties"),
    "falsify_adapters.sweep.finished": ("Event", "Finished"),
    "falsify_adapters.two_systems": ("Beyond", "Comparison"),
}
#: Errors that may be kept, by module.
ERRORS = {
    "falsify_adapters.errors": ("FalsifyError", "InputError", "MeasureError", "UsageError"),
    "falsify_adapters.readers": ("ScoreOrderError",),
}
#: The key that says what a JSON object stands for.
TAG = "$"


def prepare() -> None:
    """Import what keeping needs, so that the first unit is kept as fast as the others."""
    import pyarrow.feather
    import pyarrow.parquet  # noqa: F401

    _classes()
    _errors()


def pack(value: Any) -> bytes:
    """Return a value as compressed JSON.

    Raises
    ------
    TypeError
        If something in it cannot be kept.

    Examples
    --------
    >>> from falsify_adapters.notes import Note
    >>> unpack(pack((Note("W-TIES", "3 queries"), 0.1 + 0.2, float("inf"))))
    (Note(code='W-TIES', message='3 queries'), 0.30000000000000004, inf)
    """
    return zlib.compress(json.dumps(_encoded(value), allow_nan=False).encode("ascii"), 1)


def unpack(packed: bytes) -> Any:
    """Return what :func:`pack` was given.

    Raises
    ------
    ValueError
        If it is damaged.
    """
    try:
        return _decoded(json.loads(zlib.decompress(packed)))
    except Exception as error:  # a damaged byte can go wrong in any of these steps
        raise ValueError(f"{type(error).__name__}: {error}") from None


def _encoded(value: Any) -> Any:
    if value is None or isinstance(value, bool) or type(value) in (int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {TAG: "float", "value": repr(value)}
    if type(value) is list:
        return [_encoded(item) for item in value]
    if type(value) is tuple:
        return {TAG: "tuple", "items": [_encoded(item) for item in value]}
    if isinstance(value, Mapping):
        return {TAG: "dict", "items": [[_encoded(k), _encoded(v)] for k, v in value.items()]}
    if isinstance(value, (np.ndarray, np.generic)):
        return _array(value)
    if isinstance(value, pd.DataFrame):
        return {TAG: "frame", "arrow": _text(_frame_bytes(value))}
    if isinstance(value, FalsifyError):
        about = (value.lacks, value.found, value.hint)
        return {TAG: type(value).__name__, "about": list(about)}
    name = type(value).__name__
    if is_dataclass(value) and _classes().get(name) is type(value):
        return {TAG: name, **{f.name: _encoded(getattr(value, f.name)) for f in fields(value)}}
    raise TypeError(f"{type(value)} cannot be kept")


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if not isinstance(value, dict):
        return value
    tag = value.pop(TAG)
    if tag in _PLAIN:
        return _PLAIN[tag](value)
    if tag in _errors():
        lacks, found, hint = value["about"]
        return _errors()[tag](lacks, found=found, hint=hint)
    kept = _classes()[tag]
    return kept(**{name: _decoded(item) for name, item in value.items()})


def _array(value: np.ndarray[Any, Any] | np.generic) -> dict[str, Any]:
    array = np.asarray(value)
    if array.dtype.kind not in "bifu":
        raise TypeError(f"arrays of {array.dtype} cannot be kept")
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return {
        TAG: "array" if isinstance(value, np.ndarray) else "scalar",
        "dtype": little.dtype.str,
        "shape": list(array.shape),
        "data": _text(little.tobytes()),
    }


def _array_of(kept: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    array = np.frombuffer(base64.b64decode(kept["data"]), dtype=kept["dtype"])
    return array.reshape(kept["shape"]).astype(array.dtype.newbyteorder("="))


def _frame_bytes(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    # pyarrow keeps the types of columns and index
    frame.to_feather(buffer, compression="uncompressed")
    return buffer.getvalue()


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


_PLAIN: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "float": lambda kept: float(kept["value"]),
    "tuple": lambda kept: tuple(_decoded(item) for item in kept["items"]),
    "dict": lambda kept: {_decoded(key): _decoded(item) for key, item in kept["items"]},
    "array": _array_of,
    "scalar": lambda kept: _array_of(kept)[()],
    "frame": lambda kept: pd.read_feather(io.BytesIO(base64.b64decode(kept["arrow"]))),
}


@cache
def _classes() -> dict[str, Any]:
    return _named(KEPT)


@cache
def _errors() -> dict[str, Any]:
    return _named(ERRORS)


def _named(by_module: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    return {
        name: getattr(import_module(module), name)
        for module, names in by_module.items()
        for name in names
    }
