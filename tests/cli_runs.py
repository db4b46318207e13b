"""Small benchmarks on disk, and ways to call the commands, in this process and in a fresh one."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

ROOT = Path(__file__).resolve().parent.parent
DEPTH = 10


def launcher(command: str, *arguments: str | Path) -> list[str]:
    """Return the argument list that starts a command in a fresh interpreter."""
    code = (
        f"import sys; sys.argv[0] = 'falsify-{command}'\n"
        f"from falsify_adapters.cli.{command} import main; main()"
    )
    return [sys.executable, "-c", code, *map(str, arguments)]


def in_subprocess(
    command: str, *arguments: str | Path, **settings: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command as a process of its own."""
    settings = {"capture_output": True, "text": True, "cwd": ROOT, "check": False} | settings
    return subprocess.run(launcher(command, *arguments), **settings)


def runner() -> CliRunner:
    """Return a runner that keeps the two streams apart; click before 8.2 has to be told."""
    apart = "mix_stderr" in inspect.signature(CliRunner.__init__).parameters
    return CliRunner(**({"mix_stderr": False} if apart else {}))  # type: ignore[arg-type]


def call(command: str, *arguments: str | Path, **settings: Any) -> Result:
    """Run a command in this process."""
    module = command.replace("-", "_")
    main = import_module(f"falsify_adapters.cli.{module}").main
    return runner().invoke(main, [str(argument) for argument in arguments], **settings)


def report(command: str, *arguments: str | Path, status: int | None = None) -> dict[str, Any]:
    """Run a command with ``--json -`` and return the document."""
    result = call(command, *arguments, "--json", "-")
    assert "Traceback" not in result.stderr
    if status is not None:
        assert result.exit_code == status, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def write_qrels(path: Path, n_queries: int, prefix: str = "q") -> Path:
    """Write qrels in which each query has a relevant document of its own."""
    rows = [f"{prefix}{i:03} 0 d{i:03} 1" for i in range(n_queries)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(rows) + "\n")
    return path


def write_run(path: Path, n_queries: int, kind: str = "good", prefix: str = "q") -> Path:
    """Write a run: "good" finds the answer at rank 1, "blind" returns the same for everybody."""
    rows = []
    for i in range(n_queries):
        first = i if kind == "good" else 0
        for rank in range(min(DEPTH, n_queries)):
            doc = (first + rank) % n_queries
            rows.append(f"{prefix}{i:03} Q0 d{doc:03} {rank + 1} {100 - rank} tag")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(rows) + "\n")
    return path


def write_dataset(folder: Path, n_queries: int, prefix: str = "q") -> Path:
    """Write a folder in BEIR's layout."""
    (folder / "qrels").mkdir(parents=True)
    docs = [{"_id": f"d{i:03}", "title": "", "text": f"word{i} text"} for i in range(n_queries)]
    queries = [{"_id": f"{prefix}{i:03}", "text": f"word{i}"} for i in range(n_queries)]
    for name, rows in (("corpus", docs), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    judged = [f"{prefix}{i:03}\td{i:03}\t1" for i in range(n_queries)]
    text = "\n".join(["query-id\tcorpus-id\tscore", *judged])
    (folder / "qrels" / "test.tsv").write_text(text + "\n")
    return folder
