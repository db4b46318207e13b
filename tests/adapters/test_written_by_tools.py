"""Files that the tools themselves wrote: our scores are the tools' own.

What each tool wrote once is kept (``tests/data/tools``); where it is installed, it writes anew.
ranx and PyTerrier are light enough to be part of the tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

import falsify_adapters
from falsify_adapters.adapters.llamaindex import from_llamaindex, from_nodes
from falsify_adapters.adapters.pyterrier import from_pyterrier
from falsify_adapters.adapters.ragas import from_ragas
from falsify_adapters.adapters.ranx import from_ranx
from falsify_adapters.adapters.sentence_transformers import from_sentence_transformers
from falsify_adapters.errors import InputError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.gate import run_gate
from falsify_adapters.readers import read_qrels, read_run
from tests.cli_runs import ROOT, call, report
from tests.tools.toy import CORPUS, GOLD, QUERIES, RANKED, K, N

#: The module of each tool whose files are kept.
MODULES = {
    "llamaindex": "llama_index.core",
    "lm_eval": "lm_eval",
    "ragas": "ragas",
    "sentence_transformers": "sentence_transformers",
}

KEPT = ROOT / "tests" / "data" / "tools"


class Written(NamedTuple):
    """What a tool wrote: the folder, and the scores that the tool itself computed."""

    folder: Path
    scores: dict[str, Any]


Writer = Callable[[str], Written]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Writer:
    """Let a tool write its files, once, or take those that it wrote before."""

    @cache
    def of(tool: str) -> Written:
        folder = KEPT / tool
        if _is_installed(MODULES[tool]):
            folder = tmp_path_factory.mktemp(tool)
            command = [sys.executable, "-W", "ignore", "-m", "tests.tools", tool, str(folder)]
            subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        return Written(folder, json.loads((folder / "expected.json").read_text()))

    return of


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package around it
        return False


def score(evaluation: Evaluation, measure: str) -> float:
    return run_gate(evaluation, measure).score


def test_ragas_samples_by_ids_and_by_texts(written: Writer) -> None:
    folder, own = written("ragas")
    for name in ("ids.jsonl", "ids.csv", "texts.jsonl"):
        evaluation = falsify_adapters.load(folder / name, corpus_size=len(CORPUS))
        assert evaluation.provenance["source"] == "ragas"
        # nothing is retrieved below rank 5
        assert score(evaluation, f"R@{K}") == pytest.approx(own["recall"]), name
    by_id = falsify_adapters.load(folder / "ids.jsonl", corpus_size=len(CORPUS))
    by_text = falsify_adapters.load(folder / "texts.jsonl", corpus_size=len(CORPUS))
    for measure in ("nDCG@5", "RR@5"):
        assert score(by_id, measure) == score(by_text, measure)
    rows = [json.loads(line) for line in (folder / "ids.jsonl").read_text().splitlines()]
    in_memory = from_ragas(rows, corpus_size=len(CORPUS))
    pd.testing.assert_frame_equal(in_memory.run, by_id.run)
    arguments = ["--from", "ragas", folder / "ids.jsonl", "R@5", "--pool", len(CORPUS)]
    (found,) = report("ir", *arguments, "--clusters", "auto")["reports"]
    assert found["score"] == pytest.approx(own["recall"])


def test_llamaindex_retrieval_results(written: Writer) -> None:
    folder, own = written("llamaindex")
    evaluation = falsify_adapters.load(folder / "retrieval.jsonl", corpus_size=len(CORPUS))
    assert evaluation.provenance["source"] == "llamaindex"
    assert score(evaluation, f"Success@{K}") == pytest.approx(own["hit_rate"])
    assert score(evaluation, f"RR@{K}") == pytest.approx(own["mrr"])
    assert score(evaluation, f"R@{K}") == pytest.approx(own["recall"])
    assert score(evaluation, f"P@{K}") == pytest.approx(own["precision"])


class Node(NamedTuple):
    """Stands for NodeWithScore where LlamaIndex is not installed: what we read of it."""

    node_id: str
    score: float


def llamaindex_nodes(query_id: str) -> list[Any]:
    if not _is_installed(MODULES["llamaindex"]):
        return [Node(doc, 1.0 / (1 + rank)) for rank, doc in enumerate(RANKED[query_id])]
    from tests.tools.write_llamaindex import nodes

    return nodes(query_id)


def test_llamaindex_objects(written: Writer) -> None:
    from types import SimpleNamespace

    folder, own = written("llamaindex")
    nodes = {query_id: llamaindex_nodes(query_id) for query_id in QUERIES}
    evaluation = from_nodes(nodes, GOLD, corpus_size=len(CORPUS))
    assert evaluation.query_ids == sorted(QUERIES)
    assert score(evaluation, f"RR@{K}") == pytest.approx(own["mrr"])
    graded = {query_id: dict.fromkeys(docs, 2) for query_id, docs in GOLD.items()}
    assert set(from_nodes(nodes, graded, corpus_size=99).qrels["relevance"]) == {2}
    missing = from_nodes({"q0": nodes["q0"]}, GOLD, corpus_size=len(CORPUS))
    assert missing.n_queries == N
    rows = [json.loads(line) for line in (folder / "retrieval.jsonl").read_text().splitlines()]
    results = [SimpleNamespace(**row) for row in rows]
    assert score(from_llamaindex(results, corpus_size=99), "RR@5") == pytest.approx(own["mrr"])
    with pytest.raises(InputError, match="query 'q0': node_id holds an id that is neither"):
        from_nodes({"q0": ["d1"]}, GOLD)
    with pytest.raises(InputError, match="lacks 'retrieved_ids'"):
        from_llamaindex([object()])


def test_sentence_transformers_predictions(written: Writer, tmp_path: Path) -> None:
    folder, own = written("sentence_transformers")
    (path,) = folder.glob("*.jsonl")
    assert path.name == "Information-Retrieval_evaluation_toy_predictions_cosine.jsonl"
    evaluation = from_sentence_transformers(path, GOLD, CORPUS)
    assert evaluation.corpus_size == len(CORPUS)
    for measure, name in {
        "nDCG@10": "ndcg@10",
        "RR@10": "mrr@10",
        "Success@10": "accuracy@10",
        "P@10": "precision@10",
        "R@10": "recall@10",
    }.items():
        assert score(evaluation, measure) == pytest.approx(own[name]), measure
    qrels = tmp_path / "qrels.trec"
    qrels.write_text("".join(f"{q} 0 {doc} 1\n" for q, docs in GOLD.items() for doc in docs))
    (found,) = report("ir", qrels, path, "RR@10", "--pool", len(CORPUS))["reports"]
    assert found["score"] == pytest.approx(own["mrr@10"])


#: What the command calls each of the harness's accuracies.
CHOICE_SCORES = {
    "acc": "raw",
    "acc_norm": "norm",
    "acc_bytes": "bytes",
    "acc_mutual_info": "mutual_info",
}


@pytest.mark.parametrize("task", ["mutual", "text_target", "no_blank", "other_delimiter"])
def test_lm_eval_samples_give_every_accuracy_of_the_harness(task: str, written: Writer) -> None:
    folder, own = written("lm_eval")
    path = folder / f"samples_{task}_day.jsonl"
    sizes = {}
    for name, accuracy in own["tasks"][task].items():
        evaluation = falsify_adapters.load(path, score=CHOICE_SCORES[name])
        assert evaluation.provenance["source"] == "lm-eval"
        assert score(evaluation, "P@1") == pytest.approx(accuracy), name
        sizes[name] = evaluation.pool_sizes
    # a question has its two to four choices, however often the model was asked
    assert set(sizes["acc"].values()) == {2, 3, 4}
    assert all(found == sizes["acc"] for found in sizes.values())
    arguments = ["--from", "lm-eval", path, "--choice-score", "norm", "--clusters", "subject"]
    (found,) = report("ir", *arguments)["reports"]
    assert found["score"] == pytest.approx(own["tasks"][task]["acc_norm"])
    assert found["dependence"]["clusters"]["clusters"] == 4


def test_lm_eval_choices_inside_the_question_are_refused(written: Writer) -> None:
    path = written("lm_eval").folder / "samples_in_question_day.jsonl"
    result = call("ir", "--from", "lm-eval", path)
    assert result.exit_code == 2
    assert "record 1 does not say which choice is right" in result.stderr
    with pytest.raises(InputError, match="the choices stand in the question, and their lengths"):
        falsify_adapters.load(path, score="norm")


@contextmanager
def theirs() -> Iterator[None]:
    """Let another library use what pandas and numba will drop some day."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def ranx_pair() -> tuple[Any, Any]:
    """A real run and qrels. ranx compiles itself in every process, which takes some seconds."""
    os.environ.setdefault("NUMBA_OPT", "0")  # asked for when numba is imported: half the time
    with theirs():
        from ranx import Qrels, Run

        run = {q: {doc: 1.0 - k / 9 for k, doc in enumerate(docs)} for q, docs in RANKED.items()}
        qrels = {q: {doc: 3 - k for k, doc in enumerate(docs)} for q, docs in GOLD.items()}
        return Run(run, name="mine"), Qrels(qrels)


