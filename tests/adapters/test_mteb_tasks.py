"""What we say about MTEB's tasks is what the installed package says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from falsify_adapters.adapters.mteb import MtebFolder, load_mteb, tasks
from falsify_adapters.adapters.mteb.benchmarks import Benchmarks
from falsify_adapters.data.table import beir_table
from falsify_adapters.errors import InputError, MissingExtraError
from tests.mteb_world import N_DOCUMENTS, N_QUERIES, make_task

mteb = pytest.importorskip("mteb", reason="the extra mteb-core is not installed")


@pytest.mark.parametrize(
    ("name", "main_score", "own", "first"),
    [
        ("ArguAna", "ndcg_at_10", True, False),
        ("NFCorpus", "ndcg_at_10", False, False),
        ("SOPI2IRetrieval", "recall_at_1", False, True),
        ("MTRBRetrieval", None, None, None),
    ],
)
def test_facts(name: str, main_score: str | None, own: bool | None, first: bool | None) -> None:
    facts = tasks.task_facts(name)
    if main_score is None:
        assert facts is None or facts.main_score
        return
    assert facts is not None
    assert facts.ignore_identical_ids is own
    assert facts.skip_first_result is first
    task = mteb.get_task(name)
    assert facts.main_score == task.metadata.main_score
    assert facts.eval_splits == tuple(task.eval_splits)


def test_an_unknown_task_has_no_facts() -> None:
    assert tasks.task_facts("NoSuchTask") is None


def test_sizes_are_the_packages_own() -> None:
    from mteb.abstasks import AbsTaskRetrieval
    from mteb.get_tasks import _TASKS_REGISTRY

    known = compared = 0
    for name, task in sorted(_TASKS_REGISTRY.items()):
        if (
            not issubclass(task, AbsTaskRetrieval)
            or not task.metadata.descriptive_stat_path.exists()
        ):
            continue
        for split, table in (task.metadata.descriptive_stats or {}).items():
            parts: dict[str, Any] = table.get("hf_subset_descriptive_stats") or {"default": table}
            for subset, part in parts.items():
                found = tasks.statistics(name, split, subset)
                known += found is not None
                if "num_documents" in part:
                    assert found is not None
                    assert found.n_documents == part["num_documents"]
                    assert found.n_queries == part["num_queries"]
                    compared += 1
    assert compared > 500
    assert known > compared  # the older tables, which state the sum only


@pytest.mark.parametrize(
    ("name", "split", "subset", "documents", "queries"),
    [
        ("BrightRetrieval", "standard", "pony", 7894, 112),  # from the sum
        ("NFCorpus", "test", "default", 3633, 323),
        ("ClimateFEVER", "test", "default", 5416593, 1535),
    ],
)
def test_sizes(name: str, split: str, subset: str, documents: int, queries: int) -> None:
    assert tasks.statistics(name, split, subset) == tasks.Statistics(documents, queries)


def test_sizes_agree_with_beirs_own_table() -> None:
    for entry in beir_table():
        if entry.mteb_task in (None, "CQADupstackRetrieval"):
            continue  # its forums are added up by MTEB in another way
        found = tasks.statistics(entry.mteb_task, entry.default_split, "default")
        if found is not None and not entry.approximate:
            # BEIR's README is off by a handful for fever and quora
            assert found.n_documents == pytest.approx(entry.documents, rel=1e-4), entry.name


def test_unknown_parts_have_no_sizes() -> None:
    assert tasks.statistics("NFCorpus", "nonsense", "default") is None
    assert tasks.statistics("NFCorpus", "test", "en") is None
    assert tasks.statistics("NoSuchTask", "test", "default") is None


def test_a_task_without_data_in_the_cache_is_no_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    for name in ("HF_HUB_CACHE", "HF_DATASETS_CACHE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="no qrels at hand"):
        tasks.load_task("NFCorpus", "test", "default", download=False)
    # a cache with something else in it: the loader itself is asked, without the network
    (tmp_path / "hub" / "datasets--org--other").mkdir(parents=True)
    with pytest.raises(InputError, match="no qrels at hand"):
        tasks.load_task("NFCorpus", "test", "default", download=False)
    assert Benchmarks().find("NFCorpus", "test", "default") is None


def test_a_cached_task_gives_qrels_and_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loader of Hugging Face data is replaced; what is asked of mteb and done is real."""
    asked = {}

    def get_task(name: str, *, eval_splits: list[str], hf_subsets: list[str] | None) -> Any:
        asked.update(name=name, eval_splits=eval_splits, hf_subsets=hf_subsets)
        return make_task("NFCorpus")

    monkeypatch.setenv("HF_HOME", str(tmp_path))
    (tmp_path / "hub" / "datasets--mteb--nfcorpus").mkdir(parents=True)
    monkeypatch.setattr(mteb, "get_task", get_task)
    benchmark = Benchmarks().find("NFCorpus", "test", "default")
    assert asked == {"name": "NFCorpus", "eval_splits": ["test"], "hf_subsets": None}
    assert benchmark is not None
    assert len(benchmark.qrels["query_id"].cat.categories) == N_QUERIES
    assert len(benchmark.corpus_ids or ()) == benchmark.corpus_size == N_DOCUMENTS
    assert benchmark.size_from == "the task's corpus"


