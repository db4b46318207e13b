"""Where the real data ought to be, its tests cannot be skipped silently."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli_runs import ROOT


@pytest.mark.parametrize(
    ("ci", "shared", "outcome"),
    [("true", True, "1 error"), ("true", False, "1 skipped"), ("", True, "1 skipped")],
)
def test_a_skip_of_a_real_data_test(tmp_path: Path, ci: str, shared: bool, outcome: str) -> None:
    tests = tmp_path / "project" / "tests"
    tests.mkdir(parents=True)
    shutil.copy(ROOT / "tests" / "conftest.py", tests)
    (tests / "test_it.py").write_text("def test_it(data_dir):\n    assert data_dir\n")
    (tmp_path / "project" / "pytest.ini").write_text("[pytest]\nmarkers = real_data: x\n")
    if shared:
        (tmp_path / "shared").mkdir()
    environment = {k: v for k, v in os.environ.items() if k not in ("CI", "FALSIFY_DATA_DIR")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=tmp_path / "project",
        env={**environment, "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in done.stdout
    assert done.returncode == (1 if outcome == "1 error" else 0)
