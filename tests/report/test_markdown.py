"""The Markdown report: small tables that nothing can break out of."""

from __future__ import annotations

from falsify_adapters.report.markdown import to_markdown
from falsify_adapters.report.outcome import Outcome
from tests.report_factory import gate_report


def test_one_table_per_benchmark_and_measure() -> None:
    outcome = Outcome(
        [
            gate_report(),
            gate_report("popularity", (0, 0, 0.1, -0.1), role="control"),
            gate_report(benchmark="scifact"),
        ]
    )
    lines = to_markdown(outcome).splitlines()
    assert lines[0] == "**nfcorpus · test · nDCG@10** (323 queries, 3,633 documents, tau 0.05)"
    assert lines[2] == "| system | score | A | B | C | D | verdict |"
    assert lines[4].startswith("| bm25 | 0.3177 | +0.308 [0.268, 0.348] | ")
    assert lines[5].startswith("| popularity (control) |")
    assert "- popularity: FAIL. fails A, B, D" in lines
    assert lines.count(lines[2]) == 2


def test_names_cannot_leave_their_cell() -> None:
    text = to_markdown(Outcome([gate_report("a|b\n| <script>*x*</script> `c`")]))
    assert "<script>" not in text
    rows = [line for line in text.splitlines() if line.startswith("| a")]
    (row,) = rows
    assert row.replace("\\|", "").count("|") == 8
    assert "\\*x\\*" in row
