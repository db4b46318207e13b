"""Notes: the warnings that stand in a report, each with a stable code."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass

from falsify_adapters.errors import InputError

#: Every code that a report may carry, with what it means. Codes never change their meaning.
CODES: dict[str, str] = {
    "W-BENCHMARK-DEGENERATE": "all queries share the same relevant documents",
    "W-COINCIDING-NULLS": "some nulls have the same expectation on this benchmark",
    "W-COMMENT-LINES": "comment lines at the top of a file (skipped)",
    "W-COMMON-QUERIES": "only queries that both sets of judgements hold are graded",
    "W-COMMON-SUBSETS": "only the subsets that both systems have are compared",
    "W-COMPANION": "the strict companion measure reaches another verdict",
    "W-CORPUS-ESTIMATED": "the corpus size is the number of pooled documents, not the corpus",
    "W-DEPTH": "only the best documents of each query were kept while reading",
    "W-DUPLICATE-JUDGEMENTS": "the same judgement stands more than once (dropped)",
    "W-EMPTY-RESULTS": "judged queries for which the run returns nothing (counted as 0)",
    "W-EXCLUDED": "documents left out of the run, as asked for",
    "W-EXTRA-QUERIES": "the run answers queries that have no judgements (ignored)",
    "W-FALLBACK": "the fast kernel disagreed with ir-measures, which was used instead",
    "W-FEW-BOOT": "an interval ends so close to tau that n_boot resamples cannot tell",
    "W-FEW-CLUSTERS": "few clusters or blocks of queries: intervals cover less often than they say",
    "W-FIRST-RESULT": "the first result of each query is left out, as the benchmark's tool does",
    "W-GOLD-NOT-IN-CORPUS": "relevant documents that the corpus lacks",
    "W-ID-OVERLAP": "few or no ids of run and qrels meet",
    "W-LARGE-GRADES": "unusually large relevance grades",
    "W-MAIN-SCORE": "the main score of a result file is not the value under the measure's name",
    "W-MISSING-QUERIES": "judged queries that the run does not answer (counted as 0)",
    "W-NO-RELEVANT": "queries without a relevant document (counted as 0)",
    "W-NOT-REPRODUCED": "no known convention turns the rankings into the reported score",
    "W-OTHER-CONVENTION": "the reported score follows another convention",
    "W-OTHER-QRELS": "the number of judged queries is not the one that the benchmark states",
    "W-QUOTED-IDS": "ids in quotation marks, which were taken as part of the id",
    "W-RANK-AS-SCORE": "the file has ranks and no scores: ranked by rank",
    "W-RANK-DISAGREES": "the rank column and the scores disagree in part (scores count)",
    "W-RARE-EVENTS": "an interval rests on a few queries: it covers less often than it says",
    "W-RARE-WINS": "too few queries to exclude rare wins behind a FAIL",
    "W-SCORE-PRECISION": "scores that only double precision tells apart: other tools see ties",
    "W-SCORES-ASCEND": "every query lists its documents by rising score (distances?)",
    "W-SELF-MATCHES": "queries that retrieve a document with their own id",
    "W-SMALL-N": "few queries: null A holds a visible share of self-pairs",
    "W-SOURCE-GUESSED": "the tool that wrote a file was guessed from what stands in it",
    "W-SPLIT-GUESSED": "the predictions name no split: the one whose queries they answer is taken",
    "W-STRATA-MERGED": "strata with few queries were merged for null A",
    "W-TAU-AUTO": "tau was computed from the benchmark and the run, not set before",
    "W-TIES": "tied scores inside the cutoff: the order of ties moves the score",
    "W-UNEQUAL-QUERIES": "one of two compared systems lacks queries that the other answers",
    "W-UNJUDGED": "hardly any returned document is judged: another corpus version?",
    "W-UNREACHABLE": "no system can clear tau against a null on this benchmark",
}

#: What to do about each warning, as docs/warnings.md says it too.
REMEDIES: dict[str, str] = {
    "W-BENCHMARK-DEGENERATE": (
        "Nothing can be shown on such qrels. Use a benchmark with different answers."
    ),
    "W-COINCIDING-NULLS": "Read the nulls that coincide as one test, not as several.",
    "W-COMMENT-LINES": "Remove the lines, or leave them: they were not read as data.",
    "W-COMMON-QUERIES": (
        "Nothing, if the other judgements are meant to cover fewer queries: both verdicts are"
        " about the common ones."
    ),
    "W-COMMON-SUBSETS": (
        "Run both systems on all subsets; a mean over what happens to be there compares nothing."
    ),
    "W-COMPANION": (
        "Look at both measures: the graded one may be too lenient or the strict one too coarse."
    ),
    "W-CORPUS-ESTIMATED": "Say `--corpus-size`, or give the folder that holds the corpus.",
    "W-DEPTH": (
        "Nothing, if the measure looks no deeper. Read without a depth to check all rows for"
        " repeats. `--top-k` K reads K + 1: the query's own document may have to go."
    ),
    "W-DUPLICATE-JUDGEMENTS": (
        "Remove the repeated rows. Two different grades for one document are refused."
    ),
    "W-EMPTY-RESULTS": "Find out why the system returned nothing for these queries.",
    "W-EXCLUDED": "Nothing: this is what `--exclude` asked for.",
    "W-EXTRA-QUERIES": "Check the split, if there are many.",
    "W-FALLBACK": "Report it: the two should agree. The number shown is that of ir-measures.",
    "W-FEW-BOOT": "Repeat with `--n-boot 10000`.",
    "W-FEW-CLUSTERS": "More clusters. More queries in the same clusters do not help.",
    "W-FIRST-RESULT": "Nothing: the task says that each query's first result is the query itself.",
    "W-GOLD-NOT-IN-CORPUS": "Check that corpus and qrels are of the same version.",
    "W-ID-OVERLAP": (
        "Repair the ids on one side; the message names the change that would make them meet."
    ),
    "W-LARGE-GRADES": "Map counts to a few grades.",
    "W-MAIN-SCORE": (
        "Look at the file: its main score and the value under the measure's name differ."
    ),
    "W-MISSING-QUERIES": (
        "Find out whether the system failed on these queries. They are not left out of the mean."
    ),
    "W-NO-RELEVANT": (
        "Remove such queries from the qrels, or leave them: no system can score there."
    ),
    "W-NOT-REPRODUCED": (
        "Find out which judgements, split or run the reported score belongs to before quoting it."
    ),
    "W-OTHER-CONVENTION": (
        "Quote the convention with the score: ties in single precision, answered queries"
        " only, or self matches."
    ),
    "W-OTHER-QRELS": "Check that the qrels are of this task, split and version.",
    "W-QUOTED-IDS": (
        "Write either all fields in quotes or none, if the quotes are not part of the id."
    ),
    "W-RANK-AS-SCORE": "Nothing, if the column is a rank; else name the columns in a header.",
    "W-RANK-DISAGREES": (
        "Check how the file was put together. `--rank-from-column` ranks by the column instead."
    ),
    "W-RARE-EVENTS": "More queries; or a measure that tells more scores apart.",
    "W-RARE-WINS": 'More queries, before the FAIL is read as "nothing there".',
    "W-SCORE-PRECISION": "Expect other numbers from tools that compare scores in single precision.",
    "W-SCORES-ASCEND": (
        "Say `--score-order ascending` if smaller is better, `--score-order descending` if not."
    ),
    "W-SELF-MATCHES": (
        "Decide with `--keep-self` or `--drop-self`, the same for all systems compared."
    ),
    "W-SMALL-N": "More queries: the difference to null A is smaller than it would be.",
    "W-SOURCE-GUESSED": "Name the tool with `--from`, if the guess is right.",
    "W-SPLIT-GUESSED": "Say `--split` if another one was meant.",
    "W-STRATA-MERGED": (
        "Nothing, or coarser strata of your own: a permutation inside few queries leaves many"
        " in place."
    ),
    "W-TAU-AUTO": "For a claim, name the threshold before benchmarking: `--tau 0.05`.",
    "W-TIES": "Let the system break ties, or read the score as the range that the message gives.",
    "W-UNEQUAL-QUERIES": "Find out why; they count as 0 for the system that lacks them.",
    "W-UNJUDGED": "Check that the run and the qrels are of the same version of the corpus.",
    "W-UNREACHABLE": "Take another measure or benchmark: here no system can pass.",
}

#: Warnings that qualify the verdict. All others are about an input, and ``--strict`` refuses it.
ON_VERDICTS = frozenset(
    {
        "W-COINCIDING-NULLS",
        "W-COMPANION",
        "W-FEW-BOOT",
        "W-FEW-CLUSTERS",
        "W-RARE-EVENTS",
        "W-RARE-WINS",
        "W-SMALL-N",
        "W-STRATA-MERGED",
        "W-TAU-AUTO",
        "W-UNREACHABLE",
    }
)


@dataclass(frozen=True, slots=True)
class Note:
    """One warning.

    Parameters
    ----------
    code : str
        A key of :data:`CODES`.
    message : str
        The sentence for the reader, with numbers and names.
    """

    code: str
    message: str

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise KeyError(
                f"unknown note code {self.code!r}: add it to falsify_adapters.notes.CODES"
            )

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class FalsifyWarning(UserWarning):
    """The Python warning that carries a note when nobody collects the notes."""


def tell(code: str, message: str, notes: list[Note] | None) -> None:
    """Append a note to `notes`, or issue it as a :class:`FalsifyWarning` if there is no list."""
    note = Note(code, message)
    if notes is None:
        warnings.warn(str(note), FalsifyWarning, stacklevel=3)
    else:
        notes.append(note)


def refuse_notes(
    notes: Iterable[Note], name: str, *, accepted: frozenset[str] = ON_VERDICTS
) -> None:
    """Refuse an input that has warnings: strict mode.

    Parameters
    ----------
    notes : iterable of Note
        The notes of a file, an evaluation or a report.
    name : str
        What they are about.
    accepted : frozenset of str
        Codes that are no reason to refuse.

    Raises
    ------
    InputError
        If there is any other note; the message holds all of them.

    Examples
    --------
    >>> refuse_notes([Note("W-SMALL-N", "30 queries")], "bm25")
    >>> refuse_notes([Note("W-TIES", "3 queries")], "bm25")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    falsify_adapters.errors.InputError: bm25 has 1 warning; found: W-TIES: 3 queries; hint:...
    """
    found = [str(note) for note in notes if note.code not in accepted]
    if found:
        raise InputError(
            f"{name} has {counted(len(found), 'warning')}",
            found="; ".join(found),
            hint="strict mode (--strict) refuses such an input",
        )


def plural(number: float, one: str, many: str | None = None) -> str:
    """Return the form of a word that goes with a number.

    Parameters
    ----------
    number : int or float
        How many there are.
    one : str
        The word for one of them.
    many : str, optional
        The word for several, if it is not made by the usual ending.

    Examples
    --------
    >>> [f"{n} {plural(n, 'query')} {plural(n, 'has', 'have')} ties" for n in (1, 2)]
    ['1 query has ties', '2 queries have ties']
    """
    if number == 1:
        return one
    return many or (f"{one[:-1]}ies" if one.endswith("y") else f"{one}s")


def counted(number: int, one: str) -> str:
    """Return a number with its word.

    Examples
    --------
    >>> counted(1, "query"), counted(12_334, "judged document")
    ('1 query', '12,334 judged documents')
    """
    return f"{number:,} {plural(number, one)}"


def some(items: Iterable[object], limit: int = 3) -> str:
    """Name the first few items of a collection.

    Examples
    --------
    >>> some(["q2", "q4"])
    'q2, q4'
    >>> some("abcde")
    'a, b, c and 2 more'
    """
    shown = [str(item) for item in items]
    rest = len(shown) - limit
    return ", ".join(shown[:limit]) + (f" and {rest} more" if rest > 0 else "")
