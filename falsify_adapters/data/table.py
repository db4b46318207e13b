"""The table of BEIR's data sets: names, splits, sizes, checksums.

The figures come from the README of the BEIR repository.
"""

from __future__ import annotations

import csv
import difflib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class BeirEntry:
    """One row of the table.

    Parameters
    ----------
    name : str
        BEIR's name, which is the name of its folder and of its zip.
    aliases : tuple of str
        Other names that people type.
    mteb_task : str or None
        The retrieval task of MTEB over the same data.
    splits : tuple of str
        Splits that have qrels.
    default_split : str
        The split on which scores are reported: ``test``, but ``dev`` for msmarco.
    queries, documents : int
        Size of the default split and of the corpus.
    approximate : bool
        True if `documents` is a rounded figure.
    judgements_per_query : float
        Mean number of relevant documents.
    md5 : str or None
        Checksum of the zip; None if BEIR offers no download.
    """

    name: str
    aliases: tuple[str, ...]
    mteb_task: str | None
    splits: tuple[str, ...]
    default_split: str
    queries: int
    documents: int
    approximate: bool
    judgements_per_query: float
    md5: str | None


@cache
def beir_table() -> tuple[BeirEntry, ...]:
    """Return every data set of BEIR.

    Examples
    --------
    >>> len(beir_table())
    19
    """
    text = files("falsify_adapters.data").joinpath("beir_datasets.csv").read_text("utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return tuple(
        BeirEntry(
            name=row["name"],
            aliases=tuple(row["aliases"].split()),
            mteb_task=row["mteb_task"] or None,
            splits=tuple(row["splits"].split()),
            default_split=row["default_split"],
            queries=int(row["queries"]),
            documents=int(row["documents"]),
            approximate=row["approximate"] == "yes",
            judgements_per_query=float(row["judgements_per_query"]),
            md5=row["md5"] or None,
        )
        for row in rows
    )


def find_entry(name: str) -> BeirEntry | None:
    """Return the data set that `name` means, or None.

    Upper and lower case, blanks, hyphens and underscores make no difference, and the names of
    MTEB's tasks are understood too.

    Examples
    --------
    >>> find_entry("Touche").name, find_entry("trec_covid").name, find_entry("FiQA2018").name
    ('webis-touche2020', 'trec-covid', 'fiqa')
    >>> find_entry("my-own-set") is None
    True
    """
    return _by_key().get(_key(name))


def close_names(name: str) -> list[str]:
    """Return the names that a misspelt one may have meant, best first.

    Examples
    --------
    >>> close_names("scifcat")
    ['scifact']
    """
    keys = difflib.get_close_matches(_key(name), _by_key(), n=3, cutoff=0.7)
    return list(dict.fromkeys(_by_key()[key].name for key in keys))


@cache
def _by_key() -> dict[str, BeirEntry]:
    return {
        _key(name): entry
        for entry in beir_table()
        for name in (entry.name, *entry.aliases, entry.mteb_task)
        if name
    }


def _key(name: str) -> str:
    return "".join(char for char in name.casefold() if char.isalnum())