def test_ranx_objects_and_frames(ranx_pair: tuple[Any, Any]) -> None:
    run, qrels = ranx_pair
    evaluation = from_ranx(run, qrels, corpus_size=len(CORPUS))
    assert (evaluation.system, evaluation.n_queries) == ("mine", N)
    with theirs():
        frames = from_ranx(run.to_dataframe(), qrels.to_dataframe(), corpus_size=len(CORPUS))
    pd.testing.assert_frame_equal(frames.run, evaluation.run)
    pd.testing.assert_frame_equal(frames.qrels, evaluation.qrels)
    own = json.loads((KEPT / "ranx" / "expected.json").read_text())
    assert score(evaluation, "nDCG@5") == pytest.approx(own["ndcg@5"])


@pytest.mark.parametrize("kind", ["json", "lz4", "parquet", "trec"])
def test_ranx_files(kind: str, ranx_pair: tuple[Any, Any], tmp_path: Path) -> None:
    run, qrels = ranx_pair
    expected = from_ranx(run, qrels, corpus_size=len(CORPUS))
    judged = "json" if kind == "lz4" else kind  # ranx saves no qrels as lz4
    with theirs():
        run.save(str(tmp_path / f"run.{kind}"))
        qrels.save(str(tmp_path / f"qrels.{judged}"))
    frame = read_run(tmp_path / f"run.{kind}").frame
    pd.testing.assert_frame_equal(frame, expected.run)
    gold = read_qrels(tmp_path / f"qrels.{judged}").frame
    pd.testing.assert_frame_equal(gold, expected.qrels)
    arguments = [tmp_path / f"qrels.{judged}", tmp_path / f"run.{kind}", "--pool", len(CORPUS)]
    (found,) = report("ir", *arguments)["reports"]
    assert found["score"] == pytest.approx(score(expected, "nDCG@10"))


