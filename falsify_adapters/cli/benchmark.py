"""The qrels of ``falsify-ir``: a file, or a data set of ir_datasets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from falsify_adapters.cli.dependence import queries_of
from falsify_adapters.cli.grading import system_names

if TYPE_CHECKING:
    from falsify_adapters.readers import QrelsFile
    from falsify_adapters.readers.queries import Queries

#: What says that a name is the id of a data set of ir_datasets.
PREFIX = "irds:"


@dataclass(frozen=True)
class Benchmark:
    """What runs are graded against.

    Parameters
    ----------
    name : str
        For the report.
    judged : QrelsFile
        The judgements.
    queries : callable
        Returns the queries, from the file that it is given or else from the data set.
    """

    name: str
    judged: QrelsFile
    queries: Callable[[str | None], Queries]

    @classmethod
    def of(cls, place: str) -> Benchmark:
        """Open what QRELS names."""
        if not place.startswith(PREFIX):
            from falsify_adapters.readers import read_qrels

            return cls(system_names([place])[place], read_qrels(place), queries_of)
        from falsify_adapters.adapters.ir_datasets import open_collection

        collection = open_collection(place)

        def queries(path: str | None) -> Queries:
            return collection.queries if path is None else queries_of(path)

        return cls(collection.name, collection.judged, queries)


def corpus_size_of(place: str) -> int | None:
    """Return how many documents a data set of ir_datasets holds; None for a file, or if unknown."""
    if not place.startswith(PREFIX):
        return None
    from falsify_adapters.adapters.ir_datasets import open_collection

    return open_collection(place).corpus_size


def as_named(_context: click.Context, _argument: click.Parameter, place: str | None) -> str | None:
    """Put ``irds:`` before the bare id of a data set; a file of that name comes first."""
    from falsify_adapters.adapters.ir_datasets import as_collection_name

    return None if place is None else as_collection_name(place)
