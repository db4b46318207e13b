"""Benchmarks of MTEB: the qrels of a task, split and subset, and the size of its corpus.

Qrels come from a folder, else from a task object, else from the local Hugging Face cache; corpus
sizes from the corpus beside the qrels, else from the statistics inside the mteb package, else
from the table of BEIR's data sets.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from falsify_adapters.adapters.beir_corpus import FolderCorpus
from falsify_adapters.adapters.mteb import tasks as mteb_tasks
from falsify_adapters.adapters.mteb.qrels import QrelsFolder
from falsify_adapters.adapters.mteb.tasks import TaskFacts
from falsify_adapters.data.table import find_entry
from falsify_adapters.errors import InputError
from falsify_adapters.frames import as_qrels
from falsify_adapters.notes import Note, counted
from falsify_adapters.readers import read_qrels

#: Split names that are tried where nothing names one.
COMMON_SPLITS = ("test", "dev", "validation", "train", "standard", "long")
#: Benchmarks held in memory.
KEPT = 4


@dataclass(frozen=True)
class Benchmark:
    """The qrels of one task, split and subset.

    Parameters
    ----------
    task, split, subset : str
        MTEB's names.
    qrels : DataFrame
        The common qrels frame.
    corpus_size : int or None
        Number of documents, if anything states it.
    corpus_ids : frozenset of str or None
        Their ids, if a corpus is at hand.
    size_from : str or None
        What states the size.
    notes : tuple of Note
        Warnings about the qrels.
    provenance : mapping
        Where the qrels came from.
    """

    task: str
    split: str
    subset: str
    qrels: pd.DataFrame = field(repr=False)
    corpus_size: int | None = None
    corpus_ids: frozenset[str] | None = field(default=None, repr=False)
    size_from: str | None = None
    notes: tuple[Note, ...] = field(default=(), repr=False)
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def sizes(self) -> dict[str, Any]:
        """Return the arguments of ``Evaluation.create`` that state the corpus."""
        if self.corpus_ids is not None:
            return {"corpus_ids": self.corpus_ids}
        return {"corpus_size": self.corpus_size}


class Benchmarks:
    """Finds benchmarks, and remembers the last few.

    Parameters
    ----------
    folder : path, optional
        A folder of qrels.
    tasks : iterable of AbsTaskRetrieval, optional
        Task objects, for tasks that MTEB does not know.
    download : bool
        Fetch a task's data if it is in no cache.
    sole_task : str, optional
        The only task that is graded: its qrels need not carry its name.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        tasks: Iterable[Any] = (),
        download: bool = False,
        sole_task: str | None = None,
    ) -> None:
        self._folder = None if folder is None else QrelsFolder(folder)
        self._tasks = {str(task.metadata.name): task for task in tasks}
        self._download = download
        self.sole_task = sole_task
        self._kept: OrderedDict[tuple[str, str, str], Benchmark | InputError | None] = OrderedDict()

    def facts(self, task: str) -> TaskFacts | None:
        """Return what MTEB knows about a task; None if it does not know it, or is not there."""
        if task in self._tasks:
            return mteb_tasks.facts_of(self._tasks[task])
        return mteb_tasks.task_facts(task) if mteb_tasks.have_mteb() else None

    def have_mteb(self) -> bool:
        """Return whether the mteb package is there to ask."""
        return mteb_tasks.have_mteb()

    def knows(self, task: str) -> bool:
        """Return whether something else than a file of qrels carries this task's name."""
        entry = find_entry(task)
        return (
            task in self._tasks
            or (entry is not None and entry.mteb_task == task)
            or (mteb_tasks.have_mteb() and mteb_tasks.task_facts(task) is not None)
        )

    def default_splits(self, task: str) -> tuple[str, ...]:
        """Return the splits of a task that count; ``test`` where nobody says which."""
        entry = find_entry(task)
        if entry is not None and entry.mteb_task == task:
            return (entry.default_split,)
        facts = self.facts(task)
        return ("test",) if facts is None else facts.eval_splits

    def find(self, task: str, split: str, subset: str) -> Benchmark | None:
        """Return a benchmark, or None if nothing has its qrels.

        Raises
        ------
        InputError
            If there are qrels that cannot be used.
        """
        key = (task, split, subset)
        if key not in self._kept:
            try:
                self._kept[key] = self._open(*key)
            except InputError as error:
                self._kept[key] = error
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        found = self._kept[key]
        if isinstance(found, InputError):
            raise found
        return found

    def splits(self, task: str, subset: str, among: Iterable[str] = ()) -> list[str]:
        """Return the splits of a task that have qrels."""
        candidates = dict.fromkeys((*self.default_splits(task), *among, *COMMON_SPLITS))
        return [split for split in candidates if self._has(task, split, subset)]

    def _has(self, task: str, split: str, subset: str) -> bool:
        if self._path(task, split, subset) is not None:
            return True
        try:
            return self.find(task, split, subset) is not None
        except InputError:
            return True

    def _path(self, task: str, split: str, subset: str) -> Path | None:
        if self._folder is None:
            return None
        sole = task == self.sole_task
        # a file that names no split is looked for last: only then is the default needed
        for default in (False, True):
            path = None
            if not default or (split,) == self.default_splits(task):
                path = self._folder.find(task, split, subset, default_split=default, sole_task=sole)
            if path is not None:
                return path
        return None

    def _open(self, task: str, split: str, subset: str) -> Benchmark | None:
        path = self._path(task, split, subset)
        if path is not None:
            return self._from_file(path, task, split, subset)
        loaded = self._tasks.get(task)
        if loaded is None:
            if not mteb_tasks.have_mteb():
                return None
            try:
                loaded = mteb_tasks.load_task(task, split, subset, download=self._download)
            except InputError:
                if self._download:
                    raise
                return None
        else:
            mteb_tasks.prepare(loaded)
            if split not in loaded.dataset.get(subset, {}):
                return None
        qrels, ids = mteb_tasks.qrels_of(loaded, split, subset)
        notes: list[Note] = []
        return Benchmark(
            task,
            split,
            subset,
            qrels=as_qrels(qrels, notes=notes, name=f"the qrels of {task}"),
            corpus_ids=frozenset(ids),
            corpus_size=len(set(ids)),
            size_from="the task's corpus",
            notes=tuple(notes),
            provenance={"qrels": {"task": task, "revision": loaded.metadata.revision}},
        )

    def _from_file(self, path: Path, task: str, split: str, subset: str) -> Benchmark:
        notes: list[Note] = []
        file = read_qrels(path, notes=notes)
        stated = mteb_tasks.statistics(task, split, subset)
        n_judged = len(file.frame["query_id"].cat.categories)
        if stated is not None and stated.n_queries != n_judged:
            notes.append(
                Note(
                    "W-OTHER-QRELS",
                    f"{path.name} judges {counted(n_judged, 'query')}, MTEB counts"
                    f" {stated.n_queries} in"
                    f" {task}, {subset}, {split}: are these the same qrels?",
                )
            )
        ids = _corpus_beside(path)
        size, source = None, None
        if ids is not None:
            size, source = len(ids), "corpus.jsonl"
        elif stated is not None:
            size, source = stated.n_documents, "MTEB's descriptive statistics"
        elif (entry := find_entry(task)) is not None and subset == "default":
            size, source = entry.documents, "BEIR's table"
        return Benchmark(
            task,
            split,
            subset,
            qrels=file.frame,
            corpus_size=size,
            corpus_ids=ids,
            size_from=source,
            notes=tuple(notes),
            provenance={"qrels": dict(file.provenance)},
        )


def _corpus_beside(path: Path) -> frozenset[str] | None:
    """Return the document ids of the BEIR folder in which the qrels lie, if it has a corpus."""
    if path.parent.name != "qrels":
        return None
    corpus = FolderCorpus(path.parent.parent)
    return frozenset(corpus.doc_ids()) if corpus.has_documents() else None
