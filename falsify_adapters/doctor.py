"""Self-check: the installation, then systems whose verdict is known beforehand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet

from falsify_adapters.errors import FalsifyError

#: Extra, packages of which one is enough, and what they are for.
EXTRAS = (
    ("beir", ("beir",), "BEIR's own loaders and evaluation, to compare with"),
    ("cluster", ("distributed",), "many runs on a Dask cluster (--scheduler)"),
    ("ir-datasets", ("ir-datasets",), "qrels by the id of a data set (irds:...)"),
    ("jobs", ("joblib",), "many runs in several processes (--jobs)"),
    ("lz4", ("lz4",), "files compressed with lz4"),
    ("lz4", ("cbor2",), "ranx' own lz4 files"),
    ("mcp", ("mcp",), "the server for agents (falsify-adapters mcp)"),
    ("mteb-core", ("mteb-core", "mteb"), "MTEB's task descriptions and data"),
    ("parquet", ("pyarrow",), "Parquet runs, qrels and tables; finished runs (--resume)"),
    ("report", ("jinja2",), "the HTML page"),
    ("report", ("matplotlib",), "plot()"),
    ("text", ("rapidfuzz",), "queries grouped by their text (--clusters auto)"),
)
#: The verdict that each known system must get on the bundled sample.
EXPECTED = {
    "oracle": "PASS",
    "bm25": "PASS",
    "constant": "FAIL",
    "popularity": "FAIL",
    "popularity sample": "FAIL",
    "random": "FAIL",
    "shuffled bm25": "FAIL",
}
MEASURE = "nDCG@10"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Parameters
    ----------
    status : {"ok", "absent", "problem"}
        "absent" is an optional part that is not there: no problem.
    text : str
        What was found.
    remedy : str
        What to do about it; empty if nothing.
    """

    status: Literal["ok", "absent", "problem"]
    text: str
    remedy: str = ""


def examine() -> Iterator[Check]:
    """Yield every check: the installation, its optional parts, then the gate itself."""
    yield _python()
    yield from _packages()
    yield from _extras()
    yield from _providers()
    yield from _controls()


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    if (3, 11) <= sys.version_info[:2] <= (3, 13):
        return Check("ok", f"Python {found}")
    return Check("problem", f"Python {found}", "install Python 3.11, 3.12 or 3.13")


def _packages() -> Iterator[Check]:
    """Compare the installed packages with what the package's metadata asks for."""
    try:
        lines = requires("falsify-adapters") or []
        own = version("falsify-adapters")
    except PackageNotFoundError:
        yield Check(
            "absent",
            "falsify-adapters runs from its source: required versions are not compared",
            "pip install . in its folder",
        )
        return
    yield Check("ok", f"falsify-adapters {own}")
    for line in lines:
        needed = _parsed(line)
        if needed is not None and (needed.marker is None or needed.marker.evaluate({"extra": ""})):
            yield _package(needed)


def _wanted_by_extras() -> dict[str, SpecifierSet]:
    """Return which versions the extras ask for, by package; nothing when run from source."""
    try:
        parsed = [_parsed(line) for line in requires("falsify-adapters") or []]
    except PackageNotFoundError:
        return {}
    return {
        one.name: one.specifier
        for one in parsed
        if one is not None and one.marker is not None and "extra" in str(one.marker)
    }


def _parsed(line: str) -> Requirement | None:
    try:
        return Requirement(line)
    except InvalidRequirement:
        return None


def _package(needed: Requirement) -> Check:
    name, wanted = needed.name, needed.specifier
    remedy = f"pip install '{name}{wanted}'"
    found = _version(name)
    if found is None:
        return Check("problem", f"{name} is missing", remedy)
    if not wanted.contains(found, prereleases=True):
        return Check("problem", f"{name} {found} does not fit {wanted}", remedy)
    return Check("ok", f"{name} {found}")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _extras() -> Iterator[Check]:
    specifiers = _wanted_by_extras()
    for extra, packages, purpose in EXTRAS:
        found = {name: number for name in packages if (number := _version(name))}
        here = [f"{name} {number}" for name, number in found.items()]
        old = [
            f"{name} {number} does not fit {specifiers[name]}"
            for name, number in found.items()
            if name in specifiers and not specifiers[name].contains(number, prereleases=True)
        ]
        if old:
            yield Check(
                "problem",
                f"{', '.join(old)}: {purpose}",
                f"pip install --upgrade 'falsify-adapters[{extra}]'",
            )
        elif here:
            yield Check("ok", f"{', '.join(here)}: {purpose}")
        else:
            yield Check(
                "absent",
                f"{packages[0]}: {purpose}",
                f"pip install 'falsify-adapters[{extra}]'",
            )
    if _version("mteb") and _version("mteb-core"):
        yield Check(
            "problem",
            "mteb and mteb-core are both installed and hold the same module",
            "pip uninstall mteb mteb-core, then install one of them",
        )


def _providers() -> Iterator[Check]:
    from falsify_adapters.measures import providers

    for name, (available, how) in providers().items():
        if available:
            yield Check("ok", f"ir-measures' provider {name}")
        else:
            yield Check("absent", f"ir-measures' provider {name}: some rarer measures", how)


def _controls() -> Iterator[Check]:
    """Grade systems whose verdict on the bundled sample is known."""
    try:
        verdicts = control_verdicts()
    except (FalsifyError, OSError) as error:
        yield Check("problem", f"the bundled sample cannot be graded: {error}", "reinstall")
        return
    for name, expected in EXPECTED.items():
        verdict, score = verdicts[name]
        text = f"{name} on the sample, {MEASURE} {score:.4f}: {verdict}"
        if verdict == expected:
            yield Check("ok", text)
        else:
            yield Check(
                "problem",
                f"{text}, which should be {expected}",
                "trust no verdict of this installation; reinstall, and report it if it stays",
            )


def control_verdicts() -> dict[str, tuple[str, float]]:
    """Grade the systems of :data:`EXPECTED` on the bundled sample.

    Returns
    -------
    dict
        Name to verdict and score.
    """
    from falsify_adapters import baselines
    from falsify_adapters.adapters.beir import open_dataset
    from falsify_adapters.gate import run_gate

    dataset = open_dataset("sample", offline=True)
    bm25 = dataset.evaluate(progress=False)
    qrels, depth = bm25.qrels, 100
    runs = {
        "oracle": baselines.oracle(qrels, depth),
        "bm25": bm25.run,
        "constant": baselines.constant(qrels, MEASURE, depth),
        "popularity": baselines.popularity(qrels, depth),
        "popularity sample": baselines.popularity_sample(qrels, depth),
        "random": baselines.random(qrels, depth, corpus_ids=dataset.corpus_ids),
        "shuffled bm25": baselines.shuffled(bm25.run),
    }
    reports = {name: run_gate(bm25.with_run(run), MEASURE) for name, run in runs.items()}
    return {name: (report.verdict, report.score) for name, report in reports.items()}
