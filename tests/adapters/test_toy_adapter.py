"""CONTRIBUTING's recipe for an adapter, followed to the letter."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

from falsify_adapters.adapters import sources
from falsify_adapters.errors import InputError
from tests.cli_runs import ROOT, report

RECIPE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The adapter of the recipe, registered as the recipe says."""
    section = RECIPE.split("## Add an adapter")[1].split("\n## ")[0]
    module, registered = map(
        textwrap.dedent, re.findall(r" *```python\n(.*?) *```", section, re.DOTALL)
    )
    toy = ModuleType("toy")
    exec(module, toy.__dict__)
    monkeypatch.setattr(sources, "SOURCES", dict(sources.SOURCES))
    exec(registered, {"SOURCES": sources.SOURCES, "Source": sources.Source, "toy": toy})
    return toy


@pytest.mark.usefixtures("toy")
def test_the_toy_adapter_is_guessed_named_and_graded(tmp_path: Path) -> None:
    path = tmp_path / "toy.jsonl"
    rows = [{"q": f"q{i}", "hits": [f"d{i}", "d0x"], "answer": f"d{i}"} for i in range(40)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert sources.load(path, corpus_size=900).provenance["source"] == "toy"
    for name in ("toy", "auto"):
        arguments = ["--from", name, path, "RR@10", "--corpus-size", "900"]
        (found,) = report("ir", *arguments, status=0)["reports"]
        assert (found["score"], found["verdict"]) == (1.0, "PASS")


@pytest.mark.usefixtures("toy")
def test_its_errors_name_the_record(tmp_path: Path) -> None:
    path = tmp_path / "toy.jsonl"
    path.write_text('{"q": "a", "hits": ["x"], "answer": "x"}\n{"q": "b", "hits": ["x"]}\n')
    with pytest.raises(InputError, match=r"record 2 lacks 'answer'"):
        sources.load(path, "toy")
