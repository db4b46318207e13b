"""Find the qrels of a task, split and subset in a folder, by the names of files and folders.

Both BEIR's layout (``nfcorpus/qrels/test.tsv``) and single files (``climate-fever.qrels``,
``bright-pony.trec``) are understood; tasks go by MTEB's name or BEIR's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from falsify_adapters.data.table import find_entry
from falsify_adapters.errors import InputError, UsageError

#: How deep below the folder qrels may lie: TASK/SUBSET/qrels/SPLIT.tsv.
DEEPEST = 4
#: Folders with more files than this are not folders of qrels.
MOST_FILES = 20_000
_ENDINGS = frozenset(
    {
        *(".gz", ".lz4", ".tsv", ".csv", ".txt", ".json", ".jsonl", ".parquet"),
        *(".qrels", ".qrel", ".trec"),
    }
)
_NO_QRELS = ("corpus", "queries", "topics", "model_meta", "readme", "license")
#: What file names carry in front of the data set's name.
_PREFIX = re.compile(r"^qrels?(?:[._-]|$)(?:beir-v[0-9.]+-)?", re.IGNORECASE)


class QrelsFolder:
    """The qrels files below one folder, by what their names say.

    Parameters
    ----------
    folder : path
        The folder.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise UsageError(
                f"the folder of qrels {folder} does not exist"
                if not self.folder.exists()
                else f"{folder} is no folder",
                hint="--qrels takes a folder of BEIR-layout folders or TREC files",
            )
        self._by_key: dict[str, list[Path]] = {}
        own = _plain(self.folder.absolute().name.removesuffix("qrels"))
        for count, path in enumerate(_files(self.folder, DEEPEST)):
            if count > MOST_FILES:
                raise UsageError(f"{folder} holds more than {MOST_FILES} files: no folder of qrels")
            key = _key(path.relative_to(self.folder))
            self._by_key.setdefault(key, []).append(path)
            if own:
                # the folder itself may be the data set's: nfcorpus/qrels/test.tsv
                self._by_key.setdefault(own + key, []).append(path)

    def find(
        self, task: str, split: str, subset: str, *, default_split: bool, sole_task: bool
    ) -> Path | None:
        """Return the qrels file of a task's split and subset, or None.

        Parameters
        ----------
        task, split, subset : str
            MTEB's names; ``default`` is the subset of tasks that have none.
        default_split : bool
            Whether a file that names no split may be meant.
        sole_task : bool
            Whether a file that names no task may be meant.

        Raises
        ------
        InputError
            If several files have names that fit equally well.
        """
        part = "" if subset == "default" else _plain(subset)
        time = _plain(split)
        names = [*_task_keys(task), *([""] if sole_task else [])]
        for name in names:
            keys = [name + part + time, name + time + part]
            if default_split and (name or part):
                keys.append(name + part)
            for key in dict.fromkeys(keys):
                found = self._by_key.get(key, [])
                if len(found) > 1:
                    raise InputError(
                        f"several files may be the qrels of {task}, {subset}, {split}",
                        found=", ".join(str(path.relative_to(self.folder)) for path in found),
                        hint="leave one of them in the folder",
                    )
                if found:
                    return found[0]
        return None


def _task_keys(task: str) -> list[str]:
    entry = find_entry(task)
    names = [task, re.sub(r"(Retrieval|Reranking)$", "", task)]
    if entry is not None:
        names += [entry.name, *entry.aliases]
    return [key for key in dict.fromkeys(map(_plain, names)) if key]


def _plain(text: str) -> str:
    """Return the letters and digits alone.

    Examples
    --------
    >>> _plain("Climate-FEVER")
    'climatefever'
    """
    return "".join(char for char in text.casefold() if char.isalnum())


def _key(relative: Path) -> str:
    """Return what a file's name and folders say, without endings and the word qrels.

    Examples
    --------
    >>> _key(Path("nfcorpus/qrels/test.tsv")), _key(Path("qrels.beir-v1.0.0-nq.test.txt"))
    ('nfcorpustest', 'nqtest')
    """
    stem = relative.name
    while (suffix := Path(stem).suffix.lower()) in _ENDINGS and Path(stem).stem:
        stem = stem[: -len(suffix)]
    parts = [*relative.parts[:-1], _PREFIX.sub("", stem)]
    return "".join(_plain(part) for part in parts if part.lower() != "qrels")


def _files(folder: Path, depth: int) -> Iterator[Path]:
    with os.scandir(folder) as scanned:
        entries = sorted(scanned, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            if depth > 1:
                yield from _files(Path(entry.path), depth - 1)
        elif _may_be_qrels(entry.name):
            yield Path(entry.path)


def _may_be_qrels(name: str) -> bool:
    endings: Iterable[str] = (suffix.lower() for suffix in Path(name).suffixes)
    return any(ending in _ENDINGS for ending in endings) and not name.lower().startswith(_NO_QRELS)
