"""MTEB folders as evaluations: predictions joined to qrels, reported scores beside them."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from sys import intern
from typing import Any

from falsify_adapters.adapters.mteb.benchmarks import Benchmark, Benchmarks
from falsify_adapters.adapters.mteb.predictions import Part, Predictions, Run, read_predictions
from falsify_adapters.adapters.mteb.results import (
    ScoreRow,
    is_ranking,
    measure_of,
    problem_of,
)
from falsify_adapters.adapters.mteb.tasks import TaskFacts
from falsify_adapters.adapters.mteb.walk import (
    OtherFile,
    Place,
    PredictionFile,
    ResultFile,
    WalkSummary,
    walk,
)
from falsify_adapters.errors import FalsifyError, InputError, MissingExtraError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.notes import Note, counted, plural
from falsify_adapters.readers.source import content_sha256

#: The measures that any of MTEB's retrieval tasks has as its main one, as far as ir-measures has
#: them: what is remembered of a result file.
MAIN_KEYS = (
    *(f"ndcg_at_{k}" for k in (1, 3, 5, 10, 20, 100, 1000)),
    *(f"map_at_{k}" for k in (1, 3, 5, 10, 20, 100, 1000)),
    *(f"mrr_at_{k}" for k in (1, 3, 5, 10, 20, 100, 1000)),
    *(f"recall_at_{k}" for k in (1, 2, 3, 5, 10, 20, 100, 1000)),
    *(f"hit_rate_at_{k}" for k in (1, 3, 5, 10)),
    *("precision_at_1", "accuracy"),
)


#: Names of revision folders that name no revision.
NO_REVISION = ("None", "external", "no_revision_available")


@dataclass(frozen=True)
class Selection:
    """Which models, tasks, splits and subsets are wanted; all where nothing is named.

    Parameters
    ----------
    models, tasks, splits, subsets : tuple of str
        Names; models as ``org/name`` or ``name``, in any case.
    """

    models: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    subsets: tuple[str, ...] = ()

    def wants_model(self, name: str) -> bool:
        """Return whether a model is wanted."""
        own = {name.casefold(), name.casefold().split("/")[-1]}
        return not self.models or any(
            model.casefold().replace("__", "/", 1) in own for model in self.models
        )

    def wants_task(self, name: str) -> bool:
        """Return whether a task is wanted."""
        return not self.tasks or name.casefold() in {task.casefold() for task in self.tasks}

    def wants_part(self, split: str, subset: str) -> bool:
        """Return whether a split and subset are wanted."""
        return (not self.splits or split in self.splits) and (
            not self.subsets or subset in self.subsets
        )


@dataclass(frozen=True, slots=True)
class Reported:
    """The reported scores of one model, task, split and subset; made small, for there are many.

    Parameters
    ----------
    label, sha256 : str
        The file, and the hash of its content.
    task, split, subset, version : str
        As in the file; `version` is empty if it says none.
    place : Place
        Whose results these are.
    main_score : object
        As it stands in the file.
    values : array of float
        The values under :data:`MAIN_KEYS` and the extra keys, NaN where there is none.
    wrong : mapping
        Values under these keys that are no scores in [0, 1].
    """

    label: str
    sha256: str
    stem: str
    task: str
    split: str
    subset: str
    version: str
    place: Place
    main_score: Any
    values: array[float]
    wrong: Mapping[str, str]

    @property
    def model(self) -> str:
        """The model's name, else what else tells it from others."""
        if self.place.model:
            return self.place.model
        return self.stem if self.stem != self.task else self.place.folder

    @property
    def system(self) -> str:
        """The model's name, with the settings of an experiment."""
        return _system(self.model, self.place)

    @property
    def key(self) -> tuple[str, str, str]:
        """Task, split and subset."""
        return self.task, self.split, self.subset


@dataclass(frozen=True)
class Loaded:
    """One gradable part of a prediction file.

    Parameters
    ----------
    evaluation : Evaluation
        What the gate grades.
    run : mapping
        The rankings as they stand in the file.
    facts : TaskFacts or None
        What MTEB knows about the task.
    drops_own, skips_first : bool
        What was done to the rankings before scoring.
    reported : Reported or None
        The reported scores, if a result file belongs to the predictions.
    """

    evaluation: Evaluation
    run: Run = field(repr=False)
    facts: TaskFacts | None
    drops_own: bool
    skips_first: bool
    reported: Reported | None


