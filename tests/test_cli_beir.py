"""falsify-beir on folders in BEIR's layout: which run belongs where, defaults, controls."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli_runs import call, report, write_dataset, write_run

CONTROLS = ["popularity", "constant", "random", "oracle"]


@pytest.fixture(autouse=True)
def no_cache_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("FALSIFY_DATA_DIR", raising=False)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Two data sets with different queries, and a run for each."""
    for name, prefix in (("red", "r"), ("blue", "b")):
        write_dataset(tmp_path / name, 120, prefix)
        write_run(tmp_path / "runs" / f"{name}.trec", 120, prefix=prefix)
    write_run(tmp_path / "runs" / "blind.trec", 120, "blind", prefix="r")
    write_run(tmp_path / "runs" / "other.trec", 120, prefix="x")
    return tmp_path


def test_alone_it_grades_bm25_on_the_sample() -> None:
    document = report("beir", status=0)
    (found,) = document["reports"]
    assert (found["system"], found["benchmark"], found["measure"]) == ("bm25", "sample", "nDCG@10")
    assert found["verdict"] == "PASS"
    assert found["n_queries"] >= 60
    assert found["corpus_size"] >= 150
    assert found["corpus_size_source"] == "counted"


def test_the_controls_of_the_sample_are_judged_rightly_and_decide_nothing() -> None:
    document = report("beir", "--controls", status=0)
    verdicts = {found["system"]: found["verdict"] for found in document["reports"]}
    assert list(verdicts) == ["bm25", *CONTROLS]
    assert verdicts == {
        "bm25": "PASS",
        "popularity": "FAIL",
        "constant": "FAIL",
        "random": "FAIL",
        "oracle": "PASS",
    }
    roles = {found["system"]: found["role"] for found in document["reports"]}
    assert roles.pop("bm25") == "run"
    assert set(roles.values()) == {"control"}


def test_controls_stand_beside_every_measure() -> None:
    document = report("beir", "--controls", "-m", "P@5", "-m", "RR@10")
    rows = [(found["measure"], found["system"]) for found in document["reports"]]
    assert sorted(rows) == sorted((m, s) for m in ("P@5", "RR@10") for s in ("bm25", *CONTROLS))


def test_a_folder_or_a_name_in_the_data_folder(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = two / "runs" / "red.trec"
    monkeypatch.setenv("FALSIFY_DATA_DIR", str(two))
    calls = (
        ["--dataset", two / "red"],
        ["--dataset", "red", "--data-dir", two],
        ["--dataset", "red"],
    )
    for arguments in calls:
        (found,) = report("beir", *arguments, "--run", run, "--offline", status=0)["reports"]
        assert (found["benchmark"], found["split"], found["score"]) == ("red", "test", 1.0)


def test_each_run_goes_to_the_data_set_whose_queries_it_answers(two: Path) -> None:
    runs = [a for name in ("red", "blue", "blind") for a in ("-r", two / "runs" / f"{name}.trec")]
    document = report("beir", "-d", two / "red", "-d", two / "blue", *runs, status=1)
    pairs = [(found["benchmark"], found["system"]) for found in document["reports"]]
    assert pairs == [("red", "red"), ("red", "blind"), ("blue", "blue")]
    assert len(document["skipped"]) == 3
    assert document["errors"] == []


def test_a_run_that_fits_no_data_set_is_refused(two: Path) -> None:
    runs = ["-r", two / "runs" / "other.trec", "-r", two / "runs" / "red.trec"]
    document = report("beir", "-d", two / "red", *runs, status=2)
    assert [found["system"] for found in document["reports"]] == ["red"]
    (error,) = document["errors"]
    assert error["input"] == "other.trec on red"
    assert "share no query" in error["lacks"]


def test_a_data_set_without_a_run_is_refused(two: Path) -> None:
    run = two / "runs" / "red.trec"
    document = report("beir", "-d", two / "red", "-d", two / "blue", "-r", run, status=2)
    assert [found["benchmark"] for found in document["reports"]] == ["red"]
    assert document["errors"][0]["input"] == "blue"


def test_the_data_sets_name_can_stand_in_the_runs_path(two: Path) -> None:
    run = two / "runs" / "{dataset}.trec"
    document = report("beir", "-d", two / "red", "-d", two / "blue", "-r", run, status=0)
    pairs = [(found["benchmark"], found["system"]) for found in document["reports"]]
    assert pairs == [("red", "red"), ("blue", "blue")]
    (two / "runs" / "blue.trec").unlink()
    document = report("beir", "-d", two / "red", "-d", two / "blue", "-r", run, status=2)
    assert [found["benchmark"] for found in document["reports"]] == ["red"]


def test_an_unknown_data_set_is_refused_and_the_others_graded(two: Path) -> None:
    run = two / "runs" / "red.trec"
    arguments = ["-d", "nonsense", "-d", two / "red", "-r", run, "--offline"]
    document = report("beir", *arguments, status=2)
    assert [found["benchmark"] for found in document["reports"]] == ["red"]
    assert document["errors"][0]["input"] == "nonsense"


def test_bm25_is_computed_where_no_run_is_given(two: Path) -> None:
    (found,) = report("beir", "-d", two / "red", status=0)["reports"]
    assert (found["system"], found["score"]) == ("bm25", 1.0)


def test_self_matches_are_dropped_unless_kept(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "own", 120, "d")
    qrels = folder / "qrels" / "test.tsv"
    rows = [f"d{i:03}\td{(i + 1) % 120:03}\t1" for i in range(120)]
    qrels.write_text("\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n")
    run = write_run(tmp_path / "run.trec", 120, prefix="d")
    arguments = ["-d", folder, "-r", run, "-m", "RR@10"]
    (dropped,) = report("beir", *arguments)["reports"]
    assert dropped["score"] == 1.0
    (note,) = [n for n in dropped["warnings"] if n["code"] == "W-SELF-MATCHES"]
    assert "120 of 120" in note["message"]
    (kept,) = report("beir", *arguments, "--keep-self")["reports"]
    assert kept["score"] == 0.5


def test_the_parts_of_a_benchmark_are_graded_apart_and_averaged(tmp_path: Path) -> None:
    for forum in ("android", "physics"):
        write_dataset(tmp_path / "cqadupstack" / forum, 120)
        write_run(tmp_path / "runs" / f"{forum}.trec", 120)
    arguments = ["-d", "cqadupstack", "--data-dir", tmp_path, "-r", tmp_path / "runs"]
    document = report("beir", *arguments, "--offline", status=0)
    *parts, average = document["reports"]
    assert [part["subset"] for part in parts] == ["android", "physics"]
    assert average["kind"] == "average"
    assert (average["system"], average["n_parts"], average["score"]) == ("runs", 2, 1.0)
    table = call("beir", *arguments, "--offline").stdout
    assert "macro average 1.0000 over 2 parts (2 PASS)" in " ".join(table.split())
