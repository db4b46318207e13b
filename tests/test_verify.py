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
from tests.adapters import test_sources
from tests.cli_runs import call, write_dataset, write_qrels, write_run
from tests.pages import write_mteb
from tests.test_schema import check

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


def test_a_report_in_which_all_was_refused_is_not_verified(made: Path) -> None:
    path = made.parent / "report.json"
    (made / "bad.trec").write_text("garbage\n")
    result = call("ir", made / "gold.trec", made / "bad.trec", "-q", "--json", path)
    assert (result.exit_code, json.loads(path.read_text())["reports"]) == (2, [])
    result = verify(made)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "report.json has no result to verify" in result.stderr


def test_a_refused_run_cannot_be_hidden(made: Path) -> None:
    path = made.parent / "report.json"
    (made / "bad.trec").write_text("garbage\n")
    runs = (made / "a" / "mine.trec", made / "bad.trec")
    assert call("ir", made / "gold.trec", *runs, "-q", "--json", path).exit_code == 2
    assert verify(made).exit_code == 0
    report = json.loads(path.read_text())
    path.write_text(json.dumps({**report, "errors": []}))
    result = verify(made)
    assert result.exit_code == 1
    assert "refused inputs: was 0 entries, is 1 entry" in result.stdout


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


@pytest.mark.parametrize("option", ["clusters", "strata", "pool", "qrels", "queries"])
@pytest.mark.parametrize("place", ["{}/secret", "../secret"])
def test_a_report_cannot_make_it_read_elsewhere(made: Path, option: str, place: str) -> None:
    (made.parent / "secret").write_text("q000\tkept to myself\n")

    def edit(document: dict[str, Any]) -> None:
        document["call"]["options"][option] = place.format(made.parent)
        inputs = document["call"]["inputs"]
        document["call"]["inputs"] = [one for one in inputs if one["option"] != option]

    result = edited(made, edit)
    assert result.exit_code == 2
    assert "secret is not there" in result.stderr
    assert "kept to myself" not in result.stderr + result.stdout


def test_data_sets_are_found_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_dataset(tmp_path / "data" / "scifact", 40)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FALSIFY_DATA_DIR", "data")  # relative to this folder
    made = call("beir", "-d", "scifact", *FAST, "--offline", "--json", "report.json")
    assert made.exit_code == 0, made.stderr
    again = call("verify", "report.json")
    assert again.exit_code == 0, again.stdout + again.stderr


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


def graded(folder: Path, command: str, *arguments: Any) -> Path:
    """Grade, and return the report, which lies beside the folder of the inputs."""
    target = folder.parent / "report.json"
    result = call(command, *arguments, *FAST, "--json", target)
    assert result.exit_code in (0, 1, 3), result.stderr
    return target


def assert_verifies(report: Path, data: Path) -> None:
    result = call("verify", report, "--data", data)
    assert result.exit_code == 0, result.stdout + result.stderr
    assert "Verified: " in result.stdout


def assert_refused(report: Path, data: Path, changed: Path, *, into: bytes | None = None) -> None:
    """A changed file is refused by its name, and the folder verifies again without the change."""
    content = changed.read_bytes()
    changed.write_bytes(into or content.replace(b"d001", b"d002", 1))
    assert changed.read_bytes() != content
    result = call("verify", report, "--data", data)
    assert result.exit_code == 2, result.stdout
    assert changed.name in result.stderr
    changed.write_bytes(content)
    assert_verifies(report, data)


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """A folder with everything that ``falsify-ir`` can be told about one benchmark."""
    folder = tmp_path / "inputs"
    write_qrels(folder / "gold.trec", 60)
    write_run(folder / "runs" / "mine.trec", 60)
    write_run(folder / "runs" / "other.trec", 60, "blind")
    old = write_run(folder / "old" / "mine.trec", 60, "blind")
    old.write_text(old.read_text().replace(" tag", " old"))
    write_qrels(folder / "llm" / "gold.trec", 50)
    names = [f"q{i:03}" for i in range(60)]
    rows = {"clusters.tsv": [f"{q}\tc{i // 2}" for i, q in enumerate(names)]}
    rows["strata.tsv"] = [f"{q}\ts{i % 3}" for i, q in enumerate(names)]
    rows["pool.txt"] = [f"d{i:03}" for i in range(99)]
    rows["queries.jsonl"] = [
        json.dumps({"_id": q, "text": f"text of {q}", "metadata": {"lang": f"l{i % 2}"}})
        for i, q in enumerate(names)
    ]
    for name, lines in rows.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


