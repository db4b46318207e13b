"""Whatever moment a command is killed at, what it leaves is whole (``make kills``: 200 times)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kills import Undisturbed, examine, kill_often

#: Kills in the tests, and the seed of their moments.
TIMES, SEED = 15, 12


def test_killed_at_any_moment_files_are_whole_and_sweeps_go_on(tmp_path: Path) -> None:
    assert sum(kill_often(tmp_path, TIMES, SEED).values()) == TIMES


def test_the_examination_notices_what_is_not_whole(tmp_path: Path) -> None:
    whole = Undisturbed(1.0, {"json": b"{}\n"})
    (tmp_path / "out.json").write_bytes(b"{}\n")
    assert examine(tmp_path, whole) == "writing"
    (tmp_path / "out.json").write_bytes(b"{}")
    with pytest.raises(AssertionError, match=r"out\.json is not whole"):
        examine(tmp_path, whole)
