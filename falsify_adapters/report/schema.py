"""The JSON Schema of reports."""

from __future__ import annotations

from importlib.resources import files


def schema_text() -> str:
    """Return the schema that every ``--json`` report fits, as text."""
    return (files("falsify_adapters.report") / "schema.json").read_text("utf-8")
