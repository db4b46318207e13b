"""``falsify-adapters verify``: find a report's inputs again, compute it anew, compare."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import chdir
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from falsify_adapters.cli.beir import PLACEHOLDER
from falsify_adapters.cli.benchmark import PREFIX
from falsify_adapters.cli.call import PLACES, SILENT
from falsify_adapters.cli.command import Command
from falsify_adapters.cli.options import WRITING
from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.notes import counted

if TYPE_CHECKING:
    from falsify_adapters.report.differences import Difference

#: Command in a report, and the module that holds it.
COMMANDS = {
    "falsify-ir": "ir",
    "falsify-beir": "beir",
    "falsify-mteb": "mteb",
    "audit": "audit",
}
#: Folder of the files after which systems are called; all others have one for each option.
SYSTEMS = "systems"
#: Options that may also hold a word, a number or the name of a column, and those that name data.
WORDS = ("pool", "clusters", "strata")
NAMES = (*WORDS, "datasets", "benchmarks")
#: Differences that are listed.
LISTED = 20
#: Largest report that is read, in bytes.
LARGEST = 1 << 30


@click.command(
    "verify",
    cls=Command,
    epilog="Exit status: 0 if every number agrees, 1 if one does not, 2 if an input is missing or"
    " has changed.",
)
@click.argument("report", metavar="REPORT.json")
@click.option("--data", metavar="DIR", help="Where the inputs are [this folder; data sets: cache].")
@click.pass_context
def main(context: click.Context, /, report: str, data: str | None) -> None:
    """Compute a report again from its inputs, and compare every number.

    Inputs are found by their hash, whatever their names; one that has changed is refused. Numbers
    must agree to 12 digits on the same machine and versions, to 1e-9 on others.
    """
    from falsify_adapters.report.differences import Comparison

    was = read_report(report)
    if not was["reports"]:
        raise InputError(
            f"{Path(report).name} has no result to verify", hint="all of its inputs were refused"
        )
    with tempfile.TemporaryDirectory(prefix="falsify-verify-") as stage:
        now = _again(was, data, Path(stage).resolve())
    _refuse_changed(was, now)
    other = environment_differences(was, now)
    comparison = Comparison(exact=not other)
    found = list(_all_differences(comparison, was, now))
    for line in other:
        click.echo(f"note: {line}")
    for difference in found[:LISTED]:
        click.echo(str(difference))
    if len(found) > LISTED:
        click.echo(f"... and {len(found) - LISTED} more")
    n, digits = comparison.numbers, "12 digits" if comparison.exact else "1e-9"
    if found:
        click.echo(
            f"NOT VERIFIED: {counted(len(found), 'difference')} among {counted(n, 'number')}, to"
            f" {digits}."
        )
    else:
        click.echo(
            f"Verified: {counted(n, 'number')} in {counted(len(was['reports']), 'report')} agree"
            f" to {digits}."
        )
    context.exit(1 if found else 0)


def read_report(path: str) -> dict[str, Any]:
    """Read a JSON report that says how it was made.

    Raises
    ------
    InputError
        If it is none.
    """
    from falsify_adapters.report.outcome import SCHEMA

    file = Path(path)
    name = file.name or str(file)  # the last folder of "." and "/" has none
    try:
        if file.stat().st_size > LARGEST:
            raise InputError(f"{name} is too large for a report", found=f"{LARGEST:,} bytes")
        document = json.loads(file.read_bytes())
    except OSError as error:
        raise InputError(f"{name} cannot be read", found=error.strerror) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is not JSON", found=str(error)[:120]) from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise InputError(
            f"{name} is no report of this version", found=f"schema {schema!r}", hint=SCHEMA
        )
    call = document.get("call")
    if not isinstance(call, dict) or call.get("command") not in COMMANDS:
        raise InputError(
            f"{name} does not say how it was made",
            hint="only reports that a command wrote with --json can be verified",
        )
    _check_shape(name, document)
    return document


def _check_shape(name: str, document: Mapping[str, Any]) -> None:
    """Refuse what no command writes: a report may have been edited, or come from anybody."""
    call, reports = document["call"], document.get("reports")
    options, inputs = call.get("options"), call.get("inputs")
    environment = document.get("environment")
    fits = (
        isinstance(reports, list)
        and all(isinstance(report, dict) for report in reports)
        and all(isinstance(report.get("provenance") or {}, dict) for report in reports)
        and isinstance(options, dict)
        and all(_is_place(options[key]) for key in PLACES if key in options)
        and isinstance(environment, dict)
        and isinstance(environment.get("packages"), dict)
        and isinstance(inputs, list)
        and all(isinstance(one, dict) for one in inputs)
        and all(isinstance(one.get(key), str) for one in inputs for key in ("name", "sha256"))
    )
    if not fits:
        raise InputError(
            f"{name} has not the shape of a report",
            hint="falsify-adapters schema prints the JSON Schema that reports fit",
        )


def _is_place(value: object) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(one, str) for one in value)
    )


def _again(was: Mapping[str, Any], data: str | None, stage: Path) -> dict[str, Any]:
    """Call the command again, on inputs found under `data`."""
    call, folder = was["call"], Path(data or ".").absolute()
    if not folder.is_dir():
        raise UsageError(f"--data {data} is no folder")
    command = import_module(f"falsify_adapters.cli.{COMMANDS[call['command']]}").main
    places = Finder(folder, stage).find(was)
    target = stage / "report.json"
    arguments = [*_arguments(command, {**call["options"], **places}), "--quiet"]
    offered = {name for parameter in command.params for name in parameter.opts}
    if "--offline" in offered:
        arguments.append("--offline")
    data_dir = data or os.environ.get("FALSIFY_DATA_DIR")
    if "--data-dir" in offered and data_dir:
        arguments += ["--data-dir", str(Path(data_dir).absolute())]
    positional = _positional(command, places)
    # systems are called after the paths of their runs: these are relative, as they were
    with chdir(stage / SYSTEMS):
        command.main(
            [*arguments, "--json", str(target), "--", *positional],
            prog_name=call["command"],
            standalone_mode=False,
        )
    document: dict[str, Any] = json.loads(target.read_bytes())
    return document


def _arguments(command: click.Command, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the command line that sets these options."""
    by_name = {p.name: p for p in command.params if isinstance(p, click.Option)}
    known = {parameter.name for parameter in command.params}
    for name, value in options.items():
        if name not in known:
            raise InputError("the report has an option that this version does not know", found=name)
        parameter = by_name.get(name)
        # a command leaves them out; verifying a stranger's report must not write where it says
        if getattr(parameter, "section", "") == WRITING or name in SILENT:
            raise InputError("the report has an option that reports never hold", found=name)
        if parameter is None:
            continue
        if parameter.is_flag:
            flags = parameter.opts if value else parameter.secondary_opts
            yield from flags[:1]
            continue
        for one in value if isinstance(value, list) else [value]:
            yield f"{max(parameter.opts, key=len)}={one}"


