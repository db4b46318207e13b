"""Progress bars on standard error, for what takes longer than a second and somebody watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

Item = TypeVar("Item")

#: Seconds of work before a bar appears: shorter work needs none.
DELAY = 1.0

_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)


@contextmanager
def quietly(quiet: bool = True) -> Iterator[None]:
    """Draw no bars inside this block, if `quiet`.

    Examples
    --------
    >>> with quietly():
    ...     wanted(True)
    False
    """
    token = _QUIET.set(quiet)
    try:
        yield
    finally:
        _QUIET.reset(token)


def wanted(show: bool | None) -> bool:
    """Return whether to draw: `show` if it says so, else whether standard error is a terminal."""
    if _QUIET.get():
        return False
    return sys.stderr.isatty() if show is None else show


class _Bar:
    def __init__(self, description: str, total: float | None) -> None:
        self.description = description
        self.total = total
        self.done = 0.0
        self.started = time.monotonic()
        self.shown: Any = None

    def advance(self, amount: float = 1.0) -> None:
        self.done += amount
        if self.shown is None and time.monotonic() - self.started >= DELAY:
            self._show()
        if self.shown is not None:
            self.shown.update(self.task, completed=self.done)

    def _show(self) -> None:
        # imported late: most work is over before a bar would appear
        from rich.console import Console
        from rich.progress import Progress

        self.shown = Progress(console=Console(stderr=True), transient=True)
        self.task = self.shown.add_task(self.description, total=self.total)
        self.shown.start()

    def close(self) -> None:
        if self.shown is not None:
            self.shown.stop()


@contextmanager
def progress(
    description: str, total: float | None = None, *, show: bool | None = None
) -> Iterator[Callable[[float], None]]:
    """Show a bar while a block runs, if it takes longer than a second and somebody watches.

    Parameters
    ----------
    description : str
        What is being done, for the left end of the bar.
    total : float, optional
        The amount of work; without it the bar only moves.
    show : bool, optional
        Draw or not; by default only on a terminal.

    Yields
    ------
    callable
        To be called with the amount of work just done.

    Examples
    --------
    >>> with progress("counting", 3) as advance:
    ...     for _ in range(3):
    ...         advance(1)
    """
    if not wanted(show):
        yield lambda _amount: None
        return
    bar = _Bar(description, total)
    try:
        yield bar.advance
    finally:
        bar.close()


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
    if total is None and isinstance(items, Sized):
        total = len(items)
    with progress(description, total, show=show) as advance:
        for item in items:
            yield item
            advance(1)


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
