"""The cases of tests/data/cases that compare two systems: by the library, and by falsify-ir."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from falsify_adapters.errors import InputError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.measures import parse_measure, query_scores
from falsify_adapters.readers import read_qrels, read_run
from falsify_adapters.two_systems import Comparison, compare_reported, compare_systems
from tests.cli_runs import call
from tests.test_cases import CASES, ELSEWHERE

#: Outcomes: the verdict, and what must be said.
RUNS = {
    "50-identical-runs": ("NO DIFFERENCE", "score the same on every query"),
    "51-five-queries-all-better-by-the-same-amount": ("UNDER-NS", "too few queries to tell"),
    "52-all-queries-share-one-relevant-document": ("UNDER-NS", "12 queries share 1 relevant"),
    "60-baseline-and-candidate-answer-different-queries": ("UNDER-NS", "candidate lacks q5, q6"),
}
SUBSETS, STORED = "46-a-subset-missing-on-one-side", "61-baseline-scored-with-other-qrels"


def variant(name: str) -> dict[str, Any]:
    (found,) = json.loads((CASES / name / "expected.json").read_text())["variants"]
    return found


def comparison(name: str) -> Comparison:
    folder = CASES / name
    qrels = read_qrels(folder / "qrels.trec").frame
    baseline, candidate = (
        Evaluation.create(
            read_run(folder / f"{system}.trec").frame, qrels, corpus_size=1000, system=system
        )
        for system in ("baseline", "candidate")
    )
    (found,) = compare_systems(baseline, candidate)
    return found


def test_every_case_about_two_systems_is_here() -> None:
    listed = {name for name, where in ELSEWHERE.items() if where == "two systems"}
    assert listed <= {*RUNS, SUBSETS, STORED}


@pytest.mark.parametrize("name", RUNS)
def test_case_by_the_library(name: str) -> None:
    expected, found = variant(name), comparison(name)
    expect, must_not = expected["expect"], expected["must_not"]
    assert found.baseline_score == pytest.approx(expect["baseline nDCG@10"], abs=1e-6)
    assert found.candidate_score == pytest.approx(expect["candidate nDCG@10"], abs=1e-6)
    assert found.difference == pytest.approx(expect["difference"], abs=1e-6)
    (p,) = [value for key, value in expect.items() if key.startswith("exact sign-flip p")]
    assert found.p_value == pytest.approx(p, abs=1e-6)
    assert found.exact
    for wrong in must_not.get("difference", []):
        assert found.difference != pytest.approx(wrong, abs=1e-4)
    verdict, words = RUNS[name]
    assert found.verdict == verdict
    said = [found.reason, *(note.message for note in found.warnings)]
    assert any(words in text for text in said), said
    assert "NaN" not in json.dumps(found.to_dict(), allow_nan=False)


@pytest.mark.parametrize("name", RUNS)
def test_case_by_the_command(name: str) -> None:
    folder = CASES / name
    arguments = [folder / "qrels.trec", folder / "candidate.trec", "--corpus-size", "1000"]
    result = call("ir", *arguments, "--baseline", folder / "baseline.trec", "--json", "-")
    assert result.exit_code == 3, result.stderr
    document = json.loads(result.stdout)
    kinds = [(report["kind"], report["role"]) for report in document["reports"]]
    assert kinds == [("gate", "run"), ("gate", "baseline"), ("comparison", "comparison")]
    found = document["reports"][-1]
    verdict, words = RUNS[name]
    assert found["verdict"] == verdict
    assert words in json.dumps(found)
    assert not any(report["verdict"] == "PASS" for report in document["reports"])
    screen = call("ir", *arguments, "--baseline", folder / "baseline.trec").stdout
    assert verdict in screen
    assert "compared with baseline" in screen


def test_46_a_missing_subset_is_refused_or_left_out_on_both_sides() -> None:
    expect = variant(SUBSETS)["expect"]
    old, new = (
        {
            row["hf_subset"]: row["main_score"]
            for row in json.loads((CASES / SUBSETS / name).read_text())["scores"]["test"]
        }
        for name in ("baseline.json", "candidate.json")
    )
    with pytest.raises(InputError, match=variant(SUBSETS)["must_say"]):
        compare_reported(old, new)
    common = compare_reported(old, new, common_only=True)
    assert common.baseline == pytest.approx(expect["baseline mean over en, de"])
    assert common.candidate == pytest.approx(expect["candidate mean over en, de"])
    assert common.difference == pytest.approx(expect["difference"])
    assert variant(SUBSETS)["must_say"] in common.notes[0].message


def test_61_a_stored_score_of_other_qrels_is_refused(tmp_path: Path) -> None:
    folder, expected = CASES / STORED, variant(STORED)
    run, stored = folder / "run.trec", folder / "stored_baseline.json"
    for version in ("v1", "v2"):
        qrels = read_qrels(folder / f"qrels_{version}.trec").frame
        one = Evaluation.create(read_run(run).frame, qrels, corpus_size=1000)
        (scores,) = query_scores(one.run, one.qrels, parse_measure("nDCG@10"))
        assert scores.mean() == pytest.approx(expected["expect"][f"nDCG@10 on {version}"], abs=1e-6)
        (found,) = compare_systems(one, one)
        assert found.difference == expected["expect"]["difference of the runs on either version"]
    arguments = [folder / "qrels_v2.trec", run, "--corpus-size", "1000", "--quiet"]
    result = call("ir", *arguments, "--baseline", stored)
    assert result.exit_code == 2
    assert expected["must_say"] in result.stderr
    assert "qrels_v1.trec, here qrels_v2.trec" in result.stderr
    # with the right qrels it is still no run, and this package's own reports know their qrels
    first = [folder / "qrels_v1.trec", *arguments[1:]]
    assert "holds a score and no run" in call("ir", *first, "--baseline", stored).stderr
    report = tmp_path / "report.json"
    call("ir", *first, "--json", report)
    assert expected["must_say"] in call("ir", *arguments, "--baseline", report).stderr
    assert "holds a score and no run" in call("ir", *first, "--baseline", report).stderr


def test_61_runs_on_two_versions_are_not_compared() -> None:
    folder = CASES / STORED
    run = read_run(folder / "run.trec").frame
    old, new = (
        Evaluation.create(run, read_qrels(folder / f"qrels_{v}.trec").frame, corpus_size=1000)
        for v in ("v1", "v2")
    )
    with pytest.raises(InputError, match="baseline was scored with other qrels"):
        compare_systems(old, new)
