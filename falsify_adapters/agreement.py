"""Do the ids of a run and of qrels mean the same things.

A score of 0, or a low one, is more often an id that lost its zeros than a bad system. Ids are
compared exactly and never changed here; where a simple change would make them meet, the message
says which.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from falsify_adapters.errors import InputError
from falsify_adapters.frames import (
    IntArray,
    categories,
    codes,
    judgement_rows,
    places,
    rank_in_query,
)
from falsify_adapters.notes import Note, counted, plural, some

#: Judged share of the top 10 below which a run is suspected, relative to what the qrels allow.
FEW_JUDGED = 0.2
#: Ids looked at when a cause is sought.
SAMPLE = 100_000
#: A change of ids explains a mismatch if it makes this share of the smaller side meet.
EXPLAINED = 0.2

_CHUNK = re.compile(r"(?:[#_:.|/ -]+(?:chunk|passage|segment|para|part|page|seg|p|c)?[_-]?[0-9]+)$")


@dataclass(frozen=True)
class _Change:
    """One way in which two spellings of the same ids differ."""

    says: str
    run: Callable[[str], str]
    qrels: Callable[[str], str]


def _same(text: str) -> str:
    return text


_CHANGES = (
    _Change("ids on one side end in .0", *[lambda t: t.removesuffix(".0")] * 2),
    _Change("ids on one side lack leading zeros", *[lambda t: t.lstrip("0") or "0"] * 2),
    _Change("ids differ in upper and lower case", *[str.casefold] * 2),
    _Change(
        "ids differ in Unicode normal form (NFC, NFD)",
        *[lambda t: unicodedata.normalize("NFC", t)] * 2,
    ),
    _Change("ids on one side are enclosed in quotes", *[lambda t: t.strip("\"'")] * 2),
    _Change("ids on one side have blanks at an end", *[str.strip] * 2),
    _Change(
        "ids on one side have a file suffix",
        *[lambda t: re.sub(r"\.[A-Za-z][A-Za-z0-9]{0,5}$", "", t)] * 2,
    ),
    _Change(
        "run ids look like <judged id> and the number of a chunk (see --chunks)",
        lambda t: _CHUNK.sub("", t),
        _same,
    ),
    _Change("ids on one side have a path in front", *[lambda t: re.sub(r"^.*[/\\:]", "", t)] * 2),
)


def why_apart(run_ids: Collection[str], qrels_ids: Collection[str]) -> str | None:
    """Name the simple change that would make ids of a run and of qrels meet.

    Parameters
    ----------
    run_ids, qrels_ids : collection of str
        Distinct ids of one kind (queries or documents).

    Returns
    -------
    str or None
        A sentence with the number of ids that would meet; None if no simple change helps.

    Examples
    --------
    >>> why_apart(["7.0", "8.0"], ["7", "9"])
    'ids on one side end in .0: without that 1 of 2 would meet (run 7.0, qrels 7)'
    >>> why_apart(["a"], ["b"]) is None
    True
    """
    run_ids, qrels_ids = _sampled(run_ids), _sampled(qrels_ids)
    if not run_ids or not qrels_ids:
        return None
    meeting = len(set(run_ids) & set(qrels_ids))
    smaller = min(len(run_ids), len(qrels_ids))
    best: str | None = None
    most = max(2 * meeting, EXPLAINED * smaller - 1e-9)
    for change in (*_CHANGES, *_cuts(run_ids, qrels_ids), *_prefixes(run_ids, qrels_ids)):
        there = {change.qrels(text): text for text in qrels_ids}
        met = {new: text for text in run_ids if (new := change.run(text)) in there}
        if len(met) > meeting and len(met) >= most and (best is None or len(met) > most):
            new, old = min(met.items())
            most = len(met)
            best = (
                f"{change.says}: without that {len(met)} of {len(there)} would meet"
                f" (run {old}, qrels {there[new]})"
            )
    return best


def check_queries(run: pd.DataFrame, qrels: pd.DataFrame, notes: list[Note]) -> None:
    """Refuse a run that shares no query with the qrels; note a change that would add many.

    Parameters
    ----------
    run, qrels : DataFrame
        The common frames.
    notes : list of Note
        Collects the warning.

    Raises
    ------
    InputError
        If no query is shared.
    """
    run_ids, qrels_ids = _ids(run, "query_id"), list(categories(qrels["query_id"]))
    shared = len(set(run_ids) & set(qrels_ids))
    if 2 * shared >= min(len(run_ids), len(qrels_ids)):
        return
    cause = why_apart(run_ids, qrels_ids)
    if shared == 0:
        swapped = len(set(run_ids) & set(_ids(qrels, "doc_id"))) * 2 > len(run_ids)
        hint = "the columns for query and document look swapped" if swapped else cause
        raise InputError(
            "run and qrels share no query",
            found=f"run queries {some(run_ids)}; qrels queries {some(qrels_ids)}",
            hint=hint or "are these qrels of another data set or split?",
        )
    if cause is not None:
        notes.append(
            Note(
                "W-ID-OVERLAP",
                f"only {shared} of {counted(len(qrels_ids), 'judged query')}"
                f" {plural(int(shared), 'is', 'are')} in the run;"
                f" {cause}",
            )
        )


def check_documents(
    run: pd.DataFrame,
    qrels: pd.DataFrame,
    notes: list[Note],
    *,
    corpus_ids: frozenset[str] | None = None,
) -> None:
    """Look whether the run's documents are judged at all.

    Parameters
    ----------
    run, qrels : DataFrame
        The common frames, the run with judged queries only.
    notes : list of Note
        Collects the warnings.
    corpus_ids : frozenset of str, optional
        The corpus' document ids. If they hold documents of both sides, the ids agree.

    Raises
    ------
    InputError
        If no document of the run occurs in the qrels and a simple change of ids would explain it.
    """
    if not len(run):
        return
    doc = places(run["doc_id"], qrels["doc_id"])
    if not (doc >= 0).any():
        run_ids, qrels_ids = _ids(run, "doc_id"), _ids(qrels, "doc_id")
        one_corpus = corpus_ids is not None and bool(
            corpus_ids.intersection(run_ids) and corpus_ids.intersection(qrels_ids)
        )
        _refuse_strangers(run, qrels, run_ids, qrels_ids, notes, one_corpus=one_corpus)
        return
    query = places(run["query_id"], qrels["query_id"])
    top = rank_in_query(codes(run["query_id"])) <= 10
    n_top = int(top.sum())
    n_judged = int((judgement_rows(query[top], doc[top], qrels) >= 0).sum())
    if n_judged >= FEW_JUDGED * _reachable(query[top], qrels):
        return
    answered = len(np.unique(query))
    bare = answered - len(np.unique(query[judgement_rows(query, doc, qrels) >= 0]))
    if 2 * bare > answered:
        cause = why_apart(_ids(run, "doc_id"), _ids(qrels, "doc_id"))
        notes.append(
            Note(
                "W-UNJUDGED",
                f"judged@10 is {n_judged / n_top:.6f} ({n_judged} of {counted(n_top, 'document')});"
                f" {bare} of {counted(answered, 'query')} {plural(bare, 'has', 'have')} no"
                " judged document in the run; "
                + (cause or "are run and qrels of the same version of the corpus?"),
            )
        )


def _refuse_strangers(
    run: pd.DataFrame,
    qrels: pd.DataFrame,
    run_ids: Sequence[str],
    qrels_ids: Sequence[str],
    notes: list[Note],
    *,
    one_corpus: bool,
) -> None:
    cause = why_apart(run_ids, qrels_ids)
    if set(run_ids) & set(_ids(qrels, "query_id")) and (
        set(qrels_ids) & set(_ids(run, "query_id"))
    ):
        cause = "the columns for query and document look swapped in one of them"
    lacks = f"none of the {counted(len(run_ids), 'document')} of the run is judged"
    examples = f"run documents {some(run_ids)}; judged documents {some(qrels_ids)}"
    if cause is not None and not one_corpus:
        raise InputError(lacks, found=examples, hint=cause)
    notes.append(Note("W-ID-OVERLAP", f"{lacks}: {examples}; every score is 0"))


def _reachable(query: IntArray, qrels: pd.DataFrame) -> int:
    """Return how many judged documents the ranks of these queries could hold."""
    n_queries = len(qrels["query_id"].cat.categories)
    returned = np.bincount(query[query >= 0], minlength=n_queries)
    judged = np.bincount(codes(qrels["query_id"]), minlength=n_queries)
    return int(np.minimum(returned, judged).sum())


def _cuts(run_ids: Sequence[str], qrels_ids: Sequence[str]) -> list[_Change]:
    """Ids cut to a fixed length: one side all of one length, the other longer."""
    changes = []
    for side, own, other in (("run", run_ids, qrels_ids), ("qrels", qrels_ids, run_ids)):
        length = max(map(len, own))
        if length >= 8 and min(map(len, own)) == length < max(map(len, other)):

            def cut(text: str, length: int = length) -> str:
                return text[:length]

            says = f"all {side} ids have {length} characters and start ids of the other side"
            changes.append(_Change(says, cut, cut))
    return changes


def _prefixes(run_ids: Sequence[str], qrels_ids: Sequence[str]) -> list[_Change]:
    """All ids of one side begin with the same word."""
    run, qrels = _common_word(run_ids), _common_word(qrels_ids)
    if run == qrels:
        return []
    words = [
        f"all {side} ids begin with {w!r}" for side, w in (("run", run), ("qrels", qrels)) if w
    ]
    return [
        _Change(
            " and ".join(words),
            lambda text: text.removeprefix(run),
            lambda text: text.removeprefix(qrels),
        )
    ]


def _common_word(ids: Sequence[str]) -> str:
    if len(ids) < 2:
        return ""
    prefix = os.path.commonprefix(list(ids))  # noqa: RUF071 - ids are compared by character
    return re.sub(r"[0-9]+$", "", prefix) if len(prefix) < min(map(len, ids)) else ""


def _ids(frame: pd.DataFrame, column: str) -> list[str]:
    """Return the ids that occur in rows, sorted."""
    return list(categories(frame[column])[np.unique(codes(frame[column]))])


def _sampled(ids: Collection[str]) -> list[str]:
    ordered = sorted(ids)
    step = -(-len(ordered) // SAMPLE)
    return ordered[:: step or 1]
