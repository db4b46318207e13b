"""``falsify-adapters plan``: fix measures, settings and qrels before there is a run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from falsify_adapters.cli.benchmark import Benchmark, as_named
from falsify_adapters.cli.command import Command
from falsify_adapters.cli.options import (
    WRITING,
    chosen_measures,
    gate_config,
    grading_options,
    option,
)
from falsify_adapters.cli.targets import check_targets
from falsify_adapters.errors import UsageError


@click.command(
    "plan",
    cls=Command,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.argument("qrels", required=False, metavar="[QRELS]", callback=as_named)
@option(WRITING, "--out", default="plan.toml", metavar="FILE", help="The plan [plan.toml].")
@grading_options
@click.pass_context
def main(context: click.Context, /, **options: Any) -> None:
    """Write a plan: measures, tau, alpha, decision, seed and the hash of QRELS.

    A report made with --plan FILE takes its settings from there, and says whether it kept to it.

    \b
    falsify-adapters plan qrels.trec -m nDCG@10 --tau 0.1 --out plan.toml
    falsify-ir qrels.trec my.trec --plan plan.toml --json report.json
    """
    from falsify_adapters.report.jsonfile import write_atomically

    check_targets(context, {"--out": options["out"]})
    text = _text(options)
    _refuse_another(options["out"], text)
    write_atomically(options["out"], text.encode())
    click.echo(text, nl=False)
    context.exit(0)


def _refuse_another(place: str, text: str) -> None:
    """Refuse to replace a plan: it is fixed beforehand, or it is none."""
    file = Path(place)
    if file.is_file() and file.read_bytes() != text.encode():
        raise UsageError(
            f"{file.name} is there already, with other content",
            hint="remove it, or name another file with --out",
        )


def _text(options: Mapping[str, Any]) -> str:
    from falsify_adapters.plan import plan_text
    from falsify_adapters.provenance import frame_sha256

    measures = [str(measure) for measure in chosen_measures(options)]
    qrels = options["qrels"]
    sha256 = None if qrels is None else frame_sha256(Benchmark.of(qrels).judged.frame)
    return plan_text(measures, gate_config(options), sha256)
