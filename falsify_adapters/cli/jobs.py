"""Jobs: units of work that another process, or another machine, does."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from falsify_adapters.cli.units import (
    FILES,
    Bench,
    Call,
    Place,
    Recorder,
    Settings,
    Unit,
    ask_queries,
    perform,
)
from falsify_adapters.errors import FalsifyError, InputError, UsageError
from falsify_adapters.progress import quietly
from falsify_adapters.report.outcome import Refusal
from falsify_adapters.sweep.finished import Finished


@dataclass(frozen=True)
class Job:
    """A unit with its call: all that another process, or another machine, needs.

    Parameters
    ----------
    call : Call
        With absolute paths.
    unit : Unit
        With absolute paths.
    given : mapping of str to str
        Each of these paths as the user gave it.
    """

    call: Call
    unit: Unit
    given: Mapping[str, str]

    @classmethod
    def of(cls, call: Call, unit: Unit) -> Job:
        """Make a job of a unit whose paths are as the user gave them."""
        options = {
            name: _absolute(value) if name in FILES else value
            for name, value in call.options.items()
        }
        files = {_absolute_path(path): digest for path, digest in call.files.items()}
        runs = [one.path for one in (unit, *unit.others) if one.path is not None]
        given = {_absolute_path(path): path for path in (*call.files, *runs)}
        return cls(replace(call, options=options, files=files), _abroad(unit), given)


#: A worker of a cluster may have several threads; one unit at a time keeps BLAS at one thread.
_ONE_AT_A_TIME = threading.Lock()
#: The benchmark that this process graded on last.
_LAST: dict[tuple[str, Place | None], Bench] = {}


def grade_job(job: Job) -> Finished:
    """Do one unit of work in this process, which may be on another machine.

    Raises
    ------
    FalsifyError
        If this machine cannot do any of the sweep's work: a file that all units share is not
        there or is another one, or the versions differ. What is wrong with the run itself is a
        refusal in what is returned.
    """
    from threadpoolctl import threadpool_limits

    call, unit = job.call, job.unit
    with _ONE_AT_A_TIME, quietly(), threadpool_limits(limits=1, user_api="blas"):
        if unit.step == "queries":
            finished = ask_queries(call, unit)
        else:
            finished = perform(_bench_of(call, unit.place), Recorder(call), unit)
    return _as_given(finished, job.given)


def _bench_of(call: Call, place: Place | None) -> Bench:
    from falsify_adapters.sweep.store import key_of

    known = (key_of({"call": _plain(call)}), place)
    if known not in _LAST:
        _refuse_other_machine(call)
        recorder = Recorder(call)
        settings = Settings(recorder, call.options)
        for refusal in recorder.outcome.errors:
            raise refusal.error
        command = import_module(f"falsify_adapters.cli.{call.command}")
        _LAST.clear()
        _LAST[known] = command.bench_at(settings, call.options, place)
    return _LAST[known]


def _refuse_other_machine(call: Call) -> None:
    """Refuse to work with other versions, or on other files, than the process that asked."""
    from falsify_adapters.provenance import describe_environment

    here = describe_environment()
    versions = {**here["packages"], "python": here["python"], "machine": here["machine"]}
    asked = call.environment
    expected = {**asked["packages"], "python": asked["python"], "machine": asked["machine"]}
    differing = [
        f"{name} {versions.get(name)} there, {version} here"
        for name, version in expected.items()
        if versions.get(name) != version
    ]
    if differing:
        raise UsageError(
            "a worker computes with other versions",
            found="; ".join(differing),
            hint="install the same on every machine: versions can move numbers",
        )
    for path, digest in call.files.items():
        if digest is not None and file_sha256(path) != digest:
            raise InputError(
                f"a worker does not find {Path(path).name} as it is here",
                found="no such file" if not Path(path).exists() else "other content",
                hint="every worker reads the same paths: put the files on a shared disk",
            )


def file_sha256(path: str) -> str | None:
    """Return the SHA-256 of a file's content; None if it is no plain file that can be read."""
    from falsify_adapters.readers.source import content_sha256

    try:
        return content_sha256(path) if is_file(path) else None
    except (FalsifyError, OSError):
        return None


def _abroad(unit: Unit) -> Unit:
    if unit.path is None:
        return unit
    others = tuple(_abroad(other) for other in unit.others)
    return replace(unit, path=_absolute_path(unit.path), others=others)


def _absolute(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_absolute(one) for one in value]
    return _absolute_path(value) if isinstance(value, str) and is_file(value) else value


def _absolute_path(path: str) -> str:
    return os.path.abspath(path)  # noqa: PTH100  # resolve() would follow links: names would change


def is_file(path: str) -> bool:
    """Say whether a plain file is there, whatever the text is."""
    return os.path.isfile(path)  # noqa: PTH113  # Path raises for names that are too long


def _as_given(finished: Finished, given: Mapping[str, str]) -> Finished:
    """Return what was found with paths as the user gave them."""
    events = tuple(
        replace(event, item=_renamed(event.item, given))
        if isinstance(event.item, Refusal)
        else event
        for event in finished.events
    )
    return replace(finished, events=events)


def _renamed(refusal: Refusal, given: Mapping[str, str]) -> Refusal:
    def renamed(text: str | None) -> str | None:
        # the longest first: a path may be the beginning of another one
        for absolute in sorted(given, key=len, reverse=True):
            text = None if text is None else text.replace(absolute, given[absolute])
        return text

    error = refusal.error
    lacks, found, hint = map(renamed, (error.lacks, error.found, error.hint))
    again = type(error)(lacks or "", found=found, hint=hint)
    return Refusal(renamed(refusal.input) or "", again)


def _plain(call: Call) -> dict[str, Any]:
    return {
        "command": call.command,
        "options": {name: repr(value) for name, value in call.options.items()},
        "accepted": sorted(call.accepted),
        "files": dict(call.files),
        "environment": dict(call.environment),
    }
