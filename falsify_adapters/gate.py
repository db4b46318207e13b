"""The gate: a system's score against the four nulls, with intervals and a verdict."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd

from falsify_adapters.bounds import Attainable, attainable
from falsify_adapters.coded import Coded, code
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import FloatArray, codes, drop_rows
from falsify_adapters.kernels import Hits, Kernel
from falsify_adapters.measures import (
    IrMeasuresKernel,
    Measure,
    make_kernel,
    measure_depth,
    parse_measure,
    query_scores,
)
from falsify_adapters.notes import Note
from falsify_adapters.nulls import (
    CrossMatrix,
    NullDraws,
    frequent_sets,
    own_scores,
    permuted_gold,
    permuted_labels,
    popularity_gold,
    random_documents,
    uniform_gold,
)
from falsify_adapters.resampling import ROUNDING, bootstrap_t, luck_margin, p_value
from falsify_adapters.results import (
    NULLS,
    Companion,
    GateConfig,
    GateReport,
    NullResult,
    Ties,
    Verdict,
)
from falsify_adapters.ties import reordered, tied_queries

#: Largest difference between a kernel and ir-measures that is rounding.
KERNEL_TOLERANCE = 1e-9
#: Queries from which on equal influence values are taken for what they are.
ENOUGH_EQUAL = 20
#: Depth of the strict companion when the measure has none.
COMPANION_DEPTH = 10


def run_gate(
    evaluation: Evaluation, measure: str | Measure = "nDCG@10", config: GateConfig | None = None
) -> GateReport:
    """Compare a system's score with the four nulls.

    Parameters
    ----------
    evaluation : Evaluation
        The run, the qrels and the corpus size.
    measure : str or ir_measures.Measure
        A measure with values in [0, 1] that is 0 without a relevant document.
    config : GateConfig, optional
        Settings; the defaults are tau 0.05, alpha 0.05, 1000 resamples and trials.

    Returns
    -------
    GateReport

    Raises
    ------
    MeasureError
        If the gate cannot grade the measure.

    Examples
    --------
    >>> qrels = {f"q{i}": {f"d{i}": 1} for i in range(40)}
    >>> run = {f"q{i}": {f"d{i}": 1.0, "d0": 0.5} for i in range(40)}
    >>> report = run_gate(Evaluation.create(run, qrels, corpus_size=1000), "RR@10")
    >>> report.score, report.verdict, round(report.nulls["C"].mean, 6)
    (1.0, 'PASS', 0.001487)
    """
    config = config or GateConfig()
    parsed = parse_measure(measure)
    main = _grade(evaluation.run, evaluation.qrels, evaluation, parsed, config)
    companion = _companion(evaluation, parsed, main, config) if config.companion else None
    ties = _ties(evaluation, parsed, main, config)
    verdict, reason = _verdict_under_ties(main, ties)
    notes = [*evaluation.notes, *_notes(main, companion, ties, config)]
    answered = evaluation.qrels["query_id"].cat.categories.isin(evaluation.run["query_id"].unique())
    return GateReport(
        role=evaluation.role,
        benchmark=evaluation.benchmark,
        split=evaluation.split,
        task=evaluation.task,
        subset=evaluation.subset,
        model=evaluation.model,
        revision=evaluation.revision,
        system=evaluation.system,
        measure=str(parsed),
        n_queries=evaluation.n_queries,
        corpus_size=evaluation.corpus_size,
        corpus_size_source=evaluation.corpus_size_source,
        score=main.score,
        score_answered=float(main.own[answered].mean()) if answered.any() else 0.0,
        tau=main.tau,
        verdict=verdict,
        definition_1=main.definition_1,
        reason=reason,
        nulls=main.nulls,
        distinct_nulls=main.distinct,
        companion=companion,
        ties=ties,
        warnings=tuple(notes),
        settings=asdict(config),
        provenance=evaluation.provenance,
        per_query=_per_query(evaluation, main),
    )


@dataclass(frozen=True, eq=False)
class _Graded:
    """One measure on one run: all that a report needs of it."""

    coded: Coded
    kernel: Kernel
    own: FloatArray
    draws: dict[str, NullDraws]
    nulls: dict[str, NullResult]
    standard_errors: dict[str, float]
    tau: float
    verdict: Verdict
    reason: str
    definition_1: bool
    distinct: int
    fell_back: bool

    @property
    def score(self) -> float:
        return float(self.own.mean())


def _grade(
    run: pd.DataFrame,
    qrels: pd.DataFrame,
    evaluation: Evaluation,
    measure: Measure,
    config: GateConfig,
) -> _Graded:
    coded = _coded(run, qrels, evaluation, measure)
    own = query_scores(run, qrels, measure)
    kernel = make_kernel(measure, coded.profiles)
    fell_back = False
    if float(np.abs(own_scores(coded, kernel) - own).max()) > KERNEL_TOLERANCE:
        kernel, fell_back = IrMeasuresKernel(measure, coded.profiles), True
    return _judge(coded, kernel, own, config, fell_back=fell_back)


def _coded(
    run: pd.DataFrame, qrels: pd.DataFrame, evaluation: Evaluation, measure: Measure
) -> Coded:
    return code(
        run,
        qrels,
        evaluation.corpus_size,
        absent_gold=evaluation.absent_gold,
        depth=measure_depth(measure),
    )


def _judge(
    coded: Coded, kernel: Kernel, own: FloatArray, config: GateConfig, *, fell_back: bool = False
) -> _Graded:
    draws = _draw_nulls(coded, kernel, own, config)
    reach = attainable(
        coded, kernel, labels=config.permute == "label", sets=config.marginal == "set"
    )
    tau = _tau(draws, config)
    nulls, errors = _compare(coded, own, draws, reach, tau, config)
    verdict, reason = _verdict(nulls, len(own), tau, config)
    return _Graded(
        coded=coded,
        kernel=kernel,
        own=own,
        draws=draws,
        nulls=nulls,
        standard_errors=errors,
        tau=tau,
        verdict=verdict,
        reason=reason,
        definition_1=all(null.delta >= tau and null.delta > 0 for null in nulls.values()),
        distinct=_distinct_nulls(coded, kernel, config),
        fell_back=fell_back,
    )


def _draw_nulls(
    coded: Coded, kernel: Kernel, own: FloatArray, config: GateConfig
) -> dict[str, NullDraws]:
    cross = CrossMatrix(coded, kernel)
    n_trials, seed = config.n_trials, config.seed
    by_label = config.permute == "label"
    by_set = config.marginal == "set"
    return {
        "A": permuted_labels(coded, kernel, own, n_trials, seed)
        if by_label
        else permuted_gold(cross, n_trials, seed),
        "B": uniform_gold(cross, n_trials, seed),
        "C": random_documents(coded, kernel, own, n_trials, seed),
        "D": frequent_sets(cross, n_trials, seed)
        if by_set
        else popularity_gold(cross, kernel, n_trials, seed),
    }


def _tau(draws: dict[str, NullDraws], config: GateConfig) -> float:
    if config.tau != "auto":
        return float(config.tau)
    margins = [luck_margin(draw.trials, config.alpha_each) for draw in draws.values()]
    return max(0.05, *margins)


def _compare(
    coded: Coded,
    own: FloatArray,
    draws: dict[str, NullDraws],
    reach: Attainable,
    tau: float,
    config: GateConfig,
) -> tuple[dict[str, NullResult], dict[str, float]]:
    score = float(own.mean())
    delta = np.array([_rounded(score - draws[name].mean) for name in NULLS])
    error = np.array([draws[name].mean_error for name in NULLS])
    influence = np.stack([draws[name].influence for name in NULLS], axis=1)
    low, high, standard_error = bootstrap_t(
        influence,
        delta,
        error,
        alpha=config.alpha_each,
        n_boot=config.n_boot,
        seed=config.seed,
    )
    low, high = np.maximum(low, -1.0), np.minimum(high, 1.0)
    same = coded.same_rankings()
    best = {**reach.delta, "C": reach.best_score - draws["C"].mean}
    results = {}
    for i, name in enumerate(NULLS):
        draw = draws[name]
        room = reach.best_score - draw.mean
        settled = standard_error[i] > 0 or same or len(own) >= ENOUGH_EQUAL
        results[name] = NullResult(
            mean=draw.mean,
            mean_error=draw.mean_error,
            delta=float(delta[i]),
            low=float(low[i]),
            high=float(high[i]),
            p_value=p_value(score, draw.trials),
            luck_margin=luck_margin(draw.trials, config.alpha_each),
            adjusted=float(delta[i]) / room if room > ROUNDING else math.nan,
            attainable=best[name],
            attainable_exact=reach.exact or name == "C",
            verdict=_null_verdict(float(delta[i]), float(low[i]), float(high[i]), tau, config)
            if settled and len(own) > 1
            else "UNDER-NS",
            trials=draw.trials,
        )
    return results, dict(zip(NULLS, standard_error.tolist(), strict=True))


def _rounded(delta: float) -> float:
    return 0.0 if abs(delta) < ROUNDING else delta


def _null_verdict(delta: float, low: float, high: float, tau: float, config: GateConfig) -> Verdict:
    if config.decision == "point":
        return "PASS" if delta >= tau and delta > 0 else "FAIL"
    if low >= tau and low > 0 and delta >= tau:
        return "PASS"
    if high < tau or low == high == 0:
        return "FAIL"
    return "UNDER-NS"


def _verdict(
    nulls: dict[str, NullResult],
    n_queries: int,
    tau: float,
    config: GateConfig,
) -> tuple[Verdict, str]:
    """Return the gate's verdict and the sentence that says why."""
    closed = [name for name in NULLS if nulls[name].attainable < tau]
    if closed:
        most = min(nulls[name].attainable for name in closed)
        return "UNDER-NS", (
            f"no system can pass here: against {_names(closed)} the largest delta that any ranking"
            f" can reach is {most:.4f}, below tau = {tau:g}"
        )
    if n_queries == 1:
        return "UNDER-NS", "one query cannot tell a system from luck"
    failed = [name for name in NULLS if nulls[name].verdict == "FAIL"]
    if failed:
        return "FAIL", _why_failed(failed, nulls, tau, config)
    open_ = [name for name in NULLS if nulls[name].verdict == "UNDER-NS"]
    if open_:
        return "UNDER-NS", _why_open(open_, nulls, tau)
    if config.decision == "interval" and nulls["A"].p_value > config.alpha_each:
        return "UNDER-NS", (
            f"a permutation of the answers reaches this score with p = {nulls['A'].p_value:.3g}:"
            " too few queries to tell"
        )
    least = min(NULLS, key=lambda name: nulls[name].low)
    return "PASS", (
        f"clears tau = {tau:g} against all four nulls; the closest is {least}, by"
        f" {nulls[least].delta:.4f} [{nulls[least].low:.4f}, {nulls[least].high:.4f}]"
    )


