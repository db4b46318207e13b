"""Where two JSON documents of the same call differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from falsify_adapters.notes import counted

#: What differs between other versions or machines may be this much, relative and absolute.
TOLERANCE = 1e-9
#: Sentences: they repeat numbers, rounded.
SENTENCES = frozenset({"reason", "sentence", "message", "remarks"})


@dataclass(frozen=True)
class Difference:
    """One place at which two documents differ.

    Parameters
    ----------
    place : str
        Such as ``reports 2 (bm25, nDCG@10): nulls A mean``.
    was, now : object
        What stood there, and what stands there now.
    """

    place: str
    was: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.place}: was {_shown(self.was)}, is {_shown(self.now)}"


@dataclass
class Comparison:
    """What was compared.

    Parameters
    ----------
    exact : bool
        Whether numbers must be the same to their 12 digits, or to :data:`TOLERANCE`; sentences
        are then not compared.
    """

    exact: bool
    numbers: int = 0

    def differences(self, was: Any, now: Any, place: str = "") -> Iterator[Difference]:
        """Yield every difference between two parsed JSON values.

        Examples
        --------
        >>> comparison = Comparison(exact=True)
        >>> [str(d) for d in comparison.differences({"a": [1.0, 2.0]}, {"a": [1.0, 2.5]})]
        ['a 2: was 2.0, is 2.5']
        >>> comparison.numbers
        2
        """
        if isinstance(was, Mapping) and isinstance(now, Mapping):
            for key in [*was, *(key for key in now if key not in was)]:
                if self.exact or key not in SENTENCES:
                    inner = f"{place} {key}".strip()
                    yield from self.differences(was.get(key), now.get(key), inner)
        elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
            for i, (one, other) in enumerate(zip(was, now, strict=True), 1):
                yield from self.differences(one, other, f"{place} {i}".strip())
        elif not self._same(was, now):
            yield Difference(place, was, now)

    def _same(self, was: Any, now: Any) -> bool:
        if not (_is_number(was) and _is_number(now)):
            return type(was) is type(now) and bool(was == now)
        self.numbers += 1
        if self.exact:
            return bool(was == now)
        return math.isclose(was, now, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return counted(len(value), "entry")
    return "absent" if value is None else str(value)
