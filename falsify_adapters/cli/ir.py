"""``falsify-ir``: grade runs against any qrels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from falsify_adapters.cli.arguments import expanded, split_measures
from falsify_adapters.cli.benchmark import Benchmark, as_named
from falsify_adapters.cli.command import EXIT_STATUS_HELP, Command
from falsify_adapters.cli.dependence import Grouping, Judged
from falsify_adapters.cli.grading import Session, run_session, system_names
from falsify_adapters.cli.options import (
    READING,
    chosen_measures,
    gate_config,
    grading_options,
    looking_options,
    option,
    plan_option,
    reading_options,
    was_chosen,
    writing_options,
)
from falsify_adapters.cli.reading import Reading, joined
from falsify_adapters.cli.second_looks import SecondLooks
from falsify_adapters.cli.sources import grade_sources, pool
from falsify_adapters.errors import UsageError

if TYPE_CHECKING:
    from falsify_adapters.dependence import Dependence
    from falsify_adapters.evaluation import Evaluation
    from falsify_adapters.readers import QrelsFile, RunFile


@click.command(
    "falsify-ir",
    cls=Command,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_STATUS_HELP,
)
@click.argument("qrels", metavar="QRELS", callback=as_named)
@click.argument("runs", nargs=-1, metavar="RUN... [MEASURE...]")
@option(
    READING,
    "--from",
    "source",
    metavar="SOURCE",
    help="Logs with gold: auto, ragas, olmes, lm-eval, ...",
)
@option(
    READING,
    "--pool",
    metavar="FILE|N",
    help="The corpus: its document ids, or how many.",
)
@option(
    READING,
    "--choice-score",
    metavar="NAME",
    help="What ranks choices: norm, per_char, ... [raw].",
)
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
@looking_options
@plan_option
@writing_options
@click.pass_context
def main(context: click.Context, /, **options: Any) -> None:
    """Grade runs against qrels: do their scores mean anything? Four nulls say.

    QRELS and RUN: TREC, BEIR's tsv or JSON; - is standard input. QRELS may be a data set of
    ir_datasets, a RUN a folder or a 'pattern*'. Logs of other tools hold both: --from SOURCE FILE.

    \b
    falsify-ir qrels.trec bm25.trec --corpus-size 8841823
    falsify-ir qrels.trec a.run b.run nDCG@10 AP@100 --corpus-size 3633 --json -
    falsify-ir irds:beir/nfcorpus/test bm25.trec
    falsify-ir --from ragas samples.jsonl R@5 --corpus-size 1200
    """
    context.exit(run_session(options, lambda session: _grade(session, options)))


def _grade(session: Session, options: Mapping[str, Any]) -> None:
    runs, measures = split_measures(options["runs"])
    options = {**options, "runs": expanded(runs), "measures_after": measures}
    if measures:
        chosen = options["measures"] if was_chosen("measures") else ()
        options["measures"] = [*chosen, *measures]
    if options["source"] is not None:
        grade_sources(session, options)
        return
    if options["choice_score"] is not None:
        raise UsageError("--choice-score goes with --from olmes or --from lm-eval")
    if not runs:
        raise UsageError(
            "a run is missing after the qrels", hint="one file that holds both: --from auto FILE"
        )
    _grade_all(session, options)


def _grade_all(session: Session, options: Mapping[str, Any]) -> None:
    measures, config = chosen_measures(options), gate_config(options)
    benchmark = Benchmark.of(options["qrels"])
    corpus = pool(options)
    if not corpus and options["corpus_size"] is None:
        # also how deep a large run must be read depends on it
        options = {**options, "corpus_size": benchmark.corpus_size()}
    reading, grouping = Reading.from_options(options), Grouping.from_options(options)
    judged = benchmark.judged
    inputs = _Inputs(
        judged,
        reading,
        benchmark=options["benchmark"] or benchmark.name,
        pool=corpus,
        dependence=grouping.of(
            Judged(judged.frame, lambda: benchmark.queries(options["queries"]), judged.order)
        ),
    )
    looks = SecondLooks(session, options, measures, config)
    baseline = [options["baseline"]] if options["baseline"] else []
    names = system_names([*options["runs"], *baseline])
    first, accepted = None, []
    for path in dict.fromkeys(options["runs"]):
        with session.attempt(path):
            evaluation = inputs.evaluate(reading.read(path, judged.frame), names[path])
            first = first or evaluation
            if session.grade(evaluation, measures, config):
                accepted.append(evaluation)
                looks.look(evaluation)
    for path in baseline:
        with session.attempt(path):
            file = reading.read_baseline(path, judged.frame, judged.provenance)
            evaluation = inputs.evaluate(file, names[path], role="baseline")
            if path in options["runs"] or session.grade(evaluation, measures, config):
                looks.compare(evaluation, accepted)
    if options["controls"] and first is not None:
        session.grade_controls(first, measures, config, None)


@dataclass(frozen=True)
class _Inputs:
    """What all runs of one call share."""

    judged: QrelsFile
    reading: Reading
    benchmark: str
    pool: Mapping[str, Any]
    dependence: Dependence | None

    def evaluate(self, file: RunFile, system: str, **names: Any) -> Evaluation:
        """Join one run to the qrels."""
        from falsify_adapters.evaluation import Evaluation

        evaluation = Evaluation.create(
            file.frame,
            self.judged.frame,
            **{**self.reading.joining, **self.pool},
            notes=self.judged.notes,
            system=system,
            benchmark=self.benchmark,
            dependence=self.dependence,
            provenance={"qrels": dict(self.judged.provenance)},
            **names,
        )
        return joined(file, evaluation)
