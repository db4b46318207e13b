"""The audit of a benchmark: what it gives away for free, and what is odd about its queries.

Needs no run. Every count of :class:`Findings` changes what a score on the benchmark means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from falsify_adapters.ceiling import Ceiling, HeldOut, held_out_ceiling, query_blind_ceiling
from falsify_adapters.coded import code_qrels
from falsify_adapters.errors import InputError
from falsify_adapters.frames import as_qrels, categories
from falsify_adapters.measures import Measure
from falsify_adapters.notes import Note
from falsify_adapters.provenance import one_blas_thread, with_frames
from falsify_adapters.results import plain


@dataclass(frozen=True)
class Findings:
    """What is odd about a benchmark; None where the texts or the corpus are not at hand.

    Parameters
    ----------
    n_queries, n_judgements : int
        Queries of the qrels, and their judgements.
    without_relevant : int
        Queries without a relevant document: every system gets 0 for them.
    same_gold_set : int
        Queries whose relevant documents and grades are exactly those of another query.
    same_text : int or None
        Queries with the same text as another query, case and white space aside.
    text_is_document : int or None
        Queries whose text is the title or the text of a document: a copy of it, not a question.
    gold_not_in_corpus : int or None
        Relevant documents that the corpus lacks: no system can return them.
    corpus_size : int or None
        Documents in the corpus.
    absent_gold : frozenset of str
        The ids behind `gold_not_in_corpus`.
    """

    n_queries: int
    n_judgements: int
    without_relevant: int
    same_gold_set: int
    same_text: int | None = None
    text_is_document: int | None = None
    gold_not_in_corpus: int | None = None
    corpus_size: int | None = None
    absent_gold: frozenset[str] = field(default=frozenset(), repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts, ready for JSON."""
        counts = asdict(self)
        del counts["absent_gold"]
        return plain(counts)


