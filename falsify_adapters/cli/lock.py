"""``falsify-adapters lock``: hashes and sizes of a folder of results."""

from __future__ import annotations

from pathlib import Path

import click

from falsify_adapters.cli.command import Command
from falsify_adapters.notes import counted


@click.command("lock", cls=Command)
@click.argument("folder", metavar="DIR")
@click.option("--scores", is_flag=True, help="Also list scores and verdicts of JSON reports.")
def main(folder: str, scores: bool) -> None:
    """Write DIR/falsify.lock: hash and size of every file, to check with verify-lock."""
    from falsify_adapters.lock import NAME, lock_text
    from falsify_adapters.report.jsonfile import write_atomically

    text = lock_text(Path(folder), scores=scores)
    write_atomically(Path(folder) / NAME, text.encode("utf-8", "surrogateescape"))
    n = sum(not line.startswith("#") for line in text.splitlines()) - 1
    click.echo(f"{counted(n, 'file')} in {NAME}")
