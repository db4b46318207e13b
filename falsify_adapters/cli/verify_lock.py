"""``falsify-adapters verify-lock``: has a locked folder changed."""

from __future__ import annotations

from pathlib import Path

import click

from falsify_adapters.cli.command import Command
from falsify_adapters.notes import counted


@click.command(
    "verify-lock",
    cls=Command,
    epilog="Exit status: 0 if nothing changed, 1 if something did, 2 if there is no lock file.",
)
@click.argument("folder", metavar="DIR")
@click.pass_context
def main(context: click.Context, /, folder: str) -> None:
    """Compare DIR with DIR/falsify.lock: changed, missing and new files."""
    from falsify_adapters.lock import NAME, changes, read_lock, scan

    locked = read_lock(Path(folder) / NAME)
    lines = changes(locked, scan(Path(folder)))
    for line in lines:
        click.echo(line)
    click.echo(
        counted(len(lines), "change")
        if lines
        else f"All {counted(len(locked), 'file')} are as locked."
    )
    context.exit(1 if lines else 0)
