"""The protocol: lists the tools, checks a call's arguments, has a child process do its work."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from falsify_adapters import __version__
from falsify_adapters.errors import FalsifyError, InputError, MissingExtraError, UsageError
from falsify_adapters.mcp_server.limits import Limits
from falsify_adapters.mcp_server.tools import DATA, INPUTS, INSTRUCTIONS, OUTPUTS, TOOLS

NAME = "falsify-adapters"
# -P: the folder in which the server happens to run is no place to import from
CHILD = (sys.executable, "-P", "-m", "falsify_adapters.mcp_server.child")
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def serve(root: str | None, limits: Limits) -> None:
    """Serve over standard input and output until the client leaves.

    Parameters
    ----------
    root : str or None
        The folder that files may come from; None reads no files.
    limits : Limits
        What one call may cost.

    Raises
    ------
    MissingExtraError
        If the package mcp is missing or too old.
    """
    _require_mcp()
    import anyio
    from mcp.server.stdio import stdio_server

    server = make_server(root, limits)

    async def run() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(run)


def _require_mcp() -> None:
    hint = "pip install 'falsify-adapters[mcp]'"
    try:
        found = version("mcp")
    except PackageNotFoundError:
        raise MissingExtraError("the server needs the package mcp", hint=hint) from None
    if int(found.partition(".")[0]) < 2:
        raise MissingExtraError("the server needs mcp 2 or newer", found=found, hint=hint)


def make_server(root: str | None, limits: Limits) -> Any:
    """Return the server, not yet connected to anything."""
    import anyio
    from mcp import types
    from mcp.server.lowlevel import Server

    slots = anyio.CapacityLimiter(limits.calls)
    harmless = types.ToolAnnotations(
        read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    )
    tools = [
        types.Tool(
            name=name,
            title=title,
            description=description,
            input_schema=INPUTS[name],
            output_schema=OUTPUTS[name],
            annotations=harmless,
        )
        for name, title, description in TOOLS
    ]

    async def list_tools(_context: Any, _params: Any) -> Any:
        return types.ListToolsResult(tools=tools)

    async def call_tool(_context: Any, params: Any) -> Any:
        try:
            request = request_of(params.name, params.arguments or {}, root, limits)
            async with slots:
                answer = await run_child(request, limits.seconds)
        except FalsifyError as error:
            answer = {"error": str(error)}
        failed = "error" in answer
        text = answer["error"] if failed else answer["text"]
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)],
            structured_content=None if failed else answer["data"],
            is_error=failed,
        )

    return Server(
        NAME,
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def request_of(tool: str, arguments: Mapping[str, Any], root: str | None, limits: Limits) -> bytes:
    """Return what the child is told: a call whose form and size are all right.

    Raises
    ------
    UsageError
        If there is no such tool, or an argument is missing, unknown or of the wrong kind.
    InputError
        If the arguments are too large.
    """
    if tool not in INPUTS:
        raise UsageError(
            "there is no such tool", found=tool[:80], hint=f"one of {', '.join(INPUTS)}"
        )
    _check_arguments(tool, arguments)
    call = {"tool": tool, "arguments": arguments, "root": root, "limits": asdict(limits)}
    try:
        request = json.dumps(call).encode()
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, deep nesting
        raise InputError("the arguments cannot be read", found=str(error)[:120]) from None
    if len(request) > limits.inline_bytes:
        raise InputError(
            f"the arguments are too large (limit {limits.inline_bytes:,} bytes of JSON)",
            found=f"{len(request):,} bytes",
            hint="save them as files and give their paths (the server's --root says where), or cut"
            " the run to the depth of the measure",
        )
    return request


def _check_arguments(tool: str, arguments: Mapping[str, Any]) -> None:
    """Check the names and all that is small; what holds data is read by the library itself."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    schema = INPUTS[tool]
    known = schema["properties"]
    unknown = [name for name in arguments if name not in known]
    if unknown:
        raise UsageError(
            f"{tool} has no argument {unknown[0][:80]!r}", hint=f"it takes {', '.join(known)}"
        )
    missing = [name for name in schema["required"] if name not in arguments]
    if missing:
        raise UsageError(f"{tool} needs {' and '.join(missing)}")
    for name, value in arguments.items():
        if name in DATA:
            if not isinstance(value, (str, list, dict)):
                raise UsageError(
                    f"{name} has a form that is not understood", found=type(value).__name__
                )
            continue
        error = best_match(Draft202012Validator(known[name]).iter_errors(value))
        if error is not None:
            raise UsageError(f"{name}: {error.message[:160]}", hint=known[name]["description"])


async def run_child(
    request: bytes, seconds: float, command: tuple[str, ...] = CHILD
) -> dict[str, Any]:
    """Have a process of its own do one call; end it, with all that it started, if it is too slow.

    Raises
    ------
    UsageError
        If the call takes longer than it may.
    InputError
        If the process ends without an answer: there was not enough memory, for example.
    """
    import anyio

    async def feed() -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await process.stdin.send(request)
        await process.stdin.aclose()

    process: Any = await anyio.open_process(
        command, stderr=None, env={**os.environ, **ONE_THREAD}, start_new_session=True
    )
    try:
        with anyio.fail_after(seconds):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(feed)
                answer = b"".join([part async for part in process.stdout])
                await process.wait()
    except TimeoutError:
        raise UsageError(
            f"the call took longer than {seconds:g} seconds and was stopped",
            hint="give fewer queries, a shallower run, or a smaller n_boot or n_trials; the"
            " server's --timeout sets the limit",
        ) from None
    finally:
        _end(process)
        with anyio.CancelScope(shield=True):
            await process.aclose()
    try:
        found: dict[str, Any] = json.loads(answer)
    except ValueError:
        raise InputError(
            "the call ended without an answer",
            found=f"exit status {process.returncode}",
            hint="there may be too little memory: give fewer queries or a shallower run",
        ) from None
    return found


def _end(process: Any) -> None:
    """Kill a process that still runs, and whatever it started."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
