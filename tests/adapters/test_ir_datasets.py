"""Qrels by the id of a data set: the real ir_datasets, with data that the tests lay down."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from falsify_adapters.adapters.ir_datasets import Collection, load_ir_datasets, open_collection
from falsify_adapters.errors import InputError, MissingExtraError
from falsify_adapters.gate import run_gate
from tests.cli_runs import call, in_subprocess, report, write_qrels, write_run

N = 40
WORDS = [a * 4 + b * 4 for a in "abcde" for b in "wxyz"]


class Subtopic(NamedTuple):
    """As ir_datasets' own TrecSubQrel."""

    query_id: str
    doc_id: str
    relevance: int
    subtopic_id: str


@pytest.fixture
def registered(tmp_path: Path) -> Iterator[str]:
    """A data set of 40 queries and 90 documents that stands in ir_datasets' registry."""
    import ir_datasets

    (tmp_path / "docs.tsv").write_text("".join(f"d{i:03}\ttext {i}\n" for i in range(90)))
    (tmp_path / "queries.tsv").write_text(
        "".join(f"q{i:03}\t{WORDS[i // 2]} {WORDS[i // 2]}\n" for i in range(N))
    )
    write_qrels(tmp_path / "qrels.trec", N)
    made = ir_datasets.create_dataset(
        docs_tsv=str(tmp_path / "docs.tsv"),
        queries_tsv=str(tmp_path / "queries.tsv"),
        qrels_trec=str(tmp_path / "qrels.trec"),
    )
    ir_datasets.registry.register("falsify-toy/test", made)
    yield "falsify-toy/test"
    ir_datasets.registry._registered.pop("falsify-toy/test")


def test_the_id_gives_judgements_and_corpus_size(registered: str, tmp_path: Path) -> None:
    run = write_run(tmp_path / "mine.trec", N)
    evaluation = load_ir_datasets(registered, run, system="mine")
    assert (evaluation.n_queries, evaluation.corpus_size) == (N, 90)
    assert (evaluation.benchmark, evaluation.system) == (registered, "mine")
    assert evaluation.provenance["qrels"]["format"] == "ir_datasets"
    assert evaluation.provenance["run"]["name"] == "mine.trec"
    assert evaluation.notes == ()
    assert load_ir_datasets(f"irds:{registered}", run, corpus_size=500).corpus_size == 500
    in_memory = {f"q{i:03}": {f"d{i:03}": 1.0} for i in range(N)}
    assert run_gate(load_ir_datasets(registered, in_memory), "P@1").score == 1.0


@pytest.mark.parametrize("place", ["irds:falsify-toy/test", "falsify-toy/test"])
def test_the_command_reports_as_it_does_for_the_same_file(
    place: str, registered: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_run(tmp_path / "mine.trec", N)
    monkeypatch.chdir(tmp_path)
    assert registered in place
    (by_id,) = report("ir", place, "mine.trec", status=0)["reports"]
    (by_file,) = report("ir", "qrels.trec", "mine.trec", "--corpus-size", 90, status=0)["reports"]
    assert by_id["benchmark"] == "falsify-toy/test"
    assert by_id["provenance"]["frames"] == by_file["provenance"]["frames"]
    different = {key for key in by_id if by_id[key] != by_file[key]}
    assert different == {"benchmark", "provenance"}


def test_a_file_of_that_name_comes_first(
    registered: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_qrels(tmp_path / registered, 5)
    run = write_run(tmp_path / "mine.trec", 5)
    (found,) = report("ir", registered, run)["reports"]
    assert found["n_queries"] == 5
    (found,) = report("ir", f"irds:{registered}", run)["reports"]
    assert found["n_queries"] == N


def test_texts_of_the_queries_are_at_hand(registered: str, tmp_path: Path) -> None:
    # two queries of the same text: 20 clusters
    run = write_run(tmp_path / "mine.trec", N)
    (found,) = report("ir", registered, run, "--clusters", "auto")["reports"]
    assert found["dependence"]["clusters"]["clusters"] == N // 2
    other = tmp_path / "queries.jsonl"
    rows = [{"_id": f"q{i:03}", "text": f"{i}" * 9, "topic": f"t{i % 8}"} for i in range(N)]
    other.write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ["--queries", other, "--clusters", "topic"]
    (found,) = report("ir", registered, run, *arguments)["reports"]
    assert found["dependence"]["clusters"]["clusters"] == 8


def test_other_fields_of_the_queries_are_columns() -> None:
    import ir_datasets

    class Query(NamedTuple):
        query_id: str
        text: str
        topic: str

    class Queries(ir_datasets.formats.BaseQueries):  # type: ignore[misc]
        def queries_iter(self) -> Iterator[Query]:
            yield Query("q1", "where?", "places")

        def queries_cls(self) -> type[Query]:
            return Query

    collection = Collection("toy", ir_datasets.Dataset(Queries()))
    assert collection.queries.texts == {"q1": "where?"}
    assert collection.queries.column("topic") == {"q1": "places"}


def test_reports_can_be_verified(registered: str, tmp_path: Path) -> None:
    run, made = write_run(tmp_path / "mine.trec", N), tmp_path / "report.json"
    assert call("ir", registered, run, "--json", made, "--quiet").exit_code == 0
    assert json.loads(made.read_text())["call"]["options"]["qrels"] == f"irds:{registered}"
    again = call("verify", made, "--data", tmp_path)
    assert again.exit_code == 0, again.stderr
    # other judgements under the same id
    write_qrels(tmp_path / "qrels.trec", N - 1)
    again = call("verify", made, "--data", tmp_path)
    assert (again.exit_code, "changed since the report: qrels" in again.stderr) == (2, True)


def test_a_plan_is_made_for_the_id_as_for_the_file(registered: str, tmp_path: Path) -> None:
    run, plan = write_run(tmp_path / "mine.trec", N), tmp_path / "plan.toml"
    by_file = call("plan", tmp_path / "qrels.trec", "--out", plan).stdout
    by_id = call("plan", registered, "--out", plan)
    assert (by_id.exit_code, by_id.stdout) == (0, by_file)
    assert "qrels_sha256" in by_file
    made = call("ir", registered, run, "--plan", plan, "--json", tmp_path / "report.json", "-q")
    assert made.exit_code == 0, made.stderr
    assert json.loads((tmp_path / "report.json").read_text())["plan"]["kept"]


def test_what_cannot_be_downloaded_is_a_refusal() -> None:
    import ir_datasets
    from ir_datasets.util import Download, RequestsDownload

    # a port on which nothing listens
    source = Download([RequestsDownload("http://127.0.0.1:9/qrels", tries=1)])
    qrels = ir_datasets.formats.TrecQrels(source, {})
    ir_datasets.registry.register("falsify-toy/far", ir_datasets.Dataset(qrels))
    try:
        result = call("ir", "falsify-toy/far", "run.trec")
    finally:
        ir_datasets.registry._registered.pop("falsify-toy/far")
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr
    assert "the judgements of irds:falsify-toy/far cannot be read" in result.stderr
    assert "ConnectionError" in result.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("irds:beir/nfcorpus", "has no judgements; found: beir/nfcorpus/dev, beir/nfcorpus/test"),
        ("irds:beir/nfcorpos/test", "no data set 'beir/nfcorpos/test'; hint: did you mean"),
        ("irds:", "no data set ''"),
        ("irds:clueweb09/catb/trec-web-2009/diversity", "not one grade for each document"),
        ("beir/no/such", "beir/no/such"),
    ],
)
def test_ids_that_cannot_be_graded(name: str, message: str) -> None:
    result = call("ir", name, "run.trec")
    assert (result.exit_code, message in result.stderr) == (2, True), result.stderr
    assert "Traceback" not in result.stderr


