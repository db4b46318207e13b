"""The pages in ``docs``: found, linked, current, and true in what they show."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

import falsify_adapters
from tests.adapters.test_sources import pyterrier_frames
from tests.pages import (
    DOCS,
    ROOT,
    all_pages,
    assert_is_printed,
    blocks_of,
    run_commands,
    run_python,
    write_workplace,
)

PAGES = [path for path in all_pages() if path.parent != ROOT]
INDEX = DOCS / "README.md"
#: Pages that lead on to the pages of a folder.
FOLDERS = {DOCS / "studies": DOCS / "studies.md"}
#: Its commands, and what it loads, run on files of many tools: tests/test_docs_sources.py.
ELSEWHERE = {"docs/sources.md"}
COMMANDS = [
    block
    for path in PAGES
    for block in blocks_of(path, "sh")
    if not block.marked and block.page not in ELSEWHERE
]
SNIPPETS = [
    block
    for path in PAGES
    for block in blocks_of(path, "python")
    if not block.marked and not (block.page in ELSEWHERE and "load(" in block.body)
]
PICTURES = [
    block for path in PAGES for block in blocks_of(path, "text") if block.body.startswith("$ ")
]
#: Blocks that cannot run here, by page.
NOT_RUN = {"docs/install.md": 4, "docs/many-runs.md": 1, "docs/mcp.md": 1}
LINK = re.compile(r"\]\(\s*([^)\s]+)\s*\)")


def prose(path: Path) -> str:
    """Return a page without its blocks of code, and without code in lines."""
    text = re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "`", text)


def links(path: Path) -> list[str]:
    return [link for link in LINK.findall(prose(path)) if not re.match(r"\w+:", link)]


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as code hosts and the site make them."""
    text = re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_every_page_is_in_the_navigation(path: Path) -> None:
    if path == INDEX:
        return
    above = FOLDERS.get(path.parent, INDEX)
    targets = {(above.parent / link.partition("#")[0]).resolve() for link in links(above)}
    assert path in targets, f"{above.name} does not link to it"


@pytest.mark.parametrize(
    "path", all_pages(), ids=lambda path: path.relative_to(ROOT).as_posix().replace("/", "-")
)
def test_every_link_leads_somewhere(path: Path) -> None:
    for link in links(path):
        place, _, anchor = link.partition("#")
        target = (path.parent / place).resolve() if place else path
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def first_column(path: Path) -> list[str]:
    return re.findall(r"^\| `([\w.]+)` \|", path.read_text("utf-8"), re.MULTILINE)


def test_every_public_name_is_in_the_reference_once() -> None:
    public = set(falsify_adapters.__all__) - {"__version__"}
    assert Counter(first_column(DOCS / "api.md")) == Counter(public)


def test_the_modules_for_extensions_exist_and_say_what_they_are() -> None:
    modules = first_column(DOCS / "extending.md")
    assert {name.partition(".")[0] for name in modules} >= {
        *("adapters", "readers", "nulls", "measures", "report")
    }
    for name in modules:
        assert import_module(f"falsify_adapters.{name}").__doc__


def test_what_is_made_from_the_package_is_current() -> None:
    # in a process of its own: click remembers how a command was called first
    check = [sys.executable, "-m", "tests.make_docs", "--check"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"run python -m tests.make_docs: {done.stderr}"


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FALSIFY_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(write_workplace(tmp_path))
    return tmp_path


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize("block", COMMANDS, ids=str)
def test_commands_run(block: Any) -> None:
    run_commands(block)


@pytest.mark.usefixtures("workplace")
@pytest.mark.parametrize("block", SNIPPETS, ids=str)
def test_python_runs_and_prints_what_it_says(block: Any) -> None:
    results, qrels = pyterrier_frames()

    class Dataset:
        def get_qrels(self) -> Any:
            return qrels

    run_python(block, {"results": results, "dataset": Dataset(), "n_documents": 1000})


@pytest.mark.parametrize("block", PICTURES, ids=str)
def test_pictures_of_the_terminal_are_what_is_printed(block: Any, tmp_path: Path) -> None:
    assert_is_printed(block, tmp_path)


def test_the_excerpt_of_the_first_gate_is_from_the_picture_of_the_readme() -> None:
    [excerpt] = blocks_of(DOCS / "first-gate.md", "text")
    [picture] = blocks_of(ROOT / "README.md", "text")  # which is held against what is printed
    assert set(excerpt.body.splitlines()) <= set(picture.body.splitlines())


def test_blocks_that_do_not_run_are_counted() -> None:
    marked = Counter(block.page for path in PAGES for block in blocks_of(path) if block.marked)
    assert marked == NOT_RUN
    assert COMMANDS
    assert SNIPPETS
    assert PICTURES


def test_the_citation_is_of_this_version_and_says_what_it_must() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == falsify_adapters.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert citation["title"] == project["name"]
    assert citation["license"] == project["license"]
    assert citation["authors"] == project["authors"]
    assert citation["message"]


def test_the_changelog_has_this_version() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(rf"^## {re.escape(falsify_adapters.__version__)}\b", changes, re.MULTILINE)
