"""A report can be computed again from its inputs; what has changed is named."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from falsify_adapters.report.differences import Comparison
from tests.cli_runs import call, write_dataset, write_qrels, write_run

FAST = ("--n-trials", "160", "--n-boot", "160", "-q")


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A folder with inputs, and the report on them beside it."""
    inputs = tmp_path / "inputs"
    write_qrels(inputs / "gold.trec", 40)
    write_run(inputs / "a" / "mine.trec", 40)
    write_run(inputs / "b" / "mine.trec", 40, "blind")
    (inputs / "out.txt").write_text("q000 d001\n")

    result = call(
        *("ir", inputs / "gold.trec", inputs / "a" / "mine.trec", inputs / "b" / "mine.trec"),
        *(*FAST, "--corpus-size", "99", "--drop-self", "--exclude", inputs / "out.txt"),
        *("--tau", "0.1", "-m", "nDCG@10", "-m", "R@5", "--json", tmp_path / "report.json"),
    )
    assert result.exit_code == 1, result.stderr
    return inputs


def verify(made: Path, *more: Any) -> Any:
    return call("verify", made.parent / "report.json", "--data", made, *more)


def test_an_untouched_folder_verifies(made: Path) -> None:
    result = verify(made)
    assert result.exit_code == 0, result.stdout + result.stderr
    assert "Verified: " in result.stdout
    assert "in 4 reports agree to 12 digits" in result.stdout


def test_inputs_are_found_by_content_under_other_names(made: Path) -> None:
    content = (made / "a" / "mine.trec").read_bytes()
    (made / "deep").mkdir()
    (made / "deep" / "renamed.gz").write_bytes(gzip.compress(content))
    (made / "a" / "mine.trec").unlink()
    (made / "gold.trec").rename(made / "deep" / "judgements")
    assert verify(made).exit_code == 0


@pytest.mark.parametrize("name", ["gold.trec", "a/mine.trec", "out.txt"])
def test_a_changed_input_is_refused_by_name(made: Path, name: str) -> None:
    path = made / name
    path.write_text(path.read_text().replace("d001", "d002", 1))
    result = verify(made)
    assert result.exit_code == 2
    assert f"{name} has changed" in result.stderr or f"{Path(name).name} has" in result.stderr
    assert "Verified" not in result.stdout


def test_a_missing_input_is_refused_by_name(made: Path) -> None:
    (made / "out.txt").unlink()
    result = verify(made)
    assert result.exit_code == 2
    assert "out.txt is not there" in result.stderr


def edited(made: Path, edit: Callable[[dict[str, Any]], None]) -> Any:
    path = made.parent / "report.json"
    document = json.loads(path.read_text("utf-8"))
    edit(document)
    path.write_text(json.dumps(document))
    return verify(made)


def set_score(document: dict[str, Any]) -> None:
    document["reports"][1]["score"] += 1e-11


def set_bound(document: dict[str, Any]) -> None:
    document["reports"][3]["nulls"]["D"]["low"] += 1e-6


def set_verdict(document: dict[str, Any]) -> None:
    document["reports"][2]["verdict"] = "PASS"


def set_frame(document: dict[str, Any]) -> None:
    document["reports"][0]["provenance"]["frames"]["run"]["sha256"] = "0" * 64


@pytest.mark.parametrize(
    ("edit", "place"),
    [
        (set_score, "score"),
        (set_bound, "nulls D low"),
        (set_verdict, "verdict"),
        (set_frame, "frames run sha256"),
    ],
)
def test_a_changed_figure_is_found(
    made: Path, edit: Callable[[dict[str, Any]], None], place: str
) -> None:
    result = edited(made, edit)
    assert result.exit_code == 1, result.stderr
    assert f": {place}: was " in result.stdout or f" {place}: was " in result.stdout
    assert "NOT VERIFIED: 1 difference" in result.stdout


def test_other_versions_are_named_and_allow_for_rounding(made: Path) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["environment"]["packages"]["numpy"] = "0.1"
        document["reports"][1]["score"] += 1e-11

    result = edited(made, edit)
    assert result.exit_code == 0, result.stdout
    assert "note: numpy was 0.1, is " in result.stdout
    assert "agree to 1e-9" in result.stdout


def test_a_label_cannot_lead_out_of_the_folder(made: Path) -> None:
    def edit(document: dict[str, Any]) -> None:
        document["call"]["options"]["exclude"] = "../../out.txt"
        for one in document["call"]["inputs"]:
            if one["name"] == "out.txt":
                one["name"] = "../../out.txt"

    result = edited(made, edit)
    assert result.exit_code == 2
    assert "leads out of the folder" in result.stderr


