"""Errors: each says what is lacking, what was found, and what to do about it."""

from __future__ import annotations


class FalsifyError(Exception):
    """Base of every error that this package raises on purpose.

    Parameters
    ----------
    lacks : str
        What is wrong or lacking, naming the file, the row or the id.
    found : str, optional
        What was found instead.
    hint : str, optional
        What the user can do about it.

    Examples
    --------
    >>> print(FalsifyError("the run has no rows", found="an empty file", hint="check the path"))
    the run has no rows; found: an empty file; hint: check the path
    """

    def __init__(self, lacks: str, *, found: str | None = None, hint: str | None = None) -> None:
        self.lacks = lacks
        self.found = found
        self.hint = hint
        parts = [lacks]
        if found is not None:
            parts.append(f"found: {found}")
        if hint is not None:
            parts.append(f"hint: {hint}")
        super().__init__("; ".join(parts))


class InputError(FalsifyError):
    """A run, qrels, corpus or result file cannot be used as it is."""


class UsageError(FalsifyError):
    """An option or argument has a value that makes no sense."""


class MeasureError(FalsifyError):
    """A measure that the gate cannot grade, or that ir-measures does not know."""


class MissingExtraError(FalsifyError):
    """An optional package is needed and not installed."""


class VerdictError(FalsifyError):
    """Raised by ``raise_for_verdict`` when the gate did not say PASS."""