@dataclass(frozen=True)
class Audit:
    """One benchmark under one measure.

    Parameters
    ----------
    name, split : str or None
        What was audited.
    measure : str
        As ir-measures prints it.
    ceiling : Ceiling
        What one ranking for all queries scores.
    held_out : HeldOut or None
        What such a ranking scores on queries that it has not seen.
    findings : Findings
        What is odd about the benchmark.
    warnings : tuple of Note
        About the qrels.
    provenance : mapping
        Where they came from.
    """

    name: str
    split: str | None
    measure: str
    ceiling: Ceiling
    held_out: HeldOut | None
    findings: Findings
    warnings: tuple[Note, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    kind: Literal["audit"] = "audit"
    role: Literal["benchmark"] = "benchmark"
    verdict: None = None

    @property
    def title(self) -> str:
        """Name and split, for the reader."""
        return f"{self.name} ({self.split})" if self.split not in (None, "test") else self.name

    def to_dict(self) -> dict[str, Any]:
        """Return everything, ready for JSON."""
        return plain(
            {
                "kind": self.kind,
                "role": self.role,
                "benchmark": self.name,
                "split": self.split,
                "measure": self.measure,
                "ceiling": self.ceiling.to_dict(),
                "held_out": self.held_out.to_dict() if self.held_out else None,
                "findings": self.findings.to_dict(),
                "warnings": [asdict(note) for note in self.warnings],
                "provenance": dict(self.provenance),
            }
        )


def find_oddities(
    qrels: Any,
    *,
    queries: Mapping[str, str] | None = None,
    documents: Iterable[Any] | None = None,
) -> Findings:
    """Count what is odd about a benchmark.

    Parameters
    ----------
    qrels : DataFrame, mapping, or iterable of namedtuples
        The judgements.
    queries : mapping, optional
        ``{query_id: text}``; queries that are not in the qrels are ignored.
    documents : iterable, optional
        The corpus, read once and not held: objects with ``doc_id``, ``title`` and ``text``.

    Examples
    --------
    >>> qrels = {"q1": {"d1": 1}, "q2": {"d1": 1}, "q3": {"d2": 1}, "q4": {"d9": 0}}
    >>> found = find_oddities(qrels, queries={"q1": "A  cat", "q2": "a cat", "q3": "dogs"})
    >>> found.same_gold_set, found.same_text, found.without_relevant, found.text_is_document
    (2, 2, 1, None)
    """
    frame = as_qrels(qrels, notes=[])
    coded, gold_ids = code_qrels(frame, 1)
    judged = set(categories(frame["query_id"]))
    texts = [_folded(text) for query_id, text in (queries or {}).items() if query_id in judged]
    repeats = Counter(texts)
    counts: dict[str, Any] = {}
    if queries is not None:
        counts["same_text"] = sum(number for number in repeats.values() if number > 1)
    if documents is not None:
        size, missing, copied = _compare_corpus(documents, set(gold_ids), repeats)
        counts |= {"corpus_size": size, "absent_gold": missing, "gold_not_in_corpus": len(missing)}
        if queries is not None:
            counts["text_is_document"] = sum(repeats[text] for text in copied)
    return Findings(
        n_queries=coded.n_queries,
        n_judgements=len(frame),
        without_relevant=int((coded.gold_count == 0).sum()),
        same_gold_set=int(coded.set_count[coded.set_count > 1].sum()),
        **counts,
    )


@one_blas_thread
def audit_benchmark(
    qrels: Any,
    measure: str | Measure = "nDCG@10",
    *,
    name: str = "benchmark",
    split: str | None = None,
    findings: Findings | None = None,
    held_out: bool = False,
    fit: Any = None,
    fitted_on: str = "other qrels",
    seed: int = 0,
    notes: Iterable[Note] = (),
    provenance: Mapping[str, Any] | None = None,
) -> Audit:
    """Say what a benchmark gives away for free.

    Parameters
    ----------
    qrels : DataFrame, mapping, or iterable of namedtuples
        The judgements.
    measure : str or ir_measures.Measure
        What the gate can grade.
    name, split : str, optional
        For the report.
    findings : Findings, optional
        From :func:`find_oddities`, which is called without texts if it is not given.
    held_out : bool
        Also score the ranking made from a random half of the queries on the other half.
    fit, fitted_on, seed
        As for :func:`falsify_adapters.ceiling.held_out_ceiling`.
    notes, provenance
        What is known of the qrels already.

    Examples
    --------
    >>> result = audit_benchmark({"q1": {"d1": 1}, "q2": {"d1": 1, "d2": 1}}, "R@1", name="tiny")
    >>> result.ceiling.score, result.findings.same_gold_set, result.verdict
    (0.75, 0, None)
    """
    collected = list(notes)
    frame = as_qrels(qrels, notes=collected)
    found = find_oddities(frame) if findings is None else findings
    absent = found.absent_gold
    ceiling = query_blind_ceiling(frame, measure, absent_gold=absent)
    carried = None
    if held_out or fit is not None:
        carried = held_out_ceiling(
            frame, measure, fit=fit, fitted_on=fitted_on, seed=seed, absent_gold=absent
        )
    frames = {"qrels": frame} if fit is None else {"qrels": frame, "fit": as_qrels(fit, notes=[])}
    return Audit(
        name=name,
        split=split,
        measure=ceiling.measure,
        ceiling=ceiling,
        held_out=carried,
        findings=found,
        warnings=tuple(dict.fromkeys(collected)),
        provenance=with_frames(provenance or {}, **frames),
    )


def in_order(audits: Iterable[Audit]) -> list[Audit]:
    """Return audits by measure, the highest ceiling first, ties by name."""
    return sorted(audits, key=lambda a: (a.measure, -round(a.ceiling.score, 12), a.name, a.title))


def _compare_corpus(
    documents: Iterable[Any], gold: set[str], texts: Mapping[str, int]
) -> tuple[int, frozenset[str], set[str]]:
    """Return the corpus' size, the gold documents it lacks, and the query texts that are in it."""
    size = 0
    missing = set(gold)
    copied: set[str] = set()
    for document in documents:
        size += 1
        missing.discard(document.doc_id)
        if texts:
            whole = f"{document.title} {document.text}"
            for text in (document.title, document.text, whole):
                if (folded := _folded(text)) in texts:
                    copied.add(folded)
    if not size:
        raise InputError("the corpus is empty")
    return size, frozenset(missing), copied - {""}


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
