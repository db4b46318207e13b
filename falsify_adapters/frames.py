"""The common run and qrels frames: validated once, ranked by one rule, never mutated.

A *run frame* has the columns ``query_id, doc_id, score``, a *qrels frame*
``query_id, doc_id, relevance``: ir-measures' names. Ids are categorical columns whose categories
are sorted text, so that everything downstream works on integer codes. The categories of a qrels
frame's ``query_id`` are the evaluated queries, those of a run frame's the answered ones: a query
without any judgement, or with an empty result, is a category without rows.

Ranking rule: score descending (compared as float64), then doc_id descending, as in trec_eval.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from operator import lt
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from falsify_adapters.errors import InputError
from falsify_adapters.notes import Note, some, tell

RUN_COLUMNS = ("query_id", "doc_id", "score")
QRELS_COLUMNS = ("query_id", "doc_id", "relevance")

#: trec_eval allocates memory in proportion to the largest grade, and overflows silently.
LARGEST_GRADE = 1_000_000
#: From here on a grade is more likely to be a count than a judgement.
LARGE_GRADE = 100
#: Ids of up to this many characters are sorted as arrays rather than as Python text.
SHORT_ID = 64

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
#: All rows of a frame.
ALL = slice(None)


def as_run(data: Any, *, name: str = "run") -> pd.DataFrame:
    """Make the common run frame.

    Parameters
    ----------
    data : DataFrame, mapping, or iterable of namedtuples
        What ir-measures accepts: a frame with ``query_id, doc_id, score``, a dict of dict
        ``{query_id: {doc_id: score}}`` (BEIR's results dict), or an iterable of namedtuples such
        as ``ir_measures.ScoredDoc`` (a generator is consumed once). Left unchanged.
    name : str
        How errors call this input.

    Returns
    -------
    DataFrame
        Columns ``query_id, doc_id`` (categorical) and ``score`` (float64), sorted by query, then
        by rank. The categories of ``query_id`` are the answered queries, those with an empty
        result included.

    Raises
    ------
    InputError
        If the input is empty, a column or an id is missing, a score is not finite, or a document
        is listed twice for a query.

    Examples
    --------
    >>> as_run({"q1": {"d1": 0.5, "d2": 0.7, "d3": 0.7}})
      query_id doc_id  score
    0       q1     d3    0.7
    1       q1     d2    0.7
    2       q1     d1    0.5
    """
    query_ids, doc_ids, values, all_queries = _columns(data, RUN_COLUMNS, name)
    if len(query_ids) == 0:
        raise InputError(f"{name} is empty", hint="a run needs at least one retrieved document")
    queries, query_code = _factorized(query_ids, "query_id", name)
    docs, doc_code = _factorized(doc_ids, "doc_id", name)
    score = _numbers(values, "score", name, query_ids, doc_ids)
    return run_from_codes([*queries, *all_queries], query_code, docs, doc_code, score, name=name)


def run_from_codes(
    queries: Sequence[Any],
    query_code: IntArray,
    docs: Sequence[Any],
    doc_code: IntArray,
    score: FloatArray,
    *,
    name: str = "run",
) -> pd.DataFrame:
    """Make the common run frame from ids that are numbered already, as readers hold them.

    Parameters
    ----------
    queries, docs : sequence
        The ids, in any order. Queries without a row are answered with nothing.
    query_code, doc_code : ndarray, shape (n_rows,)
        Position of each row's id in `queries` and `docs`.
    score : ndarray, shape (n_rows,)
        Scores.
    name : str
        How errors call this input.

    Returns
    -------
    DataFrame
        As :func:`as_run` returns it.

    Raises
    ------
    InputError
        As :func:`as_run` raises it.

    Examples
    --------
    >>> run_from_codes(
    ...     ["q1"], np.array([0, 0]), ["d2", "d1"], np.array([0, 1]), np.array([0.5, 0.7])
    ... )
      query_id doc_id  score
    0       q1     d1    0.7
    1       q1     d2    0.5
    """
    query_ids, query_code = _sorted_ids(queries, query_code, "query_id", name)
    doc_ids, doc_code = _sorted_ids(docs, doc_code, "doc_id", name)
    bad = np.flatnonzero(~np.isfinite(score))
    if bad.size:
        row = int(bad[0])
        raise InputError(
            f"{name} has a score that is not a finite number",
            found=f"query {query_ids[query_code[row]]!r}, document {doc_ids[doc_code[row]]!r},"
            f" score {score[row]} ({bad.size} such rows)",
            hint="such a score has no place in a ranking: repair the system's output",
        )
    score = score + 0.0  # -0.0 and 0.0 are the same score
    order = _ranking(query_code, doc_code, score)
    query_code, doc_code, score = query_code[order], doc_code[order], score[order]
    repeated = _repeated_rows(query_code, doc_code, len(doc_ids))
    if repeated.size:
        row = int(repeated[0])
        raise InputError(
            f"{name} lists a document more than once for a query",
            found=f"query {query_ids[query_code[row]]!r}, document {doc_ids[doc_code[row]]!r}"
            f" ({repeated.size} repeated rows in all)",
            hint="keep one row per query and document, for example the best-scored one",
        )
    return _frame(query_ids, query_code, doc_ids, doc_code, "score", score)


def _ranking(query_code: IntArray, doc_code: IntArray, score: FloatArray) -> IntArray:
    """Return the rows by query and rank; most runs list most queries' documents by rank already."""
    order = stable_order(query_code)
    query, doc, value = query_code[order], doc_code[order], score[order]
    falls = (value[1:] < value[:-1]) | ((value[1:] == value[:-1]) & (doc[1:] < doc[:-1]))
    unranked = query[1:][~falls & (query[1:] == query[:-1])]
    if unranked.size:
        rows = np.flatnonzero(_marks(unranked, int(query[-1]) + 1)[query])
        order[rows] = order[rows][np.lexsort((-doc[rows], -value[rows], query[rows]))]
    return order


def stable_order(key: IntArray) -> IntArray:
    """Return the stable order of whole numbers from 0 on, as ``argsort(kind="stable")`` does.

    Plain numbers are sorted several times faster than positions: each number gets its position
    as its last digits, if there is room.

    Examples
    --------
    >>> stable_order(np.array([7, 3, 7, 0]))
    array([3, 1, 0, 2])
    """
    bits = len(key).bit_length()
    if not len(key) or int(key.max()) >> (62 - bits):
        return np.argsort(key, kind="stable")
    return np.sort((key << bits) | np.arange(len(key))) & ((1 << bits) - 1)


def as_qrels(data: Any, *, notes: list[Note] | None = None, name: str = "qrels") -> pd.DataFrame:
    """Make the common qrels frame.

    Parameters
    ----------
    data : DataFrame, mapping, or iterable of namedtuples
        A frame with ``query_id, doc_id, relevance``, a dict of dict
        ``{query_id: {doc_id: relevance}}``, or an iterable of namedtuples such as
        ``ir_measures.Qrel``. Left unchanged.
    notes : list of Note, optional
        Collects warnings; without it they are issued as Python warnings.
    name : str
        How errors call this input.

    Returns
    -------
    DataFrame
        Columns ``query_id, doc_id`` (categorical) and ``relevance`` (int64), sorted by query and
        document. The categories of ``query_id`` are the evaluated queries.

    Raises
    ------
    InputError
        If the input is empty, an id is missing, a grade is not a whole number or too large, or
        a document has two different grades for a query.

    Examples
    --------
    >>> as_qrels({"q1": {"d1": 1, "d2": 0}})
      query_id doc_id  relevance
    0       q1     d1          1
    1       q1     d2          0
    """
    query_ids, doc_ids, values, all_queries = _columns(data, QRELS_COLUMNS, name)
    if len(query_ids) == 0:
        raise InputError(f"{name} are empty", hint="qrels need at least one judgement")
    queries, query_code = _id_codes(query_ids, "query_id", name, extra=all_queries)
    docs, doc_code = _id_codes(doc_ids, "doc_id", name)
    grade = _grades(values, name, query_ids, doc_ids, notes)
    key = query_code * len(docs) + doc_code
    if (key[1:] < key[:-1]).any():
        order = np.argsort(key, kind="stable")
        key, query_code, doc_code, grade = (
            array[order] for array in (key, query_code, doc_code, grade)
        )
    repeated = np.flatnonzero(key[1:] == key[:-1]) + 1
    if repeated.size:
        conflict = repeated[grade[repeated] != grade[repeated - 1]]
        if conflict.size:
            row = conflict[0]
            raise InputError(
                f"{name} judge the same document twice, differently",
                found=f"query {queries[query_code[row]]!r}, document {docs[doc_code[row]]!r}:"
                f" grades {grade[row - 1]} and {grade[row]}",
                hint="keep one judgement per query and document",
            )
        where = some(f"{queries[query_code[row]]} {docs[doc_code[row]]}" for row in repeated)
        tell(
            "W-DUPLICATE-JUDGEMENTS",
            f"{name}: {repeated.size} duplicate judgements dropped ({where})",
            notes,
        )
        keep = np.ones(len(grade), dtype=bool)
        keep[repeated] = False
        query_code, doc_code, grade = query_code[keep], doc_code[keep], grade[keep]
    return _frame(queries, query_code, docs, doc_code, "relevance", grade)


def codes(column: pd.Series[Any]) -> IntArray:
    """Return the integer codes of a categorical id column (``-1`` never occurs in our frames)."""
    return column.cat.codes.to_numpy().astype(np.int64)


def categories(column: pd.Series[Any]) -> npt.NDArray[Any]:
    """Return the sorted ids behind :func:`codes`, as an object array of str."""
    return column.cat.categories.to_numpy(dtype=object)


def places(column: pd.Series[Any], other: pd.Series[Any], rows: IntArray | slice = ALL) -> IntArray:
    """Return where the ids of some rows stand among the categories of another column, or -1.

    Only the ids of these rows are looked up: a corpus has many others.

    Examples
    --------
    >>> run, qrels = as_run({"q1": {"d1": 0.5, "d2": 0.7}}), as_qrels({"q1": {"d0": 1, "d1": 1}})
    >>> run["doc_id"].tolist(), places(run["doc_id"], qrels["doc_id"]).tolist()
    (['d2', 'd1'], [-1, 1])
    """
    used, which = compact(codes(column)[rows], len(column.cat.categories))
    place: IntArray = other.cat.categories.get_indexer(column.cat.categories[used])
    return place[which]


def judgement_rows(query: IntArray, doc: IntArray, qrels: pd.DataFrame) -> IntArray:
    """Return the row of the qrels that judges each pair of query and document, or -1.

    Parameters
    ----------
    query, doc : ndarray, shape (n_pairs,)
        Places of the ids among the qrels' categories, -1 for none (see :func:`places`).
    qrels : DataFrame
        The common qrels frame.

    Examples
    --------
    >>> qrels = as_qrels({"q1": {"d1": 1, "d2": 0}, "q2": {"d1": 1}})
    >>> judgement_rows(np.array([0, 1, 1, 0]), np.array([1, 0, 1, -1]), qrels).tolist()
    [1, 2, -1, -1]
    """
    n_docs = len(qrels["doc_id"].cat.categories)
    key = codes(qrels["query_id"]) * n_docs + codes(qrels["doc_id"])  # ascending
    wanted = query * n_docs + doc
    row = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    return np.where((key[row] == wanted) & (query >= 0) & (doc >= 0), row, -1)


def compact(numbers: IntArray, n: int) -> tuple[IntArray, IntArray]:
    """Return the distinct ones among numbers below n, ascending, and each number's place in them.

    Examples
    --------
    >>> compact(np.array([4, 0, 4]), 6)
    (array([0, 4]), array([1, 0, 1]))
    """
    if n > 4 * len(numbers):
        return np.unique(numbers, return_inverse=True)
    occurs = _marks(numbers, n)
    return np.flatnonzero(occurs), (np.cumsum(occurs) - 1)[numbers]


def _marks(numbers: IntArray, n: int) -> BoolArray:
    marks = np.zeros(n, dtype=bool)
    marks[numbers] = True
    return marks


def is_among(ids: Any, others: Any) -> npt.NDArray[np.bool_]:
    """Return which ids stand among the others, by hashing (numpy's isin compares all pairs).

    Examples
    --------
    >>> is_among(["q1", "q2"], ["q2"])
    array([False,  True])
    """
    return pd.Index(ids, dtype=object).isin(others)


def drop_rows(frame: pd.DataFrame, drop: npt.NDArray[np.bool_]) -> pd.DataFrame:
    """Return `frame` without the marked rows, ids and categories as they were."""
    return frame.loc[~drop].reset_index(drop=True)


def drop_pairs(
    frame: pd.DataFrame, query_ids: Iterable[str], doc_ids: Iterable[str]
) -> pd.DataFrame:
    """Return `frame` without the rows of the given queries and documents.

    Parameters
    ----------
    frame : DataFrame
        A run or qrels frame.
    query_ids, doc_ids : iterable of str
        The pairs to leave out; those that the frame lacks are ignored.

    Examples
    --------
    >>> drop_pairs(as_run({"q1": {"d1": 0.5, "d2": 0.7}}), ["q1", "q9"], ["d2", "d1"])
      query_id doc_id  score
    0       q1     d1    0.5
    """
    n_docs = len(frame["doc_id"].cat.categories)
    query = frame["query_id"].cat.categories.get_indexer(pd.Index(list(query_ids), dtype=object))
    doc = frame["doc_id"].cat.categories.get_indexer(pd.Index(list(doc_ids), dtype=object))
    known = (query >= 0) & (doc >= 0)
    unwanted = query[known].astype(np.int64) * n_docs + doc[known]
    return drop_rows(
        frame, np.isin(codes(frame["query_id"]) * n_docs + codes(frame["doc_id"]), unwanted)
    )


def rank_in_query(query_code: npt.NDArray[np.int64]) -> IntArray:
    """Return the 1-based rank of each row of a run sorted by query and rank.

    Examples
    --------
    >>> rank_in_query(np.array([0, 0, 0, 2, 2]))
    array([1, 2, 3, 1, 2])
    """
    n = len(query_code)
    if n == 0:
        return np.zeros(0, dtype=np.int64)
    starts = np.flatnonzero(np.r_[True, query_code[1:] != query_code[:-1]])
    lengths = np.diff(np.r_[starts, n])
    return np.arange(n, dtype=np.int64) - np.repeat(starts, lengths) + 1


def _frame(
    queries: list[str],
    query_code: IntArray,
    docs: list[str],
    doc_code: IntArray,
    value_name: str,
    values: npt.NDArray[Any],
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "query_id": pd.Categorical.from_codes(query_code, pd.Index(queries, dtype=object)),
            "doc_id": pd.Categorical.from_codes(doc_code, pd.Index(docs, dtype=object)),
            value_name: values,
        },
        copy=False,
    )