def test_bm25_on_a_folder_verifies_and_a_changed_corpus_is_refused(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "x" / "small", 40)
    report = tmp_path / "report.json"
    made = call("beir", "-d", folder, "--controls", *FAST, "--offline", "--json", report)
    assert made.exit_code == 0
    again = call("verify", report, "--data", tmp_path / "x")
    assert again.exit_code == 0, again.stdout + again.stderr
    corpus = folder / "corpus.jsonl"
    corpus.write_text(corpus.read_text().replace("word7 ", "other ", 1))
    again = call("verify", report, "--data", tmp_path / "x")
    assert again.exit_code == 2
    assert "changed since the report: corpus corpus.jsonl" in again.stderr


def test_audits_verify_under_the_name_of_their_folder(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "data" / "small", 40)
    report = tmp_path / "report.json"
    assert call("audit", folder / "qrels" / "test.tsv", "--json", report).exit_code == 0
    again = call("verify", report, "--data", tmp_path / "data")
    assert again.exit_code == 0, again.stdout + again.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "is no report of this version"),
        ('{"schema": "falsify-adapters/report/1"}', "does not say how it was made"),
        (
            '{"schema": "falsify-adapters/report/1", "call": {"command": "rm"}}',
            "does not say how it was made",
        ),
    ],
)
def test_what_is_no_report_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "report.json"
    path.write_text(content)
    result = call("verify", path)
    assert result.exit_code == 2
    assert message in result.stderr


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


@given(values)
def test_nothing_differs_from_itself(value: Any) -> None:
    assert not list(Comparison(exact=True).differences(value, value))


@given(values, values)
def test_what_differs_is_found(one: Any, other: Any) -> None:
    found = list(Comparison(exact=True).differences({"x": one}, {"x": other}))
    same = json.dumps(plain(one), sort_keys=True) == json.dumps(plain(other), sort_keys=True)
    assert bool(found) != same


def plain(value: Any) -> Any:
    """Write what counts as equal alike: 1 and 1.0, and a key without a value like no key."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def test_a_lock_tells_what_changed(made: Path) -> None:
    folder = made.parent
    assert call("lock", folder, "--scores").exit_code == 0
    text = (folder / "falsify.lock").read_text()
    assert "# report.json: nDCG@10 1.0000 PASS a/mine on gold" in text
    assert call("verify-lock", folder).exit_code == 0
    (made / "gold.trec").write_text("q 0 d 1\n")
    (made / "out.txt").unlink()
    (made / "more").write_text("")
    result = call("verify-lock", folder)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == [
        "inputs/gold.trec",
        "inputs/more",
        "inputs/out.txt",
    ]
    assert "changed (8 bytes" in lines[0]
    assert lines[1].endswith("new")
    assert lines[2].endswith("missing")


def test_a_lock_twice_is_the_same_and_no_link_leads_out(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    write_run(folder / "a b" / "run ü.trec", 3)
    call("lock", folder)
    first = (folder / "falsify.lock").read_bytes()
    call("lock", folder)
    assert (folder / "falsify.lock").read_bytes() == first
    assert call("verify-lock", folder).exit_code == 0
    (tmp_path / "secret").write_text("x")
    (folder / "link").symlink_to(tmp_path / "secret")
    result = call("lock", folder)
    assert result.exit_code == 2
    assert "leads out of the folder" in result.stderr


@pytest.mark.parametrize("content", ["", "hello\n", "falsify-adapters lock 1\nabc\n"])
def test_a_broken_lock_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "falsify.lock").write_text(content)
    result = call("verify-lock", tmp_path)
    assert result.exit_code == 2
    assert "falsify.lock" in result.stderr


@pytest.mark.parametrize(
    "change",
    [
        {"reports": None},
        {"reports": [3]},
        {"environment": None},
        {"environment": {}},
        {"call": {"command": "falsify-ir"}},
        {"call": {"command": "falsify-ir", "options": {"qrels": 3}, "inputs": []}},
        {"call": {"command": "falsify-ir", "options": {}, "inputs": [4]}},
        {"call": {"command": "falsify-ir", "options": {}, "inputs": [{"name": "a"}]}},
    ],
)
def test_what_has_not_the_shape_of_a_report_is_refused(made: Path, change: dict[str, Any]) -> None:
    path = made.parent / "report.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **change}))
    result = verify(made)
    assert result.exit_code == 2
    assert "report.json has not the shape of a report" in result.stderr


@pytest.mark.parametrize("option", ["csv_to", "json_to", "html_to", "download", "base_url"])
def test_a_report_does_not_make_verify_write_or_fetch(made: Path, option: str) -> None:
    path, victim = made.parent / "report.json", made.parent / "mine.txt"
    victim.write_text("mine")
    document = json.loads(path.read_bytes())
    if option == "base_url":
        document["call"]["command"] = "falsify-beir"
    if option == "download":
        document["call"]["command"] = "falsify-mteb"
    document["call"]["options"] = {option: str(victim)}
    document["call"]["inputs"] = []
    path.write_text(json.dumps(document))
    result = verify(made)
    assert result.exit_code == 2
    assert f"the report has an option that reports never hold; found: {option}" in result.stderr
    assert victim.read_text() == "mine"
