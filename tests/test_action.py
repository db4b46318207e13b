"""The GitHub Action's own script, run by bash with the variables that the runner would set."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli_runs import ROOT, write_qrels, write_run

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
EXAMPLE: dict[str, Any] = yaml.safe_load((ROOT / "docs/examples/gate.yml").read_text("utf-8"))
[GRADE] = [step for step in ACTION["runs"]["steps"] if step.get("id") == "gate"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_qrels(tmp_path / "gold.trec", 40)
    write_run(tmp_path / "good run.trec", 40)
    write_run(tmp_path / "blind.trec", 40, "blind")
    command = tmp_path / "bin" / "falsify-ir"
    command.parent.mkdir()
    command.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "sys.argv[0] = 'falsify-ir'\nfrom falsify_adapters.cli.ir import main\nmain()\n"
    )
    command.chmod(0o755)
    return tmp_path


def act(place: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the step as the runner does: inputs by name, defaults from the action."""
    given = {name: str(facts.get("default", "")) for name, facts in ACTION["inputs"].items()}
    given |= {name.replace("_", "-"): value for name, value in inputs.items()}
    assert given.keys() == ACTION["inputs"].keys()
    variables = {
        name: given[text.removeprefix("${{ inputs.").removesuffix(" }}")]
        for name, text in GRADE["env"].items()
    }
    bash = shutil.which("bash")
    if bash is None:
        pytest.fail("the action needs bash")
    return subprocess.run(
        [bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", GRADE["run"]],
        env={
            **os.environ,
            **variables,
            "PATH": f"{place / 'bin'}:{os.environ['PATH']}",
            "GITHUB_STEP_SUMMARY": str(place / "summary.md"),
            "GITHUB_OUTPUT": str(place / "output.txt"),
        },
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )


FAST = "--n-trials=160\n--n-boot=160"


def test_a_passing_run_passes_and_fills_the_summary(place: Path) -> None:
    done = act(
        place,
        qrels="gold.trec",
        runs="good run.trec\n",
        corpus_size="99",
        measures="nDCG@10\nR@5\n",
        options=FAST,
    )
    assert done.returncode == 0, done.stderr
    assert "PASS" in (place / "summary.md").read_text()
    assert (place / "output.txt").read_text() == "status=0\n"
    document = json.loads((place / "falsify-report.json").read_text())
    assert [one["measure"] for one in document["reports"]] == ["nDCG@10", "R@5"]
    assert document["reports"][0]["corpus_size"] == 99


@pytest.mark.parametrize(("fail_on", "status"), [("fail", 1), ("undecided", 1), ("never", 0)])
def test_a_failing_run_fails_unless_never(place: Path, fail_on: str, status: int) -> None:
    runs = "good run.trec\nblind.trec"
    done = act(place, qrels="gold.trec", runs=runs, options=FAST, fail_on=fail_on)
    assert done.returncode == status
    assert "FAIL" in (place / "summary.md").read_text()
    assert (place / "output.txt").read_text() == "status=1\n"


def test_a_refused_input_always_fails(place: Path) -> None:
    done = act(place, qrels="gold.trec", runs="absent.trec", options=FAST, fail_on="never")
    assert done.returncode == 2
    assert "absent.trec" in done.stderr


def test_text_in_an_input_is_never_a_command(place: Path) -> None:
    runs = "$(touch hacked)\n`touch hacked`; touch hacked"
    act(place, qrels="gold.trec", runs=runs, options=FAST)
    assert not (place / "hacked").exists()
    assert "${{" not in GRADE["run"]


def test_the_sample_workflow_uses_inputs_that_exist() -> None:
    [step] = [s for s in EXAMPLE["jobs"]["gate"]["steps"] if "falsify-adapters@" in str(s)]
    assert set(step["with"]) <= set(ACTION["inputs"])
    required = {name for name, facts in ACTION["inputs"].items() if facts.get("required")}
    assert required <= set(step["with"])
