"""Reading needs memory for what is kept, not for what is in the file (see tests/benchmarks)."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Iterator

import pytest

from falsify_adapters.readers import read_run, rows

QUERIES, DOCUMENTS = 200, 1_000


class Generated(io.RawIOBase):
    """A run file that is made while it is read, so that it takes no memory itself."""

    def __init__(self) -> None:
        self._lines = self._make()
        self._rest = b""

    def _make(self) -> Iterator[bytes]:
        for query in range(QUERIES):
            lines = (
                f"query-{query} Q0 document-{(query * 7919 + rank * 104_729) % 999_983} {rank}"
                f" {DOCUMENTS - rank}.25 tag\n"
                for rank in range(1, DOCUMENTS + 1)
            )
            yield "".join(lines).encode()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._rest = self._rest or next(self._lines, b"")
        part, self._rest = self._rest[: len(buffer)], self._rest[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)


def peak(depth: int | None) -> tuple[int, int]:
    """Return the rows kept and the most bytes that were in use at once."""
    tracemalloc.start()
    try:
        found = read_run(Generated(), depth=depth)  # type: ignore[arg-type]
        return len(found.frame), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_depth_bounds_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "FIRST_CUT", 1 << 12)
    kept, shallow = peak(10)
    assert kept == QUERIES * 10
    # a piece of 4 MiB and its arrays, whatever the length of the file
    assert shallow < 60 << 20
    kept, whole = peak(None)
    assert kept == QUERIES * DOCUMENTS
    # so 7 million rows fit into 2 GB
    assert whole - shallow < 250 * kept
