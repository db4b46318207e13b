"""Multiple choice as retrieval: constant choices, honest models, contradictory files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from falsify_adapters.adapters.sources import load
from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.gate import run_gate
from tests.cli_runs import call, report

N = 400
#: Answer keys of four choices: C is right for 40 % of the questions, or for a quarter.
SKEWED = [2] * 160 + [0] * 80 + [1] * 80 + [3] * 80
BALANCED = [0, 1, 2, 3] * 100

Row = dict[str, Any]


def olmes(scores: list[list[float]], labels: list[int]) -> list[Row]:
    """Rows as OLMES writes them; per character and per byte the choices rank otherwise."""
    rows = []
    for number, (likelihood, label) in enumerate(zip(scores, labels, strict=True)):
        per_char = [x / (i + 1) for i, x in enumerate(likelihood)]
        outputs = [
            {"sum_logits": x, "logits_per_token": x / 2, "logits_per_char": c, "bits_per_byte": -c}
            for x, c in zip(likelihood, per_char, strict=True)
        ]
        picked = {"raw": likelihood, "per_token": likelihood, "per_char": per_char}
        metrics: Row = {}
        for name, values in picked.items():
            metrics[f"predicted_index_{name}"] = int(np.argmax(values))
            metrics[f"acc_{name}"] = int(np.argmax(values) == label)
        metrics["predicted_index_per_byte"] = int(np.argmax(per_char))
        rows.append(
            {"doc_id": number, "native_id": f"n{number}", "label": label, "metrics": metrics,
             "model_output": outputs}
        )  # fmt: skip
    return rows


def harness(scores: list[list[float]], labels: list[int]) -> list[Row]:
    """Rows as lm-evaluation-harness writes them; choice i has i + 1 characters."""
    rows = []
    for number, (likelihood, label) in enumerate(zip(scores, labels, strict=True)):
        normed = [x / (i + 1) for i, x in enumerate(likelihood)]
        rows.append(
            {
                "doc_id": number,
                "target": str(label),
                "arguments": {
                    f"gen_args_{i}": {"arg_0": "Question", "arg_1": " " + "x" * (i + 1)}
                    for i in range(len(likelihood))
                },
                "filtered_resps": [[str(x), str(x == max(likelihood))] for x in likelihood],
                "filter": "none",
                "acc": float(np.argmax(likelihood) == label),
                "acc_norm": float(np.argmax(normed) == label),
            }
        )
    return rows


WRITERS = {"olmes": olmes, "lm-eval": harness}
Writer = Callable[[list[list[float]], list[int]], list[Row]]


@pytest.fixture(params=WRITERS)
def writer(request: pytest.FixtureRequest) -> Writer:
    return WRITERS[request.param]


def save(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def always(choice: int, n_choices: int = 4) -> list[float]:
    return [-1.0 if i == choice else -5.0 - i for i in range(n_choices)]


def knows(labels: list[int], share: float, seed: int = 0) -> list[list[float]]:
    """Scores of a model that knows a share of the answers and guesses the others."""
    rng = np.random.default_rng(seed)
    return [always(label if rng.random() < share else int(rng.integers(4))) for label in labels]


def read(tmp_path: Path, rows: list[Row], **options: Any) -> Evaluation:
    return load(save(tmp_path / "model.jsonl", rows), **options)


def test_always_c_on_a_skewed_answer_key_fails_on_a_and_d(writer: Writer, tmp_path: Path) -> None:
    found = run_gate(read(tmp_path, writer([always(2)] * N, SKEWED)), "P@1")
    assert found.score == pytest.approx(0.40)
    assert found.verdict == "FAIL"
    assert found.nulls["A"].verdict == found.nulls["D"].verdict == "FAIL"
    # a random choice would have been right in a quarter of the questions
    assert found.nulls["C"].mean == pytest.approx(0.25)
    assert found.nulls["C"].verdict == "PASS"


def test_always_c_on_a_balanced_answer_key_fails(writer: Writer, tmp_path: Path) -> None:
    found = run_gate(read(tmp_path, writer([always(2)] * N, BALANCED)), "P@1")
    assert found.score == pytest.approx(0.25)
    assert found.verdict == "FAIL"
    assert found.nulls["A"].verdict == found.nulls["D"].verdict == "FAIL"
    assert all(null.delta == pytest.approx(0, abs=1e-3) for null in found.nulls.values())


@pytest.mark.parametrize("labels", [SKEWED, BALANCED], ids=["skewed", "balanced"])
def test_a_model_that_knows_passes(writer: Writer, labels: list[int], tmp_path: Path) -> None:
    scores = knows(labels, 0.6)
    found = run_gate(read(tmp_path, writer(scores, labels)), "P@1")
    accuracy = np.mean([int(np.argmax(s)) == a for s, a in zip(scores, labels, strict=True)])
    assert found.score == pytest.approx(accuracy)
    assert found.verdict == "PASS"


def test_each_question_has_its_own_choices(writer: Writer, tmp_path: Path) -> None:
    labels = [i % 2 for i in range(20)] + [i % 5 for i in range(20)]
    scores = [always(0, 2)] * 20 + [always(0, 5)] * 20
    evaluation = read(tmp_path, writer(scores, labels))
    assert evaluation.pool_sizes == {str(i): 2 if i < 20 else 5 for i in range(40)}
    assert evaluation.dependence is not None
    found = run_gate(evaluation, "P@1")
    assert found.nulls["C"].mean == pytest.approx((1 / 2 + 1 / 5) / 2)
    # answers change places between questions of equally many choices only
    assert found.nulls["A"].mean == pytest.approx((1 / 2 + 1 / 5) / 2)


@pytest.mark.parametrize(
    ("source", "score"),
    [("olmes", "per_token"), ("olmes", "per_char"), ("olmes", "per_byte"), ("lm-eval", "norm")],
)
def test_other_scores_rank_otherwise(source: str, score: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    scores = (-1 - 5 * rng.random((50, 4))).tolist()
    labels = rng.integers(4, size=50).tolist()
    evaluation = read(tmp_path, WRITERS[source](scores, labels), score=score)
    divisor = 1.0 if score == "per_token" else np.arange(1, 5)
    right = np.argmax(np.array(scores) / divisor, axis=1) == labels
    assert run_gate(evaluation, "P@1").score == pytest.approx(right.mean())


def test_the_file_must_agree_with_itself(writer: Writer, tmp_path: Path) -> None:
    rows = writer(knows(BALANCED, 0.5), BALANCED)
    for row in rows[7:9]:
        holder = row.get("metrics", row)
        name = "acc_raw" if "metrics" in row else "acc"
        holder[name] = 1 - holder[name]
    with pytest.raises(InputError, match=r"2 of 400 questions differ, .* record 8 \(question 7:"):
        read(tmp_path, rows)


def test_equal_choices_are_taken_in_their_order_and_noted(writer: Writer, tmp_path: Path) -> None:
    rows = writer([[-1.0, -1.0, -1.0, -1.0]] * N, BALANCED)
    evaluation = read(tmp_path, rows)
    assert [note.code for note in evaluation.notes] == ["W-SOURCE-GUESSED", "W-TIES"]
    found = run_gate(evaluation, "P@1")
    assert (found.score, found.verdict) == (0.25, "FAIL")


def test_samples_of_two_filters_are_read_once(tmp_path: Path) -> None:
    rows = harness(knows(BALANCED, 0.5), BALANCED)
    twice = [*rows, *({**row, "filter": "other", "acc": 0.0} for row in rows)]
    assert read(tmp_path, twice).n_queries == N
    with pytest.raises(InputError, match="several filters"):
        read(tmp_path, [{**row, "filter": f"f{i % 2}"} for i, row in enumerate(rows)])


@pytest.mark.parametrize(
    ("target", "right"), [("2", {"2"}), (1, {"1"}), ("[0, 3]", {"0", "3"}), ("xx", {"1"})]
)
def test_targets_are_numbers_lists_or_texts(target: Any, right: set[str], tmp_path: Path) -> None:
    (row,) = harness([always(1)], [1])
    row |= {"target": target, "acc": float("1" in right)}
    gold = read(tmp_path, [row]).qrels["doc_id"]
    assert set(gold) == {f"choice-{number}" for number in right}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": "4"}, "not the number of a choice"),
        ({"target": "paris"}, "not the number of a choice"),
        ({"filtered_resps": ["42"]}, "no multiple-choice sample"),
        ({"filtered_resps": [["nan", "True"], ["-1", "False"]]}, "not a number"),
        ({"acc": 0.5}, "neither 0 nor 1"),
        ({"acc": None}, "no acc to check"),
        ({"doc_id": None}, "lacks 'doc_id'"),
    ],
)
def test_rows_that_are_no_samples_are_refused(change: Row, message: str, tmp_path: Path) -> None:
    rows = harness([always(1), always(2)], [1, 2])
    rows[1] |= change
    with pytest.raises(InputError, match=f"record 2.*{message}|{message}"):
        read(tmp_path, rows, source="lm-eval")


def test_questions_may_not_repeat(tmp_path: Path) -> None:
    rows = harness([always(1), always(2)], [1, 2])
    rows[1]["doc_id"] = 0
    with pytest.raises(InputError, match="repeats a query id"):
        read(tmp_path, rows)


def test_options_that_make_no_sense(tmp_path: Path) -> None:
    rows = olmes([always(1)], [1])
    with pytest.raises(UsageError, match="choices are its corpus"):
        read(tmp_path, rows, corpus_size=4)
    with pytest.raises(UsageError, match="one of raw, per_token"):
        read(tmp_path, rows, score="norm")


def test_the_command_grades_accuracy_by_default(writer: Writer, tmp_path: Path) -> None:
    path = save(tmp_path / "constant.jsonl", writer([always(2)] * N, SKEWED))
    (found,) = report("ir", "--from", "auto", path, status=1)["reports"]
    assert (found["measure"], found["system"]) == ("P@1", "constant")
    assert found["score"] == pytest.approx(0.4)
    (found,) = report("ir", "--from", "auto", path, "RR", status=1)["reports"]
    assert found["measure"] == "RR"


def test_the_command_refuses_a_file_that_contradicts_itself(tmp_path: Path) -> None:
    rows = olmes([always(1)] * 3, [1, 1, 1])
    rows[2]["metrics"]["acc_raw"] = 0
    result = call("ir", "--from", "olmes", save(tmp_path / "x.jsonl", rows))
    assert result.exit_code == 2
    assert "1.000000 recomputed, 0.666667 in the file" in result.stderr
    assert "record 3" in result.stderr


def test_what_the_question_adds_ranks_in_olmes(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    scores, alone = (-1 - 5 * rng.random((50, 4))), (-1 - 5 * rng.random((50, 4)))
    labels = rng.integers(4, size=50)
    rows = olmes(scores.tolist(), labels.tolist())
    for row, values, difference, label in zip(rows, alone, scores - alone, labels, strict=True):
        for output, value in zip(row["model_output"], values, strict=True):
            output["sum_logits_uncond"] = value
        row["metrics"]["acc_uncond"] = int(np.argmax(difference) == label)
    found = run_gate(read(tmp_path, rows, score="uncond"), "P@1")
    assert found.score == pytest.approx(np.mean(np.argmax(scores - alone, axis=1) == labels))
    del rows[4]["model_output"][1]["sum_logits_uncond"]
    with pytest.raises(InputError, match="record 5 lacks 'sum_logits_uncond'"):
        read(tmp_path, rows, score="uncond")


@pytest.mark.parametrize("sign", [1, -1])
def test_bytes_are_bits_in_some_versions_and_likelihoods_in_others(
    sign: int, tmp_path: Path
) -> None:
    scores = knows(BALANCED, 0.5)
    rows = olmes(scores, BALANCED)
    for row in rows:
        for output in row["model_output"]:
            output["logits_per_byte"] = sign * output.pop("bits_per_byte")
    right = [int(np.argmax(np.array(s) / (1 + np.arange(4)))) for s in scores]
    accuracy = np.mean(np.array(right) == BALANCED)
    found = run_gate(read(tmp_path, rows, score="per_byte"), "P@1")
    assert found.score == pytest.approx(accuracy)


def test_choices_that_were_not_all_asked_for_twice_are_refused(tmp_path: Path) -> None:
    rows = harness([always(1), always(2)], [1, 2])
    for row in rows:
        row |= {"acc_mutual_info": 1.0, "arguments": {}}
        row["filtered_resps"] = row["filtered_resps"] * 2
    # what a choice scores by itself is then taken away from itself: all are equal, the first wins
    with pytest.raises(InputError, match="do not give the file's own accuracy"):
        read(tmp_path, rows, score="mutual_info")
    rows[1]["filtered_resps"].pop()
    with pytest.raises(InputError, match="record 2 has acc_mutual_info, but not each choice twice"):
        read(tmp_path, rows)


def test_the_first_question_that_differs_is_named_for_every_score(tmp_path: Path) -> None:
    for score, name in {"norm": "acc_norm", "raw": "acc"}.items():
        rows = harness(knows(BALANCED, 0.5), BALANCED)
        rows[11][name] = 1 - rows[11][name]
        with pytest.raises(InputError, match=r"1 of 400 questions differs, .* record 12 \("):
            read(tmp_path, rows, source="lm-eval", score=score)
