"""Measure what a BM25 index of FEVER's size takes: memory, disk and time.

    python tests/benchmarks/bm25_memory.py --fraction 0.1

The corpus is synthetic and shaped like FEVER's, one of BEIR's largest: 5,416,568 documents of 85
words on average, three in ten of them stop words, the others drawn by Zipf's law with a steeper
tail (two million different words in the whole, 110,000 in the first 1.4 million). Each step runs
in a process of its own, on a stated fraction of the documents.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from falsify_adapters.bm25_index import BM25Index, Document, cached_index
from tests.benchmarks.memory import peak_megabytes

FEVER_DOCUMENTS = 5_416_568
WORDS_PER_DOCUMENT = 85
STOP_WORD_SHARE = 0.3
VOCABULARY = 6_000_000
CHUNK = 10_000


def synthetic(n_documents: int, seed: int = 0) -> Iterator[Document]:
    """Yield documents one by one; the words are generated in chunks."""
    rng = np.random.default_rng(seed)
    rank = np.arange(1.0, VOCABULARY + 1)
    weight = np.where(rank < 10_000, 1 / (rank + 10), (rank / 10_000) ** -1.7 / 10_010)
    cumulated = np.cumsum(weight / weight.sum())
    del rank, weight
    for start in range(0, n_documents, CHUNK):
        n = min(CHUNK, n_documents - start)
        length = np.maximum(rng.lognormal(np.log(WORDS_PER_DOCUMENT) - 0.18, 0.6, n), 2).astype(int)
        ranks = np.searchsorted(cumulated, rng.random(length.sum()))
        stop = rng.random(len(ranks)) < STOP_WORD_SHARE
        ends = np.cumsum(length)
        for i in range(n):
            words = slice(ends[i] - length[i], ends[i])
            text = " ".join(
                "the" if is_stop else f"x{word:x}"
                for word, is_stop in zip(ranks[words].tolist(), stop[words].tolist(), strict=True)
            )
            yield Document(f"Some_Article_Title_{start + i}", f"x{start + i:x}", text)


def measure(task: str, n_documents: int, cache_dir: Path) -> None:
    """Run one task in this process and print its figures."""
    started = time.perf_counter()
    if task == "read":
        for _ in synthetic(n_documents):
            pass
    if task == "build":
        cached_index(
            synthetic(n_documents), k1=0.9, b=0.4, cache_dir=cache_dir, fingerprint="benchmark"
        )
    if task == "search":
        (folder,) = cache_dir.iterdir()
        index = BM25Index.load(folder)
        assert index is not None
        loaded = time.perf_counter()
        rng = np.random.default_rng(1)
        for _ in range(20):
            index.search(" ".join(f"x{word:x}" for word in rng.integers(0, 2000, 8)), 100)
        print(f"  per query {(time.perf_counter() - loaded) / 20:.3f} s")
    print(f"{task}: {time.perf_counter() - started:.1f} s, peak {peak_megabytes():.0f} MB")


def main() -> None:
    """Measure each task in a process of its own and extrapolate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fraction", type=float, default=0.02)
    parser.add_argument("--task", help=argparse.SUPPRESS)
    parser.add_argument("--cache-dir", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    n_documents = round(FEVER_DOCUMENTS * options.fraction)
    if options.task:
        measure(options.task, n_documents, options.cache_dir)
        return
    print(f"{n_documents} documents, {options.fraction:g} of FEVER")
    with tempfile.TemporaryDirectory() as folder:
        for task in ("read", "build", "search"):
            arguments = ["--fraction", str(options.fraction), "--task", task, "--cache-dir", folder]
            subprocess.run([sys.executable, __file__, *arguments], check=True)
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        print(f"index on disk: {size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
