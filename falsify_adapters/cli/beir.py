"""``falsify-beir``: grade runs on BEIR data sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from falsify_adapters.cli.arguments import once
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
    writing_options,
)
from falsify_adapters.cli.reading import joined
from falsify_adapters.cli.units import Bench, Place, Settings, Step, Unit
from falsify_adapters.errors import InputError
from falsify_adapters.report.outcome import Refusal, Skip

if TYPE_CHECKING:
    from falsify_adapters.adapters.beir import Dataset
    from falsify_adapters.cli.many import Flow, Item
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
@many_options
@run_options
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
    from falsify_adapters.cli.many import Flow, Plan, check_many

    check_many(options)
    settings = Settings(session, options)
    flow = Flow(session, "beir", {**options, "alt_qrels": settings.looks.alt_qrels})
    with flow.working():
        datasets = list(_open_datasets(session, options))
        baseline = [options["baseline"]] if options["baseline"] else []
        runs = RunFiles(session, flow, once(options["runs"]), datasets, beside=baseline)
        olds = RunFiles(session, flow, baseline, datasets, beside=options["runs"], baseline=True)
        plans = []
        for dataset in datasets:
            with session.attempt(dataset.title):
                bench = BeirBench(settings, options, dataset)
                bench.files = flow.files
                place = _place_of(dataset, hashes=flow.hashes)
                before = list(olds.items(dataset, place)) if baseline else []
                items = list(runs.items(dataset, place))
                plans.append(Plan(bench, items, before, options["controls"]))
        flow.grade(plans)


def bench_at(settings: Settings, options: Mapping[str, Any], place: Place | None) -> BeirBench:
    """Make a benchmark ready in another process.

    Raises
    ------
    InputError
        If its files are not there, or are others.
    """
    from falsify_adapters.adapters.beir import open_datasets

    assert place is not None
    (opened,) = open_datasets(Path(place.folder), split=place.split, download=False)
    dataset = replace(opened, name=place.name, subset=place.subset)
    expected = dict(place.sha256)
    found = _hashes(dataset, *expected)
    for name, digest in expected.items():
        if found.get(name) != digest:
            raise InputError(
                f"a worker finds another {name} file of {dataset.title}",
                hint="every worker reads the same paths: put the data on a shared disk",
            )
    return BeirBench(settings, options, dataset)


def _place_of(dataset: Dataset, *, hashes: bool) -> Place:
    from falsify_adapters.adapters.beir_corpus import FolderCorpus

    assert isinstance(dataset.corpus, FolderCorpus)
    texts = ("corpus", "queries") if hashes else ()
    return Place(
        str(dataset.corpus.folder.absolute()),
        dataset.name,
        dataset.split,
        dataset.subset,
        tuple(sorted(_hashes(dataset, "qrels", *texts).items())),
    )


def _hashes(dataset: Dataset, *names: str) -> dict[str, str]:
    """Return the SHA-256 of a data set's files, by what they hold."""
    texts = [name for name in names if name != "qrels"]
    found = dataset.text_files(*texts) if texts else {}
    known = {name: file["sha256"] for name, file in found.items()}
    return {"qrels": dataset.provenance["qrels"]["sha256"], **known}


class BeirBench(Bench):
    """A data set in BEIR's layout, ready to grade runs on.

    Parameters
    ----------
    settings : Settings
        How everything is read and graded.
    options : mapping
        All options.
    dataset : Dataset
        The data set.
    """

    def __init__(self, settings: Settings, options: Mapping[str, Any], dataset: Dataset) -> None:
        super().__init__(settings)
        self.title = dataset.title
        self._dataset = dataset
        self._looks_at_queries = any(options[name] for name in ("clusters", "blocks", "strata"))

        def queries() -> Queries:
            from falsify_adapters.readers.queries import read_queries

            file = options["queries"]
            return read_queries(dataset.queries_path() if file is None else file)

        self._dependence = settings.grouping.of(Judged(dataset.qrels, queries))

    @property
    def corpus_ids(self) -> frozenset[str] | None:
        """The ids of the corpus, if there is one."""
        return self._dataset.corpus_ids

    def read(self, unit: Unit) -> RunFile | None:
        """Read a run; BM25 is computed later."""
        if unit.path is None:
            return None
        reading, qrels = self.settings.reading, self._dataset.qrels if unit.beside else None
        if not unit.baseline:
            return reading.read(unit.path, qrels)
        judged = self._dataset.provenance.get("qrels", {}) if unit.beside else {}
        return reading.read_baseline(unit.path, qrels, judged)

    def join(self, file: RunFile | None, unit: Unit, **names: Any) -> Evaluation:
        """Join one run to the data set."""
        joining = self.settings.reading.joining
        if file is None:
            evaluation = self._dataset.evaluate(**joining)
        else:
            evaluation = self._dataset.evaluate(file.frame, system=unit.system, **joining)
            evaluation = joined(file, evaluation)
        return replace(evaluation, dependence=self._dependence, **names)

    def facts(self, step: Step, computed: bool) -> dict[str, Any]:
        """Return names and hashes of the qrels, and of the texts where they decide something."""
        data, counted = self._dataset, self.settings.reading.joining["corpus_size"] is None
        texts = ["corpus"] if computed or counted or step in ("controls", "playground") else []
        texts += ["queries"] if computed or self._looks_at_queries else []
        return {
            "benchmark": [data.name, data.subset, data.split],
            "qrels": [data.provenance["qrels"][key] for key in ("name", "sha256")],
            "texts": data.text_files(*texts) if texts else {},
        }


