"""``falsify-mteb``: grade what MTEB left on disk."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from falsify_adapters.cli.command import EXIT_STATUS_HELP, Command
from falsify_adapters.cli.grading import Session, run_session
from falsify_adapters.cli.options import (
    READING,
    WRITING,
    chosen_measures,
    gate_config,
    gate_options,
    measure_options,
    option,
    run_options,
    writing_options,
)
from falsify_adapters.errors import InputError, UsageError

if TYPE_CHECKING:
    from falsify_adapters.adapters.mteb.grade import Grader

#: Left-out inputs of one kind that are named one by one.
NAMED = 2


@click.command(
    "falsify-mteb",
    cls=Command,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_STATUS_HELP.replace("any UNDER-NS", "any UNDER-NS or NOT CERTIFIED"),
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@option(
    READING,
    "--qrels",
    metavar="FOLDER",
    help="BEIR-layout folders or TREC files, named by task or BEIR name.",
)
@option(READING, "--download", is_flag=True, help="Fetch tasks' data [local cache only].")
@option(READING, "--model", "models", multiple=True, metavar="NAME", help="Repeatable [all].")
@option(READING, "--task", "tasks", multiple=True, metavar="NAME", help="Repeatable [all].")
@option(READING, "--split", "splits", multiple=True, metavar="NAME", help="Repeatable [all].")
@option(READING, "--subset", "subsets", multiple=True, metavar="NAME", help="Repeatable [all].")
@option(
    READING,
    "--keep-self/--drop-self",
    default=None,
    help="Hits that are the query itself [as the task does].",
)
@option(READING, "--strict", is_flag=True, help="Refuse inputs that have input warnings.")
@option(READING, "--jobs", "-j", type=int, default=1, metavar="N", help="Processes [1].")
@option(READING, "--resume", hidden=True)
@option(READING, "--scheduler", hidden=True)
@measure_options([], "each task's main score")
@gate_options
@run_options
@option(WRITING, "--parquet", "parquet_to", metavar="FILE", help="As --csv, typed.")
@writing_options
@click.pass_context
def main(context: click.Context, /, **options: Any) -> None:
    """Grade MTEB results: predictions by four nulls, bare scores by what they can prove.

    PATH is a folder of results or predictions of any mteb version, or a file.

    \b
    falsify-mteb results --qrels qrels               certify reported scores
    falsify-mteb predictions results --qrels beir    grade rankings
    falsify-mteb results --task SciFact --markdown - -j 2
    """
    for name in ("resume", "scheduler"):
        if options[name] is not None:
            raise UsageError(
                f"falsify-mteb has no --{name}",
                hint="a prediction file is graded beside all results of its folder: --jobs N"
                " grades several on this machine; falsify-ir takes single runs",
            )
    if options["jobs"] < 1:
        raise UsageError("--jobs must be at least 1", found=str(options["jobs"]))
    context.exit(run_session(options, lambda session: _grade_all(session, options)))


def _grade_all(session: Session, options: Mapping[str, Any]) -> None:
    from falsify_adapters.adapters.mteb.grade import Grader, Settings
    from falsify_adapters.adapters.mteb.load import MtebFolder, Selection
    from falsify_adapters.adapters.mteb.results import key_of
    from falsify_adapters.adapters.mteb.tasks import require_mteb
    from falsify_adapters.progress import progress

    if options["download"]:
        require_mteb("--download")
    measures = tuple(str(measure) for measure in chosen_measures(options))
    settings = Settings(
        measures,
        gate_config(options),
        options["qrels"],
        options["download"],
        options["keep_self"],
    )
    selection = Selection(*(options[name] for name in ("models", "tasks", "splits", "subsets")))
    with progress("reading files") as advance:
        folder = MtebFolder(
            options["paths"],
            selection,
            extra_keys=[key for name in measures if (key := key_of(name))],
            advance=advance,
        )
    grader = Grader(folder, settings)
    _take_all(session, grader, options["jobs"])
    _summarise(session, grader)
    if not session.outcome.reports[:-1] and not session.outcome.errors:
        with session.attempt(", ".join(options["paths"])):
            raise InputError(
                "nothing here can be graded",
                found=f"{len(folder.predictions)} prediction files and {len(folder.reported)}"
                " retrieval scores",
                hint="give qrels with --qrels FOLDER, or fetch tasks' data with --download",
            )


def _take_all(session: Session, grader: Grader, jobs: int) -> None:
    """Grade everything and put what comes out into the session."""
    from falsify_adapters.adapters.mteb.load import LeftOut, Refused
    from falsify_adapters.certificate import Certificate
    from falsify_adapters.results import GateReport

    folder = grader.folder
    left_out: dict[str, list[str]] = {}
    for item in chain(folder.refused, folder.left_out, grader.grade_all(jobs)):
        if isinstance(item, Refused):
            with session.attempt(item.name):
                raise item.error
        elif isinstance(item, LeftOut):
            left_out.setdefault(item.reason, []).append(item.name)
        elif isinstance(item, GateReport):
            with session.attempt(f"{item.system} on {item.task}"):
                session.add(item)
        elif isinstance(item, Certificate):
            with session.attempt(f"{item.system} on {item.task}"):
                session.check(item.system, item.warnings)
                session.outcome.reports.append(item)
        else:
            session.outcome.reports.append(item)
    for reason, inputs in left_out.items():
        named = inputs if len(inputs) <= NAMED else [f"{inputs[0]} and {len(inputs) - 1:,} more"]
        for name in named:
            session.skip(name, reason)


def _summarise(session: Session, grader: Grader) -> None:
    """Add means per model, and what was seen of the folders."""
    from falsify_adapters.report.models import FolderReport, model_rows

    reports = session.outcome.reports
    reports += model_rows(
        reports, grader.benchmarks.default_splits, by_measure=bool(grader.settings.measures)
    )
    summary = grader.folder.summary
    reports.append(
        FolderReport(
            dict(sorted(summary.files.items())),
            dict(sorted(summary.oddities.items())),
            dict(sorted(summary.examples.items())),
        )
    )
