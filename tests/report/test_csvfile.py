"""The CSV report: what compare() gives, readable by pandas, harmless in a spreadsheet."""

from __future__ import annotations

import io

import pandas as pd

from falsify_adapters.comparison import COLUMNS, compare
from falsify_adapters.report.csvfile import to_csv
from falsify_adapters.report.outcome import Outcome
from tests.hostile import NAMES
from tests.report_factory import gate_report


def test_it_reads_back_as_the_frame() -> None:
    reports = [gate_report(), gate_report("b", (0.0, 0.1, 0.1, -0.2), benchmark="scifact")]
    back = pd.read_csv(io.StringIO(to_csv(Outcome(reports))))
    pd.testing.assert_frame_equal(back, compare(reports), check_dtype=False)


def test_no_report_is_a_head() -> None:
    assert to_csv(Outcome()) == ",".join(COLUMNS) + "\n"


def test_hostile_names_are_one_cell_and_no_formula() -> None:
    names = [*NAMES, "-1+1", "@sum", "a,b\nc"]
    text = to_csv(Outcome([gate_report(name, benchmark=name) for name in names]))
    back = pd.read_csv(io.StringIO(text))
    assert len(back) == len(names) == len(text.splitlines()) - 1
    for column in ("system", "corpus"):
        assert not back[column].str.match(r"[=+\-@\t]").any()
