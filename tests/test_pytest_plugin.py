"""The plugin passes what passes, and a failure shows the table."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from falsify_adapters.errors import UsageError
from falsify_adapters.pytest_plugin import assert_gate
from tests.cli_runs import ROOT, write_qrels, write_run

SUITE = """
from falsify_adapters.pytest_plugin import assert_gate as imported

FAST = {"n_trials": 160, "n_boot": 160, "corpus_size": 999}
QRELS = {f"q{i}": {f"d{i}": 1} for i in range(40)}
GOOD = {f"q{i}": {f"d{i}": 1.0} for i in range(40)}
BLIND = {f"q{i}": {"d0": 1.0, "d1": 0.5} for i in range(40)}


def test_good(assert_gate):
    assert assert_gate(GOOD, QRELS, measure="RR@10", **FAST).score == 1


def test_blind_fails_as_it_should(assert_gate):
    assert_gate(BLIND, QRELS, expect="FAIL", **FAST)


def test_blind():
    imported(BLIND, QRELS, system="my blind system", **FAST)
"""


def test_a_suite_with_the_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(SUITE)
    options = (
        "-p",
        "falsify_adapters.pytest_plugin",
        "-W",
        "error",
        "-q",
        "-p",
        "no:cacheprovider",
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", tmp_path, tmp_path],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        # an installed package has brought the plugin already; named twice it is refused
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 2 passed" in done.stdout
    assert "the gate says FAIL, not PASS: " in done.stdout
    lines = done.stdout.splitlines()
    assert any("my blind system" in line for line in lines)
    assert any(line.split()[-4:] == ["A", "B", "C", "D"] for line in lines)
    assert "tau 0.05" in done.stdout
    # the trace ends in the test, not in the plugin
    assert "pytest_plugin.py:" not in done.stdout


def test_files_and_settings(tmp_path: Path) -> None:
    qrels, run = write_qrels(tmp_path / "gold.trec", 40), write_run(tmp_path / "mine.trec", 40)
    report = assert_gate(
        run, str(qrels), measure="R@5", corpus_size=999, tau=0.2, n_trials=160, n_boot=160
    )
    assert (report.measure, report.tau, report.corpus_size) == ("R@5", 0.2, 999)


def test_an_expectation_that_no_verdict_meets_is_refused() -> None:
    with pytest.raises(UsageError, match="expect must be"):
        assert_gate({"q": {"d": 1.0}}, {"q": {"d": 1}}, expect="pass")


def test_the_plugin_is_declared_and_cheap() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"falsify": "falsify_adapters.pytest_plugin"}
    code = (
        "import sys, falsify_adapters.pytest_plugin;"
        "print({'numpy', 'pandas', 'scipy', 'rich', 'ir_measures'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "set()"
