"""``falsify-adapters quickstart``: a run, qrels, and three commands to try on them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from falsify_adapters.cli.command import Command

if TYPE_CHECKING:
    import pandas as pd

    from falsify_adapters.adapters.beir import Dataset

DEPTH = 20


@click.command("quickstart", cls=Command)
@click.argument("folder", metavar="DIR")
def main(folder: str) -> None:
    """Write small runs and qrels into DIR, and say which three commands to try.

    The files are made from the bundled sample. Nothing is overwritten.
    """
    from falsify_adapters.adapters.beir import open_dataset
    from falsify_adapters.errors import UsageError
    from falsify_adapters.report.jsonfile import write_atomically

    target = Path(folder)
    contents = _contents(open_dataset("sample", offline=True), folder)
    there = [name for name in contents if (target / name).exists()]
    if there:
        raise UsageError(
            f"{target.name or target} holds {', '.join(there)} already",
            hint="name another folder: nothing is overwritten",
        )
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder}", found=error.strerror) from None
    for name, content in contents.items():
        write_atomically(target / name, content.encode())
    click.echo(contents["README.txt"], nl=False)


def _contents(dataset: Dataset, folder: str) -> dict[str, str]:
    """Return the files' contents by name."""
    from falsify_adapters.baselines import popularity

    bm25 = dataset.evaluate(top_k=DEPTH, progress=False).run
    return {
        "qrels.trec": "".join(
            f"{row.query_id} 0 {row.doc_id} {row.relevance}\n" for row in dataset.qrels.itertuples()
        ),
        "bm25.trec": _trec(bm25, "bm25"),
        "popularity.trec": _trec(popularity(dataset.qrels, DEPTH), "popularity"),
        "README.txt": _advice(folder, dataset.corpus_size or 0),
    }


def _trec(run: pd.DataFrame, tag: str) -> str:
    rank = run.groupby("query_id", observed=True).cumcount() + 1
    return "".join(
        f"{row.query_id} Q0 {row.doc_id} {place} {row.score!r} {tag}\n"
        for row, place in zip(run.itertuples(), rank, strict=True)
    )


def _advice(folder: str, corpus_size: int) -> str:
    qrels, bm25, popular = (
        shlex.quote(str(Path(folder) / name))
        for name in ("qrels.trec", "bm25.trec", "popularity.trec")
    )
    size = f"--corpus-size {corpus_size}"
    return (
        "Two runs and qrels of the bundled sample. Try these three commands:\n\n"
        f"falsify-ir {qrels} {bm25} {size}\n"
        "    BM25 reads the query: its score passes all four nulls.\n"
        f"falsify-ir {qrels} {popular} {size}\n"
        "    The same documents for everybody: FAIL, although random documents score less.\n"
        f"falsify-adapters audit {qrels}\n"
        "    What this benchmark gives away to rankings that read nothing.\n"
    )
