"""Walk MTEB folders: which files are results, which are predictions, which are neither.

``results/<org__model>/<revision>/[experiments/<settings>/]<Task>.json`` is what MTEB writes;
without revision folders before 1.12.6. Nothing is taken from a name that the content says better.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from sys import intern
from typing import Any, Literal

from falsify_adapters.adapters.mteb.predictions import META, is_predictions
from falsify_adapters.adapters.mteb.results import Results, parse_results
from falsify_adapters.errors import UsageError

#: Larger files that are named as predictions are not parsed before somebody wants them.
SMALL = 1 << 16
#: Endings of prediction files; ``_qrels`` is a run too, in mteb 1.1 to 1.7.
PREDICTION_ENDS = ("_predictions.json", "_qrels.json")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file lies: whose results these are.

    Parameters
    ----------
    model, revision, experiment : str or None
        From ``model_meta.json`` beside the file, else from the names of the folders.
    folder : str
        The folder, as it is shown.
    """

    model: str | None
    revision: str | None
    experiment: str | None
    folder: str


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A result file and its content.

    Parameters
    ----------
    label : str
        The path from the given folder on.
    stem : str
        The file's name without ending.
    place : Place
        Whose results these are.
    results : Results
        The scores.
    sha256 : str
        Of the file's content.
    """

    label: str
    stem: str
    place: Place
    results: Results
    sha256: str

    @property
    def task(self) -> str:
        """The task's name, the file's if the content does not say it."""
        return self.results.task or self.stem


@dataclass(frozen=True, slots=True)
class PredictionFile:
    """A file with rankings, unread.

    Parameters
    ----------
    path : Path
        The file.
    label : str
        The path from the given folder on.
    place : Place
        Whose rankings these are, if the file itself does not say it.
    """

    path: Path
    label: str
    place: Place

    @property
    def stem(self) -> str:
        """Task, and perhaps subset, as the file's name has them."""
        name = self.path.name
        for end in PREDICTION_ENDS:
            if name.endswith(end):
                return name.removesuffix(end)
        return self.path.stem


@dataclass(frozen=True, slots=True)
class OtherFile:
    """A file that is neither, and what it is.

    Parameters
    ----------
    label : str
        The path from the given folder on.
    reason : str
        What it is; the same words for the same kind.
    kind : {"description", "other", "broken"}
        A model's description, something else, or JSON that cannot be read.
    """

    label: str
    reason: str
    kind: Literal["description", "other", "broken"] = "other"


Found = ResultFile | PredictionFile | OtherFile


@dataclass
class WalkSummary:
    """What a walk saw.

    Parameters
    ----------
    files : Counter
        Files by kind: results, predictions, descriptions, others, broken.
    oddities : Counter
        Result files by kind of irregularity (:data:`~.results.ODDITIES`).
    examples : dict of str to str
        The first file of each kind of irregularity.
    """

    files: Counter[str] = field(default_factory=Counter)
    oddities: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, found: Found) -> None:
        """Count one file."""
        if isinstance(found, PredictionFile):
            self.files["predictions"] += 1
        elif isinstance(found, OtherFile):
            self.files[{"description": "descriptions", "broken": "broken"}.get(
                found.kind, "others"
            )] += 1  # fmt: skip
            if found.kind != "description":
                self.count(found.reason, found.label)
        else:
            self.files["results"] += 1
            for oddity in found.results.oddities:
                self.count(oddity, found.label)
            if found.place.revision == "None":
                self.count('revision "None"', found.label)

    def count(self, oddity: str, label: str) -> None:
        """Count one irregularity of a file."""
        self.oddities[oddity] += 1
        self.examples.setdefault(oddity, label)


def walk(paths: Iterable[str | Path]) -> Iterator[Found]:
    """Yield every file below the paths, in the order of their names.

    Parameters
    ----------
    paths : iterable of path
        Folders, or single files.

    Raises
    ------
    UsageError
        If a path does not exist.
    """
    for path in map(Path, paths):
        if path.is_dir():
            yield from _walk(path, path.absolute().name or str(path))
        elif path.exists():
            place = _place(path.absolute().parent, path.parent.name)
            yield _look(path, path.name, place)
        else:
            raise UsageError(f"{path} does not exist")


def _walk(folder: Path, label: str) -> Iterator[Found]:
    try:
        with os.scandir(folder) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
    except OSError as error:
        yield OtherFile(label, f"a folder that cannot be read ({error.strerror})", "broken")
        return
    place = None
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            if not entry.name.startswith("."):
                yield from _walk(folder / entry.name, f"{label}/{entry.name}")
        elif entry.is_file():  # links to files are followed: the cache of a hub consists of them
            place = place or _place(folder.absolute(), label)
            yield _look(Path(entry.path), f"{label}/{entry.name}", place)


def _place(folder: Path, label: str) -> Place:
    parts = folder.parts
    experiment = None
    if len(parts) >= 2 and parts[-2] == "experiments":
        experiment, parts = parts[-1], parts[:-2]
    model = revision = None
    # the model's folder is this one, or one up
    for back in (1, 2):
        if len(parts) >= back and "__" in parts[-back].strip("_"):
            model = parts[-back].replace("__", "/", 1)
            revision = parts[-1] if back == 2 else None
            break
    described = _description(folder)
    if described is not None:
        model = described[0] or model
        revision = revision or described[1]
    # many thousand files share few of these texts
    return Place(_shared(model), _shared(revision), _shared(experiment), intern(label))


def _shared(text: str | None) -> str | None:
    return intern(text) if text else None


def _description(folder: Path) -> tuple[str | None, str | None] | None:
    try:
        data = json.loads((folder / "model_meta.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    name, revision = data.get("name"), data.get("revision")
    return (
        name if isinstance(name, str) and name else None,
        revision if isinstance(revision, str) and revision else None,
    )


def _look(path: Path, label: str, place: Place) -> Found:
    name = path.name
    if name == "model_meta.json":
        return OtherFile(label, "a model's description", "description")
    if path.suffix != ".json":
        return OtherFile(label, f"no JSON file ({path.suffix or 'no ending'})")
    try:
        if name.endswith(PREDICTION_ENDS) and path.stat().st_size > SMALL:
            return PredictionFile(path, label, place)
        content = path.read_bytes()
    except OSError as error:
        return OtherFile(label, f"a file that cannot be read ({error.strerror})", "broken")
    if not content.strip():
        return OtherFile(label, "an empty file", "broken")
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        if name.endswith(PREDICTION_ENDS):
            return PredictionFile(path, label, place)  # read again, with an error that says more
        return OtherFile(label, f"broken JSON ({type(error).__name__})", "broken")
    if isinstance(data, dict) and META not in data:
        results = parse_results(data)
        if results is not None:
            sha256 = hashlib.sha256(content).hexdigest()
            return ResultFile(label, path.stem, place, results, sha256)
    return _rankings_or_other(data, path, label, place)


def _rankings_or_other(data: Any, path: Path, label: str, place: Place) -> Found:
    if is_predictions(data) or path.name.endswith(PREDICTION_ENDS):
        return PredictionFile(path, label, place)
    return OtherFile(label, "JSON without scores or rankings")
