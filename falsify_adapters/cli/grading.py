"""What the grading commands do with their inputs: grade each, go on after a refusal, report."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

from falsify_adapters.cli.call import describe_call, drop_paths
from falsify_adapters.cli.command import complain, exit_status, write
from falsify_adapters.cli.options import was_chosen
from falsify_adapters.cli.targets import check_targets
from falsify_adapters.errors import FalsifyError, InputError, UsageError
from falsify_adapters.notes import ON_VERDICTS, Note, refuse_notes
from falsify_adapters.progress import quietly
from falsify_adapters.report.outcome import Outcome, Refusal, Skip

if TYPE_CHECKING:
    from falsify_adapters.evaluation import Evaluation
    from falsify_adapters.results import GateConfig, GateReport
    from falsify_adapters.sweep.finished import Finished

#: Endings of run files that are not part of a system's name.
SUFFIXES = frozenset(
    {
        *(".gz", ".lz4", ".trec", ".run", ".res", ".results"),
        *(".txt", ".tsv", ".csv", ".json", ".jsonl", ".parquet"),
    }
)

#: The documents that can be asked for; JSON last, so that it says if another was not written.
DOCUMENTS = ("markdown_to", "html_to", "latex_to", "csv_to", "parquet_to", "json_to")

#: The input that is refused when an option makes no sense.
COMMAND_LINE = "command line"


class Session:
    """One call of a grading command: collects reports and refusals, then writes them.

    Parameters
    ----------
    options : mapping
        The options of the command: where to write (:data:`DOCUMENTS`), and ``quiet, ascii_only,
        strict, playground, curve``.
    accepted : frozenset of str, optional
        Codes of warnings that strict mode lets through; by default as this call's options say.
    """

    def __init__(self, options: Mapping[str, Any], accepted: frozenset[str] | None = None) -> None:
        self.outcome = Outcome()
        self.quiet = bool(options["quiet"])
        self._targets: dict[str, str | None] = {name: options.get(name) for name in DOCUMENTS}
        self.plays = bool(options["playground"]) and self._targets["html_to"] is not None
        self._ascii_only = bool(options["ascii_only"])
        self._strict = bool(options["strict"])
        self._curve = bool(options.get("curve"))
        self._plan: str | None = options.get("plan")
        self.accepted = _accepted() if accepted is None else accepted
        self._told: set[tuple[str, str]] = set()

    @contextmanager
    def attempt(self, name: str) -> Iterator[None]:
        """Go on after a refused input, and remember it."""
        try:
            yield
        except FalsifyError as error:
            self.refuse(Refusal(name, error))
        except OSError as error:
            # FileNotFoundError and its like name the file themselves
            self.refuse(Refusal(name, InputError(f"cannot use {name}", found=str(error))))

    def skip(self, name: str, reason: str) -> None:
        """Remember an input that is left out and decides nothing."""
        self.outcome.skipped.append(Skip(name, reason))

    def grade(
        self,
        evaluation: Evaluation,
        measures: Iterable[Any],
        config: GateConfig,
        corpus_ids: Iterable[str] | None = None,
    ) -> bool:
        """Grade one evaluation by each measure; say whether none was refused."""
        name, refused = _name(evaluation), len(self.outcome.errors)
        with self.attempt(name):
            self.check(evaluation.system, evaluation.notes)
            for measure in measures:
                with self.attempt(f"{name}, {measure}"):
                    report = self.grade_one(evaluation, measure, config)
                    self._play(evaluation, report, config, corpus_ids)
        return len(self.outcome.errors) == refused

    def grade_one(self, evaluation: Evaluation, measure: Any, config: GateConfig) -> GateReport:
        """Grade one evaluation by one measure; a refusal is the caller's matter."""
        from falsify_adapters.gate import run_gate

        report = run_gate(evaluation, measure, config)
        if self._curve and report.role == "run":
            from falsify_adapters.gate import calibration_curve

            report = replace(report, curve=calibration_curve(evaluation, measure, config))
        return self.add(report)

    def add(self, report: GateReport) -> GateReport:
        """Take a gate report in; a refusal is the caller's matter."""
        decides = report.role == "run"
        if decides:
            self.check(report.system, report.warnings)
        self.take(report, report.system if decides else None)
        return report

    def add_beside(self, report: Any, name: str) -> None:
        """Take in a report of another kind with warnings; a refusal is the caller's matter."""
        self.check(name, report.warnings)
        self.take(report, name)

    def take(self, report: Any, told: str | None = None) -> None:
        """Take in a report of any kind; tell its warnings under a system's name."""
        self.outcome.reports.append(report)
        if told is not None:
            self._tell(report.warnings, told)

    def replay(self, finished: Finished) -> None:
        """Take in what a unit of work found, wherever it was done."""
        from falsify_adapters.playground import Playground

        for event in finished.events:
            if isinstance(event.item, Refusal):
                self.refuse(event.item)
            elif isinstance(event.item, Playground):
                self.outcome.playgrounds.append(event.item)
            else:
                self.take(event.item, event.told)

    def _play(
        self,
        evaluation: Evaluation,
        report: GateReport,
        config: GateConfig,
        corpus_ids: Iterable[str] | None,
    ) -> None:
        """Make the playground of a benchmark's first run: it costs 40 times its grading."""
        # blind predictors know nothing of a query's own pool of documents
        if not self.plays or evaluation.pool_sizes is not None:
            return
        from falsify_adapters.playground import make_playground, report_key
        from falsify_adapters.report.groups import by_benchmark

        group = next(g for g in by_benchmark(self.outcome.gate_reports()) if report in g)
        if not {report_key(r) for r in group} & {g.key for g in self.outcome.playgrounds}:
            self.outcome.playgrounds.append(
                make_playground(evaluation, report, config, corpus_ids=corpus_ids)
            )

    def grade_controls(
        self,
        evaluation: Evaluation,
        measures: Iterable[Any],
        config: GateConfig,
        corpus_ids: Iterable[str] | None,
    ) -> None:
        """Grade the controls beside one evaluated run."""
        from falsify_adapters.baselines import controls

        for measure in measures:
            with self.attempt(f"controls, {measure}"):
                for control in controls(
                    evaluation, measure, seed=config.seed, corpus_ids=corpus_ids
                ):
                    self.grade_one(control, measure, config)

    def check(self, system: str, notes: Iterable[Note]) -> None:
        """Refuse an input that has warnings, if the user asked for that."""
        if self._strict:
            refuse_notes(notes, system, accepted=self.accepted)

    def refuse(self, refusal: Refusal) -> None:
        """Take in a refusal, and say it."""
        self.outcome.errors.append(refusal)
        name, text = refusal.input, str(refusal.error)
        said = name == COMMAND_LINE or name in text
        complain(f"error: {text}" if said else f"error: {name}: {text}")

    def _tell(self, notes: Iterable[Note], system: str) -> None:
        if self.quiet or self._same_screen:
            return
        for note in notes:
            if (system, str(note)) not in self._told:
                self._told.add((system, str(note)))
                complain(f"warning: {note} [{system}]")

    @property
    def _same_screen(self) -> bool:
        """Whether the report itself shows what would be told beside it."""
        return sys.stderr.isatty() and sys.stdout.isatty() and self._prints_table

    @property
    def _prints_table(self) -> bool:
        return not (self.quiet or "-" in self._targets.values())

    def finish(self) -> int:
        """Write everything that was asked for; return the exit status."""
        self._add_averages()
        self._check_plan()
        self._write_documents()
        if self._prints_table and (self.outcome.reports or self.outcome.skipped):
            from falsify_adapters.report.terminal import to_terminal

            text = to_terminal(
                self.outcome,
                width=shutil.get_terminal_size((80, 24)).columns,
                color=_wants_color(sys.stdout),
                ascii_only=self._ascii_only or not _speaks_unicode(sys.stdout),
            )
            write(sys.stdout, text)
        return exit_status(self.outcome)

    def _check_plan(self) -> None:
        """Say whether the plan was kept to; departing from it is no error."""
        if self._plan is None:
            return
        from falsify_adapters.plan import kept_to

        plan = self.outcome.plan = kept_to(self._plan, self.outcome.gate_reports())
        if not (self.quiet or self._same_screen):
            said = "kept to" if plan["kept"] else f"not kept to: {'; '.join(plan['departures'])}"
            complain(f"plan {plan['name']} ({plan['sha256'][:12]}) {said}")

    def _add_averages(self) -> None:
        if len(self.outcome.reports) > 1:
            from falsify_adapters.report.averages import macro_averages

            self.outcome.reports += macro_averages(self.outcome.gate_reports())

    def _write_documents(self) -> None:
        from falsify_adapters.report.jsonfile import write_atomically

        for name, target in self._targets.items():
            if target is not None:
                with self.attempt(COMMAND_LINE if target == "-" else target):
                    content = render(name, self.outcome)
                    if target == "-":
                        write(sys.stdout, content)
                    else:
                        write_atomically(target, content)


