"""Options mean what they say, on the command line and in a settings file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from falsify_adapters.cli.beir import main as beir
from falsify_adapters.cli.grading import system_names
from falsify_adapters.cli.ir import main as ir
from falsify_adapters.cli.options import option_names
from falsify_adapters.config import read_config
from tests.cli_runs import ROOT, call, report, write_dataset, write_qrels, write_run


@pytest.fixture
def inputs(tmp_path: Path) -> list[Path]:
    return [write_qrels(tmp_path / "qrels.trec", 120), write_run(tmp_path / "good.trec", 120)]


def settings(inputs: list[Path], *options: str) -> dict[str, Any]:
    document = report("ir", *inputs, *options)
    return document["reports"][0]["settings"]


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        (["--tau", "0.1"], "tau", 0.1),
        (["--tau", "auto", "--decision", "point"], "tau", "auto"),
        (["--alpha", "0.1"], "alpha", 0.1),
        (["--n-boot", "200"], "n_boot", 200),
        (["--n-trials", "300"], "n_trials", 300),
        (["--seed", "7"], "seed", 7),
        (["--permute", "label"], "permute", "label"),
        (["--marginal", "set"], "marginal", "set"),
        (["--decision", "point"], "decision", "point"),
        (["--correction", "none"], "correction", "none"),
    ],
)
def test_each_option_reaches_the_gate(
    inputs: list[Path], options: list[str], name: str, value: Any
) -> None:
    assert settings(inputs, *options)[name] == value
    assert settings(inputs)[name] != value


def test_measures_are_graded_in_order_and_once(inputs: list[Path]) -> None:
    document = report("ir", *inputs, "-m", "P@5", "-m", "RR@10", "-m", "P@5")
    assert [r["measure"] for r in document["reports"]] == ["P@5", "RR@10"]


def test_the_lowest_relevant_grade_is_set_where_a_measure_takes_one(inputs: list[Path]) -> None:
    measures = ["-m", "P@5", "-m", "nDCG@5", "-m", "R(rel=1)@5"]
    lines = inputs[0].read_text().splitlines()
    # every second query's document has grade 2
    inputs[0].write_text("".join(f"{line[:-1]}{1 + i % 2}\n" for i, line in enumerate(lines)))
    document = report("ir", *inputs, *measures, "--min-rel", "2")
    scores = {r["measure"]: r["score"] for r in document["reports"]}
    # ir-measures does not print rel=1, which is its default
    assert scores == {"P(rel=2)@5": pytest.approx(0.1), "nDCG@5": 1, "R@5": 1}
    refused = call("ir", *inputs, "P@5", "--min-rel", "3")
    assert refused.exit_code == 2
    assert "takes grade 3 and more for relevant, which no judged document has" in refused.stderr


def test_top_k_cuts_every_run(inputs: list[Path], tmp_path: Path) -> None:
    shifted = tmp_path / "second.trec"
    shifted.write_text(
        "".join(
            f"q{i:03} Q0 d{(i + 1 - k) % 120:03} 0 {9 - k} t\n" for i in range(120) for k in (0, 1)
        )
    )
    scores = [
        report("ir", inputs[0], shifted, "-m", "RR@10", *cut)["reports"][0]["score"]
        for cut in ([], ["--top-k", "1"])
    ]
    assert scores == [0.5, 0.0]


def test_the_corpus_size_is_given_or_estimated(inputs: list[Path]) -> None:
    given = report("ir", *inputs, "--corpus-size", "5000")["reports"][0]
    assert (given["corpus_size"], given["corpus_size_source"]) == (5000, "given")
    estimated = report("ir", *inputs)["reports"][0]
    assert (estimated["corpus_size"], estimated["corpus_size_source"]) == (120, "estimated")
    assert "W-CORPUS-ESTIMATED" in {note["code"] for note in estimated["warnings"]}


def test_self_matches_are_kept_or_dropped(tmp_path: Path) -> None:
    qrels, run = tmp_path / "qrels.trec", tmp_path / "run.trec"
    qrels.write_text("".join(f"d{i} 0 d{i + 1} 1\n" for i in range(120)))
    run.write_text(
        "".join(f"d{i} Q0 d{i + k} {k + 1} {9 - k} t\n" for i in range(120) for k in range(2))
    )

    def grade(*options: str) -> tuple[float, str]:
        (found,) = report("ir", qrels, run, "-m", "RR@10", *options)["reports"]
        (note,) = [n["message"] for n in found["warnings"] if n["code"] == "W-SELF-MATCHES"]
        return found["score"], note

    score, message = grade()
    assert score == 0.5
    assert "120 of 120" in message
    assert "kept" in message
    score, message = grade("--drop-self")
    assert score == 1.0
    assert "removed" in message
    # a question that the user has answered is no reason to refuse
    base = ["ir", qrels, run, "--strict", "--corpus-size", "1000", "--quiet"]
    assert call(*base).exit_code == 2
    assert call(*base, "--keep-self").exit_code in (0, 1, 3)


def test_excluded_documents_are_left_out_and_said(inputs: list[Path], tmp_path: Path) -> None:
    exclude = tmp_path / "exclude.txt"
    exclude.write_text("".join(f"q{i:03} d{i:03}\n" for i in range(60)) + "q999 d001\n")
    (found,) = report("ir", *inputs, "-m", "P@1", "--exclude", str(exclude))["reports"]
    assert found["score"] == 0.5
    (note,) = [n for n in found["warnings"] if n["code"] == "W-EXCLUDED"]
    assert "60 of the 61" in note["message"]


def test_distances_need_a_word(inputs: list[Path], tmp_path: Path) -> None:
    distances = tmp_path / "distances.trec"
    lines = [line.split() for line in inputs[1].read_text().splitlines()]
    distances.write_text("".join(f"{q} Q0 {d} {r} {r} t\n" for q, _, d, r, _, _ in lines))
    assert call("ir", inputs[0], distances, "--quiet").exit_code == 2
    for choice in (["--score-order", "ascending"], ["--rank-from-column"]):
        (found,) = report("ir", inputs[0], distances, "-m", "P@1", *choice)["reports"]
        assert found["score"] == 1.0


def test_strict_refuses_what_it_would_only_warn_about(inputs: list[Path]) -> None:
    assert call("ir", *inputs, "--quiet").exit_code == 0
    document = report("ir", *inputs, "--strict", status=2)
    assert document["reports"] == []
    assert "W-CORPUS-ESTIMATED" in document["errors"][0]["found"]
    assert call("ir", *inputs, "--strict", "--corpus-size", "1000", "--quiet").exit_code == 0


def test_a_settings_file_gives_the_defaults(inputs: list[Path], tmp_path: Path) -> None:
    config = tmp_path / "gate.toml"
    config.write_text('measure = "P@5"\ntau = 0.2\nkeep_self = false\nseed = 3\njson = "-"\n')
    found = report("ir", *inputs, "--config", str(config), "--seed", "4")["reports"][0]
    assert found["measure"] == "P@5"
    assert (found["settings"]["tau"], found["settings"]["seed"]) == (0.2, 4)
    config.write_text('measure = ["P@5", "R@5"]')
    both = report("ir", *inputs, "--config", str(config))["reports"]
    assert [r["measure"] for r in both] == ["P@5", "R@5"]


@pytest.mark.parametrize("line", ["taus = 1", "config = 'x'", "qrels = 'x'", "tau = 'high'", "["])
def test_a_settings_file_with_a_mistake_is_refused(
    inputs: list[Path], tmp_path: Path, line: str
) -> None:
    config = tmp_path / "gate.toml"
    config.write_text(line)
    result = call("ir", *inputs, "--quiet", "--config", config)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


def test_the_names_in_a_settings_file_are_the_options_names() -> None:
    shared = {
        *("corpus_size", "controls", "top_k", "keep_self", "exclude", "chunks", "score_order"),
        *("rank_from_column", "strict", "measure", "min_rel", "tau", "alpha", "n_boot"),
        *("n_trials", "seed", "permute", "marginal", "decision", "correction", "json"),
        *("markdown", "quiet", "ascii"),
    }
    assert set(option_names(ir)) >= shared
    only_beir = {"dataset", "run", "split", "data_dir", "base_url", "offline"}
    assert set(option_names(beir)) >= shared | only_beir
    for command in (ir, beir):
        assert not set(option_names(command)) & {"config", "help", "version", "qrels", "runs"}
        for name, option in option_names(command).items():
            assert f"--{name.replace('_', '-')}" in option.opts


def test_systems_are_named_apart() -> None:
    paths = ["x/a/run.trec.gz", "x/b/run.trec", "other.json", "BM25.v2", "-"]
    assert list(system_names(paths).values()) == ["a/run", "b/run", "other", "BM25.v2", "stdin"]
    # only the ending tells them apart; one file under two names is one system
    paths = ["/x/run.trec", "/x/run.json.gz", "/y/run.trec", "/run.trec", "/x/./run.trec"]
    names = ["x/run.trec", "x/run.json.gz", "y/run", "run", "x/run.trec"]
    assert list(system_names(paths).values()) == names


def test_a_run_that_is_named_twice_is_graded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_qrels(tmp_path / "gold.trec", 40)
    write_run(tmp_path / "runs" / "mine.trec", 40)
    runs = ["runs/mine.trec", "./runs/mine.trec", "runs/", "./runs/*.trec"]
    made = report("ir", "gold.trec", *runs, "--corpus-size", "99")
    assert [one["system"] for one in made["reports"]] == ["mine"]
    assert made["call"]["options"]["runs"] == ["mine.trec"]
    write_dataset(tmp_path / "data", 40)
    made = report("beir", "-d", "data", "-r", runs[0], "-r", runs[1])
    assert [one["system"] for one in made["reports"]] == ["mine"]


def test_runs_that_differ_in_their_ending_alone_are_two_systems_and_show_no_path(
    tmp_path: Path,
) -> None:
    qrels = write_qrels(tmp_path / "gold.trec", 40)
    run = write_run(tmp_path / "mine.trec", 40)
    other = write_run(tmp_path / "mine.run", 40, "blind")
    made = report("ir", qrels, run, other, "--corpus-size", "99")
    assert [one["system"] for one in made["reports"]] == ["mine.trec", "mine.run"]
    assert made["call"]["options"]["runs"] == ["mine.trec", "mine.run"]
    assert str(tmp_path) not in json.dumps(made)
    (tmp_path / "report.json").write_text(json.dumps(made))
    assert call("verify", tmp_path / "report.json", "--data", tmp_path).exit_code == 0


@pytest.mark.parametrize("config", sorted((ROOT / "configs").glob("*.toml")), ids=lambda p: p.name)
def test_each_example_of_a_settings_file_is_understood(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some write a report
    assert read_config(config, option_names(beir).keys())
    result = call("beir", "--config", config, "-d", "nowhere", "--offline", "--quiet")
    assert result.exit_code == 2
    assert [line for line in result.stderr.splitlines() if "nowhere" not in line] == []


def test_a_large_run_is_read_as_deep_as_the_measures_look(
    tmp_path: Path, inputs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / "deep.trec"
    deep.write_text(
        "".join(f"q{i} Q0 d{i}{k} {k} {100 - k} deep\n" for i in range(120) for k in range(30))
    )
    options = [*("ir", inputs[0], deep), "--corpus-size", "5000", "-m", "nDCG@5"]
    whole = report(*options)["reports"][0]
    monkeypatch.setattr("falsify_adapters.cli.reading.LARGE_FILE", 1)
    cut = report(*options)["reports"][0]
    assert cut["nulls"] == whole["nulls"]
    assert cut["provenance"]["run"]["rows_kept"] == 120 * 11
    assert "W-DEPTH" in {note["code"] for note in cut["warnings"]}
    for all_of_it in (["-m", "AP"], ["--strict"]):
        rows = {
            one["provenance"]["run"]["rows_kept"] for one in report(*options, *all_of_it)["reports"]
        }
        assert rows <= {120 * 30}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("seed = 1.5", "seed takes a whole number; found: 1.5"),
        ("n_boot = 1000.0", "n_boot takes a whole number; found: 1000.0"),
        ("corpus_size = true", "corpus_size takes no true or false; found: true"),
        ("tau = true", "tau takes no true or false; found: true"),
        ("json = true", "json takes no true or false; found: true"),
        ("measure = [true]", "measure takes no true or false; found: true"),
        ('quiet = "no"', "quiet takes true or false; found: 'no'"),
        ("controls = 1", "controls takes true or false; found: 1"),
    ],
)
def test_a_configuration_value_is_not_turned_into_another(
    tmp_path: Path, line: str, message: str
) -> None:
    (tmp_path / "gate.toml").write_text(line)
    qrels, run = write_qrels(tmp_path / "q.trec", 40), write_run(tmp_path / "r.trec", 40)
    result = call("ir", qrels, run, "--config", tmp_path / "gate.toml")
    assert result.exit_code == 2
    assert message in result.stderr
