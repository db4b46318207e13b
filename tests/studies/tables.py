"""Tables of studies: Markdown with seed, versions and time."""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib.externals.loky import get_reusable_executor

import falsify_adapters

DOCS = Path(falsify_adapters.__file__).resolve().parent.parent / "docs" / "studies"
LIBRARIES = ("numpy", "scipy", "pandas", "ir-measures")


@dataclass(frozen=True)
class Table:
    """One table of a study and the words around it."""

    title: str
    words: str
    frame: pd.DataFrame


def markdown(frame: pd.DataFrame) -> str:
    """Return a frame as a Markdown table; numbers keep the form that the study gave them."""
    cells = [[str(value) for value in row] for row in frame.itertuples(index=False)]
    right = [pd.api.types.is_numeric_dtype(dtype) for dtype in frame.dtypes]
    looks_right = [num or all(_is_number(row[i]) for row in cells) for i, num in enumerate(right)]
    rule = ["---:" if is_right else "---" for is_right in looks_right]
    lines = [list(map(str, frame.columns)), rule, *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _is_number(text: str) -> bool:
    return text.strip("+-0123456789.,%* ") == "" and text != ""


def write(
    name: str,
    title: str,
    words: str,
    tables: Sequence[Table],
    *,
    seed: int,
    seconds: float,
    cpu: float,
) -> None:
    """Write a study to ``docs/studies/NAME.md``."""
    versions = ", ".join(f"{library} {version(library)}" for library in LIBRARIES)
    made = (
        f"Made by `python -m tests.studies.{name} --full --seed {seed}` in"
        f" {seconds / 60:.1f} minutes ({cpu / 60:.1f} of processor time) on a machine of"
        f" {os.cpu_count()} cores; falsify-adapters"
        f" {falsify_adapters.__version__}, Python {platform.python_version()}, {versions}."
    )
    parts = [f"# {title}", words.strip(), made]
    for table in tables:
        parts += [f"## {table.title}", table.words.strip(), markdown(table.frame)]
    DOCS.mkdir(parents=True, exist_ok=True)
    (DOCS / f"{name}.md").write_text("\n\n".join(p for p in parts if p) + "\n", encoding="utf-8")


def study(
    name: str, title: str, words: str, make: Callable[..., Sequence[Table]], argv: Any = None
) -> None:
    """Run a study from the command line; only the full one is written to the docs."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.studies.{name}", description=title)
    parser.add_argument("--full", action="store_true", help="full size; writes docs/studies")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(argv)
    start, start_cpu = time.perf_counter(), processor_time()
    tables = make(full=arguments.full, seed=arguments.seed)
    seconds, cpu = time.perf_counter() - start, processor_time() - start_cpu
    if arguments.full:
        write(name, title, words, tables, seed=arguments.seed, seconds=seconds, cpu=cpu)
    for table in tables:
        print(f"\n{table.title}\n\n{markdown(table.frame)}")
    print(f"\n{seconds:.0f} s")


def processor_time() -> float:
    """Return the processor time of this process and its workers, in seconds; ends the workers."""
    get_reusable_executor().shutdown(wait=True)
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def rate(values: Any, digits: int = 3) -> str:
    """Return the mean of a sequence of true and false with fixed digits."""
    return f"{np.mean(values):.{digits}f}"
