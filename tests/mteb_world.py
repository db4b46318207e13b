"""A small world made by mteb itself: tasks with data in memory, models, predictions, results.

Nothing here is written by this project's own code: the predictions come from mteb's
``AbsTaskRetrieval.evaluate`` and the result files from its ``TaskResult.to_disk``.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SPLITS = ("dev", "test")
N_QUERIES = 40
N_DOCUMENTS = 120

Qrels = dict[str, dict[str, int]]


def make_task(
    name: str,
    *,
    subsets: tuple[str, ...] = ("default",),
    own_documents: bool = False,
    ignore_identical_ids: bool = False,
    skip_first_result: bool = False,
    main_score: str = "ndcg_at_10",
    seed: int = 1,
) -> Any:
    """Return a task whose splits and subsets have different qrels over the same ids."""
    from datasets import Dataset
    from mteb.abstasks import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata

    languages = {"en": ["eng-Latn"], "de": ["deu-Latn"]}
    multilingual = subsets != ("default",)
    nothing = ("date", "domains", "task_subtypes", "license", "annotations_creators", "dialect")
    metadata_of_task = TaskMetadata(
        name=name,
        description="made for a test",
        reference=None,
        dataset={"path": "none", "revision": "r9"},
        type="Retrieval",
        category="t2t",
        modalities=["text"],
        eval_splits=list(SPLITS),
        eval_langs={s: languages[s] for s in subsets} if multilingual else ["eng-Latn"],
        main_score=main_score,
        sample_creation=None,
        bibtex_citation="",
        **dict.fromkeys(nothing),
    )
    identical, skip = ignore_identical_ids, skip_first_result

    class MadeTask(AbsTaskRetrieval):
        metadata = metadata_of_task
        ignore_identical_ids = identical
        skip_first_result = skip

        def load_data(self, num_proc: int | None = None, **kwargs: Any) -> None:
            del num_proc, kwargs
            rng = random.Random(seed)
            self.dataset = {s: {t: self._part(rng) for t in SPLITS} for s in subsets}
            self.data_loaded = True

        def _part(self, rng: random.Random) -> Any:
            queries = [f"q{i}" for i in range(N_QUERIES)]
            documents = [f"d{i}" for i in range(N_DOCUMENTS)]
            documents += queries if own_documents else []
            qrels = {
                query: {
                    f"d{doc}": rng.choice((1, 1, 2))
                    for doc in rng.sample(range(N_DOCUMENTS), rng.randint(1, 4))
                }
                for query in queries
            }
            qrels["q0"]["d119"] = 0
            texts = {"text": "some text", "title": ""}
            return {
                "queries": Dataset.from_list([{"id": q, "text": "some text"} for q in queries]),
                "corpus": Dataset.from_list([{"id": d, **texts} for d in documents]),
                "relevant_docs": qrels,
                "top_ranked": None,
            }

    return MadeTask()


@dataclass
class Searcher:
    """A search object as mteb takes it; it knows the qrels, so that its quality can be chosen.

    Parameters
    ----------
    name, revision : str
        Of the model.
    kind : {"noisy", "constant", "coarse"}
        A good system, one that gives every document the same score, or a good one whose scores
        tie in single precision but not in double.
    missing, empty : tuple of str
        Queries without an answer, and with an empty one.
    """

    name: str
    revision: str
    kind: str = "noisy"
    missing: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    task: Any = None
    documents: list[str] = field(default_factory=list)

    @property
    def mteb_model_meta(self) -> Any:
        from mteb.models.model_meta import ModelMeta

        return ModelMeta.create_empty({"name": self.name, "revision": self.revision})

    def index(self, corpus: Any, **kwargs: Any) -> None:
        del kwargs
        self.documents = list(corpus["id"])

    def search(self, queries: Any, *, hf_split: str, hf_subset: str, **kwargs: Any) -> Any:
        del kwargs
        rng = random.Random(f"{self.name} {hf_split} {hf_subset}")
        qrels = self.task.dataset[hf_subset][hf_split]["relevant_docs"]
        return {
            query: {} if query in self.empty else self._scores(query, qrels[query], rng)
            for query in queries["id"]
            if query not in self.missing
        }

    def _scores(self, query: str, gold: dict[str, int], rng: random.Random) -> dict[str, float]:
        chosen = rng.sample(self.documents, 60)
        if query in self.documents and query not in chosen:
            chosen.insert(0, query)
        if self.kind == "constant":
            return dict.fromkeys(chosen, 0.5)
        scores = {doc: rng.random() for doc in chosen}
        scores |= {doc: rng.random() + 0.6 * grade for doc, grade in gold.items() if grade}
        if query in scores:
            scores[query] = 3.0  # a document is most similar to itself
        if self.kind == "coarse":
            return {doc: 1.0 + round(score, 1) + score * 1e-9 for doc, score in scores.items()}
        return scores


@dataclass
class World:
    """What mteb wrote.

    Parameters
    ----------
    root : Path
        Holds ``predictions/`` and ``results/``.
    tasks : dict of str to task
        By name.
    scores : dict
        ``[model, task, split, subset]`` to mteb's scores.
    """

    root: Path
    tasks: dict[str, Any]
    scores: dict[tuple[str, str, str, str], dict[str, Any]]

    @property
    def predictions(self) -> Path:
        return self.root / "predictions"

    @property
    def results(self) -> Path:
        return self.root / "results"

    def qrels(self, task: str, split: str, subset: str) -> Qrels:
        return dict(self.tasks[task].dataset[subset][split]["relevant_docs"])

    def write_qrels(self, folder: Path) -> Path:
        """Write all qrels as ``TASK[/SUBSET]/qrels/SPLIT.tsv``."""
        for name, task in self.tasks.items():
            for subset, splits in task.dataset.items():
                place = folder / name / ("" if subset == "default" else subset) / "qrels"
                place.mkdir(parents=True)
                for split, part in splits.items():
                    rows = [
                        f"{query}\t{doc}\t{grade}\n"
                        for query, docs in part["relevant_docs"].items()
                        for doc, grade in docs.items()
                    ]
                    text = "query-id\tcorpus-id\tscore\n" + "".join(rows)
                    (place / f"{split}.tsv").write_text(text)
        return folder


def make_world(root: Path) -> World:
    """Let mteb evaluate three models on four tasks."""
    from mteb.results import TaskResult

    tasks = {
        task.metadata.name: task
        for task in (
            make_task("Toy_Words", subsets=("en", "de")),
            make_task("ToySelf", own_documents=True, ignore_identical_ids=True, seed=2),
            make_task("ToyFirst", own_documents=True, skip_first_result=True, seed=3),
            make_task("ToyMap", main_score="map_at_100", seed=4),
        )
    }
    models = (
        Searcher("org/good", "r1"),
        Searcher("org/holes", "r2", "noisy", missing=("q1", "q2"), empty=("q3",)),
        Searcher("org/constant", "r3", "constant"),
        Searcher("org/coarse", "r4", "coarse"),
    )
    scores = {}
    for model in models:
        for name, task in tasks.items():
            task.load_data()
            model.task = task
            folder = root / "predictions" / model.name.split("/")[1]
            found = {
                split: task.evaluate(model, split, encode_kwargs={}, prediction_folder=folder)
                for split in SPLITS
            }
            for split, parts in found.items():
                for subset, row in parts.items():
                    scores[model.name, name, split, subset] = dict(row)
            place = root / "results" / model.name.replace("/", "__") / model.revision
            place.mkdir(parents=True, exist_ok=True)
            result = TaskResult.from_task_results(task, found, evaluation_time=1.0)
            result.to_disk(place / f"{name}.json")
    return World(root, tasks, scores)
