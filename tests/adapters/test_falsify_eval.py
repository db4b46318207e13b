"""The falsify-eval format, graded by falsify-eval's own command and by ours."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from falsify_eval import cli

from falsify_adapters.adapters.sources import load
from falsify_adapters.errors import InputError
from falsify_adapters.gate import run_gate
from tests.cli_runs import call, report

N_QUERIES, N_DOCS, K = 80, 30, 5
#: Twenty files: how skewed the answers are, how often the system knows them, who it is.
FILES = [
    *((skew, skill, "skilled") for skew in (0.0, 0.7, 1.4, 2.1) for skill in (0.1, 0.3, 0.6, 0.9)),
    *((skew, 0.0, "popular") for skew in (0.0, 0.7, 1.4, 2.1)),
]


def write_bench(path: Path, skew: float, skill: float, kind: str) -> tuple[Path, Path]:
    """Write a file of questions and one of the labels to choose from."""
    rng = np.random.default_rng([round(10 * skew), round(10 * skill)])
    labels = [f"L{i:02}" for i in range(N_DOCS)]
    weight = (1.0 + np.arange(N_DOCS)) ** -skew
    rows = []
    for _ in range(N_QUERIES):
        gold = labels[rng.choice(N_DOCS, p=weight / weight.sum())]
        rest = labels if kind == "popular" else rng.permutation(labels).tolist()
        found = [gold] if rng.random() < skill else []
        retrieved = [*found, *(doc for doc in rest if doc not in found)][:K]
        rows.append({"retrieved": retrieved, "gold": gold, "rel": 3})
    bench, pool = path / "bench.jsonl", path / "pool.txt"
    bench.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pool.write_text("\n".join(labels) + "\n")
    return bench, pool


def graded_by_falsify_eval(bench: Path, pool: Path, metric: str) -> dict[str, Any]:
    arguments = ["grade", "--input", str(bench), "--pool", str(pool), "--metric", metric]
    out = io.StringIO()
    with redirect_stdout(out), pytest.raises(SystemExit):
        cli.main([*arguments, "--n-trials", "200", "--json"])
    answer: dict[str, Any] = json.loads(out.getvalue())
    return answer


@pytest.mark.parametrize(("skew", "skill", "kind"), FILES)
def test_both_programs_decide_alike(skew: float, skill: float, kind: str, tmp_path: Path) -> None:
    bench, pool = write_bench(tmp_path, skew, skill, kind)
    expected = graded_by_falsify_eval(bench, pool, "recall@5")
    arguments = ["--from", "falsify-eval", bench, "R@5", "--pool", pool]
    (found,) = report("ir", *arguments, "--permute", "label")["reports"]
    assert found["corpus_size"] == N_DOCS
    assert found["score"] == pytest.approx(expected["real_mean"])
    for name, null in found["nulls"].items():
        assert null["delta"] == pytest.approx(expected["deltas"][name], abs=0.04)
        if not null["low"] < found["tau"] < null["high"]:
            assert (null["verdict"] == "PASS") == expected["passes"][name], name
    if found["verdict"] != "UNDER-NS":
        assert (found["verdict"] == "PASS") == expected["gate_passes"]


def test_a_point_above_tau_is_not_enough_for_us(tmp_path: Path) -> None:
    """Where the programs differ: a delta over tau whose interval reaches below it."""
    rows = [{"retrieved": [f"d{i}" if i % 6 == 0 else "x"], "gold": f"d{i}"} for i in range(30)]
    bench, pool = tmp_path / "bench.jsonl", tmp_path / "pool.json"
    bench.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pool.write_text(json.dumps([*(f"d{i}" for i in range(30)), "x"]))
    assert graded_by_falsify_eval(bench, pool, "recall@1")["gate_passes"]
    (found,) = report("ir", "--from", "auto", bench, "R@1", "--pool", pool, status=3)["reports"]
    assert found["verdict"] == "UNDER-NS"


def test_several_right_answers_and_query_ids(tmp_path: Path) -> None:
    path = tmp_path / "bench.jsonl"
    row = {"query_id": "q", "retrieved": ["a", 7], "gold": ["a", "b"], "rel": [2, 1]}
    path.write_text(json.dumps(row))
    evaluation = load(path, "falsify-eval", corpus_size=9)
    assert evaluation.query_ids == ["q"]
    assert list(evaluation.run["doc_id"]) == ["a", "7"]
    assert dict(zip(evaluation.qrels["doc_id"], evaluation.qrels["relevance"], strict=True)) == {
        "a": 2,
        "b": 1,
    }
    assert run_gate(evaluation, "R@5").score == 0.5


def test_a_number_of_documents_does_for_a_pool(tmp_path: Path) -> None:
    bench, _ = write_bench(tmp_path, 0.0, 0.9, "skilled")
    (found,) = report("ir", "--from", "auto", bench, "R@5", "--pool", "5000", status=0)["reports"]
    assert found["corpus_size"] == 5000


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"retrieved": ["a", "a"], "gold": "b"}', "more than once; found: 'a'"),
        ('{"retrieved": "a", "gold": "b"}', "retrieved is not a list"),
        ('{"retrieved": ["a"], "gold": 1.5}', "neither text nor a whole number"),
        ('{"retrieved": ["a"]}', "lacks 'gold'"),
        ('{"retrieved": ["a"], "gold": ["b", "c"], "rel": [1]}', "another length"),
        ('{"retrieved": ["a"], "gold": "b", "rel": "high"}', "not a number"),
        ("[1, 2]", "not a JSON object"),
        ('{"retrieved": ["a"]', "not valid JSON"),
    ],
)
def test_bad_lines_are_refused(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bench.jsonl"
    path.write_text('{"retrieved": ["a"], "gold": "a"}\n' + line + "\n")
    with pytest.raises(InputError, match=message):
        load(path, "falsify-eval", corpus_size=9)


def test_a_pool_that_lacks_what_was_retrieved_is_refused(tmp_path: Path) -> None:
    bench, pool = write_bench(tmp_path, 0.0, 0.5, "skilled")
    pool.write_text("L00\nL01\n")
    result = call("ir", "--from", "auto", bench, "--pool", pool)
    assert result.exit_code == 2
    assert "documents that the corpus does not hold" in result.stderr
