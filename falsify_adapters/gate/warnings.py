"""The warnings of a gate report: what must be said, not hidden."""

from __future__ import annotations

import math
from collections.abc import Iterator

from falsify_adapters.gate.grading import Graded
from falsify_adapters.gate.verdicts import names
from falsify_adapters.notes import Note
from falsify_adapters.resampling import ROUNDING
from falsify_adapters.results import Companion, GateConfig, Ties

#: Below so many queries the self-pairs of null A are worth a word.
SMALL_N = 100
#: How far an interval's end moves between seeds, in standard errors, with 1,000 resamples.
SEED_WOBBLE = 0.15


def gate_notes(
    main: Graded, companion: Companion | None, ties: Ties | None, config: GateConfig
) -> list[Note]:
    """Return the warnings of one graded run."""
    return [
        *_about_benchmark(main),
        *_about_queries(main, config),
        *_about_resampling(main, config),
        *_about_ties(main, ties),
        *_about_companion(companion),
    ]


def _about_benchmark(main: Graded) -> Iterator[Note]:
    if main.fell_back:
        message = "the fast kernel disagreed with ir-measures, which was used instead"
        yield Note("W-FALLBACK", message)
    yield from degenerate_benchmark(main)
    if any(null.attainable < main.tau for null in main.nulls.values()):
        yield Note("W-UNREACHABLE", main.reason)
    same = [names(list(group)) for group in main.expectations if len(group) > 1]
    if same:
        yield Note(
            "W-COINCIDING-NULLS",
            f"{', '.join(same)} have the same expectation on this benchmark: the four nulls test"
            f" {len(main.expectations)} numbers, not four",
        )


def degenerate_benchmark(main: Graded) -> Iterator[Note]:
    """Warn if all queries have the same relevant documents."""
    if len(main.coded.set_query) == 1:
        yield Note(
            "W-BENCHMARK-DEGENERATE",
            f"{len(main.own)} queries share {main.coded.gold_count.max()} relevant document(s):"
            " no ranking can show that it read the query",
        )


def _about_queries(main: Graded, config: GateConfig) -> Iterator[Note]:
    n = len(main.own)
    if n < SMALL_N and config.permute == "query":
        yield Note(
            "W-SMALL-N",
            f"with {n} queries a permutation leaves each in place with chance 1/{n}: delta A is"
            f" {1 - 1 / n:.3f} of the difference to other queries' answers",
        )
    if main.verdict == "FAIL" and config.decision == "interval" and 0 < main.tau < 1:
        # a win on a share tau of the queries goes unseen with chance (1 - tau)^n
        enough = math.ceil(math.log(config.alpha_each / 2) / math.log1p(-main.tau))
        if n < enough:
            yield Note(
                "W-RARE-WINS",
                f"{n} queries cannot exclude a system that wins rarely: below {enough} queries a"
                f" FAIL may hide wins on a share {main.tau:g} of all queries",
            )


def _about_resampling(main: Graded, config: GateConfig) -> Iterator[Note]:
    if config.decision == "point":
        return
    wobble = SEED_WOBBLE * math.sqrt(1000 / config.n_boot)
    near = [
        name
        for name, null in main.nulls.items()
        if min(abs(null.low - main.tau), abs(null.high - main.tau))
        < wobble * main.standard_errors[name]
    ]
    if near:
        yield Note(
            "W-FEW-BOOT",
            f"tau lies so close to an end of the interval of {names(near)} that another seed may"
            " decide otherwise: take --n-boot 10000",
        )


def _about_ties(main: Graded, ties: Ties | None) -> Iterator[Note]:
    if ties is None:
        return
    if ties.high_score - ties.low_score < ROUNDING:
        effect = "their order does not move the score"
    else:
        effect = f"the score lies between {ties.low_score:.4f} and {ties.high_score:.4f}"
    yield Note(
        "W-TIES", f"ties in the top ranks of {ties.queries} of {len(main.own)} queries: {effect}"
    )


def _about_companion(companion: Companion | None) -> Iterator[Note]:
    if companion is not None and not companion.agrees:
        yield Note(
            "W-COMPANION",
            f"the strict companion {companion.measure} on each query's highest grade says"
            f" {companion.verdict} ({companion.score:.4f})",
        )
