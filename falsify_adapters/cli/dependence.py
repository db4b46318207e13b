"""``--clusters``, ``--blocks``, ``--strata``: how the queries of a benchmark hang together."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.notes import some

if TYPE_CHECKING:
    import pandas as pd

    from falsify_adapters.dependence import Dependence
    from falsify_adapters.readers.queries import Queries

AUTO, GOLD_COUNT = "auto", "gold-count"


@dataclass(frozen=True)
class Judged:
    """The queries of one benchmark, as far as a command knows them.

    Parameters
    ----------
    qrels : DataFrame
        The common qrels frame.
    queries : callable
        Reads the queries' file; raises if there is none.
    order : sequence of str, optional
        The queries in the order in which the file with the judgements has them.
    order_from : str
        What that order is, for the report.
    """

    qrels: pd.DataFrame
    queries: Callable[[], Queries]
    order: Sequence[str] = ()
    order_from: str = "first appearance in the qrels file"

    @property
    def ids(self) -> list[str]:
        """The judged queries."""
        return list(self.qrels["query_id"].cat.categories)


@dataclass(frozen=True)
class Grouping:
    """What the options say of clusters, blocks and strata; files are read once.

    Parameters
    ----------
    clusters, strata : str or None
        ``auto`` or ``gold-count``, a file, or a column of the queries' file.
    block_length : int or None
        Queries per block.
    block_column : str or None
        Column that gives the order in time, by default the order of the queries' file.
    queries_file : str or None
        ``--queries``.
    """

    clusters: str | None
    strata: str | None
    block_length: int | None
    block_column: str | None
    queries_file: str | None
    _names: dict[str, dict[str, str]] = field(default_factory=dict, repr=False)

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Grouping:
        """Take what the user asked for; refuses what makes no sense."""
        length, column = _blocks(options["blocks"])
        if options["clusters"] is not None and length is not None:
            raise UsageError("--clusters and --blocks exclude each other")
        if options["strata"] is not None and options["permute"] == "label":
            raise UsageError(
                "--strata and --permute label exclude each other",
                hint="labels have no strata: queries have",
            )
        queries = options["queries"]
        if queries is not None and not os.path.exists(queries):  # noqa: PTH110
            # also where nothing asks for it: a mistyped name is no reason to go on without it
            raise InputError(f"--queries {queries[:80]} does not exist", hint="check the path")
        return cls(options["clusters"], options["strata"], length, column, options["queries"])

    def of(self, judged: Judged) -> Dependence | None:
        """Return how the queries of one benchmark hang together; None if nothing was asked for."""
        if self.clusters is None and self.strata is None and self.block_length is None:
            return None
        from falsify_adapters.dependence import Dependence

        known: dict[str, Any] = {}
        if self.clusters is not None:
            known["clusters"], known["clusters_from"] = self._clusters(judged)
        if self.strata is not None:
            known["strata"], known["strata_from"] = self._strata(judged)
        if self.block_length is not None:
            known["order"], known["order_from"] = self._order(judged)
            known["block_length"] = self.block_length
        found = Dependence(**known)
        self._check(found, judged)
        return found

    def _check(self, found: Dependence, judged: Judged) -> None:
        """Refuse now, once, what every run would be refused for."""
        if found.clusters is not None and not set(found.clusters) & set(judged.ids):
            raise InputError(
                f"--clusters {self.clusters} names none of the judged queries",
                found=f"{some(found.clusters)}, expected {some(judged.ids)}",
            )
        if found.strata is not None:
            found.stratum_codes(judged.ids)
        if found.order is not None:
            found.positions(judged.ids)

    def _clusters(self, judged: Judged) -> tuple[dict[str, str], str]:
        if self.clusters != AUTO:
            return self._named(str(self.clusters), judged)
        from falsify_adapters.paraphrases import RULE, similar_queries

        texts = judged.queries().texts
        missing = [query_id for query_id in judged.ids if query_id not in texts]
        if missing:
            raise InputError(
                "--clusters auto needs the text of every judged query",
                found=f"{len(missing)} without one ({some(missing)})",
                hint="--queries FILE gives them",
            )
        return similar_queries({query_id: texts[query_id] for query_id in judged.ids}), RULE

    def _strata(self, judged: Judged) -> tuple[dict[str, str], str]:
        if self.strata != GOLD_COUNT:
            return self._named(str(self.strata), judged)
        relevant = judged.qrels[judged.qrels["relevance"] > 0]
        counts = relevant["query_id"].value_counts()
        names = {query_id: str(int(counts.get(query_id, 0))) for query_id in judged.ids}
        return names, "number of relevant documents"

    def _order(self, judged: Judged) -> tuple[list[str], str]:
        if self.block_column is not None:
            names, source = self._named(self.block_column, judged)
            in_time = sorted(names, key=lambda query_id: _time(names[query_id]))
            return in_time, f"sorted by {source}"
        if not judged.order or self.queries_file is not None:
            found = judged.queries()
            return list(found.texts), f"order of {Path(found.name).name}"
        return list(judged.order), judged.order_from

    def _named(self, place: str, judged: Judged) -> tuple[dict[str, str], str]:
        """Return the names in a file, or in a column of the queries' file."""
        if Path(place).is_file():
            from falsify_adapters.readers.queries import read_names

            if place not in self._names:
                self._names[place] = read_names(place)
            return self._names[place], Path(place).name
        if any(sign in place for sign in "./\\"):
            raise InputError(f"{place} does not exist", hint="check the path")
        return judged.queries().column(place), f"column {place}"


def _blocks(text: str | None) -> tuple[int | None, str | None]:
    """Take ``N`` or ``N:COLUMN`` apart."""
    if text is None:
        return None, None
    length, _, column = text.partition(":")
    # more digits than any number of queries has, and Python reads no number of thousands of them
    if not length.isdecimal() or len(length) > 18 or int(length) < 1:
        raise UsageError("--blocks takes a number of queries, or N:COLUMN", found=repr(text)[:60])
    return int(length), column or None


def _time(text: str) -> tuple[int, float, str]:
    """Sort numbers by value, before all else; dates like 2024-05-31 sort as text."""
    try:
        return 0, float(text), ""
    except ValueError:
        return 1, 0.0, text


def queries_of(path: str | None) -> Queries:
    """Read the file of ``--queries``, which something else needs."""
    if path is None:
        raise UsageError(
            "the queries' texts or columns are not at hand", hint="give --queries FILE"
        )
    from falsify_adapters.readers.queries import read_queries

    return read_queries(path)
