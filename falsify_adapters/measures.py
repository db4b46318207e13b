"""The only module that calls ir-measures: names, per-query scores, and scores of hits.

Whatever provider ir-measures picks, it is given one strict ranking (surrogate scores that fall by
one from rank to rank), so that its providers' different rules for ties never matter.
"""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import pandas as pd

from falsify_adapters.coded import Groups, segment_sums
from falsify_adapters.errors import MeasureError
from falsify_adapters.frames import FloatArray, IntArray, categories, codes, rank_in_query
from falsify_adapters.kernels import (
    NDCG,
    AveragePrecision,
    Hits,
    Inclusion,
    Kernel,
    Precision,
    Recall,
    ReciprocalRank,
    RPrecision,
    SetPrecision,
    Success,
)

Measure = Any  # ir_measures.Measure: the package ships without usable types

#: Deeper cutoffs make native code allocate without bound.
LARGEST_CUTOFF = 1_000_000
#: Documents sent to ir-measures in one call when it scores hits.
BATCH_DOCUMENTS = 500_000

_FITTING = "nDCG@10, AP@100, RR@10, P@10, R@100, Success@5"
_UNFIT = {
    "Bpref": "needs judged non-relevant documents, which the nulls do not have",
    "infAP": "needs judged non-relevant documents, which the nulls do not have",
    "Judged": "is not 0 for a ranking without relevant documents",
    "Accuracy": "is not 0 for a ranking without relevant documents",
    "NumRet": "is a count, not a score in [0, 1]",
    "NumRel": "is a count, not a score in [0, 1]",
    "NumQ": "is a count, not a score in [0, 1]",
}
_DIVERSITY = {
    *("ERR_IA", "nERR_IA", "alpha_DCG", "alpha_nDCG", "NRBP", "nNRBP"),
    *("AP_IA", "P_IA", "StRecall"),
}


def parse_measure(measure: str | Measure) -> Measure:
    """Return an ir-measures measure that the gate can grade.

    Parameters
    ----------
    measure : str or ir_measures.Measure
        As ir-measures spells it (``nDCG@10``, ``P(rel=2)@5``); upper and lower case are forgiven.

    Returns
    -------
    ir_measures.Measure

    Raises
    ------
    MeasureError
        If ir-measures does not know the measure, has no provider for it here, or the gate cannot
        grade it; the message names measures that fit.

    Examples
    --------
    >>> parse_measure("ndcg@10")
    nDCG@10
    """
    parsed = _parse_text(measure) if isinstance(measure, str) else measure
    if not isinstance(parsed, ir_measures.Measure):
        raise MeasureError(
            "a measure is a name or an ir-measures object", found=type(measure).__name__
        )
    _check_parameters(parsed)
    if parsed.NAME in _UNFIT:
        raise MeasureError(f"{parsed} {_UNFIT[parsed.NAME]}", hint=f"these fit: {_FITTING}")
    if parsed.NAME in _DIVERSITY:
        raise MeasureError(f"{parsed} needs judgements per subtopic", hint=f"these fit: {_FITTING}")
    _check_behaviour(parsed)
    return parsed


def measure_depth(measure: Measure) -> int | None:
    """Return how deep a measure looks into a ranking, None for all of it."""
    cutoff = measure.params.get("cutoff")
    return None if cutoff is None else int(cutoff)


