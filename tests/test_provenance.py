"""What a report says about its making, and that nothing else of the machine gets into it."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from falsify_adapters import (
    Evaluation,
    as_qrels,
    as_run,
    compare_systems,
    gate_by_grade,
    judge_again,
    run_gate,
)
from falsify_adapters.baselines import controls
from falsify_adapters.provenance import frame_sha256
from tests.adapters.test_sources import jsonl, ragas_rows
from tests.cli_runs import ROOT, call, in_subprocess, report, write_dataset, write_qrels, write_run
from tests.pages import write_mteb
from tests.test_schema import check

FAST = ("--n-trials", "160", "--n-boot", "160")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def by_hand(data: dict[str, dict[str, float]], pack: str) -> str:
    """Build what is hashed from a dict of dict, with a loop."""
    queries, docs = sorted(data), sorted({doc for docs in data.values() for doc in docs})
    parts = []
    for ids in (queries, docs):
        parts += [struct.pack("<q", number) for number in (len(ids), *map(len, ids))]
        parts += [one.encode() for one in ids]
    rows = []
    for query in queries:
        # ties go by doc_id, descending
        order = sorted(data[query].items(), key=lambda item: item[0], reverse=True)
        if pack == "<d":
            order.sort(key=lambda item: -item[1])
        else:
            order.reverse()
        rows += [(queries.index(query), docs.index(doc), value) for doc, value in order]
    parts += [struct.pack("<q", row[0]) for row in rows]
    parts += [struct.pack("<q", row[1]) for row in rows]
    parts += [struct.pack(pack, row[2]) for row in rows]
    return sha256(b"".join(parts))


ids = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=4).filter(
    lambda text: text.strip() == text
)


@given(
    st.dictionaries(
        ids, st.dictionaries(ids, st.integers(0, 3), min_size=1, max_size=5), min_size=1, max_size=4
    )
)
def test_the_hash_of_a_frame_is_what_its_docstring_says(data: dict[str, dict[str, int]]) -> None:
    as_scores = {q: {d: float(v) for d, v in docs.items()} for q, docs in data.items()}
    assert frame_sha256(as_run(as_scores)) == by_hand(as_scores, "<d")
    assert frame_sha256(as_qrels(data)) == by_hand(data, "<q")


def test_one_swapped_score_changes_the_hash_of_a_frame() -> None:
    one, other = {"q": {"a": 2.0, "b": 1.0}}, {"q": {"a": 1.0, "b": 2.0}}
    assert frame_sha256(as_run(one)) != frame_sha256(as_run(other))


def test_documents_that_were_dropped_leave_no_trace() -> None:
    run, qrels = {"q": {"q": 3.0, "a": 2.0}}, {"q": {"a": 1}}
    evaluation = Evaluation.create(run, qrels, keep_self=False, corpus_size=9)
    assert frame_sha256(evaluation.run) == frame_sha256(as_run({"q": {"a": 2.0}}))


def test_inputs_are_hashed_after_decompression_and_named_without_path(tmp_path: Path) -> None:
    qrels = write_qrels(tmp_path / "deep" / "gold.trec", 40)
    run = write_run(tmp_path / "mine.trec", 40)
    packed = tmp_path / "mine.trec.gz"
    packed.write_bytes(gzip.compress(run.read_bytes()))
    document = report("ir", qrels, packed, *FAST, "--corpus-size", "999")
    [one] = document["reports"]
    assert one["provenance"]["qrels"]["sha256"] == sha256(qrels.read_bytes())
    assert one["provenance"]["run"]["sha256"] == sha256(run.read_bytes())
    assert document["call"] == {
        "command": "falsify-ir",
        "options": {
            "qrels": "gold.trec",
            "runs": ["mine.trec.gz"],
            "corpus_size": 999,
            "n_boot": 160,
            "n_trials": 160,
        },
        "inputs": [
            {"option": "qrels", "name": "gold.trec", "sha256": sha256(qrels.read_bytes())},
            {"option": "runs", "name": "mine.trec.gz", "sha256": sha256(run.read_bytes())},
        ],
    }
    assert str(tmp_path) not in json.dumps(document)


def test_the_texts_that_bm25_read_are_inputs(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "small", 40)
    [one] = report("beir", "-d", folder, *FAST, "--offline", "-q")["reports"]
    for name in ("corpus", "queries"):
        content = (folder / f"{name}.jsonl").read_bytes()
        assert one["provenance"][name] == {"name": f"{name}.jsonl", "sha256": sha256(content)}


def test_a_control_does_not_claim_the_file_of_the_run_beside_it() -> None:
    evaluation = Evaluation.create(
        {"q": {"d": 1.0}}, {"q": {"d": 1}}, corpus_size=9, provenance={"run": {"name": "x.trec"}}
    )
    for control in controls(evaluation, "RR@10"):
        assert control.provenance["run"]["computed"] == control.system
    assert "run" not in evaluation.with_run({"q": {"d": 1.0}}).provenance


def test_a_report_from_the_library_describes_its_frames() -> None:
    qrels = {f"q{i}": {f"d{i}": 1} for i in range(20)}
    run = {f"q{i}": {f"d{i}": 1.0} for i in range(20)}
    frames = run_gate(Evaluation.create(run, qrels, corpus_size=99)).provenance["frames"]
    assert frames["run"] == {"sha256": frame_sha256(as_run(run)), "rows": 20, "queries": 20}
    assert frames["qrels"]["sha256"] == frame_sha256(as_qrels(qrels))


#: Two machines' worth of differences that must not show.
WORLDS = (
    {"TZ": "UTC", "PYTHONHASHSEED": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    {
        "TZ": "Pacific/Kiritimati",
        "PYTHONHASHSEED": "77",
        "LC_ALL": "C.UTF-8",
        "OPENBLAS_NUM_THREADS": "4",
        "OMP_NUM_THREADS": "4",
        "COLUMNS": "200",
    },
)


#: Command, the options that name inputs (in braces: the folder), and the kinds of report.
CALLS: dict[str, tuple[str, list[str], set[str]]] = {
    "gate": (
        "beir",
        ["-d", "{}/small", "-r", "{}/mine.trec", "--controls"],
        {"gate"},
    ),
    "comparison and refusals": (
        "ir",
        [
            *("{}/small/qrels/test.tsv", "{}/new/mine.trec", "{}/nowhere.trec", "{}/empty.trec"),
            *("--baseline", "{}/old/mine.trec", "--alt-qrels", "{}/llm.trec", "--by-grade"),
            *("--clusters", "{}/clusters.tsv", "--corpus-size", "99", "--no-playground"),
        ],
        {"gate", "comparison", "grades", "judgements"},
    ),
    "audit": ("audit", ["{}/small", "{}/llm.trec", "--held-out"], {"audit"}),
}
#: The same for calls whose figures come from code that the others call too.
MORE_CALLS: dict[str, tuple[str, list[str], set[str]]] = {
    "certificates": (
        "mteb",
        ["{}/mteb/results", "--qrels", "{}/mteb/qrels"],
        {"certificate"},
    ),
    "predictions": (
        "mteb",
        ["{}/mteb/predictions", "{}/mteb/results", "--qrels", "{}/mteb/qrels", "--no-playground"],
        {"gate", "reproduction"},
    ),
    "log": (
        "ir",
        ["--from", "auto", "{}/samples.jsonl", "--corpus-size", "1200", "--no-playground"],
        {"gate"},
    ),
}


def write_world(place: Path) -> None:
    write_dataset(place / "small", 40)
    write_run(place / "mine.trec", 40)
    write_run(place / "new" / "mine.trec", 40)
    write_run(place / "old" / "mine.trec", 40, "blind")
    write_qrels(place / "llm.trec", 30)
    write_mteb(place / "mteb", 40)
    jsonl(place / "samples.jsonl", ragas_rows())
    (place / "empty.trec").write_text("")
    rows = [f"q{i:03}\tc{i // 2}\n" for i in range(40)]
    (place / "clusters.tsv").write_text("".join(rows))


def documents(place: Path) -> list[str | Path]:
    return ["--json", place / "r.json", "--html", place / "r.html", "--markdown", place / "r.md"]


def assert_no_difference(places: list[Path], kinds: set[str]) -> None:
    """Two folders hold the same documents, which fit the schema and name no folder."""
    for ending in ("json", "html", "md"):
        first, second = ((place / f"r.{ending}").read_bytes() for place in places)
        assert first == second
        for place in places:
            assert str(place.parent).encode() not in first
            assert f"{place.name}/".encode() not in first
    document = json.loads((places[0] / "r.json").read_bytes())
    check(document)
    assert {one["kind"] for one in document["reports"]} >= kinds


@pytest.mark.parametrize("name", CALLS)
def test_two_runs_in_different_worlds_write_the_same_bytes(name: str, tmp_path: Path) -> None:
    command, inputs, kinds = CALLS[name]
    places = [tmp_path / "one" / "placed", tmp_path / "two" / "far" / "placed elsewhere"]
    for place, world in zip(places, WORLDS, strict=True):
        write_world(place)
        done = in_subprocess(
            *(command, *(one.format(place) for one in inputs), *documents(place), "-q"),
            *(() if command == "audit" else FAST),
            env={**os.environ, **world, "PYTHONPATH": str(ROOT)},
            cwd=place,
        )
        assert done.returncode == (2 if "refusals" in name else 0), done.stderr
        assert bool(done.stderr) == ("refusals" in name), done.stderr
    assert_no_difference(places, kinds)


@pytest.mark.parametrize("name", MORE_CALLS)
def test_two_runs_in_different_folders_write_the_same_bytes(name: str, tmp_path: Path) -> None:
    command, inputs, kinds = MORE_CALLS[name]
    places = [tmp_path / "one" / "placed", tmp_path / "two" / "far" / "placed elsewhere"]
    for place in places:
        write_world(place)
        result = call(command, *(one.format(place) for one in inputs), *documents(place), *FAST)
        assert result.exit_code in (0, 1, 3), result.stderr
    assert_no_difference(places, kinds)


def rounded(value: Any) -> bool:
    """Say whether no float has more than 12 significant digits."""
    if isinstance(value, dict):
        return all(map(rounded, value.values()))
    if isinstance(value, list):
        return all(map(rounded, value))
    return not isinstance(value, float) or float(f"{value:.12g}") == value


def test_every_input_is_hashed_in_json_and_page_and_floats_have_twelve_digits(
    tmp_path: Path,
) -> None:
    write_world(tmp_path)
    files = {
        *("small/qrels/test.tsv", "new/mine.trec", "old/mine.trec", "llm.trec", "clusters.tsv"),
        *("mteb/results/org__model/r1/NFCorpus.json", "mteb/qrels/nfcorpus.qrels"),
        *("samples.jsonl", "mteb/predictions/NFCorpus_predictions.json"),
    }
    seen: dict[str, bool] = dict.fromkeys(files, False)
    for command, inputs, _ in (CALLS | MORE_CALLS).values():
        options = () if command == "audit" else (*FAST, "--no-playground")
        call(command, *(one.format(tmp_path) for one in inputs), *documents(tmp_path), *options)
        document = json.loads((tmp_path / "r.json").read_bytes())
        assert rounded(document)
        html = (tmp_path / "r.html").read_text("utf-8")
        for name in files:
            digest = sha256((tmp_path / name).read_bytes())
            assert (digest in json.dumps(document)) == (digest in html), name
            seen[name] |= digest in html
        for one in document["reports"]:
            for frame in one.get("provenance", {}).get("frames", {}).values():
                assert frame["sha256"] in html
    assert all(seen.values()), seen


def test_both_sides_of_a_second_look_are_described() -> None:
    qrels = {f"q{i}": {f"d{i}": 1} for i in range(20)}
    other = {f"q{i}": {f"d{i + 1}": 1} for i in range(20)}
    old = Evaluation.create({q: {"d0": 1.0} for q in qrels}, qrels, corpus_size=99, system="old")
    run = {f"q{i}": {f"d{i}": 1.0} for i in range(20)}
    new = old.with_run(run, system="new")
    [found] = compare_systems(old, new, "RR@10")
    again = judge_again(new, other, "RR@10")
    table = gate_by_grade(new, "RR@10")
    hashes = {
        "baseline": frame_sha256(old.run),
        "candidate": frame_sha256(as_run(run)),
        "run": frame_sha256(as_run(run)),
        "qrels": frame_sha256(as_qrels(qrels)),
        "judge": frame_sha256(as_qrels(other)),
    }
    for one, names in (
        (found, {"baseline", "candidate", "qrels"}),
        (again, {"run", "qrels", "judge"}),
        (table, {"run", "qrels"}),
    ):
        frames = one.to_dict()["provenance"]["frames"]
        assert {name: frame["sha256"] for name, frame in frames.items()} == {
            name: hashes[name] for name in names
        }
        assert one.to_dict()["settings"]["seed"] == 0


def test_the_split_that_an_audit_was_fitted_on_is_described(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "small", 40)
    train = write_qrels(folder / "qrels" / "train.tsv", 30)
    train.write_text("query-id\tcorpus-id\tscore\nq001\td001\t1\n")
    for place in (folder, folder / "qrels" / "test.tsv"):
        [one] = report("audit", place, "--fit-split", "train")["reports"]
        assert one["provenance"]["fit"]["sha256"] == sha256(train.read_bytes())
        assert one["provenance"]["frames"]["fit"]["rows"] == 1


def test_the_page_shows_hashes_versions_and_rules(tmp_path: Path) -> None:
    inputs = [write_qrels(tmp_path / "gold.trec", 40), write_run(tmp_path / "mine.trec", 40)]
    page = call("ir", *inputs, *FAST, "--no-playground", "--html", "-").stdout
    for path in inputs:
        assert sha256(path.read_bytes()) in page
    for named in ("<dt>schema</dt>", "falsify-adapters/report/1", "environment packages numpy"):
        assert named in page
    assert "environment tie_rule" in page


def test_mteb_reports_hash_every_file_they_read(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "owner__model" / "rev"
    folder.mkdir(parents=True)
    row = {"hf_subset": "default", "languages": [], "main_score": 0.9, "ndcg_at_10": 0.9}
    facts = {"task_name": "SciFact", "mteb_version": "2.1.0", "dataset_revision": "x"}
    result = {**facts, "scores": {"test": [row]}, "evaluation_time": 1.0}
    path = folder / "SciFact.json"
    path.write_text(json.dumps(result))
    qrels = write_qrels(tmp_path / "qrels" / "scifact" / "qrels" / "test.tsv", 40)
    document = report("mteb", tmp_path / "results", "--qrels", tmp_path / "qrels", "-m", "nDCG@10")
    check(document)
    [one] = [r for r in document["reports"] if r["kind"] == "certificate"]
    assert one["provenance"]["sha256"] == sha256(path.read_bytes())
    assert one["provenance"]["qrels"]["sha256"] == sha256(qrels.read_bytes())
    assert one["provenance"]["frames"]["qrels"]["queries"] == 40


def test_the_schema_is_itself_valid() -> None:
    Draft202012Validator.check_schema(json.loads(call("schema").stdout))
