"""A real Dask cluster on this machine: the same numbers, and nothing lost with a worker."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.cli_runs import ROOT, call, in_subprocess, launcher, write_qrels, write_run

N_QUERIES, N_RUNS = 30, 10
#: Slow enough that half of it is a moment that can be met.
SETTINGS = ["--n-boot", "20000", "--n-trials", "5000", "--corpus-size", "200"]
SILENT = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@dataclass
class Cluster:
    """A scheduler and its workers, as processes of their own."""

    folder: Path
    address: str = field(init=False)
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        port = free_port()
        self.address = f"tcp://127.0.0.1:{port}"
        arguments = ["--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
        self.scheduler = self._start("dask_scheduler", *arguments)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise AssertionError("the scheduler does not start")

    def add_worker(self) -> None:
        # elsewhere than the runs: a worker on another machine has another current folder too
        arguments = [self.address, "--nthreads", "2", "--no-nanny", "--no-dashboard"]
        place = self.folder / f"worker{len(self.workers)}"
        place.mkdir()
        self.workers.append(
            self._start("dask_worker", *arguments, "--local-directory", str(place), cwd=place)
        )

    def _start(self, name: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.{name}", *arguments]
        return subprocess.Popen(
            command, env=environment(), **{"cwd": self.folder} | SILENT | options
        )

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster of two workers."""
    made = Cluster(tmp_path)
    try:
        for _ in range(2):
            made.add_worker()
        yield made
    finally:
        made.stop()


@pytest.fixture(autouse=True)
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Runs in the current folder, one of them refused, and the command line that grades them."""
    folder = tmp_path / "data"
    write_qrels(folder / "qrels.trec", N_QUERIES)
    for i in range(N_RUNS):
        write_run(folder / f"r{i}.trec", N_QUERIES - i, "blind" if i % 3 else "good")
    (folder / "bad.trec").write_text("garbage\n")
    monkeypatch.chdir(folder)
    runs = [f"r{i}.trec" for i in range(N_RUNS)]
    return ["qrels.trec", *runs, "bad.trec", "nDCG@10", "R@10", *SETTINGS]


def test_a_worker_killed_half_way_costs_nothing_and_moves_no_number(
    sweep: list[str], cluster: Cluster
) -> None:
    more = ["--baseline", "r0.trec", "--controls"]
    arguments = [*sweep, *more, "--scheduler", cluster.address, "--resume", "kept"]
    process = subprocess.Popen(
        launcher("ir", *arguments, "--json", "cluster.json"),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 120
    while len(list(Path("kept").glob("*.parquet"))) < 3:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)
    cluster.workers[0].send_signal(signal.SIGKILL)
    assert len(list(Path("kept").glob("*.parquet"))) < N_RUNS
    stdout, stderr = process.communicate(timeout=240)
    alone = call("ir", *sweep, *more, "--json", "alone.json")
    assert (process.returncode, stderr, stdout) == (2, alone.stderr, alone.stdout)
    found, expected = (
        json.loads(Path(f"{name}.json").read_bytes()) for name in ("cluster", "alone")
    )
    assert_close(found, expected)
    assert Path("cluster.json").read_bytes() == Path("alone.json").read_bytes()
    table = pd.read_parquet("kept")
    expected_rows = [(f"r{i}", measure) for i in range(N_RUNS) for measure in ("R@10", "nDCG@10")]
    assert sorted(zip(table["system"], table["measure"], strict=True)) == expected_rows


def assert_close(one: Any, other: Any) -> None:
    """Compare two documents: numbers to 12 significant digits, all else exactly."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_close(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            assert_close(left, right)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-12, abs=0)
    else:
        assert one == other


def test_a_lost_scheduler_is_one_clear_line(sweep: list[str], cluster: Cluster) -> None:
    arguments = [*sweep, "-q", "--scheduler", cluster.address, "--resume", "kept"]
    process = subprocess.Popen(
        launcher("ir", *arguments), env=environment(), stderr=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 120
    while not list(Path("kept").glob("*.parquet")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)
    cluster.scheduler.kill()
    assert len(list(Path("kept").glob("*.parquet"))) < N_RUNS
    stderr = process.communicate(timeout=120)[1]
    assert process.returncode == 2
    assert f"error: the scheduler {cluster.address} was lost" in stderr
    assert "Traceback" not in stderr
    assert len(pd.read_parquet("kept")) >= 2


def test_other_files_and_versions_on_a_worker_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a worker checks, in this process: it opens the same paths as everybody."""
    from falsify_adapters.cli import jobs
    from falsify_adapters.cli.units import Call
    from falsify_adapters.errors import InputError, UsageError
    from falsify_adapters.provenance import describe_environment

    digest = jobs.file_sha256("qrels.trec")
    place = str(tmp_path / "data" / "qrels.trec")
    known = {"files": {place: digest}, "environment": describe_environment()}
    call_ = Call("ir", {"qrels": place}, frozenset(), **known)
    jobs._refuse_other_machine(call_)
    Path("qrels.trec").write_text("q000 0 d000 1\n")
    with pytest.raises(InputError, match=r"does not find qrels\.trec.*other content"):
        jobs._refuse_other_machine(call_)
    Path("qrels.trec").unlink()
    with pytest.raises(InputError, match=r"no such file; hint: every worker reads the same paths"):
        jobs._refuse_other_machine(call_)
    monkeypatch.setattr(
        "falsify_adapters.provenance._version", lambda name: "0.1" if name == "numpy" else "1"
    )
    with pytest.raises(UsageError, match=r"other versions; found: .*numpy 0\.1 there"):
        jobs._refuse_other_machine(call_)


@pytest.mark.parametrize("listener", ["nobody", "silent", "no workers"])
def test_a_scheduler_that_does_not_answer_is_an_error_and_no_wait(
    sweep: list[str], listener: str, tmp_path: Path
) -> None:
    silent = socket.socket()
    silent.bind(("127.0.0.1", 0))
    address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
    made = None
    if listener == "nobody":
        silent.close()
    elif listener == "silent":
        silent.listen()
    else:
        made = Cluster(tmp_path)
        address = made.address
    try:
        done = in_subprocess(
            "ir", *sweep, "--scheduler", address, cwd=Path.cwd(), env=environment(), timeout=60
        )
    finally:
        silent.close()
        if made is not None:
            made.stop()
    assert done.returncode == 2
    expected = "has no workers" if made else f"no Dask scheduler answers at {address}"
    assert expected in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("address", ["nonsense", "tcp://", ""])
def test_an_address_that_is_none_is_refused(sweep: list[str], address: str) -> None:
    done = in_subprocess(
        "ir", *sweep, f"--scheduler={address}", cwd=Path.cwd(), env=environment(), timeout=60
    )
    assert done.returncode == 2
    assert "scheduler" in done.stderr
    assert "Traceback" not in done.stderr