def _columns(data: Any, names: Sequence[str], name: str) -> tuple[Any, Any, Any, list[Any]]:
    """Take the three columns out of whatever was given; the fourth item is all query ids."""
    if isinstance(data, pd.DataFrame):
        missing = [column for column in names if column not in data.columns]
        if missing:
            raise InputError(
                f"{name} frame lacks the column {', '.join(missing)}",
                found=f"columns {some(data.columns, 8)}",
                hint=f"rename the columns to {', '.join(names)}",
            )
        repeated = [column for column in names if (data.columns == column).sum() > 1]
        if repeated:
            raise InputError(
                f"{name} frame has the column {', '.join(repeated)} more than once",
                found=f"columns {some(data.columns, 8)}",
                hint="keep one of each",
            )
        query_ids = data[names[0]]
        declared = (
            list(query_ids.cat.categories)
            if isinstance(query_ids.dtype, pd.CategoricalDtype)
            else []
        )
        return query_ids, data[names[1]], data[names[2]], declared
    if isinstance(data, Mapping):
        return _mapping_columns(data, name)
    if isinstance(data, Iterable) and not isinstance(data, (str, bytes)):
        return _tuple_columns(data, names, name)
    raise InputError(
        f"{name} has a form that is not understood",
        found=type(data).__name__,
        hint="give a DataFrame, a dict of dict, or an iterable of namedtuples",
    )


