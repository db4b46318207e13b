"""Means per model are MTEB's own; what only bad scores can enter stays out of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from falsify_adapters.adapters.mteb import MtebFolder
from falsify_adapters.certificate import Certificate, Certifier, failed_certificate
from falsify_adapters.report.models import ModelRow, model_rows
from falsify_adapters.report.outcome import Outcome
from falsify_adapters.report.scores import markdown, tables
from tests.report_factory import gate_report

CERTIFIER = Certifier({f"q{i}": {f"d{i}": 1} for i in range(40)}, corpus_size=1000)


def certificate(
    task: str, score: float, model: str = "a/b", split: str = "test", **names: Any
) -> Certificate:
    version = names.pop("version", "2.0.0")
    names = {"revision": "r1", "subset": "default"} | names
    return CERTIFIER.certify(
        score, system=model, model=model, task=task, benchmark=task, split=split,
        provenance={"mteb_version": version}, **names,
    )  # fmt: skip


def usual(_task: str) -> tuple[str, ...]:
    return ("test",)


def rows(*reports: Any, by_measure: bool = False) -> list[ModelRow]:
    return model_rows(reports, usual, by_measure=by_measure)


def test_the_mean_is_over_tasks_of_the_mean_over_parts() -> None:
    [row] = rows(
        certificate("One", 0.4, subset="en"),
        certificate("One", 0.6, subset="de"),
        certificate("Two", 0.9),
    )
    assert row.mean_task == pytest.approx((0.5 + 0.9) / 2)
    assert (row.n_tasks, row.n_graded) == (2, 3)


def test_splits_that_do_not_count_are_left_out() -> None:
    [row] = rows(certificate("One", 0.4), certificate("One", 0.8, split="train"))
    assert (row.mean_task, row.n_graded) == (0.4, 1)
    [row] = rows(certificate("One", 0.8, split="train"))
    assert row.mean_task == 0.8


def test_models_on_different_tasks_are_compared_on_common_ones() -> None:
    first, second = rows(
        certificate("One", 0.4, "a/1"),
        certificate("Two", 0.8, "a/1"),
        certificate("Two", 0.6, "a/2"),
    )
    assert first.mean_task == pytest.approx(0.6)
    assert (first.mean_common, second.mean_common, first.n_common) == (0.8, 0.6, 1)


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        ({"revision": "external", "version": ""}, {"revision": "r1"}),
        ({"revision": "external"}, {"revision": "r1"}),
        ({"revision": "r9", "version": "1.9.0"}, {"revision": "r1", "version": "1.12.0"}),
        ({"revision": "r9", "version": "2.1-2.3"}, {"revision": "r1", "version": "2.4.0"}),
    ],
)
def test_of_several_revisions_one_counts(worse: dict[str, Any], better: dict[str, Any]) -> None:
    for order in (1, -1):
        both = [certificate("One", 0.2, **worse), certificate("One", 0.7, **better)][::order]
        [row] = rows(*both)
        assert (row.mean_task, row.n_graded) == (0.7, 1)


def test_scores_that_fail_without_qrels_enter_no_mean() -> None:
    bad = failed_certificate("nDCG@10", 0.01, system="a/b", task="Three", split="test")
    [row] = rows(certificate("One", 0.4), bad)
    assert (row.mean_task, row.verdicts) == (0.4, {"CERTIFIED": 1})
    outcome = Outcome([certificate("One", 0.4), bad, row])
    assert "Not in this table: 1 score below tau" in markdown(outcome, str)


def test_rankings_count_before_bare_scores_and_controls_never() -> None:
    names = {"task": "One", "split": "test", "subset": "default", "model": "a/b"}
    gate = gate_report("a/b", score=0.3, **names)
    control = gate_report("random", score=0.0, role="control", **names)
    [row] = rows(certificate("One", 0.9), gate, control)
    assert (row.mean_task, row.verdicts) == (0.3, {"PASS": 1})


def test_measures_are_kept_apart_where_they_were_asked_for() -> None:
    other = Certifier({f"q{i}": {f"d{i}": 1} for i in range(40)}, "R@10", corpus_size=1000)
    report = other.certify(0.8, system="a/b", task="One", split="test", subset="default")
    found = rows(certificate("One", 0.4), report, by_measure=True)
    assert {(row.measure, row.mean_task) for row in found} == {("nDCG@10", 0.4), ("R@10", 0.8)}


def test_names_cannot_leave_their_cell() -> None:
    from falsify_adapters.report.markdown import escape

    evil = certificate("One", 0.5, "a|b <script>")
    text = markdown(Outcome([evil, *rows(evil)]), escape)
    assert "<script>" not in text
    assert "a\\|b &lt;script&gt;" in text


def test_a_long_list_is_cut_on_a_terminal_and_said_so() -> None:
    reports = [certificate("One", 0.5, f"a/{i}") for i in range(30)]
    shown = list(tables(Outcome(reports), most_rows=10))
    assert sum(len(table.rows) for table in shown) == 10
    assert "20 more are in the files" in shown[-1].heading
    assert sum(len(table.rows) for table in tables(Outcome(reports))) == 30


def test_means_equal_mtebs_own(tmp_path: Path) -> None:
    results = pytest.importorskip("mteb.results", reason="the extra mteb-core is not installed")
    content = {
        "dataset_revision": "1",
        "task_name": "MintakaRetrieval",
        "mteb_version": "2.0.0",
        "evaluation_time": 1.0,
        "scores": {
            "test": [
                {"ndcg_at_10": s, "main_score": s, "hf_subset": subset, "languages": ["deu-Latn"]}
                for subset, s in (("de", 0.31), ("fr", 0.47), ("it", 0.55))
            ]
        },
    }
    path = tmp_path / "MintakaRetrieval.json"
    path.write_text(json.dumps(content))
    expected = results.TaskResult.from_disk(path).get_score()
    folder = MtebFolder(path)
    [row] = rows(
        *(
            certificate("MintakaRetrieval", folder.value(r, "ndcg_at_10") or 0.0, subset=r.subset)
            for r in folder.reported
        )
    )
    assert row.mean_task == pytest.approx(expected)