@dataclass(frozen=True)
class Refused:
    """An input that cannot be used.

    Parameters
    ----------
    name : str
        The input.
    error : FalsifyError
        Why.
    """

    name: str
    error: FalsifyError


@dataclass(frozen=True)
class LeftOut:
    """Something that is none of this package's business, or lacks what it takes.

    Parameters
    ----------
    name : str
        The input.
    reason : str
        Why; the same words for the same kind.
    """

    name: str
    reason: str


class MtebFolder:
    """What one or several MTEB folders hold: read once, graded part by part.

    Parameters
    ----------
    paths : iterable of path
        Folders or files.
    selection : Selection
        What is wanted.
    extra_keys : iterable of str
        MTEB's names of measures to remember beside :data:`MAIN_KEYS`.
    advance : callable
        Called after every file, for a progress bar.

    Attributes
    ----------
    predictions : list of PredictionFile
        Unread.
    reported : list of Reported
        Retrieval scores.
    left_out : list of LeftOut
        Files that are neither.
    refused : list of Refused
        Broken files.
    summary : WalkSummary
        Counts of all files and irregularities.
    """

    def __init__(
        self,
        paths: str | Path | Iterable[str | Path],
        selection: Selection | None = None,
        *,
        extra_keys: Iterable[str] = (),
        advance: Callable[[float], None] = lambda _files: None,
    ) -> None:
        self.selection = selection or Selection()
        self.keys = tuple(dict.fromkeys((*MAIN_KEYS, *extra_keys)))
        self._position = {key: i for i, key in enumerate(self.keys)}
        self.predictions: list[PredictionFile] = []
        self.reported: list[Reported] = []
        self.left_out: list[LeftOut] = []
        self.refused: list[Refused] = []
        self.summary = WalkSummary()
        for found in walk([paths] if isinstance(paths, (str, Path)) else paths):
            self.summary.add(found)
            advance(1)
            if isinstance(found, PredictionFile):
                self.predictions.append(found)
            elif isinstance(found, ResultFile):
                self._add_results(found)
            else:
                self._add_other(found)

    def _add_other(self, found: OtherFile) -> None:
        if found.kind == "broken":
            self.refused.append(Refused(found.label, InputError(f"{found.reason}")))
        elif found.kind == "other":
            self.left_out.append(LeftOut(found.label, found.reason))

    def _add_results(self, found: ResultFile) -> None:
        task = intern(found.task)
        if not self.selection.wants_task(task):
            return
        if not found.results.is_retrieval:
            self.left_out.append(LeftOut(found.label, "no measure of rankings with a cutoff"))
            return
        seen = set()
        for row in found.results.rows:
            # of a subset that is listed twice, MTEB itself averages both: the first one counts
            if (row.split, row.subset) in seen or not is_ranking(row.scores):
                continue
            seen.add((row.split, row.subset))
            if not self.selection.wants_part(row.split, row.subset):
                continue
            reported = self._reported(found, task, row)
            if self.selection.wants_model(reported.model):
                self.reported.append(reported)

    def _reported(self, found: ResultFile, task: str, row: ScoreRow) -> Reported:
        values = array("d", [math.nan]) * len(self.keys)
        wrong = {}
        for i, key in enumerate(self.keys):
            value = row.scores.get(key)
            if value is None:
                continue
            problem = problem_of(value)
            if problem is None:
                values[i] = value
            else:
                wrong[key] = problem
        return Reported(
            found.label,
            intern(found.sha256),
            intern(found.stem),
            task,
            intern(row.split),
            intern(row.subset),
            intern(found.results.version or ""),
            found.place,
            row.scores.get("main_score"),
            values,
            wrong or _NOTHING,
        )

    def value(self, reported: Reported, key: str) -> float | None:
        """Return a reported score, or None if the file has none under that name."""
        position = self._position.get(key)
        value = math.nan if position is None else reported.values[position]
        return None if math.isnan(value) else value

    def check(self, reported: Reported, key: str | None) -> InputError | None:
        """Return what is wrong with a reported score, or None.

        Parameters
        ----------
        reported : Reported
            The scores.
        key : str or None
            The measure that is graded; None for the main one, whichever it is.
        """
        if key is not None and key in reported.wrong:
            return InputError(f"{reported.task}: {key} {reported.wrong[key]}")
        main = reported.main_score
        if key is not None or main is None:
            return None
        problem = problem_of(main)
        # p-MRR and others may leave [0, 1]; NaN, text and the like are no scores of any measure
        number = isinstance(main, (int, float)) and not isinstance(main, bool)
        finite = number and main == main and abs(main) != math.inf
        if problem is None or (finite and not reported.wrong):
            return None
        return InputError(f"{reported.task}: main_score {problem}", found=str(main)[:40])

    def tasks(self) -> set[str]:
        """Return the names of the tasks in the result files."""
        return {reported.task for reported in self.reported}

    def sole_task(self) -> str | None:
        """Return the only task of all files, or None if there are several."""
        names = self.tasks() | set(self.selection.tasks)
        if not self.selection.tasks:
            names |= {
                file.stem.removesuffix("_default")
                for file in self.predictions
                if not any(f"{file.stem}_".startswith(f"{task}_") for task in names)
            }
        return next(iter(names)) if len(names) == 1 else None

    def for_predictions(self) -> MtebFolder:
        """Return a copy without what grading predictions does not need, for other processes."""
        stems = [file.stem for file in self.predictions]
        wanted = {task for task in self.tasks() if any(stem.startswith(task) for stem in stems)}
        small = copy(self)
        small.reported = [row for row in self.reported if row.task in wanted]
        small.left_out, small.refused, small.summary = [], [], WalkSummary()
        return small

    def load(
        self,
        file: PredictionFile,
        benchmarks: Benchmarks,
        *,
        keep_self: bool | None = None,
        depth: int | None = None,
    ) -> Iterator[Loaded | Refused | LeftOut]:
        """Yield what one prediction file holds, part by part.

        Parameters
        ----------
        file : PredictionFile
            One of :attr:`predictions`.
        benchmarks : Benchmarks
            Where qrels come from.
        keep_self : bool, optional
            Keep documents that are the query itself; by default what the task does.
        depth : int, optional
            Keep only documents that can reach this rank.
        """
        try:
            content = read_predictions(file.path, depth=depth)
        except FalsifyError as error:
            yield Refused(file.label, error)
            return
        except OSError as error:
            yield Refused(file.label, InputError("cannot be read", found=error.strerror))
            return
        if isinstance(content, str):
            yield LeftOut(file.label, content)
            return
        for name, reason in content.skipped:
            yield LeftOut(f"{file.label} ({name})", reason)
        model = content.model or file.place.model or file.place.folder
        if not self.selection.wants_model(model):
            return
        for part in content.parts:
            name = file.label
            try:
                task, subset = self._task_and_subset(file, part, content, benchmarks)
                if not self.selection.wants_task(task):
                    continue
                split = part.split or self._split(task, subset, part.run, benchmarks)
                if split is not None and not self.selection.wants_part(split, subset):
                    continue
                name = f"{file.label} ({subset}, {split or 'no split'})"
                benchmark = None if split is None else benchmarks.find(task, split, subset)
                if benchmark is None:
                    yield LeftOut(name, f"no qrels at hand for {task}")
                    continue
                yield self._join(file, content, part, benchmark, benchmarks, keep_self)
            except FalsifyError as error:
                yield Refused(name, error)

    def _task_and_subset(
        self, file: PredictionFile, part: Part, content: Predictions, benchmarks: Benchmarks
    ) -> tuple[str, str]:
        """Tell task and subset apart in a file's name, where both may hold underscores."""
        stem = file.stem
        if content.shape == "nested":
            return stem, part.subset or "default"
        pieces = stem.split("_")
        splits = [("_".join(pieces[:i]), "_".join(pieces[i:])) for i in range(len(pieces), 0, -1)]
        known = self.tasks()
        for task, subset in splits:
            if task in known or benchmarks.knows(task):
                return task, subset or "default"
        for task, subset in splits:
            if benchmarks.splits(task, subset or "default"):
                return task, subset or "default"
        return (stem.removesuffix("_default"), "default")

    def _split(self, task: str, subset: str, run: Run, benchmarks: Benchmarks) -> str | None:
        """Find the split of a file that does not say it: the one whose queries these are."""
        stated = [row.split for row in self.reported if row.task == task and row.subset == subset]
        candidates = list(self.selection.splits) or benchmarks.splits(task, subset, stated)
        shared = {}
        for split in candidates:
            benchmark = benchmarks.find(task, split, subset)
            if benchmark is not None:
                judged = set(benchmark.qrels["query_id"].cat.categories)
                # most of the run's queries judged, then most of the judged ones answered
                both = len(judged & run.keys())
                shared[split] = (both, both / len(judged))
        if not shared:
            return None
        best = max(shared.values())
        fitting = [split for split, value in shared.items() if value == best]
        if len(fitting) > 1:
            raise InputError(
                f"the file names no split, and the queries of {len(fitting)} fit equally well",
                found=", ".join(fitting),
                hint="choose one with --split",
            )
        return fitting[0]

    def _join(
        self,
        file: PredictionFile,
        content: Predictions,
        part: Part,
        benchmark: Benchmark,
        benchmarks: Benchmarks,
        keep_self: bool | None,
    ) -> Loaded:
        model = content.model or file.place.model
        revision = content.revision if content.model else file.place.revision
        reported = self._beside(file, content, benchmark)
        if model is None and reported is not None:
            model, revision = reported.place.model, reported.place.revision
        drops_own, facts = _own_rule(part.run, benchmark.task, benchmarks, keep_self)
        skips_first = facts is not None and facts.skip_first_result
        run = part.run
        notes = list(benchmark.notes)
        if part.split is None:
            notes.append(
                Note(
                    "W-SPLIT-GUESSED",
                    f"{file.path.name} names no split: {benchmark.split} is the one whose queries"
                    " it answers",
                )
            )
        if skips_first:
            run = {query: _without_first(docs, query, drops_own) for query, docs in run.items()}
            notes.append(
                Note(
                    "W-FIRST-RESULT",
                    "the first result of each query is left out, as MTEB does in this task",
                )
            )
        system = _system(model or file.place.folder, file.place)
        evaluation = Evaluation.create(
            run,
            benchmark.qrels,
            **benchmark.sizes(),
            keep_self=not drops_own,
            notes=notes,
            system=system,
            benchmark=benchmark.task,
            split=benchmark.split,
            task=benchmark.task,
            subset=benchmark.subset,
            model=model,
            revision=revision,
            provenance={
                **benchmark.provenance,
                "run": {
                    "name": file.label,
                    "format": f"mteb, {content.shape}",
                    "sha256": content_sha256(file.path),
                },
                "corpus_size": benchmark.size_from,
                "self_matches": "dropped" if drops_own else "kept",
                "first_result": "dropped" if skips_first else "kept",
            },
        )
        return Loaded(evaluation, part.run, facts, drops_own, skips_first, reported)

    def _beside(
        self, file: PredictionFile, content: Predictions, benchmark: Benchmark
    ) -> Reported | None:
        """Find the result file that belongs to predictions."""
        key = (benchmark.task, benchmark.split, benchmark.subset)
        rows = [row for row in self.reported if row.key == key]
        model = content.model or file.place.model
        if model is not None:
            rows = [row for row in rows if row.model.casefold() == model.casefold()]
        revision = content.revision if content.model else file.place.revision
        unsaid = [row for row in rows if row.place.revision in (None, *NO_REVISION)]
        for same in (
            [row for row in rows if row.place.folder == file.place.folder],
            [row for row in rows if revision and row.place.revision == revision],
            # another revision is another model
            rows if revision in (None, *NO_REVISION) else unsaid,
        ):
            if len(same) == 1:
                return same[0]
        return None


