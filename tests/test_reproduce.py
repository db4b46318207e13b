"""A reported score is reproduced, or the convention behind it is named."""

from __future__ import annotations

import random
from typing import Any

import pandas as pd
import pytest

from falsify_adapters.frames import as_qrels
from falsify_adapters.reproduce import Conventions, Reproduction, reproduce

Run = dict[str, dict[str, float]]


def world(seed: int = 5) -> tuple[Run, dict[str, pd.DataFrame]]:
    """A run with self matches, ties in single precision, a missing and an empty query."""
    rng = random.Random(seed)
    queries = [f"q{i}" for i in range(20)]
    docs = [f"d{i}" for i in range(30)]
    run: Run = {}
    for query in queries[1:]:
        # half of the ties are ties in single precision only
        noise = {doc: rng.choice((0.0, rng.random() * 1e-9)) for doc in docs}
        scores = {doc: 0.5 + rng.randint(0, 4) / 10 + noise[doc] for doc in docs}
        run[query] = {query: 1.0} | scores
    run["q5"] = {}
    qrels = {
        split: as_qrels({query: dict.fromkeys(rng.sample(docs, 3), 1) for query in queries})
        for split in ("dev", "test")
    }
    return run, qrels


BASE = Conventions(own="drop", split="test")


def check(reported: float, base: Conventions = BASE, measure: str = "nDCG@10") -> Reproduction:
    run, qrels = world()
    return reproduce(run, qrels.__getitem__, measure, reported, base=base, splits=("dev", "test"))


def reported_under(**changes: Any) -> float:
    """Score under other conventions, by the code under test's own base."""
    settings = {"own": "drop", "split": "test"} | changes
    return check(0.5, Conventions(**settings)).recomputed


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mean": "answered"}, ("the mean over answered queries only",)),
        ({"own": "keep"}, ("documents that are the query itself kept",)),
        ({"ties": "single"}, ("scores compared in single precision",)),
        ({"ties": "input"}, ("ties in the order of the input",)),
        ({"first": "drop"}, ("the first result left out",)),
        ({"split": "dev"}, ("the qrels of the split dev",)),
        (
            {"mean": "answered", "split": "dev"},
            ("the mean over answered queries only", "the qrels of the split dev"),
        ),
        (
            {"mean": "answered", "ties": "single"},
            ("the mean over answered queries only", "scores compared in single precision"),
        ),
    ],
)
def test_the_convention_is_named(changes: dict[str, Any], words: tuple[str, ...]) -> None:
    value = reported_under(**changes)
    assert value != pytest.approx(check(0.5).recomputed, abs=1e-5)
    found = check(round(value, 5))
    if found.conventions != words:  # another one may happen to give the same score
        assert " and ".join(words) in found.also
    assert found.status == "explained"
    assert "reproduced with" in str(found)


def test_an_equal_score_is_equal() -> None:
    value = check(0.5).recomputed
    found = check(round(value, 5))
    assert (found.status, found.conventions, found.tried) == ("equal", (), 1)


def test_a_made_up_score_is_not_reproduced() -> None:
    found = check(0.98765)
    assert found.status == "not reproduced"
    assert found.tried > 10
    assert "none of" in str(found)


def test_the_run_is_left_unchanged() -> None:
    run, qrels = world()
    before = {query: dict(docs) for query, docs in run.items()}
    reproduce(run, qrels.__getitem__, "nDCG@10", 0.98765, base=BASE, splits=("dev",))
    assert run == before
    assert [list(docs) for docs in run.values()] == [list(docs) for docs in before.values()]


def test_an_empty_answer_counts_and_a_missing_one_does_not() -> None:
    judged = as_qrels({f"q{i}": {"d1": 1} for i in range(4)})
    run: Run = {"q0": {"d1": 1.0}, "q1": {}, "q2": {"d1": 0.5}}
    found = reproduce(run, lambda _split: judged, "nDCG@10", 0.66667, base=Conventions())
    assert found.recomputed == 0.5
    assert found.conventions == ("the mean over answered queries only",)


def test_scores_beyond_single_precision_are_no_crash() -> None:
    judged = as_qrels({"q0": {"d1": 1}, "q1": {"d1": 1}})
    run: Run = {"q0": {"d1": 1e300, "d2": 1.0}}
    found = reproduce(run, lambda _split: judged, "nDCG@10", 0.3, base=Conventions())
    assert found.status == "not reproduced"


def test_nothing_but_self_matches_scores_zero() -> None:
    judged = as_qrels({"q0": {"d1": 1}})
    found = reproduce(
        {"q0": {"q0": 1.0}}, lambda _split: judged, "nDCG@10", 0.0, base=Conventions(own="drop")
    )
    assert found.status == "equal"
