"""Exit status and errors: one rule for all commands, one line per refusal, never a traceback."""

from __future__ import annotations

import gzip
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from falsify_adapters import __version__
from falsify_adapters.cli.command import exit_status
from falsify_adapters.errors import InputError
from falsify_adapters.notes import CODES
from falsify_adapters.report.averages import MacroAverage
from falsify_adapters.report.outcome import Outcome, Refusal, Skip
from tests.cli_runs import ROOT, call, in_subprocess, report, runner, write_qrels, write_run
from tests.report_factory import gate_report

COMMANDS = ("beir", "ir", "main")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with qrels and runs of 120 queries, and of 5."""
    write_qrels(tmp_path / "qrels.trec", 120)
    write_run(tmp_path / "good.trec", 120)
    write_run(tmp_path / "blind.trec", 120, "blind")
    write_qrels(tmp_path / "few.qrels", 5)
    write_run(tmp_path / "few.trec", 5)
    return tmp_path


def outcome(*verdicts: str, role: str = "run", errors: int = 0) -> Outcome:
    refusals = [Refusal("x", InputError("x"))] * errors
    return Outcome([gate_report(verdict=v, role=role) for v in verdicts], refusals)


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (outcome(), 0),
        (outcome("PASS", "PASS"), 0),
        (outcome("PASS", "UNDER-NS"), 3),
        (outcome("PASS", "NOT CERTIFIED"), 3),
        (outcome("UNDER-NS", "FAIL", "PASS"), 1),
        (outcome("FAIL", errors=1), 2),
        (outcome("PASS", errors=1), 2),
        (outcome("FAIL", "UNDER-NS", role="control"), 0),
        (Outcome(skipped=[Skip("x", "y")]), 0),
        (Outcome([MacroAverage("b", None, "s", "nDCG@10", 2, 0.1, 0.1, {"FAIL": 2})]), 0),
    ],
)
def test_the_gravest_finding_decides(found: Outcome, status: int) -> None:
    assert exit_status(found) == status


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["qrels.trec", "good.trec", "--corpus-size", "1000"], 0),
        (["qrels.trec", "good.trec", "blind.trec", "--corpus-size", "1000"], 1),
        (["few.qrels", "few.trec", "--corpus-size", "1000"], 3),
        (["qrels.trec", "good.trec", "blind.trec", "nowhere.trec"], 2),
        (["qrels.trec", "good.trec", "--corpus-size", "1000", "--controls"], 0),
    ],
)
def test_the_status_follows_real_verdicts(
    files: Path, arguments: list[str], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    assert call("ir", *arguments).exit_code == status


USAGE = {
    "unknown option": ["--tua", "1"],
    "missing value": ["--tau"],
    "tau is no number": ["--tau", "high"],
    "tau out of range": ["--tau", "2"],
    "tau auto with intervals": ["--tau", "auto"],
    "alpha out of range": ["--alpha", "0"],
    "too few resamples": ["--n-boot", "1"],
    "negative seed": ["--seed", "-1"],
    "unknown choice": ["--decision", "maybe"],
    "unknown measure": ["--measure", "NDCG@ten"],
    "refused measure": ["--measure", "Bpref"],
    "cutoff of zero": ["--measure", "P@0"],
    "top-k of zero": ["--top-k", "0"],
    "corpus of nothing": ["--corpus-size", "0"],
    "min-rel of zero": ["--min-rel", "0", "--measure", "P@10"],
    "min-rel without a binary measure": ["--min-rel", "2"],
    "no such settings file": ["--config", "nowhere.toml"],
    "json in no folder": ["--json", "nowhere/report.json"],
    "two documents on one stream": ["--json", "-", "--markdown", "-"],
    "exclusions that are not there": ["--exclude", "nowhere.txt"],
}


@pytest.mark.parametrize("arguments", USAGE.values(), ids=USAGE)
def test_wrong_usage_is_one_line_and_status_2(
    files: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    result = call("ir", "qrels.trec", "good.trec", "--quiet", *arguments)
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("falsify-ir: error: ")
    assert "Traceback" not in result.output


def test_no_arguments_and_an_unknown_command_are_wrong_usage() -> None:
    assert call("ir").exit_code == 2
    result = call("main", "nonsense")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


def test_a_file_whose_compression_is_broken_stops_no_other(files: Path) -> None:
    broken = files / "broken.trec.gz"
    broken.write_bytes(gzip.compress((files / "good.trec").read_bytes())[:-20])
    paths = [broken, files / "good.trec"]
    document = report("ir", files / "qrels.trec", *paths, "--corpus-size", "1000", status=2)
    assert [r["system"] for r in document["reports"]] == ["good"]
    assert [e["input"] for e in document["errors"]] == ["broken.trec.gz"]
    assert [one["name"] for one in document["call"]["inputs"]] == ["qrels.trec", "good.trec"]


def test_after_a_refusal_the_other_inputs_are_graded(files: Path) -> None:
    (files / "broken.trec").write_text("q001 Q0 d1\n")
    paths = [files / name for name in ("nowhere.trec", "good.trec", "broken.trec", "blind.trec")]
    document = report("ir", files / "qrels.trec", *paths, "--corpus-size", "1000", status=2)
    assert [r["system"] for r in document["reports"]] == ["good", "blind"]
    assert [e["input"] for e in document["errors"]] == [paths[0].name, paths[2].name]
    for error in document["errors"]:
        assert error["kind"] == "InputError"
        assert error["lacks"]


def test_a_refused_command_line_stands_in_the_json_too(files: Path) -> None:
    document = report("ir", files / "qrels.trec", files / "good.trec", "--tau", "2", status=2)
    assert document["reports"] == []
    assert document["errors"][0]["kind"] == "UsageError"
    assert "tau" in document["errors"][0]["lacks"]


def test_an_internal_error_is_one_line_and_status_4(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("surprise\nin two lines")

    monkeypatch.setattr("falsify_adapters.gate.run_gate", fail)
    monkeypatch.delenv("FALSIFY_DEBUG", raising=False)
    result = call("ir", files / "qrels.trec", files / "good.trec", "--corpus-size", "1000")
    assert result.exit_code == 4
    (line,) = result.stderr.splitlines()
    assert "ZeroDivisionError: surprise in two lines" in line
    assert "please report" in line
    monkeypatch.setenv("FALSIFY_DEBUG", "1")
    result = call("ir", files / "qrels.trec", files / "good.trec", "--corpus-size", "1000")
    assert result.exit_code == 4
    assert "Traceback (most recent call last)" in result.stderr


def test_an_interrupt_is_130_and_no_verdict(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("falsify_adapters.gate.run_gate", interrupt)
    result = call("ir", files / "qrels.trec", files / "good.trec", "--json", "-")
    assert result.exit_code == 130
    assert result.stdout == ""
    assert "interrupted" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_fits_a_terminal_and_shows_an_example(command: str, option: str) -> None:
    result = call(command, option, env={"COLUMNS": "80"})
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert len(lines) <= 80
    assert max(map(len, lines)) <= 80
    if command != "main":
        assert any(line.strip().startswith(f"falsify-{command} ") for line in lines)
        assert "Exit status" in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_version(command: str) -> None:
    assert __version__ in call(command, "--version").stdout


def test_every_entry_point_is_a_command_of_its_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for name, target in project["scripts"].items():
        module, attribute = target.split(":")
        assert getattr(import_module(module), attribute).name == name


def test_the_warnings_command_lists_every_code() -> None:
    result = call("main", "warnings")
    assert result.exit_code == 0
    for code, meaning in CODES.items():
        assert f"{code} " in result.stdout
        assert meaning in result.stdout
    assert call("main", "warnings", "w-ties").stdout.split()[1] == "W-TIES"
    assert call("main", "warnings", "W-NONSENSE").exit_code == 2


def test_the_group_alone_shows_its_help() -> None:
    result = call("main")
    assert result.exit_code == 0
    assert "warnings" in result.stdout


def test_commands_can_be_called_from_other_click_programs(files: Path) -> None:
    from falsify_adapters.cli.ir import main

    arguments = [str(files / "qrels.trec"), str(files / "blind.trec"), "--quiet"]
    assert runner().invoke(main, arguments, standalone_mode=False).return_value == 1


def test_a_real_process_has_the_same_status(files: Path) -> None:
    done = in_subprocess("ir", files / "qrels.trec", files / "blind.trec", "--quiet")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ["ir", "a" * 5000, "b.trec"],
        ["ir", "q.trec", "b" * 5000],
        ["ir", "q.trec", "r.trec", "--json", "c" * 5000],
        ["ir", "q.trec", "r.trec", "--csv", "d" * 300],
        ["ir", "q.trec", "r.trec", "--json", ""],
        ["ir", "q.trec", "r.trec", "--blocks", "9" * 5000],
        ["ir", "q.trec", "r.trec", "--top-k", "1" + "0" * 30],
        ["audit", "a" * 5000],
        ["quickstart", "a" * 5000],
    ],
)
def test_names_and_numbers_that_are_too_long_are_refused(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_qrels(tmp_path / "q.trec", 40)
    write_run(tmp_path / "r.trec", 40)
    result = call(*arguments)
    assert result.exit_code == 2
    assert "internal error" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["verify", "."], "error: . cannot be read"),
        (["verify", "/"], "error: / cannot be read"),
        (["quickstart", ""], "error: . holds qrels.trec"),
    ],
)
def test_a_path_without_a_last_part_is_named_nevertheless(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_qrels(tmp_path / "qrels.trec", 40)
    result = call(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