def _positional(command: click.Command, places: Mapping[str, Any]) -> Iterator[str]:
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            value = places.get(parameter.name or "", [])
            yield from [value] if isinstance(value, str) else value


class Finder:
    """Finds the inputs of a call under a folder, and lays them out under their old names."""

    def __init__(self, data: Path, stage: Path) -> None:
        self._data, self._stage = data, stage
        self._files = [data, *(folder / name for folder, names in _walk(data) for name in names)]
        self._hashes: dict[Path, str | None] = {}
        (stage / SYSTEMS).mkdir()

    def find(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """Return the place of every input, by option.

        Raises
        ------
        InputError
            If an input is missing or has changed.
        """
        options, inputs = report["call"]["options"], report["call"]["inputs"]
        expected = {(one.get("option"), one["name"]): one["sha256"] for one in inputs}
        systems = {"runs", "baseline"} | ({"qrels"} if options.get("source") else set())
        found: dict[str, Any] = {}
        problems: list[str] = []
        for option in PLACES:
            value = options.get(option)
            if value is None:
                continue
            places = []
            for label in [value] if isinstance(value, str) else value:
                folder = SYSTEMS if option in systems else option
                try:
                    sha256 = expected.get((option, label))
                    if sha256 is not None:
                        place = self._lay_out(self._by_hash(label, sha256), folder, label)
                    elif PLACEHOLDER in label:
                        place = self._template(label, folder, report["reports"])
                    else:
                        place = self._unhashed(option, label)
                    places.append(place)
                except InputError as error:
                    problems.append(str(error))
            found[option] = places[0] if isinstance(value, str) and places else places
        if problems:
            raise InputError("; ".join(problems), hint="--data DIR says where the inputs are")
        return found

    def _template(self, label: str, folder: str, reports: Iterable[Mapping[str, Any]]) -> str:
        """Lay out the file of each data set that a run's path with its name stood for."""
        laid_out = 0
        for report in reports:
            names = (report.get("benchmark"), report.get("subset"))
            title = "/".join(name for name in names if isinstance(name, str))
            own = label.replace(PLACEHOLDER, title)
            for name in ("run", "baseline", "candidate"):
                file = (report.get("provenance") or {}).get(name)
                file = file if isinstance(file, dict) else {}
                if file.get("name") == Path(own).name and isinstance(file.get("sha256"), str):
                    self._lay_out(self._by_hash(own, file["sha256"]), folder, own)
                    laid_out += 1
        if not laid_out:
            raise InputError(f"{label} cannot be found again", found="no report on such a run")
        return label

    def _unhashed(self, option: str, label: str) -> str:
        """Return the place of a folder, or what is no place: a data set's name, a word."""
        if label == "-":
            raise InputError("standard input cannot be read again", hint="save it to a file")
        folders = [p for p in self._files if _ends_with(p, label) and p.is_dir()]
        if option not in WORDS and folders:
            return str(folders[0])
        if label.startswith(PREFIX):
            return label  # a data set's name
        # a stranger's report names no place outside of --data
        outside = Path(label).is_absolute() or ".." in Path(label).parts
        if option in NAMES and not outside:
            return label
        raise InputError(f"{label} is not there")

    def _by_hash(self, label: str, sha256: str) -> Path:
        namesakes = [p for p in self._files if _ends_with(p, Path(label).name) and p.is_file()]
        namesakes.sort(key=lambda path: not _ends_with(path, label))
        others = [path for path in self._files if path not in set(namesakes) and path.is_file()]
        for path in (*namesakes, *others):
            if self._hash(path) == sha256:
                return path
        if namesakes:
            raise InputError(
                f"{label} has changed", found=f"SHA-256 {self._hash(namesakes[0])}, not {sha256}"
            )
        raise InputError(f"{label} is not there, under any name")

    def _hash(self, path: Path) -> str | None:
        from falsify_adapters.readers.source import content_sha256

        if path not in self._hashes:
            try:
                self._hashes[path] = content_sha256(path)
            except InputError:  # broken, or not ours to read
                self._hashes[path] = None
        return self._hashes[path]

    def _lay_out(self, path: Path, folder: str, label: str) -> str:
        """Link a file under its old name; return the place as the command is to be told it."""
        root = self._stage / folder
        target = root / label
        if Path(label).is_absolute() or ".." in Path(label).parts:
            raise InputError(f"{label} leads out of the folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.symlink_to(path)
        return label if folder == SYSTEMS else str(target)


def _walk(data: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield each folder with the names of what is in it, always in the same order."""
    for folder, subfolders, names in os.walk(data):
        subfolders.sort()
        yield Path(folder), [*subfolders, *sorted(names)]


def _ends_with(path: Path, label: str) -> bool:
    parts = Path(label).parts
    return path.parts[-len(parts) :] == parts


def _refuse_changed(was: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse if what was read this time is something else, or less, or more."""
    old, new = ({_key(one): one for one in document["reports"]} for document in (was, now))
    changed = [name for key in old.keys() & new.keys() for name in _changed(old[key], new[key])]
    if changed:
        raise InputError(f"changed since the report: {', '.join(sorted(set(changed)))}")
    gone, new_ones = ([key for key in a if key not in b] for a, b in ((old, new), (new, old)))
    if gone and len(now["errors"]) > len(was.get("errors", ())):
        said = [f"{one['input']}: {one['lacks']}" for one in now["errors"]]
        raise InputError("what was graded is refused now", found="; ".join(said))
    for lacks, keys in (("is not there any more", gone), ("was not there", new_ones)):
        if keys:
            raise InputError(f"a result {lacks}: {', '.join(filter(None, keys[0]))}")


def _key(report: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what a report is about."""
    systems = ("kind", "system", "baseline", "candidate", "judge")
    places = ("benchmark", "task", "subset", "split", "revision", "measure")
    return tuple(str(report.get(name) or "") for name in (*systems, *places))


def _changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files of a report that have another hash now."""
    old, new = (report.get("provenance") or {} for report in (old, new))
    for name, facts in old.items():
        hashed = isinstance(facts, dict) and facts.get("sha256")
        other = new.get(name)
        if hashed and (other if isinstance(other, dict) else {}).get("sha256") != facts["sha256"]:
            yield f"{name} {facts.get('name') or facts.get('file') or ''}".strip()
    if old.get("sha256") != new.get("sha256"):
        yield str(old.get("file"))


def environment_differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return in words what was different when the report was made."""
    old, new = was["environment"], now["environment"]
    pairs = {name: (old.get(name), new.get(name)) for name in ("python", "machine")}
    packages = old["packages"].keys() | new["packages"].keys()
    pairs |= {n: (old["packages"].get(n), new["packages"].get(n)) for n in sorted(packages)}
    return [f"{n} was {a}, is {b}" for n, (a, b) in pairs.items() if a != b]


def _named(document: Mapping[str, Any], key: str) -> list[Any]:
    """Return the inputs that a report names as refused, or left out."""
    entries = document.get(key) or []
    return [entry.get("input") if isinstance(entry, dict) else entry for entry in entries]


def _all_differences(
    comparison: Any, was: Mapping[str, Any], now: Mapping[str, Any]
) -> Iterator[Difference]:
    n_was, n_now = len(was["reports"]), len(now["reports"])
    if n_was != n_now:
        raise InputError(
            f"the report has {counted(n_was, 'result')}, computed again there are {n_now}"
        )
    for key, title in (("errors", "refused inputs"), ("skipped", "inputs left out")):
        yield from comparison.differences(_named(was, key), _named(now, key), title)
    for i, (one, other) in enumerate(zip(was["reports"], now["reports"], strict=True), 1):
        names = [str(one[key]) for key in ("system", "benchmark", "measure") if one.get(key)]
        place = f"report {i} ({', '.join(names)}):"
        frames = [(report.get("provenance") or {}).get("frames") for report in (one, other)]
        yield from comparison.differences(frames[0], frames[1], f"{place} frames")
        plain = [
            {key: value for key, value in report.items() if key != "provenance"}
            for report in (one, other)
        ]
        yield from comparison.differences(plain[0], plain[1], place)
