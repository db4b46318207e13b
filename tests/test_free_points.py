"""The page on free points: its table is current, and its example prints what it says."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

PAGE = ROOT / "docs" / "free-points.md"


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


def test_the_example_prints_what_it_says() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    said = [line.split("# ")[1] for line in example.splitlines() if "  # " in line]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(example, {})
    assert out.getvalue().splitlines()[: len(said)] == said