def query_scores(run: pd.DataFrame, qrels: pd.DataFrame, measure: Measure) -> FloatArray:
    """Score every query of the qrels with ir-measures.

    Parameters
    ----------
    run, qrels : DataFrame
        The common frames.
    measure : ir_measures.Measure
        From :func:`parse_measure`.

    Returns
    -------
    ndarray, shape (n_queries,)
        In the order of the qrels' query categories; a query that the run misses scores 0.

    Raises
    ------
    MeasureError
        If ir-measures returns something outside [0, 1].

    Examples
    --------
    >>> from falsify_adapters.frames import as_qrels, as_run
    >>> run = as_run({"q1": {"d1": 0.2, "d2": 0.9}})
    >>> query_scores(run, as_qrels({"q1": {"d1": 1}, "q2": {"d1": 1}}), parse_measure("RR@10"))
    array([0.5, 0. ])
    """
    query_ids = categories(qrels["query_id"])
    values = _calculate(measure, _qrels_dict(qrels), _run_dict(run, measure_depth(measure)))
    scores = np.array([values.get(query_id, 0.0) for query_id in query_ids], dtype=np.float64)
    if not ((scores >= -1e-9) & (scores <= 1 + 1e-9)).all():
        raise MeasureError(
            f"{measure} gives values outside [0, 1]",
            found=f"{scores.min():.6g} to {scores.max():.6g}",
            hint=f"these fit: {_FITTING}",
        )
    return scores


def make_kernel(measure: Measure, profiles: Groups) -> Kernel:
    """Return the numpy kernel of a measure, or the one that asks ir-measures.

    Parameters
    ----------
    measure : ir_measures.Measure
        From :func:`parse_measure`.
    profiles : Groups
        Grade profiles of the gold sets (see :class:`falsify_adapters.coded.Coded`).
    """
    maker = _KERNELS.get(measure.NAME)
    known = {"cutoff", "rel", "gains", "judged_only"}
    plain_dcg = measure.params.get("dcg", "log2") == "log2"
    extra = {name for name in measure.params if name not in known} - {"dcg"}
    if maker is None or extra or not plain_dcg:
        return IrMeasuresKernel(measure, profiles)
    return maker(measure, profiles)


_KERNELS: dict[str, Callable[[Measure, Groups], Kernel]] = {
    "nDCG": lambda m, p: NDCG(p, measure_depth(m), m.params.get("gains")),
    "P": lambda m, p: Precision(p, measure_depth(m), m["rel"]),
    "R": lambda m, p: Recall(p, measure_depth(m), m["rel"]),
    "SetR": lambda m, p: Recall(p, None, m["rel"]),
    "SetP": lambda m, p: SetPrecision(p, None, m["rel"]),
    "AP": lambda m, p: AveragePrecision(p, measure_depth(m), m["rel"]),
    "RR": lambda m, p: ReciprocalRank(p, measure_depth(m), m["rel"]),
    "Success": lambda m, p: Success(p, measure_depth(m), m["rel"]),
    "Rprec": lambda m, p: RPrecision(p, None, m["rel"]),
}


