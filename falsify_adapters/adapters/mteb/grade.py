"""MTEB folders to reports: rankings through the gate, bare scores to certificates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from falsify_adapters.adapters.mteb.benchmarks import Benchmark, Benchmarks
from falsify_adapters.adapters.mteb.load import (
    LeftOut,
    Loaded,
    MtebFolder,
    Refused,
    Reported,
    main_measure,
)
from falsify_adapters.adapters.mteb.results import key_of
from falsify_adapters.adapters.mteb.walk import PredictionFile
from falsify_adapters.certificate import Certificate, Certifier, failed_certificate
from falsify_adapters.errors import FalsifyError
from falsify_adapters.gate import run_gate
from falsify_adapters.measures import measure_depth, parse_measure
from falsify_adapters.notes import Note, some
from falsify_adapters.progress import quietly, track
from falsify_adapters.reproduce import Conventions, Reproduction, reproduce
from falsify_adapters.results import GateConfig, GateReport

#: Scores this close are the same: result files are rounded to six decimals.
SAME = 2e-6

Item = GateReport | Reproduction | Certificate | Refused | LeftOut


@dataclass(frozen=True)
class Settings:
    """How everything is graded; small enough to be sent to other processes.

    Parameters
    ----------
    measures : tuple of str
        Measures as ir-measures spells them; empty for each task's main score.
    config : GateConfig
        Settings of the gate.
    qrels : str or None
        The folder of qrels.
    download : bool
        Fetch the data of tasks.
    keep_self : bool or None
        Keep documents that are the query itself; None for what the task does.
    """

    measures: tuple[str, ...] = ()
    config: GateConfig = field(default_factory=GateConfig)
    qrels: str | None = None
    download: bool = False
    keep_self: bool | None = None


class Grader:
    """Grades the prediction files and the reported scores of a folder.

    Parameters
    ----------
    folder : MtebFolder
        What was found.
    settings : Settings
        How it is graded.
    tasks : iterable of AbsTaskRetrieval
        Task objects, for tasks that MTEB does not know.
    """

    def __init__(self, folder: MtebFolder, settings: Settings, tasks: Iterable[Any] = ()) -> None:
        self.folder = folder
        self.settings = settings
        self.benchmarks = Benchmarks(
            settings.qrels,
            tasks=tasks,
            download=settings.download,
            sole_task=folder.sole_task(),
        )
        self._with_rankings: set[tuple[str, str | None, str | None]] = set()

    def grade_all(self, jobs: int = 1) -> Iterator[Item]:
        """Yield everything that can be said, in the same order for any number of processes.

        Parameters
        ----------
        jobs : int
            Number of processes. Several work on prediction files; they know no task objects.
        """
        files = self.folder.predictions
        several = jobs > 1 and len(files) > 1
        results = _in_processes(self, jobs) if several else map(self.grade, files)
        for items in track(results, "grading predictions", total=len(files)):
            for item in items:
                if isinstance(item, Reproduction):
                    self._with_rankings.add((item.provenance["file"], item.split, item.subset))
                yield item
        yield from self.certificates()

    def grade(self, file: PredictionFile) -> list[Item]:
        """Grade one prediction file."""
        items: list[Item] = []
        found = self.folder.load(
            file, self.benchmarks, keep_self=self.settings.keep_self, depth=self._depth(file)
        )
        for item in found:
            if isinstance(item, Loaded):
                items += self._grade_part(item)
            else:
                items.append(item)
        return items

    def certificates(self) -> Iterator[Item]:
        """Certify the reported scores that have no rankings, benchmark by benchmark."""
        bare = [
            row
            for row in self.folder.reported
            if (row.label, row.split, row.subset) not in self._with_rankings
        ]
        if bare and self.settings.config.tau == "auto":
            yield LeftOut(f"{len(bare):,} reported scores", "tau = auto needs rankings")
            return
        lacking: dict[str, int] = {}
        key, certifiers = None, _Certifiers(None, self)
        for reported in track(sorted(bare, key=lambda row: row.key), "certifying scores"):
            if reported.key != key:
                key = reported.key
                try:
                    certifiers = _Certifiers(self.benchmarks.find(*key), self)
                except FalsifyError as error:
                    certifiers = _Certifiers(None, self)
                    yield Refused(", ".join(key), error)
            for item in certifiers.certify(reported):
                if isinstance(item, str):
                    lacking[item] = lacking.get(item, 0) + 1
                else:
                    yield item
        if lacking:
            total = sum(lacking.values())
            yield LeftOut(
                f"{total:,} reported scores of {some(sorted(lacking))}", "no qrels at hand"
            )

    def measures_of(self, task: str) -> tuple[str, ...]:
        """Return the measures that a task is graded by."""
        if self.settings.measures:
            return self.settings.measures
        main = main_measure(self.benchmarks.facts(task))
        return () if main is None else (main,)

    def _depth(self, file: PredictionFile) -> int | None:
        """Return how deep any measure looks, as far as it is known before the file is read."""
        measures = self.settings.measures
        task = file.stem.removesuffix("_default")
        if not measures and self.benchmarks.knows(task):
            measures = self.measures_of(task)
        depths = [measure_depth(parse_measure(name)) for name in measures]
        known = [depth for depth in depths if depth is not None]
        return max(known) if depths and len(known) == len(depths) else None

    def _grade_part(self, loaded: Loaded) -> Iterator[Item]:
        evaluation = loaded.evaluation
        task = evaluation.task or ""
        name = f"{evaluation.system} on {task}, {evaluation.subset}, {evaluation.split}"
        measures = self.measures_of(task)
        if not measures:
            yield LeftOut(name, "a main score that ir-measures does not have: name a --measure")
        for measure in measures:
            try:
                report = run_gate(evaluation, measure, self.settings.config)
                check = self._reproduce(loaded, measure)
            except FalsifyError as error:
                yield Refused(f"{name}, {measure}", error)
                continue
            if check is not None:
                yield with_check(report, check)
                yield check
            else:
                yield report

    def _reproduce(self, loaded: Loaded, measure: str) -> Reproduction | None:
        reported, evaluation = loaded.reported, loaded.evaluation
        key = key_of(measure)
        if reported is None or key is None:
            return None
        problem = self.folder.check(reported, key)
        if problem is not None:
            raise problem
        value = self.folder.value(reported, key)
        if value is None:
            return None
        task, subset = evaluation.task or "", evaluation.subset or "default"

        def judged(split: str) -> Any:
            benchmark = self.benchmarks.find(task, split, subset)
            assert benchmark is not None  # only splits that have qrels are asked for
            return benchmark.qrels

        return reproduce(
            loaded.run,
            judged,
            measure,
            value,
            base=Conventions(
                own="drop" if loaded.drops_own else "keep",
                first="drop" if loaded.skips_first else "keep",
                split=evaluation.split,
            ),
            splits=tuple(self.benchmarks.splits(task, subset)),
            system=evaluation.system,
            benchmark=evaluation.benchmark,
            split=evaluation.split,
            task=evaluation.task,
            subset=evaluation.subset,
            model=evaluation.model,
            revision=evaluation.revision,
            provenance={
                "file": reported.label,
                "sha256": reported.sha256,
                "key": key,
                "mteb_version": reported.version,
            },
        )


def with_check(report: GateReport, check: Reproduction) -> GateReport:
    """Return a gate report that says what was reported, and a warning if it is another score."""
    notes = report.warnings
    if check.status == "explained":
        notes = (*notes, Note("W-OTHER-CONVENTION", str(check)))
    elif check.status == "not reproduced":
        notes = (*notes, Note("W-NOT-REPRODUCED", str(check)))
    provenance = {
        **report.provenance,
        "mteb_version": check.provenance.get("mteb_version"),
        "reported": {
            "file": check.provenance.get("file"),
            "sha256": check.provenance.get("sha256"),
            "score": check.reported,
        },
    }
    return replace(report, warnings=notes, provenance=provenance)


class _Certifiers:
    """The certifiers of one benchmark, one per measure, made when a score asks for one."""

    def __init__(self, benchmark: Benchmark | None, grader: Grader) -> None:
        self._benchmark = benchmark
        self._grader = grader
        self._made: dict[str, Certifier | FalsifyError] = {}

    def certify(self, reported: Reported) -> Iterator[Item | str]:
        """Yield certificates, refusals, or the task's name where its qrels are lacking."""
        where = f"{reported.label} ({reported.subset}, {reported.split})"
        grader = self._grader
        explicit = grader.settings.measures
        if not explicit:
            problem = grader.folder.check(reported, None)
            if problem is not None:
                yield Refused(where, problem)
                return
        if self._benchmark is None and not explicit and not self._may_fail(reported):
            yield reported.task  # spares the import of mteb, which alone knows the main score
            return
        measures = grader.measures_of(reported.task)
        if not measures:
            yield LeftOut(where, "a main score that ir-measures does not have: name a --measure")
        for measure in measures:
            try:
                yield from self._certify(reported, measure, where)
            except FalsifyError as error:
                yield Refused(where, error)

    def _may_fail(self, reported: Reported) -> bool:
        """Say whether the score fails whatever the qrels are."""
        main = reported.main_score
        if main is None:
            main = self._grader.folder.value(reported, "ndcg_at_10")
        return isinstance(main, (int, float)) and 0 <= main < float(
            self._grader.settings.config.tau
        )

    def _certify(self, reported: Reported, measure: str, where: str) -> Iterator[Item | str]:
        folder = self._grader.folder
        key = key_of(measure)
        if key is None:
            yield LeftOut(where, f"MTEB does not report {measure}")
            return
        problem = folder.check(reported, key)
        if problem is not None:
            raise problem
        score = folder.value(reported, key)
        if score is None:
            yield LeftOut(where, f"the file has no {key}")
            return
        names: dict[str, Any] = {
            "system": reported.system,
            "benchmark": reported.task,
            "split": reported.split,
            "task": reported.task,
            "subset": reported.subset,
            "model": reported.place.model,
            "revision": reported.place.revision,
            "warnings": self._other_main_score(reported, key, score),
            "provenance": {
                "file": reported.label,
                "sha256": reported.sha256,
                "key": key,
                "mteb_version": reported.version or None,
                **(self._benchmark.provenance if self._benchmark else {}),
            },
        }
        tau = float(self._grader.settings.config.tau)
        if self._benchmark is None:
            yield failed_certificate(measure, score, tau, **names) or reported.task
        else:
            yield self._certifier(self._benchmark, measure).certify(score, tau, **names)

    def _other_main_score(self, reported: Reported, key: str, score: float) -> tuple[Note, ...]:
        main = reported.main_score
        if self._grader.settings.measures or not isinstance(main, float):
            return ()
        if abs(main - score) <= SAME:
            return ()
        self._grader.folder.summary.count("main_score differs", reported.label)
        return (
            Note(
                "W-MAIN-SCORE",
                f"{reported.label}: main_score is {main:.5f}, {key} is {score:.5f}, which is"
                " graded",
            ),
        )

    def _certifier(self, benchmark: Benchmark, measure: str) -> Certifier:
        if measure not in self._made:
            try:
                self._made[measure] = Certifier(
                    benchmark.qrels,
                    measure,
                    corpus_size=benchmark.corpus_size,
                    corpus_size_source=benchmark.size_from,
                    corpus_ids=benchmark.corpus_ids,
                    notes=benchmark.notes,
                )
            except FalsifyError as error:
                self._made[measure] = error
        made = self._made[measure]
        if isinstance(made, FalsifyError):
            raise made
        return made


#: The grader of this process, where several share the work.
_SHARED: list[Grader] = []


def _in_processes(grader: Grader, jobs: int) -> Iterator[list[Item]]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    files = grader.folder.predictions
    with ProcessPoolExecutor(
        min(jobs, len(files)),
        mp_context=get_context("spawn"),
        initializer=_share,
        initargs=(grader.folder.for_predictions(), grader.settings),
    ) as pool:
        yield from pool.map(_grade, files)


def _share(folder: MtebFolder, settings: Settings) -> None:
    _SHARED[:] = [Grader(folder, settings)]


def _grade(file: PredictionFile) -> list[Item]:
    with quietly():
        return _SHARED[0].grade(file)
