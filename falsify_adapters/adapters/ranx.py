"""ranx: Run and Qrels objects, and the frames that they turn into (`q_id, doc_id, score`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from falsify_adapters.adapters.renamed import renamed
from falsify_adapters.errors import InputError
from falsify_adapters.evaluation import Evaluation


def from_ranx(run: Any, qrels: Any, **joining: Any) -> Evaluation:
    """Return the evaluation of a ranx run.

    Files that ranx saved (JSON, lz4, parquet, TREC) are read by
    :func:`falsify_adapters.read_run` and :func:`falsify_adapters.read_qrels`.

    Parameters
    ----------
    run : ranx.Run, DataFrame or mapping
        The object, its ``to_dataframe()``, or its ``to_dict()``. Left unchanged.
    qrels : ranx.Qrels, DataFrame or mapping
        As `run`; ranx calls a grade ``score``.
    **joining
        Keywords of :meth:`Evaluation.create`. The system's name is the run's, if it has one.

    Raises
    ------
    InputError
        If these are no such objects, or as :meth:`Evaluation.create` raises it.

    Examples
    --------
    >>> run = pd.DataFrame({"q_id": ["q1"], "doc_id": ["d1"], "score": [0.5]})
    >>> from_ranx(run, {"q1": {"d1": 1}}, corpus_size=9).n_queries
    1
    """
    name = getattr(run, "name", None)
    if isinstance(name, str) and name:
        joining = {"system": name, **joining}
    return Evaluation.create(_plain(run, "score"), _plain(qrels, "relevance"), **joining)


def _plain(data: Any, value: str) -> Any:
    name = "run" if value == "score" else "qrels"
    if isinstance(data, pd.DataFrame):
        return renamed(data, {"query_id": "q_id", "doc_id": "doc_id", value: "score"}, name)
    if not isinstance(data, Mapping):
        if not hasattr(data, "to_dict"):
            raise InputError(
                f"{name} is no ranx object",
                found=type(data).__name__,
                hint="give ranx.Run and ranx.Qrels, their frames, or dicts",
            )
        data = data.to_dict()
    return {str(query): dict(documents) for query, documents in data.items()}
