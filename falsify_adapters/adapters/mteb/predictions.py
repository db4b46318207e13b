"""MTEB's prediction files: rankings per query, in the shapes of all versions.

=========  ==========================================  =====================
shape      content                                     written by
=========  ==========================================  =====================
flat       ``{query_id: {doc_id: score}}``             1.1.2 - 1.39
by split   ``{split: {query_id: {doc_id: score}}}``    nobody, but documented
nested     ``{subset: {split: {query_id: ...}}}``      2.0.1 and later
=========  ==========================================  =====================

The nested shape has ``mteb_model_meta`` beside the subsets. Files are told apart by content.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from falsify_adapters.errors import InputError

Run = Mapping[str, Mapping[str, float]]
Shape = Literal["flat", "by split", "nested"]

#: The key beside the subsets in the nested shape.
META = "mteb_model_meta"
#: Documents kept beyond the depth: the query itself and the first one may go later.
SPARE = 2


@dataclass(frozen=True)
class Part:
    """The rankings of one subset and split.

    Parameters
    ----------
    subset, split : str or None
        None where the file does not say it.
    run : mapping
        ``{query_id: {doc_id: score}}`` as it stands in the file, before MTEB's own removal of
        identical ids and first results.
    """

    subset: str | None
    split: str | None
    run: Run = field(repr=False)


@dataclass(frozen=True)
class Predictions:
    """The content of one prediction file.

    Parameters
    ----------
    shape : {"flat", "by split", "nested"}
        Which of the three.
    model, revision : str or None
        What the file says; MTEB keeps the first model's name when another one writes to the same
        file.
    parts : tuple of Part
        In the order of the file.
    skipped : tuple of (str, str)
        Parts that are no rankings, and why.
    """

    shape: Shape
    model: str | None
    revision: str | None
    parts: tuple[Part, ...]
    skipped: tuple[tuple[str, str], ...] = ()


def read_predictions(path: Path, *, depth: int | None = None) -> Predictions | str:
    """Read a prediction file.

    Parameters
    ----------
    path : Path
        The file.
    depth : int, optional
        Keep only documents that can reach this rank, by any convention for ties, whichever two
        documents before them go.

    Returns
    -------
    Predictions or str
        Or the reason why the file holds no rankings.

    Raises
    ------
    InputError
        If the file is no JSON, or holds a key twice.
    """
    try:
        # the text alone is kept while it is parsed: these files are large
        data = json.loads(_text_of(path), object_pairs_hook=_Hook(depth))
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name} is not UTF-8", found=str(error)[:120]) from None
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path.name} is not valid JSON",
            found=f"{error.msg} (line {error.lineno}, column {error.colno})",
            hint="was the file cut?",
        ) from None
    except _RepeatedKeyError as error:
        raise InputError(f"{path.name} holds the key {error} twice in one object") from None
    except (ValueError, RecursionError) as error:  # thousands of digits, or of brackets
        raise InputError(f"{path.name} is not valid JSON", found=str(error)[:120]) from None
    return parse_predictions(data)


def _text_of(path: Path) -> str:
    content = path.read_bytes()
    return content.decode(json.detect_encoding(content))


def parse_predictions(data: Any) -> Predictions | str:
    """Return the rankings in parsed JSON, or the reason why it holds none.

    Examples
    --------
    >>> flat = parse_predictions({"q1": {"d2": 0.31, "d1": 0.78}})
    >>> flat.shape, len(flat.parts), flat.parts[0].split
    ('flat', 1, None)
    >>> nested = {"mteb_model_meta": {"model_name": "a/b"}, "en": {"test": {"q1": {"d1": 1.0}}}}
    >>> parse_predictions(nested).parts
    (Part(subset='en', split='test'),)
    >>> parse_predictions({"cosine_scores": [0.1, 0.2]})
    'predictions of another kind of task (cosine_scores is a list)'
    """
    if not isinstance(data, dict) or not data:
        return f"no rankings ({_kind(data)})"
    meta = data.get(META)
    if isinstance(meta, dict) and "model_name" in meta:
        return _nested(data, meta)
    shape = _shape(data)
    if shape == "flat":
        return Predictions("flat", None, None, (Part(None, None, data),))
    if shape == "by split":
        parts = tuple(Part(None, split, run) for split, run in data.items())
        return Predictions("by split", None, None, parts)
    if shape == "nested":
        return _nested(data, {})
    return shape


def is_predictions(data: Any) -> bool:
    """Return whether parsed JSON has one of the three shapes, or is of a model's predictions."""
    return isinstance(data, dict) and (META in data or not isinstance(parse_predictions(data), str))


