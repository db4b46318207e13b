"""``falsify-adapters``: everything that is not grading."""

from __future__ import annotations

import click

from falsify_adapters import __version__
from falsify_adapters.cli.command import LazyGroup

#: Each is a module of this package whose ``main`` is the command.
COMMANDS = (
    "audit",
    "doctor",
    "plan",
    "quickstart",
    "lock",
    "mcp",
    "schema",
    "verify",
    "verify-lock",
    "warnings",
)


@click.group(
    "falsify-adapters",
    cls=LazyGroup,
    lazy=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__)
@click.pass_context
def main(context: click.Context) -> None:
    """Tools around the four-null gate; falsify-beir and falsify-ir do the grading."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
