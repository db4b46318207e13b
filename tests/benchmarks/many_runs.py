"""200 small runs in one process and in two: the ratio of times, measured side by side.

Run from the project's root: ``python tests/benchmarks/many_runs.py [--runs 200] [--repeats 3]``.
The data are made here, seeded, of nfcorpus' size: 323 queries, 3,633 documents, about 38 relevant
ones per query, 100 documents per ranking. Times are those of a clock on the wall, of the whole
command, so the machine should have nothing else to do; the load before and after is printed. The
first round, which fills the caches of the file system, does not count.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
N_QUERIES, N_DOCUMENTS, DEPTH = 323, 3633, 100
FALSIFY_IR = "from falsify_adapters.cli.ir import main; main()"


def make(folder: Path, n_runs: int) -> None:
    """Write qrels, and runs that find something."""
    rng = np.random.default_rng(0)
    gold = [rng.choice(N_DOCUMENTS, rng.integers(1, 76), replace=False) for _ in range(N_QUERIES)]
    judged = [f"q{q} 0 d{d} 1\n" for q, docs in enumerate(gold) for d in docs]
    (folder / "qrels.trec").write_text("".join(judged))
    for run in range(n_runs):
        lines = []
        for query, docs in enumerate(gold):
            found = docs[rng.random(len(docs)) < 0.2]
            others = rng.choice(N_DOCUMENTS, DEPTH, replace=False)
            ranking = rng.permutation(np.union1d(found, others))[:DEPTH]
            lines += [f"q{query} Q0 d{d} {r} {DEPTH - r} t\n" for r, d in enumerate(ranking)]
        (folder / f"run{run:03}.trec").write_text("".join(lines))


def seconds(folder: Path, *options: str) -> float:
    """Time one call of the whole command; fails if it does."""
    runs = sorted(path.name for path in folder.glob("run*.trec"))
    arguments = ["qrels.trec", *runs, "--corpus-size", str(N_DOCUMENTS), "-q", *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", FALSIFY_IR, *arguments], cwd=folder, env=environment, check=False
    )
    assert done.returncode in (0, 1, 3)
    return time.perf_counter() - began


def main() -> None:
    """Measure and print one row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make(folder, arguments.runs)
        print(f"load before: {os.getloadavg()[0]:.2f}; processors: {os.cpu_count()}")
        times = []
        for number in range(arguments.repeats + 1):
            outputs = [("--json", f"{jobs}.json", "--jobs", jobs) for jobs in ("1", "2")]
            row = [seconds(folder, *output) for output in outputs]
            kept = f"kept{number}"
            row.append(seconds(folder, "--json", "k.json", "--jobs", "2", "--resume", kept))
            row.append(seconds(folder, "--json", "k.json", "--resume", kept))
            contents = {(folder / name).read_bytes() for name in ("1.json", "2.json", "k.json")}
            assert len(contents) == 1
            times += [row] if number else []
        one, two, keeping, again = (
            statistics.median(column) for column in zip(*times, strict=True)
        )
        print(f"load after: {os.getloadavg()[0]:.2f}")
    print("| work | one process | two | ratio | two, kept | all kept already |")
    print("| --- | --- | --- | --- | --- | --- |")
    print(
        f"| {arguments.runs} runs | {one:.1f} s | {two:.1f} s | {one / two:.2f} x"
        f" | {keeping:.1f} s | {again:.1f} s |"
    )


if __name__ == "__main__":
    main()