def render(name: str, outcome: Outcome) -> bytes:
    """Return one of the documents of :data:`DOCUMENTS`."""
    if name == "json_to":
        from falsify_adapters.report.jsonfile import to_json

        return to_json(outcome)
    if name == "html_to":
        from falsify_adapters.report.html import to_html

        return to_html(outcome).encode("utf-8")
    if name == "latex_to":
        from falsify_adapters.report.latex import to_latex

        return to_latex(outcome).encode("utf-8", "replace")
    if name == "parquet_to":
        from falsify_adapters.report.table import to_parquet

        return to_parquet(outcome)
    if name == "csv_to":
        from falsify_adapters.report import csvfile, table

        if table.fits(outcome):
            return table.to_csv(outcome)
        return csvfile.to_csv(outcome).encode("utf-8", "replace")
    from falsify_adapters.report.markdown import to_markdown

    return to_markdown(outcome).encode("utf-8", "replace")


def run_session(options: Mapping[str, Any], grade: Callable[[Session], None]) -> int:
    """Run what a command does, then write its report, refusals included.

    Returns
    -------
    int
        The exit status.
    """
    streamed = [f"--{name.removesuffix('_to')} -" for name in DOCUMENTS if options.get(name) == "-"]
    if len(streamed) > 1:
        raise UsageError(f"{' and '.join(streamed)} both want standard output")
    context = click.get_current_context()
    check_targets(
        context,
        {
            f"--{name.removesuffix('_to')}": options[name]
            for name in DOCUMENTS
            if options.get(name) is not None
        },
    )
    session = Session(options)
    session.outcome.call = describe_call(context)
    with quietly(session.quiet), session.attempt(COMMAND_LINE):
        grade(session)
    drop_paths(session.outcome, context)
    return session.finish()


