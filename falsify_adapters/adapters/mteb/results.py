"""MTEB's result files: scores without rankings, in the layouts of all versions.

Since 1.11 the scores stand in ``{"task_name", "scores": {split: [{..., "hf_subset"}]}}``; before,
in ``{"mteb_dataset_name", split: {...}}`` or ``{split: {subset: {...}}}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

#: What ir-measures calls MTEB's measures.
_NAMES = {
    "ndcg": "nDCG",
    "map": "AP",
    "mrr": "RR",
    "recall": "R",
    "precision": "P",
    "hit_rate": "Success",
}
_KEY = re.compile(rf"({'|'.join(_NAMES)})_at_([1-9][0-9]{{0,5}})")
_MEASURE = re.compile(rf"({'|'.join(_NAMES.values())})@([0-9]+)")
#: Keys of a score row that are no scores.
_LABELS = frozenset({"hf_subset", "languages", "mteb_version"})
#: Keys of an old result file that are no splits.
_OLD_HEAD = frozenset(
    {
        *("dataset_revision", "mteb_dataset_name", "mteb_version", "evaluation_time"),
        *("kg_co2_emissions", "evaluation_phases", "date"),
    }
)
#: Groups of scores within one split of an old result file, which are no subsets.
_OLD_GROUPS = frozenset({"v_measures", "cos_sim", "euclidean", "manhattan", "dot", "max"})

#: The kinds of irregularity that are counted, and what each means.
ODDITIES = {
    "dict among the scores": "a score is a dict",
    "duplicate subset": "a split lists the same subset twice",
    "infinite value": "a bare Infinity, which is not JSON",
    "main_score differs": "main_score is not the value under the main measure's name",
    "NaN value": "a bare NaN, which is not JSON",
    "negative main_score": "main_score is below 0, as p-MRR can be",
    "no main_score": "a row without main_score",
    "no version": "nothing says which mteb wrote the file",
    "null value": "a score is null",
    'revision "None"': "the model's revision is the word None",
    "split before test": "train or dev stands before test",
    "stub": "an old file with a single score",
    "text value": "a score is text",
    "version range": "mteb_version is a range: the file was written in several runs",
    "old layout": "written before mteb 1.11",
}

Layout = Literal["new", "old"]


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The scores of one split and subset, as they stand in the file.

    Parameters
    ----------
    split, subset : str
        ``default`` is the subset of tasks that have none.
    scores : mapping
        MTEB's measure names to values of any kind.
    """

    split: str
    subset: str
    scores: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Results:
    """The content of one result file.

    Parameters
    ----------
    task : str or None
        The task's name, None if the file does not say it.
    version : str or None
        The mteb version that wrote it.
    layout : {"new", "old"}
        Since 1.11, or before.
    rows : tuple of ScoreRow
        In the order of the file.
    oddities : tuple of str
        Keys of :data:`ODDITIES`, sorted.
    """

    task: str | None
    version: str | None
    layout: Layout
    rows: tuple[ScoreRow, ...]
    oddities: tuple[str, ...] = ()

    @property
    def is_retrieval(self) -> bool:
        """Whether any row has a ranking measure with a cutoff."""
        return any(is_ranking(row.scores) for row in self.rows)


def parse_results(data: Any) -> Results | None:
    """Return the content of a result file, or None if it is something else.

    Parameters
    ----------
    data : object
        The parsed JSON.

    Examples
    --------
    >>> old = {"test": {"ndcg_at_10": 0.61273}, "mteb_dataset_name": "NQ"}
    >>> results = parse_results(old)
    >>> results.task, results.layout, results.rows[0].split, results.oddities
    ('NQ', 'old', 'test', ('no main_score', 'no version', 'old layout', 'stub'))
    >>> parse_results({"q1": {"d1": 0.5}}) is None
    True
    """
    if not isinstance(data, dict):
        return None
    scores = data.get("scores")
    odd: set[str] = set()
    if isinstance(scores, dict) and all(isinstance(rows, list) for rows in scores.values()):
        layout: Layout = "new"
        rows = tuple(_new_rows(scores, odd))
        name = data.get("task_name") or data.get("mteb_dataset_name")
    elif _is_old(data):
        layout = "old"
        odd.add("old layout")
        rows = tuple(_old_rows(data))
        name = data.get("mteb_dataset_name")
        if "mteb_version" not in data and sum(len(row.scores) for row in rows) == 1:
            odd.add("stub")
    else:
        return None
    version = data.get("mteb_version")
    version = version if isinstance(version, str) and version else None
    if version is None:
        odd.add("no version")
    elif "-" in version:
        odd.add("version range")
    splits = list(dict.fromkeys(row.split for row in rows))
    if "test" in splits[1:]:
        odd.add("split before test")
    for row in rows:
        _find_oddities(row.scores, odd)
    task = name if isinstance(name, str) and name else None
    return Results(task, version, layout, rows, tuple(sorted(odd)))


