"""``falsify-adapters mcp``: the gate as tools for agents, over the Model Context Protocol."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from falsify_adapters.cli.command import Command, complain
from falsify_adapters.errors import UsageError


@click.command("mcp", cls=Command, epilog="docs/mcp.md says how to register it with a client.")
@click.option("--root", metavar="DIR", help="Folder that files may be read from [none are read].")
@click.option("--timeout", type=float, default=120.0, metavar="SECONDS", help="Per call [120].")
@click.option("--max-mb", type=int, default=256, metavar="N", help="Per file, in MiB [256].")
def main(root: str | None, timeout: float, max_mb: int) -> None:
    """Serve grade_retrieval, audit_benchmark and explain_report to an agent.

    An MCP client starts it and talks to it on standard input and output.
    """
    from falsify_adapters.mcp_server.limits import MIB, Limits
    from falsify_adapters.mcp_server.server import serve

    if root is not None and not Path(root).is_dir():
        raise UsageError(f"--root {root} is no folder")
    if not 0 < timeout <= 86_400:
        raise UsageError("--timeout must lie above 0 and be a day at most", found=f"{timeout:g}")
    if not 0 < max_mb <= 1024:
        raise UsageError("--max-mb must be 1 to 1024", found=str(max_mb))
    if sys.stdin.isatty():
        complain("waiting for an MCP client on standard input; Ctrl-C ends it")
    serve(root, Limits(seconds=timeout, file_bytes=max_mb * MIB))
