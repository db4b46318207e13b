"""How long reading a run takes and how much memory: a table, for people.

    python tests/benchmarks/readers.py [QUERIES DOCUMENTS]

Writes runs of 6,980 queries with 1,000 documents each (or as given) to a temporary folder, in
several formats, and reads each in a process of its own, with and without a depth.
"""

from __future__ import annotations

import argparse
import gzip
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

CORPUS = 8_841_823
DEPTHS = (100, None)

READ = f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).resolve().parents[2])!r})
from tests.benchmarks.memory import peak_megabytes
from falsify_adapters.readers import read_run
depth = None if sys.argv[2] == "None" else int(sys.argv[2])
before, cpu = time.perf_counter(), time.process_time()
file = read_run(sys.argv[1], depth=depth)
print(file.provenance["rows"], len(file.frame),
      time.perf_counter() - before, time.process_time() - cpu, peak_megabytes())
"""


def rankings(queries: int, documents: int) -> Iterator[tuple[str, list[int], list[float]]]:
    rng = np.random.default_rng(0)
    for query in range(queries):
        docs = rng.choice(CORPUS, documents, replace=False).tolist()
        yield str(1_000_000 + 13 * query), docs, np.sort(rng.random(documents))[::-1].tolist()


def trec(query: str, docs: list[int], scores: list[float]) -> str:
    rows = enumerate(zip(docs, scores, strict=True), start=1)
    return "".join(f"{query} Q0 {doc} {rank} {score:.6f} mine\n" for rank, (doc, score) in rows)


def msmarco(query: str, docs: list[int], _scores: list[float]) -> str:
    return "".join(f"{query}\t{doc}\t{rank}\n" for rank, doc in enumerate(docs, start=1))


def jsonl(query: str, docs: list[int], scores: list[float]) -> str:
    rows = zip(docs, scores, strict=True)
    results = ", ".join(f'{{"corpus_id": "{doc}", "score": {score:.6f}}}' for doc, score in rows)
    return f'{{"query_id": "{query}", "results": [{results}]}}\n'


WRITERS: dict[str, Callable[[str, list[int], list[float]], str]] = {
    "run.trec": trec,
    "run.trec.gz": trec,
    "msmarco.tsv": msmarco,
    "predictions.jsonl": jsonl,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries", type=int, nargs="?", default=6_980)
    parser.add_argument("documents", type=int, nargs="?", default=1_000)
    arguments = parser.parse_args()
    print("file                 MB  depth       rows       kept   wall s    CPU s  peak MiB")
    with tempfile.TemporaryDirectory() as folder:
        for name, write in WRITERS.items():
            path = Path(folder) / name
            with path.open("wb") as file:
                for ranking in rankings(arguments.queries, arguments.documents):
                    data = write(*ranking).encode()
                    file.write(gzip.compress(data, 1) if name.endswith(".gz") else data)
            for depth in DEPTHS:
                command = [sys.executable, "-c", READ, str(path), str(depth)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                rows, kept, wall, cpu, peak = map(float, done.stdout.split())
                size = path.stat().st_size / 1e6
                print(
                    f"{name:<18}{size:>5.0f}{depth or '-':>7}{rows:>11.0f}{kept:>11.0f}"
                    f"{wall:>9.1f}{cpu:>9.1f}{peak:>10.0f}",
                    flush=True,
                )
            path.unlink()


if __name__ == "__main__":
    main()
