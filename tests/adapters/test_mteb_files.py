"""Files of MTEB in all their layouts: found by content, counted when irregular, never fatal."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from falsify_adapters.adapters.mteb.predictions import Predictions, parse_predictions
from falsify_adapters.adapters.mteb.predictions import read_predictions as read
from falsify_adapters.adapters.mteb.qrels import QrelsFolder
from falsify_adapters.adapters.mteb.results import key_of, measure_of, parse_results, problem_of
from falsify_adapters.adapters.mteb.walk import (
    OtherFile,
    PredictionFile,
    ResultFile,
    WalkSummary,
    walk,
)
from falsify_adapters.errors import InputError, UsageError

RUN = {"q1": {"d2": 0.31, "d1": 0.78}, "q2": {"d1": 0.5}}


def result(**changes: Any) -> dict[str, Any]:
    """A result file of the new layout; `row` changes the scores."""
    row = {"ndcg_at_10": 0.5, "main_score": 0.5, "hf_subset": "default", "languages": ["eng-Latn"]}
    row |= changes.pop("row", {})
    whole = {"task_name": "NFCorpus", "mteb_version": "2.1.0", "scores": {"test": [row]}}
    return {name: value for name, value in (whole | changes).items() if value is not ...}


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("oddity", "content"),
    [
        ("NaN value", result(row={"nauc_map_at_1_max": math.nan})),
        ("infinite value", result(row={"nauc_map_at_1_max": math.inf})),
        ("null value", result(row={"nauc_map_at_1_max": None})),
        ("text value", result(row={"nauc_map_at_1_max": "nan"})),
        ("dict among the scores", result(row={"cos_sim": {"ap": 0.3}})),
        ("no version", result(mteb_version=...)),
        ("no version", result(mteb_version=None)),
        ("version range", result(mteb_version="2.12.16-2.15.4")),
        ("negative main_score", result(row={"main_score": -3.5})),
        ("split before test", result(scores={"train": [{}], "test": [{}]})),
        ("duplicate subset", result(scores={"test": [{"hf_subset": "a"}, {"hf_subset": "a"}]})),
        ("no main_score", result(scores={"test": [{"ndcg_at_10": 0.5}]})),
        ("stub", {"test": {"ndcg_at_10": 0.61}, "mteb_dataset_name": "NQ"}),
        ("old layout", {"test": {"ndcg_at_10": 0.61, "map_at_10": 0.5}, "mteb_version": "1.0.1"}),
    ],
)
def test_every_irregularity_is_found(oddity: str, content: dict[str, Any]) -> None:
    parsed = parse_results(content)
    assert parsed is not None
    assert oddity in parsed.oddities
    assert oddity not in (parse_results(result()) or parsed).oddities


def test_a_regular_file_has_no_oddity() -> None:
    parsed = parse_results(result())
    assert parsed is not None
    assert parsed.oddities == ()
    assert (parsed.task, parsed.version, parsed.layout) == ("NFCorpus", "2.1.0", "new")


def test_old_files_with_subsets_and_with_groups_of_scores() -> None:
    multilingual = {"mteb_dataset_name": "X", "test": {"en": {"ndcg_at_10": 0.1}, "de": {}}}
    parsed = parse_results(multilingual)
    assert parsed is not None
    assert [(row.split, row.subset) for row in parsed.rows] == [("test", "en"), ("test", "de")]
    pairs = parse_results({"mteb_dataset_name": "X", "test": {"cos_sim": {"ap": 0.1}}})
    assert pairs is not None
    assert [row.subset for row in pairs.rows] == ["default"]
    assert not pairs.is_retrieval


def test_the_evaluation_time_is_no_split() -> None:
    parsed = parse_results(
        {"mteb_dataset_name": "X", "evaluation_time": 3.0, "dev": {"ndcg_at_10": 0.1}}
    )
    assert parsed is not None
    assert [row.split for row in parsed.rows] == ["dev"]


@pytest.mark.parametrize("data", [RUN, [], "text", None, 3, {}, {"scores": [1, 2]}, {"a": 1}])
def test_what_is_no_result_file_is_not_taken_for_one(data: Any) -> None:
    assert parse_results(data) is None


@pytest.mark.parametrize(
    ("key", "measure"),
    [
        ("ndcg_at_10", "nDCG@10"),
        ("map_at_1000", "AP@1000"),
        ("mrr_at_5", "RR@5"),
        ("recall_at_100", "R@100"),
        ("precision_at_1", "P@1"),
        ("hit_rate_at_3", "Success@3"),
    ],
)
def test_names_translate_both_ways(key: str, measure: str) -> None:
    assert (measure_of(key), key_of(measure)) == (measure, key)


@pytest.mark.parametrize(
    "key", ["p-MRR", "nauc_ndcg_at_10_max", "ndcg_at_0", "max_over_subqueries_map_at_1000"]
)
def test_other_keys_have_no_measure(key: str) -> None:
    assert measure_of(key) is None


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, -0.1, 1.07, None, "0.5", True, {}, 10**400, -1]
)
def test_what_cannot_be_a_score(value: Any) -> None:
    assert problem_of(value)


def test_a_retrieval_row_keeps_good_values_beside_wrong_ones(tmp_path: Path) -> None:
    from falsify_adapters.adapters.mteb import MtebFolder

    write(tmp_path / "NFCorpus.json", result(row={"map_at_10": 1.5, "recall_at_10": 0.25}))
    folder = MtebFolder(tmp_path)
    [reported] = folder.reported
    assert folder.value(reported, "recall_at_10") == 0.25
    assert folder.value(reported, "map_at_10") is None
    assert "1.5 is outside [0, 1]" in str(folder.check(reported, "map_at_10"))
    assert folder.check(reported, "recall_at_10") is None


META = {"model_name": "a/b", "revision": "r1"}


@pytest.mark.parametrize(
    ("data", "shape", "parts"),
    [
        (RUN, "flat", [(None, None)]),
        ({"q1": {}, **RUN}, "flat", [(None, None)]),
        ({"q1": {}, "q2": {}}, "flat", [(None, None)]),
        ({"dev": RUN, "test": RUN}, "by split", [(None, "dev"), (None, "test")]),
        ({"en": {"test": RUN}, "de": {"test": RUN}}, "nested", [("en", "test"), ("de", "test")]),
        ({"mteb_model_meta": META, "en": {"test": RUN}}, "nested", [("en", "test")]),
        ({"mteb_model_meta": META, "en": {"test": {"q1": {}}}}, "nested", [("en", "test")]),
        ({"mteb_model_meta": RUN["q1"], "q2": {"d1": 1.0}}, "flat", [(None, None)]),
    ],
)
def test_shapes_are_told_apart_by_content(data: Any, shape: str, parts: list[Any]) -> None:
    found = parse_predictions(data)
    assert isinstance(found, Predictions)
    assert found.shape == shape
    assert [(part.subset, part.split) for part in found.parts] == parts


@pytest.mark.parametrize(
    "data",
    [
        {"cosine_scores": [0.1, 0.2]},
        {"mteb_model_meta": META, "default": {"test": {"cosine_scores": [0.1]}}},
        {"mteb_model_meta": META, "default": {"test": [[0, 1], [1, 0]]}},
        {"mteb_model_meta": META},
        {"mteb_model_meta": META, "default": []},
        [],
        {},
        {"a": {"b": {"c": {"d": {"e": 1.0}}}}},
        {"a": "text"},
        7,
    ],
)
def test_predictions_of_other_tasks_are_left_out_with_a_reason(data: Any) -> None:
    assert isinstance(parse_predictions(data), str)


def test_a_part_that_is_no_ranking_does_not_take_the_others_with_it() -> None:
    data = {"mteb_model_meta": META, "en": {"test": RUN, "dev": [1]}, "de": 3}
    found = parse_predictions(data)
    assert isinstance(found, Predictions)
    assert len(found.parts) == 1
    assert [name for name, _ in found.skipped] == ["en, dev", "de"]


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "X_predictions.json", '{"q1": {"d1": 1.0, "d2": 0.5, "d1": 0.1}}')
    with pytest.raises(InputError, match="'d1' twice"):
        read(path)


@pytest.mark.parametrize("text", ['{"q1": {"d1": 0.5', "", "\xff", "[" * 100_000])
def test_broken_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "X_predictions.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"X_predictions\.json"):
        read(path)


def test_a_cut_keeps_ties_in_single_precision(tmp_path: Path) -> None:
    documents = {f"d{i:03}": 1.0 - i * 0.01 for i in range(50)}
    documents |= {f"t{i}": 0.88 + i * 1e-12 for i in range(5)}
    path = write(tmp_path / "X_predictions.json", {"q1": documents, "q2": {"d1": 0.5}})
    found = read(path, depth=10)
    assert isinstance(found, Predictions)
    kept = found.parts[0].run
    # 10 and 2 to spare reach 0.89; the tied ones are the next
    assert list(kept["q1"]) == [f"d{i:03}" for i in range(12)]
    documents |= {"x": 0.89 + 1e-12}
    found = read(write(path, {"q1": documents}), depth=10)
    assert isinstance(found, Predictions)
    assert set(found.parts[0].run["q1"]) == {*(f"d{i:03}" for i in range(12)), "x"}


def test_nan_is_left_for_the_checks_to_name(tmp_path: Path) -> None:
    documents = {f"d{i}": float(i) for i in range(50)} | {"bad": math.nan}
    found = read(write(tmp_path / "X_predictions.json", {"q1": documents}), depth=10)
    assert isinstance(found, Predictions)
    assert "bad" in found.parts[0].run["q1"]


def make_tree(root: Path) -> Path:
    results = root / "results"
    write(results / "org__a" / "sha1" / "NFCorpus.json", result())
    write(results / "org__a" / "sha1" / "model_meta.json", {"name": "org/a", "revision": "sha1"})
    write(results / "org__a" / "sha1" / "experiments" / "dim_64" / "NFCorpus.json", result())
    write(results / "org__b" / "NFCorpus.json", result())  # before 1.12.6: no revision folder
    write(results / "org__c" / "None" / "NFCorpus.json", result())
    write(results / "plain" / "NQ.json", {"test": {"ndcg_at_10": 0.6}, "mteb_dataset_name": "NQ"})
    write(results / "org__a" / "sha1" / "NFCorpus_predictions.json", RUN)
    write(results / "org__a" / "sha1" / "some_name.json", {"mteb_model_meta": META})
    write(results / "run.log", "text")
    write(results / "script.py", "print()")
    write(results / "empty.json", "")
    write(results / "broken.json", '{"task_name": ')
    write(results / "list.json", [1, 2])
    return results


def test_a_walk_reads_everything_and_stops_at_nothing(tmp_path: Path) -> None:
    results = make_tree(tmp_path)
    (results / "org__a" / "loop").symlink_to(results)
    found = list(walk([results]))
    summary = WalkSummary()
    for item in found:
        summary.add(item)
    assert summary.files == {
        "results": 5, "predictions": 2, "descriptions": 1, "others": 3, "broken": 2,
    }  # fmt: skip
    places = {
        (item.place.model, item.place.revision, item.place.experiment)
        for item in found
        if isinstance(item, ResultFile)
    }
    assert places == {
        ("org/a", "sha1", None),
        ("org/a", "sha1", "dim_64"),
        ("org/b", None, None),
        ("org/c", "None", None),
        (None, None, None),
    }
    assert summary.oddities['revision "None"'] == 1
    assert all(not item.label.startswith("/") for item in found)


def test_the_walk_has_one_order(tmp_path: Path) -> None:
    results = make_tree(tmp_path)
    labels = [item.label for item in walk([results])]
    assert labels == [item.label for item in walk([results])]


def test_a_single_file_knows_its_place(tmp_path: Path) -> None:
    results = make_tree(tmp_path)
    [found] = walk([results / "org__a" / "sha1" / "NFCorpus.json"])
    assert isinstance(found, ResultFile)
    assert (found.place.model, found.place.revision) == ("org/a", "sha1")


def test_a_missing_path_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        list(walk([tmp_path / "nothing"]))


def test_large_prediction_files_are_not_parsed_by_the_walk(tmp_path: Path) -> None:
    path = tmp_path / "X_predictions.json"
    path.write_text("{" + " " * (1 << 17))  # broken, which only reading would notice
    [found] = walk([path])
    assert isinstance(found, PredictionFile)


@pytest.mark.parametrize("name", ["model_meta.json", "notes.txt"])
def test_other_files_have_a_reason(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, {})
    [found] = walk([tmp_path])
    assert isinstance(found, OtherFile)
    assert found.reason


QRELS = "q1 0 d1 1\n"


@pytest.mark.parametrize(
    ("file", "task", "split", "subset"),
    [
        ("climate-fever.qrels", "ClimateFEVER", "test", "default"),
        ("trec-covid.qrels", "TRECCOVID", "test", "default"),
        ("nfcorpus/qrels/test.tsv", "NFCorpus", "test", "default"),
        ("msmarco/qrels/dev.tsv", "MSMARCO", "dev", "default"),
        ("fiqa.trec", "FiQA2018", "test", "default"),
        ("bright-pony.qrels", "BrightRetrieval", "standard", "pony"),
        ("BrightRetrieval/pony/qrels/standard.tsv", "BrightRetrieval", "standard", "pony"),
        ("cqadupstack/android/qrels/test.tsv", "CQADupstackAndroidRetrieval", "test", "default"),
        ("qrels.beir-v1.0.0-scifact.test.txt", "SciFact", "test", "default"),
        ("SciFact.jsonl.gz", "SciFact", "test", "default"),
    ],
)
def test_qrels_are_found_by_name(
    tmp_path: Path, file: str, task: str, split: str, subset: str
) -> None:
    write(tmp_path / "q" / file, QRELS)
    folder = QrelsFolder(tmp_path / "q")
    found = folder.find(task, split, subset, default_split=True, sole_task=False)
    assert found == tmp_path / "q" / file


@pytest.mark.parametrize(
    ("file", "task", "split", "subset"),
    [
        ("nfcorpus.qrels", "NFCorpus", "dev", "default"),  # names no split, dev is not usual
        ("nfcorpus/qrels/dev.tsv", "NFCorpus", "test", "default"),
        ("webis-touche2020.qrels", "Touche2020Retrieval.v3", "test", "default"),  # other qrels
        ("bright.qrels", "BrightRetrieval", "standard", "pony"),
        ("test.tsv", "NFCorpus", "test", "default"),  # may be anybody's
        ("nfcorpus/corpus.jsonl", "NFCorpus", "test", "default"),
    ],
)
def test_qrels_of_something_else_are_not_taken(
    tmp_path: Path, file: str, task: str, split: str, subset: str
) -> None:
    write(tmp_path / "q" / file, QRELS)
    folder = QrelsFolder(tmp_path / "q")
    usual = split in ("test", "standard")
    assert folder.find(task, split, subset, default_split=usual, sole_task=False) is None


def test_the_folder_itself_may_be_the_data_set(tmp_path: Path) -> None:
    path = write(tmp_path / "nfcorpus" / "qrels" / "test.tsv", QRELS)
    folder = QrelsFolder(tmp_path / "nfcorpus")
    found = folder.find("NFCorpus", "test", "default", default_split=True, sole_task=False)
    assert found == path
    assert folder.find("SciFact", "test", "default", default_split=True, sole_task=False) is None


def test_of_a_sole_task_the_qrels_need_no_name(tmp_path: Path) -> None:
    path = write(tmp_path / "qrels" / "en" / "test.tsv", QRELS)
    folder = QrelsFolder(tmp_path / "qrels")
    assert folder.find("Toy", "test", "en", default_split=True, sole_task=True) == path
    assert folder.find("Toy", "test", "en", default_split=True, sole_task=False) is None


def test_two_files_that_fit_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "q" / "nfcorpus.qrels", QRELS)
    write(tmp_path / "q" / "nfcorpus.trec", QRELS)
    with pytest.raises(InputError, match="several files"):
        QrelsFolder(tmp_path / "q").find(
            "NFCorpus", "test", "default", default_split=True, sole_task=False
        )


@pytest.mark.parametrize("name", ["missing", "file"])
def test_no_folder_of_qrels_is_wrong_usage(tmp_path: Path, name: str) -> None:
    write(tmp_path / "file", "")
    with pytest.raises(UsageError, match=name):
        QrelsFolder(tmp_path / name)
