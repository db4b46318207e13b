"""BM25 against the formula, the reference run and bm25s; controls against brute force."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import weakref
from collections import Counter
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import ClassVar

import bm25s
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsify_adapters import baselines
from falsify_adapters.adapters.beir import load_beir, open_dataset
from falsify_adapters.baselines import bm25, constant, controls, oracle, popularity
from falsify_adapters.bm25_index import BM25Index, Document, cached_index
from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import as_qrels, as_run
from falsify_adapters.gate import run_gate
from falsify_adapters.measures import parse_measure, query_scores
from falsify_adapters.readers import read_run
from falsify_adapters.results import GateConfig

# words that neither the stop list nor the stemmer touches
WORDS = ["mango", "papaya", "kiwi", "lemon", "melon", "fig"]
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
corpora = st.lists(texts, min_size=1, max_size=8).map(
    lambda contents: {f"d{i}": text for i, text in enumerate(contents)}
)
#: Judgements of a few queries over a few documents, with at least one that is relevant.
judgements = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3"]),
    st.dictionaries(st.sampled_from("abcde"), st.integers(-1, 3), min_size=1),
    min_size=1,
).filter(lambda qrels: any(grade > 0 for found in qrels.values() for grade in found.values()))


def rows(run: pd.DataFrame) -> list[tuple[str, str]]:
    return list(zip(run["query_id"].astype(str), run["doc_id"].astype(str), strict=True))


def mean_score(run: pd.DataFrame, qrels: object, measure: str) -> float:
    return float(query_scores(run, as_qrels(qrels), parse_measure(measure))[0].mean())


def scores_of_orders(
    orders: list[tuple[str, ...]], qrels: dict[str, dict[str, int]], measure: str
) -> np.ndarray:
    """Score every order of documents for every query, shape (orders, queries)."""
    queries = sorted(qrels)
    names = [
        (f"{i:05d}|{query}", query, order) for i, order in enumerate(orders) for query in queries
    ]
    run = {name: {doc: -float(r) for r, doc in enumerate(order)} for name, _, order in names}
    many = {name: qrels[query] for name, query, _ in names}
    (scores,) = query_scores(as_run(run), as_qrels(many), parse_measure(measure))
    return scores.reshape(len(orders), len(queries))


def lucene_bm25(corpus: dict[str, str], query: str, k1: float, b: float) -> dict[str, float]:
    """Score every document by the textbook formula."""
    documents = {doc_id: re.findall(r"\w\w+", text.lower()) for doc_id, text in corpus.items()}
    mean_length = sum(map(len, documents.values())) / len(documents)
    scores = dict.fromkeys(documents, 0.0)
    for word in query.split():
        n_with_word = sum(word in words for words in documents.values())
        idf = math.log(1 + (len(documents) - n_with_word + 0.5) / (n_with_word + 0.5))
        for doc_id, words in documents.items():
            tf = words.count(word)
            if tf == 0:
                continue
            scores[doc_id] += idf * tf / (tf + k1 * (1 - b + b * len(words) / mean_length))
    return {doc_id: score for doc_id, score in scores.items() if score > 0}


class TestBM25:
    @given(corpora, texts, st.sampled_from([(0.9, 0.4), (1.5, 0.75), (0.0, 0.0), (1.2, 1.0)]))
    @settings(max_examples=60, deadline=None)
    def test_scores_follow_the_formula(
        self, corpus: dict[str, str], query: str, parameters: tuple[float, float]
    ) -> None:
        k1, b = parameters
        expected = lucene_bm25(corpus, query, k1, b)
        if not expected:
            with pytest.raises(InputError, match="BM25 finds nothing"):
                bm25(corpus, {"q": query}, k1=k1, b=b)
            return
        run = bm25(corpus, {"q": query}, k1=k1, b=b)
        found = dict(zip(run["doc_id"].astype(str), run["score"], strict=True))
        assert found == pytest.approx(expected, rel=1e-5)

    @given(corpora, texts, st.randoms(use_true_random=False), st.integers(1, 8))
    @settings(max_examples=60, deadline=None)
    def test_the_order_of_the_corpus_does_not_matter_and_ties_go_by_id(
        self, corpus: dict[str, str], query: str, rng: object, k: int
    ) -> None:
        corpus = {**corpus, "same": query, "same2": query, "same3": query}
        whole = bm25(corpus, {"q": query}, k=len(corpus))
        shuffled = list(corpus.items())
        rng.shuffle(shuffled)  # type: ignore[attr-defined]
        cut = bm25(dict(shuffled), {"q": query}, k=k)
        assert rows(cut) == rows(whole)[:k]
        assert cut["score"].tolist() == whole["score"].tolist()[:k]

    def test_the_reference_run_is_reproduced(self, data_dir: Path, tmp_path: Path) -> None:
        dataset = open_dataset(data_dir / "nfcorpus")
        run = dataset.bm25(cache_dir=tmp_path)
        reference = read_run(data_dir / "nfcorpus/runs/bm25.trec").frame
        assert mean_score(run, dataset.qrels, "nDCG@10") == pytest.approx(0.317710, abs=1e-6)
        assert run["query_id"].nunique() == 308
        ours = run.set_index(["query_id", "doc_id"])["score"]
        theirs = reference.set_index(["query_id", "doc_id"])["score"]
        assert len(ours) == len(theirs) == 21948
        both = ours.index.intersection(theirs.index)
        # documents tied with the last place may be others
        assert len(both) >= 21940
        np.testing.assert_allclose(ours[both], theirs[both], atol=2e-6)

    def test_it_is_bm25s_with_its_own_tokens(self) -> None:
        from snowballstemmer.english_stemmer import EnglishStemmer

        dataset = open_dataset("sample")
        documents, queries = list(dataset.documents()), dataset.queries()
        stemmer = EnglishStemmer()
        options = {"stopwords": "en", "stemmer": stemmer.stemWords, "show_progress": False}
        retriever = bm25s.BM25(k1=0.9, b=0.4)
        retriever.index(
            bm25s.tokenize([d.content for d in documents], **options), show_progress=False
        )
        tokens = bm25s.tokenize(list(queries.values()), return_ids=False, **options)
        run = bm25(documents, queries, k=len(documents))
        for (query_id, found), words in zip(
            run.groupby("query_id", observed=True, sort=False),
            (words for _, words in sorted(zip(queries, tokens, strict=True))),
            strict=True,
        ):
            scores = retriever.get_scores(words)
            expected = {d.doc_id: float(s) for d, s in zip(documents, scores, strict=True) if s > 0}
            ours = dict(zip(found["doc_id"].astype(str), found["score"], strict=True))
            assert ours == pytest.approx(expected, rel=1e-5), query_id

    @pytest.mark.parametrize("chunk", [1, 7, 100])
    def test_the_size_of_the_chunks_does_not_matter(
        self, chunk: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dataset = open_dataset("sample")
        documents = [Document("none", "", ""), *list(dataset.documents())[:60]]
        queries = dataset.queries()
        whole = bm25(documents, queries)
        monkeypatch.setattr("falsify_adapters.bm25_index._TokenIds.CHUNK", chunk)
        assert bm25(documents, queries).equals(whole)

    def test_documents_are_not_held(self) -> None:
        class Text(str):
            pass

        texts: list[weakref.ref[Text]] = []

        def stream() -> Iterator[Document]:
            for i in range(50):
                text = Text(f"mango number {i} " * 10)
                texts.append(weakref.ref(text))
                yield Document(f"d{i}", "", text)
                del text
                assert sum(ref() is not None for ref in texts) <= 2

        assert len(bm25(stream(), {"q": "mango"}, k=50)) == 50
        assert len(texts) == 50

    def test_queries_without_a_known_word_are_not_answered(self) -> None:
        run = bm25({"d1": "mango"}, {"q1": "mango", "q2": "papaya", "q3": "", "q4": "the"})
        assert rows(run) == [("q1", "d1")]

    def test_documents_without_words_are_never_found(self) -> None:
        run = bm25({"d1": "mango", "d2": "", "d3": "a b c ."}, {"q1": "mango"})
        assert rows(run) == [("q1", "d1")]

    @pytest.mark.parametrize("corpus", [{}, {"d1": ""}, {"d1": "the"}])
    def test_a_corpus_without_words_is_refused(self, corpus: dict[str, str]) -> None:
        with pytest.raises(InputError, match="nothing to index"):
            bm25(corpus, {"q1": "mango"})

    @pytest.mark.parametrize("options", [{"k": 0}, {"k1": -1}, {"b": 2}, {"b": float("nan")}])
    def test_senseless_parameters_are_refused(self, options: dict[str, float]) -> None:
        with pytest.raises(UsageError):
            bm25({"d1": "mango"}, {"q1": "mango"}, **options)  # type: ignore[arg-type]

    @pytest.mark.parametrize("content", [None, 3, ["mango"], {"text": 3}, {"title": ["x"]}])
    def test_documents_and_queries_without_text_are_named(self, content: object) -> None:
        with pytest.raises(InputError, match="document 'd1' has no text"):
            bm25({"d1": content}, {"q1": "mango"})
        with pytest.raises(InputError, match="query 'q1' has no text"):
            bm25({"d1": "mango"}, {"q1": content})  # type: ignore[dict-item]

    def test_a_document_that_comes_twice_is_refused(self) -> None:
        documents = [Document("d1", "", "mango"), Document("d1", "", "mango kiwi")]
        with pytest.raises(InputError, match="BM25 run lists a document more than once"):
            bm25(documents, {"q1": "mango"})


def documents_once() -> Iterator[Document]:
    yield Document("d1", "Mango", "sweet")
    yield Document("ü1 \N{SNOWMAN}", "", "mango kiwi fig")


def unreadable() -> Iterator[Document]:
    raise AssertionError("the documents were read")
    yield


class TestIndexCache:
    options: ClassVar = {"corpus_fingerprint": "these two", "progress": False}

    def test_a_stored_index_gives_the_same_run_without_the_documents(self, tmp_path: Path) -> None:
        first = bm25(documents_once(), {"q": "mango"}, cache_dir=tmp_path, **self.options)
        again = bm25(unreadable(), {"q": "mango"}, cache_dir=tmp_path, **self.options)
        assert again.equals(first)
        assert again.equals(bm25(documents_once(), {"q": "mango"}))
        assert rows(again)[1] == ("q", "ü1 \N{SNOWMAN}")

    @pytest.mark.parametrize(
        "change", [{"k1": 1.0}, {"b": 0.5}, {"corpus_fingerprint": "two others"}]
    )
    def test_other_settings_and_other_documents_have_their_own(
        self, tmp_path: Path, change: dict[str, object]
    ) -> None:
        bm25(documents_once(), {"q": "mango"}, cache_dir=tmp_path, **self.options)
        with pytest.raises(AssertionError, match="were read"):
            bm25(unreadable(), {"q": "mango"}, cache_dir=tmp_path, **{**self.options, **change})

    def test_the_depth_is_no_setting_of_the_index(self, tmp_path: Path) -> None:
        bm25(documents_once(), {"q": "mango"}, cache_dir=tmp_path, **self.options)
        run = bm25(unreadable(), {"q": "mango"}, k=1, cache_dir=tmp_path, **self.options)
        assert len(run) == 1

    def test_without_a_fingerprint_the_content_is_one(self, tmp_path: Path) -> None:
        corpus = {"d1": "mango", "d2": "kiwi"}
        bm25(corpus, {"q": "mango"}, cache_dir=tmp_path)
        bm25(corpus, {"q": "mango"}, cache_dir=tmp_path)
        assert len(list(tmp_path.iterdir())) == 1
        bm25({**corpus, "d2": "fig"}, {"q": "mango"}, cache_dir=tmp_path)
        bm25({"d1": "mangok", "d2": "iwi"}, {"q": "iwi"}, cache_dir=tmp_path)
        assert len(list(tmp_path.iterdir())) == 3
        with pytest.raises(UsageError, match="corpus_fingerprint"):
            bm25(documents_once(), {"q": "mango"}, cache_dir=tmp_path)

    @pytest.mark.parametrize("damage", ["cut", "changed", "emptied", "removed"])
    def test_a_damaged_index_is_built_anew(self, tmp_path: Path, damage: str) -> None:
        expected = bm25(documents_once(), {"q": "mango"}, cache_dir=tmp_path, **self.options)
        (folder,) = tmp_path.iterdir()
        names = sorted(path.name for path in folder.iterdir())
        assert len(names) >= 7
        for name in names:
            path = folder / name
            content = path.read_bytes()
            if damage == "cut":
                path.write_bytes(content[:-1])
            elif damage == "changed":
                path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
            elif damage == "emptied":
                path.write_bytes(b"")
            else:
                path.unlink()
            run = bm25(documents_once(), {"q": "mango"}, cache_dir=tmp_path, **self.options)
            assert run.equals(expected), name
            # and what was built is whole again
            again = bm25(unreadable(), {"q": "mango"}, cache_dir=tmp_path, **self.options)
            assert again.equals(expected), name
        assert [path.name for path in tmp_path.iterdir()] == [folder.name]

    def test_a_folder_that_cannot_be_written_costs_the_cache_only(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        run = bm25(
            documents_once(), {"q": "mango"}, cache_dir=tmp_path / "file" / "x", **self.options
        )
        assert len(run) == 2

    def test_an_index_that_another_process_stored_meanwhile_is_kept(self, tmp_path: Path) -> None:
        index = BM25Index.build(documents_once(), k1=0.9, b=0.4)
        index.save(tmp_path / "bm25-x")
        inode = (tmp_path / "bm25-x").stat().st_ino
        index.save(tmp_path / "bm25-x")
        assert (tmp_path / "bm25-x").stat().st_ino == inode
        assert [path.name for path in tmp_path.iterdir()] == ["bm25-x"]

    def test_four_processes_at_once_agree(self, tmp_path: Path) -> None:
        script = (
            "import sys\n"
            "from pathlib import Path\n"
            "from falsify_adapters.bm25_index import Document, cached_index\n"
            "documents = [Document(f'd{i}', '', f'mango kiwi{i % 7}') for i in range(2000)]\n"
            "for k1 in (0.5, 0.9, 1.2):\n"
            "    index = cached_index(documents, k1=k1, b=0.4, cache_dir=Path(sys.argv[1]),\n"
            "                         fingerprint='f', progress=False)\n"
            "    print(index.search('kiwi3', 5))\n"
        )
        root = Path(__file__).parents[1]
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", script, str(tmp_path)],
                env={**os.environ, "PYTHONPATH": str(root)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(4)
        ]
        results = [process.communicate(timeout=120) for process in processes]
        assert {errors for _, errors in results} == {""}
        assert len({output for output, _ in results}) == 1
        assert len(list(tmp_path.iterdir())) == 3
        for k1 in (0.5, 0.9, 1.2):
            cached_index(unreadable(), k1=k1, b=0.4, cache_dir=tmp_path, fingerprint="f")


class TestControls:
    @given(judgements, st.sampled_from(["nDCG@2", "P@2", "R@2", "nDCG", "P(rel=2)@1", "R@1"]))
    @settings(max_examples=80, deadline=None)
    def test_no_constant_ranking_beats_constant(
        self, qrels: dict[str, dict[str, int]], measure: str
    ) -> None:
        docs = sorted({doc for found in qrels.values() for doc in found})
        orders = list(permutations(docs, min(len(docs), 3)))
        best = scores_of_orders(orders, qrels, measure).mean(axis=1).max()
        try:
            run = constant(qrels, measure, depth=3)
        except InputError:
            assert best == 0  # nothing reaches the grade that the measure asks for
            return
        assert mean_score(run, qrels, measure) == pytest.approx(best, abs=1e-9)

    @pytest.mark.parametrize("measure", ["AP@100", "RR@10", "Success@5"])
    def test_for_other_measures_constant_is_popularity(self, measure: str) -> None:
        qrels = {"q1": {"a": 1, "b": 1}, "q2": {"b": 2}, "q3": {"c": 1, "b": 0}}
        assert constant(qrels, measure, depth=10).equals(popularity(qrels, depth=10))

    @given(judgements, st.integers(1, 6))
    @settings(max_examples=60, deadline=None)
    def test_popularity_counts_queries(self, qrels: dict[str, dict[str, int]], depth: int) -> None:
        counts = Counter(doc for found in qrels.values() for doc, g in found.items() if g > 0)
        ranked = sorted(sorted(counts, reverse=True), key=lambda doc: -counts[doc])[:depth]
        assert rows(popularity(qrels, depth)) == [(q, doc) for q in sorted(qrels) for doc in ranked]

    @given(judgements, st.sampled_from(["nDCG@3", "P@3", "R@3", "AP", "RR", "Success@1"]))
    @settings(max_examples=60, deadline=None)
    def test_no_ranking_beats_oracle(self, qrels: dict[str, dict[str, int]], measure: str) -> None:
        docs = sorted({doc for found in qrels.values() for doc in found})
        (scores,) = query_scores(oracle(qrels, 5), as_qrels(qrels), parse_measure(measure))
        best = scores_of_orders(list(permutations(docs)), qrels, measure).max(axis=0)
        assert scores == pytest.approx(best, abs=1e-9)

    def test_documents_that_the_corpus_lacks_are_not_returned(self) -> None:
        qrels = {"q1": {"a": 1, "gone": 3}, "q2": {"gone": 1, "b": 1}}
        for run in (
            popularity(qrels, 5, exclude={"gone"}),
            constant(qrels, "nDCG@10", 5, exclude={"gone"}),
            oracle(qrels, 5, exclude={"gone"}),
        ):
            assert set(run["doc_id"].astype(str)) == {"a", "b"}
            assert len(run) == 4
        with pytest.raises(InputError, match="no relevant document is in the corpus"):
            popularity({"q1": {"gone": 1}}, 5, exclude={"gone"})

    def test_random_draws_uniformly_without_repeats(self) -> None:
        qrels = {f"q{i}": {"d3": 1, "d7": 1} for i in range(400)}
        corpus_ids = [f"d{i}" for i in range(20)]
        run = baselines.random(qrels, depth=5, seed=1, corpus_ids=corpus_ids)
        assert run.groupby("query_id", observed=True)["doc_id"].nunique().tolist() == [5] * 400
        assert set(run["doc_id"].astype(str)) == set(corpus_ids)
        # each document falls among the five with chance 1/4: 100 of 400, sd 8.7
        counts = run["doc_id"].value_counts()
        assert counts.min() > 100 - 5 * 8.7
        assert counts.max() < 100 + 5 * 8.7
        # and each rank alike: R@1 is 2 of 20 documents, halved
        mean = mean_score(run, qrels, "R@1")
        assert mean == pytest.approx(1 / 20, abs=5 * math.sqrt(0.1 * 0.9 / 400) / 2)

    def test_random_depends_on_the_seed_alone(self) -> None:
        qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}}
        ids = [f"d{i}" for i in range(50)]
        first = baselines.random(qrels, 10, seed=3, corpus_ids=ids)
        assert first.equals(baselines.random(qrels, 10, seed=3, corpus_ids=reversed(ids)))
        assert not first.equals(baselines.random(qrels, 10, seed=4, corpus_ids=ids))

    def test_random_invents_the_documents_that_it_does_not_know(self) -> None:
        qrels = {"q1": {"d1": 1, "unjudged-2": 1}, "q2": {"unjudged-5": 0}}
        run = baselines.random(qrels, 99, corpus_size=6)
        drawn = run["doc_id"].astype(str)
        assert len(run) == 12
        assert drawn.nunique() == 6
        assert {"d1", "unjudged-2", "unjudged-5"} < set(drawn)
        assert len(baselines.random(qrels, 99, corpus_size=2)) == 4
        assert len(baselines.random(qrels, 99)) == 6

    def test_controls_stand_beside_a_run(self) -> None:
        qrels = {f"q{i}": {f"d{i}": 1, f"d{i + 1}": 2, "gone": 1} for i in range(6)}
        qrels["q9"] = {"d0": 0}
        run = {"q1": {f"d{i}": float(i) for i in range(4)}, "q2": {"d1": 1.0}}
        ids = [f"d{i}" for i in range(30)]
        evaluation = Evaluation.create(run, qrels, corpus_ids=ids, benchmark="b", split="test")
        found = {control.system: control for control in controls(evaluation, "nDCG@10", seed=5)}
        assert list(found) == ["popularity", "constant", "random", "oracle"]
        for name, control in found.items():
            assert control.role == "control"
            assert (control.benchmark, control.split, control.corpus_size) == ("b", "test", 30)
            assert control.run.groupby("query_id", observed=True).size().tolist() == [4] * 7, name
            assert "gone" not in set(control.run["doc_id"].astype(str)) or name == "random"

    @pytest.mark.parametrize("name", ["popularity", "constant", "random", "oracle"])
    def test_a_depth_of_nothing_is_refused(self, name: str) -> None:
        arguments = ({"q": {"d": 1}}, "nDCG", 0) if name == "constant" else ({"q": {"d": 1}}, 0)
        with pytest.raises(UsageError, match="depth must be at least 1"):
            getattr(baselines, name)(*arguments)

    @pytest.mark.parametrize("name", ["nfcorpus", "scifact"])
    def test_the_gate_judges_the_controls_rightly(self, data_dir: Path, name: str) -> None:
        dataset = open_dataset(data_dir / name)
        evaluation = load_beir(dataset, data_dir / name / "runs/bm25.trec")
        config = GateConfig(n_trials=200)
        assert run_gate(evaluation, "nDCG@10", config).verdict == "PASS"
        verdicts = {
            control.system: run_gate(control, "nDCG@10", config).verdict
            for control in controls(evaluation, "nDCG@10", corpus_ids=dataset.corpus_ids)
        }
        assert verdicts == {
            "popularity": "FAIL",
            "constant": "FAIL",
            "random": "FAIL",
            "oracle": "PASS",
        }

    @pytest.mark.parametrize(("name", "ceiling"), [("nfcorpus", 0.0756), ("scifact", 0.0488)])
    def test_constant_reaches_the_published_ceiling(
        self, data_dir: Path, name: str, ceiling: float
    ) -> None:
        qrels = open_dataset(data_dir / name).qrels
        run = constant(qrels, "nDCG@10", depth=10)
        assert mean_score(run, qrels, "nDCG@10") == pytest.approx(ceiling, abs=5e-5)


def test_a_progress_bar_does_not_change_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    corpus = json.loads('{"d1": "mango", "d2": "mango kiwi"}')
    loud = bm25(corpus, {"q": "mango"}, progress=True)
    assert loud.equals(bm25(corpus, {"q": "mango"}, progress=False))
    assert capsys.readouterr().out == ""
