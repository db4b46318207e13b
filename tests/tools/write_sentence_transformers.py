"""sentence-transformers: predictions of ``InformationRetrievalEvaluator``, with a toy model."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers.evaluation import InformationRetrievalEvaluator
from sentence_transformers.util import cos_sim

from tests.tools.toy import CORPUS, GOLD, QUERIES


class Toy:
    """Counts words: as much of a model as the evaluator asks for."""

    similarity_fn_name = "cosine"
    similarity = staticmethod(cos_sim)

    class model_card_data:  # noqa: N801  # their name
        @staticmethod
        def set_evaluation_metrics(*_: Any, **__: Any) -> None: ...

    def encode(self, texts: Sequence[str], **_: Any) -> Any:
        counts = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.split():
                counts[row, zlib.crc32(word.encode()) % 64] += 1 + len(word) / 100
        return torch.tensor(counts)

    encode_query = encode_document = encode


def write(folder: Path) -> dict[str, Any]:
    relevant = {query_id: set(docs) for query_id, docs in GOLD.items()}
    evaluator = InformationRetrievalEvaluator(
        QUERIES,
        CORPUS,
        relevant,
        name="toy",
        mrr_at_k=[10],
        ndcg_at_k=[10],
        accuracy_at_k=[10],
        precision_recall_at_k=[10],
        map_at_k=[10],
        write_predictions=True,
        write_csv=False,
    )
    scores = evaluator(Toy(), output_path=str(folder))
    return {
        "version": version("sentence-transformers"),
        **{name.removeprefix("toy_cosine_"): float(score) for name, score in scores.items()},
    }
