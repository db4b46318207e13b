"""BEIR's own code and ours must print the same scores."""

from __future__ import annotations

import copy
import importlib
import json
import random
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from falsify_adapters.adapters.beir import gate_beir, load_beir
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.measures import parse_measure, query_scores
from falsify_adapters.results import GateConfig

K_VALUES = [1, 3, 5, 10, 100, 1000]
OUR_NAMES = {"NDCG": "nDCG", "MAP": "AP", "Recall": "R", "P": "P"}
#: BEIR rounds to 5 decimals; a hair more for values that end in a 5.
ROUNDING = 5.0001e-6

#: BEIR's loader leaves its files open.
leaky = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

Results = dict[str, dict[str, Any]]
Qrels = dict[str, dict[str, int]]


def scores_of_beir(qrels: Qrels, results: Results, ignore_identical_ids: bool = True) -> dict:
    from beir.retrieval.evaluation import EvaluateRetrieval

    scores: dict[str, float] = {}
    given = copy.deepcopy(results)
    for part in EvaluateRetrieval.evaluate(qrels, given, K_VALUES, ignore_identical_ids):
        scores.update(part)
    return scores


def our_scores(evaluation: Evaluation) -> dict[str, float]:
    answered = np.isin(evaluation.query_ids, evaluation.run["query_id"].cat.categories)
    return {
        f"{beir}@{k}": float(
            query_scores(evaluation.run, evaluation.qrels, parse_measure(f"{ours}@{k}"))[0][
                answered
            ].mean()
        )
        for beir, ours in OUR_NAMES.items()
        for k in K_VALUES
    }


def codes_of(evaluation: Evaluation) -> set[str]:
    return {note.code for note in evaluation.notes}


def assert_same(evaluation: Evaluation, theirs: dict[str, float]) -> None:
    ours = our_scores(evaluation)
    assert ours.keys() == theirs.keys()
    different = {
        name: (ours[name], theirs[name])
        for name in ours
        if abs(ours[name] - theirs[name]) > ROUNDING
    }
    assert different == {}


def corpus_of(ids: list[str]) -> dict[str, dict[str, str]]:
    return {doc_id: {"title": "", "text": doc_id} for doc_id in ids}


def random_benchmark(seed: int) -> tuple[list[str], Qrels, Results]:
    """Make ties, empty results, missing and unjudged queries, self matches, all grades."""
    rng = random.Random(seed)
    docs = [f"d{i}" for i in range(rng.choice([5, 30, 200]))] + ["q0", "q1", "q2"]
    draw = rng.choice(
        [
            lambda: float(rng.randint(0, 3)),
            rng.random,
            lambda: rng.randint(0, 50),
            lambda: 1 + rng.randint(0, 5) * 1e-9,
            lambda: rng.uniform(-1, 1) * 10.0 ** rng.randint(-30, 30),
        ]
    )
    # the first query is always there, judged and answered, so that there is something to score
    qrels: Qrels = {"q0": {"d0": 1}}
    results: Results = {"q0": {"d1": draw(), "d0": draw()}}
    for i in range(1, rng.choice([1, 3, 20])):
        if rng.random() < 0.95:
            judged = rng.sample(docs, rng.randint(1, min(8, len(docs))))
            qrels[f"q{i}"] = {doc: rng.choice([-1, 0, 1, 1, 2, 3]) for doc in judged}
        if rng.random() < 0.9:
            found = rng.sample(docs, rng.randint(0, len(docs)))
            results[f"q{i}"] = {doc: draw() for doc in found}
    return docs, qrels, results


@pytest.mark.parametrize("seed", range(200))
def test_random_benchmarks_score_as_in_beir(seed: int) -> None:
    docs, qrels, results = random_benchmark(seed)
    before = copy.deepcopy(results)
    evaluation = load_beir((corpus_of(docs), {}, qrels), results)
    assert results == before
    assert [list(found) for found in results.values()] == [list(f) for f in before.values()]
    theirs = scores_of_beir(qrels, results)
    if "W-SCORE-PRECISION" in codes_of(evaluation):
        # the difference has its name; with scores that single precision holds there is none
        single = {
            query: {doc: float(np.float32(score)) for doc, score in found.items()}
            for query, found in results.items()
        }
        evaluation = load_beir((corpus_of(docs), {}, qrels), single)
        assert "W-SCORE-PRECISION" not in codes_of(evaluation)
    assert_same(evaluation, theirs)


def test_single_precision_is_named_only_where_it_changes_the_order() -> None:
    qrels = {"q": {"a": 1}}
    corpus = corpus_of(["a", "b"])
    reversed_in_beir = load_beir((corpus, {}, qrels), {"q": {"a": 1 + 1e-9, "b": 1.0}})
    assert "W-SCORE-PRECISION" in codes_of(reversed_in_beir)
    assert scores_of_beir(qrels, {"q": {"a": 1 + 1e-9, "b": 1.0}})["P@1"] == 0.0
    assert our_scores(reversed_in_beir)["P@1"] == 1.0
    same_in_beir = load_beir((corpus, {}, qrels), {"q": {"a": 1.0, "b": 1 + 1e-9}})
    assert "W-SCORE-PRECISION" not in codes_of(same_in_beir)


