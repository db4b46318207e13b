"""RAGAS: samples with ids and without, as ``EvaluationDataset`` saves them.

RAGAS 0.4.3 needs langchain-community below 0.4, which it does not say.
"""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ragas import EvaluationDataset, SingleTurnSample
from ragas.metrics import IDBasedContextRecall

from tests.tools.toy import CORPUS, GOLD, QUERIES, RANKED


def write(folder: Path) -> dict[str, Any]:
    samples, with_ids = [], []
    for query_id, text in QUERIES.items():
        plain = {
            "user_input": text,
            "retrieved_contexts": [CORPUS[doc] for doc in RANKED[query_id]],
            "reference_contexts": [CORPUS[doc] for doc in GOLD[query_id]],
            "response": "x",
            "reference": "y",
        }
        ids = {
            "retrieved_context_ids": RANKED[query_id],
            "reference_context_ids": GOLD[query_id],
        }
        samples.append(SingleTurnSample(**plain))
        with_ids.append(SingleTurnSample(**plain, **ids))
    EvaluationDataset(samples).to_jsonl(folder / "texts.jsonl")
    EvaluationDataset(with_ids).to_jsonl(folder / "ids.jsonl")
    EvaluationDataset(with_ids).to_csv(folder / "ids.csv")
    recall = IDBasedContextRecall()
    values = [asyncio.run(recall.single_turn_ascore(sample)) for sample in with_ids]
    return {"version": version("ragas"), "recall": sum(values) / len(values)}
