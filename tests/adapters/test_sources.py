"""Logs of other tools: files in the shapes that their documentation states."""

from __future__ import annotations

import gzip
import json
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from falsify_adapters.adapters.pyterrier import from_pyterrier
from falsify_adapters.adapters.ranx import from_ranx
from falsify_adapters.adapters.recommender import from_recommendations
from falsify_adapters.adapters.sentence_transformers import from_sentence_transformers
from falsify_adapters.adapters.sources import SOURCES, load
from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.gate import run_gate
from falsify_adapters.readers import ScoreOrderError, read_qrels, read_run
from tests.cli_runs import call, report

N = 40
#: Question i has document i as its answer; every other system output has it first.
GOLD = {i: i for i in range(N)}
FOUND = {i: [i if i % 2 == 0 else 100 + i, 200 + i] for i in range(N)}


def jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def is_half_right(evaluation: Evaluation) -> bool:
    assert evaluation.n_queries == N
    return run_gate(evaluation, "P@1").score == 0.5


def falsify_eval_rows() -> list[dict[str, Any]]:
    return [{"retrieved": FOUND[i], "gold": GOLD[i]} for i in range(N)]


def llamaindex_rows() -> list[dict[str, Any]]:
    return [
        {"query": f"what is {i}?", "expected_ids": [f"n{i}"],
         "retrieved_ids": [f"n{doc}" for doc in FOUND[i]]}
        for i in range(N)
    ]  # fmt: skip


def ragas_rows() -> list[dict[str, Any]]:
    return [
        {"user_input": f"what is {i}?", "retrieved_contexts": [f"text {doc}" for doc in FOUND[i]],
         "reference_contexts": [f"text {i}"], "response": "x", "reference": "y"}
        for i in range(N)
    ]  # fmt: skip


def ragas_rows_with_ids() -> list[dict[str, Any]]:
    return [
        {**row, "retrieved_context_ids": FOUND[i], "reference_context_ids": [GOLD[i]]}
        for i, row in enumerate(ragas_rows())
    ]


WRITTEN = {
    "falsify-eval": falsify_eval_rows,
    "llamaindex": llamaindex_rows,
    "ragas": ragas_rows,
    "ragas-ids": ragas_rows_with_ids,
}


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "tsv", "parquet", "jsonl.gz"])
@pytest.mark.parametrize("kind", WRITTEN)
def test_each_source_in_each_form_is_recognised(kind: str, form: str, tmp_path: Path) -> None:
    rows, path = WRITTEN[kind](), tmp_path / f"log.{form}"
    if form == "jsonl":
        jsonl(path, rows)
    elif form == "jsonl.gz":
        path.write_bytes(gzip.compress(jsonl(tmp_path / "plain", rows).read_bytes()))
    elif form == "json":
        path.write_text(json.dumps(rows, indent=2))
    elif form == "parquet":
        pd.DataFrame(rows).to_parquet(path)
    else:  # pandas writes lists as Python literals
        pd.DataFrame(rows).to_csv(path, index=False, sep="," if form == "csv" else "\t")
    evaluation = load(path, corpus_size=1000)
    source = kind.removesuffix("-ids")
    assert evaluation.provenance["source"] == source
    assert [note.code for note in evaluation.notes] == ["W-SOURCE-GUESSED"]
    assert is_half_right(evaluation)
    assert is_half_right(load(path, source, corpus_size=1000))


def test_lists_printed_from_numpy_are_refused_instead_of_glued_together(tmp_path: Path) -> None:
    rows = ragas_rows()
    for row in rows:
        row["retrieved_contexts"] = str(np.array(row["retrieved_contexts"]))
    path = tmp_path / "samples.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    with pytest.raises(InputError, match="has no commas"):
        load(path, corpus_size=1000)


def test_ragas_takes_texts_where_some_samples_have_no_ids(tmp_path: Path) -> None:
    rows = ragas_rows_with_ids()
    rows[3]["retrieved_context_ids"] = None
    evaluation = load(jsonl(tmp_path / "x.jsonl", rows), corpus_size=1000)
    assert all(str(doc).startswith("sha256:") for doc in evaluation.run["doc_id"])
    assert is_half_right(evaluation)
    del rows[5]["reference_contexts"]
    with pytest.raises(InputError, match="record 6 has neither ids nor texts"):
        load(jsonl(tmp_path / "y.jsonl", rows), corpus_size=1000)


