"""What the mteb package knows about a task. Everything here needs the extra, and imports late.

Importing mteb takes seconds. The descriptive statistics are plain files inside the package and
are read without importing it.
"""

from __future__ import annotations

import json
import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from falsify_adapters.errors import InputError, MissingExtraError

#: The network is not used while these are set.
_OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")


@dataclass(frozen=True)
class TaskFacts:
    """What grading needs to know about a task.

    Parameters
    ----------
    name : str
        MTEB's name.
    main_score : str
        MTEB's name of the main measure.
    ignore_identical_ids, skip_first_result : bool
        What MTEB does to the rankings after writing them and before scoring.
    eval_splits : tuple of str
        The splits that count.
    """

    name: str
    main_score: str
    ignore_identical_ids: bool
    skip_first_result: bool
    eval_splits: tuple[str, ...]


@dataclass(frozen=True)
class Statistics:
    """Sizes of one split of a task.

    Parameters
    ----------
    n_documents, n_queries : int
        As MTEB counts them.
    """

    n_documents: int
    n_queries: int


def have_mteb() -> bool:
    """Return whether mteb or mteb-core is installed."""
    return find_spec("mteb") is not None


def require_mteb(what: str) -> None:
    """Raise unless mteb is installed.

    Raises
    ------
    MissingExtraError
        That names the extra.
    """
    if not have_mteb():
        raise MissingExtraError(
            f"{what} needs the mteb package",
            hint="pip install 'falsify-adapters[mteb-core]', or [mteb] if you run models too",
        )


def facts_of(task: Any) -> TaskFacts:
    """Return the facts of an ``AbsTaskRetrieval`` object or class."""
    return TaskFacts(
        name=str(task.metadata.name),
        main_score=str(task.metadata.main_score),
        ignore_identical_ids=bool(getattr(task, "ignore_identical_ids", False)),
        skip_first_result=bool(getattr(task, "skip_first_result", False)),
        eval_splits=tuple(task.metadata.eval_splits),
    )


@cache
def task_facts(name: str) -> TaskFacts | None:
    """Return the facts of one of MTEB's tasks, or None if it knows no such task.

    Raises
    ------
    MissingExtraError
        If mteb is not installed.
    """
    task = _registry().get(name)
    return None if task is None else facts_of(task)


@cache
def _registry() -> Mapping[str, Any]:
    require_mteb("knowing a task of MTEB")
    with _quiet_and_offline(download=False):
        # MTEB has no public list of its task classes: get_tasks builds an object of each
        from mteb.get_tasks import _TASKS_REGISTRY

    registry: Mapping[str, Any] = _TASKS_REGISTRY
    return registry


def statistics(name: str, split: str, subset: str) -> Statistics | None:
    """Return the sizes that MTEB's package states for a task, or None.

    The package is not imported: the figures stand in files.

    Parameters
    ----------
    name, split, subset : str
        Task, split and subset (``default`` if the task has none).
    """
    table = _statistics_of(name).get(split)
    if not isinstance(table, dict):
        return None
    if subset != "default":
        table = (table.get("hf_subset_descriptive_stats") or {}).get(subset)
    if not isinstance(table, dict):
        return None
    return _sizes(table)


def _sizes(table: Mapping[str, Any]) -> Statistics | None:
    """Read the sizes; older tables have only the sum of documents and queries."""
    try:
        if "num_documents" in table:
            return Statistics(int(table["num_documents"]), int(table["num_queries"]))
        relevant = table["relevant_docs_statistics"]
        queries = relevant["num_relevant_docs"] / relevant["average_relevant_docs_per_query"]
        n_queries = round(queries)
        if abs(queries - n_queries) > 1e-6 * queries:
            return None
        return Statistics(int(table["num_samples"]) - n_queries, n_queries)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None


@cache
def _statistics_of(name: str) -> Mapping[str, Any]:
    path = _statistics_files().get(name)
    if path is None:
        return {}
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


@cache
def _statistics_files() -> Mapping[str, Path]:
    spec = find_spec("mteb")
    places = (spec.submodule_search_locations if spec else None) or []
    return {
        path.stem: path
        for place in places
        for path in sorted(Path(place, "descriptive_stats").rglob("*.json"))
    }