@leaky
@pytest.mark.parametrize("name", ["nfcorpus", "scifact"])
@pytest.mark.parametrize("system", ["bm25", "minilm"])
def test_real_runs_score_as_in_beir(data_dir: Path, name: str, system: str) -> None:
    from beir.datasets.data_loader import GenericDataLoader

    corpus, queries, qrels = GenericDataLoader(str(data_dir / name)).load("test")
    results: Results = {}
    for line in (data_dir / name / "runs" / f"{system}.trec").read_text().splitlines():
        query_id, _, doc_id, _, score, _ = line.split()
        results.setdefault(query_id, {})[doc_id] = float(score)
    theirs = scores_of_beir(qrels, results)
    assert_same(load_beir((corpus, queries, qrels), results), theirs)
    from_files = load_beir(name, data_dir / name / "runs" / f"{system}.trec", data_dir=data_dir)
    assert_same(from_files, theirs)
    assert from_files.corpus_size == len(corpus)


def self_matching() -> tuple[list[str], Qrels, Results]:
    docs = [f"arg{i}" for i in range(1, 40)]
    qrels = {doc: {docs[(i + 1) % len(docs)]: 1} for i, doc in enumerate(docs)}
    results: Results = {
        doc: {other: 1.0 / (1 + abs(i - j)) for j, other in enumerate(docs) if abs(i - j) < 6}
        for i, doc in enumerate(docs)
    }
    results["arg7"] = {"arg7": 1.0}  # nothing is left of it
    return docs, qrels, results


@pytest.mark.parametrize("keep_self", [False, True])
def test_self_matches_score_as_in_beir(keep_self: bool) -> None:
    docs, qrels, results = self_matching()
    before = copy.deepcopy(results)
    evaluation = load_beir((corpus_of(docs), {}, qrels), results, keep_self=keep_self)
    assert results == before
    assert_same(evaluation, scores_of_beir(qrels, results, ignore_identical_ids=not keep_self))
    (note,) = [note for note in evaluation.notes if note.code == "W-SELF-MATCHES"]
    assert "39 of 39 queries" in note.message
    assert ("W-EMPTY-RESULTS" in codes_of(evaluation)) is not keep_self


def test_the_gate_reports_the_mean_that_beir_prints() -> None:
    docs, qrels, results = self_matching()
    del results["arg3"]
    results["unjudged"] = {"arg1": 1.0}
    before = copy.deepcopy(results)
    report = gate_beir(
        results,
        qrels,
        corpus_size=len(docs),
        measure="nDCG@10",
        config=GateConfig(n_boot=200, n_trials=100),
        system="near",
        benchmark="args",
    )
    assert results == before
    theirs = scores_of_beir(qrels, results)["NDCG@10"]
    assert report.score_answered == pytest.approx(theirs, abs=ROUNDING)
    assert report.score == pytest.approx(report.score_answered * 38 / 39)
    assert (report.system, report.benchmark, report.corpus_size) == ("near", "args", 39)


@pytest.fixture
def beir_util(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Import beir.util, which needs torch for nothing that is used here."""
    torch = types.ModuleType("torch")
    torch.Tensor = object  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tqdm.autonotebook calls itself experimental
        module = importlib.import_module("beir.util")
    monkeypatch.delitem(sys.modules, "beir.util")
    return module


def test_results_saved_by_beir_read_back_the_same(
    tmp_path: Path, beir_util: types.ModuleType
) -> None:
    docs, qrels, results = self_matching()
    del results["arg7"]  # a TREC file cannot say that a query has an empty result
    direct = load_beir((corpus_of(docs), {}, qrels), results)
    beir_util.save_runfile(str(tmp_path / "saved.trec"), results)
    assert " 0 " in (tmp_path / "saved.trec").read_text().splitlines()[0]
    (tmp_path / "dumped.json").write_text(json.dumps(results))
    for name in ("saved.trec", "dumped.json"):
        read = load_beir((corpus_of(docs), {}, qrels), tmp_path / name)
        assert read.run.equals(direct.run)
        assert read.system == Path(name).stem


@leaky
def test_the_loaders_of_beir_are_understood(data_dir: Path) -> None:
    from beir.datasets.data_loader import GenericDataLoader

    loader = GenericDataLoader(str(data_dir / "scifact"))
    triple = loader.load("test")
    run = data_dir / "scifact/runs/bm25.trec"
    from_folder = load_beir(data_dir / "scifact", run)
    for source in (triple, loader):
        evaluation = load_beir(source, run)
        assert evaluation.run.equals(from_folder.run)
        assert evaluation.qrels.equals(from_folder.qrels)
        assert evaluation.corpus_size == from_folder.corpus_size == 5183
    assert load_beir(triple).run.equals(load_beir(data_dir / "scifact").run)


@pytest.mark.parametrize("streaming", [False, True])
def test_the_hugging_face_loader_of_beir_is_understood(streaming: bool) -> None:
    datasets = pytest.importorskip("datasets")
    corpus_rows = [
        {"id": "1", "title": "Cats", "text": "sleep"},
        {"id": "2", "title": None, "text": "dogs run"},
    ]
    query_rows = [{"id": "q1", "text": "cats"}, {"id": "q2", "text": "dogs"}]
    corpus = datasets.Dataset.from_list(corpus_rows)
    queries = datasets.Dataset.from_list(query_rows)
    if streaming:
        corpus, queries = corpus.to_iterable_dataset(), queries.to_iterable_dataset()
    qrels = {"q1": {"1": 1}, "q2": {"2": 1}}
    rows = datasets.Dataset.from_list(
        [
            {"query-id": "q1", "corpus-id": "1", "score": 1.0},
            {"query-id": "q2", "corpus-id": "2", "score": 1.0},
        ]
    )
    for judgements in (qrels, rows):
        evaluation = load_beir((corpus, queries, judgements))
        assert evaluation.corpus_size == 2
        assert evaluation.run["doc_id"].tolist() == ["1", "2"]
        assert evaluation.qrels["relevance"].tolist() == [1, 1]
