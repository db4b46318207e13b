"""``falsify-adapters warnings``: the codes that reports carry, and what they mean."""

from __future__ import annotations

import click

from falsify_adapters.cli.command import Command


@click.command(cls=Command, name="warnings")
@click.argument("codes", nargs=-1, metavar="[CODE]...")
def main(codes: tuple[str, ...]) -> None:
    """Say what the warning codes of reports mean.

    Example: falsify-adapters warnings W-TIES
    """
    from falsify_adapters.errors import UsageError
    from falsify_adapters.notes import CODES, ON_VERDICTS

    wanted = [code.upper() for code in codes] or sorted(CODES)
    for code in wanted:
        if code not in CODES:
            raise UsageError(
                f"no warning has the code {code}", hint="without a code, all are shown"
            )
    width = max(len(code) for code in wanted)
    for code in wanted:
        mark = " " if code in ON_VERDICTS else "!"
        click.echo(f"{mark} {code:<{width}}  {CODES[code]}")
    if not codes:
        click.echo("! about an input: --strict refuses it. The others are about the verdict.")
