"""``falsify-beir``: grade runs on BEIR data sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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
    writing_options,
)
from falsify_adapters.cli.reading import Reading, joined
from falsify_adapters.cli.second_looks import SecondLooks
from falsify_adapters.errors import InputError

if TYPE_CHECKING:
    from falsify_adapters.adapters.beir import Dataset
    from falsify_adapters.evaluation import Evaluation
    from falsify_adapters.readers import RunFile
    from falsify_adapters.readers.queries import Queries

#: What stands for the data set's name in ``--run``.
PLACEHOLDER = "{dataset}"


@click.command(
    "falsify-beir",
    cls=Command,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EXIT_STATUS_HELP,
)
@option(
    READING,
    "--dataset",
    "-d",
    "datasets",
    multiple=True,
    default=["sample"],
    metavar="NAME|FOLDER",
    help="BEIR data set, repeatable [bundled sample].",
)
@option(
    READING,
    "--run",
    "-r",
    "runs",
    multiple=True,
    metavar="FILE",
    help="TREC or BEIR results, repeatable [BM25].",
)
@option(READING, "--controls", is_flag=True, help="Also grade four systems of known verdict.")
@option(READING, "--split", metavar="NAME", help="Of the qrels [test; msmarco: dev].")
@option(
    READING,
    "--data-dir",
    metavar="FOLDER",
    help="Of data sets [$FALSIFY_DATA_DIR, else cache].",
)
@option(READING, "--base-url", metavar="URL", help="Mirror of BEIR's downloads.")
@option(READING, "--offline", is_flag=True, help="Never download.")
@option(READING, "--no-verify", is_flag=True, help="Take a download whose MD5 is another.")
@option(READING, "--corpus-size", type=int, metavar="N", help="Documents in the corpus [counted].")
@reading_options(keep_self=False)
@grading_options
@looking_options
@plan_option
@writing_options
@click.pass_context
def main(context: click.Context, /, **options: Any) -> None:
    """Grade runs on BEIR data sets: do their scores mean anything? Four nulls say.

    \b
    falsify-beir                                    BM25 on the sample
    falsify-beir -d nfcorpus -r my.trec --controls  a run, and four controls
    falsify-beir -d nfcorpus -d scifact -r 'runs/{dataset}.trec' --json all.json
    """
    context.exit(run_session(options, lambda session: _grade_all(session, options)))


def _grade_all(session: Session, options: Mapping[str, Any]) -> None:
    measures, config = chosen_measures(options), gate_config(options)
    reading = Reading.from_options(options)
    datasets = list(_open_datasets(session, options))
    grouping = Grouping.from_options(options)
    baseline = [options["baseline"]] if options["baseline"] else []
    runs = RunFiles(session, reading, options["runs"], datasets, beside=baseline)
    olds = RunFiles(session, reading, baseline, datasets, beside=options["runs"], baseline=True)
    looks = SecondLooks(session, options, measures, config)
    for dataset in datasets:
        with session.attempt(dataset.title):
            known = grouping.of(_judged(dataset, options["queries"]))
            first, accepted = None, []
            for found in _evaluations(session, dataset, runs, reading):
                evaluation = replace(found, dependence=known)
                first = first or evaluation
                if session.grade(evaluation, measures, config, dataset.corpus_ids):
                    accepted.append(evaluation)
                    looks.look(evaluation)
            for found in _evaluations(session, dataset, olds, reading) if baseline else ():
                evaluation = replace(found, dependence=known, role="baseline")
                again = any(one.system == evaluation.system for one in accepted)
                if again or session.grade(evaluation, measures, config, dataset.corpus_ids):
                    looks.compare(evaluation, accepted)
            if options["controls"] and first is not None:
                session.grade_controls(first, measures, config, dataset.corpus_ids)


def _judged(dataset: Dataset, queries_file: str | None) -> Judged:
    def queries() -> Queries:
        from falsify_adapters.readers.queries import read_queries

        return read_queries(dataset.queries_path() if queries_file is None else queries_file)

    return Judged(dataset.qrels, queries)


def _open_datasets(session: Session, options: Mapping[str, Any]) -> Iterator[Dataset]:
    from falsify_adapters.adapters.beir import open_datasets

    names = ("split", "data_dir", "base_url", "offline")
    for name in dict.fromkeys(options["datasets"]):
        with session.attempt(name):
            where = {key: options[key] for key in names}
            yield from open_datasets(name, verify=not options["no_verify"], **where)


def _evaluations(
    session: Session, dataset: Dataset, runs: RunFiles, reading: Reading
) -> Iterator[Evaluation]:
    """Yield each run on one data set; BM25 if no run was given."""
    if not runs.given:
        with session.attempt(dataset.title):
            yield dataset.evaluate(**reading.joining)
    for path, name, file in runs.of(dataset):
        with session.attempt(f"{path} on {dataset.title}"):
            evaluation = dataset.evaluate(file.frame, system=name, **reading.joining)
            yield joined(file, evaluation)


class RunFiles:
    """The run files of one call, and which of them belong to which data set.

    A path with ``{dataset}``, or a folder with one run for each part of a data set, names one
    file per data set. Any other file belongs to the data sets with which it shares a query; one
    that shares none with any is offered to the first, so that the refusal says what was found.

    Parameters
    ----------
    session : Session
        Takes the refusals.
    reading : Reading
        How runs are read.
    paths : sequence of str
        The files.
    datasets : sequence of Dataset
        All data sets of the call.
    beside : sequence of str
        Other files, from which the systems' names must differ.
    baseline : bool
        Whether these are what others are compared with.
    """

    def __init__(
        self,
        session: Session,
        reading: Reading,
        paths: Sequence[str],
        datasets: Sequence[Dataset],
        *,
        beside: Sequence[str] = (),
        baseline: bool = False,
    ) -> None:
        self._session, self._reading, self._baseline = session, reading, baseline
        names = system_names([*paths, *beside])
        self._names = {path: names[path] for path in paths}
        self._files: dict[str, RunFile] = {}
        self._homes: dict[str, list[Dataset]] = {}
        only = datasets[0] if len(datasets) == 1 else None
        for path in self._names:
            if not _is_per_dataset(path):
                with session.attempt(path):
                    file = self._files[path] = self._read(path, only)
                    homes = [dataset for dataset in datasets if _share_a_query(file, dataset)]
                    self._homes[path] = homes or list(datasets[:1])

    @property
    def given(self) -> bool:
        """Whether the user named any run."""
        return bool(self._names)

    def of(self, dataset: Dataset) -> Iterator[tuple[str, str, RunFile]]:
        """Yield path, system name and content of each run for one data set."""
        at_home = 0
        for path, name in self._names.items():
            if _is_per_dataset(path):
                at_home += 1
                yield from self._placed(path, name, dataset)
            elif any(home is dataset for home in self._homes.get(path, ())):
                at_home += 1
                yield path, name, self._files[path]
            elif path in self._files:
                self._session.skip(path, f"no query in common with {dataset.title}")
        if self._files and not at_home:
            with self._session.attempt(dataset.title):
                raise InputError(f"no run answers a query of {dataset.title}")

    def _placed(self, path: str, name: str, dataset: Dataset) -> Iterator[tuple[str, str, RunFile]]:
        from falsify_adapters.adapters.beir import run_of

        with self._session.attempt(path):
            place = path.replace(PLACEHOLDER, dataset.title)
            # the data set's name stands in the report already
            system = system_names([place])[place] if PLACEHOLDER in name else name
            place = str(run_of(dataset, place)) if dataset.subset else place
            yield place, system, self._read(place, dataset)

    def _read(self, path: str, dataset: Dataset | None) -> RunFile:
        qrels = None if dataset is None else dataset.qrels
        if not self._baseline:
            return self._reading.read(path, qrels)
        judged = {} if dataset is None else dataset.provenance.get("qrels", {})
        return self._reading.read_baseline(path, qrels, judged)


def _is_per_dataset(path: str) -> bool:
    return PLACEHOLDER in path or Path(path).is_dir()


def _share_a_query(file: RunFile, dataset: Dataset) -> bool:
    judged = dataset.qrels["query_id"].cat.categories
    return bool(judged.isin(file.frame["query_id"].cat.categories).any())
