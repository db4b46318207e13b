"""The audit of benchmarks, from the library and from the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from falsify_adapters import InputError, audit_benchmark
from falsify_adapters.audit import find_oddities, in_order
from tests.cli_runs import call, write_dataset, write_qrels

QRELS = {
    "q1": {"d1": 1, "d2": 2},
    "q2": {"d1": 1, "d2": 2, "d3": 0},
    "q3": {"d1": 1, "d2": 1},
    "q4": {"d4": 0},
    "q5": {"gone": 1},
}
TEXTS = {
    "q1": "Does Tea\n help?",
    "q2": "does tea help?",
    "q3": "A title",
    "q4": "Title and text",
    "q5": "a title",
    "unjudged": "a title",
}


class Document(NamedTuple):
    doc_id: str
    title: str
    text: str


CORPUS = [
    Document("d1", "A title", "some text"),
    Document("d2", "title", "and text"),
    Document("d3", "", ""),
]


def audited(*arguments: str | Path, status: int = 0) -> dict[str, Any]:
    result = call("main", "audit", *arguments, "--json", "-")
    assert result.exit_code == status, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_every_oddity_is_counted() -> None:
    found = find_oddities(QRELS, queries=TEXTS, documents=iter(CORPUS))
    assert found.to_dict() == {
        "n_queries": 5,
        "n_judgements": 9,
        "without_relevant": 1,
        "same_gold_set": 2,  # q1 and q2; the grades of q3 differ
        "same_text": 4,
        "text_is_document": 3,  # two are a title, one is title and text
        "gold_not_in_corpus": 1,
        "corpus_size": 3,
    }
    assert found.absent_gold == {"gone"}


def test_what_is_not_at_hand_is_unknown_and_not_zero() -> None:
    found = find_oddities(QRELS)
    assert (found.same_text, found.text_is_document, found.gold_not_in_corpus) == (None,) * 3
    assert find_oddities(QRELS, queries=TEXTS).text_is_document is None
    assert find_oddities(QRELS, documents=CORPUS).same_text is None


def test_an_empty_query_text_is_no_document() -> None:
    found = find_oddities({"q1": {"d1": 1}}, queries={"q1": " "}, documents=CORPUS)
    assert found.text_is_document == 0


def test_an_empty_corpus_is_refused() -> None:
    with pytest.raises(InputError, match="empty"):
        find_oddities(QRELS, documents=[])


def test_the_ceiling_of_an_audit_has_no_document_that_the_corpus_lacks() -> None:
    found = find_oddities(QRELS, documents=CORPUS)
    result = audit_benchmark(QRELS, "nDCG@10", findings=found)
    assert "gone" not in result.ceiling.ranking
    assert "gone" in audit_benchmark(QRELS, "nDCG@10").ceiling.ranking


def test_rows_stand_from_the_highest_ceiling_down() -> None:
    same = audit_benchmark({f"q{i}": {"d": 1} for i in range(4)}, "RR@10", name="same")
    own = audit_benchmark({f"q{i}": {f"d{i}": 1} for i in range(4)}, "RR@10", name="own")
    other = audit_benchmark({f"q{i}": {f"d{i}": 1} for i in range(4)}, "RR@10", name="a")
    assert [audit.name for audit in in_order([own, same, other])] == ["same", "a", "own"]


def test_the_sample_is_audited_without_an_argument() -> None:
    (found,) = audited("--held-out")["reports"]
    assert (found["kind"], found["benchmark"], found["ceiling"]["n_queries"]) == (
        "audit",
        "sample",
        120,
    )
    assert found["held_out"]["score"] < found["ceiling"]["score"]
    assert None not in found["findings"].values()


def test_one_refused_item_does_not_stop_the_others(tmp_path: Path) -> None:
    good = write_qrels(tmp_path / "good.qrels", 10)
    bad = tmp_path / "bad.qrels"
    bad.write_text("q1 0 d1 x\n")
    bare = tmp_path / "bare.qrels"
    bare.write_text("q1 0 d1 0\n")
    document = audited(bad, good, "no-such-data-set", bare, "--offline", status=2)
    assert [report["benchmark"] for report in document["reports"]] == ["good"]
    assert [Path(error["input"]).name for error in document["errors"]] == [
        "bad.qrels",
        "no-such-data-set",
        "bare, nDCG@10",
    ]


def test_files_folders_and_names_are_benchmarks(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "tiny", 6)
    file = write_qrels(tmp_path / "x" / "qrels.txt", 4)
    inside = folder / "qrels" / "test.tsv"
    document = audited(folder, file, "sample", "-m", "P@1", "-m", "R@2")
    rows = [(r["measure"], r["benchmark"]) for r in document["reports"]]
    # measures by name, and within one the most that is given away comes first
    assert rows == [(m, name) for m in ("P@1", "R@2") for name in ("x", "tiny", "sample")]
    assert audited(inside)["reports"][0]["benchmark"] == "tiny"


def test_the_ranking_can_come_from_another_split(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "tiny", 6)
    train = folder / "qrels" / "train.tsv"
    train.write_text("query-id\tcorpus-id\tscore\nt1\td003\t1\nt2\td003\t1\nt3\td001\t1\n")
    for place in (folder, folder / "qrels" / "test.tsv"):
        (found,) = audited(place, "--fit-split", "train", "-m", "RR@10")["reports"]
        assert found["held_out"]["score"] == pytest.approx((1 + 1 / 2) / 6)
        assert found["held_out"]["fitted_on"] == "train"


def test_a_split_that_is_not_there_is_refused(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "tiny", 6)
    assert audited(folder, "--fit-split", "train", status=2)["reports"] == []
    alone = write_qrels(tmp_path / "alone.qrels", 5)
    assert "split" in audited(alone, "--fit-split", "train", status=2)["errors"][0]["lacks"]


@pytest.mark.parametrize(
    "wrong", [["--seed", "-1"], ["--held-out", "--fit-split", "train"], ["-m", "Bpref"]]
)
def test_wrong_usage_is_refused_in_one_line(wrong: list[str]) -> None:
    result = call("main", "audit", *wrong)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1


def test_texts_are_left_alone_when_only_qrels_are_wanted(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "tiny", 6)
    (folder / "corpus.jsonl").write_text("not read")
    assert audited(folder, "--qrels-only")["reports"][0]["findings"]["corpus_size"] is None
    assert audited(folder, status=2)["reports"] == []


def test_a_copied_query_and_a_missing_document_are_told_in_words(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "tiny", 6)
    with (folder / "qrels" / "test.tsv").open("a") as file:
        file.write("q000\tnowhere\t1\n")
    with (folder / "corpus.jsonl").open("a") as file:
        file.write('{"_id": "copy", "title": "", "text": "Word3"}\n')
    text = call("main", "audit", folder).stdout
    assert "1 of 6 queries whose text is a document's" in text
    assert "1 of 7 relevant documents not in the corpus" in text
    markdown = call("main", "audit", folder, "--markdown", "-").stdout
    assert markdown.splitlines()[4].endswith("| 0 | 0 | 0 | 1 | 1 |")


def test_a_range_stands_where_only_bounds_are_known() -> None:
    (found,) = audited("-m", "AP@100")["reports"]
    low, high = found["ceiling"]["score"], found["ceiling"]["upper"]
    assert found["ceiling"]["kind"] == "lower bound"
    assert f"{low:.4f}\N{EN DASH}{high:.4f}" in call("main", "audit", "-m", "AP@100").stdout
    assert f"{low:.4f}-{high:.4f}" in call("main", "audit", "-m", "AP@100", "--ascii").stdout


def test_the_output_fits_80_columns_and_is_the_same_each_time(tmp_path: Path) -> None:
    qrels = write_qrels(tmp_path / f"{'a-long-name' * 4}.qrels", 9)
    outputs = [call("main", "audit", qrels, "--held-out", "--seed", "3").stdout for _ in range(2)]
    assert outputs[0] == outputs[1]
    assert max(map(len, outputs[0].splitlines())) <= 80


def test_a_name_cannot_act_on_the_terminal(tmp_path: Path) -> None:
    qrels = write_qrels(tmp_path / "a\x1b[31mred|.qrels", 3)
    assert "\x1b" not in call("main", "audit", qrels).stdout
    assert "red\\|" in call("main", "audit", qrels, "--markdown", "-").stdout


def test_a_hundred_files_in_one_call(tmp_path: Path) -> None:
    """50 to 10,000 queries each; in CI no more than 1,000, so that it stays short."""
    largest = 1_000 if os.environ.get("CI") else 10_000
    rng = np.random.default_rng(0)
    sizes = np.geomspace(50, largest, 100).astype(int).tolist()
    files = []
    for number, size in enumerate(sizes):
        docs = rng.zipf(1.6, size) % (size + 1)
        text = "\n".join(f"q{i} 0 d{doc} 1" for i, doc in enumerate(docs.tolist()))
        files.append(tmp_path / f"set{number:03}.qrels")
        files[-1].write_text(text + "\n")
    reports = audited(*files)["reports"]
    assert len(reports) == 100
    scores = [report["ceiling"]["score"] for report in reports]
    assert scores == sorted(scores, reverse=True)
    by_name = {report["benchmark"]: report["ceiling"]["n_queries"] for report in reports}
    assert [by_name[f"set{i:03}"] for i in range(100)] == sizes
