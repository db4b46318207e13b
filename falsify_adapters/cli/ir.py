"""``falsify-ir``: grade runs against any qrels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from falsify_adapters.cli.command import EXIT_STATUS_HELP, Command
from falsify_adapters.cli.grading import Session, run_session, system_names
from falsify_adapters.cli.options import (
    READING,
    chosen_measures,
    gate_config,
    grading_options,
    option,
    plan_option,
    reading_options,
    writing_options,
)
from falsify_adapters.cli.reading import Reading, joined


@click.command(
    "falsify-ir",
    cls=Command,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_STATUS_HELP,
)
@click.argument("qrels", metavar="QRELS")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@option(
    READING,
    "--corpus-size",
    type=int,
    metavar="N",
    help="Documents in the corpus [estimated].",
)
@option(READING, "--benchmark", metavar="NAME", help="Name in the report [the qrels file's].")
@option(READING, "--controls", is_flag=True, help="Also grade four systems of known verdict.")
@reading_options(keep_self=True)
@grading_options
@plan_option
@writing_options
@click.pass_context
def main(context: click.Context, /, **options: Any) -> None:
    """Grade runs against qrels: do their scores mean anything? Four nulls say.

    QRELS and RUN are TREC files, BEIR's tsv or JSON, plain or gzip; - is standard input.

    \b
    falsify-ir qrels.trec bm25.trec --corpus-size 8841823
    falsify-ir qrels.trec a.run b.run -m nDCG@10 -m AP@100 --corpus-size 3633 --json -
    """
    context.exit(run_session(options, lambda session: _grade_all(session, options)))


def _grade_all(session: Session, options: Mapping[str, Any]) -> None:
    from falsify_adapters.evaluation import Evaluation
    from falsify_adapters.readers import read_qrels

    measures, config = chosen_measures(options), gate_config(options)
    reading = Reading.from_options(options)
    judged = read_qrels(options["qrels"])
    benchmark = options["benchmark"] or system_names([options["qrels"]])[options["qrels"]]
    graded = None
    for path, name in system_names(options["runs"]).items():
        with session.attempt(path):
            file = reading.read(path, judged.frame)
            evaluation = Evaluation.create(
                file.frame,
                judged.frame,
                **reading.joining,
                notes=judged.notes,
                system=name,
                benchmark=benchmark,
                provenance={"qrels": dict(judged.provenance)},
            )
            evaluation = joined(file, evaluation)
            session.grade(evaluation, measures, config)
            graded = graded or evaluation
    if options["controls"] and graded is not None:
        session.grade_controls(graded, measures, config, None)
