"""The page on free points: its table is current."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT


def test_the_table_is_what_the_script_makes(data_dir: Path) -> None:
    script = ROOT / "tests" / "studies" / "free_points.py"
    done = subprocess.run(
        [sys.executable, script, "--check"],
        env={"FALSIFY_DATA_DIR": str(data_dir), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr or "run tests/studies/free_points.py"
