"""Build wheel and sdist, install the wheel with base dependencies only, and try it there.

``make dist-test`` runs this: it is no part of the test suite, because it needs a package index and
takes minutes. Every line says what holds; the first thing that does not ends it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: What no base installation may bring.
OPTIONAL = ("torch", "beir", "mteb", "jinja2", "matplotlib", "pyarrow", "lz4", "mcp", "pytest")
IN_WHEEL = (
    "falsify_adapters/report/schema.json",
    "falsify_adapters/report/templates/page.html",
    "falsify_adapters/data/sample/corpus.jsonl",
    "falsify_adapters/data/sample/qrels/test.tsv",
    "falsify_adapters/data/beir_datasets.csv",
)
#: Plots the only thing that can be plotted, without pytest.
PLOT = """
from falsify_adapters import load_beir, plot, run_gate
plot(run_gate(load_beir("sample", offline=True)))
"""
IN_SDIST = ("pyproject.toml", "Makefile", "LICENSE", "action.yml", "tests/conftest.py")


def main() -> None:
    """Run all checks."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(folder / "dist")
        bin_folder = install(wheel, folder / "env")
        work = folder / "work"
        work.mkdir()
        base_works(bin_folder, work)
        extras_are_named(bin_folder, work)
    say("all of it holds")


def say(text: str) -> None:
    print(text, flush=True)


def require(holds: bool, text: str, detail: str = "") -> None:
    """Go on if something holds; show the detail if it does not."""
    if not holds:
        sys.exit(f"does NOT hold: {text}\n{detail}")
    say(f"ok  {text}")


def build(dist: Path) -> Path:
    """Build the sdist, and the wheel from it; return the wheel."""
    subprocess.run([sys.executable, "-m", "build", "--outdir", dist, ROOT], check=True,
                   stdout=subprocess.DEVNULL)  # fmt: skip
    [wheel], [sdist] = dist.glob("*.whl"), dist.glob("*.tar.gz")
    names = set(zipfile.ZipFile(wheel).namelist())
    require(set(IN_WHEEL) <= names, "the wheel holds schema, templates and sample")
    tops = {name.split("/")[0].split("-")[0] for name in names}
    require(tops == {"falsify_adapters"}, "the wheel holds nothing but the package")
    with tarfile.open(sdist) as archive:
        inside = {member.split("/", 1)[-1] for member in archive.getnames()}
    require(set(IN_SDIST) <= inside, "the sdist holds sources, tests and licence")
    return wheel


def install(wheel: Path, env: Path) -> Path:
    """Install a wheel into an empty environment; return the folder of its commands."""
    subprocess.run([sys.executable, "-m", "venv", env], check=True)
    bin_folder = env / "bin"
    pip = [bin_folder / "python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "install", wheel], check=True)
    for package in OPTIONAL:
        probe = f"import importlib.util, sys; sys.exit(bool(importlib.util.find_spec({package!r})))"
        done = subprocess.run([bin_folder / "python", "-c", probe], check=False)
        require(done.returncode == 0, f"the base installation does not bring {package}")
    return bin_folder


class Caller:
    """Calls the installed commands from a folder that is not the project's."""

    def __init__(self, bin_folder: Path, work: Path) -> None:
        self._bin, self._work = bin_folder, work
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "FALSIFY"))}
        self._env = {**kept, "XDG_CACHE_HOME": str(work / "cache"), "NO_COLOR": "1"}

    def __call__(self, command: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._bin / command, *map(str, arguments)],
            cwd=self._work,
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
        )


def base_works(bin_folder: Path, work: Path) -> None:
    """Grade the sample, check the installation, verify the report."""
    call = Caller(bin_folder, work)
    done = call("falsify-beir", "--controls", "--json", "report.json")
    require(done.returncode == 0, "falsify-beir grades the sample", done.stderr)
    reports = json.loads((work / "report.json").read_text("utf-8"))["reports"]
    verdicts = {one["system"]: one["verdict"] for one in reports}
    expected = {"bm25": "PASS", "oracle": "PASS"}
    expected |= dict.fromkeys(("popularity", "constant", "random"), "FAIL")
    require(verdicts == expected, "BM25 and the controls get their verdicts")
    done = call("falsify-adapters", "doctor")
    require(done.returncode == 0, "doctor finds no problem", done.stdout)
    for extra in ("beir", "lz4", "mteb-core", "parquet", "report"):
        require(f"falsify-adapters[{extra}]" in done.stdout, f"doctor names the extra {extra}")
    done = call("falsify-adapters", "verify", "report.json")
    require(done.returncode == 0, "the report verifies", done.stderr)
    done = call("falsify-adapters", "schema")
    require(json.loads(done.stdout)["$schema"].startswith("https://"), "the schema is there")
    done = call("falsify-adapters", "quickstart", "quick")
    require(done.returncode == 0, "the quickstart is written")
    done = call("falsify-adapters", "audit", "quick/qrels.trec")
    require(done.returncode == 0, "an audit runs", done.stderr)


def extras_are_named(bin_folder: Path, work: Path) -> None:
    """Ask for each optional feature; the refusal names its extra."""
    call = Caller(bin_folder, work)
    (work / "run.lz4").write_bytes(b"\x04\x22\x4d\x18" + bytes(20))
    (work / "run.parquet").write_bytes(b"PAR1" + bytes(20) + b"PAR1")
    results = work / "results" / "owner__model" / "rev"
    results.mkdir(parents=True)
    row = {"hf_subset": "default", "languages": [], "main_score": 0.9, "ndcg_at_10": 0.9}
    facts = {"task_name": "SciFact", "mteb_version": "2.1.0", "dataset_revision": "x"}
    (results / "SciFact.json").write_text(json.dumps({**facts, "scores": {"test": [row]}}))
    size = ("--corpus-size", 261)
    tries = {
        "report": ("falsify-ir", "quick/qrels.trec", "quick/bm25.trec", *size, "--html", "x.html"),
        "lz4": ("falsify-ir", "quick/qrels.trec", "run.lz4", *size),
        "parquet": ("falsify-ir", "quick/qrels.trec", "run.parquet", *size),
        "mcp": ("falsify-adapters", "mcp"),
        "mteb-core": ("falsify-mteb", "results", "--download"),
    }
    for extra, (command, *arguments) in tries.items():
        done = call(command, *arguments)
        named = f"falsify-adapters[{extra}]" in done.stdout + done.stderr
        refused = done.returncode == 2 and "Traceback" not in done.stderr
        require(named and refused, f"{command} names the extra {extra}", done.stderr)
    done = call("python", "-c", PLOT)
    require("falsify-adapters[report]" in done.stderr, "plot names the extra report", done.stderr)


if __name__ == "__main__":
    main()