def test_files_of_no_source_are_refused_by_their_keys(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="fits no known source; found: the keys question, answer"):
        load(jsonl(tmp_path / "x.jsonl", [{"question": "?", "answer": "!"}]))
    both = falsify_eval_rows()[0] | ragas_rows()[0]
    with pytest.raises(InputError, match="fits falsify-eval and ragas"):
        load(jsonl(tmp_path / "y.jsonl", [both]))
    with pytest.raises(UsageError, match="one of elasticsearch, falsify-eval"):
        load(jsonl(tmp_path / "x.jsonl", [both]), "nonsense")
    (tmp_path / "empty.csv").write_text("retrieved,gold\n")
    with pytest.raises(InputError, match="holds no records"):
        load(tmp_path / "empty.csv")


def elasticsearch_files(folder: Path, **change: Any) -> tuple[Path, Path]:
    """Write a request and the response to it; the answers of odd queries are not returned."""
    details = {
        f"q{i}": {
            "metric_score": float(i % 2 == 0),
            "unrated_docs": [],
            "hits": [
                {"hit": {"_index": "docs", "_id": str(doc), "_score": 1.0},
                 "rating": 1 if doc == i else None}
                for doc in FOUND[i]
            ],
        }
        for i in range(N)
    }  # fmt: skip
    requests = [
        {"id": f"q{i}", "request": {"query": {"match": {"text": "x"}}},
         "ratings": [{"_index": "docs", "_id": str(i), "rating": 1}]}
        for i in range(N)
    ]  # fmt: skip
    request, response = folder / "request.json", folder / "response.json"
    request.write_text(json.dumps({"requests": requests, "metric": {"precision": {"k": 1}}}))
    body = {"metric_score": 0.5, "details": details, "failures": {}, **change}
    response.write_text(json.dumps(body, indent=1))
    return request, response


def test_elasticsearch_takes_the_gold_from_the_request(tmp_path: Path) -> None:
    request, response = elasticsearch_files(tmp_path)
    evaluation = load(response, "elasticsearch", gold=request, corpus_size=1000)
    assert is_half_right(evaluation)
    # what was missed counts: the response alone would have said 1
    assert run_gate(evaluation, "R@10").score == 0.5
    with pytest.raises(UsageError, match="takes a gold file"):
        load(response, "elasticsearch")
    with pytest.raises(InputError, match="is not a rank_eval request"):
        load(response, "elasticsearch", gold=response)


def test_elasticsearch_queries_that_failed_count_as_0(tmp_path: Path) -> None:
    request, response = elasticsearch_files(tmp_path)
    body = json.loads(response.read_text())
    del body["details"]["q0"]
    response.write_text(json.dumps(body))
    evaluation = load(response, "elasticsearch", gold=request, corpus_size=1000)
    assert "W-MISSING-QUERIES" in {note.code for note in evaluation.notes}
    assert run_gate(evaluation, "P@1").score == pytest.approx(19 / 40)


def test_elasticsearch_request_and_response_must_belong_together(tmp_path: Path) -> None:
    request, response = elasticsearch_files(tmp_path)
    other = json.loads(request.read_text())
    other["requests"][2]["ratings"][0]["rating"] = 3
    request.write_text(json.dumps(other))
    with pytest.raises(InputError, match="'q2': document docs/2 is rated otherwise"):
        load(response, "elasticsearch", gold=request)
    other["requests"] = other["requests"][3:]
    request.write_text(json.dumps(other))
    with pytest.raises(InputError, match="does not ask; found: q0, q1, q2"):
        load(response, "elasticsearch", gold=request)


def pyterrier_frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    rows = [
        {"qid": str(i), "docid": 5, "docno": f"d{doc}", "rank": rank, "score": 10.0 - rank}
        for i, docs in FOUND.items()
        for rank, doc in enumerate(docs)
    ]
    qrels = [{"qid": str(i), "docno": f"d{doc}", "label": 1} for i, doc in GOLD.items()]
    return pd.DataFrame(rows), pd.DataFrame(qrels)


def test_pyterrier_frames() -> None:
    results, qrels = pyterrier_frames()
    before = results.copy()
    assert is_half_right(from_pyterrier(results, qrels, corpus_size=1000))
    assert is_half_right(from_pyterrier(results.set_index("qid"), qrels, corpus_size=1000))
    pd.testing.assert_frame_equal(results, before)
    with pytest.raises(ScoreOrderError):
        from_pyterrier(results.assign(score=-results["score"]), qrels)
    with pytest.raises(InputError, match="results frame lacks the column docno"):
        from_pyterrier(results.drop(columns="docno"), qrels)


