"""``--jobs``, ``--scheduler``, ``--resume``: who grades many runs, and where they are kept."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from falsify_adapters.cli.call import HASHES, SILENT
from falsify_adapters.cli.command import complain
from falsify_adapters.cli.grading import DOCUMENTS, Session
from falsify_adapters.cli.jobs import Job, file_sha256, grade_job, is_file
from falsify_adapters.cli.options import WRITING
from falsify_adapters.cli.units import (
    FILES,
    Bench,
    Call,
    Place,
    Recorder,
    Unit,
    ask_queries,
    perform,
)
from falsify_adapters.errors import UsageError
from falsify_adapters.notes import counted
from falsify_adapters.progress import progress, quietly
from falsify_adapters.report.outcome import Refusal, Skip
from falsify_adapters.sweep.finished import Finished

if TYPE_CHECKING:
    from falsify_adapters.readers import RunFile
    from falsify_adapters.results import GateReport
    from falsify_adapters.sweep.store import Store
    from falsify_adapters.sweep.workers import Doing

#: Most processes of one call.
MOST_JOBS = 1024
#: Options that say what else is graded, which decides nothing about a single unit.
ELSEWHERE = frozenset({"runs", "datasets", "baseline", "controls", "measures_after"})

#: How the keys of units begin that cannot be kept.
NAMELESS = "#"

Item = Unit | Skip | Refusal


@dataclass
class Plan:
    """What is to be done on one benchmark.

    Parameters
    ----------
    bench : Bench
        The benchmark.
    runs, baselines : list of Unit, Skip or Refusal
        In the order in which the report tells them.
    controls : bool
        Whether the first run is accompanied by controls.
    """

    bench: Bench
    runs: list[Item]
    baselines: list[Item]
    controls: bool


def is_sweep(options: Mapping[str, Any]) -> bool:
    """Return whether other processes, or other calls, share the work."""
    return bool(options["jobs"] > 1 or options["scheduler"] or options["resume"])


def check_many(options: Mapping[str, Any]) -> None:
    """Refuse what makes no sense before anything is read."""
    jobs, scheduler, resume = (options[name] for name in ("jobs", "scheduler", "resume"))
    if not 1 <= jobs <= MOST_JOBS:
        raise UsageError(f"--jobs must lie between 1 and {MOST_JOBS}", found=str(jobs))
    if jobs > 1 and scheduler:
        raise UsageError(
            "--jobs and --scheduler exclude each other", hint="a cluster has its own workers"
        )
    if scheduler == "":
        raise UsageError("--scheduler names no address")
    if resume is not None:
        _refuse_targets_inside(resume, options)
    if not is_sweep(options):
        return
    for name in ("runs", "baseline", *FILES):
        value = options.get(name)
        for place in [value] if isinstance(value, str) else value or ():
            if place == "-" or (os.path.exists(place) and not _is_regular(place)):  # noqa: PTH110
                raise UsageError(
                    f"{place} can be read but once, and by one process",
                    hint="--jobs, --scheduler and --resume need files: save it to one",
                )


def _is_regular(place: str) -> bool:
    return is_file(place) or Path(place).is_dir()


def _refuse_targets_inside(resume: str, options: Mapping[str, Any]) -> None:
    if not resume:
        raise UsageError("--resume names no folder")
    folder = Path(resume).resolve()
    for name in DOCUMENTS:
        target = options.get(name)
        if target not in (None, "-") and folder in Path(target).resolve().parents:
            raise UsageError(
                f"{target} lies in the folder of finished runs",
                found=f"--resume {resume}",
                hint="write it elsewhere: the folder is read as one table",
            )


class Flow:
    """Does the work of a call and puts what comes out into the session, always in one order.

    Parameters
    ----------
    session : Session
        Takes what was found.
    command : str
        The module of the command: "ir", "beir".
    options : mapping
        All options.
    """

    def __init__(self, session: Session, command: str, options: Mapping[str, Any]) -> None:
        self._session, self._options = session, options
        self._sweeps = is_sweep(options)
        context = click.get_current_context()
        self._hashes: dict[str, str | None] = dict(context.meta.get(HASHES, {}))
        self.call = Call(command, _deciding(context, options), session.accepted)
        #: Runs that were read before it was known where they belong, if nobody else grades them.
        self.files: dict[str, RunFile] = {}
        self._benches: dict[Place | None, Bench] = {}
        self._store: Store | None = None
        self._doing: Doing[Any, Any] | None = None
        self._mixed: set[tuple[str | None, ...]] = set()

    @property
    def hashes(self) -> bool:
        """Whether the content of every input must be known."""
        return bool(self._options["resume"] or self._options["scheduler"])

    @contextmanager
    def working(self) -> Iterator[None]:
        """Hold what the work needs: the folder, the processes, the connection."""
        if not self._sweeps:
            yield
            return
        from falsify_adapters.provenance import describe_environment
        from falsify_adapters.sweep import workers
        from falsify_adapters.sweep.store import Store

        self.call = replace(
            self.call, files=self._shared_files(), environment=describe_environment()
        )
        with ExitStack() as stack:
            stack.enter_context(_stoppable())
            if self._options["resume"] is not None:
                self._store = Store(self._options["resume"])
            if self._options["scheduler"]:
                self._doing = stack.enter_context(workers.cluster(self._options["scheduler"]))
            elif self._options["jobs"] > 1:
                self._doing = stack.enter_context(workers.processes(self._options["jobs"]))
            yield
        self._tell_others()

    def ask(self, units: Sequence[Unit]) -> Iterator[tuple[Unit, Finished]]:
        """Ask runs for their queries; yields them in order."""
        yield from self._do(units, "reading runs")

    def grade(self, plans: Sequence[Plan]) -> None:
        """Do everything that is planned."""
        for plan in plans:
            for unit in (*_units(plan.runs), *_units(plan.baselines)):
                self._benches[unit.place] = plan.bench
            if not self._sweeps and (plan.baselines or plan.controls or self._session.plays):
                plan.bench.keep(everything=bool(plan.baselines))
        # where nobody helps, a benchmark is told before the next one is begun
        for together in [plans] if self._sweeps else [[plan] for plan in plans]:
            self._grade_together(together)

    def _grade_together(self, plans: Sequence[Plan]) -> None:
        more = any(plan.baselines or plan.controls for plan in plans) or self._session.plays
        at_once = len(plans) == 1 or not more
        done: dict[Unit, Finished] = {}

        def results(units: Sequence[Unit]) -> Iterator[Finished]:
            for unit, finished in self._do(units, "grading runs"):
                done[unit] = finished
                yield finished

        units = [unit for plan in plans for unit in _units(plan.runs)]
        coming = results(units)
        if at_once:
            for plan in plans:
                self._tell(plan.runs, lambda _unit: next(coming))
        deque(coming, maxlen=0)
        if not more:
            return
        later = {id(plan): self._baselines(plan, done) for plan in plans}
        deque(results([u for items in later.values() for u in _units(items)]), maxlen=0)
        last = {id(plan): self._last(plan, later[id(plan)], done) for plan in plans}
        deque(results([u for units in last.values() for u in units]), maxlen=0)
        for plan in plans:
            if not at_once:
                self._tell(plan.runs, lambda unit: done[unit])
            self._tell([*later[id(plan)], *last[id(plan)]], lambda unit: done[unit])

    def _tell(self, items: Iterable[Item], finished: Callable[[Unit], Finished]) -> None:
        for item in items:
            if isinstance(item, Unit):
                self._session.replay(finished(item))
            elif isinstance(item, Refusal):
                self._session.refuse(item)
            else:
                self._session.skip(item.input, item.reason)

    def _baselines(self, plan: Plan, done: Mapping[Unit, Finished]) -> list[Item]:
        """Return what is compared, once it is known which runs were graded."""
        others = tuple(unit for unit in _units(plan.runs) if done[unit].accepted)
        return [
            replace(item, others=others) if isinstance(item, Unit) else item
            for item in plan.baselines
        ]

    def _last(self, plan: Plan, later: Iterable[Item], done: Mapping[Unit, Finished]) -> list[Unit]:
        """Return what belongs to the first run: its playground for each measure, the controls."""
        runs = list(_units(plan.runs))
        found: list[Unit] = []
        if self._session.plays:
            for unit in (*runs, *_units(later)):
                for report in done[unit].gate_reports():
                    key = _group(report)
                    if key not in self._mixed:
                        self._mixed.add(key)
                        where = f" on {report.benchmark}" if report.benchmark else ""
                        name = f"{report.system}{where}"
                        mix = replace(unit, step="playground", join_as=name)
                        found.append(replace(mix, measure=report.measure, report=report))
        first = next((unit for unit in runs if done[unit].evaluated), None)
        if plan.controls and first is not None:
            found.append(replace(first, step="controls"))
        return found

    def _do(self, units: Sequence[Unit], what: str) -> Iterator[tuple[Unit, Finished]]:
        """Yield each unit with what came of it, in the order of the units."""
        if not self._sweeps:
            for unit in units:
                yield unit, self._here(unit)
            return
        given, units = units, [self._with_hash(unit) for unit in units]
        keys = [self._key(number, unit) for number, unit in enumerate(units)]
        results: dict[str, Finished] = {}
        with progress(what, len(units)) as advance:
            todo = dict[str, Unit]()
            for key, unit in zip(keys, units, strict=True):
                kept = None if key in todo or key in results else self._kept(key, unit)
                if kept is not None:
                    results[key] = kept
                elif key not in results:
                    todo.setdefault(key, unit)
            advance(len(units) - len(todo))
            coming = self._finish(todo)
            for unit, key in zip(given, keys, strict=True):
                while key not in results:
                    name, finished = next(coming)
                    results[name] = finished
                    advance(1)
                yield unit, results[key]

    def _finish(self, todo: Mapping[str, Unit]) -> Iterator[tuple[str, Finished]]:
        """Do units; yield and keep each as it is done, in any order."""
        keys, units = list(todo), list(todo.values())
        if self._doing is not None and units:
            results = self._doing(grade_job, [Job.of(self.call, unit) for unit in units])
        else:
            results = ((number, self._here(unit)) for number, unit in enumerate(units))
        for number, finished in results:
            key, unit = keys[number], units[number]
            if self._store is not None and not key.startswith(NAMELESS) and finished.lasts:
                self._store.save(key, finished, together=unit.step != "run")
            yield key, finished

    def _here(self, unit: Unit) -> Finished:
        if unit.step == "queries":
            return ask_queries(self.call, unit, None if self._sweeps else self.files)
        with quietly(self._sweeps or self._session.quiet):
            return perform(self._benches[unit.place], Recorder(self.call), unit)

    def _kept(self, key: str, unit: Unit) -> Finished | None:
        if self._store is None or key.startswith(NAMELESS):
            return None
        n_damaged = len(self._store.damaged)
        kept = self._store.load(key, together=unit.step != "run")
        for name in () if self._session.quiet else self._store.damaged[n_damaged:]:
            complain(f"note: {name} is damaged: {unit.system} is graded again")
        return kept

    def _key(self, number: int, unit: Unit) -> str:
        """Return the name under which a unit is kept; only a number for one that cannot be."""
        from falsify_adapters.sweep.store import key_of

        paths = [one for one in (unit, *unit.others) if one.path is not None]
        known = all(one.sha256 is not None for one in paths)
        if self._store is None or unit.step == "queries" or not known:
            return f"{NAMELESS}{number}"
        return key_of(self._facts(unit))

    def _facts(self, unit: Unit) -> dict[str, Any]:
        """Return everything that decides what comes of a unit."""
        return {
            "command": self.call.command,
            "step": unit.step,
            "run": _named(unit),
            "again": unit.again,
            "others": [_named(other) for other in unit.others],
            "measure": unit.measure,
            "benchmark": self._benches[unit.place].facts(unit.step, unit.path is None),
            "settings": {name: self._setting(name, v) for name, v in self.call.options.items()},
            "accepted": sorted(self.call.accepted),
            "environment": dict(self.call.environment),
        }

    def _setting(self, name: str, value: Any) -> Any:
        """Return what an option says: of a file its base name, wherever it lies, and content."""
        if name not in FILES:
            return repr(list(value) if isinstance(value, tuple) else value)
        return [
            # refusals call other judgements as the user did
            [place if name == "alt_qrels" else Path(place).name, self._sha256(place)]
            if is_file(place)
            else place
            for place in _texts(value)
        ]

    def _with_hash(self, unit: Unit) -> Unit:
        others = tuple(self._with_hash(other) for other in unit.others)
        known = unit.path in self._hashes
        digest = self._sha256(unit.path) if unit.path and (self.hashes or known) else None
        return replace(unit, sha256=digest, others=others)

    def _sha256(self, path: str) -> str | None:
        if path not in self._hashes:
            self._hashes[path] = file_sha256(path)
        return self._hashes[path]

    def _shared_files(self) -> dict[str, str | None]:
        places = [place for name in FILES for place in _texts(self.call.options.get(name))]
        return {place: self._sha256(place) for place in places if is_file(place)}

    def _tell_others(self) -> None:
        others = 0 if self._store is None else self._store.others()
        if others and not self._session.quiet:
            complain(
                f"note: {self._options['resume']} also holds "
                f"{counted(others, 'finished run')} of other inputs or settings"
            )


def _deciding(context: click.Context, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that decide numbers, words, or refusals."""
    written = {p.name for p in context.command.params if getattr(p, "section", "") == WRITING}
    silent = (SILENT - {"strict"}) | written | ELSEWHERE
    return {name: value for name, value in options.items() if name not in silent}


def _units(items: Iterable[Item]) -> Iterator[Unit]:
    return (item for item in items if isinstance(item, Unit))


def _named(unit: Unit) -> list[str | None]:
    name = None if unit.path is None else Path(unit.path).name
    return [unit.system, name, unit.sha256]


def _texts(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())


def _group(report: GateReport) -> tuple[str | None, ...]:
    return (report.benchmark, report.split, report.task, report.subset, report.measure)


@contextmanager
def _stoppable() -> Iterator[None]:
    """Leave in an orderly way when told to terminate: processes are ended, files stay whole."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
