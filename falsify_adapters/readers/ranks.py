"""Which way round a ranking is: scores against ranks, ranks in place of scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from falsify_adapters.errors import InputError
from falsify_adapters.notes import Note, counted
from falsify_adapters.readers.lines import FloatArray, IntArray

#: A query's scores run against its ranks if this share of rank neighbours does.
REVERSED = 0.9


@dataclass(frozen=True)
class Agreement:
    """Counts over the queries in which ranks and scores both tell documents apart."""

    queries: int
    disagree: int
    reversed: int
    inverted_share: float


class RankCheck:
    """Counts, piece by piece, the neighbours in rank order whose score rises."""

    def __init__(self) -> None:
        self._rises = np.zeros(0, dtype=np.int64)
        self._falls = np.zeros(0, dtype=np.int64)

    def add(self, query_code: IntArray, rank: FloatArray, score: FloatArray) -> None:
        """Count one piece of the file."""
        if len(score) == 0:
            return
        same = query_code[1:] == query_code[:-1]
        if not ((query_code[1:] > query_code[:-1]) | (same & (rank[1:] >= rank[:-1]))).all():
            order = np.lexsort((rank, query_code))
            query_code, rank, score = query_code[order], rank[order], score[order]
            same = query_code[1:] == query_code[:-1]
        neighbours = same & (rank[1:] > rank[:-1])
        self._rises = _count(self._rises, query_code[1:][neighbours & (score[1:] > score[:-1])])
        self._falls = _count(self._falls, query_code[1:][neighbours & (score[1:] < score[:-1])])

    def result(self) -> Agreement:
        """Return the counts over all pieces."""
        n = max(len(self._rises), len(self._falls))
        rises = np.pad(self._rises, (0, n - len(self._rises)))
        falls = np.pad(self._falls, (0, n - len(self._falls)))
        both = rises + falls
        told = both > 0
        return Agreement(
            queries=int(told.sum()),
            disagree=int((rises > 0).sum()),
            reversed=int((told & (rises >= REVERSED * both)).sum()),
            inverted_share=float(rises.sum() / both.sum()) if told.any() else 0.0,
        )


def judge(agreement: Agreement, label: str, *, score_order: str | None, notes: list[Note]) -> None:
    """Refuse a run whose scores run against its ranks in most queries; note what is less.

    Parameters
    ----------
    agreement : Agreement
        What :class:`RankCheck` counted.
    label : str
        Name of the run.
    score_order : {"descending", "ascending"}, optional
        How the user said that scores are ordered: then nothing is refused.
    notes : list of Note
        Collects the warning.
    """
    if agreement.reversed * 2 > agreement.queries and score_order is None:
        raise ScoreOrderError(
            f"{label}: score order is the reverse of the rank column in {agreement.reversed} of"
            f" {counted(agreement.queries, 'query')} (distances?)",
            hint="say which is right: --score-order ascending (smaller is better),"
            " --score-order descending (trust the scores) or --rank-from-column (trust the ranks)",
        )
    if agreement.disagree:
        first = "the smallest first" if score_order == "ascending" else "as trec_eval does"
        notes.append(
            Note(
                "W-RANK-DISAGREES",
                f"{label}: rank and score disagree in {agreement.disagree} of {agreement.queries}"
                f" queries ({agreement.inverted_share:.1%} of rank neighbours are inverted);"
                f" ranked by score, {first}",
            )
        )


def note_rising_lines(agreement: Agreement, rows: int, label: str, notes: list[Note]) -> None:
    """Note if every query lists its documents from the lowest score to the highest.

    Parameters
    ----------
    agreement : Agreement
        Of the scores with the order of the file, for files without a rank column.
    rows : int
        Rows in the file.
    label : str
        Name of the run.
    notes : list of Note
        Collects the warning.
    """
    queries = agreement.queries
    # few short lists rise by chance, and a heap begins with its lowest score
    if agreement.reversed == queries >= 5 and rows >= 3 * queries:
        notes.append(
            Note(
                "W-SCORES-ASCEND",
                f"{label}: all {counted(queries, 'query')} list their documents by rising score;"
                " if these"
                " are distances, say --score-order ascending",
            )
        )


class ScoreOrderError(InputError):
    """The scores of a run run against its ranks: the user must say which is right."""


def third_column_is_rank(query_code: IntArray, value: FloatArray, label: str) -> bool:
    """Tell whether the third column of a run without header is a rank (MS MARCO) or a score.

    It is a rank if each query has 1..n (or 0..n-1), best first. Whole numbers that only look
    similar are refused, since read the wrong way they turn the ranking upside down.
    """
    if len(value) == 0 or not (np.isfinite(value) & (value == np.floor(value))).all():
        return False
    order = np.argsort(query_code, kind="stable")
    query_code, value = query_code[order], value[order]
    starts = np.flatnonzero(np.r_[True, query_code[1:] != query_code[:-1]])
    lengths = np.diff(np.r_[starts, len(value)])
    inside = np.ones(len(value), dtype=bool)
    inside[starts] = False
    step = np.diff(value, prepend=0.0)[inside]
    if (step <= 0).all() and len(step):  # best first by score, as scores should be
        return False
    counted = np.isin(value[starts], (0, 1)).all() and (step == 1).all()
    if counted:
        return bool(len(step)) or bool((value == 1).all())
    ascending = lengths > 1
    falls = np.bincount(
        np.repeat(np.arange(len(starts)), lengths)[inside][step <= 0], minlength=len(starts)
    )
    by_order = (ascending & (falls == 0)).sum() * 2 > ascending.sum()
    low = np.minimum.reduceat(value, starts)
    high = np.maximum.reduceat(value, starts)
    by_set = ((high - low == lengths - 1) & np.isin(low, (0, 1)) & ascending).sum() * 2 > (
        ascending.sum()
    )
    if by_order or by_set:
        raise InputError(
            f"{label}: the third column may be a rank or a score",
            found="whole numbers that are neither 1..n nor falling in every query",
            hint="say --format msmarco if it is a rank, --score-order descending if it is a score",
        )
    return False


def _count(counts: IntArray, query_code: IntArray) -> IntArray:
    more = np.bincount(query_code)
    size = max(len(counts), len(more))
    return np.pad(counts, (0, size - len(counts))) + np.pad(more, (0, size - len(more)))
