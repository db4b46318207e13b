"""What one call of a command found: reports, refusals, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from falsify_adapters.errors import FalsifyError

if TYPE_CHECKING:
    from falsify_adapters.audit import Audit
    from falsify_adapters.playground import Playground
    from falsify_adapters.results import GateReport

SCHEMA = "falsify-adapters/report/1"


class Report(Protocol):
    """What every kind of report offers, a :class:`~falsify_adapters.results.GateReport` first."""

    @property
    def kind(self) -> str:
        """Which kind of report: "gate", "audit"."""

    @property
    def role(self) -> str:
        """Role of the graded system: only "run" decides the exit status."""

    @property
    def verdict(self) -> str | None:
        """PASS, FAIL, UNDER-NS, NOT CERTIFIED; None where there is nothing to decide."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""


@dataclass(frozen=True)
class Refusal:
    """An input that was asked for and could not be graded.

    Parameters
    ----------
    input : str
        The input's name, as the user gave it; without its path in what a command writes.
    error : FalsifyError
        Why.
    """

    input: str
    error: FalsifyError

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "input": self.input,
            "kind": type(self.error).__name__,
            "lacks": self.error.lacks,
            "found": self.error.found,
            "hint": self.error.hint,
        }


@dataclass(frozen=True)
class Skip:
    """An input that is none of the command's business; it never decides anything.

    Parameters
    ----------
    input : str
        The input's name, as the user gave it.
    reason : str
        Why it was left out.
    """

    input: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {"input": self.input, "reason": self.reason}


@dataclass
class Outcome:
    """Everything that one call of a command found, in the order in which it was asked for."""

    reports: list[Report] = field(default_factory=list)
    errors: list[Refusal] = field(default_factory=list)
    skipped: list[Skip] = field(default_factory=list)
    #: For the HTML report only.
    playgrounds: list[Playground] = field(default_factory=list)
    #: The command and its options; None where a library call made the reports.
    call: Mapping[str, Any] | None = None
    #: The plan that was made beforehand, and whether it was kept to.
    plan: Mapping[str, Any] | None = None

    def gate_reports(self) -> list[GateReport]:
        """Return the reports of the gate."""
        from falsify_adapters.results import GateReport

        return [report for report in self.reports if isinstance(report, GateReport)]

    def audits(self) -> list[Audit]:
        """Return the audits of benchmarks."""
        if not any(report.kind == "audit" for report in self.reports):
            return []
        from falsify_adapters.audit import Audit

        return [report for report in self.reports if isinstance(report, Audit)]

    def plan_said(self) -> tuple[str, list[str]] | None:
        """Say in a sentence whether the plan was kept to, and name each departure."""
        if self.plan is None:
            return None
        named = f"plan {self.plan['name']}, SHA-256 {self.plan['sha256'][:12]}"
        if self.plan["kept"]:
            return f"Kept to {named}.", []
        return f"Not kept to {named}:", list(self.plan["departures"])

    def to_dict(self) -> Mapping[str, Any]:
        """Return the JSON document of all commands, as plain values."""
        from falsify_adapters.provenance import describe_environment

        return {
            "schema": SCHEMA,
            "reports": [report.to_dict() for report in self.reports],
            "errors": [refusal.to_dict() for refusal in self.errors],
            "skipped": [skip.to_dict() for skip in self.skipped],
            "call": self.call,
            "environment": describe_environment(),
            "plan": self.plan,
        }
