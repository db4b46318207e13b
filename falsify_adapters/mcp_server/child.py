"""The process that does one call's work: its time and memory are bounded, and it can be stopped.

It reads one JSON object from standard input (``tool``, ``arguments``, ``root``, ``limits``) and
writes one to standard output: ``text`` and ``data``, or ``error``. Nothing else reaches that pipe.
"""

from __future__ import annotations

import json
import math
import os
import sys
from contextlib import suppress
from typing import Any

from falsify_adapters.errors import FalsifyError
from falsify_adapters.mcp_server.limits import Limits


def main() -> None:
    """Do one call and answer."""
    pipe = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints goes to standard error
    answer = _answer(sys.stdin.buffer.read())
    with os.fdopen(pipe, "wb") as out:
        # half a character (a lone surrogate) has no place in the protocol
        text = json.dumps(answer, ensure_ascii=False, allow_nan=False)
        out.write(text.encode("utf-8", "replace"))


def _answer(request: bytes) -> dict[str, Any]:
    try:
        call = json.loads(request)
        limits = Limits(**call["limits"])
        _bound(limits)
        from falsify_adapters.mcp_server.work import WORK

        text, data = WORK[call["tool"]](call["arguments"], call["root"], limits)
        return {"text": text, "data": data}
    except FalsifyError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": f"the call needs too much memory (limit {limits.memory_bytes:,} bytes)"}
    except Exception as error:
        if os.environ.get("FALSIFY_DEBUG"):
            import traceback

            traceback.print_exc()
        return {
            "error": f"internal error: {type(error).__name__}: {error}; please report it, with"
            " the traceback that FALSIFY_DEBUG=1 prints on the server's standard error"
        }


def _bound(limits: Limits) -> None:
    """Let the system itself end a process that its server cannot end any more."""
    try:
        import resource
    except ImportError:  # Windows
        return
    seconds = math.ceil(limits.seconds) + 5
    for kind, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, limits.memory_bytes)):
        hard = resource.getrlimit(kind)[1]
        soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (soft, hard))


if __name__ == "__main__":
    main()
