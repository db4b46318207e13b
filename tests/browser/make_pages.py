"""Write the pages that the browser test opens, and what the gate says of some mixtures.

Usage: python -m tests.browser.make_pages FOLDER
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from falsify_adapters import baselines
from falsify_adapters.adapters.beir import open_datasets
from falsify_adapters.errors import InputError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.gate import run_gate
from falsify_adapters.playground import PREDICTORS, _mixtures, make_playground
from falsify_adapters.report.html import to_html
from falsify_adapters.report.outcome import Outcome, Refusal, Skip
from falsify_adapters.results import GateConfig
from tests.hostile import NAMES, hostile_evaluation

CONFIG = GateConfig(n_trials=200, n_boot=400)
#: Predictor, tenths of the queries that it answers, and threshold.
PLAYED = (
    *(("run", 0, 0.05), ("constant", 10, 0.05), ("constant", 10, 0.0), ("popularity", 5, 0.4)),
    *(("popularity-sample", 9, 0.05), ("random", 10, 0.02), ("random", 3, 0.05), ("run", 7, 0.62)),
    *(("run", 0, 1.0), ("popularity", 1, 0.57), ("constant", 8, 0.13)),
)


def sample_page() -> tuple[Outcome, list[dict[str, Any]]]:
    """Return BM25 and the controls on the sample, and what the gate says of its mixtures."""
    (dataset,) = open_datasets("sample")
    evaluation = dataset.evaluate()
    outcome = Outcome([run_gate(evaluation, "nDCG@10", CONFIG)])
    for control in baselines.controls(evaluation, "nDCG@10", corpus_ids=dataset.corpus_ids):
        outcome.reports.append(run_gate(control, "nDCG@10", CONFIG))
    (report, *_) = outcome.gate_reports()
    ids = dataset.corpus_ids
    ground = make_playground(evaluation, report, CONFIG, corpus_ids=ids, progress=False)
    outcome.playgrounds.append(ground)
    runs = {(name, share): run for name, share, run in _mixtures(evaluation, "nDCG@10", 0, ids)}
    expected = []
    for predictor, tenths, tau in PLAYED:
        key = ("run", 0.0) if predictor == "run" else (predictor, tenths / 10)
        mixed = evaluation.with_run(runs[key])
        graded = run_gate(mixed, "nDCG@10", replace(CONFIG, tau=tau))
        expected.append(
            {
                "predictor": list(PREDICTORS).index(predictor),
                "share": tenths,
                "tau": ground.taus.index(tau),
                "gate": graded.verdict,
                "nulls": [null.verdict for null in graded.nulls.values()],
                "score": graded.score,
                "reason": graded.reason,
            }
        )
    return outcome, expected


def simulated(name: str, skill: float, n_queries: int, seed: int) -> Evaluation:
    """Return a run that finds the answer for a share of the queries, on a skewed benchmark."""
    rng = np.random.default_rng(seed)
    gold = rng.zipf(1.6, n_queries) % 400
    qrels = {f"q{i}": {f"d{doc}": 1} for i, doc in enumerate(gold)}
    run = {
        f"q{i}": {
            **{f"d{d}": 1.0 - r / 20 for r, d in enumerate(rng.choice(4000, 9, replace=False))},
            **({f"d{doc}": float(rng.random())} if rng.random() < skill else {}),
        }
        for i, doc in enumerate(gold)
    }
    return Evaluation.create(run, qrels, corpus_size=4000, system=f"system {skill}", benchmark=name)


def many_page() -> Outcome:
    """Return three systems on three benchmarks: all verdicts, a gap, many queries."""
    outcome = Outcome(
        errors=[Refusal("broken.trec", InputError("broken.trec is empty", hint="check it"))],
        skipped=[Skip("notes.log", "not a run")],
    )
    for seed, (name, n) in enumerate((("small", 40), ("medium", 300), ("large", 2000))):
        for skill in (0.9, 0.25, 0.02)[: 2 if name == "large" else 3]:
            outcome.reports.append(run_gate(simulated(name, skill, n, seed), "nDCG@10", CONFIG))
    return outcome


def hostile_page() -> Outcome:
    """Return reports whose every name is hostile."""
    outcome = Outcome(
        errors=[Refusal(NAMES[0], InputError(NAMES[1], found=NAMES[4], hint=NAMES[5]))],
        skipped=[Skip(NAMES[3], NAMES[2])],
    )
    for name in NAMES:
        evaluation = hostile_evaluation(system=name)
        outcome.reports.append(run_gate(evaluation, "RR@10", CONFIG))
    (first, *_) = outcome.gate_reports()
    outcome.playgrounds.append(
        make_playground(hostile_evaluation(system=NAMES[0]), first, CONFIG, progress=False)
    )
    outcome.reports.append(run_gate(hostile_evaluation(benchmark=NAMES[4]), "RR@10", CONFIG))
    return outcome


def main(folder: Path) -> None:
    """Write all pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    sample, expected = sample_page()
    pages = {"sample": sample, "many": many_page(), "hostile": hostile_page()}
    for name, outcome in pages.items():
        (folder / f"{name}.html").write_text(to_html(outcome), encoding="utf-8")
    (folder / "expected.json").write_text(json.dumps({"sample.html": expected}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
