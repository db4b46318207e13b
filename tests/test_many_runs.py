"""Many runs: the same documents whoever grades them, and nothing is graded twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from falsify_adapters.cli.units import Bench
from tests.cli_runs import call, launcher, write_dataset, write_qrels, write_run

N_QUERIES = 30
QUICK = ["--n-boot", "160", "--n-trials", "160", "--corpus-size", "200"]
DOCUMENTS = ("json", "html", "csv", "markdown", "latex")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with qrels and a few runs, one of which is refused."""
    write_qrels(tmp_path / "qrels.trec", N_QUERIES)
    for i, name in enumerate(["a", "b", "c", "d"]):
        write_run(tmp_path / f"{name}.trec", N_QUERIES - i, "blind" if i % 2 else "good")
    (tmp_path / "bad.trec").write_text("garbage\n")
    (tmp_path / "other.qrels").write_text(
        (tmp_path / "qrels.trec").read_text().replace("1\n", "2\n")
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


RUNS = ["qrels.trec", "a.trec", "b.trec", "bad.trec", "c.trec", "d.trec", "nDCG@10", "RR@10"]
EVERYTHING = ["--baseline", "c.trec", "--controls", "--by-grade", "--alt-qrels", "other.qrels"]


def outputs(*arguments: str, command: str = "ir") -> dict[str, Any]:
    """Call a command; return all that it leaves: documents, both streams, status."""
    for kind in DOCUMENTS:
        Path(f"out.{kind}").unlink(missing_ok=True)
    targets = [part for kind in DOCUMENTS for part in (f"--{kind}", f"out.{kind}")]
    result = call(command, *arguments, *targets)
    assert "Traceback" not in result.stderr
    left = {kind: Path(f"out.{kind}").read_bytes() for kind in DOCUMENTS}
    return {**left, "stdout": result.stdout, "stderr": result.stderr, "status": result.exit_code}


@pytest.fixture
def graded(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The systems that this process evaluates, in order."""
    systems: list[str] = []
    evaluate = Bench.evaluate

    def counted(self: Bench, session: Any, unit: Any) -> Any:
        systems.append(unit.system)
        return evaluate(self, session, unit)

    monkeypatch.setattr(Bench, "evaluate", counted)
    yield systems


def test_everything_is_the_same_bytes_however_many_processes() -> None:
    arguments = [*RUNS[:-1], *QUICK, *EVERYTHING]
    alone = outputs(*arguments)
    assert alone["status"] == 2
    assert alone["stderr"].count("error:") == 1
    assert b"playground" in alone["html"]
    assert outputs(*arguments, "--jobs", "2") == alone
    assert outputs(*arguments, "--jobs", "2", "--resume", "kept") == alone
    assert outputs(*arguments, "--resume", "kept") == alone


def test_data_sets_are_the_same_bytes_however_many_processes(folder: Path) -> None:
    write_dataset(folder / "one", N_QUERIES)
    write_dataset(folder / "two", N_QUERIES, prefix="p")
    for name, prefix in (("one", "q"), ("two", "p")):
        write_run(folder / "runs" / f"{name}.trec", N_QUERIES, "good", prefix)
    write_run(folder / "second.trec", N_QUERIES, "good", "p")
    arguments = ["-d", "one", "-d", "two", "--n-boot", "160", "--n-trials", "160"]
    arguments += [part for run in ("a", "bad", "second") for part in ("-r", f"{run}.trec")]
    arguments += ["-r", "runs/{dataset}.trec", "--baseline", "d.trec", "--controls"]
    arguments += ["--no-playground"]
    alone = outputs(*arguments, command="beir")
    assert alone["stdout"].count("no query in common") == 3
    assert outputs(*arguments, "-j", "2", "--resume", "kept", command="beir") == alone
    assert outputs(*arguments, "--resume", "kept", command="beir") == alone


def test_computed_bm25_can_be_kept_too(graded: list[str]) -> None:
    arguments = ["--resume", "kept", "--n-boot", "160", "--n-trials", "160", "--no-playground"]
    first = outputs(*arguments, command="beir")
    assert graded == ["bm25"]
    assert outputs(*arguments, command="beir") == first
    assert graded == ["bm25"]


def test_what_is_finished_is_never_graded_again(graded: list[str]) -> None:
    few = [*RUNS[:3], "nDCG@10", *QUICK, "--no-playground", "--resume", "kept"]
    outputs(*few)
    assert graded == ["a", "b"]
    more = outputs("qrels.trec", "d.trec", *few[1:])
    assert graded == ["a", "b", "d"]
    assert more == outputs("qrels.trec", "d.trec", *few[1:-2])
    del graded[:]
    systems = list(pd.read_parquet("kept")["system"])
    assert sorted(systems) == ["a", "b", "d"]


@pytest.mark.parametrize(
    ("change", "again"),
    [
        (lambda: write_run(Path("a.trec"), 25), ["a"]),
        (lambda: write_qrels(Path("qrels.trec"), 28), ["a", "b"]),
        (lambda: Path("a.trec").rename("a.run"), ["a"]),
    ],
)
def test_a_changed_input_is_graded_again(
    graded: list[str], change: Callable[[], object], again: list[str]
) -> None:
    settings = ["nDCG@10", *QUICK, "--no-playground"]
    outputs("qrels.trec", "a.trec", "b.trec", *settings, "--resume", "kept")
    change()
    del graded[:]
    first = "a.trec" if Path("a.trec").exists() else "a.run"
    found = outputs("qrels.trec", first, "b.trec", *settings, "--resume", "kept")
    assert graded == again
    assert f"kept also holds {len(again)} finished run" in found["stderr"]
    alone = outputs("qrels.trec", first, "b.trec", *settings)
    assert found["json"] == alone["json"]


@pytest.mark.parametrize(
    "setting",
    [
        ["--seed", "1"],
        ["--tau", "0.1"],
        ["--top-k", "3"],
        ["--drop-self"],
        ["--benchmark", "mine"],
        ["--n-boot", "161"],
        ["-m", "RR@10"],
        ["--strict"],
        ["--curve"],
        ["--by-grade"],
        ["--alt-qrels", "other.qrels"],
        ["--exclude", "exclude.tsv"],
        ["--blocks", "2"],
        ["--pool", "300"],
    ],
    ids=lambda setting: setting[0],
)
def test_another_setting_never_gives_a_stale_number(setting: list[str]) -> None:
    Path("exclude.tsv").write_text("q000 d001\n")
    quick = [*QUICK[:4], *([] if "--pool" in setting else QUICK[4:]), "--no-playground"]
    outputs("qrels.trec", "a.trec", *QUICK, "--no-playground", "--resume", "kept")
    assert len(list(Path("kept").glob("*.parquet"))) == 1
    alone = outputs("qrels.trec", "a.trec", *quick, *setting)
    found = outputs("qrels.trec", "a.trec", *quick, *setting, "--resume", "kept")
    assert {kind: found[kind] for kind in DOCUMENTS} == {kind: alone[kind] for kind in DOCUMENTS}


@pytest.mark.parametrize(
    ("setting", "again"),
    [
        (["--quiet"], []),
        (["--plan", "plan.toml"], []),
        # the run is joined once more, for what is new
        (["--controls"], ["a"]),
        (["--baseline", "b.trec"], ["b", "a"]),
    ],
)
def test_what_moves_no_number_of_a_run_grades_it_no_second_time(
    graded: list[str], setting: list[str], again: list[str]
) -> None:
    assert call("plan", "qrels.trec", "--out", "plan.toml", *QUICK[:4]).exit_code == 0
    arguments = ["qrels.trec", "./a.trec", *QUICK, "--no-playground", "--resume", "kept"]
    outputs(*arguments)
    del graded[:]
    table = sorted(path.name for path in Path("kept").glob("*.parquet"))
    outputs(*arguments, *setting)
    assert sorted(path.name for path in Path("kept").glob("*.parquet")) == table
    assert graded == again


def test_files_may_move_to_another_folder(folder: Path, graded: list[str]) -> None:
    settings = [*QUICK, "--no-playground", "--resume"]
    outputs("qrels.trec", "a.trec", *settings, "kept")
    shutil.copytree(folder, folder / "moved")
    del graded[:]
    outputs("moved/qrels.trec", "moved/a.trec", *settings, "moved/kept")
    assert graded == []


def test_a_refused_input_is_refused_again_and_taken_once_it_is_right() -> None:
    arguments = [*RUNS, *QUICK, "--no-playground", "--resume", "kept"]
    first = outputs(*arguments)
    second = outputs(*arguments)
    assert (first["status"], first) == (2, second)
    assert "bad.trec: line 1" in second["stderr"]
    shutil.copy("a.trec", "bad.trec")
    third = outputs(*arguments)
    assert third["status"] == 1
    assert len(pd.read_parquet("kept")) == 10


def test_a_measure_that_is_refused_keeps_the_others(graded: list[str]) -> None:
    arguments = ["qrels.trec", "a.trec", "b.trec", "nDCG@10", "Accuracy@3", *QUICK]
    arguments += ["--no-playground", "--resume", "kept"]
    first = outputs(*arguments)
    assert first["status"] == 2
    del graded[:]
    assert outputs(*arguments) == first
    assert graded == []


def test_a_damaged_unit_is_graded_again_and_named(graded: list[str]) -> None:
    arguments = ["qrels.trec", "a.trec", "b.trec", *QUICK, "--no-playground", "--resume", "kept"]
    first = outputs(*arguments)
    frame = pd.read_parquet("kept")
    (key,) = frame.loc[frame["system"] == "b", "unit"].unique()
    path = Path("kept") / f"{key}.parquet"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    del graded[:]
    second = outputs(*arguments)
    assert graded == ["b"]
    note = f"falsify-ir: note: {key}.parquet is damaged: b is graded again\n"
    assert second["stderr"] == note + first["stderr"]
    assert second["json"] == first["json"]
    assert path.read_bytes() == content


def test_runs_of_one_content_and_of_one_name_are_told_apart() -> None:
    for place in ("x", "y"):
        Path(place).mkdir()
        shutil.copy("a.trec", f"{place}/bm25.trec")
    arguments = ["qrels.trec", "x/bm25.trec", "y/bm25.trec", "a.trec", "a.trec", *QUICK]
    alone = outputs(*arguments)
    assert outputs(*arguments, "--jobs", "2", "--resume", "kept") == alone
    assert sorted(pd.read_parquet("kept")["system"]) == ["a", "x/bm25", "y/bm25"]


def test_a_file_that_changes_meanwhile_is_refused_and_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evaluate = Bench.evaluate

    def late(self: Bench, session: Any, unit: Any) -> Any:
        if unit.system == "b":
            write_run(Path("b.trec"), 20)
        return evaluate(self, session, unit)

    monkeypatch.setattr(Bench, "evaluate", late)
    found = outputs("qrels.trec", "a.trec", "b.trec", *QUICK, "--no-playground", "--resume", "k")
    assert found["status"] == 2
    assert "b.trec has changed since the sweep began" in found["stderr"]
    assert list(pd.read_parquet("k")["system"]) == ["a"]


def test_a_full_disk_is_one_clear_line_and_what_is_finished_stays(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from falsify_adapters.errors import UsageError
    from falsify_adapters.sweep.store import Store

    save, saved = Store.save, []

    def full(self: Store, *arguments: Any, **options: Any) -> None:
        if len(saved) == 2:
            raise UsageError("cannot write kept/x.parquet", found="No space left on device")
        saved.append(save(self, *arguments, **options))

    arguments = [*RUNS, *QUICK, "--no-playground", "--resume", "kept"]
    monkeypatch.setattr(Store, "save", full)
    result = call("ir", *arguments, "-q")
    assert result.exit_code == 2
    assert "error: cannot write kept/x.parquet; found: No space left" in result.stderr
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    assert pd.read_parquet("kept")["system"].nunique() == 2
    kept = outputs(*arguments)
    assert kept == outputs(*arguments[:-2])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--jobs", "0"], "--jobs must lie between 1 and"),
        (["--jobs", "9999"], "--jobs must lie between 1 and"),
        (["--jobs", "2", "--scheduler", "tcp://127.0.0.1:1"], "exclude each other"),
        (["--resume", ""], "--resume names no folder"),
        (["--resume", "qrels.trec"], "--resume qrels.trec cannot be used"),
        (["--resume", "."], "is no folder of finished runs"),
        (["--resume", "kept", "--json", "kept/out.json"], "lies in the folder of finished runs"),
        (["-", "--jobs", "2"], "- can be read but once"),
        (["/dev/null", "--resume", "kept"], "/dev/null can be read but once"),
        (["--exclude", "-", "--jobs", "2"], "- can be read but once"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], said: str) -> None:
    if "kept/out.json" in arguments:
        Path("kept").mkdir()
    result = call("ir", "qrels.trec", "a.trec", *arguments, *QUICK, input="")
    assert result.exit_code == 2
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_logs_of_other_tools_and_mteb_say_that_they_cannot() -> None:
    result = call("ir", "--from", "ragas", "a.trec", "--jobs", "2")
    assert (result.exit_code, "not with --from" in result.stderr) == (2, True)
    result = call("mteb", ".", "--resume", "kept")
    assert (result.exit_code, "falsify-mteb has no --resume" in result.stderr) == (2, True)
    assert not Path("kept").exists()


@pytest.mark.parametrize(
    ("option", "extra"), [("--jobs=2", "jobs"), ("--scheduler=tcp://127.0.0.1:1", "cluster")]
)
def test_an_absent_extra_is_named(option: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("falsify_adapters.sweep.workers.find_spec", lambda _: None)
    result = call("ir", "qrels.trec", "a.trec", option, *QUICK)
    assert result.exit_code == 2
    assert f"pip install 'falsify-adapters[{extra}]'" in result.stderr


def started(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        launcher("ir", *arguments),
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent.parent)])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_whatever_ends_a_sweep_finished_runs_stay_and_no_process_does(
    number: int, status: int
) -> None:
    runs = [f"run{i:02}.trec" for i in range(16)]
    for run in runs:
        shutil.copy("a.trec", run)
    sweep = ["qrels.trec", *runs, *QUICK, "-q", "--resume", "kept", "--json", "out.json"]
    process = started(*sweep, "--jobs", "2")
    wait_for(lambda: len(list(Path("kept").glob("*.parquet"))) > 2, process)
    os.kill(process.pid, number)
    process.communicate()  # returns when nobody holds its pipes any more: no child is left
    assert process.returncode == status
    assert not Path("out.json").exists()
    n_kept = len(pd.read_parquet("kept"))
    assert 2 < n_kept < len(runs)
    mine = {path: path.stat().st_mtime_ns for path in Path("kept").glob("*.parquet")}
    call("ir", *sweep)
    assert {path: path.stat().st_mtime_ns for path in mine} == mine
    assert len(json.loads(Path("out.json").read_bytes())["reports"]) == len(runs)
