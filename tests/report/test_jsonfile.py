"""The JSON document: schema, strictness, and files that are whole or not there."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.report.jsonfile import to_json, write_atomically
from falsify_adapters.report.outcome import Outcome, Refusal, Skip
from tests.report_factory import gate_report, note


def refuse_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def parsed(outcome: Outcome) -> dict:
    return json.loads(to_json(outcome), parse_constant=refuse_constant)


def test_the_document_has_the_keys_of_the_schema() -> None:
    document = parsed(
        Outcome(
            [gate_report(warnings=(note(),))],
            [Refusal("a.trec", InputError("a.trec is empty", hint="check it"))],
            [Skip("b.log", "not a run")],
        )
    )
    assert list(document) == [
        *("schema", "reports", "errors", "skipped", "call", "environment", "plan")
    ]
    assert document["schema"] == "falsify-adapters/report/1"
    (report,) = document["reports"]
    assert set(report) >= {
        *("kind", "role", "benchmark", "split", "task", "subset", "model", "revision", "system"),
        *("measure", "n_queries", "corpus_size", "corpus_size_source", "score", "score_answered"),
        *("tau", "verdict", "definition_1", "nulls", "distinct_nulls", "ceiling", "companion"),
        *("ties", "power", "warnings", "settings", "provenance"),
    }
    assert list(report["nulls"]) == list("ABCD")
    for null in report["nulls"].values():
        assert set(null) >= {
            *("mean", "mean_error", "delta", "low", "high", "p_value", "luck_margin"),
            *("adjusted", "attainable", "verdict"),
        }
    assert report["warnings"] == [{"code": "W-TIES", "message": "12 queries have tied scores"}]
    assert document["errors"] == [
        {
            "input": "a.trec",
            "kind": "InputError",
            "lacks": "a.trec is empty",
            "found": None,
            "hint": "check it",
        }
    ]
    assert document["skipped"] == [{"input": "b.log", "reason": "not a run"}]


def test_undefined_numbers_are_null() -> None:
    report = gate_report(deltas=(float("nan"), float("inf"), -float("inf"), 0.1))
    nulls = parsed(Outcome([report]))["reports"][0]["nulls"]
    assert [nulls[name]["delta"] for name in "ABC"] == [None, None, None]


def test_same_outcome_same_bytes() -> None:
    assert to_json(Outcome([gate_report()])) == to_json(Outcome([gate_report()]))


def test_names_of_any_kind_survive() -> None:
    for name in ("é\u2028\x00\x1b", "\udc80 from a file name", '"}</script>'):
        assert parsed(Outcome([gate_report(name)]))["reports"][0]["system"] == name


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")
    write_atomically(target, to_json(Outcome([gate_report()])))
    assert json.loads(target.read_bytes())["reports"]
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_a_failed_write_leaves_the_old_file_and_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(UsageError, match=r"cannot write .*report\.json.*No space left"):
        write_atomically(target, to_json(Outcome()))
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_atomically(tmp_path / "report.json", to_json(Outcome()))
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "report.json").stat().st_mode) == 0o640


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link.json").symlink_to("real.json")
    write_atomically(tmp_path / "link.json", to_json(Outcome()))
    assert (tmp_path / "link.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_bytes())


@pytest.mark.parametrize("target", ["nowhere/report.json", "."])
def test_a_place_that_cannot_be_written_is_a_usage_error(tmp_path: Path, target: str) -> None:
    with pytest.raises(UsageError, match="cannot write"):
        write_atomically(tmp_path / target, to_json(Outcome()))


def test_a_device_is_written_to_and_not_replaced() -> None:
    write_atomically(os.devnull, to_json(Outcome()))
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
