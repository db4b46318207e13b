"""Units of work: what is done with one run on one benchmark, whoever does it."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from falsify_adapters.cli.dependence import Grouping
from falsify_adapters.cli.grading import Session
from falsify_adapters.cli.options import chosen_measures, gate_config
from falsify_adapters.cli.reading import Reading
from falsify_adapters.cli.second_looks import SecondLooks
from falsify_adapters.errors import InputError
from falsify_adapters.report.outcome import Refusal
from falsify_adapters.sweep.finished import Event, Finished

if TYPE_CHECKING:
    from falsify_adapters.evaluation import Evaluation
    from falsify_adapters.readers import RunFile
    from falsify_adapters.results import GateConfig, GateReport

Step = Literal["run", "baseline", "playground", "controls", "queries"]

#: Options whose value is a file, or may be one.
FILES = ("qrels", "exclude", "pool", "clusters", "strata", "queries", "alt_qrels")


@dataclass(frozen=True)
class Place:
    """Where a benchmark in BEIR's layout is, how it is called, and what is in it.

    Parameters
    ----------
    folder : str
        Absolute.
    name, split, subset : str or None
        As the report calls it.
    sha256 : tuple of (str, str)
        Hashes of its files by what they hold: qrels; corpus and queries where they are known.
    """

    folder: str
    name: str | None
    split: str | None
    subset: str | None
    sha256: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Unit:
    """One unit of work; small, so that it can be sent to another machine.

    Parameters
    ----------
    step : str
        What is done with the run: it is graded, compared with others as their baseline, mixed for
        the playground, accompanied by controls, or only asked for its queries.
    path : str or None
        The run's file; None for BM25, computed.
    system : str
        The system's name.
    read_as, join_as : str
        What a refusal calls the input while it is read, and while it is joined to the qrels.
    place : Place, optional
        The benchmark, if the command has several.
    baseline : bool
        Whether the run is what others are compared with.
    beside : bool
        Whether the qrels are at hand when the run is read.
    again : bool
        Whether a baseline was graded as a run already.
    others : tuple of Unit
        The runs that a baseline is compared with.
    measure : str, optional
        The measure of a playground.
    report : GateReport, optional
        What the playground belongs to.
    sha256 : str, optional
        Of the run's content; a file with another is refused.
    """

    step: Step
    path: str | None
    system: str
    read_as: str
    join_as: str
    place: Place | None = None
    baseline: bool = False
    beside: bool = True
    again: bool = False
    others: tuple[Unit, ...] = ()
    measure: str | None = None
    report: GateReport | None = field(default=None, compare=False)
    sha256: str | None = None


@dataclass(frozen=True)
class Call:
    """What every process must know of a call; small, so that it can be sent to another machine.

    Parameters
    ----------
    command : str
        The module of the command: "ir", "beir".
    options : mapping
        The options that decide numbers.
    accepted : frozenset of str
        Codes of warnings that strict mode lets through.
    files : mapping of str to str
        SHA-256 of each file that the options name, by its path there.
    environment : mapping
        Versions and the like, which must be the same everywhere.
    """

    command: str
    options: Mapping[str, Any]
    accepted: frozenset[str] = frozenset()
    files: Mapping[str, str | None] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)


class Recorder(Session):
    """A session that says nothing and writes nothing: it keeps what happened, for a replay."""

    def __init__(self, call: Call) -> None:
        silent = {"quiet": True, "playground": False, "ascii_only": True}
        known = {name: call.options.get(name) for name in ("strict", "curve")}
        super().__init__({**silent, **known}, accepted=call.accepted)
        self.events: list[Event] = []

    def take(self, report: Any, told: str | None = None) -> None:
        """Keep a report."""
        self.outcome.reports.append(report)
        self.events.append(Event(report, told))

    def refuse(self, refusal: Refusal) -> None:
        """Keep a refusal."""
        self.outcome.errors.append(refusal)
        self.events.append(Event(refusal))


class Settings:
    """What the options of a call say about reading and grading, the same for every benchmark.

    Parameters
    ----------
    session : Session
        Takes the refusals of files with other judgements.
    options : mapping
        All options of the command.
    """

    def __init__(self, session: Session, options: Mapping[str, Any]) -> None:
        self.measures: list[Any] = chosen_measures(options)
        self.config: GateConfig = gate_config(options)
        self.reading = Reading.from_options(options)
        self.grouping = Grouping.from_options(options)
        self.looks = SecondLooks(session, options, self.measures, self.config)


class Bench(ABC):
    """One benchmark, ready to grade runs on; made anew in each process.

    Parameters
    ----------
    settings : Settings
        What the options say.
    """

    #: What a table calls the benchmark.
    title: str

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.files: Mapping[str, RunFile] = {}
        self._evaluations: dict[tuple[str | None, bool], Evaluation] = {}
        self._most = 0

    def keep(self, *, everything: bool) -> None:
        """Remember all evaluations, or the first one, for the steps that need them again."""
        self._most = sys.maxsize if everything else 1

    @abstractmethod
    def join(self, file: RunFile | None, unit: Unit, **names: Any) -> Evaluation:
        """Join a run to the qrels."""

    @abstractmethod
    def read(self, unit: Unit) -> RunFile | None:
        """Read the unit's run."""

    @property
    def corpus_ids(self) -> Iterable[str] | None:
        """The ids of the corpus, if they are known."""
        return None

    @abstractmethod
    def facts(self, step: Step, computed: bool) -> dict[str, Any]:
        """Return names and hashes of what the benchmark is made of, as far as a step uses it.

        `computed` says whether the run is BM25, which is made from the texts.
        """

    def evaluate(self, session: Session, unit: Unit) -> Evaluation | None:
        """Read a run and join it to the qrels; None if it was refused."""
        role = "baseline" if unit.baseline else "run"
        known = (unit.path, unit.baseline)
        if known in self._evaluations:
            return self._evaluations[known]
        with session.attempt(unit.read_as):
            file = self.files.get(unit.path or "") or self.read(unit)
            _refuse_changed(file, unit)
            with session.attempt(unit.join_as):
                evaluation = self.join(file, unit, role=role)
                if len(self._evaluations) < self._most:
                    self._evaluations[known] = evaluation
                return evaluation
        return None