class IrMeasuresKernel(Kernel):
    """Any measure, through ir-measures itself: each distinct pattern of hits is scored once.

    Parameters
    ----------
    measure : ir_measures.Measure
        From :func:`parse_measure`.
    profiles : Groups
        Grade profiles of the gold sets.
    """

    closed_form = False

    def __init__(self, measure: Measure, profiles: Groups) -> None:
        self.measure = measure
        rel = measure.params.get("rel", 1)
        super().__init__(profiles, measure_depth(measure), rel)
        self._known: dict[tuple[int, ...], float] = {}

    def score(self, hits: Hits) -> FloatArray:
        keys = self._patterns(hits)
        unknown = sorted({key for key in keys if key and key not in self._known})
        for batch in _batches(unknown):
            self._known.update(self._ask(batch))
        return np.array([self._known[key] if key else 0.0 for key in keys], dtype=np.float64)

    def _patterns(self, hits: Hits) -> list[tuple[int, ...]]:
        """Return each pair's (profile, returned, rank, grade, rank, grade, ...), or ()."""
        keys: list[tuple[int, ...]] = [()] * len(hits.profile)
        cells = np.stack([hits.rank, hits.grade], axis=1).ravel().tolist()
        pairs, start = np.unique(hits.pair, return_index=True)
        bounds = (2 * np.r_[start, len(hits.pair)]).tolist()
        profile, returned = hits.profile.tolist(), hits.returned.tolist()
        for i, pair in enumerate(pairs.tolist()):
            keys[pair] = (profile[pair], returned[pair], *cells[bounds[i] : bounds[i + 1]])
        return keys

    def _ask(self, patterns: list[tuple[int, ...]]) -> dict[tuple[int, ...], float]:
        run: dict[str, dict[str, float]] = {}
        qrels: dict[str, dict[str, int]] = {}
        for number, (profile, returned, *cells) in enumerate(patterns):
            name = str(number)
            run[name] = {f"r{rank}": float(returned - rank) for rank in range(1, returned + 1)}
            found = dict(zip(cells[::2], cells[1::2], strict=True))
            bounds = self.profiles.start[profile : profile + 2]
            missed = list(self.profiles.values[bounds[0] : bounds[1]].tolist())
            for grade in found.values():
                missed.remove(grade)
            qrels[name] = {f"r{rank}": grade for rank, grade in found.items()}
            qrels[name] |= {f"m{i}": grade for i, grade in enumerate(missed)}
        values = _calculate(self.measure, qrels, run)
        return {pattern: values.get(str(i), 0.0) for i, pattern in enumerate(patterns)}

    def random_mean(
        self, corpus_size: int, present: IntArray, gain: FloatArray, profile: IntArray, k: IntArray
    ) -> FloatArray:
        raise NotImplementedError("no closed form: null C takes the mean of its trials")

    def inclusion_mean(self, entries: Inclusion) -> tuple[FloatArray, FloatArray]:
        """Take each entry's score as the only hit, averaged over the query's grades: first order.

        The means of null D come from its trials; only their spread over queries uses this.
        """
        profiles = entries.profile[entries.query]
        length = self.profiles.length[profiles]
        owner = np.repeat(np.arange(len(profiles)), length)
        first = np.repeat(np.r_[0, np.cumsum(length)[:-1]], length)
        cell = np.repeat(self.profiles.start[profiles], length) + np.arange(len(owner)) - first
        hits = Hits(
            pair=np.arange(len(owner)),
            rank=entries.rank[owner],
            grade=self.profiles.values[cell],
            profile=profiles[owner],
            returned=entries.returned[entries.query[owner]],
        )
        slope = segment_sums(self.score(hits), owner, len(profiles)) / np.maximum(length, 1)
        mean = segment_sums(slope * entries.probability, entries.query, len(entries.profile))
        return mean, slope


def _batches(patterns: list[tuple[int, ...]]) -> Iterable[list[tuple[int, ...]]]:
    batch: list[tuple[int, ...]] = []
    size = 0
    for pattern in patterns:
        batch.append(pattern)
        size += pattern[1]
        if size >= BATCH_DOCUMENTS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _run_dict(run: pd.DataFrame, depth: int | None) -> dict[str, dict[str, float]]:
    """Return the run as ir-measures takes it fastest, with strictly falling scores."""
    query = codes(run["query_id"])
    rank = rank_in_query(query)
    if depth is not None:
        keep = rank <= depth
        run, query, rank = run[keep], query[keep], rank[keep]
    query_ids = categories(run["query_id"])
    doc_ids = categories(run["doc_id"])[codes(run["doc_id"])].tolist()
    start = np.flatnonzero(np.r_[True, query[1:] != query[:-1]]) if len(query) else query
    bounds = np.r_[start, len(query)].tolist()
    deepest = float(rank.max(initial=0))
    score = (deepest - rank).tolist()
    return {
        query_ids[query[low]]: dict(zip(doc_ids[low:high], score[low:high], strict=True))
        for low, high in pairwise(bounds)
    }


def _qrels_dict(qrels: pd.DataFrame) -> dict[str, dict[str, int]]:
    query = codes(qrels["query_id"])
    query_ids = categories(qrels["query_id"])
    doc_ids = categories(qrels["doc_id"])[codes(qrels["doc_id"])].tolist()
    # ir-measures' providers disagree about negative grades: all of them mean "not relevant" here
    grade = np.maximum(qrels["relevance"].to_numpy(), 0).tolist()
    start = np.flatnonzero(np.r_[True, query[1:] != query[:-1]])
    bounds = np.r_[start, len(query)].tolist()
    return {
        query_ids[query[low]]: dict(zip(doc_ids[low:high], grade[low:high], strict=True))
        for low, high in pairwise(bounds)
    }


