"""The positional arguments of falsify-ir: runs in folders and patterns, measures behind them."""

from __future__ import annotations

from pathlib import Path

import pytest

from falsify_adapters.cli.arguments import expanded, split_measures
from falsify_adapters.errors import UsageError
from tests.cli_runs import call, report, write_qrels, write_run


def test_measures_behind_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert split_measures(["a.trec", "nDCG@10", "AP(rel=2)@100", "RR"]) == (
        ["a.trec"],
        ["nDCG@10", "AP(rel=2)@100", "RR"],
    )
    assert split_measures(["bm25", "runs/RR@10", "x.y@3"]) == (["bm25", "runs/RR@10", "x.y@3"], [])
    monkeypatch.chdir(tmp_path)
    Path("RR").write_text("")
    assert split_measures(["a", "RR"]) == (["a", "RR"], [])


def test_folders_and_patterns(tmp_path: Path) -> None:
    for name in ("b.trec", "a.run", ".hidden.trec", "notes.md"):
        (tmp_path / name).write_text("")
    (tmp_path / "deeper").mkdir()
    both = [str(tmp_path / "a.run"), str(tmp_path / "b.trec")]
    assert expanded([str(tmp_path)]) == both
    assert expanded([f"{tmp_path}/*.trec", str(tmp_path)]) == both[::-1]
    assert expanded(["-", "nowhere.trec"]) == ["-", "nowhere.trec"]
    with pytest.raises(UsageError, match="holds no run"):
        expanded([str(tmp_path / "deeper")])
    with pytest.raises(UsageError, match="no file is"):
        expanded([f"{tmp_path}/*.lz4"])


def test_a_folder_of_runs_in_one_command(tmp_path: Path) -> None:
    qrels = write_qrels(tmp_path / "qrels.trec", 30)
    write_run(tmp_path / "runs" / "good.trec", 30)
    write_run(tmp_path / "runs" / "blind.trec", 30, "blind")
    pool = tmp_path / "ids.txt"
    pool.write_text("".join(f"d{i:03}\n" for i in range(500)))
    arguments = [qrels, tmp_path / "runs", "RR@10", "P@1", "--pool", pool]
    reports = report("ir", *arguments, status=1)["reports"]
    verdicts = {(r["system"], r["measure"]): r["verdict"] for r in reports}
    assert verdicts == {
        ("blind", "RR@10"): "FAIL",
        ("blind", "P@1"): "FAIL",
        ("good", "RR@10"): "PASS",
        ("good", "P@1"): "PASS",
    }
    assert {r["corpus_size"] for r in reports} == {500}


def test_measures_in_both_places_add_up(tmp_path: Path) -> None:
    qrels = write_qrels(tmp_path / "qrels.trec", 30)
    run = write_run(tmp_path / "good.trec", 30)
    result = report("ir", qrels, run, "P@1", "-m", "RR@10", "--corpus-size", "500", status=0)
    assert {r["measure"] for r in result["reports"]} == {"P@1", "RR@10"}


def test_a_run_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    qrels = write_qrels(tmp_path / "qrels.trec", 30)
    result = call("ir", qrels, tmp_path / "nowhere.trec", "P@1")
    assert (result.exit_code, "nowhere.trec does not exist" in result.stderr) == (2, True)