_NOTHING: Mapping[str, str] = {}


def load_mteb(
    paths: str | Path | Iterable[str | Path],
    *,
    qrels: str | Path | None = None,
    tasks: Iterable[Any] = (),
    download: bool = False,
    model: str | Iterable[str] = (),
    task: str | Iterable[str] = (),
    split: str | Iterable[str] = (),
    subset: str | Iterable[str] = (),
    keep_self: bool | None = None,
    depth: int | None = None,
    problems: list[Refused | LeftOut] | None = None,
) -> Iterator[Evaluation]:
    """Yield an evaluation for every model, task, split and subset with predictions and qrels.

    Parameters
    ----------
    paths : path or iterable of paths
        MTEB folders of any version, or single prediction files.
    qrels : path, optional
        A folder of BEIR-layout folders or TREC files, named by task or BEIR name.
    tasks : iterable of AbsTaskRetrieval, optional
        Task objects whose data gives the qrels, for tasks that MTEB does not know.
    download : bool
        Fetch the data of MTEB's tasks; by default only the local Hugging Face cache is used.
    model, task, split, subset : str or iterable of str
        What is wanted; everything by default.
    keep_self : bool, optional
        Keep documents that are the query itself; by default what the task does.
    depth : int, optional
        Keep only documents that can reach this rank: less memory, the same scores for measures
        with a cutoff up to it.
    problems : list, optional
        Collects what was refused or left out. Without it the first refusal is raised, and what
        is left out is not mentioned.

    Yields
    ------
    Evaluation
        With `benchmark` and `task` the task's name, `system` the model's.

    Raises
    ------
    FalsifyError
        If an input cannot be used and `problems` is not given.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> place = pathlib.Path(folder.name)
    >>> _ = (place / "Toy_predictions.json").write_text(
    ...     json.dumps({"mteb_model_meta": {"model_name": "a/b", "revision": "1"},
    ...                 "default": {"test": {"q1": {"d1": 0.9}}}}))
    >>> (place / "qrels").mkdir()
    >>> _ = (place / "qrels" / "toy.qrels").write_text("q1 0 d1 1")
    >>> [evaluation] = load_mteb(place, qrels=place / "qrels", task="Toy")
    >>> evaluation.system, evaluation.task, evaluation.split, evaluation.subset
    ('a/b', 'Toy', 'test', 'default')
    >>> folder.cleanup()
    """
    selection = Selection(*map(_names, (model, task, split, subset)))
    folder = MtebFolder(paths, selection)
    benchmarks = Benchmarks(qrels, tasks=tasks, download=download, sole_task=folder.sole_task())
    for refused in folder.refused:
        _tell(refused, problems)
    for left_out in folder.left_out:
        _tell(left_out, problems)
    for file in folder.predictions:
        for item in folder.load(file, benchmarks, keep_self=keep_self, depth=depth):
            if isinstance(item, Loaded):
                yield item.evaluation
            else:
                _tell(item, problems)


