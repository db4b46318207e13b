"""Kill a command at random moments: every file that it leaves is whole, and nothing is lost.

``python -m tests.kills 200`` does it 200 times; the tests do it a few times. Each time one of the
calls of :data:`KINDS` is started, killed with SIGKILL at a random moment of its life (while it
reads, grades, keeps, writes), and what it left is examined. A sweep is then gone on with, and
killed again, until one call of it is left alone: its documents must be those of a call that was
never disturbed. The calls are forked from a process that has imported everything: no moment is
lost on imports.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import pandas as pd

from tests.cli_runs import write_qrels, write_run

N_RUNS, N_QUERIES = 6, 30
QUICK = ["--n-boot", "160", "--n-trials", "160", "--corpus-size", "200", "--no-playground"]
DOCUMENTS = ("json", "html", "csv", "markdown", "latex")
#: What is killed, by name: further arguments.
KINDS = {
    "documents only": (),
    "kept": ("--resume", "kept"),
    "kept, two processes": ("--resume", "kept", "--jobs", "2"),
}
#: Share of the kills that wait until the first document is begun: writing takes no time.
WRITING = 0.3
#: Kills of one sweep before it is left alone.
MOST_IN_A_ROW = 6


@dataclass(frozen=True)
class Undisturbed:
    """What a call that nobody kills takes and leaves."""

    seconds: float
    documents: dict[str, bytes]


def make_inputs(folder: Path) -> None:
    """Write qrels and runs."""
    write_qrels(folder / "qrels.trec", N_QUERIES)
    for i in range(N_RUNS):
        write_run(folder / f"r{i}.trec", N_QUERIES - i, "blind" if i % 2 else "good")


FORKED = get_context("forkserver")
FORKED.set_forkserver_preload(
    [
        *("falsify_adapters.cli.ir", "falsify_adapters.gate", "falsify_adapters.readers.lines"),
        *("falsify_adapters.report.html", "falsify_adapters.sweep.codec", "joblib", "jinja2"),
        *("pyarrow.feather", "pyarrow.parquet", "pandas", "scipy.stats"),
    ]
)


def start(folder: Path, kind: str) -> BaseProcess:
    """Start a call."""
    runs = [f"r{i}.trec" for i in range(N_RUNS)]
    targets = [part for name in DOCUMENTS for part in (f"--{name}", f"out.{name}")]
    arguments = ["qrels.trec", *runs, "nDCG@10", "R@10", *QUICK, "-q", *targets, *KINDS[kind]]
    for name in DOCUMENTS:
        (folder / f"out.{name}").unlink(missing_ok=True)
    for half in folder.glob(".out.*.part"):
        half.unlink()
    process = FORKED.Process(target=run, args=(folder, arguments))
    process.start()
    return process


def run(folder: Path, arguments: list[str]) -> None:
    """Call the command, in a process of its own."""
    from falsify_adapters.cli.ir import main

    os.chdir(folder)
    os.environ["PYTHONWARNINGS"] = "ignore"  # of what watches over processes, about leaks
    sys.stdout = sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115  # ends with the process
    try:
        main(arguments, prog_name="falsify-ir")
    except SystemExit as end:
        # multiprocessing would wait for the command's own processes
        os._exit(int(end.code or 0))


def undisturbed(folder: Path, kind: str) -> Undisturbed:
    """Let a call run to its end."""
    began = time.monotonic()
    process = start(folder, kind)
    process.join(600)
    assert process.exitcode in (0, 1, 3)
    seconds = time.monotonic() - began
    return Undisturbed(seconds, documents_in(folder))


def documents_in(folder: Path) -> dict[str, bytes]:
    """Return the documents that are there."""
    paths = {name: folder / f"out.{name}" for name in DOCUMENTS}
    return {name: path.read_bytes() for name, path in paths.items() if path.exists()}


def examine(folder: Path, whole: Undisturbed) -> str:
    """Check everything that a killed call left; return how far it had come.

    Raises
    ------
    AssertionError
        If a document is there and is not the whole one, or the folder of finished runs cannot be
        read as a table of whole reports.
    """
    left = documents_in(folder)
    for name, content in left.items():
        assert content == whole.documents[name], f"out.{name} is not whole"
    n_kept = 0
    if list((folder / "kept").glob("*.parquet")):
        table = pd.read_parquet(folder / "kept")
        n_kept = table["unit"].nunique()
        assert (table.groupby("unit")["measure"].nunique() == 2).all()
        assert table["system"].nunique() == n_kept, "a run was graded twice"
        for text in table["report"]:
            assert json.loads(text)["kind"] == "gate"
    if len(left) == len(DOCUMENTS):
        return "all written"
    if left or any(folder.glob(".out.*.part")):
        return "writing"
    return "grading" if n_kept else "reading or grading"


def harm(folder: Path, kind: str, whole: Undisturbed, moment: random.Random) -> str | None:
    """Start a call and kill it at a random moment; say how far it had come.

    None if it had ended before. In both cases what is left is examined.
    """
    process = start(folder, kind)
    if moment.random() < WRITING:
        while process.is_alive() and not any(folder.glob("*out.*")):
            time.sleep(0.0005)
        process.join(moment.uniform(0, 0.04))
    else:
        process.join(moment.uniform(0, 1.0) * whole.seconds)
    process.kill()
    process.join()
    stage = examine(folder, whole)
    return stage if process.exitcode == -signal.SIGKILL else None


def kill_often(place: Path, times: int, seed: int) -> Counter[tuple[str, str]]:
    """Kill so many calls; return how far they had come, by kind.

    Raises
    ------
    AssertionError
        If anything that was left is not whole, or a resumed sweep ends with other documents.
    """
    moment, seen = random.Random(seed), Counter[tuple[str, str]]()
    whole = {}
    for kind in KINDS:
        folder = place / f"whole {len(whole)}"
        make_inputs(folder)
        whole[kind] = undisturbed(folder, kind)
    first = whole["documents only"].documents
    assert sorted(first) == sorted(DOCUMENTS)
    assert all(one.documents == first for one in whole.values())
    number = 0
    while sum(seen.values()) < times:
        kind = list(KINDS)[number % len(KINDS)]
        folder = place / f"{number}"
        make_inputs(folder)
        for _ in range(moment.randint(1, MOST_IN_A_ROW)):
            if sum(seen.values()) < times:
                stage = harm(folder, kind, whole[kind], moment)
                seen.update([(kind, stage)] if stage else [])
        assert undisturbed(folder, kind).documents == first, "a resumed sweep ends otherwise"
        examine(folder, whole[kind])
        number += 1
    return seen


def main() -> None:
    """Kill as often as the command line says, and print how far the calls had come."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("times", type=int, nargs="?", default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="falsify-kills-") as place:
        seen = kill_often(Path(place), arguments.times, arguments.seed)
    for (kind, stage), n in sorted(seen.items()):
        print(f"{n:4}  {kind}: {stage}")
    print(f"{sum(seen.values()):4}  kills: files whole or absent, resumed sweeps end the same")


if __name__ == "__main__":
    main()