def _calculate(
    measure: Measure, qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]]
) -> dict[str, float]:
    try:
        return {
            metric.query_id: float(metric.value)
            for metric in ir_measures.iter_calc([measure], qrels, run)
        }
    except subprocess.CalledProcessError as error:
        # some providers are programs of their own, with their own ideas of what an id is
        raise MeasureError(
            f"ir-measures' provider for {measure} fails",
            found=f"status {error.returncode} of {Path(error.cmd[0]).name}",
            hint=f"these fit: {_FITTING}",
        ) from None
    except ValueError as error:
        if "Unsupported measures" not in str(error):
            raise
        raise MeasureError(
            f"ir-measures has no provider for {measure} here",
            found=str(error).splitlines()[-1].strip(" -"),
            hint=f"install it, or take one of these: {_FITTING}",
        ) from None


def _parse_text(text: str) -> Measure:
    with warnings.catch_warnings():
        # ir-measures' parser uses ast.Num and its kin, deprecated since Python 3.8
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return ir_measures.parse_measure(text.strip())
        except NameError:
            name, *rest = _split_name(text.strip())
            known = {key.lower(): key for key in ir_measures.measures.registry}
            if name.lower() in known:
                return ir_measures.parse_measure(known[name.lower()] + "".join(rest))
            problem = f"ir-measures knows no measure {name!r}"
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            problem = f"{text!r} is not a measure"
    raise MeasureError(problem, hint=f"write it as ir-measures does: {_FITTING}")


def _split_name(text: str) -> tuple[str, str]:
    ends = [text.find(mark) for mark in "(@" if mark in text]
    end = min(ends, default=len(text))
    return text[:end], text[end:]


def _check_parameters(measure: Measure) -> None:
    for name in ("cutoff", "rel"):
        value = measure.params.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise MeasureError(
                f"the {name} of {measure.NAME} must be a whole number from 1 on", found=repr(value)
            )
        if value > LARGEST_CUTOFF:
            raise MeasureError(
                f"the {name} of {measure.NAME} is too large",
                found=str(value),
                hint=f"the limit is {LARGEST_CUTOFF}",
            )
    if measure.params.get("judged_only"):
        raise MeasureError(
            f"{measure} ignores documents without judgements, which the nulls have many of",
            hint="leave out judged_only",
        )
    gains = measure.params.get("gains")
    if gains is not None and any((old > 0) != (new > 0) or new < 0 for old, new in gains.items()):
        raise MeasureError(
            "a gain table may not turn relevant documents into others, or the other way round",
            found=repr(gains),
        )
    try:
        measure.validate_params()
    except AssertionError as error:
        needs = f"{measure.NAME}: {error}"
        raise MeasureError(needs, hint=f"these fit: {_FITTING}") from None


def _check_behaviour(measure: Measure) -> None:
    """Ask ir-measures whether an unfamiliar measure behaves as the nulls need."""
    if measure.NAME in _KERNELS and "dcg" not in measure.params:
        return
    qrels = {"none": {"d9": 1}, "best": {"d0": 1}}
    ranking = {f"d{i}": float(-i) for i in range(3)}
    values = _calculate(measure, qrels, {"none": ranking, "best": ranking})
    if values.get("none", 0.0) != 0.0 or not 0.0 < values.get("best", 0.0) <= 1.0:
        raise MeasureError(
            f"{measure} is not a score in [0, 1] that is 0 without a relevant document",
            found=f"{values.get('none'):.6g} without one, {values.get('best'):.6g} at best",
            hint=f"these fit: {_FITTING}",
        )
