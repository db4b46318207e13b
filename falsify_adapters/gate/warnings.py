"""The warnings of a gate report: what must be said, not hidden."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from falsify_adapters.gate.grading import Graded
from falsify_adapters.gate.verdicts import names
from falsify_adapters.notes import Note, counted, plural
from falsify_adapters.resampling import ROUNDING, effective_queries
from falsify_adapters.results import NULLS, Companion, GateConfig, Ties

#: Below so many queries the self-pairs of null A are worth a word.
SMALL_N = 100
#: An interval that rests on fewer queries covers less often than it says (docs/studies).
FEW_EVENTS = 5.0
#: How far an interval's end moves between seeds, in standard errors, with 1,000 resamples.
SEED_WOBBLE = 0.15


def gate_notes(
    main: Graded, companion: Companion | None, ties: Ties | None, config: GateConfig
) -> list[Note]:
    """Return the warnings of one graded run."""
    return [
        *_about_benchmark(main),
        *_about_tau(main, config),
        *_about_queries(main, config),
        *_about_events(main, config),
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


def _about_tau(main: Graded, config: GateConfig) -> Iterator[Note]:
    if config.tau == "auto":
        source = max(NULLS, key=lambda name: main.nulls[name].luck_margin)
        margin = main.nulls[source].luck_margin
        why = (
            f"the luck margin of null {source}"
            if margin >= main.tau
            else f"the least that auto takes; the largest luck margin is {margin:.4f}"
        )
        yield Note(
            "W-TAU-AUTO",
            f"tau = {main.tau:.4f} was computed from this benchmark and this run ({why}), not set"
            " before benchmarking: two runs may get two thresholds",
        )


def degenerate_benchmark(main: Graded) -> Iterator[Note]:
    """Warn if all queries have the same relevant documents."""
    if len(main.coded.set_query) == 1:
        yield Note(
            "W-BENCHMARK-DEGENERATE",
            f"{counted(len(main.own), 'query')}"
            f" {plural(len(main.own), 'has', 'share')}"
            f" {counted(int(main.coded.gold_count.max()), 'relevant document')}:"
            " no ranking can show that it read the query",
        )


def _about_queries(main: Graded, config: GateConfig) -> Iterator[Note]:
    if config.permute == "query":
        yield from _self_pairs(main)
    if main.verdict == "FAIL" and config.decision == "interval" and 0 < main.tau < 1:
        # a win on a share tau of the queries goes unseen with chance (1 - tau)^n, n the number
        # of queries, or of groups that win and lose together
        enough = math.ceil(math.log(config.alpha_each / 2) / math.log1p(-main.tau))
        if main.units.count(len(main.own)) < enough:
            yield Note(
                "W-RARE-WINS",
                f"{_units(main)} cannot exclude a system that wins rarely: below {enough} of them"
                f" a FAIL may hide wins on a share {main.tau:g} of all queries",
            )


def _self_pairs(main: Graded) -> Iterator[Note]:
    n, stratum = len(main.own), main.units.stratum
    sizes = np.array([n]) if stratum is None else np.bincount(stratum)
    # a permutation leaves one query per stratum in place, on average
    if n >= SMALL_N * len(sizes):
        return
    ends = sorted({int(sizes.min()), int(sizes.max())})
    where = "" if stratum is None else " in a stratum"
    yield Note(
        "W-SMALL-N",
        f"with {' to '.join(f'{size}' for size in ends)} {plural(ends[-1], 'query')}{where} a"
        " permutation leaves each"
        f" in place with chance {' to '.join(f'1/{size}' for size in ends)}: delta A is"
        f" {' to '.join(f'{1 - 1 / size:.3f}' for size in ends)} of the difference to other"
        f" queries' answers{where and ' in the same stratum'}",
    )


def _about_events(main: Graded, config: GateConfig) -> Iterator[Note]:
    if config.decision == "point" or len(main.own) < 2 or main.coded.same_rankings():
        return
    # centred before they are summed: a large group is no event of its own
    influence = [main.draws[name].influence - main.draws[name].influence.mean() for name in NULLS]
    sums = np.stack([main.units.sums(column) for column in influence], axis=1)
    resting = dict(zip(NULLS, effective_queries(sums).tolist(), strict=True))
    few = [name for name, count in resting.items() if count < FEW_EVENTS]
    if few:
        least = min(resting[name] for name in few)
        about = "less than 1" if least < 0.5 else f"about {least:.0f}"
        yield Note(
            "W-RARE-EVENTS",
            f"the interval of {names(few)} rests on {about} of {_units(main)}"
            " (nearly all are alike): it may cover the true delta less often than it says",
        )


def _units(main: Graded) -> str:
    """Name what varies on its own, and how many there are."""
    count = main.units.count(len(main.own))
    if main.units.cluster is not None:
        return f"{counted(count, 'cluster')} of queries"
    one = "query" if main.units.order is None else "block"
    return counted(count, one) + (" of queries" if one == "block" else "")


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
    # ties that move nothing stand in the report's figures, without a warning
    if ties is not None and ties.high_score - ties.low_score >= ROUNDING:
        unsure = (
            ""
            if ties.exact
            else " (with the higher grades last or first, which is not known to be the worst and"
            " the best order for this measure)"
        )
        yield Note(
            "W-TIES",
            f"ties in the top ranks of {ties.queries} of {counted(len(main.own), 'query')}: the"
            " score lies"
            f" between {ties.low_score:.4f} and {ties.high_score:.4f}{unsure}",
        )


def _about_companion(companion: Companion | None) -> Iterator[Note]:
    if companion is not None and not companion.agrees:
        yield Note(
            "W-COMPANION",
            f"the strict companion {companion.measure} on each query's highest grade says"
            f" {companion.verdict} ({companion.score:.4f})",
        )
