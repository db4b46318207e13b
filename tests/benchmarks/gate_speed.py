"""Ratios of the gate's cost to the cost of plain evaluation, measured side by side in one run.

Run from the project's root: ``python tests/benchmarks/gate_speed.py [--repeats 5] [ROW ...]``.
Prints one Markdown table of medians of processor time. The rows on nfcorpus need the real
collection (see ``tests/conftest.py``); all other data are made here, seeded.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import ir_measures
import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from falsify_adapters.evaluation import Evaluation
from falsify_adapters.gate import run_gate
from tests.benchmarks.memory import peak_megabytes

ROOT = Path(__file__).resolve().parents[2]
FALSIFY_IR = "from falsify_adapters.cli.ir import main; main()"
IR_MEASURES = "from ir_measures.__main__ import main_cli; main_cli()"
SAY_PEAK = (
    "import atexit, sys; from tests.benchmarks.memory import peak_megabytes; "
    "atexit.register(lambda: print(peak_megabytes(), file=sys.stderr)); "
)
Row = tuple[str, str, str, str]


def seconds(action: Callable[[], object]) -> float:
    """Time one call, in seconds of processor time: other programs do not count."""
    start = time.process_time()
    action()
    return time.process_time() - start


def medians(repeats: int, *actions: Callable[[], object]) -> list[float]:
    """Time several actions in turn, so that a slow spell of the machine hits all of them."""
    times = [[seconds(action) for action in actions] for _ in range(repeats)]
    return [statistics.median(column) for column in zip(*times, strict=True)]


def single_gold(
    n: int, n_docs: int, depth: int, *, skew: float = 0.0, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make a run and qrels with one relevant document per query.

    The right answer stands anywhere in the first ``2 * depth`` ranks. With `skew`, one document is
    the answer of that share of the queries, and the run returns it first as often.
    """
    rng = np.random.default_rng(seed)
    gold = rng.integers(1, n_docs, n)
    docs = rng.integers(1, n_docs, (n, depth))
    place = rng.integers(0, 2 * depth, n)
    popular = rng.random(n) < skew
    gold[popular] = 0
    found = place < depth
    docs[np.flatnonzero(found), place[found]] = gold[found]
    docs[rng.random(n) < skew, 0] = 0
    queries = np.array([f"q{i}" for i in range(n)])
    run = pd.DataFrame(
        {
            "query_id": np.repeat(queries, depth),
            "doc_id": [f"d{doc}" for doc in docs.ravel()],
            "score": np.tile(np.arange(depth, 0, -1.0), n),
        }
    ).drop_duplicates(["query_id", "doc_id"], ignore_index=True)
    qrels = pd.DataFrame(
        {"query_id": queries, "doc_id": [f"d{doc}" for doc in gold], "relevance": 1}
    )
    return run, qrels


def nfcorpus(repeats: int) -> Iterator[Row]:
    """Time the gate on nfcorpus against ir-measures on the same frames and on a dict run."""
    folder = Path(os.environ.get("FALSIFY_DATA_DIR", ROOT.parent / "shared" / "data")) / "nfcorpus"
    if not folder.is_dir():
        yield "nfcorpus", "needs the real collection", "", ""
        return
    run = pd.DataFrame(ir_measures.read_trec_run(str(folder / "runs" / "bm25.trec")))
    qrels = pd.read_csv(folder / "qrels" / "test.tsv", sep="\t", dtype={0: str, 1: str})
    qrels.columns = pd.Index(["query_id", "doc_id", "relevance"])
    as_dict: dict[str, dict[str, float]] = {}
    for query_id, doc_id, score in run[["query_id", "doc_id", "score"]].itertuples(index=False):
        as_dict.setdefault(query_id, {})[doc_id] = score
    evaluator = ir_measures.evaluator([ir_measures.nDCG @ 10], qrels)
    ours, plain, reused = medians(
        repeats,
        lambda: run_gate(Evaluation.create(run, qrels, corpus_size=3633), "nDCG@10"),
        lambda: ir_measures.calc_aggregate([ir_measures.nDCG @ 10], qrels, run),
        lambda: [evaluator.calc_aggregate(as_dict) for _ in range(20)],
    )
    reused /= 20
    title = "nfcorpus, BM25 top 100, nDCG@10, companion included"
    yield title, "one calc_aggregate on the same frames", "at most 4 x", f"{ours / plain:.2f} x"
    calls = "4,000 calls of a reused evaluator on a dict run"
    yield title, calls, "at most 1/150", f"1/{4000 * reused / ours:.0f}"


def against_falsify_eval(repeats: int) -> Iterator[Row]:
    """Time 1,000 trials against 50 of the falsify-eval library."""
    from falsify_eval import four_null_gate

    run, qrels = single_gold(5000, 100_000, 10)
    retrieved = [list(group) for _, group in run.groupby("query_id", sort=False)["doc_id"]]
    gold = qrels["doc_id"].tolist()
    pool = sorted({*run["doc_id"], *gold, *(f"d{i}" for i in range(100_000))})

    def ndcg(ranking: list[str], answer: str, _: object) -> float:
        return 1.0 / np.log2(ranking.index(answer) + 2) if answer in ranking else 0.0

    evaluation = Evaluation.create(run, qrels, corpus_size=100_000)
    ours, theirs = medians(
        min(repeats, 3),
        lambda: run_gate(evaluation, "nDCG@10"),
        lambda: four_null_gate(
            retrieved, gold, [None] * len(gold), ndcg, item_pool=pool, k=10, n_trials=50
        ),
    )
    title = "single gold, 5,000 queries, 100,000 documents, top 10, 1,000 trials"
    yield title, "falsify-eval 0.2.0 at 50 trials", "at most 1/20", f"1/{theirs / ours:.0f}"


