"""How a command was called, for its report: what it takes to call it again, without paths."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import Any

import click
from click.core import ParameterSource

from falsify_adapters.cli.options import WRITING

#: Parameters that name files, folders or data sets.
PLACES = ("qrels", "runs", "datasets", "benchmarks", "paths", "exclude")
#: Where the context keeps the hashes of the inputs, by path.
HASHES = "falsify_adapters.hashes"
#: Where data lies, how fast and how loudly: none of it moves a number.
SILENT = frozenset(
    {
        *("data_dir", "base_url", "offline", "no_verify", "download", "strict", "plan"),
        *("jobs", "scheduler", "resume"),
    }
)


def describe_call(context: click.Context) -> dict[str, Any]:
    """Return the command's name and the options that were not left at their defaults.

    Returns
    -------
    dict
        ``command``; ``options`` by parameter name in the order of the help text, where a file or
        folder is its base name, with as many parent folders as tell two apart; ``inputs``, the
        ``name`` and ``sha256`` (after decompression) of each file among them.
    """
    from falsify_adapters.readers.source import content_sha256

    hashes: dict[str, str] = context.meta.setdefault(HASHES, {})
    options: dict[str, Any] = {}
    for parameter in context.command.params:
        name = parameter.name or ""
        value = context.params.get(name)
        if _is_silent(parameter) or value is None or value == ():
            continue
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            options[name] = labelled(value) if name in PLACES else _plain(value)
    inputs = []
    for name, place in _files(context):
        hashes[place] = content_sha256(place)
        inputs.append({"name": name, "sha256": hashes[place]})
    return {"command": context.command.name, "options": options, "inputs": inputs}


def _files(context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield label and path of each plain file that was named; a pipe can be read but once."""
    for name in PLACES:
        value = context.params.get(name)
        places = [value] if isinstance(value, str) else list(dict.fromkeys(value or ()))
        for place, label in labels(places).items():
            if Path(place).is_file() and os.access(place, os.R_OK):
                yield label, place


def _is_silent(parameter: click.Parameter) -> bool:
    return parameter.name in SILENT or getattr(parameter, "section", "") == WRITING


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def labelled(value: Any) -> Any:
    """Return one label for a place, or a list of labels for several."""
    if isinstance(value, str):
        return labels([value])[value]
    names = labels(value)
    return [names[place] for place in value]


def labels(places: Iterable[str]) -> dict[str, str]:
    """Shorten paths to base names, with as many parent folders as name a system or benchmark.

    Examples
    --------
    >>> found = labels(["x/a/bm25.trec", "x/b/bm25.trec.gz", "nfcorpus", "x/tiny/qrels/test.tsv"])
    >>> list(found.values())
    ['a/bm25.trec', 'b/bm25.trec.gz', 'nfcorpus', 'tiny/qrels/test.tsv']
    """
    from falsify_adapters.cli.grading import system_names

    names = system_names(places)
    return {
        place: "/".join(_parts(place)[-max(name.count("/") + 1, _least(place)) :])
        for place, name in names.items()
    }


def _least(place: str) -> int:
    """Return how many parts say which benchmark a file of qrels is about."""
    pure = PurePath(place)
    return 3 if pure.parent.name == "qrels" else 2 if pure.stem == "qrels" else 1


def _parts(place: str) -> tuple[str, ...]:
    pure = PurePath(place)
    if place != "-" and pure.name in ("", ".."):  # "." and ".." have no name of their own
        pure = Path(place).resolve()
    return tuple(part for part in pure.parts if part != pure.anchor) or (place,)