_DUMB = {
    "A": "with the answers shuffled over the queries it scores as much",
    "B": "with random queries' answers it scores as much",
    "C": "random documents score as much",
    "D": "with answers drawn by popularity it scores as much",
}


def _why_failed(
    failed: list[str], nulls: dict[str, NullResult], tau: float, config: GateConfig
) -> str:
    worst = min(failed, key=lambda name: nulls[name].delta)
    null = nulls[worst]
    beside = f" [{null.low:.4f}, {null.high:.4f}]" if config.decision == "interval" else ""
    if null.delta == 0:
        what = _DUMB[worst]
    else:
        what = f"it beats {worst} by {null.delta:.4f}{beside} only, below tau = {tau:g}"
    return f"fails {_names(failed)}: {what}"


def _why_open(open_: list[str], nulls: dict[str, NullResult], tau: float) -> str:
    parts = [f"{name} [{nulls[name].low:.4f}, {nulls[name].high:.4f}]" for name in open_]
    return (
        f"the queries cannot decide: tau = {tau:g} lies inside the interval of {', '.join(parts)}"
    )


def _names(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _distinct_nulls(coded: Coded, kernel: Kernel, config: GateConfig) -> int:
    """Count the different expectations among the four nulls, from the benchmark's structure."""
    groups = [{"A"}, {"B"}, {"C"}, {"D"}]

    def join(one: str, other: str) -> None:
        a = next(group for group in groups if one in group)
        b = next(group for group in groups if other in group)
        if a is not b:
            groups.remove(b)
            a |= b

    single = bool((coded.gold_count == 1).all())
    # one gold document: its grade does not matter if all grades are worth the same at rank 1
    grade_free = single and _grade_free(coded, kernel)
    full = bool((coded.gold_count > 0).all())
    same_frequency = full and len(set(coded.set_count.tolist())) == 1
    if config.permute == "query":
        if same_frequency:
            join("A", "B")
        if config.marginal == "set" or grade_free:
            join("A", "D")
    elif grade_free:
        if len(coded.set_query) == coded.n_docs:
            join("A", "B")
        if len(set(coded.popularity.tolist())) == 1:
            join("A", "D")
    if config.marginal == "set" and same_frequency:
        join("B", "D")
    return len(groups)


def _grade_free(coded: Coded, kernel: Kernel) -> bool:
    profiles = np.unique(coded.profile_of)
    first = np.array([np.flatnonzero(coded.profile_of == profile)[0] for profile in profiles])
    ones = np.ones(len(first), dtype=np.int64)
    grades = coded.gold_grade[coded.gold_start[first]]
    values = kernel.score(Hits(np.arange(len(first)), ones, grades, profiles, ones))
    return bool(np.ptp(values) < ROUNDING)


def _companion(
    evaluation: Evaluation, measure: Measure, main: _Graded, config: GateConfig
) -> Companion | None:
    """Grade recall of each query's highest-graded documents, unless that is the measure itself."""
    depth = measure_depth(measure) or COMPANION_DEPTH
    strict = parse_measure(f"R@{depth}")
    qrels = _highest_grades(evaluation.qrels)
    if strict == measure and len(qrels) == int((evaluation.qrels["relevance"] > 0).sum()):
        return None
    graded = _grade(evaluation.run, qrels, evaluation, strict, config)
    reachable = all(null.attainable >= graded.tau for null in graded.nulls.values())
    verdict = graded.verdict if reachable else "not applicable"
    return Companion(
        measure=str(strict),
        score=graded.score,
        verdict=verdict,
        agrees=not reachable or graded.verdict == main.verdict,
        nulls=graded.nulls,
    )


def _highest_grades(qrels: pd.DataFrame) -> pd.DataFrame:
    """Keep each query's documents of its highest grade; the queries stay what they are."""
    query = codes(qrels["query_id"])
    grade = qrels["relevance"].to_numpy()
    top = np.zeros(len(qrels["query_id"].cat.categories), dtype=np.int64)
    np.maximum.at(top, query, grade)
    return drop_rows(qrels, (grade <= 0) | (grade < top[query]))


def _ties(
    evaluation: Evaluation, measure: Measure, main: _Graded, config: GateConfig
) -> Ties | None:
    queries = tied_queries(evaluation.run, measure_depth(measure))
    if not queries:
        return None
    # the two extreme orders need a verdict, not precise trials; the kernel was checked already
    rough = replace(config, n_trials=max(100, config.n_trials // 10))
    graded = {}
    for towards in ("worst", "best"):
        run = reordered(evaluation.run, evaluation.qrels, towards)
        coded = _coded(run, evaluation.qrels, evaluation, measure)
        own = own_scores(coded, main.kernel)
        moved = abs(float(own.mean()) - main.score) > ROUNDING
        graded[towards] = _judge(coded, main.kernel, own, rough) if moved else main
    return Ties(
        queries=queries,
        low_score=graded["worst"].score,
        high_score=graded["best"].score,
        low_verdict=graded["worst"].verdict,
        high_verdict=graded["best"].verdict,
    )


def _verdict_under_ties(main: _Graded, ties: Ties | None) -> tuple[Verdict, str]:
    if ties is None or ties.low_verdict == ties.high_verdict == main.verdict:
        return main.verdict, main.reason
    return "UNDER-NS", (
        f"the order of tied documents decides: {ties.low_verdict} at"
        f" {ties.low_score:.4f} if ties fall against the system, {ties.high_verdict} at"
        f" {ties.high_score:.4f} if they fall for it"
    )


def _notes(
    main: _Graded, companion: Companion | None, ties: Ties | None, config: GateConfig
) -> list[Note]:
    notes = []
    n = len(main.own)
    if main.fell_back:
        notes.append(
            Note("W-FALLBACK", "the fast kernel disagreed with ir-measures, which was used instead")
        )
    if len(main.coded.set_query) == 1:
        notes.append(
            Note(
                "W-BENCHMARK-DEGENERATE",
                f"all queries share {main.coded.gold_count.max()} relevant document(s):"
                " no ranking can show that it read the query",
            )
        )
    closed = [name for name in NULLS if main.nulls[name].attainable < main.tau]
    if closed:
        notes.append(Note("W-UNREACHABLE", main.reason))
    if main.distinct < len(NULLS):
        notes.append(Note("W-COINCIDING-NULLS", _coinciding(main)))
    if n < 100:
        notes.append(
            Note(
                "W-SMALL-N",
                f"with {n} queries a permutation leaves each in place with chance 1/{n}: delta A is"
                f" {1 - 1 / n:.3f} of the difference to other queries' answers",
            )
        )
    rare = math.ceil(math.log(config.alpha / 8) / math.log1p(-main.tau)) if main.tau else 0
    if main.verdict == "FAIL" and config.decision == "interval" and 0 < n < rare:
        notes.append(
            Note(
                "W-RARE-WINS",
                f"{n} queries cannot exclude a system that wins rarely: below {rare} queries a FAIL"
                " may hide wins on a share tau of all queries",
            )
        )
    near = [name for name in NULLS if _near_tau(main, name, config)]
    if near:
        notes.append(
            Note(
                "W-FEW-BOOT",
                f"tau lies so close to an end of the interval of {_names(near)} that another seed"
                " may decide otherwise: take --n-boot 10000",
            )
        )
    if ties is not None:
        notes.append(
            Note(
                "W-TIES",
                f"ties in the top ranks of {ties.queries} of {n} queries: the score lies between"
                f" {ties.low_score:.4f} and {ties.high_score:.4f}",
            )
        )
    if companion is not None and not companion.agrees:
        notes.append(
            Note(
                "W-COMPANION",
                f"the strict companion {companion.measure} on each query's highest grade says"
                f" {companion.verdict} ({companion.score:.4f})",
            )
        )
    return notes


def _coinciding(main: _Graded) -> str:
    single = bool((main.coded.gold_count == 1).all())
    why = "one relevant document per query" if single else "all gold sets occur equally often"
    return (
        f"the four nulls test {main.distinct} different expectations here ({why}): those with"
        " equal means are one number, not several"
    )


def _near_tau(main: _Graded, name: str, config: GateConfig) -> bool:
    if config.decision == "point":
        return False
    wobble = 0.15 * main.standard_errors[name] * math.sqrt(1000 / config.n_boot)
    null = main.nulls[name]
    return wobble > 0 and min(abs(null.low - main.tau), abs(null.high - main.tau)) < wobble


def _per_query(evaluation: Evaluation, main: _Graded) -> pd.DataFrame:
    columns = {name: main.draws[name].query_means for name in NULLS}
    return pd.DataFrame({"query_id": evaluation.query_ids, "score": main.own, **columns})
