"""``--from`` with the options that grade, group and compare: logs are runs like all others."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

import falsify_adapters
from falsify_adapters.baselines import controls
from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.gate import run_gate
from tests.adapters import test_choices, test_sources
from tests.adapters.test_sources import N, jsonl
from tests.cli_runs import call, report, write_qrels, write_run

QUICK = ("--n-trials", "200", "--n-boot", "200")


def rows(n_right: int, **more: Any) -> list[dict[str, Any]]:
    """Questions of which the first few are answered."""
    return [
        {"query": f"{'abcdefghijklmnopqrst'[i // 2] * 6}", "gold": f"d{i}",
         "retrieved": [f"d{i}" if i < n_right else f"x{i}", "x"], **more}
        for i in range(N)
    ]  # fmt: skip


def of_role(document: dict[str, Any], role: str) -> dict[str, dict[str, Any]]:
    return {one["system"]: one for one in document["reports"] if one.get("role") == role}


def test_controls_stand_beside_a_log(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "log.jsonl", rows(36))
    arguments = ["--from", "auto", path, "P@1", "--pool", 500, "--controls", *QUICK]
    found = of_role(report("ir", *arguments, status=0), "control")
    assert {name: one["verdict"] for name, one in found.items()} == {
        "popularity": "FAIL",
        "constant": "FAIL",
        "random": "FAIL",
        "oracle": "PASS",
    }


def test_controls_choose_among_each_questions_own_choices(tmp_path: Path) -> None:
    labels = [2] * 160 + [0] * 80 + [1] * 160
    scores = [test_choices.always(2, 4)] * 240 + [test_choices.always(0, 2)] * 160
    path = test_choices.save(tmp_path / "m.jsonl", test_choices.olmes(scores, labels))
    document = report("ir", "--from", "olmes", path, "--controls", *QUICK, status=1)
    found = of_role(document, "control")
    # "always C" cannot be said where there are two choices: B is then the most frequent
    assert found["popularity"]["score"] == pytest.approx((160 + 160) / 400)
    assert found["constant"]["verdict"] == "FAIL"
    assert found["oracle"]["score"] == 1.0
    expected = (240 / 4 + 160 / 2) / 400
    assert found["random"]["score"] == pytest.approx(expected, abs=0.08)
    assert found["random"]["verdict"] == "FAIL"
    evaluation = falsify_adapters.load(path, "olmes", top_k=1)
    with pytest.raises(UsageError, match="leave --top-k away"):
        next(controls(evaluation, "P@1"))


def test_a_random_control_ranks_each_question_anew(tmp_path: Path) -> None:
    rows_ = test_choices.olmes([test_choices.always(2)] * 400, test_choices.BALANCED)
    evaluation = falsify_adapters.load(test_choices.save(tmp_path / "m.jsonl", rows_))
    made = {one.system: one for one in controls(evaluation, "P@1", seed=3)}
    first = made["random"].run.drop_duplicates("query_id")["doc_id"].value_counts()
    assert len(first) == 4
    assert first.min() > 70
    assert len(made["random"].run) == 1600


def test_a_baseline_is_another_log_of_the_same_questions(tmp_path: Path) -> None:
    new, old = jsonl(tmp_path / "new.jsonl", rows(38)), jsonl(tmp_path / "old.jsonl", rows(10))
    arguments = ["--from", "falsify-eval", new, "P@1", "--pool", 500, *QUICK]
    document = report("ir", *arguments, "--baseline", old)
    (compared,) = [one for one in document["reports"] if one.get("candidate")]
    assert (compared["candidate"], compared["verdict"], compared["better"]) == ("new", "BETTER", 28)
    assert of_role(document, "baseline")["old"]["score"] == 0.25
    others = [{**row, "gold": f"y{i}"} for i, row in enumerate(rows(38))]
    result = call("ir", *arguments, "--baseline", jsonl(tmp_path / "other.jsonl", others))
    assert result.exit_code == 2
    assert "the baseline was scored with other qrels" in result.stderr


def test_texts_and_columns_of_a_log_group_its_queries(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "log.jsonl", rows(36, session="s1"))
    arguments = ["--from", "falsify-eval", path, "P@1", "--pool", 500, *QUICK]

    def dependence(*more: Any) -> dict[str, Any]:
        (found,) = report("ir", *arguments, *more)["reports"]
        known: dict[str, Any] = found["dependence"]
        return known

    assert dependence("--clusters", "auto")["clusters"]["clusters"] == N // 2
    assert dependence("--clusters", "session")["clusters"]["clusters"] == 1
    blocks = {"source": "order of the log's records", "length": 5, "blocks": N // 5}
    assert dependence("--blocks", "5")["blocks"] == blocks
    named = tmp_path / "clusters.tsv"
    named.write_text("".join(f"row-{i + 1}\tc{i % 10}\n" for i in range(N)))
    assert dependence("--clusters", named)["clusters"]["clusters"] == 10
    assert dependence("--strata", "gold-count")["strata"]["strata"] == 1
    result = call("ir", *arguments, "--clusters", "nonsense")
    assert (result.exit_code, "has no column 'nonsense'" in result.stderr) == (2, True)


def test_texts_that_a_log_lacks_come_from_a_file(tmp_path: Path) -> None:
    plain = [{key: row[key] for key in ("gold", "retrieved")} for row in rows(36)]
    path = jsonl(tmp_path / "log.jsonl", plain)
    arguments = ["--from", "falsify-eval", path, "P@1", "--pool", 500, "--clusters", "auto", *QUICK]
    result = call("ir", *arguments)
    assert result.exit_code == 2
    assert "40 without one (row-1" in result.stderr
    assert "hint: --queries FILE gives them" in result.stderr
    texts = jsonl(
        tmp_path / "queries.jsonl", [{"_id": f"row-{i + 1}", "text": "same"} for i in range(N)]
    )
    (found,) = report("ir", *arguments, "--queries", texts)["reports"]
    assert found["dependence"]["clusters"]["clusters"] == 1


def test_subjects_of_a_multiple_choice_test_are_clusters_and_strata(tmp_path: Path) -> None:
    labels = test_choices.BALANCED
    samples = test_choices.harness(test_choices.knows(labels, 0.6), labels)
    for number, row in enumerate(samples):
        row["doc"] = {"subject": f"s{number % 25}", "choices": ["a"]}
    path = test_choices.save(tmp_path / "samples.jsonl", samples)
    (found,) = report("ir", "--from", "auto", path, "--clusters", "subject", *QUICK)["reports"]
    assert found["dependence"]["clusters"]["clusters"] == 25
    # the strata of equally many choices stay
    assert found["dependence"]["strata"]["source"] == "number of choices"
    (found,) = report("ir", "--from", "auto", path, "--strata", "subject", *QUICK)["reports"]
    assert found["dependence"]["strata"]["strata"] == 25
    assert found["dependence"]["strata"]["source"] == "column subject; number of choices"


def test_grades_other_judgements_and_a_curve(tmp_path: Path) -> None:
    graded = [
        {**row, "gold": [row["gold"], f"y{i}"], "rel": [1 + i % 2, 1]}
        for i, row in enumerate(rows(36))
    ]
    path = jsonl(tmp_path / "log.jsonl", graded)
    other = tmp_path / "llm.trec"
    other.write_text("".join(f"row-{i + 1} 0 x 1\n" for i in range(N)))
    arguments = ["--from", "auto", path, "R@5", "--pool", 500, *QUICK]
    document = report("ir", *arguments, "--by-grade", "--alt-qrels", other, "--curve")
    (main,) = of_role(document, "run").values()
    assert main["curve"]
    by_kind = {one["kind"]: one for one in document["reports"]}
    assert len(by_kind["grades"]["rows"]) == 2
    assert by_kind["judgements"]["judge"] == "llm.trec"
    assert by_kind["judgements"]["n_queries"] == N


def test_chunks_of_a_log_stand_for_their_documents(tmp_path: Path) -> None:
    pieces = [
        {"query": "?", "expected_ids": [f"d{i}#7"],
         "retrieved_ids": ["x#1", f"d{i}#0", f"d{i}#3"]}
        for i in range(N)
    ]  # fmt: skip
    path = jsonl(tmp_path / "log.jsonl", pieces)
    arguments = ["--from", "llamaindex", path, "RR@5", "--pool", 500, *QUICK]
    # a piece of the right document is not the right piece
    (found,) = report("ir", *arguments)["reports"]
    assert found["score"] == 0.0
    (found,) = report("ir", *arguments, "--chunks", r"#\d+$")["reports"]
    assert found["score"] == 0.5
    choices = test_choices.save(
        tmp_path / "m.jsonl", test_choices.olmes([test_choices.always(1)], [1])
    )
    result = call("ir", "--from", "olmes", choices, "--chunks", "x")
    assert (result.exit_code, "choices have no parts" in result.stderr) == (2, True)


def test_auto_knows_a_gold_file_by_its_content(tmp_path: Path) -> None:
    request, response = test_sources.elasticsearch_files(tmp_path)
    (found,) = report("ir", "--from", "auto", request, response, "P@1", "--pool", 500)["reports"]
    assert (found["system"], found["score"]) == ("response", 0.5)
    assert "W-SOURCE-GUESSED" in {one["code"] for one in found["warnings"]}
    top_k, held_out = test_sources.recommendations()
    top_k.to_csv(tmp_path / "top.csv", index=False)
    held_out.to_csv(tmp_path / "held.csv", index=False)
    arguments = ["--from", "auto", tmp_path / "held.csv", tmp_path / "top.csv", "P@1"]
    (found,) = report("ir", *arguments, "--pool", 500)["reports"]
    assert found["score"] == 0.5
    result = call("ir", "--from", "auto", response, "P@1")
    assert (result.exit_code, "takes a gold file" in result.stderr) == (2, True)


def test_load_takes_runs_with_their_qrels(tmp_path: Path) -> None:
    run, qrels = write_run(tmp_path / "r.trec", N), write_qrels(tmp_path / "q.trec", N)
    evaluation = falsify_adapters.load(run, gold=qrels, corpus_size=90, system="mine")
    assert run_gate(evaluation, "P@1").score == 1.0
    note = evaluation.notes[0]
    assert note.code == "W-SOURCE-GUESSED"
    assert note.message == "r.trec was taken for a run and q.trec for its qrels"
    assert evaluation.provenance["run"]["name"] == "r.trec"
    # through pipes, which can be read but once
    piped = falsify_adapters.load(
        io.BytesIO(run.read_bytes()), gold=io.BytesIO(qrels.read_bytes()), corpus_size=90
    )
    assert piped.run.equals(evaluation.run)
    chunked = tmp_path / "c.trec"
    chunked.write_text("".join(f"q{i:03} Q0 d{i:03}#4 1 9 x\n" for i in range(N)))
    whole = falsify_adapters.load(chunked, gold=qrels, corpus_size=90, chunks="#.*")
    assert run_gate(whole, "P@1").score == 1.0


def test_load_takes_two_files_of_one_source(tmp_path: Path) -> None:
    request, response = test_sources.elasticsearch_files(tmp_path)
    evaluation = falsify_adapters.load(response, gold=request, corpus_size=500)
    assert evaluation.provenance["source"] == "elasticsearch"
    assert "was taken for elasticsearch" in evaluation.notes[0].message


def test_load_says_what_is_missing(tmp_path: Path) -> None:
    run = write_run(tmp_path / "r.trec", N)
    with pytest.raises(InputError, match="a run needs its qrels beside it"):
        falsify_adapters.load(run)
    with pytest.raises(InputError, match="does not exist"):
        falsify_adapters.load(run, gold=tmp_path / "absent.trec")
    (tmp_path / "log.json").write_text(json.dumps({"retrieved": ["a"], "gold": "a"}))
    with pytest.raises(UsageError, match="takes no gold file"):
        falsify_adapters.load(tmp_path / "log.json", "falsify-eval", gold=run)
