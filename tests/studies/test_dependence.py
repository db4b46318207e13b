"""The study of dependent queries at reduced size: naming what hangs together restores coverage."""

from __future__ import annotations

import numpy as np
import pytest

from tests.studies import dependence
from tests.studies.dependence import alone, blocks_of, clusters_of, in_time, paraphrases

SEED, REPS = 0, 120
#: Three standard errors of a coverage of 0.92 over so many benchmarks.
MARGIN = 3 * float(np.sqrt(0.92 * 0.08 / REPS))


@pytest.mark.parametrize("size", [5, 10])
def test_clusters_restore_what_paraphrases_take(size: int) -> None:
    ways = {"ignored": alone, "named": clusters_of(size)}
    found = dependence.held(paraphrases(size), 100, ways, (REPS, 150), SEED)
    assert found["named"].covered.min() >= 0.92 - MARGIN
    assert found["ignored"].covered.max() < 0.92
    assert np.all(found["ignored"].covered <= found["named"].covered - 0.05)
    assert np.all(found["named"].width > found["ignored"].width)


def test_blocks_restore_what_time_takes() -> None:
    ways = {"ignored": alone, "named": blocks_of(10)}
    found = dependence.held(in_time(dependence.MEMORY), 200, ways, (REPS, 150), SEED)
    assert found["named"].covered.min() >= 0.92 - MARGIN
    assert found["ignored"].covered.max() < 0.92
    assert np.all(found["named"].width > 1.2 * found["ignored"].width)


def test_paraphrases_share_their_answer_and_results_hang_together() -> None:
    rng = np.random.default_rng(SEED)
    process = paraphrases(5)
    gold = process.gold(rng, 100)
    assert gold.n_queries == 100
    np.testing.assert_array_equal(gold.query, np.arange(100))
    by_question = gold.doc.reshape(20, 5)
    assert (by_question == by_question[:, :1]).all()
    ability = process.ability(rng, 2000).reshape(-1, 5)
    hits = rng.random(ability.shape) < ability
    pairs = np.corrcoef(hits.T)[np.triu_indices(5, 1)]
    assert pairs.mean() == pytest.approx(1 / (2 * dependence.SPREAD + 1), abs=0.07)


def test_ability_in_time_remembers_its_neighbour() -> None:
    rng = np.random.default_rng(SEED)
    drift = in_time(0.8).ability(rng, 5000)
    hidden = np.log(drift / (1 - drift)) / dependence.SWING
    assert np.corrcoef(hidden[1:], hidden[:-1])[0, 1] == pytest.approx(0.8, abs=0.03)
    assert hidden.std() == pytest.approx(1, abs=0.1)
