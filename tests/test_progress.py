"""Progress bars appear where somebody watches, late, and never in the way."""

from __future__ import annotations

import io

import pytest

from falsify_adapters import progress as module
from falsify_adapters.progress import ByteBar, progress, quietly, track
from falsify_adapters.readers import read_run


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rich take the captured standard error for a terminal, and draw at once."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(module, "DELAY", 0.0)


@pytest.mark.usefixtures("terminal")
def test_a_bar_names_what_is_done_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(track("abc", "reading things", show=True)) == ["a", "b", "c"]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "reading things" in captured.err
    with progress("counting sheep", 3, show=True) as advance:
        advance(3)
    assert "counting sheep" in capsys.readouterr().err


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("show", [False, None])
def test_nothing_is_drawn_where_nobody_watches(
    capsys: pytest.CaptureFixture[str], show: bool | None
) -> None:
    assert list(track(iter("abc"), "reading", show=show)) == ["a", "b", "c"]
    with progress("counting", show=show) as advance:
        advance(1)
    assert capsys.readouterr() == ("", "")


def test_short_work_needs_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(track("abc", "reading", show=True)) == ["a", "b", "c"]
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("terminal")
def test_a_bar_is_removed_when_the_work_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyError), progress("failing", 2, show=True) as advance:
        advance(1)
        raise KeyError
    # show the cursor again: rich's last word when it takes a bar away
    assert "\x1b[?25h" in capsys.readouterr().err


@pytest.mark.usefixtures("terminal")
def test_a_download_bar_does_what_pooch_asks(capsys: pytest.CaptureFixture[str]) -> None:
    bar = ByteBar("downloading things")
    bar.total = 4_000_000
    bar.update(1_000_000)
    bar.reset()
    bar.update(bar.total)
    bar.close()
    bar.close()
    error = capsys.readouterr().err
    assert "downloading things" in error
    assert "4.0" in error


@pytest.mark.usefixtures("terminal")
def test_a_download_of_unknown_length_has_a_bar_too(capsys: pytest.CaptureFixture[str]) -> None:
    bar = ByteBar("downloading things")
    bar.total = 0
    bar.update(100)
    bar.reset()
    bar.update(0)
    bar.close()
    assert "downloading things" in capsys.readouterr().err


@pytest.mark.usefixtures("terminal")
def test_quiet_means_no_bar_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    with quietly(), progress("counting", 1, show=True) as advance:
        advance(1)
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("terminal")
def test_reading_has_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "wanted", lambda _show: True)
    assert len(read_run(io.BytesIO(b"q1 Q0 d1 1 2.0 t\n")).frame) == 1
    assert "reading input" in capsys.readouterr().err