def _refuse_changed(file: RunFile | None, unit: Unit) -> None:
    """Refuse a run whose content is not the one that this unit is about."""
    from falsify_adapters.readers.source import content_sha256

    if file is None or unit.path is None or unit.sha256 is None:
        return
    # what ranx packs twice is hashed elsewhere
    found = {file.provenance.get("sha256"), unit.sha256}
    if len(found) > 1 and content_sha256(unit.path) != unit.sha256:
        raise InputError(f"{unit.path} has changed since the sweep began")


def perform(bench: Bench, recorder: Recorder, unit: Unit) -> Finished:
    """Do one unit of work."""
    evaluation = bench.evaluate(recorder, unit)
    accepted = evaluation is not None and _STEPS[unit.step](bench, recorder, unit, evaluation)
    return Finished(tuple(recorder.events), evaluation is not None, accepted)


def _grade(bench: Bench, recorder: Recorder, _unit: Unit, evaluation: Evaluation) -> bool:
    settings = bench.settings
    accepted = recorder.grade(evaluation, settings.measures, settings.config)
    if accepted:
        settings.looks.look(recorder, evaluation)
    return accepted


def _compare(bench: Bench, recorder: Recorder, unit: Unit, evaluation: Evaluation) -> bool:
    settings = bench.settings
    accepted = unit.again or recorder.grade(evaluation, settings.measures, settings.config)
    if accepted:
        others = [bench.evaluate(recorder, other) for other in unit.others]
        settings.looks.compare(recorder, evaluation, [one for one in others if one is not None])
    return accepted


def _accompany(bench: Bench, recorder: Recorder, _unit: Unit, evaluation: Evaluation) -> bool:
    settings = bench.settings
    recorder.grade_controls(evaluation, settings.measures, settings.config, bench.corpus_ids)
    return True


def _mix(bench: Bench, recorder: Recorder, unit: Unit, evaluation: Evaluation) -> bool:
    from falsify_adapters.playground import make_playground

    assert unit.report is not None
    with recorder.attempt(f"{unit.join_as}, {unit.report.measure}"):
        ground = make_playground(
            evaluation, unit.report, bench.settings.config, corpus_ids=bench.corpus_ids
        )
        recorder.events.append(Event(ground))
    return True


_STEPS: Mapping[str, Callable[[Bench, Recorder, Unit, Any], bool]] = {
    "run": _grade,
    "baseline": _compare,
    "playground": _mix,
    "controls": _accompany,
}


def ask_queries(
    call: Call, unit: Unit, files: MutableMapping[str, RunFile] | None = None
) -> Finished:
    """Return the queries that a run answers, for the command to see where it belongs.

    `files` takes what was read.
    """
    recorder = Recorder(call)
    with recorder.attempt(unit.read_as):
        assert unit.path is not None
        reading = Reading.from_options(call.options)
        if unit.baseline:
            file = reading.read_baseline(unit.path, None, {})
        else:
            file = reading.read(unit.path)
        if files is not None:
            files[unit.path] = file
        queries = tuple(file.frame["query_id"].cat.categories)
        return Finished((), evaluated=True, queries=queries)
    return Finished(tuple(recorder.events))
