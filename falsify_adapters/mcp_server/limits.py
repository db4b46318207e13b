"""What one call of a tool may cost."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What one call of a tool may cost.

    Parameters
    ----------
    seconds : float
        Time; a call that takes longer is stopped.
    inline_bytes : int
        Arguments, as JSON.
    file_bytes : int
        Each file, as it lies on disk.
    memory_bytes : int
        Address space of the process that works, where the system can bound it.
    measures : int
        Measures in one call, hence reports in its answer.
    reports : int
        Reports that one answer explains; the others are counted.
    calls : int
        Calls that work at the same time; others wait.
    """

    seconds: float = 120.0
    inline_bytes: int = 8 * MIB
    file_bytes: int = 256 * MIB
    memory_bytes: int = 4096 * MIB
    measures: int = 10
    reports: int = 20
    calls: int = 2
