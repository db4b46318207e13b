"""Write what the pages take from the package: the page of commands, and the picture of the index.

``python -m tests.make_docs`` after an option or a command has changed; ``tests/test_docs.py`` says
when. Everything else in ``docs`` is written by hand, or by the studies.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import click

from falsify_adapters import GateReport, load_beir, run_gate
from falsify_adapters.baselines import controls
from falsify_adapters.cli.main import COMMANDS, main
from falsify_adapters.report import svg
from falsify_adapters.report.text import number

DOCS = Path(__file__).resolve().parent.parent / "docs"
HEAD = """# Commands

What each command prints with `--help`. Options can also be given in a TOML file, `--config FILE`,
under their long names with `_` for `-`, as in `n_boot = 2000`. [How to read a
report](how-to-read.md) says what comes out.
"""
GRADING = ("beir", "ir", "mteb")
STYLE = """text{font:13px system-ui,sans-serif;fill:#1d2127}
text{paint-order:stroke;stroke:#fff;stroke-width:4}
.sheet{fill:#fff}
.faint{fill:#5a616b}.zero{stroke:#b9b9b1}.tau{stroke:#1d2127;stroke-dasharray:4 3}
.pass{stroke:#17653a;fill:#17653a}.fail{stroke:#9e1b20;fill:#9e1b20}line{stroke-width:2}
.zero,.tau{stroke-width:1}
@media(prefers-color-scheme:dark){text{fill:#e6e8eb;stroke:#131416}
.sheet{fill:#131416}.faint{fill:#a3abb5}.zero{stroke:#56606c}
.tau{stroke:#e6e8eb}.pass{stroke:#7fd8a4;fill:#7fd8a4}.fail{stroke:#ffa19b;fill:#ffa19b}}"""
WIDTH, LEFT, RIGHT, ROW = 480, 112, 432, 20


def commands_page() -> str:
    """Return the page of commands."""
    parts = [HEAD]
    for name in GRADING:
        command = import_module(f"falsify_adapters.cli.{name}").main
        parts.append(_section(f"falsify-{name}", command))
    group = click.Context(main, info_name="falsify-adapters", **main.context_settings)
    for name in sorted(COMMANDS):
        command = import_module(f"falsify_adapters.cli.{name.replace('-', '_')}").main
        parts.append(_section(name, command, group))
    return "\n".join(parts)


def _section(name: str, command: click.Command, group: click.Context | None = None) -> str:
    width = {"terminal_width": 86, "max_content_width": 86}
    settings = {**command.context_settings, **width}
    context = click.Context(command, parent=group, info_name=name, **settings)
    lines = [line.rstrip() for line in command.get_help(context).splitlines()]
    return "\n".join([f"## {context.command_path}", "", "```text", *lines, "```", ""])


def picture() -> str:
    """Return the picture of the index: BM25 and the popularity ranking on the sample."""
    evaluation = load_beir("sample", offline=True)
    popular = next(c for c in controls(evaluation, "nDCG@10") if c.system == "popularity")
    reports = [run_gate(one, "nDCG@10") for one in (evaluation, popular)]
    low, high = -0.1, 0.75

    def x(value: float) -> str:
        return f"{LEFT + (RIGHT - LEFT) * (value - low) / (high - low):.1f}"

    parts: list[str] = []
    y = 28
    for report, said in zip(reports, ("BM25", "popularity"), strict=True):
        parts.append(f'<text x="0" y="{y + 4}" font-weight="600">{said}</text>')
        parts.append(f'<text x="0" y="{y + 22}" class="faint">{number(report.score, 2)}</text>')
        parts.append(f'<text x="0" y="{y + 40}" class="faint">{report.verdict}</text>')
        parts += _rows(report, x, y)
        y += 5 * ROW + 8
    for value, kind in ((0.0, "zero"), (reports[0].tau, "tau")):
        parts.insert(
            0, f'<line class="{kind}" x1="{x(value)}" y1="14" x2="{x(value)}" y2="{y - 22}"/>'
        )
    for value in svg.ticks(0, high, 4):
        label = f'<text x="{x(value)}" y="{y}" class="faint" text-anchor="middle">'
        parts.append(f"{label}{value:g}</text>")
    parts.append(f'<text x="{x(reports[0].tau)}" y="10" class="faint">tau</text>')
    sheet = f'<rect class="sheet" width="{WIDTH}" height="{y + 8}"/>'
    size = f'width="{WIDTH}" height="{y + 8}" viewBox="0 0 {WIDTH} {y + 8}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    return "\n".join([head, f"<style>{STYLE}</style>", sheet, *parts, "</svg>", ""])


def _rows(report: GateReport, x: Callable[[float], str], top: int) -> list[str]:
    rows = []
    for i, (name, null) in enumerate(report.nulls.items()):
        y, kind = top + i * ROW, null.verdict.lower()
        line = f'x1="{x(null.low)}" y1="{y}" x2="{x(null.high)}" y2="{y}"'
        rows.append(f'<text x="{LEFT - 24}" y="{y + 4}">{name}</text>')
        rows.append(f'<line class="{kind}" {line}/>')
        rows.append(f'<circle class="{kind}" cx="{x(null.delta)}" cy="{y}" r="3.5"/>')
        at = float(x(max(null.high, report.tau))) + 8
        rows.append(f'<text x="{at:.1f}" y="{y + 4}">{number(null.delta)}</text>')
    return rows


#: What is written, and what makes it.
MADE = {"commands.md": commands_page, "pictures/two-systems.svg": picture}

if __name__ == "__main__":
    made = {DOCS / path: make() for path, make in MADE.items()}
    stale = [path for path, text in made.items() if path.read_text("utf-8") != text]
    if "--check" in sys.argv[1:]:
        sys.exit(" ".join(path.name for path in stale) or 0)
    for path in stale:
        path.write_text(made[path], encoding="utf-8")
