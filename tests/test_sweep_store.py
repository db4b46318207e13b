"""The folder of finished units: whole files or none, one table, nothing stale, nothing foreign."""

from __future__ import annotations

import errno
import json
import os
import time
from pathlib import Path

import pandas as pd
import pytest

from falsify_adapters import Evaluation, GateConfig
from falsify_adapters.errors import InputError, MissingExtraError, UsageError
from falsify_adapters.gate import run_gate
from falsify_adapters.report.outcome import Outcome, Refusal
from falsify_adapters.report.table import COLUMNS, rows
from falsify_adapters.sweep.codec import pack
from falsify_adapters.sweep.finished import Event, Finished
from falsify_adapters.sweep.store import TOGETHER, Store, key_of

KEY, OTHER = key_of({"unit": 1}), key_of({"unit": 2})


@pytest.fixture(scope="module")
def finished() -> Finished:
    qrels = {f"q{i}": {f"d{i}": 1} for i in range(30)}
    run = {f"q{i}": {f"d{i}": 1.0, "x": 0.5} for i in range(30)}
    evaluation = Evaluation.create(run, qrels, corpus_size=99, system="mine", benchmark="made")
    config = GateConfig(n_trials=160, n_boot=160)
    reports = [run_gate(evaluation, measure, config) for measure in ("nDCG@10", "RR@10")]
    refusal = Refusal("mine, AP", InputError("no"))
    return Finished((*(Event(r, "mine") for r in reports), Event(refusal)), evaluated=True)


def test_a_unit_is_kept_and_the_folder_is_one_flat_table(
    tmp_path: Path, finished: Finished
) -> None:
    store = Store(str(tmp_path / "new" / "kept"))
    assert store.load(KEY) is None
    store.save(KEY, finished)
    store.save(OTHER, finished)
    store.save(key_of({"unit": 3}), Finished((Event(finished.gate_reports()[0]),)), together=True)
    # errors are equal to nothing but themselves: what they hold is compared
    assert pack(Store(str(store.folder)).load(KEY)) == pack(finished)
    frame = pd.read_parquet(store.folder)
    assert len(frame) == 4
    assert list(frame.columns) == ["unit", *COLUMNS, "report", "state"]
    expected = list(rows(Outcome(reports=list(finished.gate_reports()))))
    for found, row in zip(frame[frame["unit"] == KEY].to_dict("records"), expected, strict=True):
        for name, value in row.items():
            assert (pd.isna(found[name]) and value is None) or found[name] == value
    reports = [json.loads(text) for text in frame.loc[frame["unit"] == KEY, "report"]]
    assert reports == [report.to_dict() for report in finished.gate_reports()]


def test_the_same_unit_gives_the_same_bytes(tmp_path: Path, finished: Finished) -> None:
    for name in ("a", "b"):
        Store(str(tmp_path / name)).save(KEY, finished)
    one, other = ((tmp_path / name / f"{KEY}.parquet").read_bytes() for name in ("a", "b"))
    assert one == other


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "renamed", "folder"])
def test_a_damaged_unit_is_none_and_named(tmp_path: Path, finished: Finished, damage: str) -> None:
    store = Store(str(tmp_path))
    store.save(KEY, finished)
    path = tmp_path / f"{KEY}.parquet"
    content = path.read_bytes()
    if damage == "renamed":
        path = path.replace(tmp_path / f"{OTHER}.parquet")
    elif damage == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes({"cut": content[:-9], "empty": b"", "text": b"hello"}[damage])
    assert store.load(path.stem) is None
    assert store.damaged == [path.name]


def test_no_changed_bit_gives_another_unit(tmp_path: Path, finished: Finished) -> None:
    store = Store(str(tmp_path))
    store.save(KEY, finished)
    path = tmp_path / f"{KEY}.parquet"
    content = path.read_bytes()
    for at in range(3, len(content), max(1, len(content) // 150)):
        path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        found = store.load(KEY)
        assert found is None or pack(found) == pack(finished)
    assert len(store.damaged) > 50


def test_what_others_wrote_is_not_touched(tmp_path: Path, finished: Finished) -> None:
    (tmp_path / "paper.pdf").write_text("mine")
    with pytest.raises(UsageError, match=r"no folder of finished runs; found: paper\.pdf"):
        Store(str(tmp_path))
    assert (tmp_path / "paper.pdf").read_text() == "mine"
    (tmp_path / "paper.pdf").unlink()
    (tmp_path / ".DS_Store").write_text("hidden files are nobody's business")
    Store(str(tmp_path)).save(KEY, finished)
    assert len(pd.read_parquet(tmp_path)) == 2


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be used"):
        Store(str(tmp_path / "file"))
    with pytest.raises(UsageError, match="cannot be used"):
        Store(str(tmp_path / "file" / "below"))


def test_a_folder_that_may_not_be_written_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # permissions do not stop root, as which tests may run
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UsageError, match="may not be written to"):
        Store(str(tmp_path))


def test_a_full_disk_leaves_no_half_unit(
    tmp_path: Path, finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(str(tmp_path))
    store.save(KEY, finished)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="No space left"):
        store.save(OTHER, finished)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{KEY}.parquet", TOGETHER]
    assert len(pd.read_parquet(tmp_path)) == 2


def test_what_a_kill_left_is_no_result_and_goes_in_time(tmp_path: Path, finished: Finished) -> None:
    store = Store(str(tmp_path))
    store.save(KEY, finished)
    half = [tmp_path / f".{OTHER}.parquet.{name}.part" for name in ("old", "new")]
    for path in half:
        path.write_bytes(b"PAR1")
    os.utime(half[0], (time.time() - 7200,) * 2)
    assert Store(str(tmp_path)).load(OTHER) is None
    assert [path.exists() for path in half] == [False, True]
    assert len(pd.read_parquet(tmp_path)) == 2


def test_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("falsify_adapters.sweep.store.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"falsify-adapters\[parquet\]"):
        Store(str(tmp_path))
