"""How fast a large tree of MTEB result files is walked, beside Python's own json module.

    python tests/benchmarks/mteb_scale.py [--files 100000] [--folder DIR]

Makes a synthetic tree, reads it with ``json.load`` file by file, then with this package, each in a
process of its own, and prints rates and peak memory. The files have what real ones have: about 130
scores, several splits in some, NaN in others, old layouts, stubs, files of other task types.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.benchmarks.memory import peak_megabytes

KS = (1, 3, 5, 10, 20, 100, 1000)
#: Real names, so that facts about tasks are looked up as in real trees.
TASKS = (
    *("ArguAna", "ClimateFEVER", "FEVER", "FiQA2018", "HotpotQA", "MSMARCO", "NFCorpus", "NQ"),
    *("QuoraRetrieval", "SCIDOCS", "SciFact", "TRECCOVID", "Touche2020", "DBPedia"),
)


def scores(rng: random.Random) -> dict[str, Any]:
    names = ("ndcg", "map", "recall", "precision", "mrr")
    row: dict[str, Any] = {f"{n}_at_{k}": round(rng.random(), 5) for n in names for k in KS}
    for name in names:
        for k in KS[:4]:
            for of in ("max", "std", "diff1"):
                row[f"nauc_{name}_at_{k}_{of}"] = round(rng.uniform(-1, 1), 6)
    if rng.random() < 0.2:
        row["nauc_map_at_1_max"] = float("nan")
    row["main_score"] = row["ndcg_at_10"]
    return row | {"hf_subset": "default", "languages": ["eng-Latn"]}


def content(task: str, rng: random.Random) -> dict[str, Any]:
    kind = rng.random()
    if kind < 0.02:
        return {"test": {"ndcg_at_10": round(rng.random(), 5)}, "mteb_dataset_name": task}
    if kind < 0.04:
        old = {key: value for key, value in scores(rng).items() if key.endswith("_10")}
        return {"mteb_dataset_name": task, "mteb_version": "1.0.1", "test": old}
    splits = ["dev", "test"] if kind < 0.1 else ["test"]
    return {
        "dataset_revision": "1" * 40,
        "task_name": task,
        "mteb_version": "1.12.75",
        "scores": {split: [scores(rng)] for split in splits},
        "evaluation_time": 12.5,
        "kg_co2_emissions": None,
    }


def make_tree(folder: Path, n_files: int, seed: int = 0) -> None:
    rng = random.Random(seed)
    made = 0
    model = 0
    while made < n_files:
        place = folder / "results" / f"org{model % 97}__model-{model}" / f"{model:040x}"
        place.mkdir(parents=True)
        meta = {"name": f"org{model % 97}/model-{model}", "revision": f"{model:040x}"}
        (place / "model_meta.json").write_text(json.dumps(meta))
        for task in range(40):
            if made == n_files:
                break
            name = TASKS[task] if task < len(TASKS) else f"Synthetic{task}Retrieval"
            text = json.dumps(content(name, rng), indent=2)
            (place / f"{name}.json").write_text(text)
            made += 1
        model += 1


def read_with_json(folder: Path) -> int:
    count = 0
    for path in sorted(folder.rglob("*.json")):
        with path.open(encoding="utf-8") as file:
            json.load(file)
        count += 1
    return count


def read_with_walk(folder: Path) -> int:
    from falsify_adapters.adapters.mteb import MtebFolder

    return sum(MtebFolder(folder).summary.files.values())


READERS = {"json": read_with_json, "walk": read_with_walk}


def child(reader: str, folder: Path) -> None:
    """Read the tree and print what it took."""
    if reader == "walk":
        import falsify_adapters.adapters.mteb  # noqa: F401  # not part of the rate
    start = time.perf_counter()
    count = READERS[reader](folder)
    seconds = time.perf_counter() - start
    took = {"reader": reader, "files": count, "seconds": seconds, "peak_mb": peak_megabytes()}
    print(json.dumps(took))


def measure(reader: str, folder: Path) -> dict[str, Any]:
    """Read the tree in a process of its own; return files, seconds and peak memory in MB."""
    command = [sys.executable, __file__, "--child", reader, "--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="where the tree is made [a temporary folder]")
    parser.add_argument("--child", choices=READERS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.folder)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as made:
        folder = Path(made)
        make_tree(folder, options.files)
        read_with_json(folder)  # so that both find the files in the system's cache
        rates = {}
        for reader in READERS:
            took = measure(reader, folder)
            rates[reader] = took["files"] / took["seconds"]
            print(
                f"{reader}: {took['files']:,} files in {took['seconds']:.1f} s"
                f" ({rates[reader]:,.0f} files/s), peak memory {took['peak_mb']:,.0f} MB"
            )
        print(f"walk / json = {rates['walk'] / rates['json']:.2f} (at least 0.33 is asked for)")


if __name__ == "__main__":
    main()
