"""Folders, names and loaders' objects become data sets; what is wrong with them is said."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from falsify_adapters.adapters.beir import (
    Dataset,
    gate_beir,
    load_beir,
    open_dataset,
    open_datasets,
    run_of,
)
from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.measures import parse_measure, query_scores

CORPUS = {
    "d1": {"title": "Cats", "text": "sleep most of the day"},
    "d2": {"title": "", "text": "dogs run"},
    "d3": {"title": "Birds", "text": "fly and sing"},
}
QUERIES = {"q1": "sleeping cats", "q2": "running dogs", "q3": "of another split"}
QRELS = {"q1": {"d1": 2}, "q2": {"d2": 1}}


def write_dataset(
    folder: Path, splits: tuple[str, ...] = ("test",), corpus: dict | None = CORPUS
) -> Path:
    (folder / "qrels").mkdir(parents=True)
    if corpus is not None:
        lines = [json.dumps({"_id": key, **value}) for key, value in corpus.items()]
        (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    lines = [json.dumps({"_id": key, "text": text}) for key, text in QUERIES.items()]
    (folder / "queries.jsonl").write_text("\n".join(lines) + "\n")
    rows = [f"{q}\t{d}\t{grade}" for q, found in QRELS.items() for d, grade in found.items()]
    for split in splits:
        (folder / "qrels" / f"{split}.tsv").write_text(
            "\n".join(["query-id\tcorpus-id\tscore", *rows]) + "\n"
        )
    return folder


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keep the tests away from the user's cache and data sets."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setattr("falsify_adapters.download.cache_folder", lambda: folder)
    monkeypatch.delenv("FALSIFY_DATA_DIR", raising=False)
    monkeypatch.delenv("FALSIFY_BEIR_URL", raising=False)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "mine")


def test_a_folder_becomes_a_data_set(folder: Path) -> None:
    dataset = open_dataset(folder)
    assert (dataset.name, dataset.split, dataset.subset) == ("mine", "test", None)
    assert dataset.corpus_size == 3
    assert dataset.corpus_ids == {"d1", "d2", "d3"}
    assert dataset.queries() == {"q1": "sleeping cats", "q2": "running dogs"}
    assert [(d.doc_id, d.content) for d in dataset.documents()] == [
        ("d1", "Cats sleep most of the day"),
        ("d2", " dogs run"),
        ("d3", "Birds fly and sing"),
    ]
    assert dataset.provenance["qrels"]["name"] == "test.tsv"


def test_without_a_run_bm25_is_computed_and_says_so(folder: Path) -> None:
    evaluation = load_beir(folder)
    assert evaluation.system == "bm25"
    assert evaluation.run[["query_id", "doc_id"]].astype(str).to_numpy().tolist() == [
        ["q1", "d1"],
        ["q2", "d2"],
    ]
    assert evaluation.provenance["run"] == {"computed": "bm25", "k": 100, "k1": 0.9, "b": 0.4}
    assert (evaluation.benchmark, evaluation.split) == ("mine", "test")


def test_bm25_keeps_its_index_in_the_cache(folder: Path, cache: Path) -> None:
    first = load_beir(folder)
    (index,) = (cache / "bm25").iterdir()
    before = {path.name: path.stat().st_mtime_ns for path in index.iterdir()}
    second = load_beir(str(folder))
    assert first.run.equals(second.run)
    assert {path.name: path.stat().st_mtime_ns for path in index.iterdir()} == before
    with (folder / "corpus.jsonl").open("a") as file:
        file.write('{"_id": "d4", "title": "Cats", "text": "cats sleeping"}\n')
    assert load_beir(folder).run["doc_id"].tolist()[0] == "d4"


def test_bm25_leaves_out_a_querys_own_document_and_keeps_its_depth() -> None:
    corpus = {f"q{i}": {"text": "cats " * i} for i in range(1, 200)}
    qrels = {"q1": {"q2": 1}, "q5": {"q6": 1}}
    queries = {"q1": "cats", "q5": "cats"}
    evaluation = load_beir((corpus, queries, qrels))
    assert evaluation.run.groupby("query_id", observed=True).size().tolist() == [100, 100]
    assert not (
        evaluation.run["query_id"].astype(str) == evaluation.run["doc_id"].astype(str)
    ).any()
    kept = load_beir((corpus, queries, qrels), keep_self=True)
    assert len(kept.run) == 200


def test_a_given_corpus_size_saves_reading_the_corpus(folder: Path) -> None:
    (folder / "corpus.jsonl").write_text("not read")
    evaluation = load_beir(folder, {"q1": {"d1": 1.0}}, corpus_size=50)
    assert (evaluation.corpus_size, evaluation.corpus_size_source) == (50, "given")


def test_a_folder_without_a_corpus_can_be_graded_but_not_searched(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "bare", corpus=None)
    evaluation = load_beir(folder, {"q1": {"d1": 1.0, "d9": 0.5}})
    assert (evaluation.corpus_size, evaluation.corpus_size_source) == (3, "estimated")
    with pytest.raises(InputError, match=r"bare has no corpus\.jsonl.*queries\.jsonl"):
        load_beir(folder)


def test_top_k_is_cut_after_the_removal_of_self_matches(tmp_path: Path) -> None:
    run = tmp_path / "run.trec"
    run.write_text("d1 Q0 d1 1 3 x\nd1 Q0 d2 2 2 x\nd1 Q0 d3 3 1 x\n")
    evaluation = load_beir((CORPUS, {}, {"d1": {"d2": 1}}), run, top_k=1)
    assert evaluation.run["doc_id"].tolist() == ["d2"]


def test_top_k_is_cut_after_the_removal_of_excluded_documents(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "run.trec"
    run.write_text("q1 Q0 d1 1 3 x\nq1 Q0 d2 2 2 x\nq1 Q0 d3 3 1 x\n")
    exclude = pd.DataFrame({"query_id": ["q1", "q1"], "doc_id": ["d1", "d2"]})
    evaluation = open_dataset(folder).evaluate(run, top_k=1, exclude=exclude)
    assert evaluation.run["doc_id"].tolist() == ["d3"]


def test_packed_files_with_a_byte_order_mark_are_read(folder: Path) -> None:
    text = (folder / "corpus.jsonl").read_text()
    (folder / "corpus.jsonl").unlink()
    with gzip.open(folder / "corpus.jsonl.gz", "wb") as file:
        file.write(b"\xef\xbb\xbf" + text.replace("\n", "\r\n\n").encode())
    assert open_dataset(folder).corpus_size == 3


def test_whole_number_ids_are_text(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "numbers")
    (folder / "corpus.jsonl").write_text('{"_id": 1, "title": null, "text": "a"}\n{"_id": "2"}\n')
    assert open_dataset(folder).corpus_ids == {"1", "2"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"_id": "d1"', r"corpus\.jsonl, line 2 is not JSON"),
        ('["d1"]', r"line 2 is not a JSON object"),
        ('{"title": "no id"}', r"line 2 has no _id"),
        ('{"_id": ""}', r"line 2 has no _id"),
        ('{"_id": 1.5}', r"line 2 has no _id"),
        ('{"_id": true}', r"line 2 has no _id"),
        ('{"_id": "\\ud800"}', r"half a character"),
        ('{"_id": "d1"}', r"holds a document id twice.*'d1'"),
        ("\udcff", r"corpus\.jsonl, line 2 is not valid UTF-8"),
    ],
)
def test_a_bad_line_of_the_corpus_is_named(tmp_path: Path, line: str, message: str) -> None:
    folder = write_dataset(tmp_path / "mine")
    content = f'{{"_id": "d1"}}\n{line}\n'.encode(errors="surrogateescape")
    (folder / "corpus.jsonl").write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_beir(folder, {"q1": {"d1": 1.0}})


def test_text_that_is_not_text_is_named(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "mine")
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "text": ["a"]}\n')
    with pytest.raises(InputError, match=r"line 1: text is not text.*\['a'\]"):
        load_beir(folder)


def test_a_cut_off_gzip_is_named(folder: Path) -> None:
    packed = gzip.compress((folder / "corpus.jsonl").read_bytes())
    (folder / "corpus.jsonl").write_bytes(packed[:-12])
    with pytest.raises(InputError, match=r"corpus\.jsonl cannot be read"):
        load_beir(folder, {"q1": {"d1": 1.0}})


def test_an_empty_corpus_is_refused(folder: Path) -> None:
    (folder / "corpus.jsonl").write_text("\n")
    with pytest.raises(InputError, match="the corpus of mine is empty"):
        load_beir(folder, {"q1": {"d1": 1.0}})


def test_queries_of_another_data_set_are_refused(folder: Path) -> None:
    (folder / "queries.jsonl").write_text('{"_id": "other", "text": "cats"}\n')
    with pytest.raises(InputError, match=r"no judged query of mine has a text.*q1, q2"):
        load_beir(folder)


def test_a_run_over_another_corpus_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="does not hold"):
        load_beir(folder, {"q1": {"other": 1.0}})


def test_the_split_is_test_but_dev_for_msmarco(tmp_path: Path) -> None:
    write_dataset(tmp_path / "msmarco", ("train", "dev", "test"))
    assert open_dataset("msmarco", data_dir=tmp_path).split == "dev"
    assert open_dataset(tmp_path / "msmarco").split == "dev"
    assert open_dataset("msmarco", data_dir=tmp_path, split="test").split == "test"


def test_a_split_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "mine", ("train", "dev"))
    with pytest.raises(InputError, match="split test; found: splits dev, train; hint: --split dev"):
        open_dataset(folder)


def test_names_are_looked_for_in_order(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, n_documents in (("given", 1), ("env", 2), ("cache", 3)):
        parent = cache / "datasets" if place == "cache" else tmp_path / place
        corpus = dict(list(CORPUS.items())[:n_documents])
        write_dataset(parent / "webis-touche2020", corpus=corpus)
    monkeypatch.setenv("FALSIFY_DATA_DIR", str(tmp_path / "env"))
    options = {"offline": True}
    assert open_dataset("touche", data_dir=tmp_path / "given", **options).corpus_size == 1
    assert open_dataset("touche", data_dir=tmp_path / "nowhere", **options).corpus_size == 2
    assert open_dataset("Webis-Touche2020", **options).corpus_size == 2
    monkeypatch.delenv("FALSIFY_DATA_DIR")
    found = open_dataset("Touche2020", **options)
    assert (found.name, found.corpus_size) == ("webis-touche2020", 3)


def test_a_folder_of_that_name_here_comes_before_the_cache(cache: Path) -> None:
    write_dataset(cache / "datasets" / "nfcorpus")
    write_dataset(cache / "nfcorpus", corpus={"d1": {}})
    assert open_dataset("nfcorpus").corpus_size == 1


def test_a_set_of_ones_own_is_found_by_its_name_too(tmp_path: Path) -> None:
    write_dataset(tmp_path / "Our_Set")
    assert open_dataset("Our_Set", data_dir=tmp_path).name == "Our_Set"


def test_a_misspelt_name_gets_a_hint(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean scifact"):
        open_dataset("scifcat", data_dir=tmp_path)
    with pytest.raises(UsageError, match=r"BEIR's names are msmarco, .*scifact; or a folder"):
        open_dataset("qwertz")
    with pytest.raises(UsageError, match="no data set or folder some/where"):
        open_dataset("some/where")
    with pytest.raises(UsageError, match="no data set or folder"):
        open_dataset(tmp_path / "absent")


def test_a_folder_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(InputError, match=r"BEIR's layout.*found: notes\.txt"):
        open_dataset(tmp_path)


def test_offline_names_what_is_missing(tmp_path: Path) -> None:
    for options in ({"offline": True}, {"download": False}):
        with pytest.raises(InputError, match="scifact is not at hand"):
            open_dataset("scifact", data_dir=tmp_path, **options)


def test_the_sample_comes_with_the_package() -> None:
    dataset = open_dataset("sample", offline=True)
    assert (dataset.name, dataset.split) == ("sample", "test")
    assert dataset.corpus_size is not None
    assert dataset.corpus_size >= 150
    assert len(dataset.queries()) >= 60


@pytest.mark.parametrize("source", [42, None, ("corpus", "queries"), {"d1": {}}])
def test_other_objects_are_refused(source: object) -> None:
    with pytest.raises(InputError, match="not understood"):
        load_beir(source)


@pytest.mark.parametrize("corpus", [42, "text", ["text"]])
def test_a_corpus_of_another_form_is_refused(corpus: object) -> None:
    with pytest.raises(InputError, match=r"not understood|not a mapping"):
        load_beir((corpus, {}, QRELS), {"q1": {"d1": 1.0}})


def test_a_data_set_stands_for_itself(folder: Path) -> None:
    dataset = open_dataset(folder)
    assert open_datasets(dataset) == [dataset]
    assert open_datasets(dataset, split="test") == [dataset]
    with pytest.raises(UsageError, match="another split; found: test"):
        open_dataset(dataset, split="dev")
    assert isinstance(dataset, Dataset)


def test_gate_beir_grades_a_results_dict() -> None:
    docs = [f"d{i}" for i in range(500)]
    qrels = {f"q{i}": {docs[i]: 1} for i in range(150)}
    good = {q: {next(iter(gold)): 1.0} for q, gold in qrels.items()}
    blind = {q: {doc: float(i) for i, doc in enumerate(docs[:20])} for q in qrels}
    assert gate_beir(good, qrels, corpus_size=500, measure="R@10").verdict == "PASS"
    assert gate_beir(blind, qrels, corpus_size=500, measure="R@10").verdict == "FAIL"
    assert gate_beir(good, qrels, measure="P@1").corpus_size == 150


#: Query ids overlap between the forums: query, its relevant document, what the run returns.
FORUMS = {
    "android": [("1", "a1", "a1 a9"), ("2", "a2", "a9 a2")],
    "tex": [("1", "t1", "x t1"), ("2", "t2", "x"), ("3", "t3", "x y t3"), ("4", "t4", "x")],
    "unix": [("1", "u1", "u1")],
}
#: By hand: ranks 1 and 2; ranks 2 and 3 and two misses; rank 1.
FORUM_NDCG = {"android": 0.815465, "tex": 0.282732, "unix": 1.0}


@pytest.fixture
def forums(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    for forum, queries in FORUMS.items():
        qrels = tmp_path / "cqadupstack" / forum / "qrels"
        qrels.mkdir(parents=True)
        rows = [f"{query}\t{gold}\t1\n" for query, gold, _ in queries]
        (qrels / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))
        (tmp_path / "runs" / f"{forum}.trec").write_text(
            "".join(
                f"{query} Q0 {doc} {rank} {10 - rank} t\n"
                for query, _, found in queries
                for rank, doc in enumerate(found.split(), start=1)
            )
        )
    return tmp_path


def test_the_forums_of_cqadupstack_are_scored_one_by_one(forums: Path) -> None:
    datasets = open_datasets(forums / "cqadupstack")
    assert [dataset.title for dataset in datasets] == [
        "cqadupstack/android",
        "cqadupstack/tex",
        "cqadupstack/unix",
    ]
    measure = parse_measure("nDCG@10")
    scores = {}
    for dataset in datasets:
        evaluation = dataset.evaluate(run_of(dataset, forums / "runs"))
        assert (evaluation.benchmark, evaluation.system) == ("cqadupstack", "runs")
        scores[dataset.subset] = query_scores(evaluation.run, evaluation.qrels, measure)[0].mean()
    assert scores == pytest.approx(FORUM_NDCG, abs=1e-6)
    assert np.mean(list(scores.values())) == pytest.approx(0.699399, abs=1e-6)


def test_one_forum_can_be_named(forums: Path) -> None:
    by_name = open_dataset("cqadupstack/tex", data_dir=forums)
    by_path = open_dataset(forums / "cqadupstack" / "tex")
    for dataset in (by_name, by_path):
        assert (dataset.name, dataset.subset) == ("cqadupstack", "tex")
        assert len(dataset.qrels) == 4
    with pytest.raises(UsageError, match="each scored by itself"):
        open_dataset("cqadupstack", data_dir=forums)


def test_a_forum_is_known_from_inside_its_folder(
    forums: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(forums / "cqadupstack")
    assert open_dataset("tex").title == "cqadupstack/tex"
    monkeypatch.chdir("tex")
    assert open_dataset(".").title == "cqadupstack/tex"


def test_a_forum_that_does_not_exist_is_refused_without_a_download(forums: Path) -> None:
    with pytest.raises(UsageError, match=r"no part texx.*android, tex, unix.*cqadupstack/tex\?"):
        open_dataset("cqadupstack/texx", data_dir=forums)
    write_dataset(forums / "nfcorpus")
    with pytest.raises(UsageError, match="nfcorpus has no part tex; found: one benchmark"):
        open_dataset("nfcorpus/tex", data_dir=forums)


def test_a_folder_of_runs_must_hold_one_for_each_forum(forums: Path) -> None:
    (dataset,) = open_datasets(forums / "cqadupstack" / "tex")
    assert run_of(dataset, forums / "runs" / "unix.trec").name == "unix.trec"
    (forums / "runs" / "tex.json").write_text("{}")
    with pytest.raises(InputError, match=r"one run for cqadupstack/tex.*tex\.json, tex\.trec"):
        run_of(dataset, forums / "runs")
    (forums / "runs" / "tex.json").unlink()
    (forums / "runs" / "tex.trec").rename(forums / "runs" / "tex-bm25.trec")
    with pytest.raises(InputError, match=r"one run for cqadupstack/tex"):
        run_of(dataset, forums / "runs")
