"""The Markdown report: small tables that nothing can break out of."""

from __future__ import annotations

import re

from falsify_adapters.report.markdown import to_markdown
from falsify_adapters.report.outcome import Outcome
from tests.hostile import NAMES
from tests.report_factory import gate_report


def test_one_table_per_benchmark_and_measure() -> None:
    outcome = Outcome(
        [
            gate_report(),
            gate_report("popularity", (0, 0, 0.1, -0.1), role="control"),
            gate_report(benchmark="scifact"),
        ]
    )
    lines = to_markdown(outcome).splitlines()[5:]
    assert lines[0] == "**nfcorpus · test · nDCG@10** (323 queries, 3,633 documents, tau 0.05)"
    assert lines[2] == "| system | score | A | B | C | D | verdict |"
    assert lines[4].startswith("| bm25 | 0.3177 | +0.308 [0.268, 0.348] | ")
    assert lines[5].startswith("| popularity (control) |")
    assert "- popularity: FAIL. Fails A, B, D." in lines
    assert lines.count(lines[2]) == 2


def test_names_cannot_leave_their_cell() -> None:
    text = to_markdown(Outcome([gate_report("a|b\n| <script>*x*</script> `c`")]))
    assert "<script>" not in text
    rows = [line for line in text.splitlines() if line.startswith("| a")]
    (row,) = rows
    assert row.replace("\\|", "").count("|") == 8
    assert "\\*x\\*" in row


def test_several_benchmarks_get_a_matrix() -> None:
    reports = [gate_report(), gate_report("other|x"), gate_report(benchmark="scifact")]
    lines = to_markdown(Outcome(reports)).splitlines()
    assert lines[:5] == [
        "| system | nfcorpus · test · nDCG@10 | scifact · test · nDCG@10 |",
        "| --- | --- | --- |",
        "| bm25 | PASS 0.3177 | PASS 0.3177 |",
        r"| other\|x | PASS 0.3177 |  |",
        "",
    ]


def test_hostile_names_are_escaped() -> None:
    outcome = Outcome([gate_report(name, benchmark=name) for name in NAMES])
    text = to_markdown(outcome)
    assert "<" not in text
    assert not set(text) & set("\u202e\u2066\u2028\u2029\x85\x1b")
    assert "x" * 2000 in text
    assert "שלום" in text
    ours = re.sub(r"^\*\*|\*\* (?=\()|\[-?\d\.\d+, -?\d\.\d+\]", "", text, flags=re.MULTILINE)
    assert not re.search(r"(?<!\\)[`*\[]", ours)
