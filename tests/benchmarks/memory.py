"""The peak memory of a process, for the benchmark scripts."""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path


def peak_megabytes() -> float:
    """Return this process's peak memory; ru_maxrss may be that of the process that started it."""
    status = Path("/proc/self/status")
    if not status.exists():
        scale = 2**20 if sys.platform == "darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale
    (kilobytes,) = re.findall(r"^VmHWM:\s*(\d+) kB", status.read_text(), re.MULTILINE)
    return int(kilobytes) / 1024
