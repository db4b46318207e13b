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

from falsify_adapters import Evaluation, as_qrels, as_run, run_gate
from falsify_adapters.baselines import controls
from falsify_adapters.provenance import frame_sha256
from tests.cli_runs import ROOT, call, in_subprocess, report, write_dataset, write_qrels, write_run
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
            {"name": "gold.trec", "sha256": sha256(qrels.read_bytes())},
            {"name": "mine.trec.gz", "sha256": sha256(run.read_bytes())},
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


@pytest.mark.parametrize("command", ["ir", "beir"])
def test_two_runs_in_different_worlds_write_the_same_bytes(command: str, tmp_path: Path) -> None:
    written = []
    for i, world in enumerate(WORLDS):
        place = tmp_path / f"world{i}" / ("x" * i + "dir")
        write_dataset(place / "small", 40)
        write_run(place / "mine.trec", 40)
        inputs: tuple[Any, ...] = ("-d", place / "small", "-r", place / "mine.trec", "--offline")
        if command == "ir":
            inputs = (place / "small/qrels/test.tsv", place / "mine.trec", "--corpus-size", "99")
        targets = [place / "report.json", place / "report.html"]
        done = in_subprocess(
            command,
            *(*inputs, *FAST, "--controls", "--json", targets[0], "--html", targets[1], "-q"),
            env={**os.environ, **world, "PYTHONPATH": str(ROOT)},
            cwd=place,
        )
        assert done.returncode in (0, 1), done.stderr
        assert not done.stderr
        written.append([target.read_bytes() for target in targets])
    assert written[0] == written[1]
    check(json.loads(written[0][0]))
    for content in written[0]:
        assert str(tmp_path).encode() not in content


def test_the_page_shows_hashes_versions_and_rules(tmp_path: Path) -> None:
    inputs = [write_qrels(tmp_path / "gold.trec", 40), write_run(tmp_path / "mine.trec", 40)]
    page = call("ir", *inputs, *FAST, "--no-playground", "--html", "-").stdout
    for path in inputs:
        assert sha256(path.read_bytes()) in page
    assert "environment packages numpy" in page
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
