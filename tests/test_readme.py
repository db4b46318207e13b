"""The README is true: its commands run, its snippets run, its picture is what comes out."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from falsify_adapters.cli.command import BY_VERDICT, INTERNAL, INTERRUPTED, REFUSED
from tests.cli_runs import ROOT, launcher
from tests.pages import assert_is_printed, blocks_of, write_workplace

README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


COMMANDS = [
    line for block in blocks("sh") for line in block.splitlines() if line.startswith("falsify-")
]


def test_it_opens_with_the_two_make_targets() -> None:
    first = blocks("sh")[0].splitlines()
    assert [line.split()[:2] for line in first] == [["make", "demo"], ["make", "test"]]
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for word in re.findall(r"^make (\w+)", README, re.MULTILINE):
        assert re.search(rf"^{word}:", makefile, re.MULTILINE)


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A folder that holds the files which the commands name."""
    return write_workplace(tmp_path)


@pytest.mark.parametrize("line", COMMANDS)
def test_each_command_runs(line: str, workplace: Path) -> None:
    words = shlex.split(line, comments=True)
    rest: list[str] = []
    if "&&" in words:
        words, rest = words[: words.index("&&")], words[words.index("&&") + 1 :]
    command, *arguments = words
    done = subprocess.run(
        launcher(command.removeprefix("falsify-"), *arguments),
        cwd=workplace,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "FALSIFY_DATA_DIR": str(workplace / "data"),
            "XDG_CACHE_HOME": str(workplace / "cache"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not rest or rest[0] == "echo"


def test_there_are_commands_to_run() -> None:
    assert len(COMMANDS) >= 3


def test_the_picture_is_what_the_command_prints(tmp_path: Path) -> None:
    (picture,) = blocks_of(ROOT / "README.md", "text")
    assert_is_printed(picture, tmp_path)


class Retriever:
    """Stands for a retriever that has retrieved: only its evaluation is BEIR's."""

    k_values = (1, 10)

    def evaluate(self, qrels: Any, results: Any, k_values: Any) -> Any:
        evaluation = pytest.importorskip("beir.retrieval.evaluation")
        return evaluation.EvaluateRetrieval.evaluate(qrels, results, list(k_values))


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_each_snippet_runs(
    number: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    n_queries = 120
    names: dict[str, Any] = {
        "retriever": Retriever(),
        "corpus": {f"d{i}": {"title": "", "text": str(i)} for i in range(n_queries)},
        "qrels": {f"q{i}": {f"d{i}": 1} for i in range(n_queries)},
        "results": {f"q{i}": {f"d{i}": 0.9} for i in range(n_queries)},
    }
    exec(blocks("python")[number], names)
    assert names["report"].verdict == "PASS"
    assert "print" not in blocks("python")[number] or "PASS" in capsys.readouterr().out


def test_the_exit_statuses_of_the_table() -> None:
    table = dict(re.findall(r"^\| (\d+) \| (.*) \|$", README, re.MULTILINE))
    assert set(map(int, table)) == {*BY_VERDICT.values(), REFUSED, INTERNAL, INTERRUPTED}
    assert "PASS" in table["0"]
    assert "FAIL" in table["1"]
    assert "refused" in table["2"]
    assert "UNDER-NS" in table["3"]


def test_the_pip_lines_name_extras_that_exist() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = re.findall(r"pip install '\.\[(.+?)\]'", README)
    extras = {extra for line in lines for extra in line.split(",")}
    assert extras <= set(project["optional-dependencies"])
    assert {"jobs", "parquet", "cluster"} <= extras  # what the section on many runs needs
    assert sys.version_info >= (3, 11)