def test_a_second_look_verifies_with_all_its_files(inputs: Path) -> None:
    report = graded(
        inputs,
        *("ir", inputs / "gold.trec", inputs / "runs" / "mine.trec", "--by-grade"),
        *("--baseline", inputs / "old" / "mine.trec", "--alt-qrels", inputs / "llm" / "gold.trec"),
        *("--clusters", inputs / "clusters.tsv", "--strata", inputs / "strata.tsv"),
        *("--pool", inputs / "pool.txt", "-m", "RR@5"),
    )
    document = json.loads(report.read_text())
    check(document)
    assert {one["kind"] for one in document["reports"]} == {
        *("gate", "comparison", "grades", "judgements")
    }
    assert str(inputs) not in report.read_text()
    for name in ("old/mine.trec", "llm/gold.trec", "clusters.tsv", "strata.tsv", "pool.txt"):
        path = inputs / name
        swapped = path.read_bytes().replace(b"1", b"7", 1)
        assert_refused(report, inputs, path, into=swapped)


@pytest.mark.parametrize("part", ["baseline", "candidate", "judge"])
def test_the_frames_of_a_second_look_are_compared(inputs: Path, part: str) -> None:
    report = graded(
        inputs,
        *("ir", inputs / "gold.trec", inputs / "runs" / "mine.trec", "--corpus-size", "99"),
        *("--baseline", inputs / "old" / "mine.trec", "--alt-qrels", inputs / "llm" / "gold.trec"),
    )
    document = json.loads(report.read_text())
    kind = "judgements" if part == "judge" else "comparison"
    [one] = [one for one in document["reports"] if one["kind"] == kind]
    one["provenance"]["frames"][part]["sha256"] = "0" * 64
    report.write_text(json.dumps(document))
    result = call("verify", report, "--data", inputs)
    assert result.exit_code == 1
    assert f"frames {part} sha256" in result.stdout


def test_columns_of_the_queries_and_words_in_place_of_files_verify(inputs: Path) -> None:
    report = graded(
        inputs,
        *("ir", inputs / "gold.trec", inputs / "runs" / "mine.trec", "--corpus-size", "99"),
        *("--clusters", "auto", "--strata", "lang", "--queries", inputs / "queries.jsonl"),
    )
    assert_verifies(report, inputs)
    changed = (inputs / "queries.jsonl").read_bytes().replace(b"l1", b"l0", 1)
    assert_refused(report, inputs, inputs / "queries.jsonl", into=changed)
    report = graded(
        inputs,
        *("ir", inputs / "gold.trec", inputs / "runs" / "mine.trec", "--pool", "99"),
        *("--strata", "gold-count", "--blocks", "5:lang", "--queries", inputs / "queries.jsonl"),
    )
    assert_verifies(report, inputs)


@pytest.mark.parametrize("runs", ["runs", "runs/*.trec"])
def test_folders_and_patterns_of_runs_verify_with_measures_after_them(
    inputs: Path, runs: str
) -> None:
    report = graded(
        inputs, "ir", inputs / "gold.trec", inputs / runs, "R@5", "RR@5", "--corpus-size", "99"
    )
    options = json.loads(report.read_text())["call"]["options"]
    assert options["runs"] == ["mine.trec", "other.trec"]
    assert options["measures"] == ["R@5", "RR@5"]
    assert_refused(report, inputs, inputs / "runs" / "other.trec")


