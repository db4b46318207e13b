"""Tables for a paper: systems by corpora, LaTeX with booktabs."""

from __future__ import annotations

from collections.abc import Sequence

from falsify_adapters.comparison import corpus_name
from falsify_adapters.report.groups import by_benchmark
from falsify_adapters.report.outcome import Outcome
from falsify_adapters.report.text import number, printable, shorten
from falsify_adapters.results import GateReport

#: Longer names would leave the page.
LONGEST_NAME = 40
#: Marks of the verdicts in a cell; the note below the table says what they mean.
MARKS = {"PASS": "", "FAIL": r"\rlap{$^{\times}$}", "UNDER-NS": r"\rlap{$^{?}$}"}
#: What LaTeX takes for a command, and how the character itself is written.
SPECIAL = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "&": r"\&",
        "#": r"\#",
        "%": r"\%",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': r"\textquotedbl{}",
        "'": r"\textquotesingle{}",
        "`": r"\textasciigrave{}",
        "-": "{-}",  # two or three would become a dash
        "…": r"\ldots{}",
    }
)


def to_latex(outcome: Outcome) -> str:
    """Render systems by corpora: score, smallest delta, verdict.

    Needs ``\\usepackage{booktabs}``, and ``\\usepackage[T1]{fontenc}`` with ``textcomp`` where
    names hold quotes. Names beyond ASCII are written as they are, in UTF-8.
    """
    groups = by_benchmark(outcome.gate_reports())
    systems = list(dict.fromkeys((r.system, r.role) for group in groups for r in group))
    lines = [
        rf"\begin{{tabular}}{{l{'rr' * len(groups)}}}",
        r"\toprule",
        _head([_corpus(group[0]) for group in groups]),
        " ".join(rf"\cmidrule(lr){{{2 * i + 2}-{2 * i + 3}}}" for i in range(len(groups))),
        " & ".join(["system", *(["score", r"$\Delta_{\min}$"] * len(groups))]) + r" \\",
        r"\midrule",
    ]
    for system, role in systems:
        label = escape(system) + (f" ({escape(role)})" if role != "run" else "")
        cells = [cell for group in groups for cell in _cells(group, system, role)]
        lines.append(" & ".join([label, *cells]) + r" \\")
    taus = ", ".join(dict.fromkeys(f"{group[0].tau:.4g}" for group in groups))
    lines += [
        r"\bottomrule",
        r"\end{tabular}",
        r"% Delta_min: score minus the mean of the closest of the four nulls (falsify-adapters),",
        f"% tau = {taus}; a cross: FAIL, a question mark: UNDER-NS, else PASS.",
    ]
    return "\n".join(line for line in lines if line) + "\n"


def _corpus(report: GateReport) -> str:
    return f"{escape(corpus_name(report))}, {escape(report.measure)}"


def _head(corpora: Sequence[str]) -> str:
    return " & ".join(["", *(rf"\multicolumn{{2}}{{c}}{{{name}}}" for name in corpora)]) + r" \\"


def _cells(group: Sequence[GateReport], system: str, role: str) -> tuple[str, str]:
    for report in group:
        if (report.system, report.role) == (system, role):
            delta = min(null.delta for null in report.nulls.values())
            return number(report.score, 4), _minus(number(delta)) + MARKS[report.verdict]
    return "--", "--"


def _minus(text: str) -> str:
    return f"${text}$"


def escape(text: str) -> str:
    r"""Return text that LaTeX prints as it is, cut in its middle if it is long.

    Examples
    --------
    >>> print(escape("a_b & 100% $x$"))
    a\_b \& 100\% \$x\$
    """
    return shorten(printable(text), LONGEST_NAME).translate(SPECIAL)
