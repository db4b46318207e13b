"""Compare a recomputed score with the reported one, and find the convention that explains it.

Scores of the same rankings differ between tools by a few habits: single precision or the order of
the input where scores tie, the mean over answered queries only, documents that are the query
itself, the first result, another split. Each is tried, alone and then in pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd

from falsify_adapters.frames import as_run, categories
from falsify_adapters.measures import Measure, parse_measure, query_scores
from falsify_adapters.results import plain

Run = Mapping[str, Mapping[str, float]]
#: Returns the qrels of a split by its name.
Qrels = Callable[[str], pd.DataFrame]

#: Reported scores are rounded to five decimals.
DIGITS = 5
TOLERANCE = 0.5 * 10**-DIGITS + 1e-9


@dataclass(frozen=True)
class Conventions:
    """How rankings become one score.

    Parameters
    ----------
    ties : {"double", "single", "input"}
        Scores compared in double or single precision, ties by document id descending; or ties in
        the order of the input.
    mean : {"all", "answered"}
        Over all judged queries, a missing one counting 0, or over those that the run answers.
    own : {"keep", "drop"}
        What happens to documents whose id is the query's.
    first : {"keep", "drop"}
        What happens to the first result of each query.
    split : str or None
        The split of the qrels.
    """

    ties: Literal["double", "single", "input"] = "double"
    mean: Literal["all", "answered"] = "all"
    own: Literal["keep", "drop"] = "keep"
    first: Literal["keep", "drop"] = "keep"
    split: str | None = None


_WORDS = {
    ("ties", "single"): "scores compared in single precision",
    ("ties", "double"): "scores compared in double precision",
    ("ties", "input"): "ties in the order of the input",
    ("mean", "answered"): "the mean over answered queries only",
    ("mean", "all"): "the mean over all judged queries",
    ("own", "keep"): "documents that are the query itself kept",
    ("own", "drop"): "documents that are the query itself left out",
    ("first", "keep"): "the first result kept",
    ("first", "drop"): "the first result left out",
}


@dataclass(frozen=True)
class Reproduction:
    """The comparison of a recomputed score with the reported one.

    Parameters
    ----------
    measure : str
        As ir-measures prints it.
    reported, recomputed : float
        The two scores; `recomputed` by this package's conventions.
    difference : float
        Recomputed minus reported.
    status : {"equal", "explained", "not reproduced"}
        Equal to five decimals; equal by other conventions; or by none of those that were tried.
    conventions : tuple of str
        What it takes, in words; empty unless "explained".
    also : tuple of str
        Other single conventions, or pairs, that give the reported score as well.
    tried : int
        Number of combinations that were computed.
    """

    measure: str
    reported: float
    recomputed: float
    difference: float
    status: Literal["equal", "explained", "not reproduced"]
    conventions: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    tried: int = 1
    system: str = "run"
    benchmark: str | None = None
    split: str | None = None
    task: str | None = None
    subset: str | None = None
    model: str | None = None
    revision: str | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    role: Literal["check"] = "check"
    kind: Literal["reproduction"] = "reproduction"
    verdict: None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return dict(plain({name: getattr(self, name) for name in self.__dataclass_fields__}))

    def __str__(self) -> str:
        if self.status == "equal":
            return f"the reported score {self.reported:.5f} is reproduced"
        head = f"reported {self.reported:.5f}, recomputed {self.recomputed:.5f}"
        if self.status == "explained":
            return f"{head}: reproduced with {' and '.join(self.conventions)}"
        return f"{head}: none of {self.tried} combinations of known conventions reproduces it"


def reproduce(
    run: Run,
    qrels: Qrels,
    measure: str | Measure,
    reported: float,
    *,
    base: Conventions,
    splits: tuple[str, ...] = (),
    **names: Any,
) -> Reproduction:
    """Compare a score recomputed from rankings with the reported one.

    Parameters
    ----------
    run : mapping
        ``{query_id: {doc_id: score}}`` as the tool wrote it, in its order. Left unchanged.
    qrels : callable
        Returns the common qrels frame of a split.
    measure : str or ir_measures.Measure
        The measure.
    reported : float
        The reported score.
    base : Conventions
        How this package scores the run, the split included.
    splits : tuple of str
        Other splits that have qrels.
    **names
        Fields of :class:`Reproduction` for the report.

    Examples
    --------
    >>> from falsify_adapters.frames import as_qrels
    >>> judged = as_qrels({"q1": {"d1": 1}, "q2": {"d2": 1}})
    >>> found = reproduce({"q1": {"d1": 0.9}}, lambda split: judged, "nDCG@10", 1.0,
    ...     base=Conventions(split="test"))
    >>> found.recomputed, found.status, found.conventions
    (0.5, 'explained', ('the mean over answered queries only',))
    """
    parsed = parse_measure(measure)
    scorer = _Scorer(run, qrels, parsed)
    recomputed = scorer.score(base)
    figures = {
        "measure": str(parsed),
        "reported": float(reported),
        "recomputed": recomputed,
        "difference": recomputed - float(reported),
        **names,
    }
    if _equal(recomputed, reported):
        return Reproduction(status="equal", **figures)
    tried = 1
    for size in (1, 2):
        found = []
        for changes in _changes(base, splits, size):
            tried += 1
            if _equal(scorer.score(replace(base, **dict(changes))), reported):
                found.append(tuple(_words(name, value) for name, value in changes))
        if found:
            return Reproduction(
                status="explained",
                conventions=found[0],
                also=tuple(" and ".join(words) for words in found[1:]),
                tried=tried,
                **figures,
            )
    return Reproduction(status="not reproduced", tried=tried, **figures)


class _Scorer:
    """Scores one run under any conventions, each step done once."""

    def __init__(self, run: Run, qrels: Qrels, measure: Measure) -> None:
        self._run, self._qrels, self._measure = run, qrels, measure
        self._frames: dict[Conventions, pd.DataFrame | None] = {}

    def score(self, conventions: Conventions) -> float:
        judged = self._qrels(conventions.split or "")
        query_ids = categories(judged["query_id"])
        answered = np.array([query_id in self._run for query_id in query_ids], dtype=bool)
        frame = self._frame(replace(conventions, mean="all", split=None))
        scores = (
            np.zeros(len(query_ids))
            if frame is None
            else query_scores(frame, judged, self._measure)[0]
        )
        if conventions.mean == "answered":
            return float(scores[answered].mean()) if answered.any() else math.nan
        return float(scores.mean())

    def _frame(self, conventions: Conventions) -> pd.DataFrame | None:
        if conventions not in self._frames:
            run = {query: _documents(query, docs, conventions) for query, docs in self._run.items()}
            self._frames[conventions] = as_run(run) if any(run.values()) else None
        return self._frames[conventions]


def _documents(
    query_id: str, documents: Mapping[str, float], conventions: Conventions
) -> dict[str, float]:
    kept = dict(documents)
    if conventions.own == "drop":
        kept.pop(query_id, None)
    if conventions.first == "drop":
        # the sort is stable: among ties the first of the input goes
        kept = dict(sorted(kept.items(), key=lambda item: item[1], reverse=True)[1:])
    if conventions.ties == "single":
        return {doc: _single(score) for doc, score in kept.items()}
    if conventions.ties == "input":
        order = sorted(kept, key=kept.__getitem__, reverse=True)
        return {doc: float(len(order) - rank) for rank, doc in enumerate(order)}
    return kept


def _single(score: float) -> float:
    with np.errstate(over="ignore"):
        single = float(np.float32(score))
    return single if math.isfinite(single) else score


def _changes(
    base: Conventions, splits: tuple[str, ...], size: int
) -> Iterator[tuple[tuple[str, Any], ...]]:
    """Yield sets of changes to the base, the likeliest first."""
    options = [
        ("mean", _other(base.mean, "all", "answered")),
        ("own", _other(base.own, "keep", "drop")),
        ("ties", [ties for ties in ("single", "input", "double") if ties != base.ties]),
        ("first", _other(base.first, "keep", "drop")),
        ("split", [split for split in splits if split != base.split]),
    ]
    single = [(name, value) for name, values in options for value in values]
    for chosen in combinations(single, size):
        if len({name for name, _ in chosen}) == size:
            yield chosen


def _other(value: str, one: str, two: str) -> list[str]:
    return [two if value == one else one]


def _words(name: str, value: str) -> str:
    return _WORDS.get((name, value), f"the qrels of the split {value}")


def _equal(one: float, other: float) -> bool:
    return abs(one - other) <= TOLERANCE
