"""``falsify-ir``: grade runs against any qrels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from falsify_adapters.cli.arguments import expanded, split_measures
from falsify_adapters.cli.benchmark import Benchmark, as_named, corpus_size_of
from falsify_adapters.cli.command import EXIT_STATUS_HELP, Command
from falsify_adapters.cli.dependence import Judged
from falsify_adapters.cli.grading import Session, run_session, system_names
from falsify_adapters.cli.options import (
    READING,
    grading_options,
    looking_options,
    many_options,
    option,
    reading_options,
    run_options,
    was_chosen,
    writing_options,
)
from falsify_adapters.cli.reading import joined
from falsify_adapters.cli.sources import grade_sources, pool
from falsify_adapters.cli.units import Bench, Place, Settings, Step, Unit
from falsify_adapters.errors import UsageError

if TYPE_CHECKING:
    from falsify_adapters.evaluation import Evaluation
    from falsify_adapters.readers import RunFile


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
@many_options
@run_options
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
    from falsify_adapters.cli.many import check_many, is_sweep

    runs, measures = split_measures(options["runs"])
    options = {**options, "runs": expanded(runs), "measures_after": measures}
    if measures:
        chosen = options["measures"] if was_chosen("measures") else ()
        options["measures"] = [*chosen, *measures]
    check_many(options)
    if options["source"] is not None:
        if is_sweep(options):
            raise UsageError(
                "--jobs, --scheduler and --resume go with QRELS and RUN, not with --from"
            )
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
    from falsify_adapters.cli.many import Flow, Plan

    if options["pool"] is None and options["corpus_size"] is None:
        # also how deep a large run must be read depends on it
        options = {**options, "corpus_size": corpus_size_of(options["qrels"])}
    settings = Settings(session, options)
    flow = Flow(session, "ir", {**options, "alt_qrels": settings.looks.alt_qrels})
    with flow.working():
        bench = IrBench(settings, options)
        baseline = [options["baseline"]] if options["baseline"] else []
        names = system_names([*options["runs"], *baseline])

        def unit(step: Step, path: str) -> Unit:
            return Unit(step, path, names[path], path, path, baseline=step == "baseline")

        runs = [unit("run", path) for path in dict.fromkeys(options["runs"])]
        olds = [replace(unit("baseline", path), again=path in options["runs"]) for path in baseline]
        flow.grade([Plan(bench, [*runs], [*olds], options["controls"])])


def bench_at(settings: Settings, options: Mapping[str, Any], _place: Place | None) -> IrBench:
    """Make the benchmark ready in another process."""
    return IrBench(settings, options)


class IrBench(Bench):
    """The qrels of one call, ready to grade runs on.

    Parameters
    ----------
    settings : Settings
        How everything is read and graded.
    options : mapping
        All options.
    """

    def __init__(self, settings: Settings, options: Mapping[str, Any]) -> None:
        super().__init__(settings)
        benchmark = Benchmark.of(options["qrels"])
        self._judged = judged = benchmark.judged
        self.title = options["benchmark"] or benchmark.name
        self._pool = pool(options)
        self._dependence = settings.grouping.of(
            Judged(judged.frame, lambda: benchmark.queries(options["queries"]), judged.order)
        )

    def read(self, unit: Unit) -> RunFile:
        """Read a run."""
        assert unit.path is not None
        judged, reading = self._judged, self.settings.reading
        if unit.baseline:
            return reading.read_baseline(unit.path, judged.frame, judged.provenance)
        return reading.read(unit.path, judged.frame)

    def join(self, file: RunFile | None, unit: Unit, **names: Any) -> Evaluation:
        """Join one run to the qrels."""
        from falsify_adapters.evaluation import Evaluation

        assert file is not None
        evaluation = Evaluation.create(
            file.frame,
            self._judged.frame,
            **{**self.settings.reading.joining, **self._pool},
            notes=self._judged.notes,
            system=unit.system,
            benchmark=self.title,
            dependence=self._dependence,
            provenance={"qrels": dict(self._judged.provenance)},
            **names,
        )
        return joined(file, evaluation)

    def facts(self, _step: Step, _computed: bool) -> dict[str, Any]:
        """Return the title, and the hash of judgements that stand in no file of the options."""
        return {"benchmark": self.title, "qrels": self._judged.provenance.get("sha256")}
