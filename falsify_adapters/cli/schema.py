"""``falsify-adapters schema``: the JSON Schema of reports."""

from __future__ import annotations

import sys
from importlib.resources import files

import click

from falsify_adapters.cli.command import Command, write


@click.command("schema", cls=Command)
def main() -> None:
    """Print the JSON Schema that every --json report fits.

    Example: falsify-adapters schema > report.schema.json
    """
    write(sys.stdout, schema_text())


def schema_text() -> str:
    """Return the schema as text."""
    return (files("falsify_adapters.report") / "schema.json").read_text("utf-8")
