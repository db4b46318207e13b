"""The only module that calls ir-measures: names, per-query scores, and scores of hits.

Whatever provider ir-measures picks, it is given one strict ranking (surrogate scores that fall by
one from rank to rank), so that its providers' different rules for ties never matter.
"""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from itertools import pairwise
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
    RandomDraw,
    Recall,
    ReciprocalRank,
    RPrecision,
    SetPrecision,
    Success,
)
from falsify_adapters.notes import Note, counted, plural, some

Measure = Any  # ir_measures.Measure: the package ships without usable types

#: Deeper cutoffs make native code allocate without bound.
LARGEST_CUTOFF = 1_000_000
#: Longer texts are no measures.
LONGEST_MEASURE = 200
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
        raise _refusal("a measure is a name or an ir-measures object", type(measure).__name__)
    if parsed.NAME is None:
        raise _refusal("a defined measure needs a name", hint='write define(..., name="Mine")')
    _check_parameters(parsed)
    if parsed.NAME in _UNFIT:
        raise _refusal(f"{parsed} {_UNFIT[parsed.NAME]}")
    if parsed.NAME in _DIVERSITY:
        raise _refusal(f"{parsed} needs judgements per subtopic")
    _check_behaviour(parsed)
    return parsed


def check_grade(measure: Measure, qrels: pd.DataFrame) -> list[Note]:
    """Look whether the judgements reach the lowest grade that a measure takes for relevant.

    Parameters
    ----------
    measure : ir_measures.Measure
        From :func:`parse_measure`.
    qrels : DataFrame
        The common qrels frame.

    Returns
    -------
    list of Note
        ``W-NO-RELEVANT``, if some queries have relevant documents of lower grades only.

    Raises
    ------
    MeasureError
        If no document of any query reaches the grade: every system would score 0.

    Examples
    --------
    >>> from falsify_adapters.frames import as_qrels
    >>> qrels = as_qrels({"q1": {"d1": 2}, "q2": {"d1": 1}})
    >>> print(*check_grade(parse_measure("P(rel=2)@5"), qrels))
    W-NO-RELEVANT: 1 of 2 queries has no document of grade 2 or more (q2) and counts as 0
    """
    lowest = measure.params.get("rel", 1)
    grades = qrels["relevance"].to_numpy()
    if lowest <= 1:
        return []
    if grades.max() < lowest:
        raise MeasureError(
            f"{measure} takes grade {lowest} and more for relevant, which no judged document has",
            found=f"the highest grade is {grades.max()}",
            hint="lower rel, or --min-rel, to a grade that the judgements have",
        )
    queries = qrels["query_id"].cat
    reached, relevant = np.zeros((2, len(queries.categories)), dtype=bool)
    reached[queries.codes[grades >= lowest]] = True
    relevant[queries.codes[grades > 0]] = True
    low = queries.categories[relevant & ~reached]
    if not len(low):
        return []
    return [
        Note(
            "W-NO-RELEVANT",
            f"{len(low)} of {counted(len(queries.categories), 'query')}"
            f" {plural(len(low), 'has', 'have')} no document of grade {lowest} or more"
            f" ({some(low)}) and {plural(len(low), 'counts', 'count')} as 0",
        )
    ]


def measure_depth(measure: Measure) -> int | None:
    """Return how deep a measure looks into a ranking, None for all of it."""
    cutoff = measure.params.get("cutoff")
    return None if cutoff is None else int(cutoff)