def _accepted() -> frozenset[str]:
    """Return the codes that this call's strict mode lets through."""
    # what the user has answered with an option is no reason to refuse
    answered = {"W-DEPTH", "W-EXCLUDED"} | (
        {"W-SELF-MATCHES"} if was_chosen("keep_self") else set()
    )
    return ON_VERDICTS | answered


def system_names(paths: Iterable[str]) -> dict[str, str]:
    """Name the system behind each run file: the file's name, and as much of its folder as needed.

    Endings of run files are left away, unless they are all that tells two files apart.

    Examples
    --------
    >>> system_names(["a/bm25.trec.gz", "b/bm25.trec", "b/k1=0.9"])
    {'a/bm25.trec.gz': 'a/bm25', 'b/bm25.trec': 'b/bm25', 'b/k1=0.9': 'k1=0.9'}
    >>> system_names(["/a/bm25.trec", "/a/bm25.json"])
    {'/a/bm25.trec': 'bm25.trec', '/a/bm25.json': 'bm25.json'}
    """
    whole = {path: _parts(path) for path in paths}
    plain = {path: _without_endings(own) for path, own in whole.items()}
    endings = Counter(map(_without_endings, set(whole.values())))
    names: dict[str, str] = {}
    for path, own in plain.items():
        others = endings.keys() - {own}
        depth = 1
        while depth < len(own) and any(other[-depth:] == own[-depth:] for other in others):
            depth += 1
        names[path] = "/".join((own if endings[own] == 1 else whole[path])[-depth:])
    return names


def _parts(path: str) -> tuple[str, ...]:
    if path == "-":
        return ("stdin",)
    pure = PurePath(path)
    return tuple(part for part in pure.parts if part != pure.anchor)


def _without_endings(parts: tuple[str, ...]) -> tuple[str, ...]:
    if not parts:
        return parts
    *folders, name = parts
    pure = PurePath(name)
    while pure.suffix in SUFFIXES and pure.stem:
        pure = pure.with_suffix("")
    return (*folders, pure.name)


def _name(evaluation: Evaluation) -> str:
    return (
        f"{evaluation.system} on {evaluation.benchmark}"
        if evaluation.benchmark
        else (evaluation.system)
    )


def _wants_color(stream: Any) -> bool:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and stream.isatty()


def _speaks_unicode(stream: Any) -> bool:
    return (getattr(stream, "encoding", None) or "").lower().replace("-", "") in ("utf8", "utf16")
