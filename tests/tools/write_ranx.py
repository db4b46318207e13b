"""ranx: its own score of the toy benchmark (its objects and files are made in the tests)."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

from ranx import Qrels, Run, evaluate

from tests.tools.toy import GOLD, RANKED

RUN = {q: {doc: 1.0 - k / 9 for k, doc in enumerate(docs)} for q, docs in RANKED.items()}
QRELS = {q: {doc: 3 - k for k, doc in enumerate(docs)} for q, docs in GOLD.items()}


def write(_folder: Path) -> dict[str, Any]:
    own = evaluate(Qrels(QRELS), Run(RUN), "ndcg@5")
    return {"version": version("ranx"), "ndcg@5": float(own)}