class Ranx:
    """Stands for ranx.Run and ranx.Qrels, which need numba: the two methods that we use."""

    def __init__(self, data: dict[str, dict[str, Any]], name: str | None = None) -> None:
        self.data, self.name = data, name

    def to_dict(self) -> dict[str, dict[str, Any]]:
        return self.data

    def to_dataframe(self) -> pd.DataFrame:
        rows = [(q, d, s) for q, docs in self.data.items() for d, s in docs.items()]
        return pd.DataFrame(rows, columns=["q_id", "doc_id", "score"])


def ranx_objects() -> tuple[Ranx, Ranx]:
    run = {f"q{i}": {f"d{doc}": 1.0 - k / 9 for k, doc in enumerate(d)} for i, d in FOUND.items()}
    return Ranx(run, "mine"), Ranx({f"q{i}": {f"d{doc}": 1} for i, doc in GOLD.items()})


def test_ranx_objects_frames_and_dicts() -> None:
    run, qrels = ranx_objects()
    evaluation = from_ranx(run, qrels, corpus_size=1000)
    assert (evaluation.system, is_half_right(evaluation)) == ("mine", True)
    frames = from_ranx(run.to_dataframe(), qrels.to_dataframe(), corpus_size=1000)
    pd.testing.assert_frame_equal(frames.run, evaluation.run)
    assert is_half_right(from_ranx(run.to_dict(), qrels.to_dict(), corpus_size=1000))
    with pytest.raises(InputError, match="no ranx object; found: int"):
        from_ranx(7, qrels)


def test_files_that_ranx_saves(tmp_path: Path) -> None:
    cbor2, lz4 = pytest.importorskip("cbor2"), pytest.importorskip("lz4.frame")
    run, qrels = ranx_objects()
    run.to_dataframe().to_parquet(tmp_path / "run.parquet", index=False)
    qrels.to_dataframe().to_parquet(tmp_path / "qrels.parquet", index=False)
    with lz4.open(tmp_path / "run.lz4", "wb") as file:  # as ranx 0.3.21 does: lz4 inside lz4
        file.write(lz4.compress(cbor2.dumps(run.to_dict()), compression_level=16))
    (tmp_path / "run.json").write_text(json.dumps(run.to_dict()))
    gold = read_qrels(tmp_path / "qrels.parquet").frame
    for name in ("run.parquet", "run.lz4", "run.json"):
        frame = read_run(tmp_path / name).frame
        assert is_half_right(Evaluation.create(frame, gold, corpus_size=1000)), name
    with lz4.open(tmp_path / "bad.lz4", "wb") as file:
        file.write(lz4.compress(b"q1 Q0 d1 1 2.5 mine\n"))
    with pytest.raises(InputError, match="compressed twice"):
        read_run(tmp_path / "bad.lz4")


def test_ranx_lz4_without_the_extra_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lz4 = pytest.importorskip("lz4.frame")
    with lz4.open(tmp_path / "run.lz4", "wb") as file:
        file.write(lz4.compress(b"\xa0"))
    monkeypatch.setitem(sys.modules, "cbor2", None)
    result = call("ir", tmp_path / "run.lz4", tmp_path / "run.lz4")
    assert (result.exit_code, "falsify-adapters[lz4]" in result.stderr) == (2, True)


def sentence_transformers_rows(prefix: str | None = None) -> list[dict[str, Any]]:
    """Rows of a predictions file; ids are whole numbers unless they get a prefix."""

    def results(docs: list[int]) -> list[dict[str, Any]]:
        ids = docs if prefix is None else [f"{prefix}{doc}" for doc in docs]
        return [{"corpus_id": doc, "score": 0.9 - k / 9} for k, doc in enumerate(ids)]

    return [{"query_id": i, "query": "?", "results": results(d)} for i, d in FOUND.items()]


def test_sentence_transformers_predictions(tmp_path: Path) -> None:
    rows = sentence_transformers_rows()
    path = jsonl(tmp_path / "Information-Retrieval_evaluation_predictions_cosine.jsonl", rows)
    relevant = {i: {doc} for i, doc in GOLD.items()}
    corpus = dict.fromkeys(range(300), "text")
    evaluation = from_sentence_transformers(path, relevant, corpus)
    assert (evaluation.corpus_size, is_half_right(evaluation)) == (300, True)


