"""--clusters, --blocks, --strata, --by-grade, --alt-qrels, --baseline, in both commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli_runs import call, report, write_dataset, write_qrels, write_run

N = 120
FAST = ["--n-boot", "200", "--n-trials", "100", "--corpus-size", "1000"]


@pytest.fixture
def inputs(tmp_path: Path) -> list[Any]:
    qrels = write_qrels(tmp_path / "qrels.trec", N)
    return [qrels, write_run(tmp_path / "good.trec", N), *FAST]


def dependence(document: dict[str, Any]) -> dict[str, Any]:
    return document["reports"][0]["dependence"]


def refused(inputs: list[Any], *options: Any) -> str:
    result = call("ir", *inputs, "--quiet", *options)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    return result.stderr


def queries_file(folder: Path, n: int = N) -> Path:
    path = folder / "queries.jsonl"
    rows = [
        {
            "_id": f"q{i:03}",
            "text": f"question about {chr(97 + i % 26) * 8}",
            "metadata": {"topic": f"t{i % 40}", "year": str(3000 - i), "lang": "ab"[i % 2]},
        }
        for i in range(n)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_clusters_from_a_file_a_column_and_texts(inputs: list[Any], tmp_path: Path) -> None:
    names = tmp_path / "clusters.tsv"
    names.write_text("".join(f"q{i:03}\tc{i // 3}\n" for i in range(N - 30)))
    found = dependence(report("ir", *inputs, "--clusters", names))
    assert found["clusters"] == {
        "source": "clusters.tsv",
        "clusters": 60,
        "largest": 3,
        "alone": 30,
    }
    queries = queries_file(tmp_path)
    by_column = report("ir", *inputs, "--clusters", "topic", "--queries", queries)
    assert dependence(by_column)["clusters"]["clusters"] == 40
    assert dependence(by_column)["clusters"]["source"] == "column topic"
    auto = dependence(report("ir", *inputs, "--clusters", "auto", "--queries", queries))
    assert auto["clusters"]["clusters"] == 26
    assert "90 % alike" in auto["clusters"]["source"]
    assert dependence(report("ir", *inputs)) is None


def test_the_screen_and_the_files_say_what_was_grouped(inputs: list[Any], tmp_path: Path) -> None:
    options = ["--clusters", "topic", "--strata", "lang", "--queries", queries_file(tmp_path)]
    result = call("ir", *inputs, *options, "--markdown", tmp_path / "a.md")
    screen = " ".join(result.stdout.split())
    for text in (screen, (tmp_path / "a.md").read_text().replace("\\", "")):
        assert "Clusters: 40 among 120 queries, the largest holds 3 (column topic)" in text
        assert "Intervals over those of queries taken one by one: A" in text
        assert "null A permutes inside 2 (column lang)" in text


def test_blocks_follow_the_queries_file_or_the_qrels(inputs: list[Any], tmp_path: Path) -> None:
    found = dependence(report("ir", *inputs, "--blocks", "4"))["blocks"]
    assert found == {"source": "first appearance in the qrels file", "length": 4, "blocks": 30}
    queries = queries_file(tmp_path)
    by_file = report("ir", *inputs, "--blocks", "4", "--queries", queries)
    assert dependence(by_file)["blocks"]["source"] == "order of queries.jsonl"
    by_year = report("ir", *inputs, "--blocks", "4:year", "--queries", queries)
    assert dependence(by_year)["blocks"]["source"] == "sorted by column year"


def test_blocks_take_the_order_of_the_file_and_not_of_the_ids(tmp_path: Path) -> None:
    # right on one half of the queries: blocks see it if the file has the halves one after another
    run = tmp_path / "run.trec"
    right = {i: (i % 2 == 0) for i in range(N)}
    run.write_text(
        "".join(f"q{i:03} Q0 {f'd{i:03}' if right[i] else 'x'} 1 1.0 t\n" for i in range(N))
    )
    widths = []
    for order in (range(N), sorted(range(N), key=lambda i: right[i])):
        qrels = tmp_path / "qrels.trec"
        qrels.write_text("".join(f"q{i:03} 0 d{i:03} 1\n" for i in order))
        found = dependence(report("ir", qrels, run, *FAST, "--blocks", "6"))
        widths.append(found["widening"]["C"])
    assert widths[0] < 0.5 < 1.5 < widths[1]


def test_strata_by_number_of_answers_and_by_file(tmp_path: Path) -> None:
    qrels = tmp_path / "qrels.trec"
    qrels.write_text(
        "".join(f"q{i:03} 0 d{(i + k) % N:03} 1\n" for i in range(N) for k in range(1 + i % 3))
    )
    inputs = [qrels, write_run(tmp_path / "good.trec", N), *FAST]
    found = dependence(report("ir", *inputs, "--strata", "gold-count"))["strata"]
    assert found == {
        "source": "number of relevant documents",
        "strata": 3,
        "merged": [],
        "self_pairs": 0.025,
    }
    names = tmp_path / "strata.csv"
    names.write_text("query_id,stratum\n" + "".join(f"q{i:03},s{i // 5}\n" for i in range(N)))
    document = report("ir", *inputs, "--strata", names)
    assert dependence(document)["strata"]["strata"] == 12
    codes = {note["code"] for note in document["reports"][0]["warnings"]}
    assert "W-STRATA-MERGED" in codes
    assert "W-STRATA-MERGED" in call("ir", *inputs, "--strata", names).stdout


def test_what_cannot_be_meant_is_refused(inputs: list[Any], tmp_path: Path) -> None:
    bad, few, other = (tmp_path / name for name in ("bad.tsv", "few.tsv", "other.tsv"))
    bad.write_text("q000\ta\nq001\n")
    few.write_text("q000\ta\n")
    other.write_text("nobody\ta\n")
    assert "line 2 has not two fields" in refused(inputs, "--clusters", bad)
    assert "names none of the judged queries" in refused(inputs, "--clusters", other)
    assert "has no stratum" in refused(inputs, "--strata", few)
    assert "does not exist" in refused(inputs, "--clusters", tmp_path / "nowhere.tsv")
    assert "give --queries FILE" in refused(inputs, "--clusters", "topic")
    assert "give --queries FILE" in refused(inputs, "--clusters", "auto")
    queries = ["--queries", queries_file(tmp_path)]
    assert "has no column 'topics'" in refused(inputs, "--clusters", "topics", *queries)
    short = ["--queries", queries_file(tmp_path, N - 1)]
    assert "1 without one (q119)" in refused(inputs, "--clusters", "auto", *short)
    assert "at most half" in refused(inputs, "--blocks", "61")
    assert "q119" in refused(inputs, "--blocks", "4", *short)
    for wrong in ("0", "-3", "x", ":year"):
        assert "--blocks takes" in refused(inputs, "--blocks", wrong)
    assert "exclude each other" in refused(inputs, "--blocks", "4", "--clusters", few)
    assert "exclude each other" in refused(inputs, "--strata", few, "--permute", "label")


def test_a_baseline_is_graded_and_compared_with_every_run(
    inputs: list[Any], tmp_path: Path
) -> None:
    blind = write_run(tmp_path / "blind.trec", N, "blind")
    document = report("ir", *inputs, "--baseline", blind, status=0)
    assert [(r["kind"], r["role"], r["verdict"]) for r in document["reports"]] == [
        ("gate", "run", "PASS"),
        ("gate", "baseline", "FAIL"),
        ("comparison", "comparison", "BETTER"),
    ]
    found = document["reports"][-1]
    assert (found["baseline"], found["candidate"]) == ("blind", "good")
    assert found["beyond_nulls"] is True
    # the baseline's own file among the runs is no candidate
    both = report("ir", inputs[0], inputs[1], blind, *FAST, "--baseline", blind, status=1)
    compared = [r for r in both["reports"] if r["kind"] == "comparison"]
    assert [r["candidate"] for r in compared] == ["good"]
    assert [r["role"] for r in both["reports"] if r["kind"] == "gate"] == ["run", "run"]
    alone = report("ir", inputs[0], blind, *FAST, "--baseline", blind, status=1)
    assert alone["reports"][-1]["verdict"] == "NO DIFFERENCE"
    # in every form that a report can take
    texts = []
    for option in ("--markdown", "--html", "--csv", "--latex"):
        target = tmp_path / f"report{option}"
        assert call("ir", *inputs, "--baseline", blind, "--quiet", option, target).exit_code == 0
        texts.append(target.read_text())
    assert all("compared with blind" in text for text in texts[:2])
    assert call("ir", *inputs, "--baseline", tmp_path / "nowhere", "--quiet").exit_code == 2


def test_strict_refuses_a_comparison_with_missing_queries(
    inputs: list[Any], tmp_path: Path
) -> None:
    half = write_run(tmp_path / "half.trec", N // 2)
    document = report("ir", *inputs, "--baseline", half)
    notes = [note["code"] for note in document["reports"][-1]["warnings"]]
    assert notes == ["W-UNEQUAL-QUERIES"]
    strict = report("ir", *inputs, "--baseline", half, "--strict", status=2)
    assert not any(r["kind"] == "comparison" for r in strict["reports"])


def test_grades_and_other_judgements(inputs: list[Any], tmp_path: Path) -> None:
    qrels, other = tmp_path / "graded.trec", tmp_path / "other.trec"
    qrels.write_text("".join(f"q{i:03} 0 d{i:03} 1\nq{i:03} 0 x{i:03} 2\n" for i in range(N)))
    other.write_text("".join(f"q{i:03} 0 x{i:03} 1\n" for i in range(N)))
    document = report("ir", qrels, *inputs[1:], "--by-grade", "--alt-qrels", other, status=0)
    kinds = [r["kind"] for r in document["reports"]]
    assert kinds == ["gate", "grades", "judgements"]
    _, grades, again = document["reports"]
    assert [(row["grade"], row["verdict"]) for row in grades["rows"]] == [(1, "PASS"), (2, "FAIL")]
    assert (again["judge"], again["holds"]) == ("other.trec", False)
    assert again["overlap"]["jaccard"] == 0.5
    assert again["first"]["verdict"] == "PASS"
    assert again["second"]["verdict"] == "FAIL"
    assert 0 < len(again["turning"]) <= N
    screen = " ".join(
        call("ir", qrels, *inputs[1:], "--by-grade", "--alt-qrels", other).stdout.split()
    )
    assert "good at each grade" in screen
    assert "PASS becomes FAIL; exchanging the judgements of" in screen
    bad = call("ir", qrels, *inputs[1:], "--alt-qrels", tmp_path / "nowhere", "--quiet")
    assert bad.exit_code == 2


def test_falsify_beir_takes_the_same_options(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "toy", N)
    good, blind = (write_run(tmp_path / f"{k}.trec", N, k) for k in ("good", "blind"))
    common = ["-d", folder, "-r", good, "--n-boot", "200", "--n-trials", "100"]
    options = ["--blocks", "5", "--strata", "gold-count", "--by-grade", "--baseline", blind]
    document = report("beir", *common, *options, status=0)
    assert [(r["kind"], r["role"]) for r in document["reports"]] == [
        ("gate", "run"),
        ("grades", "grades"),
        ("gate", "baseline"),
        ("comparison", "comparison"),
    ]
    found = dependence(document)
    assert found["blocks"]["source"] == "order of queries.jsonl"
    assert found["strata"]["strata"] == 1
    auto = dependence(report("beir", *common, "--clusters", "auto"))
    assert auto["clusters"]["clusters"] <= N
    (folder / "queries.jsonl").unlink()
    result = call("beir", *common, "--clusters", "auto", "--quiet")
    assert result.exit_code == 2
    assert "has no queries.jsonl" in result.stderr


@pytest.mark.parametrize("more", [[], ["--blocks", "5"], ["--clusters", "auto"]])
def test_a_queries_file_that_is_not_there_is_refused(
    inputs: list[Any], more: list[str], tmp_path: Path
) -> None:
    result = call("ir", *inputs, *more, "--queries", tmp_path / "typo.jsonl")
    assert result.exit_code == 2
    assert "does not exist" in result.stderr
