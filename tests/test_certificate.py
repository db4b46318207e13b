"""Certificates: their bounds hold for every run, and their verdicts follow from them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsify_adapters.certificate import Certifier, failed_certificate
from falsify_adapters.errors import MeasureError, UsageError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.gate import run_gate
from falsify_adapters.results import GateConfig

FAST = GateConfig(n_boot=200, n_trials=400, companion=False)
MEASURES = ("nDCG@3", "P@2", "R@3", "AP@3", "RR@3", "Success@2")
Qrels = dict[str, dict[str, int]]


def random_qrels(rng: random.Random, n_queries: int, n_documents: int) -> Qrels:
    weights = [1 / (i + 1) for i in range(n_documents)]
    return {
        f"q{i}": {
            f"d{doc}": rng.choice((1, 2))
            for doc in set(rng.choices(range(n_documents), weights, k=rng.randint(1, 3)))
        }
        for i in range(n_queries)
    }


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), measure=st.sampled_from(MEASURES), blind=st.booleans())
def test_no_run_has_a_null_mean_above_its_bound(seed: int, measure: str, blind: bool) -> None:
    rng = random.Random(seed)
    n_documents = rng.randint(6, 15)
    qrels = random_qrels(rng, rng.randint(2, 25), n_documents)
    order = rng.sample(range(n_documents), n_documents)
    run = {
        query: {
            f"d{doc}": float(-rank)
            for rank, doc in enumerate(order if blind else rng.sample(order, len(order)))
        }
        for query in qrels
    }
    evaluation = Evaluation.create(run, qrels, corpus_size=n_documents + 5)
    report = run_gate(evaluation, measure, FAST)
    certifier = Certifier(qrels, measure, corpus_size=n_documents + 5)
    certificate = certifier.certify(report.score)
    for name, bound in certificate.bounds.items():
        # D's mean comes from trials
        slack = 5 * report.nulls[name].mean_error + 1e-9
        assert report.nulls[name].mean <= bound.bound + slack, name
    # C is exact for a run that is as deep as the measure looks
    assert certificate.bounds["C"].bound == pytest.approx(report.nulls["C"].mean, abs=1e-12)


def test_the_best_constant_ranking_is_never_certified() -> None:
    qrels = random_qrels(random.Random(3), 40, 12)
    certifier = Certifier(qrels, "nDCG@10", corpus_size=1000)
    ranking = certifier.ceiling.ranking
    run = {query: {doc: float(-i) for i, doc in enumerate(ranking)} for query in qrels}
    report = run_gate(Evaluation.create(run, qrels, corpus_size=1000), "nDCG@10", FAST)
    assert report.score == pytest.approx(certifier.ceiling.score)
    for tau in (0.0, 0.01, 0.05):
        assert certifier.certify(report.score, tau).verdict == "NOT CERTIFIED"


SINGLE = {f"q{i}": {f"d{i}": 1} for i in range(40)}


@pytest.mark.parametrize(
    ("score", "tau", "verdict", "says"),
    [
        (0.9, 0.05, "CERTIFIED", "above 0.1136"),
        (0.1137 + 0.05, 0.05, "CERTIFIED", "at least tau"),
        (0.1135 + 0.05, 0.05, "NOT CERTIFIED", "only 0.1636 would be certified"),
        (0.9, 0.95, "FAIL", "below tau"),
        (0.96, 0.95, "NOT CERTIFIED", "no score could be"),
        (0.05, 0.05, "FAIL", "random documents score"),
        (0.049, 0.05, "FAIL", "the score itself is below tau"),
        (0.0, 0.05, "FAIL", "exactly 0"),
        (0.0, 0.0, "FAIL", "exactly 0"),
    ],
)
def test_verdicts(score: float, tau: float, verdict: str, says: str) -> None:
    certificate = Certifier(SINGLE, "nDCG@10", corpus_size=1000).certify(score, tau)
    assert certificate.verdict == verdict
    assert says in certificate.reason


def test_an_estimated_corpus_fails_nobody() -> None:
    """Counting the judged documents makes random documents look good: no proof of a FAIL."""
    certifier = Certifier({"q1": {"d1": 1}, "q2": {"d2": 1}}, "nDCG@10")
    certificate = certifier.certify(0.6)
    assert certificate.bounds["C"].delta < 0.05
    assert certificate.verdict == "NOT CERTIFIED"
    assert certificate.corpus_size_source == "estimated"
    assert "W-CORPUS-ESTIMATED" in {note.code for note in certificate.warnings}


def test_gold_that_the_corpus_lacks_is_never_drawn() -> None:
    corpus = frozenset(f"d{i}" for i in range(20))
    present = Certifier(SINGLE, "nDCG@10", corpus_ids=corpus)
    every = Certifier(SINGLE, "nDCG@10", corpus_size=20)
    assert present.random_mean == pytest.approx(every.random_mean / 2)


def test_a_measure_without_closed_form_is_refused() -> None:
    with pytest.raises(MeasureError, match="certifies nothing"):
        Certifier(SINGLE, "ERR@10", corpus_size=100)


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan")])
def test_impossible_scores_are_refused(score: float) -> None:
    with pytest.raises(UsageError, match="score"):
        Certifier(SINGLE, "nDCG@10", corpus_size=100).certify(score)
    with pytest.raises(UsageError, match="score"):
        failed_certificate("nDCG@10", score)


def test_a_certificate_is_plain_data() -> None:
    import json

    names: dict[str, Any] = {"system": "<b>", "task": "T", "provenance": {"n": np.int64(3)}}
    certificate = Certifier(SINGLE, "nDCG@10", corpus_size=1000).certify(0.5, **names)
    document = json.loads(json.dumps(certificate.to_dict(), allow_nan=False))
    assert document["kind"] == "certificate"
    assert set(document["bounds"]) == set("ABCD")
    assert "&lt;b&gt;" in certificate._repr_html_()