def load_task(name: str, split: str, subset: str, *, download: bool) -> Any:
    """Load one split and subset of a task from the local Hugging Face cache.

    Parameters
    ----------
    name, split, subset : str
        Task, split and subset (``default`` if the task has none).
    download : bool
        Use the network for what is not in the cache.

    Returns
    -------
    AbsTaskRetrieval
        With its data.

    Raises
    ------
    InputError
        If the data is not there.
    MissingExtraError
        If mteb is not installed.
    """
    if not (download or _something_cached()):
        raise _not_at_hand(name, "an empty Hugging Face cache")
    if _registry().get(name) is None:
        raise InputError(f"MTEB knows no task {name}", hint="give its qrels with --qrels")
    subsets = None if subset == "default" else [subset]
    with _quiet_and_offline(download=download):
        import mteb

        try:
            task = mteb.get_task(name, eval_splits=[split], hf_subsets=subsets)
            prepare(task)
        except Exception as error:
            # the loaders raise anything, from KeyError to exceptions of HTTP libraries
            raise _not_at_hand(name, f"{type(error).__name__}: {error}"[:200]) from error
    return task


def prepare(task: Any) -> None:
    """Load a task's data, in the form of mteb 2."""
    if not getattr(task, "data_loaded", False):
        task.load_data()
    task.convert_v1_dataset_format_to_v2(num_proc=None)


def qrels_of(task: Any, split: str, subset: str) -> tuple[dict[str, dict[str, int]], list[str]]:
    """Return qrels and document ids of a loaded task, with the queries that MTEB scores.

    Raises
    ------
    InputError
        If the task has no such split or subset.
    """
    data = getattr(task, "dataset", None) or {}
    if split not in data.get(subset, {}):
        found = ", ".join(f"{name}/{part}" for name, parts in data.items() for part in parts)
        raise InputError(f"{task.metadata.name} has no data for {subset}/{split}", found=found)
    part = data[subset][split]
    # MTEB drops queries without any judgement before it searches
    qrels = {query: dict(docs) for query, docs in part["relevant_docs"].items() if docs}
    return qrels, [str(doc_id) for doc_id in part["corpus"]["id"]]


def _not_at_hand(name: str, found: str) -> InputError:
    return InputError(
        f"no qrels at hand for {name}",
        found=found,
        hint="--qrels FOLDER, or --download to fetch the task's data",
    )


def _something_cached() -> bool:
    """Return whether a Hugging Face cache holds any data set, without importing its libraries."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    places = (
        Path(os.environ.get("HF_HUB_CACHE") or home / "hub").glob("datasets--*"),
        Path(os.environ.get("HF_DATASETS_CACHE") or home / "datasets").glob("*"),
    )
    return any(True for place in places for _ in place)


@contextmanager
def _quiet_and_offline(*, download: bool) -> Iterator[None]:
    """Keep mteb and its libraries silent, and off the network unless `download`."""
    logger = logging.getLogger("mteb")
    level = logger.level
    logger.setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with _offline(not download):
                yield
        finally:
            logger.setLevel(level)


@contextmanager
def _offline(offline: bool) -> Iterator[None]:
    if not offline:
        yield
        return
    # the libraries read the environment once, when they are imported: so their own flags are
    # set, and the environment only after that, lest it stays in them
    changed = [
        flag
        for module in ("huggingface_hub.constants", "datasets.config")
        for flag in _set_flags(module)
    ]
    before = {name: os.environ.get(name) for name in _OFFLINE}
    os.environ.update(dict.fromkeys(_OFFLINE, "1"))
    try:
        yield
    finally:
        for target, name, value in changed:
            setattr(target, name, value)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _set_flags(module: str) -> Iterator[tuple[Any, str, Any]]:
    from importlib import import_module

    try:
        target = import_module(module)
    except ImportError:
        return
    for name in _OFFLINE:
        if hasattr(target, name):
            yield target, name, getattr(target, name)
            setattr(target, name, True)