def _open_datasets(session: Session, options: Mapping[str, Any]) -> Iterator[Dataset]:
    from falsify_adapters.adapters.beir import open_datasets

    names = ("split", "data_dir", "base_url", "offline")
    for name in dict.fromkeys(options["datasets"]):
        with session.attempt(name):
            where = {key: options[key] for key in names}
            yield from open_datasets(name, verify=not options["no_verify"], **where)


class RunFiles:
    """The run files of one call, and which of them belong to which data set.

    A path with ``{dataset}``, or a folder with one run for each part of a data set, names one
    file per data set. Any other file belongs to the data sets with which it shares a query; one
    that shares none with any is offered to the first, so that the refusal says what was found.

    Parameters
    ----------
    session : Session
        Takes the refusals.
    flow : Flow
        Asks runs for their queries, where there are several data sets.
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
        flow: Flow,
        paths: Sequence[str],
        datasets: Sequence[Dataset],
        *,
        beside: Sequence[str] = (),
        baseline: bool = False,
    ) -> None:
        self._baseline, self._beside = baseline, frozenset(beside)
        names = system_names([*paths, *beside])
        self._names = {path: names[path] for path in paths}
        plain = [path for path in self._names if not _is_per_dataset(path)]
        self._alone = len(datasets) == 1
        if self._alone:
            self._homes = {path: list(datasets) for path in plain}
            return
        self._homes = {}
        asked = [Unit("queries", path, "", path, path, baseline=baseline) for path in plain]
        for unit, finished in flow.ask(asked) if datasets else ():
            session.replay(finished)
            if finished.evaluated:
                homes = [one for one in datasets if _share_a_query(finished.queries, one)]
                self._homes[str(unit.path)] = homes or list(datasets[:1])

    def items(self, dataset: Dataset, place: Place) -> Iterator[Item]:
        """Yield what is to be done with each run for one data set; BM25 if no run was given."""
        if not self._names:
            title = dataset.title
            yield Unit("run", None, "bm25", title, title, place)
            return
        at_home = 0
        for path, name in self._names.items():
            if _is_per_dataset(path):
                at_home += 1
                yield self._placed(path, name, dataset, place)
            elif any(home is dataset for home in self._homes.get(path, ())):
                at_home += 1
                yield self._unit(path, name, path, dataset, place)
            elif path in self._homes:
                yield Skip(path, f"no query in common with {dataset.title}")
        if self._homes and not at_home:
            error = InputError(f"no run answers a query of {dataset.title}")
            yield Refusal(dataset.title, error)

    def _placed(self, path: str, name: str, dataset: Dataset, place: Place) -> Unit | Refusal:
        from falsify_adapters.adapters.beir import run_of

        file = path.replace(PLACEHOLDER, dataset.title)
        # the data set's name stands in the report already
        system = system_names([file])[file] if PLACEHOLDER in name else name
        try:
            file = str(run_of(dataset, file)) if dataset.subset else file
        except InputError as error:
            return Refusal(path, error)
        return self._unit(file, system, path, dataset, place)

    def _unit(self, file: str, system: str, path: str, dataset: Dataset, place: Place) -> Unit:
        return Unit(
            "baseline" if self._baseline else "run",
            file,
            system,
            read_as=path,
            join_as=f"{file} on {dataset.title}",
            place=place,
            baseline=self._baseline,
            beside=self._alone or _is_per_dataset(path),
            again=self._baseline and path in self._beside,
        )


def _is_per_dataset(path: str) -> bool:
    return PLACEHOLDER in path or Path(path).is_dir()


def _share_a_query(queries: Iterable[str], dataset: Dataset) -> bool:
    judged = dataset.qrels["query_id"].cat.categories
    return bool(judged.isin(list(queries)).any())
