"""The JSON document: the same for every command, strict JSON, written whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

from falsify_adapters.errors import UsageError
from falsify_adapters.report.outcome import Outcome
from falsify_adapters.results import plain


def to_json(outcome: Outcome) -> bytes:
    r"""Return the JSON document in UTF-8, with a line end.

    Undefined numbers are ``null``, never ``NaN``.

    Examples
    --------
    >>> to_json(Outcome()).decode().splitlines()[1]
    ' "schema": "falsify-adapters/report/1",'
    """
    text = json.dumps(plain(outcome.to_dict()), indent=1, ensure_ascii=False, allow_nan=False)
    # a file name may hold half a character, which UTF-8 cannot carry: "\udc80" is valid JSON
    return text.encode("utf-8", errors="backslashreplace") + b"\n"


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write a file under another name beside it, then move it into place.

    What already exists and is no plain file (``/dev/stdout``, a named pipe) is written to as it
    is: moving a file over it would replace it.

    Raises
    ------
    UsageError
        If the file cannot be written.
    """
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(content)
            return
        target = target.resolve()  # a link stays a link
        # unlike tempfile's, this name's permissions follow the umask like any other output
        beside = target.with_name(f".{target.name[:100]}.{secrets.token_hex(8)}.part")
        try:
            with beside.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # else a machine that stops could leave an empty file
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot write {os.fspath(path)}", found=error.strerror or type(error).__name__
        ) from None
