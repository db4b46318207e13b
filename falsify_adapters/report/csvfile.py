"""The reports as CSV: one line each, for a spreadsheet or a plot."""

from __future__ import annotations

import pandas as pd

from falsify_adapters.comparison import COLUMNS, compare
from falsify_adapters.report.outcome import Outcome
from falsify_adapters.report.text import printable

#: A spreadsheet takes a cell that starts like this for a formula.
FORMULA = ("=", "+", "-", "@", "\t")


def to_csv(outcome: Outcome) -> str:
    """Render the frame of :func:`falsify_adapters.comparison.compare`, numbers at 12 digits.

    Names are written so that no spreadsheet takes them for a formula.
    """
    reports = outcome.gate_reports()
    frame = compare(reports) if reports else pd.DataFrame(columns=list(COLUMNS))
    for column in ("system", "corpus"):
        frame[column] = frame[column].map(harmless)
    text: str = frame.to_csv(index=False, lineterminator="\n", float_format="%.12g")
    return text


def harmless(text: str) -> str:
    """Return text that no spreadsheet takes for a formula."""
    shown = printable(text)
    return f"'{shown}" if shown.startswith(FORMULA) else shown
