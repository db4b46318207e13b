"""A bar appears only if somebody watches and the work takes long."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

import pytest

from falsify_adapters import progress as module
from falsify_adapters.progress import progress, quietly, track, wanted
from falsify_adapters.readers import read_run


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def watching() -> Iterator[Terminal]:
    """Let somebody watch standard error. Not a fixture: pytest sets the stream for each test."""
    terminal = Terminal()
    with redirect_stderr(terminal):
        yield terminal


@pytest.fixture(autouse=True)
def all_work_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DELAY", 0.0)
    monkeypatch.setenv("TERM", "xterm")


def work() -> None:
    with progress("counting sheep", 3) as advance:
        for _ in range(3):
            advance(1)


def test_a_bar_on_a_terminal() -> None:
    with watching() as terminal:
        work()
    assert "counting sheep" in terminal.getvalue()


def test_no_bar_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    work()
    assert capsys.readouterr().err == ""


def test_no_bar_for_short_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DELAY", 3600.0)
    with watching() as terminal:
        work()
    assert terminal.getvalue() == ""


def test_no_bar_in_quiet_mode() -> None:
    with watching() as terminal:
        with quietly():
            work()
            assert not wanted(True)
        assert wanted(None)
    assert terminal.getvalue() == ""


def test_the_bar_goes_away_when_the_work_fails() -> None:
    with watching() as terminal:
        with pytest.raises(ZeroDivisionError), progress("dividing", 1) as advance:
            advance(1)
            raise ZeroDivisionError
        sys.stderr.write("afterwards")
    # the line was erased before anything else was written
    assert terminal.getvalue().endswith("\x1b[2Kafterwards")


def test_items_pass_through() -> None:
    with watching() as terminal:
        assert list(track(iter("abc"), "spelling")) == ["a", "b", "c"]
    assert "spelling" in terminal.getvalue()


def test_reading_shows_a_bar() -> None:
    with watching() as terminal:
        assert len(read_run(io.BytesIO(b"q1 Q0 d1 1 2.0 t\n")).frame) == 1
    assert "reading input" in terminal.getvalue()