def query_scores(run: pd.DataFrame, qrels: pd.DataFrame, *measures: Measure) -> list[FloatArray]:
    """Score every query of the qrels with ir-measures, by all measures in one call.

    Parameters
    ----------
    run, qrels : DataFrame
        The common frames.
    *measures : ir_measures.Measure
        From :func:`parse_measure`.

    Returns
    -------
    list of ndarray, shape (n_queries,)
        For each measure the scores in the order of the qrels' query categories; a query that the
        run misses scores 0.

    Raises
    ------
    MeasureError
        If ir-measures returns something outside [0, 1].

    Examples
    --------
    >>> from falsify_adapters.frames import as_qrels, as_run
    >>> run = as_run({"q1": {"d1": 0.2, "d2": 0.9}})
    >>> query_scores(run, as_qrels({"q1": {"d1": 1}, "q2": {"d1": 1}}), parse_measure("RR@10"))
    [array([0.5, 0. ])]
    """
    n_queries = len(qrels["query_id"].cat.categories)
    depths = [measure_depth(measure) for measure in measures]
    deepest = None if None in depths else max(filter(None, depths))
    values = _calculate(measures, _qrels_dict(qrels), _run_dict(run, qrels, deepest))
    scores = []
    for measure, of_query in zip(measures, values, strict=True):
        score = np.array([of_query.get(str(i), 0.0) for i in range(n_queries)], dtype=np.float64)
        if not ((score >= -1e-9) & (score <= 1 + 1e-9)).all():
            found = f"{score.min():.6g} to {score.max():.6g}"
            raise _refusal(f"{measure} gives values outside [0, 1]", found)
        scores.append(score)
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
            run[name] = {f"r{rank}": returned - rank + 1.0 for rank in range(1, returned + 1)}
            found = dict(zip(cells[::2], cells[1::2], strict=True))
            bounds = self.profiles.start[profile : profile + 2]
            missed = list(self.profiles.values[bounds[0] : bounds[1]].tolist())
            for grade in found.values():
                missed.remove(grade)
            qrels[name] = {f"r{rank}": grade for rank, grade in found.items()}
            qrels[name] |= {f"m{i}": grade for i, grade in enumerate(missed)}
        (values,) = _calculate([self.measure], qrels, run)
        return {pattern: values.get(str(i), 0.0) for i, pattern in enumerate(patterns)}

    def random_mean(self, draw: RandomDraw) -> FloatArray:
        raise NotImplementedError("no closed form: null C takes the mean of its trials")

    def inclusion_mean(self, entries: Inclusion) -> tuple[FloatArray, FloatArray]:
        """Take each entry's score as the only hit, averaged over the query's grades: first order.

        The means of null D come from its trials; only their spread over queries uses this.
        """
        profiles = entries.profile[entries.query]
        length = np.r_[self.profiles.length, 0][profiles]  # -1, the empty profile, has none
        owner = np.repeat(np.arange(len(profiles)), length)
        first = np.repeat(np.cumsum(length) - length, length)
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


def _run_dict(
    run: pd.DataFrame, qrels: pd.DataFrame, depth: int | None
) -> dict[str, dict[str, float]]:
    """Return the run as ir-measures takes it fastest, with strictly falling scores above 0."""
    to_query = qrels["query_id"].cat.categories.get_indexer(run["query_id"].cat.categories)
    query, doc = codes(run["query_id"]), codes(run["doc_id"])
    rank = rank_in_query(query)
    keep = to_query[query] >= 0
    if depth is not None:
        keep &= rank <= depth
    query, doc, rank = query[keep], doc[keep], rank[keep]
    # ids of the corpus are many: look up only those that are still there
    doc_ids = categories(run["doc_id"])[doc].tolist()
    score = (float(rank.max(initial=0)) - rank + 1.0).tolist()
    return _nested(to_query[query], doc_ids, score)


def _qrels_dict(qrels: pd.DataFrame) -> dict[str, dict[str, int]]:
    doc_ids = categories(qrels["doc_id"])[codes(qrels["doc_id"])].tolist()
    # ir-measures' providers disagree about negative grades: all of them mean "not relevant" here
    grade = np.maximum(qrels["relevance"].to_numpy(), 0).tolist()
    return _nested(codes(qrels["query_id"]), doc_ids, grade)


def _nested(query: IntArray, doc_ids: list[str], values: list[Any]) -> dict[str, dict[str, Any]]:
    """Return ``{query: {doc_id: value}}`` of rows that come query by query.

    Queries are called by their number: gdeval takes no other names (it reads "q-12" as 12).
    """
    new = np.r_[True, query[1:] != query[:-1]][: len(query)]
    bounds = np.r_[np.flatnonzero(new), len(query)].tolist()
    return {
        str(query[low]): dict(zip(doc_ids[low:high], values[low:high], strict=True))
        for low, high in pairwise(bounds)
    }


def _calculate(
    measures: Sequence[Measure],
    qrels: dict[str, dict[str, int]],
    run: dict[str, dict[str, float]],
) -> list[dict[str, float]]:
    """Return what each measure gives each query."""
    names = {repr(measure): dict[str, float]() for measure in measures}
    try:
        for metric in ir_measures.iter_calc([_quick(m) for m in measures], qrels, run):
            names[repr(metric.measure)][metric.query_id] = float(metric.value)
    except ValueError as error:
        if "Unsupported measures" not in str(error):
            raise
        found = str(error).splitlines()[-1].strip(" -")
        problem = f"ir-measures has no provider for {', '.join(names)} here"
        raise _refusal(problem, found, hint="install it, or take another") from None
    except subprocess.CalledProcessError as error:
        raise _refusal(
            f"the program that computes {', '.join(names)} for ir-measures failed",
            f"exit status {error.returncode}",
            hint="gdeval takes grades up to 4 and no spaces in ids",
        ) from None
    return [names[repr(measure)] for measure in measures]


