"""Every folder of tests/data/cases has its expected outcome: by the library, by falsify-ir."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from falsify_adapters.chunks import best_chunks
from falsify_adapters.cli.ir import main as falsify_ir
from falsify_adapters.errors import FalsifyError, InputError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.gate import run_gate
from falsify_adapters.measures import parse_measure, query_scores
from falsify_adapters.readers import read_exclusions, read_qrels, read_run
from tests.cli_runs import runner

CASES = Path(__file__).parent / "data" / "cases"

#: Checked where the feature is: MTEB predictions and results; two systems (a module of its own).
ELSEWHERE = {
    "44-mteb-predictions-several-subsets-and-splits": "MTEB",
    "46-a-subset-missing-on-one-side": "two systems",
    "47-nan-and-values-above-one-in-result-json": "MTEB",
    "50-identical-runs": "two systems",
    "51-five-queries-all-better-by-the-same-amount": "two systems",
    "60-baseline-and-candidate-answer-different-queries": "two systems",
    "61-baseline-scored-with-other-qrels": "two systems",
}
#: Not one run against one qrels file: each has its own test below.
OWN_TEST = {
    ("25-two-tie-rules-inside-ir-measures", "gate on reordered lines"),
    ("43-subfolders-with-equal-query-ids", "mean of means"),
    ("49-one-query", "n = 1"),
    ("52-all-queries-share-one-relevant-document", "one cluster"),
}
#: What a user says beside the two files.
CREATE_OPTIONS: dict[tuple[int, str], dict[str, Any]] = {(41, "removed"): {"keep_self": False}}
CHUNKS = {(28, "best chunk per document"): r"#\d+$"}

#: The note that must stand beside a doubtful number, and what it must say.
NOTES = {
    (6, "glued lists"): ("W-RANK-DISAGREES", "rank and score disagree in 2 of 2 queries"),
    (7, "rank as third column"): ("W-RANK-AS-SCORE", "third column read as rank"),
    (30, "equal rows"): ("W-DUPLICATE-JUDGEMENTS", "3 duplicate judgements"),
    (34, "empty dict"): ("W-NO-RELEVANT", "q2 has no judgements"),
    (35, "missing"): ("W-MISSING-QUERIES", "2 of 4 judged queries are not in the run (q2, q4)"),
    (40, "mostly unjudged"): (
        "W-UNJUDGED",
        "judged@10 is 0.083333 (1 of 12 documents); 3 of 4 queries have no judged document",
    ),
    (41, "kept"): ("W-SELF-MATCHES", "3 of 3 queries retrieve themselves"),
    (56, "thousands"): ("W-LARGE-GRADES", "largest grade 5000"),
}
#: Notes of the gate rather than of the reader: ties are counted inside a measure's cutoff.
GATE_NOTES = {
    (24, "constant"): ("W-TIES", "2 of 2 queries"),
    (25, "ties"): ("W-TIES", "2 of 3 queries"),
}

#: What a refusal must name.
REFUSALS = {
    (5, "distance run"): ["run.trec", "reverse of the rank column in 3 of 3 queries", "distances"],
    (9, "blanks"): ["qrels_space.trec", "line 1 has 7 columns"],
    (15, "dot zero"): ["none of the", "is judged", "end in .0", "101.0"],
    (22, "nan"): ["run_nan.trec", "'q1'", "'a'", "nan"],
    (22, "inf"): ["run_inf.trec", "'q1'", "'a'", "-inf"],
    (23, "decimal comma"): ["run_comma.trec", "line 1", "'0,95' is not a number"],
    (27, "duplicates"): ["run.trec", "'q1'", "'a'", "2 repeated rows"],
    (28, "no rule"): ["none of the 7 documents of the run is judged", "chunk", "d1#0"],
    (30, "conflicting rows"): ["qrels_conflict.trec", "'q1'", "'a'", "grades 2 and 0"],
    (31, "fractions"): ["qrels_half.tsv", "0.5", "'q1'", "'a'"],
    (37, "empty run"): ["run_empty.trec is empty"],
    (37, "blank lines only"): ["run_blank_lines.trec is empty"],
    (37, "qrels with header only"): ["qrels_header_only.tsv", "empty"],
    (37, "both empty"): ["qrels_header_only.tsv", "empty"],
    (39, "cut ids"): ["none of the", "is judged", "20 characters"],
    (55, "no Q0"): ["run_no_q0.trec", "line 1 has 5 columns"],
    (55, "cut last line"): ["run_cut.trec", "line 4 has 5 fields where 6 are expected"],
    (56, "10^9"): ["qrels_huge.trec", "1000000000"],
}


@dataclass(frozen=True)
class Variant:
    folder: Path
    case: int
    name: str
    content: dict[str, Any] = field(repr=False)

    @property
    def key(self) -> tuple[int, str]:
        return self.case, self.name

    @property
    def outcomes(self) -> set[str]:
        return {self.content["outcome"], *self.content.get("accept_also", [])}

    def files(self, part: str) -> list[Path]:
        return [self.folder / name for name in self.content["files"] if part in name]


def folders() -> list[Path]:
    return sorted(path for path in CASES.iterdir() if path.is_dir())


def variants() -> list[Variant]:
    found = []
    for folder in folders():
        if folder.name in ELSEWHERE:
            continue
        case = json.loads((folder / "expected.json").read_text())
        found += [Variant(folder, case["case"], v["variant"], v) for v in case["variants"]]
    return found


def one_run() -> list[Any]:
    """Give a parameter for each variant that is one run against one qrels file."""
    return [
        pytest.param(variant, id=f"{variant.folder.name[:2]}-{variant.name}")
        for variant in variants()
        if (variant.folder.name, variant.name) not in OWN_TEST
    ]


def run_and_qrels(variant: Variant) -> tuple[Path, Path]:
    (qrels_path,) = variant.files("qrels")
    parts = ("run", "predictions", "baseline", "candidate")
    (run_path,) = [path for part in parts for path in variant.files(part)]
    return run_path, qrels_path


def evaluate(variant: Variant) -> Evaluation:
    run_path, qrels_path = run_and_qrels(variant)
    qrels, run = read_qrels(qrels_path), read_run(run_path)
    frame = run.frame
    if variant.key in CHUNKS:
        frame = best_chunks(frame, CHUNKS[variant.key])
    options = dict(CREATE_OPTIONS.get(variant.key, {}))
    for path in variant.files("excluded"):
        options["exclude"] = read_exclusions(path)
    return Evaluation.create(frame, qrels.frame, notes=(*qrels.notes, *run.notes), **options)


def score(evaluation: Evaluation, measure: str) -> float:
    return float(query_scores(evaluation.run, evaluation.qrels, parse_measure(measure))[0].mean())


def test_the_list_of_cases_checked_elsewhere_is_exact() -> None:
    numbers = {int(folder.name[:2]) for folder in folders()}
    assert len(folders()) == 52
    assert {int(name[:2]) for name in ELSEWHERE} == {44, 46, 47, 50, 51, 60, 61}
    assert set(ELSEWHERE) <= {folder.name for folder in folders()}
    assert numbers >= {int(name[:2]) for name, _ in OWN_TEST}
    assert {(v.folder.name, v.name) for v in variants()} >= OWN_TEST


def test_the_tables_of_this_module_name_existing_variants() -> None:
    keys = {variant.key for variant in variants()}
    assert keys >= {*NOTES, *REFUSALS, *CREATE_OPTIONS, *CHUNKS, *GATE_NOTES}
    warned = {v.key for v in variants() if v.content["outcome"] == "WARN"}
    assert warned <= {*NOTES, *GATE_NOTES, (52, "one cluster")}
    refused = {v.key for v in variants() if v.content["outcome"] == "REFUSE"}
    assert refused - set(REFUSALS) == {(20, "UTF-16 run")}, "read right, which is accepted too"


def expected_scores(variant: Variant) -> dict[str, float]:
    expect = variant.content["expect"]
    if variant.key == (20, "UTF-16 run"):
        return {"nDCG@10": expect["nDCG@10 if decoded"]}
    # "nDCG@10 as given" and the like describe other readings
    return {name: value for name, value in expect.items() if " " not in name}


@pytest.mark.parametrize("variant", one_run())
def test_case_by_the_library(variant: Variant) -> None:
    try:
        evaluation = evaluate(variant)
    except FalsifyError as error:
        assert "REFUSE" in variant.outcomes, error
        assert isinstance(error, InputError)
        for words in REFUSALS[variant.key]:
            assert words in str(error)
        return
    assert variant.key not in REFUSALS
    assert variant.outcomes & {"SCORE", "WARN", "INCONCLUSIVE"}
    expected = expected_scores(variant)
    assert expected
    for measure, value in expected.items():
        assert score(evaluation, measure) == pytest.approx(value, abs=1e-6), measure
        for wrong in variant.content.get("must_not", {}).get(measure, []):
            assert not math.isclose(score(evaluation, measure), float(wrong), abs_tol=1e-6)
    if "per_query_nDCG@10" in variant.content:
        (values,) = query_scores(evaluation.run, evaluation.qrels, parse_measure("nDCG@10"))
        found = dict(zip(evaluation.query_ids, values, strict=True))
        assert found == pytest.approx(variant.content["per_query_nDCG@10"], abs=1e-6)
    if variant.key in NOTES:
        code, words = NOTES[variant.key]
        assert any(note.code == code and words in note.message for note in evaluation.notes)


@pytest.mark.parametrize("variant", one_run())
def test_case_by_the_command(variant: Variant) -> None:
    run_path, qrels_path = run_and_qrels(variant)
    arguments = [str(qrels_path), str(run_path), "--json", "-", "--n-boot", "200"]
    arguments += ["--n-trials", "100", "--corpus-size", "1000"]
    for measure in expected_scores(variant) or {"nDCG@10": 0.0}:
        arguments += ["-m", measure]
    if not CREATE_OPTIONS.get(variant.key, {}).get("keep_self", True):
        arguments.append("--drop-self")
    if variant.key in CHUNKS:
        arguments += ["--chunks", CHUNKS[variant.key]]
    for path in variant.files("excluded"):
        arguments += ["--exclude", str(path)]
    result = runner().invoke(falsify_ir, arguments)
    assert "Traceback" not in result.output
    document = json.loads(result.stdout)
    if variant.key in REFUSALS:
        assert "REFUSE" in variant.outcomes
        assert result.exit_code == 2
        assert document["reports"] == []
        for words in REFUSALS[variant.key]:
            assert words in result.stderr
        return
    assert result.exit_code in (0, 1, 3), result.stderr
    scores = {report["measure"]: report["score"] for report in document["reports"]}
    assert scores == pytest.approx(expected_scores(variant), abs=1e-6)
    if variant.key in NOTES | GATE_NOTES:
        code, words = (NOTES | GATE_NOTES)[variant.key]
        warned = [w for report in document["reports"] for w in report["warnings"]]
        assert any(w["code"] == code and words in w["message"] for w in warned)
        assert f"{code}: " in result.stderr


@pytest.mark.parametrize("variant", one_run())
def test_strict_refuses_what_has_a_warning(variant: Variant) -> None:
    if variant.key not in NOTES:
        return
    run_path, qrels_path = run_and_qrels(variant)
    arguments = [str(qrels_path), str(run_path), "--strict", "--corpus-size", "1000"]
    result = runner().invoke(falsify_ir, [*arguments, "--n-boot", "200", "--n-trials", "100"])
    assert result.exit_code == 2
    assert NOTES[variant.key][0] in result.stderr


def test_25_order_of_lines_does_not_matter() -> None:
    folder = CASES / "25-two-tie-rules-inside-ir-measures"
    first, second = (read_run(folder / name).frame for name in ("run.trec", "run_reordered.trec"))
    pd.testing.assert_frame_equal(first, second)
    qrels = read_qrels(folder / "qrels.trec").frame
    reports = [run_gate(Evaluation.create(run, qrels), "nDCG@10") for run in (first, second)]
    assert {report.verdict for report in reports} == {"UNDER-NS"}
    assert reports[0].score == reports[1].score


def test_43_sub_folders_are_scored_apart() -> None:
    folder = CASES / "43-subfolders-with-equal-query-ids"
    (variant,) = json.loads((folder / "expected.json").read_text())["variants"]
    scores = {}
    for forum in ("android", "tex", "unix"):
        qrels = read_qrels(folder / "cqadupstack" / forum / "qrels" / "test.tsv")
        run = read_run(folder / "runs" / f"{forum}.trec")
        scores[forum] = score(Evaluation.create(run.frame, qrels.frame), "nDCG@10")
        expected = variant["expect"][f"nDCG@10 {forum}"]
        assert scores[forum] == pytest.approx(expected, abs=1e-6)
    mean = np.mean(list(scores.values()))
    assert mean == pytest.approx(variant["expect"]["nDCG@10 (mean of 3)"], abs=1e-6)


@pytest.mark.parametrize("name", ["49-one-query", "52-all-queries-share-one-relevant-document"])
def test_49_and_52_are_never_decided(name: str) -> None:
    folder = CASES / name
    (variant,) = json.loads((folder / "expected.json").read_text())["variants"]
    qrels = read_qrels(folder / "qrels.trec").frame
    for system in ("baseline", "candidate"):
        run = read_run(folder / f"{system}.trec").frame
        evaluation = Evaluation.create(run, qrels, corpus_size=1000)
        expected = variant["expect"][f"{system} nDCG@10"]
        assert score(evaluation, "nDCG@10") == pytest.approx(expected, abs=1e-6)
        report = run_gate(evaluation, "nDCG@10")
        assert report.verdict == "UNDER-NS"
        codes = {note.code: note.message for note in report.warnings}
        said = codes["W-BENCHMARK-DEGENERATE"]
        assert re.search(r"(1 query has|\d+ queries share) 1 relevant document:", said)


def test_62_scoring_in_either_order_and_twice_gives_the_same_numbers() -> None:
    folder = CASES / "62-second-run-scored-with-a-used-up-iterator"
    qrels = read_qrels(folder / "qrels.trec").frame
    runs = {name: read_run(folder / f"{name}.trec").frame for name in ("baseline", "candidate")}
    orders = (["baseline", "candidate"], ["candidate", "baseline", "candidate", "baseline"])
    seen: dict[str, set[float]] = {"baseline": set(), "candidate": set()}
    for order in orders:
        for name in order:
            seen[name].add(score(Evaluation.create(runs[name], qrels), "nDCG@10"))
    assert {name: len(values) for name, values in seen.items()} == {"baseline": 1, "candidate": 1}


def test_05_names_the_switches_and_follows_them() -> None:
    folder = CASES / "05-distances-instead-of-similarities"
    qrels = read_qrels(folder / "qrels.trec").frame
    with pytest.raises(InputError, match=r"--score-order ascending.*--rank-from-column"):
        read_run(folder / "run.trec")
    readings = {
        0.608119: {"score_order": "descending"},
        0.876977: {"score_order": "ascending"},
    }
    for expected, options in readings.items():
        run = read_run(folder / "run.trec", **options)  # type: ignore[arg-type]
        found = score(Evaluation.create(run.frame, qrels), "nDCG@10")
        assert found == pytest.approx(expected, abs=1e-6)
    by_rank = read_run(folder / "run.trec", rank_from_column=True)
    found = score(Evaluation.create(by_rank.frame, qrels), "nDCG@10")
    assert found == pytest.approx(0.876977, abs=1e-6)