def run_command(code: str, *arguments: str) -> tuple[float, float]:
    """Run Python code in a process of its own; return its processor seconds and peak MB."""
    process = subprocess.Popen(
        [sys.executable, "-c", SAY_PEAK + code, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stderr is not None
    *_, peak = process.stderr.read().split()
    _, _, usage = os.wait4(process.pid, 0)
    return usage.ru_utime + usage.ru_stime, float(peak)


def whole_command(repeats: int) -> Iterator[Row]:
    """Time falsify-ir on a large TREC run against the ir_measures command."""
    n, depth = 6980, 1000
    with tempfile.TemporaryDirectory() as folder:
        run_path, qrels_path = Path(folder) / "run.trec", Path(folder) / "qrels.trec"
        _write_large(run_path, qrels_path, n, depth)
        for measures, target in ((["nDCG@10"], "at most 1/2"), (["AP", "RR"], "at most 2 x")):
            ours, theirs, memory = [], [], 0.0
            for _ in range(min(repeats, 3)):
                options = [f"--measure={measure}" for measure in measures]
                took, peak = run_command(
                    FALSIFY_IR,
                    *(str(qrels_path), str(run_path), "--corpus-size", "8841823", "--quiet"),
                    *options,
                )
                ours.append(took)
                memory = max(memory, peak)
                theirs.append(
                    run_command(IR_MEASURES, str(qrels_path), str(run_path), *measures)[0]
                )
            ratio = statistics.median(ours) / statistics.median(theirs)
            title = f"{n:,} queries x {depth:,} documents from a TREC file, {', '.join(measures)}"
            yield title, "the ir_measures command", target, f"{ratio:.2f} x"
            yield title, "peak memory", "at most 1 GB", f"{memory:.0f} MB"


def _write_large(run_path: Path, qrels_path: Path, n: int, depth: int) -> None:
    rng = np.random.default_rng(0)
    with run_path.open("w") as run, qrels_path.open("w") as qrels:
        for i in range(n):
            docs = rng.choice(8_841_823, depth, replace=False)
            scores = np.sort(rng.normal(20, 4, depth))[::-1]
            query = 1_000_000 + i
            run.writelines(
                f"{query} Q0 {doc} {rank} {score:.6f} made\n"
                for rank, (doc, score) in enumerate(zip(docs, scores, strict=True), 1)
            )
            place = min(int(rng.exponential(15)), depth - 1)
            qrels.write(f"{query} 0 {docs[place]} 1\n")


def growth(repeats: int) -> Iterator[Row]:
    """Fit the growth of time over queries and over depth."""
    for name, sizes, make in (
        ("queries, depth 10", (1000, 10_000, 100_000), lambda n: single_gold(n, 20 * n, 10)),
        ("depth, 1,000 queries", (10, 100, 1000), lambda k: single_gold(1000, 100_000, k)),
    ):
        times = []
        for size in sizes:
            run, qrels = make(size)
            evaluation = Evaluation.create(run, qrels, corpus_size=2_000_000)
            measure = "nDCG@10" if name.startswith("queries") else f"nDCG@{size}"
            times += medians(min(repeats, 3), lambda e=evaluation, m=measure: run_gate(e, m))
        slope = np.log(times[-1] / times[0]) / np.log(sizes[-1] / sizes[0])
        yield f"growth over {name}", "log-log slope", "at most 1.1", f"{slope:.2f}"


def skew(repeats: int) -> Iterator[Row]:
    """Time a benchmark in which one document answers 80 % of the queries."""
    flat, skewed = (
        Evaluation.create(*single_gold(10_000, 200_000, 10, skew=share), corpus_size=200_000)
        for share in (0.0, 0.8)
    )
    plain, steep = medians(repeats, lambda: run_gate(flat), lambda: run_gate(skewed))
    peak = peak_megabytes()
    title = "one document for 80 % of 10,000 queries"
    yield title, "the same without skew", "at most 3 x", f"{steep / plain:.2f} x ({peak:.0f} MB)"


def start_up(repeats: int) -> Iterator[Row]:
    """Time the help of both commands."""
    help_of = "import sys; sys.argv[1:] = ['--help']; "
    beir = help_of + "from falsify_adapters.cli.beir import main; main()"
    both = [(run_command(beir)[0], run_command(help_of + IR_MEASURES)[0]) for _ in range(repeats)]
    ours, theirs = (statistics.median(column) for column in zip(*both, strict=True))
    yield "falsify-beir --help", "ir_measures --help", "at most 3 x", f"{ours / theirs:.2f} x"


ROWS: dict[str, Callable[[int], Iterator[Row]]] = {
    "nfcorpus": nfcorpus,
    "falsify-eval": against_falsify_eval,
    "command": whole_command,
    "growth": growth,
    "skew": skew,
    "start": start_up,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", default=list(ROWS), metavar="ROW")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    print("| work | beside | target | measured |")
    print("| --- | --- | --- | --- |")
    for name in arguments.rows:
        for row in ROWS[name](arguments.repeats):
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
