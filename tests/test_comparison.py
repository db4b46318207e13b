"""Reports side by side."""

from __future__ import annotations

import pytest

from falsify_adapters import compare, matrix
from falsify_adapters.errors import InputError, UsageError
from tests.report_factory import gate_report

REPORTS = [
    gate_report("b", benchmark="z"),
    gate_report("a", (0.0, 0.2, 0.3, -0.1), benchmark="z"),
    gate_report("b", (0.06, 0.2, 0.3, 0.1), benchmark="y", split=None, score=0.5),
]


def test_one_row_per_report_with_the_null_that_comes_closest() -> None:
    frame = compare(REPORTS)
    assert frame["system"].tolist() == ["b", "a", "b"]
    assert frame["corpus"].tolist() == ["z/test", "z/test", "y"]
    assert frame["closest"].tolist() == ["D", "D", "A"]
    assert frame["verdict"].tolist() == ["PASS", "FAIL", "UNDER-NS"]
    for row, report in zip(frame.to_dict("records"), REPORTS, strict=True):
        closest = report.nulls[row["closest"]]
        assert closest.low == min(null.low for null in report.nulls.values())
        assert (row["delta"], row["low"], row["high"]) == (closest.delta, closest.low, closest.high)
        assert row["A"] == report.nulls["A"].delta


def test_the_matrix_keeps_the_order_and_its_gaps() -> None:
    table = matrix(REPORTS)
    assert table.index.tolist() == ["b", "a"]
    assert table.columns.tolist() == ["z/test", "y"]
    assert table.loc["b"].tolist() == ["PASS", "UNDER-NS"]
    assert table.isna().to_numpy().tolist() == [[False, False], [False, True]]
    assert matrix(iter(REPORTS), "score").loc["b", "y"] == 0.5


def test_several_measures_get_a_column_each() -> None:
    table = matrix([*REPORTS, gate_report("b", benchmark="z", measure="R@10", score=0.2)], "score")
    assert table[("z/test", "R@10")].tolist()[:1] == [0.2]
    assert table.columns.names == ["corpus", "measure"]


def test_an_mteb_task_is_not_said_twice() -> None:
    report = gate_report(benchmark="SciFact", task="SciFact", subset="default")
    assert compare([report])["corpus"].tolist() == ["SciFact/default/test"]
    assert compare([gate_report(benchmark=None, split=None)])["corpus"].tolist() == ["benchmark"]


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to compare"):
        compare([])
    with pytest.raises(InputError, match="same system"):
        matrix([gate_report(), gate_report()])
    with pytest.raises(UsageError, match="no figure"):
        matrix(REPORTS, "nonsense")


def test_what_is_no_list_of_gate_reports_is_refused() -> None:
    for wrong in ([3], [REPORTS[0], None], 3, None):
        with pytest.raises(InputError, match="gate reports"):
            compare(wrong)  # type: ignore[arg-type]
