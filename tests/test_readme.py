"""The README is true: its commands run, its snippets run, its picture is what comes out."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from falsify_adapters.cli.command import BY_VERDICT, INTERNAL, REFUSED
from tests.cli_runs import ROOT, launcher, write_dataset, write_qrels, write_run

README = (ROOT / "README.md").read_text("utf-8")
NUMBER = re.compile(r"[-+]?\d+\.\d+")


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
    write_dataset(tmp_path / "data" / "nfcorpus", 120)
    write_qrels(tmp_path / "qrels.trec", 120)
    write_run(tmp_path / "my.trec", 120)
    write_run(tmp_path / "old.trec", 120, "blind")
    write_qrels(tmp_path / "llm.trec", 100)
    write_mteb(tmp_path, 120)
    return tmp_path


def write_mteb(folder: Path, n_queries: int) -> None:
    """Write rankings and the score of one model as mteb does, and qrels."""
    write_qrels(folder / "qrels" / "nfcorpus.qrels", n_queries)
    run = {f"q{i:03}": {f"d{i:03}": 0.9} for i in range(n_queries)}
    meta = {"model_name": "org/model", "revision": "r1"}
    row = {"ndcg_at_10": 1.0, "main_score": 1.0, "hf_subset": "default", "languages": []}
    place = folder / "results" / "org__model" / "r1"
    place.mkdir(parents=True)
    (folder / "predictions").mkdir()
    (folder / "predictions" / "NFCorpus_predictions.json").write_text(
        json.dumps({"mteb_model_meta": meta, "default": {"test": run}})
    )
    (place / "NFCorpus.json").write_text(
        json.dumps({"task_name": "NFCorpus", "scores": {"test": [row]}})
    )


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


def test_the_picture_is_what_the_command_prints(workplace: Path) -> None:
    (picture,) = blocks("text")
    prompt, *shown = picture.splitlines()
    command, *arguments = shlex.split(prompt.removeprefix("$ "))
    done = subprocess.run(
        launcher(command.removeprefix("falsify-"), *arguments),
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "80", "XDG_CACHE_HOME": str(workplace / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    printed = done.stdout.splitlines()[: len(shown)]
    assert [NUMBER.sub("0", line) for line in shown] == [NUMBER.sub("0", line) for line in printed]
    for ours, theirs in zip(shown, printed, strict=True):
        for a, b in zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True):
            assert float(a) == pytest.approx(float(b), abs=0.005), (ours, theirs)


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
    table = dict(re.findall(r"^\| (\d) \| (.*) \|$", README, re.MULTILINE))
    assert set(map(int, table)) == {*BY_VERDICT.values(), REFUSED, INTERNAL}
    assert "PASS" in table["0"]
    assert "FAIL" in table["1"]
    assert "refused" in table["2"]
    assert "UNDER-NS" in table["3"]


def test_the_pip_lines_name_extras_that_exist() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for extra in re.findall(r"pip install '\.\[(.+?)\]'", README):
        assert extra in project["optional-dependencies"]
    assert sys.version_info >= (3, 11)
