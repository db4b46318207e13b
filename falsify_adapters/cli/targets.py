"""Where reports may be written: not over an input, not two into one file, not into nowhere."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import combinations
from pathlib import Path

import click

from falsify_adapters.cli.options import CONFIG_KEY, WRITING
from falsify_adapters.errors import UsageError

#: How a JSON report begins.
REPORT = b'"schema": "falsify-adapters/report/'


def check_targets(context: click.Context, targets: Mapping[str, str]) -> None:
    """Refuse what could be found out only after the grading, or would destroy an input.

    Parameters
    ----------
    context : click.Context
        The call, whose other options name the inputs.
    targets : mapping
        File to write, or "-", by the option that asks for it.

    Raises
    ------
    UsageError
        If two options name one file, a file is also an input or may be one (it stands in an input
        folder and is no report), or its folder does not exist.
    """
    for flag, target in targets.items():
        if not target:
            raise UsageError(f"{flag} names no file")
    files = {flag: target for flag, target in targets.items() if not _is_stream(target)}
    for (flag, target), (other, place) in combinations(files.items(), 2):
        if _same(target, place):
            raise UsageError(f"{flag} and {other} name the same file", found=place)
    inputs, folders = list(_inputs(context)), list(_input_folders(context))
    for flag, target in files.items():
        inside = any(_lies_in(target, folder) for folder in folders) and not _is_report(target)
        if inside or any(_same(target, place) for place in inputs):
            raise UsageError(
                f"{flag} would write over an input", found=target, hint="name another file"
            )
        if Path(target).is_dir():
            raise UsageError(f"cannot write {target}", found="it is a folder")
        if not Path(target).resolve().parent.is_dir():
            raise UsageError(
                f"cannot write {target}", found="its folder does not exist", hint="make it first"
            )


def _is_stream(target: str) -> bool:
    """Say whether nothing is replaced: standard output, a device, a pipe."""
    path = Path(target)
    return target == "-" or (path.exists() and not path.is_file() and not path.is_dir())


def _inputs(context: click.Context) -> Iterator[str]:
    """Yield the plain files among the values of all options but those that name outputs."""
    from falsify_adapters.cli.arguments import expanded

    values = _input_values(context)
    datasets = context.params.get("datasets") or ()
    for text in _texts(values):
        yield from _files(text)
        for name in datasets:
            yield from _files(text.replace("{dataset}", name))
    for text in _texts([context.params.get("runs")]):
        # nothing there, or no run in it: refused where runs are read
        with suppress(UsageError):
            yield from expanded([text])


def _input_values(context: click.Context) -> list[object]:
    return [
        context.meta.get(CONFIG_KEY),
        *(
            context.params.get(parameter.name or "")
            for parameter in context.command.params
            if getattr(parameter, "section", "") != WRITING
        ),
    ]


def _input_folders(context: click.Context) -> Iterator[str]:
    for text in _texts(_input_values(context)):
        if os.path.isdir(text):  # noqa: PTH112  # Path raises for names that are too long
            yield text


def _lies_in(target: str, folder: str) -> bool:
    """Say whether a file is there already, somewhere below a folder."""
    return Path(target).is_file() and Path(folder).resolve() in Path(target).resolve().parents


def _is_report(target: str) -> bool:
    """Say whether a file is an earlier report, or of a kind that nothing reads."""
    if Path(target).suffix in (".html", ".md", ".tex"):
        return True
    with Path(target).open("rb") as file:
        return REPORT in file.read(len(REPORT) + 64)


def _files(text: str) -> Iterator[str]:
    if os.path.isfile(text):  # noqa: PTH113  # Path raises for names that are too long
        yield text


def _texts(values: Iterable[object]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _texts(value)


def _same(one: str, other: str) -> bool:
    if os.path.exists(one) and os.path.exists(other):  # noqa: PTH110
        return os.path.samefile(one, other)  # noqa: PTH121
    return os.path.realpath(one) == os.path.realpath(other)
