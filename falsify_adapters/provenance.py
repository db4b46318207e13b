"""What a report says about its own making: hashes of frames, versions, rules; one BLAS thread.

No time stamp and no path: two runs of one command on one machine give the same bytes.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Mapping
from functools import wraps
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from falsify_adapters.frames import categories, codes, compact

P = ParamSpec("P")
R = TypeVar("R")

#: Packages whose version can change a number.
DECIDING = (
    *("falsify-adapters", "numpy", "scipy", "pandas", "ir-measures", "pytrec-eval-terrier"),
    *("bm25s", "snowballstemmer"),
)
TIE_RULE = "score descending (compared as float64), then doc_id descending as text"
POPULATION_RULE = (
    "every query of the qrels counts; a query that the run does not answer, and one without a"
    " relevant document, scores 0"
)


def describe_environment() -> dict[str, Any]:
    """Return what decides the numbers besides inputs and settings, ready for JSON.

    Examples
    --------
    >>> sorted(describe_environment())
    ['blas_threads', 'machine', 'packages', 'population_rule', 'python', 'tie_rule']
    """
    return {
        "packages": {name: _version(name) for name in DECIDING},
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "blas_threads": 1,
        "tie_rule": TIE_RULE,
        "population_rule": POPULATION_RULE,
    }


def _version(package: str) -> str | None:
    if package == "falsify-adapters":
        from falsify_adapters import __version__

        return __version__
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def describe_frame(frame: pd.DataFrame) -> dict[str, Any]:
    """Return hash and counts of a run or qrels frame.

    Parameters
    ----------
    frame : DataFrame
        In the common form (see :mod:`falsify_adapters.frames`).

    Returns
    -------
    dict
        ``sha256`` (see :func:`frame_sha256`), ``rows`` and ``queries``.

    Examples
    --------
    >>> from falsify_adapters import as_run
    >>> figures = describe_frame(as_run({"q1": {"d1": 0.5, "d2": 0.7}}))
    >>> figures["rows"], figures["queries"], figures["sha256"][:8]
    (2, 1, 'bc542d0f')
    """
    return {
        "sha256": frame_sha256(frame),
        "rows": len(frame),
        "queries": len(categories(frame["query_id"])),
    }


def frame_sha256(frame: pd.DataFrame) -> str:
    """Return the SHA-256 of a frame's content, whatever file it came from.

    Hashed one after the other: the query ids (those without rows included), the ids of the
    documents that occur, both sorted; then per row, in the frame's order, the positions of query
    and document in these lists, and the value. A list of ids is their number, their lengths in
    characters, and all of them end to end in UTF-8. Lengths, numbers, positions and grades are
    64-bit integers, scores 64-bit floats, all little-endian.
    """
    digest = hashlib.sha256()
    used, doc_code = compact(codes(frame["doc_id"]), len(frame["doc_id"].cat.categories))
    for ids in (categories(frame["query_id"]), categories(frame["doc_id"])[used]):
        lengths = [len(ids), *map(len, ids)]
        digest.update(np.array(lengths, dtype="<i8").tobytes())
        digest.update("".join(ids).encode("utf-8", "surrogatepass"))
    digest.update(codes(frame["query_id"]).astype("<i8").tobytes())
    digest.update(doc_code.astype("<i8").tobytes())
    values = frame.iloc[:, 2].to_numpy()
    # -0.0 and 0.0 are one score
    values = values + 0.0 if values.dtype.kind == "f" else values
    digest.update(values.astype("<f8" if values.dtype.kind == "f" else "<i8").tobytes())
    return digest.hexdigest()


def with_frames(provenance: Mapping[str, Any], **frames: pd.DataFrame) -> dict[str, Any]:
    """Return provenance that also describes the frames that were graded, under ``frames``."""
    described = {name: describe_frame(frame) for name, frame in frames.items()}
    return {**provenance, "frames": described}


def one_blas_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that computes: how BLAS splits a sum depends on its threads."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with threadpool_limits(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited
