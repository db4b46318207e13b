"""The notebooks: each runs from top to bottom, with and without real data, and stays small."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
#: Outputs of one notebook, in characters.
LARGEST = 250_000

# the kernel starts its own event loop and closes it in a way that Python 3.12 warns about
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


def execute(path: Path, monkeypatch: pytest.MonkeyPatch, data: Path) -> Any:
    monkeypatch.setenv("FALSIFY_DATA_DIR", str(data))
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
        record_timing=False,
    ).execute()
    return notebook


def outputs(notebook: Any) -> list[Any]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def check(notebook: Any) -> None:
    found = outputs(notebook)
    assert [o for o in found if "image/png" in o.get("data", {})], "no plot is shown"
    assert not [o for o in found if o.get("name") == "stderr"]
    assert len(json.dumps(found)) < LARGEST


def test_the_notebooks_are_there() -> None:
    assert [path.name[:2] for path in NOTEBOOKS] == ["01", "02", "03", "04"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_without_real_data(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    check(execute(path, monkeypatch, tmp_path))


@pytest.mark.parametrize(
    "path", [path for path in NOTEBOOKS if path.name[:2] in ("02", "04")], ids=lambda p: p.stem
)
def test_it_runs_on_real_data(path: Path, monkeypatch: pytest.MonkeyPatch, data_dir: Path) -> None:
    notebook = execute(path, monkeypatch, data_dir)
    check(notebook)
    assert "nfcorpus" in json.dumps(outputs(notebook)).lower()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_reads_as_an_explanation(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    kinds = [cell.cell_type for cell in notebook.cells]
    assert kinds[0] == kinds[-1] == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    for cell in notebook.cells:
        if cell.cell_type == "code":
            ast.parse(cell.source)
            assert "execution" not in cell.metadata
    text = path.read_text("utf-8")
    assert str(Path.home()) not in text
    assert "/tmp" not in text
