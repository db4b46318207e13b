"""A plan made before there is a run: measures, settings and qrels; and whether a report kept to it.

The file is flat TOML with the names of the commands' options, so that it can be read as settings,
and ``qrels_sha256``, the hash of the canonical qrels frame.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from falsify_adapters.config import read_config
from falsify_adapters.errors import UsageError

if TYPE_CHECKING:
    from falsify_adapters.results import GateConfig, GateReport

#: Settings of the gate that a plan fixes.
SETTINGS = (
    *("tau", "alpha", "decision", "correction", "n_boot", "n_trials", "seed"),
    *("permute", "marginal", "require_ceiling"),
)
QRELS = "qrels_sha256"


def plan_text(measures: Iterable[str], config: GateConfig, qrels_sha256: str | None) -> str:
    """Return a plan as TOML.

    Parameters
    ----------
    measures : iterable of str
        As ir-measures prints them.
    config : GateConfig
        The settings.
    qrels_sha256 : str or None
        Hash of the canonical qrels frame; None leaves the qrels open.

    Examples
    --------
    >>> from falsify_adapters import GateConfig
    >>> print(plan_text(["nDCG@10"], GateConfig(), None).splitlines()[2])
    measure = ["nDCG@10"]
    """
    values = asdict(config)
    lines = ["# What is to be graded and how, fixed before there is a run.", ""]
    lines.append(f"measure = [{', '.join(map(_toml, measures))}]")
    lines += [f"{name} = {_toml(values[name])}" for name in SETTINGS]
    if qrels_sha256 is not None:
        lines.append("# of the canonical qrels frame, whatever the format of the file")
        lines.append(f"{QRELS} = {_toml(qrels_sha256)}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return repr(value)


def read_plan(path: str | Path) -> dict[str, Any]:
    """Read a plan.

    Raises
    ------
    UsageError
        If it cannot be read, or lacks a setting.
    """
    plan = read_config(path, frozenset({"measure", QRELS, *SETTINGS}))
    lacking = [name for name in ("measure", *SETTINGS) if name not in plan]
    if lacking:
        raise UsageError(
            f"{Path(path).name} is no plan: it lacks {', '.join(lacking)}",
            hint="falsify-adapters plan writes one",
        )
    return plan


def kept_to(path: str | Path, reports: Iterable[GateReport]) -> dict[str, Any]:
    """Say whether reports kept to a plan.

    Parameters
    ----------
    path : path
        The plan.
    reports : iterable of GateReport
        Controls do not count.

    Returns
    -------
    dict
        ``name`` and ``sha256`` of the plan, ``kept``, and ``departures`` in words.
    """
    plan = read_plan(path)
    runs = [report for report in reports if report.role == "run"]
    departures = [line for report in runs for line in _departures(plan, report)]
    graded = {report.measure for report in runs}
    departures += [f"{name} was not graded" for name in planned(plan) if name not in graded]
    return {
        "name": Path(path).name,
        "sha256": hashlib.sha256(Path(path).read_bytes()).hexdigest(),
        "kept": not departures,
        "departures": list(dict.fromkeys(departures)),
    }


def planned(plan: Mapping[str, Any]) -> list[str]:
    """Return the measures of a plan, spelled as ir-measures prints them."""
    from falsify_adapters.measures import parse_measure

    names = plan["measure"] if isinstance(plan["measure"], list) else [plan["measure"]]
    return [str(parse_measure(name)) for name in names]


def _departures(plan: Mapping[str, Any], report: GateReport) -> Iterable[str]:
    if report.measure not in planned(plan):
        yield f"{report.measure} was not planned"
    for name in SETTINGS:
        used = report.settings[name]
        if used != plan[name]:
            yield f"{name} is {used}, planned was {plan[name]}"
    used = report.provenance["frames"]["qrels"]["sha256"]
    if plan.get(QRELS, used) != used:
        where = f" of {report.benchmark}" if report.benchmark else ""
        yield f"the qrels{where} are others than planned (SHA-256 {used})"