def _tell(item: Refused | LeftOut, problems: list[Refused | LeftOut] | None) -> None:
    if problems is not None:
        problems.append(item)
    elif isinstance(item, Refused):
        raise item.error


def _names(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _own_rule(
    run: Run, task: str, benchmarks: Benchmarks, keep_self: bool | None
) -> tuple[bool, TaskFacts | None]:
    """Decide whether documents that are the query itself are left out, as the task does."""
    facts = benchmarks.facts(task)
    if keep_self is not None:
        return not keep_self, facts
    if facts is not None:
        return facts.ignore_identical_ids, facts
    own = sum(query in docs for query, docs in run.items() if isinstance(docs, Mapping))
    if own and not benchmarks.have_mteb():
        raise MissingExtraError(
            f"{counted(own, 'query')} {plural(own, 'retrieves itself', 'retrieve themselves')},"
            f" and only the mteb package knows whether {task}"
            " leaves such documents out",
            hint="pip install 'falsify-adapters[mteb-core]', or say --keep-self or --drop-self",
        )
    return False, None


def _without_first(
    documents: Mapping[str, float], query_id: str, drops_own: bool
) -> Mapping[str, float]:
    kept = {doc: score for doc, score in documents.items() if not (drops_own and doc == query_id)}
    # MTEB's own sort: stable, so of equal scores the one that stands first goes
    return dict(sorted(kept.items(), key=lambda item: item[1], reverse=True)[1:])


def _system(model: str, place: Place) -> str:
    return f"{model} [{place.experiment}]" if place.experiment else model


def main_measure(facts: TaskFacts | None) -> str | None:
    """Return a task's main measure as ir-measures spells it, None if it has no such measure.

    A task that MTEB does not know is graded by nDCG@10, as most of its retrieval tasks are.
    """
    return "nDCG@10" if facts is None else measure_of(facts.main_score)