def _mapping_columns(
    data: Mapping[Any, Any], name: str
) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    query_ids: list[Any] = []
    doc_ids: list[Any] = []
    values: list[Any] = []
    for query_id, documents in data.items():
        if not isinstance(documents, Mapping):
            raise InputError(
                f"{name} is not a dict of dict",
                found=f"{type(documents).__name__} under query {query_id!r}",
                hint="the form is {query_id: {doc_id: value}}",
            )
        query_ids.extend([query_id] * len(documents))
        doc_ids.extend(documents.keys())
        values.extend(documents.values())
    return query_ids, doc_ids, values, list(data)


def _tuple_columns(
    data: Iterable[Any], names: Sequence[str], name: str
) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    columns: tuple[list[Any], list[Any], list[Any]] = ([], [], [])
    for row in data:
        missing = [column for column in names if not hasattr(row, column)]
        if missing:
            raise InputError(
                f"{name} has a row without {', '.join(missing)}",
                found=repr(row)[:80],
                hint=f"rows are namedtuples with the fields {', '.join(names)}",
            )
        for column, values in zip(names, columns, strict=True):
            values.append(getattr(row, column))
    return (*columns, [])


def _id_codes(
    values: Sequence[Any], column: str, name: str, extra: Sequence[Any] = ()
) -> tuple[list[str], IntArray]:
    """Return the sorted distinct ids and each row's position among them."""
    distinct, code = _factorized(values, column, name)
    # `extra` holds every id that stands in a row, so that more of them are others
    others = extra if len(extra) > len(distinct) else ()
    return _sorted_ids([*distinct, *others], code, column, name)


