"""One run under other judgements: each grade threshold, another assessor, an LLM judge.

Assessors disagree on what is relevant, and the order of systems hardly changes for it (Voorhees
1998). Whether a *verdict* changes is asked here for one run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from falsify_adapters.errors import InputError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import as_qrels, categories, codes, drop_rows, is_among
from falsify_adapters.gate import run_gate
from falsify_adapters.gate.grading import Graded, grade
from falsify_adapters.measures import Measure, parse_measure
from falsify_adapters.notes import Note, counted, plural, some
from falsify_adapters.provenance import with_frames
from falsify_adapters.results import NULLS, GateConfig, GateReport, Verdict, plain

#: Queries that are named.
NAMED = 10


@dataclass(frozen=True)
class AtGrade:
    """The gate where only documents of at least one grade are relevant.

    Parameters
    ----------
    grade : int
        The lowest grade that counts.
    relevant : int
        Judgements that count.
    queries : int
        Queries that have a relevant document then; the others count 0.
    report : GateReport
        The gate's report.
    """

    grade: int
    relevant: int
    queries: int
    report: GateReport

    def to_dict(self) -> dict[str, Any]:
        """Return the figures of the row, ready for JSON."""
        return plain(
            {
                "grade": self.grade,
                "relevant": self.relevant,
                "queries": self.queries,
                **_figures(self.report),
            }
        )


@dataclass(frozen=True)
class GradeTable:
    """The gate at each grade threshold; it has no verdict of its own.

    Parameters
    ----------
    system, measure : str
        What was graded, and how.
    rows : tuple of AtGrade
        From the lowest grade up.
    settings, provenance : mapping
        As in the gate's report on all grades.
    """

    benchmark: str | None
    split: str | None
    task: str | None
    subset: str | None
    system: str
    measure: str
    n_queries: int
    rows: tuple[AtGrade, ...]
    settings: Mapping[str, Any] = field(repr=False)
    provenance: Mapping[str, Any] = field(repr=False)
    kind: Literal["grades"] = "grades"
    role: Literal["grades"] = "grades"
    verdict: None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures, ready for JSON."""
        names = ("kind", "role", "benchmark", "split", "task", "subset", "system", "measure")
        head = {name: getattr(self, name) for name in (*names, "n_queries")}
        made = {"settings": self.settings, "provenance": self.provenance}
        return plain({**head, "rows": [row.to_dict() for row in self.rows], **made})

    def to_frame(self) -> pd.DataFrame:
        """Return one row per threshold: score, verdict, the four deltas."""
        return pd.DataFrame(
            [
                {
                    **{name: getattr(row, name) for name in ("grade", "relevant", "queries")},
                    "score": row.report.score,
                    **{name: row.report.nulls[name].delta for name in NULLS},
                    "verdict": row.report.verdict,
                }
                for row in self.rows
            ]
        )


def gate_by_grade(
    evaluation: Evaluation, measure: str | Measure = "nDCG@10", config: GateConfig | None = None
) -> GradeTable:
    """Run the gate at each grade threshold.

    Parameters
    ----------
    evaluation : Evaluation
        The run and the graded qrels.
    measure, config
        As for :func:`falsify_adapters.gate.run_gate`.

    Notes
    -----
    At threshold g, documents with a lower grade are not relevant, for every measure: binary
    measures count the others alike (``rel=g``), graded ones keep their gains. Queries that lose
    all relevant documents stay, and count 0.

    Examples
    --------
    >>> qrels = {f"q{i}": {f"d{i}": 2, f"e{i}": 1} for i in range(40)}
    >>> run = {f"q{i}": {f"e{i}": 1.0, "d0": 0.5} for i in range(40)}
    >>> table = gate_by_grade(Evaluation.create(run, qrels, corpus_size=999), "RR@10")
    >>> table.to_frame()[["grade", "queries", "verdict"]].values.tolist()
    [[1, 40, 'PASS'], [2, 40, 'FAIL']]
    """
    relevance = evaluation.qrels["relevance"].to_numpy()
    rows = []
    for threshold in np.unique(relevance[relevance > 0]).tolist():
        kept = relevance >= threshold
        # what falls below stays a judgement, and its query stays a query
        qrels = evaluation.qrels.assign(relevance=np.where(kept, relevance, 0))
        query_codes = codes(evaluation.qrels["query_id"])
        rows.append(
            AtGrade(
                grade=threshold,
                relevant=int(kept.sum()),
                queries=len(np.unique(query_codes[kept])),
                report=run_gate(replace(evaluation, qrels=qrels), measure, config),
            )
        )
    return GradeTable(
        **_names(evaluation),
        measure=str(parse_measure(measure)),
        rows=tuple(rows),
        settings=asdict(config or GateConfig()),
        provenance=with_frames(evaluation.provenance, run=evaluation.run, qrels=evaluation.qrels),
    )