def recommendations() -> tuple[pd.DataFrame, pd.DataFrame]:
    top_k = [(i, doc, 1.0 - k / 9) for i, docs in FOUND.items() for k, doc in enumerate(docs)]
    # a user may have met an item twice
    held_out = [*GOLD.items(), *GOLD.items()]
    return (
        pd.DataFrame(top_k, columns=["user_id", "item_id", "score"]),
        pd.DataFrame(held_out, columns=["user_id", "item_id"]),
    )


def test_recommended_items() -> None:
    top_k, held_out = recommendations()
    assert is_half_right(from_recommendations(top_k, held_out, corpus_size=1000))
    theirs = {"query_id": "u", "doc_id": "i", "score": "prediction", "relevance": "stars"}
    named = {"user_id": "u", "item_id": "i", "score": "prediction"}
    stars = held_out.rename(columns=named).drop_duplicates().assign(stars=4)
    evaluation = from_recommendations(top_k.rename(columns=named), stars, theirs, corpus_size=1000)
    assert set(evaluation.qrels["relevance"]) == {4}
    with pytest.raises(InputError, match="recommended frame lacks the column u"):
        from_recommendations(top_k, stars, theirs)


def test_the_command_for_sources_of_two_files(tmp_path: Path) -> None:
    request, response = elasticsearch_files(tmp_path)
    arguments = ["--from", "elasticsearch", request, response, "P@1", "--corpus-size", "1000"]
    (found,) = report("ir", *arguments, status=0)["reports"]
    assert (found["system"], found["score"]) == ("response", 0.5)
    top_k, held_out = recommendations()
    top_k.to_csv(tmp_path / "top.csv", index=False)
    held_out.to_csv(tmp_path / "held.csv", index=False)
    arguments = ["--from", "recommender", tmp_path / "held.csv", tmp_path / "top.csv", "P@1"]
    (found,) = report("ir", *arguments, "--pool", "1000", status=0)["reports"]
    assert found["score"] == 0.5


def test_the_command_takes_several_logs_and_goes_on_after_a_bad_one(tmp_path: Path) -> None:
    paths = [jsonl(tmp_path / f"{name}.jsonl", WRITTEN[name]()) for name in ("llamaindex", "ragas")]
    bad = jsonl(tmp_path / "bad.jsonl", [{"x": 1}])
    document = report("ir", "--from", "auto", *paths, bad, "P@1", "R@5", "--pool", 1000, status=2)
    reports = document["reports"]
    assert [(r["system"], r["measure"]) for r in reports if r["role"] == "run"][:2] == [
        ("llamaindex", "P@1"),
        ("llamaindex", "R@5"),
    ]
    assert {r["system"] for r in reports} >= {"llamaindex", "ragas"}


def test_standard_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = jsonl(tmp_path / "x", llamaindex_rows()).read_bytes()
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(data)))
    evaluation = load("-", corpus_size=1000)
    assert is_half_right(evaluation)


def test_a_guess_is_an_input_warning_that_strict_refuses(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "log.jsonl", llamaindex_rows())
    arguments = [path, "P@1", "--pool", "1000", "--strict"]
    guessed = call("ir", "--from", "auto", *arguments)
    assert (guessed.exit_code, "W-SOURCE-GUESSED" in guessed.stderr) == (2, True)
    assert call("ir", "--from", "llamaindex", *arguments).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "nonsense", "log"], "unknown source"),
        (["--from", "elasticsearch", "log"], "takes two files"),
        (["--from", "auto", "log", "--chunks", "x"], "fits no document id"),
        (["--from", "auto", "log", "--score-order", "ascending"], "log has no column of ranks"),
        (["--from", "auto", "log", "--rank-from-column"], "--rank-from-column goes with QRELS"),
        (["--from", "auto", "log", "--pool", "0"], "--pool must be at least 1"),
        (["--from", "auto", "log", "--pool", "9", "--corpus-size", "9"], "exclude each other"),
        (["log"], "a run is missing after the qrels"),
        (["log", "log", "--choice-score", "raw"], "--choice-score goes with"),
        (["--from", "auto", "log", "--choice-score", "raw"], "holds no choices to rank"),
        (["--from", "auto", "log", "Judged@10"], "Judged"),
    ],
)
def test_arguments_that_make_no_sense(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    jsonl(Path("log"), llamaindex_rows())
    result = call("ir", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_an_unknown_source_is_answered_with_all_names() -> None:
    result = call("ir", "--from", "?", "log")
    assert (result.exit_code, f"one of {', '.join(SOURCES)}" in result.stderr) == (2, True)
