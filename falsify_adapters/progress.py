"""A progress bar on standard error for what takes longer than a second."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

#: Seconds of work before a bar appears: shorter work needs none.
DELAY = 1.0

Item = TypeVar("Item")

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


@contextmanager
def importing() -> Iterator[None]:
    """Import a library whose progress bars, in a notebook, ask for a widget that nobody needs."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="IProgress not found")
        yield


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
        Draw or not; by default only if standard error is a terminal.

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
    total: float | None = None,
    show: bool | None = None,
) -> Iterator[Item]:
    """Yield the items, with a bar as :func:`progress` draws it.

    Parameters
    ----------
    items : iterable
        What is worked on.
    description : str
        What is being done.
    total : float, optional
        Number of items, if `items` does not know it.
    show : bool, optional
        Draw or not; by default only if standard error is a terminal.

    Examples
    --------
    >>> list(track("ab", "reading"))
    ['a', 'b']
    """
    if not wanted(show):
        yield from items
        return
    if total is None and isinstance(items, Sized):
        total = len(items)
    with progress(description, total, show=True) as advance:
        for item in items:
            yield item
            advance(1)


def wanted(show: bool | None) -> bool:
    """Return `show`, or whether somebody watches standard error if it says nothing."""
    if _QUIET.get():
        return False
    return sys.stderr.isatty() if show is None else show


class _Bar:
    """The bar behind :func:`progress`: drawn by rich, late."""

    def __init__(self, description: str, total: float | None) -> None:
        self.description = description
        self.total = total
        self._done = 0.0
        self._started = time.monotonic()
        self._shown: Any = None

    def advance(self, amount: float = 1.0) -> None:
        """Count work that was just done."""
        self._done += amount
        if self._shown is None and time.monotonic() - self._started >= DELAY:
            self._show()
        if self._shown is not None:
            self._shown.update(self._task, completed=self._done, total=self.total or None)

    def close(self) -> None:
        """Remove the bar."""
        if self._shown is not None:
            self._shown.stop()
            self._shown = None

    def _show(self) -> None:
        # imported late: most work is over before a bar would appear
        from rich.console import Console
        from rich.progress import Progress

        self._shown = Progress(*self._columns(), console=Console(stderr=True), transient=True)
        self._task = self._shown.add_task(self.description, total=self.total or None)
        self._shown.start()

    def _columns(self) -> Iterable[Any]:
        from rich.progress import Progress

        return Progress.get_default_columns()


class ByteBar(_Bar):
    """The bar of a download, with the attribute and the methods that pooch asks for.

    Parameters
    ----------
    description : str
        What is being done.

    Attributes
    ----------
    total : float or None
        Number of bytes to come; pooch sets it to what the server says, 0 if it says nothing.
    """

    def __init__(self, description: str) -> None:
        super().__init__(description, None)

    def update(self, n_bytes: int) -> None:
        """Count bytes that just came."""
        self.advance(n_bytes)

    def reset(self) -> None:
        """Go back to the start: pooch does, before it fills the bar."""
        self._done = 0.0

    def _columns(self) -> Iterable[Any]:
        from rich.progress import DownloadColumn, TransferSpeedColumn

        return (*super()._columns(), DownloadColumn(), TransferSpeedColumn())