@dataclass(frozen=True)
class Overlap:
    """How far two sets of judgements agree.

    Parameters
    ----------
    jaccard : float
        Relevant documents in both over relevant documents in either, averaged over the queries
        that have any (Voorhees 1998 calls it overlap).
    kappa : float
        Cohen's kappa of relevant or not, over the documents that both judged; NaN where there are
        none, or only one kind.
    judged_by_both : int
        Pairs of query and document behind `kappa`.
    queries : int
        Queries behind `jaccard`.
    """

    jaccard: float
    kappa: float
    judged_by_both: int
    queries: int


@dataclass(frozen=True)
class SecondJudgement:
    """One run under two sets of judgements.

    Parameters
    ----------
    system, measure, judge : str
        What was graded, how, and the name of the other set.
    n_queries : int
        Queries that both sets judge; the verdicts are about these.
    overlap : Overlap
        How far the two sets agree.
    first, second : GateReport
        The gate under the main judgements and under the others.
    holds : bool
        Whether the verdict is the same.
    turning : tuple of str
        Queries whose judgements, exchanged for the others' in this order, turn the verdict; empty
        if it holds.
    moved : tuple of str
        Up to ten queries whose scores the exchange moves most.
    settings, provenance : mapping
        Of the gate; and of run, main and other judgements, their files and frames.
    warnings : tuple of Note
        About the other judgements.
    """

    benchmark: str | None
    split: str | None
    task: str | None
    subset: str | None
    system: str
    measure: str
    judge: str
    n_queries: int
    overlap: Overlap
    first: GateReport
    second: GateReport
    holds: bool
    turning: tuple[str, ...]
    moved: tuple[str, ...]
    settings: Mapping[str, Any] = field(repr=False)
    provenance: Mapping[str, Any] = field(repr=False)
    warnings: tuple[Note, ...] = ()
    kind: Literal["judgements"] = "judgements"
    role: Literal["judgements"] = "judgements"
    verdict: None = None

    @property
    def reason(self) -> str:
        """One sentence: does the verdict hold, and which queries turn it."""
        if self.holds:
            return f"the verdict holds: {self.first.verdict} under both"
        named = f": {some(self.turning, NAMED)}" if self.turning else ""
        return (
            f"{self.first.verdict} becomes {self.second.verdict}; exchanging the judgements of"
            f" {len(self.turning)} of {counted(self.n_queries, 'query')} turns it{named}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the figures, ready for JSON; what is undefined is None."""
        names = ("kind", "role", "benchmark", "split", "task", "subset", "system", "measure")
        head = {name: getattr(self, name) for name in (*names, "judge", "n_queries")}
        return plain(
            {
                **head,
                "overlap": asdict(self.overlap),
                "first": _figures(self.first),
                "second": _figures(self.second),
                "holds": self.holds,
                "turning": list(self.turning),
                "moved": list(self.moved),
                "reason": self.reason,
                "warnings": [asdict(note) for note in self.warnings],
                "settings": self.settings,
                "provenance": self.provenance,
            }
        )


def judge_again(
    evaluation: Evaluation,
    qrels: Any,
    measure: str | Measure = "nDCG@10",
    config: GateConfig | None = None,
    *,
    judge: str = "other judgements",
    notes: Iterable[Note] = (),
    provenance: Mapping[str, Any] | None = None,
) -> SecondJudgement:
    """Run the gate under other judgements of the same queries.

    Parameters
    ----------
    evaluation : Evaluation
        The run under the main judgements.
    qrels : DataFrame, mapping, or iterable of namedtuples
        The other judgements.
    measure, config
        As for :func:`falsify_adapters.gate.run_gate`.
    judge : str
        What the other judgements are called.
    notes : iterable of Note
        What is known of them already.
    provenance : mapping, optional
        Where they came from.

    Raises
    ------
    InputError
        If they judge none of the queries.

    Notes
    -----
    Which queries turn the verdict: queries are sorted by how far the exchange moves their score
    minus that of the null whose interval moves most, the largest move in the direction of the
    change first; the smallest number found by halving after which the verdict is the other one.
    Other sets of queries may turn it as well.

    Examples
    --------
    >>> qrels = {f"q{i}": {f"d{i}": 1} for i in range(40)}
    >>> run = {f"q{i}": {f"d{i}": 1.0, "d0": 0.5} for i in range(40)}
    >>> evaluation = Evaluation.create(run, qrels, corpus_size=999)
    >>> again = judge_again(evaluation, {q: {"x": 1} for q in qrels}, "RR@10")
    >>> again.first.verdict, again.holds, again.overlap.jaccard
    ('PASS', False, 0.0)
    """
    config = config or GateConfig()
    parsed = parse_measure(measure)
    collected = list(notes)
    other = as_qrels(qrels, notes=collected, name=judge)
    common = sorted(set(evaluation.query_ids) & set(categories(other["query_id"])))
    if not common:
        raise InputError(
            f"{judge} judges none of the queries",
            found=f"{some(categories(other['query_id']))}, expected {some(evaluation.query_ids)}",
        )
    left_out = evaluation.n_queries - len(common)
    extra = len(categories(other["query_id"])) - len(common)
    if left_out or extra:
        collected.append(
            Note(
                "W-COMMON-QUERIES",
                f"{counted(len(common), 'query')} {plural(len(common), 'is', 'are')} judged by"
                f" both; {left_out} only by the main"
                f" judgements, {extra} only by {judge}",
            )
        )
    main = _on_queries(evaluation, evaluation.qrels, common)
    again = _on_queries(evaluation, other, common)
    first, second = (run_gate(one, parsed, config) for one in (main, again))
    order = _by_move(main, again, parsed, config)
    holds = first.verdict == second.verdict
    turning = () if holds else _turning(main, again, order, second.verdict, parsed, config)
    scores = [report.per_query["score"].to_numpy() for report in (first, second)]
    moves = np.abs(scores[1] - scores[0])
    most = [i for i in np.argsort(-moves, kind="stable")[:NAMED] if moves[i] > 0]
    return SecondJudgement(
        **{**_names(evaluation), "n_queries": len(common)},
        measure=str(parsed),
        judge=judge,
        overlap=overlap(main.qrels, again.qrels),
        first=first,
        second=second,
        holds=holds,
        turning=turning,
        moved=tuple(common[i] for i in most),
        settings=asdict(config),
        provenance=with_frames(
            {**evaluation.provenance, **({"judge": dict(provenance)} if provenance else {})},
            run=evaluation.run,
            qrels=evaluation.qrels,
            judge=other,
        ),
        warnings=tuple(collected),
    )


def overlap(first: pd.DataFrame, second: pd.DataFrame) -> Overlap:
    """Return how far two qrels frames agree on what is relevant.

    Examples
    --------
    >>> one, two = as_qrels({"q": {"a": 1, "b": 1, "c": 0}}), as_qrels({"q": {"a": 2, "b": 0}})
    >>> found = overlap(one, two)
    >>> found.jaccard, found.judged_by_both
    (0.5, 2)
    """
    keys = ["query_id", "doc_id"]
    one, two = (
        frame[[*keys, "relevance"]]
        .astype(dict.fromkeys(keys, object))
        .assign(relevance=frame["relevance"] > 0)
        for frame in (first, second)
    )
    pairs = one.merge(two, on=keys, how="outer", suffixes=("_1", "_2"))
    is_1, is_2 = (pairs[f"relevance_{i}"].eq(True) for i in (1, 2))
    per_query = pd.DataFrame(
        {"query_id": pairs["query_id"], "both": is_1 & is_2, "either": is_1 | is_2}
    )
    sums = per_query.groupby("query_id")[["both", "either"]].sum()
    asked = sums[sums["either"] > 0]
    judged = (pairs["relevance_1"].notna() & pairs["relevance_2"].notna()).to_numpy()
    return Overlap(
        jaccard=float((asked["both"] / asked["either"]).mean()),
        kappa=_kappa(is_1.to_numpy()[judged], is_2.to_numpy()[judged]),
        judged_by_both=int(judged.sum()),
        queries=len(asked),
    )


def _kappa(one: Any, two: Any) -> float:
    """Return Cohen's kappa of two yes-or-no judgements; NaN where chance agrees always."""
    if not len(one):
        return float("nan")
    chance = one.mean() * two.mean() + (1 - one.mean()) * (1 - two.mean())
    return float(((one == two).mean() - chance) / (1 - chance)) if chance < 1 else float("nan")


def _on_queries(evaluation: Evaluation, qrels: pd.DataFrame, queries: list[str]) -> Evaluation:
    """Return the evaluation on other qrels, restricted to some queries."""
    kept = drop_rows(qrels, ~is_among(qrels["query_id"], queries))
    named = kept["query_id"].cat.set_categories(pd.Index(queries, dtype=object))
    run = drop_rows(evaluation.run, ~is_among(evaluation.run["query_id"], queries))
    return replace(
        evaluation,
        run=run.assign(query_id=run["query_id"].cat.remove_unused_categories()),
        qrels=kept.assign(query_id=named),
    )


def _by_move(
    main: Evaluation, again: Evaluation, measure: Measure, config: GateConfig
) -> list[str]:
    """Return the queries, those first whose exchange moves the deciding delta most."""
    first, second = (grade(one, measure, config) for one in (main, again))
    shift = {name: second.nulls[name].low - first.nulls[name].low for name in NULLS}
    name = max(NULLS, key=lambda null: abs(shift[null]))
    move = _gain(second, name) - _gain(first, name)
    order = np.argsort(-np.sign(shift[name]) * move, kind="stable")
    return [main.query_ids[i] for i in order]


def _gain(graded: Graded, name: str) -> Any:
    return graded.own - graded.draws[name].query_means


def _turning(
    main: Evaluation,
    again: Evaluation,
    order: list[str],
    target: Verdict,
    measure: Measure,
    config: GateConfig,
) -> tuple[str, ...]:
    """Return the first queries of the order whose exchange reaches the other verdict."""
    plain_config = replace(config, companion=False)

    def verdict(count: int) -> Verdict:
        mixed = _exchanged(main.qrels, again.qrels, order[:count])
        return run_gate(replace(main, qrels=mixed), measure, plain_config).verdict

    low, high = 0, len(order)
    while high - low > 1:
        middle = (low + high) // 2
        if verdict(middle) == target:
            high = middle
        else:
            low = middle
    return tuple(order[:high])


def _exchanged(first: pd.DataFrame, second: pd.DataFrame, queries: list[str]) -> pd.DataFrame:
    mine = drop_rows(first, is_among(first["query_id"], queries))
    theirs = drop_rows(second, ~is_among(second["query_id"], queries))
    both = pd.concat(
        [frame.astype({"query_id": object, "doc_id": object}) for frame in (mine, theirs)]
    )
    everyone = pd.Index(categories(first["query_id"]), dtype=object)
    return as_qrels(both.assign(query_id=pd.Categorical(both["query_id"], categories=everyone)))


def _names(evaluation: Evaluation) -> dict[str, Any]:
    names = ("benchmark", "split", "task", "subset", "system", "n_queries")
    return {name: getattr(evaluation, name) for name in names}


def _figures(report: GateReport) -> Mapping[str, Any]:
    return {
        "score": report.score,
        "verdict": report.verdict,
        "reason": report.reason,
        "nulls": {
            name: {key: getattr(null, key) for key in ("mean", "delta", "low", "high", "verdict")}
            for name, null in report.nulls.items()
        },
        "warnings": [asdict(note) for note in report.warnings],
    }
