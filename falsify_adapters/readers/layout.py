"""Which columns a table has: names in a header, or positions without one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["run", "qrels", "exclusions"]

#: A decimal number as C reads it; Python's own ``float`` also takes ``1_000`` and other digits.
NUMBER = re.compile(
    r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?(?:nan|inf(?:inity)?)",
    re.IGNORECASE,
)
INTEGER = re.compile(r"[+-]?[0-9]+(?:\.0*)?")

#: Header names without case, blanks, hyphens and underscores; the first one present wins
#: (PyTerrier writes its own numbers as ``docid`` beside the real ``docno``).
NAMES: dict[str, tuple[str, ...]] = {
    "query": ("queryid", "qid", "query", "topicid", "topic", "queryno"),
    "doc": (
        "corpusid",
        "docno",
        "docid",
        "documentid",
        "passageid",
        "pid",
        "did",
        "doc",
        "document",
        "corpus",
    ),
    "score": ("score", "similarity", "sim"),
    "relevance": (
        "relevance",
        "rel",
        "label",
        "grade",
        "score",
        "judgment",
        "judgement",
        "qrel",
        "rating",
    ),
    "rank": ("rank", "position"),
}


@dataclass(frozen=True)
class Layout:
    r"""How the lines of a table split into fields, and which field is what.

    Parameters
    ----------
    name : {"trec", "tsv", "csv", "msmarco"}
        The format, for reports.
    delimiter : {"\t", ",", " "}
        " " stands for any number of blanks and tabs.
    columns : dict
        Position of "query", "doc" and, where there is one, "value" and "rank".
    n_fields : int
        Fields per line.
    quoted : bool
        Whether double quotes enclose fields.
    tag_runs_on : bool
        Whether text beyond the last field belongs to it (the tag of a TREC run).
    header : tuple of str
        The header's names; empty if there is none.
    skip : int
        Lines to skip at the start of the file: header and comments before it.
    comments : int
        How many of these are comments.
    """

    name: str
    delimiter: str
    columns: dict[str, int]
    n_fields: int
    quoted: bool = False
    tag_runs_on: bool = False
    header: tuple[str, ...] = ()
    skip: int = 0
    comments: int = 0

    def __str__(self) -> str:
        order = sorted((position, role) for role, position in self.columns.items())
        named = ", ".join(f"{role} in column {position + 1}" for position, role in order)
        return f"{named} ({'by header' if self.header else 'no header'})"


def header_columns(fields: Sequence[str], kind: Kind) -> dict[str, int] | None:
    """Return the columns that a header names, or None if the fields are no header.

    Examples
    --------
    >>> header_columns(["corpus-id", "query-id", "score"], "qrels")
    {'query': 1, 'doc': 0, 'value': 2}
    >>> header_columns(["q1", "d1", "1"], "qrels") is None
    True
    """
    plain = [re.sub(r"[\s_-]", "", field.strip('"').lower()) for field in fields]
    columns: dict[str, int] = {}
    value = {"run": "score", "qrels": "relevance"}.get(kind)
    for role, names in NAMES.items():
        if role in ("score", "relevance") and role != value:
            continue
        found = next((plain.index(name) for name in names if name in plain), None)
        if found is not None:
            columns["value" if role == value else role] = found
    if "query" not in columns or "doc" not in columns:
        return None
    if "value" in columns and NUMBER.fullmatch(fields[columns["value"]].strip()):
        return None
    if kind == "qrels":
        columns.pop("rank", None)
    return columns