@pytest.fixture(scope="module")
def pyterrier() -> Any:
    with theirs():
        import pyterrier

        return pyterrier


def pyterrier_results(pyterrier: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Results of a real pipeline, without Java, and qrels in PyTerrier's columns."""
    known = pd.DataFrame(
        [
            {"qid": q, "query": QUERIES[q], "docno": doc, "docid": 7, "score": 9.0 - k}
            for q, docs in RANKED.items()
            for k, doc in enumerate(docs)
        ]
    )
    topics = pd.DataFrame({"qid": list(QUERIES), "query": list(QUERIES.values())})
    qrels = pd.DataFrame(
        [{"qid": q, "docno": doc, "label": 2 - k} for q, docs in GOLD.items()
         for k, doc in enumerate(docs)]
    )  # fmt: skip
    with theirs():
        known = pyterrier.model.add_ranks(known)
        pipeline = pyterrier.Transformer.from_df(known) % 4
        return pipeline(topics), qrels


def test_pyterrier_results_of_a_pipeline(pyterrier: Any) -> None:
    results, qrels = pyterrier_results(pyterrier)
    assert {"qid", "docno", "score", "rank"} <= set(results.columns)
    assert results["rank"].min() == 0
    assert "jnius" not in sys.modules  # no Java was started
    evaluation = from_pyterrier(results, qrels, corpus_size=len(CORPUS))
    assert evaluation.notes == ()
    with theirs():
        own = pyterrier.Evaluate(results, qrels, ["ndcg_cut_4", "recall_4"])
    assert score(evaluation, "nDCG@4") == pytest.approx(own["ndcg_cut_4"])
    assert score(evaluation, "R@4") == pytest.approx(own["recall_4"])


@pytest.mark.parametrize("name", ["bm25.res.gz", "bm25.res"])
def test_pyterrier_files(name: str, pyterrier: Any, tmp_path: Path) -> None:
    results, qrels = pyterrier_results(pyterrier)
    with theirs():
        pyterrier.io.write_results(results, str(tmp_path / name))
    expected = from_pyterrier(results, qrels, corpus_size=len(CORPUS))
    pd.testing.assert_frame_equal(read_run(tmp_path / name).frame, expected.run)
    assert read_run(tmp_path / name).notes == ()


def test_pyterrier_experiments_keep_their_runs(pyterrier: Any, tmp_path: Path) -> None:
    results, qrels = pyterrier_results(pyterrier)
    topics = pd.DataFrame({"qid": list(QUERIES), "query": list(QUERIES.values())})
    with theirs():
        table = pyterrier.Experiment(
            [pyterrier.Transformer.from_df(results)],
            topics,
            qrels,
            ["ndcg_cut_4"],
            names=["mine"],
            save_dir=str(tmp_path),
        )
    judged = tmp_path / "qrels.trec"
    judged.write_text("".join(f"{r.qid} 0 {r.docno} {r.label}\n" for r in qrels.itertuples()))
    arguments = [judged, tmp_path / "mine.res.gz", "nDCG@4", "--pool", len(CORPUS)]
    (found,) = report("ir", *arguments)["reports"]
    assert found["score"] == pytest.approx(table["ndcg_cut_4"].iloc[0])
