"""How a command was called, for its report: what it takes to call it again, without paths."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from falsify_adapters.cli.options import WRITING
from falsify_adapters.errors import FalsifyError, UsageError

if TYPE_CHECKING:
    from falsify_adapters.report.outcome import Outcome

#: Parameters that name files, folders or data sets; some also take a word or a number instead.
PLACES = (
    *("qrels", "runs", "baseline", "datasets", "benchmarks", "paths", "exclude"),
    *("pool", "clusters", "strata", "queries", "alt_qrels"),
)
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
        folder is its base name, with as many parent folders as tell two apart, and a folder or
        pattern of runs is the files that it stood for; ``inputs``, the ``option``, ``name`` and
        ``sha256`` (after decompression) of each file among them.
    """
    values = _spelled_out(context)
    by_name = _labels_by_name(values)
    hashes: dict[str, str] = context.meta.setdefault(HASHES, {})
    options: dict[str, Any] = {}
    for parameter in context.command.params:
        name = parameter.name or ""
        value = values.get(name)
        if _is_silent(parameter) or value is None or value == ():
            continue
        is_default = context.get_parameter_source(name) is ParameterSource.DEFAULT
        if not is_default or value != context.params[name]:
            options[name] = _labelled(value, by_name[name]) if name in by_name else _plain(value)
    inputs = []
    for name, of_name in by_name.items():
        for place, label in of_name.items():
            sha256 = _sha256(place)
            if sha256 is not None:
                hashes[place] = sha256
                inputs.append({"option": name, "name": label, "sha256": sha256})
    return {"command": context.command.name, "options": options, "inputs": inputs}


def _sha256(place: str) -> str | None:
    """Return the hash of a plain file; None for all else, and for what cannot be read."""
    from falsify_adapters.readers.source import content_sha256

    # a pipe can be read but once
    if not (Path(place).is_file() and os.access(place, os.R_OK)):
        return None
    try:
        return content_sha256(place)
    except FalsifyError:  # refused, by name, when it is its turn
        return None


def drop_paths(outcome: Outcome, context: click.Context) -> None:
    """Call the places of refusals, and of what was left out, as the rest of the report does."""
    short = {
        place: label
        for of_name in _labels_by_name(_spelled_out(context)).values()
        for place, label in of_name.items()
        if place != label
    }

    def shortened(text: str) -> str:
        for place in sorted(short, key=len, reverse=True):
            text = text.replace(place, short[place])
        return text

    outcome.errors = [
        replace(
            refusal,
            input=shortened(refusal.input),
            error=type(refusal.error)(
                shortened(refusal.error.lacks),
                found=refusal.error.found and shortened(refusal.error.found),
                hint=refusal.error.hint and shortened(refusal.error.hint),
            ),
        )
        for refusal in outcome.errors
    ]
    outcome.skipped = [replace(skip, input=shortened(skip.input)) for skip in outcome.skipped]


def _spelled_out(context: click.Context) -> dict[str, Any]:
    """Return all parameters, with the files of folders and patterns, and measures after them."""
    values = dict(context.params)
    arguments = {p.name for p in context.command.params if isinstance(p, click.Argument)}
    if "runs" not in arguments:
        return values
    from falsify_adapters.cli.arguments import expanded, split_measures

    files, measures = split_measures(values["runs"])
    with suppress(UsageError):  # refused when they are read
        files = expanded(files)
    values["runs"] = tuple(files)
    if measures:
        is_default = context.get_parameter_source("measures") is ParameterSource.DEFAULT
        values["measures"] = (*(() if is_default else values["measures"]), *measures)
    return values


def _labels_by_name(values: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the labels of the places that each parameter names."""
    # what names systems is told apart together
    together = {"runs", "baseline"} | ({"qrels"} if values.get("source") else set())
    systems = labels(place for name in PLACES if name in together for place in _texts(values, name))
    return {
        name: {place: systems[place] for place in _texts(values, name)}
        if name in together
        else labels(_texts(values, name), benchmarks=name == "benchmarks")
        for name in PLACES
        if values.get(name)
    }


def _texts(values: Mapping[str, Any], name: str) -> list[str]:
    value = values.get(name) or ()
    return [value] if isinstance(value, str) else list(dict.fromkeys(value))


def _is_silent(parameter: click.Parameter) -> bool:
    return parameter.name in SILENT or getattr(parameter, "section", "") == WRITING


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _labelled(value: Any, names: Mapping[str, str]) -> Any:
    """Return one label for a place, or a list of labels for several."""
    return names[value] if isinstance(value, str) else [names[place] for place in value]


def labels(places: Iterable[str], *, benchmarks: bool = False) -> dict[str, str]:
    """Shorten paths to base names, with as many parent folders as tell two of them apart.

    Parameters
    ----------
    places : iterable of str
        Paths, or other words.
    benchmarks : bool
        Files of qrels may be called after the folder that they lie in.

    Examples
    --------
    >>> list(labels(["x/a/bm25.trec", "x/b/bm25.trec.gz", "nfcorpus"]).values())
    ['a/bm25.trec', 'b/bm25.trec.gz', 'nfcorpus']
    >>> list(labels(["x/tiny/qrels/test.tsv"], benchmarks=True).values())
    ['tiny/qrels/test.tsv']
    >>> list(labels(["x/runs/{dataset}/bm25.trec"]).values())
    ['{dataset}/bm25.trec']
    """
    from falsify_adapters.cli.benchmark import PREFIX
    from falsify_adapters.cli.grading import system_names

    names = system_names(places)
    return {
        place: place
        if place.startswith(PREFIX)
        else "/".join(_parts(place)[-max(name.count("/") + 1, _least(place, benchmarks)) :])
        for place, name in names.items()
    }


def _least(place: str, benchmarks: bool) -> int:
    """Return how many parts say which benchmark a file of qrels or runs is about."""
    from falsify_adapters.cli.beir import PLACEHOLDER

    pure = PurePath(place)
    if PLACEHOLDER in place:
        return max(i for i, part in enumerate(pure.parts[::-1], 1) if PLACEHOLDER in part)
    if not benchmarks:
        return 1
    return 3 if pure.parent.name == "qrels" else 2 if pure.stem == "qrels" else 1


def _parts(place: str) -> tuple[str, ...]:
    pure = PurePath(place)
    if place != "-" and pure.name in ("", ".."):  # "." and ".." have no name of their own
        pure = Path(place).resolve()
    return tuple(part for part in pure.parts if part != pure.anchor) or (place,)
