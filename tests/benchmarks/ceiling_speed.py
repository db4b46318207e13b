"""Time the query-blind ceiling against reading the qrels file with pandas.

Run from the project's root: ``python tests/benchmarks/ceiling_speed.py``. Prints a Markdown table
of CPU seconds, each the best of five. "frame" is the ceiling of what pandas has read (validation,
sorting, integer codes, ceiling, bounds), "common frame" that of qrels which were validated before.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from falsify_adapters.ceiling import query_blind_ceiling
from falsify_adapters.frames import as_qrels

JUDGEMENTS = 500_000
QUERIES = (50, 1_000, 10_000, 100_000, 500_000)
COLUMNS = ["query_id", "doc_id", "relevance"]


def synthetic_qrels(n_queries: int, n_rows: int, seed: int = 0) -> pd.DataFrame:
    """Make judgements with a long tail of popular documents and grades 0 to 3."""
    rng = np.random.default_rng(seed)
    query = np.arange(n_rows) % n_queries
    n_docs = max(n_rows // 5, 2 * n_rows // n_queries)
    # a stride that has no factor in common with the number of documents keeps a query's distinct
    start = (rng.pareto(1.0, n_queries) * 20).astype(np.int64)
    doc = (start[query] + 7_919 * (np.arange(n_rows) // n_queries)) % n_docs
    frame = pd.DataFrame(
        {
            "query_id": np.char.add("q", query.astype(str)),
            "doc_id": np.char.add("doc", doc.astype(str)),
            "relevance": rng.integers(0, 4, n_rows),
        }
    )
    frame.loc[frame.groupby("query_id").head(1).index, "relevance"] = 1
    # files are grouped by query
    return frame.drop_duplicates(["query_id", "doc_id"]).sort_values("query_id", kind="stable")


def best_of(times: int, call: Callable[[], object]) -> float:
    """Return the shortest of a few runs, in seconds."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return min(taken)


def read(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, sep="\t", dtype={"query_id": str, "doc_id": str})


def read_trec(path: Path) -> pd.DataFrame:
    names = ["query_id", "iteration", "doc_id", "relevance"]
    types = {"query_id": str, "iteration": str, "doc_id": str}
    return pd.read_csv(path, sep=r"\s+", header=None, names=names, dtype=types)


def main() -> None:
    columns = ["queries", "judgements", "pandas reads TREC", "pandas reads TSV"]
    columns += ["ceiling, frame", "ceiling, common frame"]
    print(f"| {' | '.join(columns)} |")
    print(f"|{' ---: |' * len(columns)}")
    with tempfile.TemporaryDirectory() as folder:
        for n_queries in QUERIES:
            path = Path(folder) / f"{n_queries}.tsv"
            synthetic_qrels(n_queries, JUDGEMENTS).to_csv(path, sep="\t", index=False)
            frame = read(path)
            trec = path.with_suffix(".qrels")
            frame.assign(iteration=0)[["query_id", "iteration", "doc_id", "relevance"]].to_csv(
                trec, sep=" ", index=False, header=False
            )
            common = as_qrels(frame, notes=[])
            seconds = [
                best_of(5, lambda trec=trec: read_trec(trec)),
                best_of(5, lambda path=path: read(path)),
                best_of(5, lambda frame=frame: query_blind_ceiling(frame)),
                best_of(5, lambda common=common: query_blind_ceiling(common)),
            ]
            cells = " | ".join(f"{value:.3f} s" for value in seconds)
            print(f"| {n_queries:,} | {len(frame):,} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