def _nested(data: dict[str, Any], meta: dict[str, Any]) -> Predictions | str:
    parts, skipped = [], []
    for subset, splits in data.items():
        if subset == META:
            continue
        if not isinstance(splits, dict):
            skipped.append((subset, f"no rankings ({_kind(splits)})"))
            continue
        for split, run in splits.items():
            shape = _shape(run) if isinstance(run, dict) else f"no rankings ({_kind(run)})"
            if shape == "flat":
                parts.append(Part(subset, split, run))
            else:
                skipped.append((f"{subset}, {split}", f"{shape}"))
    if not parts:
        return skipped[0][1] if skipped else "no rankings (nothing but the model's name)"
    return Predictions(
        "nested", _text(meta.get("model_name")), _text(meta.get("revision")), tuple(parts),
        tuple(skipped),
    )  # fmt: skip


def _shape(data: dict[str, Any]) -> Shape | str:
    """Return the shape of a dict of dicts by the depth of its first number."""
    depth = 0
    path = []
    item: Any = data
    while isinstance(item, dict):
        depth += 1
        # an empty dict says nothing: a query without results may come first
        key = next((key for key, value in item.items() if value not in ({}, None)), None)
        if key is None:
            return "flat" if depth == 2 or _all_dicts(data) else f"no rankings ({_kind(item)})"
        path.append(key)
        item = item[key]
    if isinstance(item, (list, str)):
        return f"predictions of another kind of task ({path[-1]} is {_kind(item)})"
    shapes: dict[int, Shape] = {2: "flat", 3: "by split", 4: "nested"}
    return shapes.get(depth, f"no rankings (numbers at depth {depth})")


def _all_dicts(data: dict[str, Any]) -> bool:
    return bool(data) and all(isinstance(value, dict) for value in data.values())


def _kind(value: Any) -> str:
    names = {list: "a list", str: "text", dict: "an empty object", type(None): "null"}
    return names.get(type(value), type(value).__name__)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


class _RepeatedKeyError(Exception):
    pass


class _Hook:
    """Builds the dicts of a file: refuses repeated keys, cuts rankings to what can matter."""

    def __init__(self, depth: int | None) -> None:
        self._keep = None if depth is None else depth + SPARE

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        table = dict(pairs)
        if len(table) < len(pairs):
            counts = Counter(key for key, _ in pairs)
            raise _RepeatedKeyError(repr(counts.most_common(1)[0][0]))
        if self._keep is None or len(table) <= self._keep:
            return table
        return dict(_best(table, self._keep)) if type(pairs[0][1]) in (float, int) else table


def _best(documents: dict[str, Any], keep: int) -> Iterator[tuple[str, Any]]:
    """Yield the best documents, and all that tie with the last of them in single precision."""
    try:
        scores = np.fromiter(documents.values(), dtype=np.float64, count=len(documents))
    except (TypeError, ValueError, OverflowError):  # no ranking: left for the checks to name
        yield from documents.items()
        return
    if not np.isfinite(scores).all():
        yield from documents.items()
        return
    with np.errstate(over="ignore"):
        single = scores.astype(np.float32)
    least = np.partition(single, -keep)[-keep]
    for item, kept in zip(documents.items(), (single >= least).tolist(), strict=True):
        if kept:
            yield item
