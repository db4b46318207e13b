"""falsify-mteb: predictions, bare scores, irregular trees, every output, several processes."""

from __future__ import annotations

import csv
import io
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from tests.cli_runs import call, in_subprocess, report

CASES = Path(__file__).parent / "data" / "cases"
N = 60
FAST = ("--n-boot", "200", "--n-trials", "100")


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def rankings(kind: str, rng: random.Random) -> dict[str, dict[str, float]]:
    """Good: the answer first, mostly. Blind: the same for everybody."""
    run = {}
    for i in range(N):
        docs = {f"d{(i + shift if kind == 'good' else shift) % N}": 1.0 / (shift + 1)
                for shift in range(12)}  # fmt: skip
        if kind == "good" and rng.random() < 0.1:
            del docs[f"d{i}"]
        run[f"q{i}"] = docs
    return run


def score_of(run: dict[str, dict[str, float]]) -> float:
    return sum(f"d{i}" in run[f"q{i}"] and run[f"q{i}"][f"d{i}"] == 1.0 for i in range(N)) / N


def scores(task: str, value: float, **row: Any) -> dict[str, Any]:
    entry = {"ndcg_at_10": value, "main_score": value, "hf_subset": "default", "languages": []}
    return {"task_name": task, "mteb_version": "2.1.0", "scores": {"test": [entry | row]}}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two models with predictions and results, one with results only, and qrels."""
    rng = random.Random(7)
    for task in ("ToyOne", "ToyTwo"):
        lines = "".join(f"q{i} 0 d{i} 1\n" for i in range(N))
        write(tmp_path / "qrels" / f"{task}.qrels", lines)
        for model in ("good", "blind"):
            run = rankings(model, rng)
            meta = {"model_name": f"org/{model}", "revision": "r1"}
            content = {"mteb_model_meta": meta, "default": {"test": run}}
            write(tmp_path / "predictions" / model / f"{task}_predictions.json", content)
            place = tmp_path / "results" / f"org__{model}" / "r1"
            value = score_of(run) if model == "good" else 0.5
            write(place / f"{task}.json", scores(task, value))
        write(tmp_path / "results" / "org__bare" / "r1" / f"{task}.json", scores(task, 0.6))
    other = {"task_name": "STSBenchmark", "scores": {"test": [{"cosine_spearman": 0.8}]}}
    write(tmp_path / "results" / "org__bare" / "r1" / "STSBenchmark.json", other)
    return tmp_path


def by_kind(document: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [entry for entry in document["reports"] if entry["kind"] == kind]


def test_predictions_are_graded_and_bare_scores_certified(tree: Path) -> None:
    document = report(
        "mteb", tree / "predictions", tree / "results", "--qrels", tree / "qrels", *FAST, status=1
    )
    gates = by_kind(document, "gate")
    assert {(g["model"], g["task"]): g["verdict"] for g in gates} == {
        ("org/good", "ToyOne"): "PASS",
        ("org/good", "ToyTwo"): "PASS",
        ("org/blind", "ToyOne"): "FAIL",
        ("org/blind", "ToyTwo"): "FAIL",
    }
    certificates = by_kind(document, "certificate")
    assert {(c["model"], c["verdict"]) for c in certificates} == {("org/bare", "CERTIFIED")}
    checks = by_kind(document, "reproduction")
    assert len(checks) == 4
    assert {c["status"] for c in checks if c["model"] == "org/blind"} == {"not reproduced"}
    assert document["errors"] == []
    [skip] = document["skipped"]
    assert skip["reason"] == "no measure of rankings with a cutoff"


def test_means_and_shares_per_model(tree: Path) -> None:
    document = report("mteb", tree / "results", "--qrels", tree / "qrels", status=0)
    rows = {row["system"]: row for row in by_kind(document, "model")}
    assert rows["org/bare"]["mean_task"] == pytest.approx(0.6)
    assert rows["org/bare"]["shares"] == {"CERTIFIED": 1.0}
    assert rows["org/bare"]["n_tasks"] == 2


def test_the_table_for_a_leaderboard_is_markdown(tree: Path) -> None:
    result = call("mteb", tree / "results", "--qrels", tree / "qrels", "--markdown", "-")
    lines = result.stdout.splitlines()
    head = lines.index("| model | tasks | mean \\(task\\) | CERTIFIED |")
    assert lines[head + 2].startswith("| org/bare | 2 | 0.6000 | 2 \\(100%\\) |")


def test_several_processes_write_the_same_bytes(tree: Path, tmp_path: Path) -> None:
    paths = (tree / "predictions", tree / "results", "--qrels", tree / "qrels", *FAST)
    written = []
    for jobs in ("1", "2"):
        target = tmp_path / f"{jobs}.json"
        done = in_subprocess("mteb", *paths, "--jobs", jobs, "--json", target, "--quiet")
        assert done.returncode == 1, done.stderr
        written.append(target.read_bytes())
    assert written[0] == written[1]


def test_csv_and_parquet_hold_the_same_rows(tree: Path, tmp_path: Path) -> None:
    parquet = tmp_path / "table.parquet"
    result = call(
        "mteb", tree / "predictions", tree / "results", "--qrels", tree / "qrels", *FAST,
        "--csv", "-", "--parquet", parquet,
    )  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(rows) == 6
    assert {row["verdict"] for row in rows} == {"PASS", "FAIL", "CERTIFIED"}
    reader = pytest.importorskip("pyarrow.parquet")
    table = reader.read_table(parquet).to_pylist()
    assert [row["score"] for row in table] == [float(row["score"]) for row in rows]
    assert [row["A_delta"] for row in table] == [float(row["A_delta"]) for row in rows]
    assert all(row["reproduced"] for row in table if row["kind"] == "gate")


def test_a_cell_that_looks_like_a_formula_is_text(tree: Path) -> None:
    place = tree / "predictions" / "evil"
    run = rankings("good", random.Random(1))
    content = {"mteb_model_meta": {"model_name": "=1+1", "revision": "r"}, "default": {"test": run}}
    write(place / "ToyOne_predictions.json", content)
    result = call("mteb", place, "--qrels", tree / "qrels", *FAST, "--csv", "-")
    [row] = csv.DictReader(io.StringIO(result.stdout))
    assert row["system"] == "'=1+1"


def test_without_pyarrow_the_extra_is_named(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from falsify_adapters.report import table

    monkeypatch.setattr(table, "find_spec", lambda _name: None)
    result = call(
        "mteb", tree / "results", "--qrels", tree / "qrels", "--parquet", tree / "x.parquet"
    )
    assert result.exit_code == 2
    assert "falsify-adapters[parquet]" in result.stderr
    assert not (tree / "x.parquet").exists()


def test_two_documents_cannot_share_standard_output(tree: Path) -> None:
    result = call("mteb", tree / "results", "--csv", "-", "--json", "-")
    assert result.exit_code == 2
    assert "standard output" in result.stderr


@pytest.mark.parametrize(
    ("value", "tau", "verdict", "status"),
    [
        (0.6, "0.05", "CERTIFIED", 0),
        (0.09, "0.05", "NOT CERTIFIED", 3),
        (0.6, "0.6", "NOT CERTIFIED", 3),
        (0.04, "0.05", "FAIL", 1),
        (0.0, "0", "FAIL", 1),
        (0.0, "0.05", "FAIL", 1),
    ],
)
def test_the_exit_status_follows_the_certificates(
    tree: Path, value: float, tau: str, verdict: str, status: int
) -> None:
    write(tree / "one" / "ToyOne.json", scores("ToyOne", value))
    options = ("--qrels", tree / "qrels", "--tau", tau)
    document = report("mteb", tree / "one", *options, status=status)
    [certificate] = by_kind(document, "certificate")
    assert certificate["verdict"] == verdict


def test_a_score_of_zero_is_shown_for_what_it_is_without_qrels(tree: Path) -> None:
    write(tree / "one" / "ToyOne.json", scores("ToyOne", 0.0))
    document = report("mteb", tree / "one", status=1)
    [certificate] = by_kind(document, "certificate")
    assert certificate["verdict"] == "FAIL"
    assert "broken run" in certificate["reason"]
    assert by_kind(document, "model") == []  # one bad score alone is no mean


def test_strict_refuses_certificates_with_warnings(tree: Path) -> None:
    document = report("mteb", tree / "results", "--qrels", tree / "qrels", "--strict", status=2)
    assert by_kind(document, "certificate") == []
    assert all("W-CORPUS-ESTIMATED" in error["found"] for error in document["errors"])


def test_another_revision_is_another_model(tree: Path) -> None:
    for task in ("ToyOne", "ToyTwo"):
        path = tree / "results" / "org__good" / "r1" / f"{task}.json"
        write(tree / "other" / "org__good" / "r2" / f"{task}.json", json.loads(path.read_text()))
        write(tree / "unsaid" / "org__good" / "external" / f"{task}.json", path.read_text())
    predictions, qrels = tree / "predictions" / "good", ("--qrels", tree / "qrels", *FAST)
    document = report("mteb", predictions, tree / "other", *qrels)
    assert by_kind(document, "reproduction") == []
    assert len(by_kind(document, "certificate")) == 2
    document = report("mteb", predictions, tree / "unsaid", *qrels)
    assert len(by_kind(document, "reproduction")) == 2


def test_a_chosen_task_needs_no_name_on_its_qrels(tree: Path) -> None:
    (tree / "only").mkdir()
    (tree / "qrels" / "ToyOne.qrels").rename(tree / "only" / "test.qrels")
    options = ("--qrels", tree / "only", "--task", "ToyOne", *FAST)
    document = report("mteb", tree / "predictions" / "good", *options, status=0)
    assert len(by_kind(document, "gate")) == 1


def test_nothing_to_grade_is_no_pass(tree: Path) -> None:
    result = call("mteb", tree / "results")
    assert result.exit_code == 2
    assert "nothing here can be graded" in result.stderr
    assert "--qrels" in result.stderr


def test_left_out_files_decide_nothing(tree: Path) -> None:
    write(tree / "results" / "run.log", "text")
    write(tree / "results" / "org__bare" / "r1" / "STS_predictions.json", {"scores": [1.0]})
    document = report("mteb", tree / "results", "--qrels", tree / "qrels", status=0)
    assert len(document["skipped"]) == 3
    [folder] = by_kind(document, "folder")
    assert folder["files"] == {"others": 1, "predictions": 1, "results": 7}


def test_broken_files_are_refused_and_the_rest_is_graded(tree: Path) -> None:
    write(tree / "results" / "broken.json", '{"task_name": ')
    document = report("mteb", tree / "results", "--qrels", tree / "qrels", status=2)
    [error] = document["errors"]
    assert "broken.json" in error["input"]
    assert len(by_kind(document, "certificate")) == 6


def test_scores_that_are_not_finite_in_predictions_are_refused(tree: Path) -> None:
    run = rankings("good", random.Random(1))
    run["q3"]["d3"] = math.nan
    write(tree / "flat" / "ToyOne_default_predictions.json", run)
    document = report("mteb", tree / "flat", "--qrels", tree / "qrels", *FAST, status=2)
    [error] = document["errors"]
    assert "finite" in error["lacks"]
    assert "'q3'" in error["found"]


@pytest.mark.parametrize(
    ("option", "value", "models"),
    [
        ("--model", "org/bare", {"org/bare"}),
        ("--model", "bare", {"org/bare"}),
        ("--model", "org__good", {"org/good"}),
        ("--task", "toyone", {"org/bare", "org/good", "org/blind"}),
        ("--split", "test", {"org/bare", "org/good", "org/blind"}),
        ("--subset", "default", {"org/bare", "org/good", "org/blind"}),
    ],
)
def test_selections(tree: Path, option: str, value: str, models: set[str]) -> None:
    document = report("mteb", tree / "results", "--qrels", tree / "qrels", option, value)
    certificates = by_kind(document, "certificate")
    assert {c["model"] for c in certificates} == models
    tasks = {c["task"] for c in certificates}
    assert tasks == ({"ToyOne"} if option == "--task" else {"ToyOne", "ToyTwo"})


@pytest.mark.parametrize("option", ["--model", "--task", "--split", "--subset"])
def test_a_selection_of_nothing_is_no_pass(tree: Path, option: str) -> None:
    result = call("mteb", tree / "results", "--qrels", tree / "qrels", option, "nonsense")
    assert result.exit_code == 2


def test_another_measure_is_taken_from_the_same_files(tree: Path) -> None:
    for name in ("good", "bare"):
        place = tree / "two" / f"org__{name}" / "r1"
        write(place / "ToyOne.json", scores("ToyOne", 0.6, recall_at_10=0.9, map_at_37=0.5))
    document = report(
        "mteb", tree / "two", "--qrels", tree / "qrels", "-m", "R@10", "-m", "AP@37", status=0
    )
    found = {(c["measure"], c["score"]) for c in by_kind(document, "certificate")}
    assert found == {("R@10", 0.9), ("AP@37", 0.5)}
    assert {row["measure"] for row in by_kind(document, "model")} == {"R@10", "AP@37"}


def test_a_measure_that_mteb_does_not_report_is_left_out(tree: Path) -> None:
    result = call("mteb", tree / "results", "--qrels", tree / "qrels", "-m", "ERR@10")
    assert result.exit_code == 2
    assert "nothing here can be graded" in result.stderr
    assert "MTEB does not report ERR@10" in " ".join(result.stdout.split())


def test_a_main_score_under_another_name_is_warned_of(tree: Path) -> None:
    write(tree / "one" / "ToyOne.json", scores("ToyOne", 0.6, main_score=0.9))
    document = report("mteb", tree / "one", "--qrels", tree / "qrels", status=0)
    [certificate] = by_kind(document, "certificate")
    assert certificate["score"] == 0.6
    codes = {note["code"] for note in certificate["warnings"]}
    assert codes == {"W-MAIN-SCORE", "W-CORPUS-ESTIMATED"}


@pytest.mark.parametrize("value", [10**400, math.inf, "0.5", True, {"a": 1}, []])
def test_a_main_score_of_any_kind_is_no_crash(tree: Path, value: Any) -> None:
    write(tree / "one" / "ToyOne.json", scores("ToyOne", value))
    document = report("mteb", tree / "one", "--qrels", tree / "qrels", status=2)
    [error] = document["errors"]
    assert "main_score" in error["lacks"]


def test_p_mrr_below_zero_is_no_error(tree: Path) -> None:
    write(tree / "one" / "ToyOne.json", scores("ToyOne", 0.6, main_score=-3.2))
    document = report("mteb", tree / "one", "--qrels", tree / "qrels", status=0)
    assert document["errors"] == []


def test_tau_auto_needs_rankings(tree: Path) -> None:
    options = ("--qrels", tree / "qrels", "--tau", "auto", "--decision", "point", *FAST)
    document = report("mteb", tree / "predictions", tree / "results", *options)
    assert len(by_kind(document, "gate")) == 4
    assert by_kind(document, "certificate") == []
    assert "needs rankings" in " ".join(skip["reason"] for skip in document["skipped"])


@pytest.mark.parametrize("arguments", [("--jobs", "0"), ("--qrels", "nowhere")])
def test_wrong_usage(tree: Path, arguments: tuple[str, ...]) -> None:
    result = call("mteb", tree / "results", *arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr


def test_a_path_that_does_not_exist(tmp_path: Path) -> None:
    result = call("mteb", tmp_path / "nowhere")
    assert result.exit_code == 2
    assert "does not exist" in result.stderr


def test_no_absolute_path_stands_in_a_report(tree: Path) -> None:
    document = report("mteb", tree / "predictions", tree / "results", "--qrels", tree / "qrels",
                      *FAST)  # fmt: skip
    assert str(tree) not in json.dumps(document)


def test_the_terminal_shows_every_kind_of_report(tree: Path) -> None:
    result = call(
        "mteb", tree / "predictions", tree / "results", "--qrels", tree / "qrels", *FAST, "--ascii"
    )
    text = " ".join(result.stdout.split())
    for words in (
        "Models, main scores",
        "Reported scores recomputed from the rankings: 2 equal",
        "NOT CERTIFIED: one does",
        "Files: predictions 4, results 7",
    ):
        assert words in text, words
    assert result.stdout.isascii()
    assert max(map(len, result.stdout.splitlines())) <= 80


# the case files


def test_case_44_each_subset_and_split_is_scored_on_its_own_qrels() -> None:
    case = CASES / "44-mteb-predictions-several-subsets-and-splits"
    expected = json.loads((case / "expected.json").read_text())["variants"][0]["expect"]
    document = report("mteb", case / "Toy_predictions.json", "--qrels", case / "qrels", *FAST)
    found = {
        f"{g['measure']} {g['subset']}/{g['split']}": g["score"] for g in by_kind(document, "gate")
    }
    for name, value in found.items():
        assert value == pytest.approx(expected[name], abs=5e-7)
    assert len(found) == 4
    [mean] = [a for a in by_kind(document, "average") if a["split"] == "test"]
    assert mean["score"] == pytest.approx(expected["nDCG@10 mean of test over subsets"], abs=1e-6)
    assert "mteb_model_meta" not in json.dumps(document["reports"])


def test_case_44_one_subset_and_split() -> None:
    case = CASES / "44-mteb-predictions-several-subsets-and-splits"
    document = report(
        "mteb", case / "Toy_predictions.json", "--qrels", case / "qrels", *FAST,
        "--subset", "de", "--split", "test",
    )  # fmt: skip
    [gate] = by_kind(document, "gate")
    assert (gate["subset"], gate["split"], gate["score"]) == ("de", "test", 0.25)
    assert gate["model"] == "toy/model"


@pytest.mark.parametrize(("name", "variant"), [("nan", 0), ("above_one", 1)])
def test_case_47_impossible_scores_are_refused(name: str, variant: int) -> None:
    case = CASES / "47-nan-and-values-above-one-in-result-json"
    expected = json.loads((case / "expected.json").read_text())["variants"][variant]
    files = (case / "baseline.json", case / f"{name}.json")
    document = report("mteb", *files, status=2)
    assert document["reports"][0]["kind"] == "folder"
    errors = [f"{error['lacks']} {error['found']}" for error in document["errors"]]
    must_say = expected["must_say"]
    assert any(must_say in error for error in errors), errors


# real results


def test_the_public_results_are_read_and_certified(data_dir: Path) -> None:
    pytest.importorskip("mteb", reason="BRIGHT's splits stand in mteb's task descriptions")
    results = data_dir / "mteb" / "results"
    document = report("mteb", results, "--qrels", data_dir / "qrels")
    [folder] = by_kind(document, "folder")
    assert sum(folder["files"].values()) == 124
    assert document["errors"] == []
    assert folder["oddities"].keys() >= {
        "NaN value",
        "null value",
        "text value",
        "old layout",
        "stub",
        "no version",
        "no main_score",
        "split before test",
        "duplicate subset",
    }
    certificates = by_kind(document, "certificate")
    ceilings = {(c["task"], c["subset"]): c["ceiling"] for c in certificates if c["bounds"]}
    assert {key: round(value, 4) for key, value in ceilings.items()} == {
        ("BrightRetrieval", "pony"): 0.9408,
        ("ClimateFEVER", "default"): 0.2513,
        ("NFCorpus", "default"): 0.0756,
        ("SciFact", "default"): 0.0488,
        ("TRECCOVID", "default"): 0.1641,
    }
    climate = [c for c in certificates if c["task"] == "ClimateFEVER"]
    assert len(climate) == 10
    for certificate in climate:
        below = certificate["score"] < certificate["ceiling"] + 0.05
        assert (certificate["verdict"] in ("NOT CERTIFIED", "FAIL")) == below
    assert all(c["warnings"] == [] for c in climate)
    [zero] = [
        c
        for c in certificates
        if c["task"] == "Touche2020Retrieval.v3" and c["model"].startswith("jinaai")
    ]
    assert (zero["score"], zero["verdict"]) == (0.0, "FAIL")
    assert "exactly 0" in zero["reason"]


def test_the_train_split_is_never_taken_for_test(data_dir: Path) -> None:
    results = data_dir / "mteb" / "results" / "mteb__baseline-bm25s"
    document = report("mteb", results, "--qrels", data_dir / "qrels", "--task", "SciFact")
    [certificate] = by_kind(document, "certificate")
    assert (certificate["split"], certificate["score"]) == ("test", 0.68736)


def test_download_without_mteb_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("falsify_adapters.adapters.mteb.tasks.have_mteb", lambda: False)
    result = call("mteb", tmp_path, "--download")
    assert result.exit_code == 2
    assert "falsify-adapters[mteb-core]" in result.stderr
