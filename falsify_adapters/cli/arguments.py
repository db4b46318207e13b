"""The positional arguments of ``falsify-ir``: files, folders, patterns, then measures."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from pathlib import Path

from falsify_adapters.cli.grading import SUFFIXES
from falsify_adapters.errors import MeasureError, UsageError

_CUT_OFF = re.compile(r"[A-Za-z]\w*(?:\(.*\))?@\d+")
_MEASURE = re.compile(r"[A-Za-z]\w*(?:\(.*\))?")


def split_measures(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Part the measures at the end from the files before them; a file of that name is a file.

    Examples
    --------
    >>> split_measures(["a.trec", "b.trec", "nDCG@10", "RR"])
    (['a.trec', 'b.trec'], ['nDCG@10', 'RR'])
    """
    files, measures = list(arguments), list[str]()
    while files and _is_measure(files[-1]):
        measures.insert(0, files.pop())
    return files, measures


def _is_measure(argument: str) -> bool:
    if not _MEASURE.match(argument) or Path(argument).exists():
        return False
    if _CUT_OFF.fullmatch(argument):  # what is wrong with it, its parser says best
        return True
    if not _MEASURE.fullmatch(argument):
        return False
    from falsify_adapters.measures import parse_measure

    try:
        parse_measure(argument)
    except MeasureError:
        return False
    return True


def expanded(paths: Sequence[str]) -> list[str]:
    """Replace folders by the files in them, and patterns by the files that they fit.

    Of a folder those files are taken whose names end as runs' do (:data:`SUFFIXES`); hidden files
    and folders in it are not. What is named twice is taken once.

    Raises
    ------
    UsageError
        If nothing is there.
    """
    found: list[str] = []
    for path in paths:
        if path == "-" or Path(path).is_file():
            found.append(path)
        elif Path(path).is_dir():
            found += _listed(_files_in(Path(path)), f"{path} holds no run")
        elif glob.has_magic(path):
            fitting = sorted(glob.glob(path, recursive=True))  # noqa: PTH207
            found += _listed([one for one in fitting if Path(one).is_file()], f"no file is {path}")
        else:
            found.append(path)  # refused by name when it is read
    return once(found)


def once(paths: Sequence[str]) -> list[str]:
    """Leave away what was named before, however it is spelled.

    Examples
    --------
    >>> once(["a.trec", "./a.trec", "b/a.trec"])
    ['a.trec', 'b/a.trec']
    """
    found: dict[Path, str] = {}
    for path in paths:
        found.setdefault(Path(path), path)
    return list(found.values())


def _files_in(folder: Path) -> list[str]:
    return sorted(
        str(file)
        for file in folder.iterdir()
        if file.is_file() and file.suffix in SUFFIXES and not file.name.startswith(".")
    )


def _listed(files: list[str], lacks: str) -> list[str]:
    if not files:
        raise UsageError(lacks, hint=f"names that end in {', '.join(sorted(SUFFIXES))} count")
    return files
