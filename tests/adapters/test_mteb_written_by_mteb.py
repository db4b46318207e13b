"""What mteb itself wrote is graded, and every score is mteb's own to five decimals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from falsify_adapters.adapters.mteb import MtebFolder, load_mteb
from falsify_adapters.adapters.mteb.benchmarks import Benchmarks
from falsify_adapters.adapters.mteb.grade import Grader, Settings
from falsify_adapters.adapters.mteb.load import Loaded
from falsify_adapters.adapters.mteb.results import measure_of
from falsify_adapters.certificate import Certificate
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.gate import run_gate
from falsify_adapters.measures import parse_measure, query_scores
from falsify_adapters.reproduce import Reproduction
from falsify_adapters.results import GateConfig, GateReport
from tests.mteb_world import World, make_world

pytest.importorskip("mteb", reason="the extra mteb-core is not installed")

#: MTEB rounds to 5 decimals; a hair more for values that end in a 5.
ROUNDING = 5.0001e-6
KEYS = (
    *("ndcg_at_10", "ndcg_at_1", "map_at_100", "recall_at_10", "precision_at_5"),
    *("hit_rate_at_3", "mrr_at_10", "accuracy"),
)
FAST = GateConfig(n_boot=200, n_trials=100)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return make_world(tmp_path_factory.mktemp("mteb"))


def key_of(evaluation: Evaluation) -> tuple[Any, ...]:
    return evaluation.model, evaluation.task, evaluation.split, evaluation.subset


def score_answered(evaluation: Evaluation, measure: str) -> float:
    (scores,) = query_scores(evaluation.run, evaluation.qrels, parse_measure(measure))
    answered = np.isin(evaluation.query_ids, evaluation.run["query_id"].cat.categories)
    return float(scores[answered].mean())


def test_every_model_task_split_and_subset_becomes_an_evaluation(world: World) -> None:
    evaluations = list(load_mteb(world.predictions, tasks=world.tasks.values()))
    assert {key_of(evaluation) for evaluation in evaluations} == set(world.scores)
    assert len(evaluations) == len(world.scores)


def test_every_score_is_mtebs_own(world: World) -> None:
    for evaluation in load_mteb(world.predictions, tasks=world.tasks.values()):
        # mteb compares scores in single precision, except for MRR, and ours in double
        keys = ("mrr_at_10",) if evaluation.model == "org/coarse" else KEYS
        for key in keys:
            expected = world.scores[key_of(evaluation)][key]
            found = score_answered(evaluation, measure_of(key) or "")
            assert found == pytest.approx(expected, abs=ROUNDING), (key_of(evaluation), key)


def test_the_depth_changes_no_score(world: World) -> None:
    deep = load_mteb(world.predictions, tasks=world.tasks.values())
    shallow = load_mteb(world.predictions, tasks=world.tasks.values(), depth=10)
    for one, other in zip(deep, shallow, strict=True):
        assert len(other.run) < len(one.run) or one.model == "org/constant"
        for measure in ("nDCG@10", "R@10", "RR@10"):
            assert score_answered(one, measure) == score_answered(other, measure)


def test_the_corpus_is_counted_and_self_matches_are_told(world: World) -> None:
    for evaluation in load_mteb(world.predictions, tasks=world.tasks.values(), task="ToySelf"):
        assert (evaluation.corpus_size, evaluation.corpus_size_source) == (160, "counted")
        assert "W-SELF-MATCHES" in {note.code for note in evaluation.notes}
        assert evaluation.provenance["self_matches"] == "dropped"


def test_keep_self_overrides_the_task(world: World) -> None:
    names = {"task": "ToySelf", "model": "org/good", "split": "test"}
    own = list(world.tasks.values())
    [dropped] = load_mteb(world.predictions, tasks=own, **names)
    [kept] = load_mteb(world.predictions, tasks=own, keep_self=True, **names)
    assert score_answered(kept, "nDCG@10") < score_answered(dropped, "nDCG@10")


def test_the_first_result_is_left_out_where_the_task_does_it(world: World) -> None:
    for evaluation in load_mteb(world.predictions, tasks=world.tasks.values(), task="ToyFirst"):
        assert evaluation.provenance["first_result"] == "dropped"
        assert "W-FIRST-RESULT" in {note.code for note in evaluation.notes}


@pytest.mark.parametrize("name", ["model", "task", "split", "subset"])
def test_what_is_not_wanted_is_not_read(world: World, name: str) -> None:
    wanted = {"model": "good", "task": "Toy_Words", "split": "test", "subset": "de"}
    found = list(load_mteb(world.predictions, tasks=world.tasks.values(), **{name: wanted[name]}))
    place = ("model", "task", "split", "subset").index(name)
    expected = [key for key in world.scores if str(key[place]).endswith(wanted[name])]
    assert {key_of(evaluation) for evaluation in found} == set(expected)


def rewritten(world: World, folder: Path, version: str) -> Path:
    """Write the predictions of one model again, in the shape of an older version."""
    for path in sorted((world.predictions / "good").glob("*_predictions.json")):
        task = path.name.removesuffix("_predictions.json")
        content = json.loads(path.read_text())
        del content["mteb_model_meta"]
        for subset, splits in content.items():
            single = subset == "default"
            name = {
                "1.1": f"{task}_qrels" if single else f"{task}_{subset}_qrels",
                "1.8": f"{task}_predictions" if single else f"{task}_{subset}_predictions",
                "1.11": f"{task}_{subset}_predictions",
                "by split": f"{task}_{subset}_predictions",
            }[version]
            folder.mkdir(parents=True, exist_ok=True)
            # before 2.0 each split overwrites the one before it
            written = splits if version == "by split" else splits["test"]
            (folder / f"{name}.json").write_text(json.dumps(written))
    return folder


@pytest.mark.parametrize("version", ["1.1", "1.8", "1.11", "by split"])
def test_older_layouts_grade_the_same(world: World, tmp_path: Path, version: str) -> None:
    folder = rewritten(world, tmp_path / "org__good" / "r1", version)
    splits = {"dev", "test"} if version == "by split" else {"test"}
    evaluations = list(load_mteb(folder, tasks=world.tasks.values(), split=tuple(splits)))
    expected = {key for key in world.scores if key[0] == "org/good" and key[2] in splits}
    assert {key_of(evaluation) for evaluation in evaluations} == expected
    for evaluation in evaluations:
        wanted = world.scores[key_of(evaluation)]["ndcg_at_10"]
        assert score_answered(evaluation, "nDCG@10") == pytest.approx(wanted, abs=ROUNDING)


def test_the_split_of_a_flat_file_is_found_by_its_queries(tmp_path: Path) -> None:
    (tmp_path / "Toy_predictions.json").write_text('{"t1": {"d1": 1.0}, "t2": {"d2": 1.0}}')
    qrels = tmp_path / "qrels"
    qrels.mkdir()
    (qrels / "toy-test.qrels").write_text("t1 0 d1 1\nt2 0 d2 1\n")
    (qrels / "toy-dev.qrels").write_text("t9 0 d1 1\n")
    [evaluation] = load_mteb(tmp_path / "Toy_predictions.json", qrels=qrels)
    assert evaluation.split == "test"
    assert "W-SPLIT-GUESSED" in {note.code for note in evaluation.notes}


def graded(world: World, *paths: Path, **settings: Any) -> list[Any]:
    grader = Grader(
        MtebFolder(paths), Settings(config=FAST, **settings), tasks=world.tasks.values()
    )
    return list(grader.grade_all())


def test_reported_scores_are_reproduced_or_explained(world: World) -> None:
    items = graded(world, world.predictions, world.results)
    checks = [item for item in items if isinstance(item, Reproduction)]
    assert len(checks) == len(world.scores)
    for check in checks:
        expected = world.scores[check.model, check.task, check.split, check.subset]
        main = world.tasks[check.task].metadata.main_score
        assert check.measure == measure_of(main)
        assert check.reported == pytest.approx(expected[main], abs=1e-6)
        if check.model in ("org/good", "org/constant"):
            assert check.status == "equal", check
        elif check.model == "org/holes":
            assert check.status == "explained"
            assert check.conventions == ("the mean over answered queries only",)
    coarse = [check for check in checks if check.model == "org/coarse"]
    explained = [check for check in coarse if check.status == "explained"]
    assert explained, "the scores should differ in single precision"
    assert {check.conventions for check in explained} == {("scores compared in single precision",)}
    assert not [check for check in coarse if check.status == "not reproduced"]


def test_a_changed_score_is_not_reproduced(world: World, tmp_path: Path) -> None:
    place = tmp_path / "org__good" / "r1"
    place.mkdir(parents=True)
    content = json.loads((world.results / "org__good" / "r1" / "ToySelf.json").read_text())
    for row in content["scores"]["test"]:
        row["ndcg_at_10"] = row["main_score"] = 0.12345
    (place / "ToySelf.json").write_text(json.dumps(content))
    items = graded(world, world.predictions / "good", tmp_path)
    [report] = [
        item
        for item in items
        if isinstance(item, GateReport) and (item.task, item.split) == ("ToySelf", "test")
    ]
    assert "W-NOT-REPRODUCED" in {note.code for note in report.warnings}
    assert report.provenance["reported"]["score"] == 0.12345


def test_a_wrong_rule_for_self_matches_is_named(world: World) -> None:
    items = graded(world, world.predictions / "good", world.results, keep_self=True)
    checks = [item for item in items if isinstance(item, Reproduction) and item.task == "ToySelf"]
    assert {check.conventions for check in checks} == {
        ("documents that are the query itself left out",)
    }


def test_the_constant_scorer_fails_and_the_good_model_passes(world: World) -> None:
    reports = [r for r in graded(world, world.predictions) if isinstance(r, GateReport)]
    assert len(reports) == len(world.scores)
    by_model: dict[str, set[str]] = {}
    for report in reports:
        by_model.setdefault(report.model or "", set()).add(report.verdict)
    assert by_model["org/constant"] <= {"FAIL", "UNDER-NS"}
    assert by_model["org/good"] == {"PASS"}


def test_a_certificate_never_says_more_than_the_gate(world: World) -> None:
    """What a score alone proves, the rankings prove too."""
    items = graded(world, world.results)
    certificates = {
        (c.model, c.task, c.split, c.subset): c for c in items if isinstance(c, Certificate)
    }
    assert certificates.keys() == world.scores.keys()
    for evaluation in load_mteb(world.predictions, tasks=world.tasks.values()):
        if evaluation.model in ("org/holes", "org/coarse"):
            continue  # mteb's score is not the one that the gate compares
        certificate = certificates[key_of(evaluation)]
        report = run_gate(evaluation, certificate.measure, FAST)
        for name, bound in certificate.bounds.items():
            error = 4 * report.nulls[name].mean_error + 1e-5
            assert report.nulls[name].delta >= bound.delta - error
        if certificate.verdict == "CERTIFIED":
            assert report.definition_1
    assert {c.verdict for c in certificates.values()} == {"CERTIFIED", "FAIL"}


def test_qrels_from_files_and_from_tasks_grade_the_same(world: World, tmp_path: Path) -> None:
    folder = world.write_qrels(tmp_path / "qrels")
    files = load_mteb(world.predictions, qrels=folder, keep_self=False)
    tasks = load_mteb(world.predictions, tasks=world.tasks.values(), keep_self=False)
    by_key = {key_of(evaluation): evaluation for evaluation in tasks}
    for evaluation in files:
        other = by_key[key_of(evaluation)]
        if evaluation.task != "ToyFirst":  # unknown to mteb: nothing says to skip a result
            assert evaluation.run.equals(other.run)
        assert evaluation.qrels.equals(other.qrels)


def test_a_task_knows_which_parts_it_has(world: World) -> None:
    benchmarks = Benchmarks(tasks=world.tasks.values())
    assert benchmarks.splits("Toy_Words", "en") == ["dev", "test"]
    assert benchmarks.find("Toy_Words", "train", "en") is None
    assert benchmarks.default_splits("Toy_Words") == ("dev", "test")


def test_loading_names_what_it_did(world: World) -> None:
    folder = MtebFolder([world.predictions / "good", world.results])
    benchmarks = Benchmarks(tasks=world.tasks.values())
    loaded = [
        item
        for file in folder.predictions
        for item in folder.load(file, benchmarks)
        if isinstance(item, Loaded)
    ]
    assert all(item.reported is not None for item in loaded)
    assert {(item.drops_own, item.skips_first) for item in loaded} == {
        (False, False),
        (True, False),
        (False, True),
    }