def _factorized(values: Sequence[Any], column: str, name: str) -> tuple[Sequence[Any], IntArray]:
    """Return the distinct ids, and each row's position among them."""
    try:
        return _distinct(values)
    except TypeError:  # a list, or an object of JSON
        for value in values:
            _id_text(value, column, name)
        raise


def _distinct(values: Sequence[Any]) -> tuple[Sequence[Any], IntArray]:
    if not isinstance(values, pd.Series):
        code, distinct = pd.factorize(np.fromiter(values, dtype=object), use_na_sentinel=False)
        return cast(Sequence[Any], distinct), code.astype(np.int64)
    if isinstance(values.dtype, pd.CategoricalDtype):
        code = values.cat.codes.to_numpy()
        used = np.bincount(code[code >= 0], minlength=len(values.cat.categories))
        if code.min() >= 0 and used.all():
            # one of our own frames: the work is done already
            return categories(values).tolist(), code.astype(np.int64)
    code, found = pd.factorize(values, use_na_sentinel=False)
    # an object array: going through an Arrow array one by one takes ten times as long
    return np.asarray(found, dtype=object).tolist(), code.astype(np.int64)


def _sorted_ids(
    values: Sequence[Any], code: IntArray, column: str, name: str
) -> tuple[list[str], IntArray]:
    """Return the ids as sorted text without repeats, and the codes that go with them."""
    ids = _id_texts(values, column, name)
    if all(map(lt, ids, islice(ids, 1, None))):
        return ids, code
    texts = np.array(ids, dtype=object)
    # code points side by side sort several times faster than text all over the memory
    short = max(map(len, texts), default=0) <= SHORT_ID
    keys = texts.astype(np.str_) if short else texts
    order = np.argsort(keys, kind="stable")
    # two values may be the same id (7 and "7"): they get one number
    new = np.ones(len(order), dtype=bool)
    new[1:] = keys[order[1:]] != keys[order[:-1]]
    to_sorted = np.empty(len(order), dtype=np.int64)
    to_sorted[order] = np.cumsum(new) - 1
    return texts[order[new]].tolist(), to_sorted[code]


