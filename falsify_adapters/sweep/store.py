"""The folder of finished units: one small Parquet file each, and the folder is one flat table."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from falsify_adapters.errors import MissingExtraError, UsageError
from falsify_adapters.report.jsonfile import write_atomically
from falsify_adapters.report.outcome import Outcome
from falsify_adapters.sweep.finished import Finished

#: Changes whenever what is kept, or what a key is made of, changes.
FORMAT = 1
#: Units of several runs together (comparisons, controls, playgrounds). Readers of a folder of
#: Parquet leave out names that begin like this.
TOGETHER = "_together"
_UNIT = re.compile(r"[0-9a-f]{32}\.parquet")
#: Seconds after which a file that was never moved into place belongs to a process that was killed.
ABANDONED = 3600


def key_of(facts: Mapping[str, Any]) -> str:
    """Return the name of a unit: a hash of everything that decides its numbers and words.

    Examples
    --------
    >>> key_of({"a": 1, "b": None}) == key_of({"b": None, "a": 1})
    True
    """
    text = json.dumps({"format": FORMAT, **facts}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]


class Store:
    """Finished units on disk.

    Parameters
    ----------
    folder : str
        Made if it is not there.

    Attributes
    ----------
    damaged : list of str
        Names of files that were there and could not be read.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    UsageError
        If the folder cannot be written to, or holds what no sweep wrote.
    """

    def __init__(self, folder: str) -> None:
        if find_spec("pyarrow") is None:
            raise MissingExtraError(
                "keeping finished runs (--resume) needs pyarrow",
                hint="pip install 'falsify-adapters[parquet]'",
            )
        from falsify_adapters.sweep.codec import prepare

        prepare()
        self.folder = Path(folder)
        self.damaged: list[str] = []
        self._used: set[Path] = set()
        try:
            (self.folder / TOGETHER).mkdir(parents=True, exist_ok=True)
            self._refuse_strangers()
            self._tidy()
        except OSError as error:
            raise UsageError(
                f"--resume {folder} cannot be used", found=error.strerror or str(error)
            ) from None
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise UsageError(f"--resume {folder} cannot be used", found="it may not be written to")

    def load(self, key: str, *, together: bool = False) -> Finished | None:
        """Return a finished unit; None if there is none, or its file is damaged."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self._path(key, together)
        self._used.add(path)
        if not path.exists():
            return None
        from falsify_adapters.sweep.codec import unpack

        try:
            table = pq.read_table(
                io.BytesIO(path.read_bytes()),
                columns=["unit", "state"],
                page_checksum_verification=True,
            )
            finished = unpack(table.column("state")[0].as_py())
            if table.column("unit")[0].as_py() != key or not isinstance(finished, Finished):
                raise ValueError("another unit")
        # cut, changed, or not ours: whatever it is, the unit is simply done again
        except (OSError, ValueError, IndexError, KeyError, TypeError, pa.ArrowException):
            self.damaged.append(path.name)
            return None
        return finished

    def save(self, key: str, finished: Finished, *, together: bool = False) -> None:
        """Keep a finished unit: whole or not at all, whenever the process is killed.

        Raises
        ------
        UsageError
            If it cannot be written.
        """
        write_atomically(self._path(key, together), unit_table(key, finished))

    def others(self) -> int:
        """Return how many units of other inputs or settings the folder's table also holds."""
        return sum(_is_unit(path) and path not in self._used for path in self.folder.iterdir())

    def _path(self, key: str, together: bool) -> Path:
        folder = self.folder / TOGETHER if together else self.folder
        return folder / f"{key}.parquet"

    def _refuse_strangers(self) -> None:
        strangers = sorted(
            path.name
            for path in self.folder.iterdir()
            if not _is_unit(path) and not path.name.startswith((".", "_"))
        )
        if strangers:
            raise UsageError(
                f"--resume {self.folder} is no folder of finished runs",
                found=", ".join(strangers[:3]),
                hint="name a folder that is empty or not there yet",
            )

    def _tidy(self) -> None:
        """Remove what killed processes left half written."""
        for folder in (self.folder, self.folder / TOGETHER):
            for path in folder.glob(".*.part"):
                if time.time() - path.stat().st_mtime > ABANDONED:
                    path.unlink(missing_ok=True)


def unit_table(key: str, finished: Finished) -> bytes:
    """Return the Parquet file of a unit: a row per gate report, as ``--parquet`` has them.

    Beside these columns: ``unit``, the key; ``report``, the report as in the JSON document; and
    ``state``, in the first row only, from which the documents are made.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from falsify_adapters.report import table
    from falsify_adapters.report.text import printable
    from falsify_adapters.sweep.codec import pack

    reports = finished.gate_reports()
    rows = list(table.rows(Outcome(reports=list(reports)))) or [dict.fromkeys(table.COLUMNS)]
    texts: list[Any] = [json.dumps(report.to_dict()) for report in reports] or [None]
    columns: dict[str, list[Any]] = {"unit": [key] * len(rows)}
    for name in table.COLUMNS:
        values = [row[name] for row in rows]
        columns[name] = [printable(v) if isinstance(v, str) else v for v in values]
    columns["report"] = texts
    columns["state"] = [pack(finished), *[None] * (len(rows) - 1)]
    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    kinds = {"unit": str, **table.COLUMNS, "report": str}
    schema = pa.schema([*((n, types[k]) for n, k in kinds.items()), ("state", pa.binary())])
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns, schema=schema), buffer, write_page_checksum=True)
    return buffer.getvalue()


def _is_unit(path: Path) -> bool:
    return _UNIT.fullmatch(path.name) is not None