def test_without_ir_datasets_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(MissingExtraError, match=r"falsify-adapters\[ir-datasets\]"):
        open_collection("beir/nfcorpus/test")
    result = call("ir", "irds:beir/nfcorpus/test", "run.trec")
    assert (result.exit_code, "[ir-datasets]" in result.stderr) == (2, True)
    # without the prefix it is taken for a file
    assert "ir-datasets" not in call("ir", "beir/nfcorpus/test", "run.trec").stderr


def test_sizes_are_known_without_the_documents(irds_home: Path) -> None:
    assert open_collection("beir/nfcorpus/test").corpus_size == 3633
    assert open_collection("msmarco-passage/trec-dl-2019/judged").corpus_size == 8841823
    assert not list(irds_home.rglob("corpus*"))


def test_real_judgements_under_their_real_id(data_dir: Path, tmp_path: Path) -> None:
    """NFCorpus, laid where ir_datasets keeps it, against the same file by its path."""
    kept = tmp_path / "home" / "beir" / "nfcorpus" / "test.qrels"
    kept.parent.mkdir(parents=True)
    source = data_dir / "nfcorpus" / "qrels" / "test.tsv"
    shutil.copy(source, kept)
    run = data_dir / "nfcorpus" / "runs" / "bm25.trec"
    environment = {**os.environ, "IR_DATASETS_HOME": str(tmp_path / "home")}
    documents: list[dict[str, Any]] = []
    for arguments in (["beir/nfcorpus/test"], [source, "--corpus-size", "3633"]):
        done = in_subprocess(
            "ir", arguments[0], run, *arguments[1:], "--n-trials", "200", "--json", "-",
            env=environment,
        )  # fmt: skip
        assert done.returncode in (0, 1, 3), done.stderr
        documents.append(json.loads(done.stdout)["reports"][0])
    assert documents[0]["corpus_size"] == 3633
    assert documents[0]["score"] == pytest.approx(0.31771, abs=5e-6)
    assert documents[0]["nulls"] == documents[1]["nulls"]


def test_documents_that_cannot_be_counted_are_a_refusal(tmp_path: Path) -> None:
    import ir_datasets

    write_qrels(tmp_path / "qrels.trec", N)
    made = ir_datasets.create_dataset(
        docs_tsv=str(tmp_path / "absent.tsv"), qrels_trec=str(tmp_path / "qrels.trec")
    )
    collection = Collection("toy", made)
    with pytest.raises(InputError, match=r"documents of irds:toy .* give the number of documents"):
        collection.evaluate(write_run(tmp_path / "run.trec", N))
    assert collection.evaluate(tmp_path / "run.trec", corpus_size=50).corpus_size == 50