def is_ranking(scores: Mapping[str, Any]) -> bool:
    """Return whether a row has a ranking measure with a cutoff."""
    return "ndcg_at_10" in scores or any(_KEY.fullmatch(key) for key in scores)


def measure_of(key: str) -> str | None:
    """Return the ir-measures name of one of MTEB's measures, or None if there is none.

    Examples
    --------
    >>> measure_of("ndcg_at_10"), measure_of("hit_rate_at_5"), measure_of("p-MRR")
    ('nDCG@10', 'Success@5', None)
    """
    if key == "accuracy":  # of multiple-choice retrieval: recall of the one right answer at 1
        return "R@1"
    match = _KEY.fullmatch(key)
    return None if match is None else f"{_NAMES[match[1]]}@{match[2]}"


def key_of(measure: str) -> str | None:
    """Return MTEB's name of an ir-measures measure, or None if MTEB does not compute it.

    Examples
    --------
    >>> key_of("AP@100"), key_of("nDCG"), key_of("P(rel=2)@5")
    ('map_at_100', None, None)
    """
    match = _MEASURE.fullmatch(measure)
    if match is None:
        return None
    name = next(key for key, value in _NAMES.items() if value == match[1])
    return f"{name}_at_{match[2]}"


def problem_of(value: Any) -> str | None:
    """Say why a value cannot be a score in [0, 1]; None if it can.

    Examples
    --------
    >>> problem_of(float("nan")), problem_of(1.07), problem_of(0.5)
    ('is not a number', '1.07 is outside [0, 1]', None)
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        return "is not a number"
    if not 0 <= value <= 1:
        return f"{str(value)[:20]} is outside [0, 1]"
    return None


def _new_rows(scores: dict[str, Any], odd: set[str]) -> Iterator[ScoreRow]:
    for split, rows in scores.items():
        seen = set()
        for row in rows:
            if not isinstance(row, dict):
                continue
            subset = row.get("hf_subset")
            subset = subset if isinstance(subset, str) and subset else "default"
            if subset in seen:
                odd.add("duplicate subset")
            seen.add(subset)
            yield ScoreRow(split, subset, row)


def _is_old(data: dict[str, Any]) -> bool:
    if "mteb_dataset_name" in data:
        return True
    splits = [value for key, value in data.items() if key not in _OLD_HEAD]
    return bool(splits) and all(
        isinstance(split, dict)
        and (
            is_ranking(split)
            or any(isinstance(row, dict) and is_ranking(row) for row in split.values())
        )
        for split in splits
    )


def _old_rows(data: dict[str, Any]) -> Iterator[ScoreRow]:
    for split, scores in data.items():
        if split in _OLD_HEAD or not isinstance(scores, dict):
            continue
        subsets = {
            name: row
            for name, row in scores.items()
            if isinstance(row, dict) and name not in _OLD_GROUPS
        }
        if subsets:
            for name, row in subsets.items():
                yield ScoreRow(split, name, row)
        else:
            plain = {name: value for name, value in scores.items() if name != "evaluation_time"}
            yield ScoreRow(split, "default", plain)


def _find_oddities(scores: Mapping[str, Any], odd: set[str]) -> None:
    for key, value in scores.items():
        kind = type(value)
        if kind is float:
            # this loop runs over every number of every file: a NaN differs from itself
            if value - value != 0:
                odd.add("NaN value" if value != value else "infinite value")
        elif kind is int or key in _LABELS:
            continue
        elif value is None:
            odd.add("null value")
        elif kind is str:
            odd.add("text value")
        elif kind is dict:
            odd.add("dict among the scores")
    main = scores.get("main_score")
    if "main_score" not in scores:
        odd.add("no main_score")
    elif isinstance(main, float) and main < 0:
        odd.add("negative main_score")
