"""A lock file: hashes and sizes of everything in a folder of results, as readable text.

After a first line that names the format comes one line per file: SHA-256 of the file as it is,
size in bytes, path below the folder; sorted by path. Lines that begin with ``#`` are for the
reader and not checked: scores found in reports.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from falsify_adapters.errors import InputError

HEADER = "falsify-adapters lock 1"
NAME = "falsify.lock"


@dataclass(frozen=True)
class Entry:
    """One file: its hash and its size in bytes."""

    sha256: str
    size: int


def scan(folder: Path) -> dict[str, Entry]:
    """Hash every file of a folder but the lock file itself.

    Raises
    ------
    InputError
        If it is no folder, a file cannot be read, a link leads out of the folder, or a name holds
        a line end.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder")
    try:
        found = {path.relative_to(folder).as_posix(): _entry(path) for path in _files(folder)}
    except OSError as error:
        raise InputError("a file cannot be read", found=str(error)) from None
    found.pop(NAME, None)
    return dict(sorted(found.items()))


def _files(folder: Path) -> Iterator[Path]:
    inside = folder.resolve()
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place) / name
            if inside not in path.resolve().parents:
                raise InputError(f"{path.name} is a link that leads out of the folder")
            if "\n" in str(path) or "\r" in str(path):
                raise InputError("a file's name holds a line end", found=repr(path.name))
            if path.is_file():
                yield path


def _entry(path: Path) -> Entry:
    with path.open("rb") as file:
        return Entry(hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size)


def lock_text(folder: Path, *, scores: bool = False) -> str:
    """Return the lock file of a folder.

    Parameters
    ----------
    folder : Path
        The folder.
    scores : bool
        Also list the scores and verdicts of the JSON reports in it.
    """
    entries = scan(folder)
    lines = [HEADER]
    lines += [f"{entry.sha256} {entry.size} {name}" for name, entry in entries.items()]
    if scores:
        lines += [line for name in entries for line in _score_lines(folder, name)]
    return "\n".join(lines) + "\n"


def _score_lines(folder: Path, name: str) -> Iterator[str]:
    """Yield a comment for each score of a file that is a report."""
    if not name.endswith(".json"):
        return
    try:
        document: Any = json.loads((folder / name).read_bytes())
    except (ValueError, RecursionError):
        return
    schema = document.get("schema") if isinstance(document, dict) else None
    if not str(schema).startswith("falsify-adapters/report/"):
        return
    reports = document.get("reports")
    for one in reports if isinstance(reports, list) else []:
        # anybody may have written the file: what does not fit has no line
        if isinstance(one, dict) and isinstance(one.get("score"), float):
            where = "/".join(str(one[k]) for k in ("benchmark", "split") if one.get(k))
            words = [one.get("verdict") or "", one.get("system"), "on", where or "benchmark"]
            said = " ".join(" ".join(map(str, words)).split())
            measure = " ".join(str(one.get("measure")).split())
            yield f"# {name}: {measure} {one['score']:.4f} {said}"


def read_lock(path: Path) -> dict[str, Entry]:
    """Read a lock file.

    Raises
    ------
    InputError
        If it cannot be read or is none.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{path.name} cannot be read", found=error.strerror) from None
    except UnicodeDecodeError:
        raise InputError(f"{path.name} is no lock file", found="not UTF-8") from None
    if not lines or lines[0] != HEADER:
        raise InputError(f"{path.name} is no lock file", found=repr("".join(lines[:1])[:80]))
    entries = {}
    for number, line in enumerate(lines[1:], 2):
        if line.startswith("#") or not line:
            continue
        sha256, _, rest = line.partition(" ")
        size, _, name = rest.partition(" ")
        if len(sha256) != 64 or not size.isdecimal() or not name:
            raise InputError(f"{path.name}, line {number}: no entry", found=repr(line[:80]))
        entries[name] = Entry(sha256, int(size))
    return entries


def changes(locked: dict[str, Entry], found: dict[str, Entry]) -> list[str]:
    """Return in words what has changed since the lock.

    Examples
    --------
    >>> changes({"a": Entry("x", 1), "b": Entry("y", 2)}, {"b": Entry("z", 2), "c": Entry("x", 1)})
    ['a: missing', 'b: changed (2 bytes, were 2)', 'c: new']
    """
    lines = []
    for name in sorted(locked.keys() | found.keys()):
        if name not in found:
            lines.append(f"{name}: missing")
        elif name not in locked:
            lines.append(f"{name}: new")
        elif locked[name] != found[name]:
            sizes = f"{found[name].size:,} bytes, were {locked[name].size:,}"
            lines.append(f"{name}: changed ({sizes})")
    return lines
