"""LlamaIndex: what ``RetrieverEvaluator.evaluate`` returns, one JSON object per query."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

from llama_index.core.evaluation import RetrieverEvaluator
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from tests.tools.toy import CORPUS, GOLD, QUERIES, RANKED, K

BY_TEXT = {text: query_id for query_id, text in QUERIES.items()}


class Toy(BaseRetriever):
    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return nodes(BY_TEXT[query_bundle.query_str])


def nodes(query_id: str) -> list[NodeWithScore]:
    return [
        NodeWithScore(node=TextNode(id_=doc, text=CORPUS[doc]), score=1.0 / (1 + rank))
        for rank, doc in enumerate(RANKED[query_id])
    ]


def results() -> list[Any]:
    evaluator = RetrieverEvaluator.from_metric_names(
        ["hit_rate", "mrr", "recall", "precision"], retriever=Toy()
    )
    return [evaluator.evaluate(text, GOLD[query_id]) for query_id, text in QUERIES.items()]


def write(folder: Path) -> dict[str, Any]:
    found = results()
    lines = [one.model_dump_json() + "\n" for one in found]
    (folder / "retrieval.jsonl").write_text("".join(lines))
    means = {
        name: sum(one.metric_vals_dict[name] for one in found) / len(found)
        for name in ("hit_rate", "mrr", "recall", "precision")
    }
    return {"version": version("llama-index-core"), "depth": K, **means}
