"""A progress bar on standard error for what takes longer than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: Seconds of work before a bar appears: shorter work needs none.
DELAY = 1.0


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
def progress(description: str, total: float | None = None) -> Iterator[Callable[[float], None]]:
    """Show a bar while a block runs, if it takes longer than a second and somebody watches.

    Parameters
    ----------
    description : str
        What is being done, for the left end of the bar.
    total : float, optional
        The amount of work; without it the bar only moves.

    Yields
    ------
    callable
        To be called with the amount of work just done. Does nothing unless standard error is a
        terminal.

    Examples
    --------
    >>> with progress("counting", 3) as advance:
    ...     for _ in range(3):
    ...         advance(1)
    """
    if not sys.stderr.isatty():
        yield lambda _amount: None
        return
    bar = _Bar(description, total)
    try:
        yield bar.advance
    finally:
        bar.close()
