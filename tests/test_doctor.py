"""The self-check finds what is broken, and the quickstart's commands do what they say."""

from __future__ import annotations

import shlex
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from falsify_adapters import as_run, baselines, doctor
from falsify_adapters.errors import InputError
from falsify_adapters.frames import categories
from tests.cli_runs import call


@pytest.fixture(scope="module")
def verdicts() -> dict[str, tuple[str, float]]:
    return doctor.control_verdicts()


def test_every_known_system_gets_its_verdict(verdicts: dict[str, tuple[str, float]]) -> None:
    assert {name: verdict for name, (verdict, _) in verdicts.items()} == doctor.EXPECTED
    assert verdicts["oracle"][1] == 1.0


def test_doctor_finds_no_problem_here() -> None:
    result = call("doctor")
    assert result.exit_code == 0, result.stdout
    assert "PROBLEM" not in result.stdout
    assert "shuffled bm25 on the sample" in result.stdout
    assert "ir-measures' provider pytrec_eval" in result.stdout


def known(monkeypatch: pytest.MonkeyPatch, verdicts: dict[str, Any]) -> None:
    monkeypatch.setattr(doctor, "control_verdicts", lambda: verdicts)


@pytest.mark.parametrize("name", sorted(doctor.EXPECTED))
def test_a_wrong_verdict_of_any_control_is_a_problem(
    name: str, verdicts: dict[str, tuple[str, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = "FAIL" if doctor.EXPECTED[name] == "PASS" else "PASS"
    known(monkeypatch, {**verdicts, name: (wrong, 0.5)})
    result = call("doctor", "--quiet")
    assert result.exit_code == 1
    assert f"{name} on the sample" in result.stdout
    assert f"should be {doctor.EXPECTED[name]}" in result.stdout


def versions(monkeypatch: pytest.MonkeyPatch, found: dict[str, str]) -> None:
    def version(package: str) -> str:
        if package not in found:
            raise PackageNotFoundError(package)
        return found[package]

    monkeypatch.setattr(doctor, "version", version)


def test_each_absent_part_names_its_extra(
    verdicts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, verdicts)
    versions(monkeypatch, {})
    result = call("doctor")
    assert result.exit_code == 0
    for extra in ("beir", "lz4", "mcp", "mteb-core", "parquet", "report"):
        assert f"pip install 'falsify-adapters[{extra}]'" in result.stdout


def test_old_missing_and_clashing_packages_are_problems(
    verdicts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, verdicts)
    versions(monkeypatch, {"falsify-adapters": "1", "numpy": "1.9", "mteb": "2", "mteb-core": "2"})
    lines = ["numpy>=2.0", "pooch>=1.8", 'lz4>=4; extra == "lz4"']
    monkeypatch.setattr(doctor, "requires", lambda _: lines)
    result = call("doctor", "-q")
    assert result.exit_code == 1
    assert "numpy 1.9 does not fit >=2.0" in result.stdout
    assert "pooch is missing" in result.stdout
    assert "pip install 'pooch>=1.8'" in result.stdout
    assert "mteb and mteb-core are both installed" in result.stdout
    assert "lz4" not in result.stdout


def test_an_optional_part_that_is_too_old_is_a_problem(
    verdicts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    known(monkeypatch, verdicts)
    versions(monkeypatch, {"falsify-adapters": "1", "mcp": "1.30.0", "pyarrow": "16.1"})
    lines = ['mcp<3,>=2.0; extra == "mcp"', 'pyarrow>=16; extra == "parquet"']
    monkeypatch.setattr(doctor, "requires", lambda _: lines)
    result = call("doctor")
    assert result.exit_code == 1
    assert "mcp 1.30.0 does not fit <3,>=2.0" in result.stdout
    assert "pip install --upgrade 'falsify-adapters[mcp]'" in result.stdout
    assert "ok      pyarrow 16.1" in result.stdout


def test_a_sample_that_cannot_be_read_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise InputError("qrels are gone")

    monkeypatch.setattr(doctor, "control_verdicts", broken)
    result = call("doctor", "-q")
    assert result.exit_code == 1
    assert "qrels are gone" in result.stdout


def test_the_extras_are_those_of_the_project() -> None:
    import tomllib

    from tests.cli_runs import ROOT

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = set(project["optional-dependencies"]) - {"all", "docs", "mteb", "notebooks", "test"}
    assert {extra for extra, _, _ in doctor.EXTRAS} == declared


@pytest.mark.parametrize("seed", range(5))
def test_shuffled_keeps_all_rankings_and_none_in_its_place(seed: int) -> None:
    run = as_run({f"q{i}": {f"d{i}": 2.0, f"e{i}": 1.0} for i in range(9)})
    other = baselines.shuffled(run, seed=seed)
    assert list(categories(other["query_id"])) == list(categories(run["query_id"]))

    def of(frame: Any) -> dict[str, tuple[str, ...]]:
        groups = frame.groupby("query_id", observed=True)["doc_id"]
        return {query: tuple(docs) for query, docs in groups}

    before, after = of(run), of(other)
    assert sorted(before.values()) == sorted(after.values())
    assert all(before[query] != after[query] for query in before)
    assert np.array_equal(np.sort(run["score"]), np.sort(other["score"]))


def test_a_run_of_one_query_cannot_be_shuffled() -> None:
    with pytest.raises(InputError, match="one query"):
        baselines.shuffled({"q": {"d": 1.0}})


def test_the_quickstart_writes_what_its_three_commands_need(tmp_path: Path) -> None:
    folder = tmp_path / "try it"
    result = call("quickstart", folder)
    assert result.exit_code == 0
    commands = [line for line in result.stdout.splitlines() if line.startswith("falsify-")]
    assert len(commands) == 3
    statuses = []
    for line in commands:
        program, *arguments = shlex.split(line)
        if program == "falsify-adapters":
            program, *arguments = arguments
        statuses.append(call(program.removeprefix("falsify-"), *arguments).exit_code)
    assert statuses == [0, 1, 0]
    assert (folder / "README.txt").read_text() == result.stdout


def test_the_quickstart_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "qrels.trec").write_text("mine")
    result = call("quickstart", tmp_path)
    assert result.exit_code == 2
    assert "qrels.trec already" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["qrels.trec"]
    assert (tmp_path / "qrels.trec").read_text() == "mine"
    assert call("quickstart", tmp_path / "qrels.trec" / "below").exit_code == 2
