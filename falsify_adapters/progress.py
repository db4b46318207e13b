"""Progress bars on standard error, shown only where somebody is watching."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

Item = TypeVar("Item")


def wanted(show: bool | None) -> bool:
    """Return whether to draw: `show` if it says so, else whether standard error is a terminal."""
    return sys.stderr.isatty() if show is None else show


def track(
    items: Iterable[Item],
    description: str,
    *,
    total: int | None = None,
    show: bool | None = None,
) -> Iterator[Item]:
    """Yield the items, with a bar that disappears at the end.

    Parameters
    ----------
    items : iterable
        What is worked on.
    description : str
        Text before the bar.
    total : int, optional
        Number of items, if `items` does not know it.
    show : bool, optional
        Draw or not; by default only on a terminal.

    Examples
    --------
    >>> list(track("ab", "reading", show=False))
    ['a', 'b']
    """
    if not wanted(show):
        yield from items
        return
    from rich.console import Console
    from rich.progress import track as rich_track

    yield from rich_track(
        items, description, total=total, console=Console(stderr=True), transient=True
    )


class ByteBar:
    """A bar for a download, with the three methods that pooch calls.

    Parameters
    ----------
    description : str
        Text before the bar.

    Attributes
    ----------
    total : int
        Number of bytes to come, set by pooch; 0 when the server does not say.
    """

    def __init__(self, description: str) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self.total = 0
        columns: list[Any] = [TextColumn("{task.description}"), BarColumn(), DownloadColumn()]
        columns += [TransferSpeedColumn(), TimeRemainingColumn()]
        self._progress = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task(description, total=None)
        self._progress.start()

    def update(self, n_bytes: int) -> None:
        """Advance the bar."""
        self._progress.update(self._task, advance=n_bytes, total=self.total or None)

    def reset(self) -> None:
        """Set the bar back to the start, which pooch does before it fills it."""
        self._progress.reset(self._task)

    def close(self) -> None:
        """Remove the bar."""
        self._progress.stop()
