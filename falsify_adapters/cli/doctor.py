"""``falsify-adapters doctor``: check the installation and the gate itself."""

from __future__ import annotations

import click

from falsify_adapters.cli.command import Command

MARKS = {"ok": "ok", "absent": "-", "problem": "PROBLEM"}


@click.command(
    "doctor",
    cls=Command,
    epilog="Exit status: 0 if there is no problem (an absent optional part is none), else 1.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print problems only.")
@click.pass_context
def main(context: click.Context, /, quiet: bool) -> None:
    """Check the installation, then systems of known verdict on the bundled sample.

    Oracle and BM25 must pass; constant, popularity, random and shuffled rankings must fail.
    """
    from falsify_adapters.doctor import examine

    problems = absent = 0
    for check in examine():
        problems += check.status == "problem"
        absent += check.status == "absent"
        if not quiet or check.status == "problem":
            click.echo(f"{MARKS[check.status]:<8}{check.text}")
            if check.remedy:
                click.echo(f"{'':<8}-> {check.remedy}")
    if not quiet:
        found = f"{problems} problem{'s' * (problems != 1)}" if problems else "No problem"
        click.echo(f"{found}; {absent} optional parts are absent.")
    context.exit(1 if problems else 0)
