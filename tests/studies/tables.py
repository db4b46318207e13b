"""Tables of studies: Markdown with seed, versions and time."""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

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
    name: str, title: str, words: str, tables: Sequence[Table], *, seed: int, seconds: float
) -> None:
    """Write a study to ``docs/studies/NAME.md``."""
    versions = ", ".join(f"{library} {version(library)}" for library in LIBRARIES)
    made = (
        f"Made by `python -m tests.studies.{name} --full --seed {seed}` in"
        f" {seconds / 60:.1f} minutes on two shared cores; falsify-adapters"
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
    start = time.perf_counter()
    tables = make(full=arguments.full, seed=arguments.seed)
    seconds = time.perf_counter() - start
    if arguments.full:
        write(name, title, words, tables, seed=arguments.seed, seconds=seconds)
    for table in tables:
        print(f"\n{table.title}\n\n{markdown(table.frame)}")
    print(f"\n{seconds:.0f} s")


def rate(values: Any, digits: int = 3) -> str:
    """Return the mean of a sequence of true and false with fixed digits."""
    return f"{np.mean(values):.{digits}f}"
