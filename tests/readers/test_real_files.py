"""Real runs and qrels are read as ir-measures reads them, and raise no false alarm."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TextIO

import ir_measures
import pandas as pd
import pytest

from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import as_qrels, as_run
from falsify_adapters.readers import read_qrels, read_run

PAIRS = {
    "nfcorpus": "qrels/test.tsv",
    "scifact": "qrels/test.tsv",
    "dl19": "qrels.trec",
}


def runs_of(folder: Path) -> list[Path]:
    return sorted([*folder.glob("runs/*.trec"), *folder.glob("*.trec.gz")])


def opened(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


@pytest.mark.parametrize("name", PAIRS)
def test_real_runs_are_read_as_ir_measures_reads_them(name: str, data_dir: Path) -> None:
    runs = runs_of(data_dir / name)
    assert len(runs) >= 2
    for path in runs:
        with opened(path) as file:
            expected = as_run(ir_measures.read_trec_run(file))
        pd.testing.assert_frame_equal(read_run(path).frame, expected)


def test_real_qrels_are_read_as_ir_measures_reads_them(data_dir: Path) -> None:
    paths = [data_dir / "dl19" / "qrels.trec", *sorted((data_dir / "qrels").glob("*.qrels"))]
    assert len(paths) >= 6
    for path in paths:
        with path.open(encoding="utf-8") as file:
            expected = as_qrels(ir_measures.read_trec_qrels(file), notes=[])
        pd.testing.assert_frame_equal(read_qrels(path).frame, expected)


@pytest.mark.parametrize("name", PAIRS)
def test_real_pairs_raise_no_false_alarm(name: str, data_dir: Path) -> None:
    qrels = read_qrels(data_dir / name / PAIRS[name])
    assert qrels.notes == ()
    usual = {"W-CORPUS-ESTIMATED", "W-MISSING-QUERIES", "W-EXTRA-QUERIES", "W-NO-RELEVANT"}
    for path in runs_of(data_dir / name):
        run = read_run(path)
        evaluation = Evaluation.create(run.frame, qrels.frame, notes=run.notes)
        assert {note.code for note in evaluation.notes} <= usual, path.name
