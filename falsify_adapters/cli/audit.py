"""``falsify-adapters audit``: what benchmarks give away for free."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from falsify_adapters.cli.command import Command
from falsify_adapters.cli.grading import Session, run_session, system_names
from falsify_adapters.cli.options import option, writing_options
from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.notes import Note

if TYPE_CHECKING:
    import pandas as pd

    from falsify_adapters.adapters.beir import Dataset

#: Names of files that say a split, and not a benchmark.
SPLITS = ("train", "dev", "test")

READING, AUDITING = "What is audited", "How it is audited"


@click.command(
    "audit",
    cls=Command,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit status: 0, or 2 if an input was refused or the usage is wrong.",
)
@click.argument("benchmarks", nargs=-1, metavar="[NAME|FOLDER|QRELS]...")
@option(READING, "--split", metavar="NAME", help="Of the qrels [test; msmarco: dev].")
@option(READING, "--qrels-only", is_flag=True, help="Read neither queries nor corpus.")
@option(
    READING, "--data-dir", metavar="FOLDER", help="Of data sets [$FALSIFY_DATA_DIR, else cache]."
)
@option(READING, "--base-url", metavar="URL", help="Mirror of BEIR's downloads.")
@option(READING, "--offline", is_flag=True, help="Never download.")
@option(
    AUDITING,
    "--measure",
    "-m",
    "measures",
    multiple=True,
    default=["nDCG@10"],
    metavar="NAME",
    help="ir-measures' names, repeatable [nDCG@10].",
)
@option(AUDITING, "--held-out", is_flag=True, help="Fit on half of the queries, score on the rest.")
@option(AUDITING, "--fit-split", metavar="NAME", help="Fit on another split, such as train.")
@option(AUDITING, "--seed", type=int, default=0, metavar="N", help="Of the random halves [0].")
@writing_options
@click.pass_context
def main(context: click.Context, /, **options: Any) -> None:
    """Show how far one ranking for all queries gets: what a benchmark gives away for free.

    No run is needed. Without an argument the bundled sample is audited.

    \b
    falsify-adapters audit nfcorpus scifact --held-out
    falsify-adapters audit my/qrels/*.tsv -m nDCG@10 -m R@100 --markdown free.md
    """
    context.exit(run_session({**options, "strict": False}, lambda s: _audit_all(s, options)))


def _audit_all(session: Session, options: Mapping[str, Any]) -> None:
    from falsify_adapters.audit import Audit, in_order
    from falsify_adapters.measures import parse_measure

    if options["seed"] < 0:
        raise UsageError("--seed must be at least 0", found=str(options["seed"]))
    if options["held_out"] and options["fit_split"]:
        raise UsageError("--held-out and --fit-split exclude each other")
    measures = list({str(m): m for m in map(parse_measure, options["measures"])}.values())
    audits: list[Audit] = []
    for source in _sources(session, options):
        for measure in measures:
            with session.attempt(f"{source.name}, {measure}"):
                audits.append(_audit(source, measure, options))
    session.outcome.reports += in_order(audits)


@dataclass
class _Source:
    """One benchmark to audit: qrels, and what is known of its texts."""

    name: str
    split: str | None
    qrels: pd.DataFrame
    findings: Any
    notes: tuple[Note, ...]
    provenance: Mapping[str, Any]
    fit: pd.DataFrame | None


def _audit(source: _Source, measure: Any, options: Mapping[str, Any]) -> Any:
    from falsify_adapters.audit import audit_benchmark

    return audit_benchmark(
        source.qrels,
        measure,
        name=source.name,
        split=source.split,
        findings=source.findings,
        held_out=options["held_out"],
        fit=source.fit,
        fitted_on=options["fit_split"] or "random halves",
        seed=options["seed"],
        notes=source.notes,
        provenance=source.provenance,
    )


def _sources(session: Session, options: Mapping[str, Any]) -> Iterator[_Source]:
    given = list(dict.fromkeys(options["benchmarks"])) or ["sample"]
    names = _file_names([path for path in given if _is_file(path)])
    for path in given:
        if path in names:
            with session.attempt(path):
                yield _from_file(path, names[path], options)
        else:
            yield from _from_datasets(session, path, options)


def _is_file(path: str) -> bool:
    # a named pipe is a file to read, too
    return path == "-" or (Path(path).exists() and not Path(path).is_dir())


def _file_names(paths: list[str]) -> dict[str, str]:
    """Name qrels files; ``NAME/qrels/test.tsv`` and ``NAME/qrels.txt`` after the folder."""
    folders = {path: _dataset_folder(path) for path in paths}
    others = system_names([path for path in paths if folders[path] is None])
    return {path: folders[path] or others[path].removesuffix(".qrels") for path in paths}


def _dataset_folder(path: str) -> str | None:
    place = Path(path).absolute()
    if place.parent.name == "qrels" and place.stem in SPLITS:
        return place.parent.parent.name or None
    return (place.parent.name or None) if place.stem == "qrels" else None


def _from_file(path: str, name: str, options: Mapping[str, Any]) -> _Source:
    from falsify_adapters.audit import find_oddities
    from falsify_adapters.readers import read_qrels

    file = read_qrels(path)
    stem = Path(path).stem
    split = stem if stem in SPLITS else None
    fit = None
    if options["fit_split"]:
        other = Path(path).with_stem(options["fit_split"])
        if split is None or not other.is_file():
            raise InputError(
                f"there is no split {options['fit_split']!r} beside this file",
                hint="name a folder in BEIR's layout, with qrels/SPLIT.tsv",
            )
        fit = read_qrels(other)
    findings = find_oddities(file.frame)
    provenance = {"qrels": file.provenance} | ({"fit": fit.provenance} if fit else {})
    frame = fit.frame if fit else None
    return _Source(name, split, file.frame, findings, file.notes, provenance, frame)


def _from_datasets(session: Session, name: str, options: Mapping[str, Any]) -> Iterator[_Source]:
    from falsify_adapters.adapters.beir import open_datasets

    where = {key: options[key] for key in ("data_dir", "base_url", "offline")}
    with session.attempt(name):
        datasets = open_datasets(name, split=options["split"], **where)
        fits: list[Any] = [None] * len(datasets)
        if options["fit_split"]:
            fits = open_datasets(name, split=options["fit_split"], **where)
        for dataset, fit in zip(datasets, fits, strict=True):
            with session.attempt(dataset.title):
                yield _from_dataset(dataset, fit, qrels_only=options["qrels_only"])


def _from_dataset(dataset: Dataset, fit: Dataset | None, *, qrels_only: bool) -> _Source:
    from falsify_adapters.audit import find_oddities
    from falsify_adapters.progress import track

    corpus = dataset.corpus
    documents = None
    if corpus.has_documents() and not qrels_only:
        documents = track(dataset.documents(), f"reading the corpus of {dataset.title}")
    texts = {} if qrels_only else dataset.text_files("corpus", "queries")
    findings = find_oddities(
        dataset.qrels,
        queries=dataset.queries() if corpus.has_queries() and not qrels_only else None,
        documents=documents,
    )
    fitted = {} if fit is None else {"fit": fit.provenance["qrels"]}
    return _Source(
        dataset.title,
        dataset.split,
        dataset.qrels,
        findings,
        dataset.notes,
        {**dataset.provenance, **texts, **fitted},
        None if fit is None else fit.qrels,
    )
