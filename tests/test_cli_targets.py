"""Where a report may be written: an input is never overwritten, nor one report by another."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cli_runs import call, write_dataset, write_qrels, write_run

QUICK = ["--n-boot", "160", "--n-trials", "100"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    write_qrels(tmp_path / "qrels.trec", 40)
    write_run(tmp_path / "good.trec", 40)
    write_run(tmp_path / "runs" / "other.trec", 40)
    (tmp_path / "groups.tsv").write_text("".join(f"q{i:03}\t{i // 2}\n" for i in range(40)))
    (tmp_path / "gate.toml").write_text("seed = 1\n")
    (tmp_path / "link.json").symlink_to("good.trec")
    os.link(tmp_path / "good.trec", tmp_path / "hard.json")
    return ["qrels.trec", "good.trec", *QUICK]


def contents() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--json", "good.trec"],
        ["--csv", "./qrels.trec"],
        ["--latex", "runs/../good.trec"],
        ["--markdown", "link.json"],
        ["--html", "hard.json"],
        ["--csv", "runs/other.trec", "--baseline", "runs/other.trec"],
        ["--csv", "runs/other.trec", "--alt-qrels", "runs/other.trec"],
        ["--json", "groups.tsv", "--clusters", "groups.tsv"],
        ["--json", "gate.toml", "--config", "gate.toml"],
    ],
)
def test_an_input_is_never_written_over(files: list[str], arguments: list[str]) -> None:
    before = contents()
    result = call("ir", *files, *arguments)
    assert result.exit_code == 2
    assert f"{arguments[0]} would write over an input; found: {arguments[1]}" in result.stderr
    assert contents() == before


@pytest.mark.usefixtures("files")
def test_a_run_named_by_its_folder_is_an_input() -> None:
    result = call("ir", "qrels.trec", "runs", *QUICK, "--json", "runs/other.trec")
    assert result.exit_code == 2
    assert "--json would write over an input" in result.stderr


@pytest.mark.usefixtures("files")
def test_a_run_named_by_its_data_set_is_an_input(tmp_path: Path) -> None:
    write_dataset(tmp_path / "toy", 40)
    write_run(tmp_path / "runs" / "toy.trec", 40)
    pattern = ["--dataset", "toy", "--run", "runs/{dataset}.trec"]
    result = call("beir", *pattern, *QUICK, "--csv", "runs/toy.trec")
    assert result.exit_code == 2
    assert "--csv would write over an input" in result.stderr


@pytest.mark.usefixtures("files")
def test_qrels_of_an_audit_are_an_input() -> None:
    result = call("audit", "qrels.trec", "--json", "qrels.trec")
    assert result.exit_code == 2
    assert "--json would write over an input" in result.stderr


def test_two_reports_do_not_share_a_file(files: list[str]) -> None:
    result = call("ir", *files, "--json", "new", "--csv", "./new")
    assert result.exit_code == 2
    assert "--csv and --json name the same file" in result.stderr
    assert not Path("new").exists()


@pytest.mark.parametrize(("target", "found"), [("no/x.json", "does not exist"), (".", "a folder")])
def test_a_place_that_cannot_be_is_refused_before_the_grading(
    files: list[str], target: str, found: str
) -> None:
    result = call("ir", *files, "--json", target, "--csv", "out.csv")
    assert result.exit_code == 2
    assert f"cannot write {target}" in result.stderr
    assert found in result.stderr
    assert result.stdout == ""
    assert not Path("out.csv").exists()


def test_earlier_reports_and_devices_are_written_to(files: list[str]) -> None:
    Path("out.json").write_text("an earlier report")
    quiet = ["--csv", os.devnull, "--markdown", os.devnull]
    assert call("ir", *files, "--json", "out.json", *quiet).exit_code == 0
    assert json.loads(Path("out.json").read_text())["errors"] == []


def test_what_lies_in_an_input_folder_is_never_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = write_dataset(tmp_path / "mine", 40)
    before = contents()
    for target in ("mine/corpus.jsonl", "mine/qrels/test.tsv"):
        result = call("beir", "-d", "mine", *QUICK, "--csv", target)
        assert (result.exit_code, contents()) == (2, before)
        assert "would write over an input" in result.stderr
    # an earlier report may be renewed there
    for _ in range(2):
        result = call("beir", "-d", "mine", *QUICK, "-q", "--json", "mine/report.json")
        assert result.exit_code in (0, 1, 3)
    assert (folder / "report.json").is_file()


@pytest.mark.usefixtures("files")
def test_a_plan_replaces_neither_its_qrels_nor_another_plan() -> None:
    before = contents()
    result = call("main", "plan", "qrels.trec", "--out", "qrels.trec")
    assert (result.exit_code, contents()) == (2, before)
    assert call("main", "plan", "qrels.trec", "--tau", "0.1").exit_code == 0
    made = contents()
    again = call("main", "plan", "qrels.trec", "--tau", "0.2")
    assert (again.exit_code, contents()) == (2, made)
    assert "is there already" in again.stderr
    assert call("main", "plan", "qrels.trec", "--tau", "0.1").exit_code == 0
