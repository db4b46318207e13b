"""Files below one folder, and no others: whatever a path is made of, it does not lead out.

A refusal never depends on what exists outside the folder.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.report.text import printable, shorten

#: Where the system opens a name relative to an opened folder, no link can be put in between.
_STEPWISE = os.open in os.supports_dir_fd
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
# opening a named pipe must not wait for its writer
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
LONGEST_SHOWN = 120


class Files:
    """Opens plain files below a folder.

    Parameters
    ----------
    root : str or None
        The folder; None refuses every path.
    largest : int
        Most bytes that a file may have.
    """

    def __init__(self, root: str | None, largest: int) -> None:
        self._root = None if root is None else os.path.realpath(root)
        self._given = None if root is None else str(Path(root).absolute())
        self._largest = largest

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading, in binary.

        Parameters
        ----------
        path : str
            Relative to the folder, or absolute and below it. ``~`` is a name like any other.

        Raises
        ------
        UsageError
            If there is no folder.
        InputError
            If the path leads out of the folder, or to no plain file, or to one that is too large.
        """
        if self._root is None:
            raise UsageError(
                "this server reads no files",
                hint="give the rows themselves, or start the server with --root FOLDER",
            )
        shown = repr(shorten(printable(path), LONGEST_SHOWN))
        parts = self._parts(path, shown)
        try:
            handle = _open_below(self._root, parts)
        except (OSError, ValueError):
            raise InputError(
                f"{shown} is no file in the server's folder that can be read",
                hint="paths are relative to that folder",
            ) from None
        try:
            self._check(os.fstat(handle), shown)
        except InputError:
            os.close(handle)
            raise
        name = os.path.join(*parts)  # noqa: PTH118  # only a label, which errors and reports show
        return cast(BinaryIO, open(name, "rb", buffering=0, opener=lambda _name, _flags: handle))

    def _parts(self, path: str, shown: str) -> list[str]:
        """Return the names from the folder down to the file, free of links and dots."""
        root = cast(str, self._root)
        with suppress(ValueError):  # a NUL, or another drive
            # by its text alone first, so that nothing outside is looked at
            inside = self._below(os.path.normpath(os.path.join(root, path)))  # noqa: PTH118
            if inside is not None:
                real = os.path.realpath(os.path.join(root, *inside))  # noqa: PTH118
                parts = _relative(real, root)
                if parts is not None:
                    return parts
        raise InputError(
            f"{shown} leads out of the server's folder",
            hint="paths are relative to that folder, and links may not leave it",
        )

    def _below(self, path: str) -> list[str] | None:
        """Return the parts of a path below the folder, by either of the folder's names."""
        names = (_relative(path, root) for root in (self._root, self._given) if root is not None)
        return next((parts for parts in names if parts is not None), None)

    def _check(self, status: os.stat_result, shown: str) -> None:
        if not stat.S_ISREG(status.st_mode):
            raise InputError(f"{shown} is no plain file", hint="name a file of a run or of qrels")
        if status.st_size > self._largest:
            raise InputError(
                f"{shown} is too large (limit {self._largest:,} bytes)",
                found=f"{status.st_size:,} bytes",
                hint="cut the run to the depth of the measure, or use the falsify-ir command",
            )


def _relative(path: str, root: str) -> list[str] | None:
    """Return the parts of `path` below `root`; None if it is not below it."""
    found, above = Path(path).parts, Path(root).parts
    return list(found[len(above) :]) if found[: len(above)] == above else None


def _open_below(root: str, parts: list[str]) -> int:
    """Open a file step by step, so that a folder that became a link meanwhile is refused."""
    if not parts or not _STEPWISE:
        return os.open(os.path.join(root, *parts), _READ)  # noqa: PTH118
    folder = os.open(root, _READ | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _READ | os.O_DIRECTORY | _NO_LINK, dir_fd=folder)
            os.close(folder)
            folder = inner
        return os.open(parts[-1], _READ | _NO_LINK | _NO_WAIT, dir_fd=folder)
    finally:
        os.close(folder)
