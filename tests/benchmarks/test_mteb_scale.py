"""The scale script at a thousandth of its size: it must keep working."""

from __future__ import annotations

from pathlib import Path

from tests.benchmarks.mteb_scale import make_tree, measure


def test_both_readers_see_every_file_in_little_memory(tmp_path: Path) -> None:
    make_tree(tmp_path, 120)
    files = {reader: measure(reader, tmp_path) for reader in ("json", "walk")}
    # 120 result files of three models, and the models' descriptions
    assert {took["files"] for took in files.values()} == {123}
    assert files["walk"]["peak_mb"] < 1000


def test_the_same_seed_makes_the_same_tree(tmp_path: Path) -> None:
    for name in ("one", "two"):
        make_tree(tmp_path / name, 10)
    one, two = (
        {path.relative_to(tmp_path / name): path.read_bytes()
         for path in sorted((tmp_path / name).rglob("*.json"))}
        for name in ("one", "two")
    )  # fmt: skip
    assert one == two