def _id_texts(values: Sequence[Any], column: str, name: str) -> list[str]:
    """Return the ids as text; all at once where all of them are plain ASCII."""
    texts = list(values)
    if all(texts) and set(map(type, texts)) == {str}:
        joined = "".join(texts)
        if joined.isascii() and "\0" not in joined:
            return texts
    return [_id_text(value, column, name) for value in texts]


def _id_text(value: Any, column: str, name: str) -> str:
    """Return the id as text, or refuse what native code downstream would crash on or cut."""
    if isinstance(value, str):
        if not value:
            raise InputError(f"{name} has an empty {column}", hint="every row needs an id")
        if "\0" in value:
            raise InputError(f"{name}: {column} holds a NUL character", found=repr(value)[:80])
        if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
            raise InputError(
                f"{name}: {column} holds half a character (a lone surrogate)",
                found=ascii(value)[:80],
                hint="the text was decoded wrongly: write it as UTF-8",
            )
        return str(value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
        return str(int(value))
    raise InputError(
        f"{name}: {column} is not text",
        found=f"{value!r:.80} ({type(value).__name__})",
        hint="read ids as text: a number may have lost zeros or digits already",
    )


def _grades(
    values: Sequence[Any],
    name: str,
    query_ids: Sequence[Any],
    doc_ids: Sequence[Any],
    notes: list[Note] | None,
) -> IntArray:
    grade = _numbers(values, "relevance", name, query_ids, doc_ids)

    def refuse(bad: npt.NDArray[np.bool_], what: str, hint: str) -> None:
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise InputError(
                f"{name} has a grade that is {what}",
                found=f"grade {grade[row]:.12g} for query {_at(query_ids, row)!r},"
                f" document {_at(doc_ids, row)!r}",
                hint=hint,
            )

    refuse(~np.isfinite(grade), "not a number", "grades are whole numbers")
    refuse(
        grade != np.floor(grade),
        "not a whole number",
        "multiply all grades by a constant, so that they become whole",
    )
    refuse(
        np.abs(grade) > LARGEST_GRADE,
        f"too large (limit {LARGEST_GRADE})",
        "map counts to a few grades",
    )
    if grade.max() > LARGE_GRADE:
        tell(
            "W-LARGE-GRADES",
            f"{name}: largest grade {int(grade.max())}; are these counts rather than judgements?",
            notes,
        )
    return grade.astype(np.int64)


def _numbers(
    values: Sequence[Any],
    column: str,
    name: str,
    query_ids: Sequence[Any],
    doc_ids: Sequence[Any],
) -> FloatArray:
    if isinstance(values, pd.Series) and values.dtype.kind in "iuf":
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    if not isinstance(values, pd.Series):
        try:
            array = np.asarray(values)
        except (ValueError, OverflowError):  # ragged or huge: the loop below names the row
            array = np.zeros(0, dtype=object)
        if array.ndim == 1 and array.dtype.kind in "iuf" and len(array) == len(values):
            return array.astype(np.float64)
    numbers = np.empty(len(values), dtype=np.float64)
    for row, value in enumerate(values):
        try:
            if isinstance(value, (bool, np.bool_)):
                raise TypeError
            numbers[row] = float(value)
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f"{name} has a {column} that is not a number",
                found=f"{value!r} for query {_at(query_ids, row)!r},"
                f" document {_at(doc_ids, row)!r}",
            ) from None
    return numbers


def _at(values: Sequence[Any], row: int) -> Any:
    return values.iloc[row] if isinstance(values, pd.Series) else values[row]


def _repeated_rows(query_code: IntArray, doc_code: IntArray, n_docs: int) -> IntArray:
    """Return the rows (ascending) whose query and document stand in an earlier row too."""
    key = query_code * n_docs + doc_code
    order = np.argsort(key, kind="stable")
    again = np.flatnonzero(key[order][1:] == key[order][:-1]) + 1
    return cast(IntArray, np.sort(order[again]))
