"""The LaTeX table: balanced, complete, and nothing in a name is a command."""

from __future__ import annotations

import re

import pytest

from falsify_adapters.report.latex import SPECIAL, escape, to_latex
from falsify_adapters.report.outcome import Outcome
from tests.hostile import NAMES
from tests.report_factory import gate_report

#: What is left of a cell when everything that escape() writes is taken out.
WRITTEN = re.compile("|".join(re.escape(text) for text in sorted(SPECIAL.values(), key=len)[::-1]))


def rows(outcome: Outcome) -> list[list[str]]:
    table = to_latex(outcome)
    body = table.split("\\midrule\n")[1].split("\n\\bottomrule")[0]
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)&", line.removesuffix(r" \\"))]
        for line in body.splitlines()
    ]


def test_systems_by_corpora() -> None:
    outcome = Outcome(
        [
            gate_report(),
            gate_report("popularity", (0.0, 0.0, 0.1, -0.1), role="control"),
            gate_report(benchmark="scifact", deltas=(0.06, 0.3, 0.3, 0.3)),
        ]
    )
    assert rows(outcome) == [
        ["bm25", "0.3177", "$0.306$", "0.3177", r"$0.060$\rlap{$^{?}$}"],
        ["popularity (control)", "0.3177", r"$-0.100$\rlap{$^{\times}$}", "--", "--"],
    ]
    table = to_latex(outcome)
    assert table.startswith(r"\begin{tabular}{lrrrr}")
    assert r"\multicolumn{2}{c}{nfcorpus/test, nDCG@10}" in table
    assert r"\cmidrule(lr){2-3} \cmidrule(lr){4-5}" in table


@pytest.mark.parametrize("name", NAMES)
def test_no_name_holds_a_command(name: str) -> None:
    shown = escape(name)
    # escape() writes braces and commands only of its own
    rest = WRITTEN.sub("", shown)
    assert not set(rest) & set("\\{}$&#%_~^")
    assert len(rest) <= 40
    assert not re.search(r"[\x00-\x1f\u202e\u2066\u2028]", shown)


def test_hostile_names_leave_the_table_whole() -> None:
    outcome = Outcome([gate_report(name, benchmark=NAMES[6], split=name) for name in NAMES])
    table = to_latex(outcome)
    plain = WRITTEN.sub("", table)
    assert plain.count("{") == plain.count("}")
    groups = len(NAMES)
    assert all(len(row) == 2 * groups + 1 for row in rows(outcome))
    assert not re.search(r"(?<!\\)%", table.rsplit("\\end{tabular}", 1)[0])
