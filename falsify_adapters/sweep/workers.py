"""Who does the units of work: this process, several processes, the workers of a cluster."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeVar

from falsify_adapters.errors import FalsifyError, MissingExtraError, UsageError

Job = TypeVar("Job")
Result = TypeVar("Result")

#: Seconds that a scheduler may take to answer, and then to have a worker.
PATIENCE, FIRST_WORKER = 5, 10

#: The thread of a process that looks whether the one that started it is still there.
_WATCH = "falsify-adapters-parent"

#: Does all jobs; yields each one's number and result as it is done.
Doing = Callable[[Callable[[Job], Result], Sequence[Job]], Iterator[tuple[int, Result]]]


@contextmanager
def processes(jobs: int) -> Iterator[Doing[Any, Any]]:
    """Do jobs in several processes of this machine, each with one BLAS thread.

    Raises
    ------
    MissingExtraError
        If joblib is not installed.
    """
    if find_spec("joblib") is None:
        raise MissingExtraError(
            "several processes (--jobs) need joblib", hint="pip install 'falsify-adapters[jobs]'"
        )

    def do(function: Callable[[Job], Result], todo: Sequence[Job]) -> Iterator[tuple[int, Result]]:
        from joblib import parallel_config
        from joblib.externals.loky.process_executor import BrokenProcessPool

        tied = partial(_while_parent_lives, function, os.getpid())
        with parallel_config(backend="loky", inner_max_num_threads=1):
            try:
                yield from _parallel(tied, todo, n_jobs=min(jobs, len(todo)))
            except BrokenProcessPool:
                raise FalsifyError(
                    "a process was killed while it graded",
                    hint="was there not enough memory? fewer --jobs take less; --resume FOLDER"
                    " keeps what is finished",
                ) from None

    yield do


@contextmanager
def cluster(address: str) -> Iterator[Doing[Any, Any]]:
    """Do jobs on the workers of a Dask cluster; what a lost worker had begun is done again.

    Raises
    ------
    MissingExtraError
        If joblib or distributed is not installed.
    UsageError
        If nothing answers at that address, or the cluster has no workers.
    """
    if find_spec("joblib") is None or find_spec("distributed") is None:
        raise MissingExtraError(
            "a cluster (--scheduler) needs joblib and dask[distributed]",
            hint="pip install 'falsify-adapters[cluster]'",
        )
    client = _connected(address)

    def do(function: Callable[[Job], Result], todo: Sequence[Job]) -> Iterator[tuple[int, Result]]:
        from distributed import CancelledError, KilledWorker
        from joblib import parallel_config

        # every unit is handed over at once, so that a worker that joins later gets some too
        settings = {"n_jobs": -1, "pre_dispatch": "all"}
        backend = {"client": client, "wait_for_workers_timeout": FIRST_WORKER}
        with parallel_config(backend="dask", **backend):
            try:
                yield from _parallel(function, todo, **settings)
            except KilledWorker as error:
                raise FalsifyError(
                    "workers died again and again on one run", found=str(error).split(".")[0]
                ) from None
            except TimeoutError:
                raise UsageError(
                    f"the scheduler {address} has no workers",
                    found=f"none after {FIRST_WORKER} seconds",
                    hint="dask worker ADDRESS starts one",
                ) from None
            except (CancelledError, OSError) as error:
                raise FalsifyError(
                    f"the scheduler {address} was lost", found=str(error) or type(error).__name__
                ) from None

    try:
        yield do
    finally:
        client.close(timeout=PATIENCE)


def _connected(address: str) -> Any:
    from distributed import Client

    # what becomes of the connection is said below, in one line
    for name in ("distributed.client", "distributed.core", "distributed.comm", "tornado"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        # a client waits for ever for something that listens and does not answer
        asyncio.run(asyncio.wait_for(_greet(address), PATIENCE))
        return Client(address, timeout=PATIENCE, set_as_default=False)
    except Exception as error:  # what else listens there can make it fail in any way
        raise UsageError(
            f"no Dask scheduler answers at {address}",
            found=str(error) or type(error).__name__,
            hint="--scheduler tcp://HOST:8786, as dask scheduler prints it",
        ) from None


async def _greet(address: str) -> None:
    """Connect as a client does, with the keys that its configuration names."""
    from distributed.comm import connect
    from distributed.security import Security

    keys = Security().get_connection_args("client")
    comm = await connect(address, timeout=PATIENCE, **keys)
    await comm.close()


def _parallel(
    function: Callable[[Job], Result], todo: Sequence[Job], **settings: Any
) -> Iterator[tuple[int, Result]]:
    from joblib import Parallel, delayed

    # who interrupts a sweep knows that it is not done
    warnings.filterwarnings("ignore", message=r"\d+ tasks which were still being processed")
    numbered = delayed(_numbered)
    yield from Parallel(return_as="generator_unordered", batch_size=1, **settings)(
        numbered(function, number, job) for number, job in enumerate(todo)
    )


def _numbered(function: Callable[[Job], Result], number: int, job: Job) -> tuple[int, Result]:
    return number, function(job)


def _while_parent_lives(function: Callable[[Job], Result], parent: int, job: Job) -> Result:
    """Do a job in a process that ends when the one that started it was killed."""
    # a single job is done by the process itself
    watched = any(thread.name == _WATCH for thread in threading.enumerate())
    if os.getpid() != parent and not watched:
        threading.Thread(target=_watch, args=(parent,), name=_WATCH, daemon=True).start()
    return function(job)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