def _quick(measure: Measure) -> Measure:
    """Return the same measure, which knows its name.

    ir-measures hashes a measure twice for every query, by a text that it composes each time: more
    work than the evaluation.
    """
    text, quick = repr(measure), copy(measure)
    quick.__class__ = type(
        measure.__class__.__name__, (type(measure),), {"__repr__": lambda _: text}
    )
    return quick


def _parse_text(text: str) -> Measure:
    # the parser builds a syntax tree and evaluates nothing, but a deep tree can exhaust the stack
    if len(text) > LONGEST_MEASURE:
        raise _refusal(f"a measure has at most {LONGEST_MEASURE} characters", f"{text[:40]!r}...")
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
            problem = f"ir-measures knows no measure {name[:40]!r}"
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            problem = f"{text[:40]!r} is not a measure"
    raise _refusal(problem)


def _split_name(text: str) -> tuple[str, str]:
    ends = [text.find(mark) for mark in "(@" if mark in text]
    end = min(ends, default=len(text))
    return text[:end], text[end:]


def _check_parameters(measure: Measure) -> None:
    for name in ("cutoff", "rel"):
        value = measure.params.get(name)
        if value is None:
            continue
        where = f"the {name} of {measure.NAME}"
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise _refusal(f"{where} must be a whole number from 1 on", repr(value))
        if value > LARGEST_CUTOFF:
            raise _refusal(f"{where} is too large (limit {LARGEST_CUTOFF})", str(value)[:40])
    if measure.params.get("judged_only"):
        problem = f"{measure} ignores documents without judgements, which the nulls have many of"
        raise _refusal(problem, hint="leave out judged_only")
    gains = measure.params.get("gains")
    if gains is not None and any((old > 0) != (new > 0) or new < 0 for old, new in gains.items()):
        problem = "a gain table may not turn relevant documents into others, nor others into them"
        raise _refusal(problem, repr(gains))
    missing = [
        name
        for name, info in measure.SUPPORTED_PARAMS.items()
        if info.required and name not in measure.params
    ]
    if missing:
        raise _refusal(f"{measure.NAME} needs a value for {', '.join(missing)}")
    try:
        measure.validate_params()
    except AssertionError as error:
        raise _refusal(f"{measure.NAME}: {error}") from None


def _refusal(problem: str, found: str | None = None, *, hint: str | None = None) -> MeasureError:
    """Return the error that says what does not fit, and names measures that do."""
    return MeasureError(
        problem, found=found, hint=f"{hint + '; ' if hint else ''}these fit: {_FITTING}"
    )


def _check_behaviour(measure: Measure) -> None:
    """Ask ir-measures whether an unfamiliar measure behaves as the nulls need."""
    if measure.NAME in _KERNELS and "dcg" not in measure.params:
        return
    # the measure may count only higher grades; gdeval takes none above 4
    lowest = max(measure.params.get("rel", 1), measure.params.get("max_rel", 1))
    qrels = {str(grade): {"d0": lowest + grade - 1} for grade in range(1, 5)}
    qrels["0"] = {"d9": lowest}
    ranking = {f"d{i}": 3.0 - i for i in range(3)}
    (values,) = _calculate([measure], qrels, dict.fromkeys(qrels, ranking))
    without, best = values.pop("0", 0.0), max(values.values(), default=0.0)
    if without != 0.0 or not 0.0 < best <= 1.0:
        raise _refusal(
            f"{measure} is not a score in [0, 1] that is 0 without a relevant document",
            f"{without:.6g} without one, {best:.6g} at best",
        )


def providers() -> dict[str, tuple[bool, str]]:
    """Return ir-measures' providers: whether each can be used, and else how to get it.

    Examples
    --------
    >>> providers()["pytrec_eval"]
    (True, '')
    """
    return {
        name: (True, "") if found.is_available() else (False, found.install_instructions())
        for name, found in ir_measures.providers.registry.items()
    }
