"""The page and the tables that the commands write."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tests.cli_runs import call, write_dataset, write_qrels, write_run

FAST = ("--n-trials", "160", "--n-boot", "160", "--corpus-size", "1000", "--quiet")


@pytest.fixture
def inputs(tmp_path: Path) -> list[Path]:
    return [
        write_qrels(tmp_path / "qrels.trec", 40),
        write_run(tmp_path / "good.trec", 40),
        write_run(tmp_path / "blind.trec", 40, "blind"),
    ]


def test_the_page_holds_all_systems_and_one_playground(inputs: list[Path], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    result = call("ir", *inputs, *FAST, "--html", page)
    assert result.exit_code == 1
    assert not result.stdout
    html = page.read_text("utf-8")
    assert html.startswith("<!doctype html>")
    assert "1 of 2 runs passes, 1 fails" in html
    assert html.count('<article class="panel playground"') == 1
    assert "how much of <bdi>good</bdi> could be blind" in html


def test_each_benchmark_gets_its_playground(tmp_path: Path) -> None:
    sets = [write_dataset(tmp_path / name, 30, prefix=name) for name in ("one", "two")]
    page = tmp_path / "report.html"
    options = [option for folder in sets for option in ("-d", folder)]
    fast = ("--n-trials", "160", "--n-boot", "160", "--quiet")
    result = call("beir", *options, *fast, "--controls", "--offline", "--html", page)
    assert result.exit_code in (0, 3), result.stderr
    html = page.read_text("utf-8")
    assert html.count('<article class="panel playground"') == 2
    assert "Systems across benchmarks" in html


def test_the_playground_can_be_left_out(inputs: list[Path]) -> None:
    result = call("ir", *inputs[:2], *FAST, "--no-playground", "--html", "-")
    assert result.exit_code == 0
    assert result.stdout.startswith("<!doctype html>")
    assert '<article class="panel playground"' not in result.stdout


def test_the_page_is_the_same_twice(inputs: list[Path], tmp_path: Path) -> None:
    pages = [tmp_path / "a.html", tmp_path / "b.html"]
    for page in pages:
        call("ir", *inputs, *FAST, "--html", page)
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert str(tmp_path) not in pages[0].read_text("utf-8")


def test_tables_for_papers_and_spreadsheets(inputs: list[Path], tmp_path: Path) -> None:
    table = tmp_path / "table.tex"
    result = call("ir", *inputs, *FAST, "--latex", table, "--csv", "-")
    assert result.exit_code == 1
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [(row["system"], row["verdict"]) for row in rows] == [
        ("good", "PASS"),
        ("blind", "FAIL"),
    ]
    assert "\\toprule" in table.read_text("utf-8")


def test_a_refused_input_stands_on_the_page(inputs: list[Path], tmp_path: Path) -> None:
    empty = tmp_path / "empty.trec"
    empty.write_text("")
    page = tmp_path / "report.html"
    result = call("ir", inputs[0], empty, inputs[1], *FAST, "--no-playground", "--html", page)
    assert result.exit_code == 2
    assert "empty.trec" in page.read_text("utf-8")


def test_only_one_document_can_go_to_standard_output(inputs: list[Path]) -> None:
    result = call("ir", *inputs, *FAST, "--html", "-", "--csv", "-")
    assert result.exit_code == 2
    assert "--html - and --csv - both want standard output" in result.stderr


def test_a_page_that_cannot_be_written_is_refused(inputs: list[Path], tmp_path: Path) -> None:
    target = tmp_path / "nowhere" / "report.html"
    result = call("ir", *inputs[:2], *FAST, "--no-playground", "--html", target)
    assert result.exit_code == 2
    assert "cannot write" in result.stderr
