"""The pages of the project: what stands in them, and a folder in which their examples run."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

import pytest

from tests.cli_runs import ROOT, call, launcher, write_dataset, write_qrels, write_run

DOCS = ROOT / "docs"
#: Stands before a block that cannot run here, and says why.
MARK = "<!-- not run: "
NUMBER = re.compile(r"[-+]?\d+\.\d+")
BLOCK = re.compile(
    rf"(?P<mark>^{re.escape(MARK)}[^\n]*-->\n)?^```(?P<language>[\w{{}}-]*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A block of code in a page."""

    page: str
    number: int
    language: str
    body: str
    marked: bool

    def __str__(self) -> str:
        return f"{self.page}-{self.number}"


def all_pages() -> list[Path]:
    """Return every page of the project."""
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def blocks_of(path: Path, language: str | None = None) -> list[Block]:
    """Return the blocks of a page, in one language or in all."""
    name = path.relative_to(ROOT).as_posix()
    found = [
        Block(name, i, match["language"], match["body"], match["mark"] is not None)
        for i, match in enumerate(BLOCK.finditer(path.read_text("utf-8")), 1)
    ]
    return [block for block in found if language in (None, block.language)]


def write_workplace(folder: Path) -> Path:
    """Write a folder that holds the files which the examples name."""
    for name in ("nfcorpus", "scifact"):
        write_dataset(folder / "data" / name, 120)
    own = write_dataset(folder / "my" / "dataset", 120)
    (own / "qrels" / "train.tsv").write_bytes((own / "qrels" / "test.tsv").read_bytes())
    (folder / "my" / "qrels").mkdir()
    (folder / "my" / "qrels" / "one.tsv").write_bytes((own / "qrels" / "test.tsv").read_bytes())
    write_qrels(folder / "qrels.trec", 120)
    write_run(folder / "my.trec", 120)
    write_run(folder / "old.trec", 120, "blind")
    write_qrels(folder / "llm.trec", 100)
    write_mteb(folder, 120)
    return folder


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


def run_commands(block: Block) -> None:
    """Run the commands of a block, one after the other, in this folder."""
    for line in block.body.splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        program, *arguments = words
        assert program.startswith("falsify-"), f"{block}: mark it, or run {program} some other way"
        name = program.removeprefix("falsify-").replace("adapters", "main")
        result = call(name, *expanded(arguments, line))
        assert result.exit_code in (0, 1, 3), f"{line}\n{result.stderr}"


def expanded(arguments: list[str], line: str) -> Iterator[str]:
    """Yield the arguments as a shell would; what is quoted stays as it is."""
    for one in arguments:
        yield from sorted(glob(one)) if "*" in one and f"'{one}'" not in line else [one]  # noqa: PTH207


def run_python(block: Block, names: Mapping[str, Any]) -> dict[str, Any]:
    """Run a block of Python, and its tests if it has any; hold what its comments say it prints."""
    space = dict(names)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(block.body, space)
    lines = [line for line in block.body.splitlines() if line.startswith("print(")]
    said = [line.split("  # ")[1] if "  # " in line else None for line in lines]
    printed = out.getvalue().splitlines()
    assert all(a in (None, b) for a, b in zip(said, printed, strict=True))
    for name, value in space.items():
        if name.startswith("test_"):
            value()
    return space


def assert_is_printed(block: Block, cache: Path) -> None:
    """Hold a picture of a terminal, ``$ command`` first, against what the command prints."""
    prompt, *shown = block.body.splitlines()
    command, *arguments = shlex.split(prompt.removeprefix("$ "))
    done = subprocess.run(
        launcher(command.removeprefix("falsify-"), *arguments),
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "80", "XDG_CACHE_HOME": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    printed = done.stdout.splitlines()[: len(shown)]
    assert [NUMBER.sub("0", line) for line in shown] == [NUMBER.sub("0", line) for line in printed]
    for ours, theirs in zip(shown, printed, strict=True):
        for a, b in zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True):
            assert float(a) == pytest.approx(float(b), abs=0.005), (ours, theirs)
