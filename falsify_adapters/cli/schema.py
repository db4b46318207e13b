"""``falsify-adapters schema``: the JSON Schema of reports."""

from __future__ import annotations

import sys

import click

from falsify_adapters.cli.command import Command, write
from falsify_adapters.report.schema import schema_text


@click.command("schema", cls=Command)
def main() -> None:
    """Print the JSON Schema that every --json report fits.

    Example: falsify-adapters schema > report.schema.json
    """
    write(sys.stdout, schema_text())
