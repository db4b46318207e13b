"""Where a BEIR data set lies: a folder, a name in one of the usual places, or a download."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from falsify_adapters import download
from falsify_adapters.data.table import beir_table, close_names, find_entry
from falsify_adapters.download import is_dataset, subsets
from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.notes import some

#: Environment variable that names the folder of data sets.
DATA_DIR = "FALSIFY_DATA_DIR"
#: The one data set of BEIR whose parts are scored each by itself.
WITH_PARTS = "cqadupstack"


@dataclass(frozen=True)
class Place:
    """A folder with qrels of its own, and what it is called.

    Parameters
    ----------
    folder : Path
        With ``qrels/``, and mostly ``corpus.jsonl`` and ``queries.jsonl``.
    name : str
        BEIR's name, or the folder's.
    subset : str or None
        The forum, for cqadupstack.
    """

    folder: Path
    name: str
    subset: str | None = None


@dataclass(frozen=True)
class Download:
    """Whether and how to get what is not there.

    Parameters
    ----------
    allowed : bool
        Use the network at all.
    base_url : str, optional
        A mirror of BEIR's server.
    verify : bool
        Refuse a zip whose md5 is not the published one.
    progress : bool, optional
        Draw a progress bar; by default only on a terminal.
    """

    allowed: bool = True
    base_url: str | None = None
    verify: bool = True
    progress: bool | None = None


def locate(source: str | Path, data_dir: str | Path | None, options: Download) -> list[Place]:
    """Return the places of a data set: one, or one for each forum.

    A name is looked for in `data_dir`, in the folder that ``FALSIFY_DATA_DIR`` names, and in the
    user's cache, and downloaded into the first of these. ``NAME/FORUM`` is one forum.

    Raises
    ------
    UsageError
        If nothing has that name.
    InputError
        If it is not there and cannot be downloaded, or is not a data set.
    """
    text = str(source)
    if text == "sample":
        return [Place(Path(str(files("falsify_adapters.data").joinpath("sample"))), text)]
    folder = Path(source)
    # a folder of this name that lies here is meant, unless --data-dir says otherwise
    literal = isinstance(source, Path) or os.sep in text or data_dir is None
    if literal and folder.is_dir() and (is_dataset(folder) or find_entry(text) is None):
        return _places_in(folder)
    name, _, part = text.partition("/")
    whole = next(_found(name, data_dir), None) or _downloaded(text, data_dir, options)
    places = _places_in(whole)
    return [_part(places, part)] if part else places


def _places_in(folder: Path) -> list[Place]:
    resolved = folder.resolve()
    if (folder / "qrels").is_dir():
        parent = find_entry(resolved.parent.name)
        if parent is not None and not (resolved.parent / "qrels").exists():
            return [Place(folder, parent.name, resolved.name)]
        return [Place(folder, _name_of(resolved))]
    parts = subsets(folder)
    if not parts:
        raise InputError(
            f"{folder} is not a folder in BEIR's layout",
            found=content_of(folder),
            hint="it needs qrels/SPLIT.tsv, beside corpus.jsonl and queries.jsonl",
        )
    return [Place(part, _name_of(resolved), part.name) for part in parts]


def _name_of(folder: Path) -> str:
    entry = find_entry(folder.name)
    known = entry is not None and folder.name.casefold() in (entry.name, *entry.aliases)
    return entry.name if known and entry is not None else folder.name


def _part(places: list[Place], part: str) -> Place:
    parts = {place.subset: place for place in places if place.subset}
    if part in parts:
        return parts[part]
    close = difflib.get_close_matches(part, parts, n=1)
    raise UsageError(
        f"{places[0].name} has no part {part}",
        found=some(parts, 12) if parts else "one benchmark without parts",
        hint=f"did you mean {places[0].name}/{close[0]}?" if close else None,
    )


def _found(name: str, data_dir: str | Path | None) -> Iterator[Path]:
    entry = find_entry(name)
    for place in _usual_places(data_dir):
        for folder_name in dict.fromkeys((name, entry.name if entry else name)):
            if folder_name and is_dataset(place / folder_name):
                yield place / folder_name


def _downloaded(text: str, data_dir: str | Path | None, options: Download) -> Path:
    name, _, part = text.partition("/")
    entry = find_entry(name)
    if entry is None or (part and entry.name != WITH_PARTS):
        raise _unknown(text, data_dir)
    if not options.allowed:
        raise InputError(
            f"{entry.name} is not at hand, and downloads are switched off",
            found=f"no folder {entry.name} in {_text(data_dir)}",
            hint="run once without --offline, or name a folder in BEIR's layout",
        )
    return download.fetch(
        entry,
        _usual_places(data_dir)[0],
        base_url=options.base_url,
        verify=options.verify,
        progress=options.progress,
    )


def _unknown(name: str, data_dir: str | Path | None) -> UsageError:
    close = close_names(name)
    return UsageError(
        f"there is no data set or folder {name}",
        found=f"nothing of that name in {_text(data_dir)}",
        hint=f"did you mean {' or '.join(close)}?"
        if close
        else f"BEIR's names are {', '.join(entry.name for entry in beir_table())}; or a folder",
    )


def _usual_places(data_dir: str | Path | None) -> list[Path]:
    named = (data_dir, os.environ.get(DATA_DIR))
    return [*(Path(place) for place in named if place), download.cache_folder() / "datasets"]


def _text(data_dir: str | Path | None) -> str:
    return ", ".join(str(place) for place in _usual_places(data_dir))


def content_of(folder: Path) -> str:
    """Say what lies in a folder, for error messages."""
    if not folder.is_dir():
        return "a file" if folder.exists() else "nothing there"
    return some(sorted(path.name for path in folder.iterdir()), 8) or "an empty folder"
