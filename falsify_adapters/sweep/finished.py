"""What comes out of one unit of work, wherever it was done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from falsify_adapters.report.outcome import Refusal

if TYPE_CHECKING:
    from falsify_adapters.results import GateReport


@dataclass(frozen=True)
class Event:
    """One thing that a unit has to tell, in the order in which it happened.

    Parameters
    ----------
    item : report, Refusal or Playground
        What happened.
    told : str or None
        Under which system's name its warnings are told; None if they are not.
    """

    item: Any
    told: str | None = None


@dataclass(frozen=True)
class Finished:
    """A unit of work that was done.

    Parameters
    ----------
    events : tuple of Event
        Its reports and refusals.
    evaluated : bool
        Whether run and qrels could be joined.
    accepted : bool
        Whether, moreover, no measure was refused.
    queries : tuple of str
        The queries of a run, where only these were asked for.
    """

    events: tuple[Event, ...] = ()
    evaluated: bool = False
    accepted: bool = False
    queries: tuple[str, ...] = ()

    @property
    def refusals(self) -> list[Refusal]:
        """What was refused."""
        return [event.item for event in self.events if isinstance(event.item, Refusal)]

    def gate_reports(self) -> list[GateReport]:
        """Return the reports of the gate."""
        from falsify_adapters.results import GateReport

        return [event.item for event in self.events if isinstance(event.item, GateReport)]

    @property
    def lasts(self) -> bool:
        """Whether it says the same next time: something was graded, and no package was missing.

        A run that was refused as a whole is looked at again: its file may have been put right.
        """
        kinds = {type(refusal.error).__name__ for refusal in self.refusals}
        return len(self.refusals) < len(self.events) and "MissingExtraError" not in kinds