def test_runs_of_one_name_keep_the_names_of_their_systems(
    inputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(inputs / "runs")  # so that one has a folder in its name and one has not
    report = graded(inputs, "ir", "../gold.trec", "mine.trec", "../old/mine.trec", "--pool", "99")
    systems = [one["system"] for one in json.loads(report.read_text())["reports"]]
    assert systems == ["mine", "old/mine"]
    assert_verifies(report, inputs)


def test_compressed_inputs_verify_packed_and_unpacked(inputs: Path) -> None:
    for path in (inputs / "gold.trec", inputs / "runs" / "mine.trec"):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    report = graded(
        inputs, "ir", inputs / "gold.trec.gz", inputs / "runs" / "mine.trec.gz", "--pool", "99"
    )
    assert_verifies(report, inputs)
    packed = inputs / "runs" / "mine.trec.gz"
    packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
    packed.unlink()
    assert_verifies(report, inputs)


def test_one_path_for_several_data_sets_verifies(tmp_path: Path) -> None:
    folder = tmp_path / "inputs"
    for name in ("one", "two"):
        write_dataset(folder / name, 40, prefix=name)
        write_run(folder / "runs" / f"{name}.trec", 40, prefix=name)
        write_run(folder / "old" / name / "bm25.trec", 40, "blind", prefix=name)
    report = graded(
        folder,
        *("beir", "-d", folder / "one", "-d", folder / "two", "--offline"),
        *("-r", folder / "runs" / "{dataset}.trec"),
        *("--baseline", folder / "old" / "{dataset}" / "bm25.trec"),
    )
    assert_verifies(report, folder)
    changed = (folder / "runs" / "two.trec").read_bytes().replace(b"d001", b"d003", 1)
    assert_refused(report, folder, folder / "runs" / "two.trec", into=changed)


def test_the_log_of_a_tool_verifies(tmp_path: Path) -> None:
    folder = tmp_path / "inputs"
    folder.mkdir()
    path = test_sources.jsonl(folder / "samples.jsonl", test_sources.ragas_rows())
    for source in ("ragas", "auto"):
        report = graded(folder, "ir", "--from", source, path, "R@5", "--corpus-size", "1200")
        assert_verifies(report, folder)
    changed = path.read_bytes()[:-2].rpartition(b"\n")[0] + b"\n"
    assert_refused(report, folder, path, into=changed)


def test_a_source_of_two_files_verifies(tmp_path: Path) -> None:
    folder = tmp_path / "inputs"
    folder.mkdir()
    recommended, held_out = test_sources.recommendations()
    recommended.to_csv(folder / "top_k.csv", index=False)
    held_out.to_csv(folder / "held_out.csv", index=False)
    files = [folder / "held_out.csv", folder / "top_k.csv"]
    report = graded(folder, "ir", "--from", "recommender", *files, "R@10", "--corpus-size", "20000")
    assert_verifies(report, folder)


def test_mteb_results_and_predictions_verify(tmp_path: Path) -> None:
    folder = tmp_path / "inputs"
    folder.mkdir()
    write_mteb(folder, 40)
    report = graded(
        folder, "mteb", folder / "predictions", folder / "results", "--qrels", folder / "qrels"
    )
    kinds = [one["kind"] for one in json.loads(report.read_text())["reports"]]
    assert "gate" in kinds
    assert_verifies(report, folder)
    for path in (
        folder / "predictions" / "NFCorpus_predictions.json",
        folder / "qrels" / "nfcorpus.qrels",
    ):
        assert_refused(report, folder, path)
    result = folder / "results" / "org__model" / "r1" / "NFCorpus.json"
    assert_refused(report, folder, result, into=result.read_bytes().replace(b"1.0", b"0.5"))
    report = graded(folder, "mteb", folder / "results", "--qrels", folder / "qrels")
    assert_refused(report, folder, result, into=result.read_bytes().replace(b"1.0", b"0.5"))
    result.unlink()
    again = call("verify", report, "--data", folder)
    assert again.exit_code == 2
    assert "a result is not there any more: certificate" in again.stderr or (
        "nothing here can be graded" in again.stderr
    )


def test_a_file_that_is_new_in_a_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "inputs"
    folder.mkdir()
    write_mteb(folder, 40)
    report = graded(folder, "mteb", folder / "results", "--qrels", folder / "qrels")
    place = folder / "results" / "org__model" / "r1"
    other = place.with_name("r2")
    other.mkdir()
    (other / "NFCorpus.json").write_bytes((place / "NFCorpus.json").read_bytes())
    result = call("verify", report, "--data", folder)
    assert result.exit_code == 2
    assert "a result was not there: certificate" in result.stderr


def test_the_folder_of_the_data_may_be_the_data_set_itself(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "small", 40)
    report = graded(folder, "beir", "-d", folder, "--offline")
    assert_verifies(report, folder)


def test_what_came_from_standard_input_cannot_be_verified(inputs: Path) -> None:
    report = inputs.parent / "report.json"
    made = call(
        *("ir", inputs / "gold.trec", "-", "--pool", "99", *FAST, "--json", report),
        input=(inputs / "runs" / "mine.trec").read_text(),
    )
    assert made.exit_code == 0, made.stderr
    result = call("verify", report, "--data", inputs)
    assert result.exit_code == 2
    assert "standard input cannot be read again; hint: save it to a file" in result.stderr


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
        {"reports": [{"provenance": ["a"]}]},
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
