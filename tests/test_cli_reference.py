"""Every figure of the reference, computed elsewhere by plain loops, through both commands.

``reference.json`` holds the expected scores and null means of seven runs and six measures, from
loops over ir-measures: exact for A, B and C, 60 trials with their standard error for D.
"""

from __future__ import annotations

import json
from collections import defaultdict
from math import hypot
from pathlib import Path
from typing import Any

import pytest

from tests.cli_runs import report

CORPUS_SIZES = {"nfcorpus": 3633, "scifact": 5183, "dl19": 8841823}
MEASURES = ("nDCG@10", "R@10", "P@10", "RR@10", "AP@100", "Success@1")
#: Half a unit of the last digit that the reference gives.
ROUNDING = 5.1e-9


@pytest.fixture(scope="module")
def reference(data_dir: Path) -> dict[str, dict[str, Any]]:
    values = json.loads((data_dir / "reference.json").read_text("utf-8"))["values"]
    assert {key.split("/")[0] for key in values} == set(CORPUS_SIZES)
    assert all(set(of_run) == set(MEASURES) for of_run in values.values())
    return values


def runs_of(name: str, reference: dict[str, dict[str, Any]]) -> list[str]:
    return [key for key in reference if key.startswith(f"{name}/")]


def assert_reproduced(reports: list[dict[str, Any]], expected: dict[str, dict[str, Any]]) -> None:
    found = defaultdict(dict)
    for one in reports:
        found[one["system"]][one["measure"]] = one
    assert sorted(found) == sorted(Path(key).name.split(".")[0] for key in expected)
    for key, of_run in expected.items():
        for measure, values in of_run.items():
            one = found[Path(key).name.split(".")[0]][measure]
            assert one["n_queries"] == values["n_queries"]
            figures = {"score": one["score"]} | {k: one["nulls"][k]["mean"] for k in "ABC"}
            for name, figure in figures.items():
                assert figure == pytest.approx(values[name], rel=1e-6, abs=ROUNDING), (key, name)
            null = one["nulls"]["D"]
            error = hypot(values["D_se"], null["mean_error"])
            assert abs(null["mean"] - values["D"]) < 4 * error, (key, measure)


@pytest.mark.parametrize("name", ["nfcorpus", "scifact"])
def test_falsify_beir_reproduces_the_reference(
    name: str, data_dir: Path, reference: dict[str, dict[str, Any]]
) -> None:
    keys = runs_of(name, reference)
    arguments = ["--dataset", name, "--data-dir", data_dir, "--offline"]
    arguments += [part for key in keys for part in ("--run", data_dir / key)]
    arguments += [part for measure in MEASURES for part in ("--measure", measure)]
    document = report("beir", *arguments)
    assert {one["corpus_size"] for one in document["reports"]} == {CORPUS_SIZES[name]}
    assert_reproduced(document["reports"], {key: reference[key] for key in keys})


@pytest.mark.parametrize("name", sorted(CORPUS_SIZES))
def test_falsify_ir_reproduces_the_reference(
    name: str, data_dir: Path, reference: dict[str, dict[str, Any]]
) -> None:
    keys = runs_of(name, reference)
    qrels = data_dir / name / ("qrels.trec" if name == "dl19" else "qrels/test.tsv")
    arguments = [qrels, *(data_dir / key for key in keys)]
    arguments += ["--corpus-size", str(CORPUS_SIZES[name])]
    arguments += [part for measure in MEASURES for part in ("--measure", measure)]
    assert_reproduced(report("ir", *arguments)["reports"], {key: reference[key] for key in keys})


def test_the_figures_that_the_issue_names(data_dir: Path) -> None:
    run = data_dir / "nfcorpus" / "runs" / "bm25.trec"
    arguments = ["--dataset", "nfcorpus", "--data-dir", data_dir, "--run", run]
    (found,) = report("beir", *arguments, status=0)["reports"]
    assert round(found["score"], 6) == 0.317710
    assert round(found["score_answered"], 5) == 0.33318
    means = {name: null["mean"] for name, null in found["nulls"].items()}
    assert [round(means[name], 6) for name in "ABC"] == [0.009947, 0.010058, 0.009589]
    assert abs(means["D"] - 0.0116) < 0.0005
    assert found["verdict"] == "PASS"


@pytest.mark.parametrize("name", ["nfcorpus", "scifact"])
def test_the_controls_of_real_collections_are_judged_rightly(name: str, data_dir: Path) -> None:
    run = data_dir / name / "runs" / "bm25.trec"
    arguments = ["--dataset", name, "--data-dir", data_dir, "--run", run, "--controls"]
    document = report("beir", *arguments, status=0)
    assert {found["system"]: found["verdict"] for found in document["reports"]} == {
        "bm25": "PASS",
        "popularity": "FAIL",
        "constant": "FAIL",
        "random": "FAIL",
        "oracle": "PASS",
    }