def test_a_download_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def get_task(*_names: Any, **_options: Any) -> Any:
        raise ConnectionError("no network here")

    monkeypatch.setattr(mteb, "get_task", get_task)
    with pytest.raises(InputError, match="no network here"):
        Benchmarks(download=True).find("NFCorpus", "test", "default")


def test_queries_without_judgements_are_dropped_as_mteb_does() -> None:
    task = make_task("Toy")
    tasks.prepare(task)
    task.dataset["default"]["test"]["relevant_docs"]["q0"] = {}
    qrels, _ = tasks.qrels_of(task, "test", "default")
    assert len(qrels) == N_QUERIES - 1
    with pytest.raises(InputError, match="no data for en/test"):
        tasks.qrels_of(task, "test", "en")


def test_being_offline_leaves_no_trace() -> None:
    import huggingface_hub.constants as constants

    before = constants.HF_HUB_OFFLINE
    with tasks._offline(True):
        assert constants.HF_HUB_OFFLINE is True
    assert before == constants.HF_HUB_OFFLINE


def test_without_mteb_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "find_spec", lambda _name: None)
    tasks._registry.cache_clear()
    tasks.task_facts.cache_clear()
    with pytest.raises(MissingExtraError, match="mteb-core"):
        tasks.task_facts("NFCorpus")


SELF = '{"mteb_model_meta": {"model_name": "a/b"}, "default": {"test": {"q1": {"q1": 2, "d1": 1}}}}'


def test_without_mteb_self_matches_need_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "have_mteb", lambda: False)
    path = tmp_path / "Toy_predictions.json"
    path.write_text(SELF)
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "toy.qrels").write_text("q1 0 d1 1\n")
    with pytest.raises(MissingExtraError, match="--keep-self or --drop-self"):
        list(load_mteb(path, qrels=tmp_path / "qrels"))
    [evaluation] = load_mteb(path, qrels=tmp_path / "qrels", keep_self=False)
    assert evaluation.run["doc_id"].tolist() == ["d1"]
    path.write_text(SELF.replace('"q1": 2, ', ""))
    assert len(list(load_mteb(path, qrels=tmp_path / "qrels"))) == 1


def test_reading_files_imports_no_mteb(tmp_path: Path) -> None:
    import subprocess

    path = tmp_path / "NFCorpus.json"
    path.write_text('{"test": {"ndcg_at_10": 0.6}, "mteb_dataset_name": "NFCorpus"}')
    code = (
        "import sys\nfrom falsify_adapters.adapters.mteb import MtebFolder, tasks\n"
        f"assert MtebFolder({str(path)!r}).reported\n"
        "assert tasks.statistics('NFCorpus', 'test', 'default')\n"
        "assert 'mteb' not in sys.modules and 'datasets' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert len(MtebFolder(path).reported) == 1
