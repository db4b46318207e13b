"""The verdict of each null and of the gate, and the sentence that says why.

Differences are printed with ``z``: one that rounds to 0 has no sign.
"""

from __future__ import annotations

from falsify_adapters.results import NULLS, GateConfig, NullResult, Ties, Verdict


def null_verdict(delta: float, low: float, high: float, tau: float, config: GateConfig) -> Verdict:
    """Return the verdict of one null; a delta of exactly 0 never passes."""
    if config.decision == "point":
        return "PASS" if delta >= tau and delta > 0 else "FAIL"
    if low >= tau and low > 0 and delta >= tau:
        return "PASS"
    if high < tau or low == high == 0:
        return "FAIL"
    return "UNDER-NS"


def gate_verdict(
    nulls: dict[str, NullResult],
    n_units: int,
    tau: float,
    config: GateConfig,
) -> tuple[Verdict, str]:
    """Return the gate's verdict and the sentence that says why.

    `n_units` is the number of queries, of clusters or of blocks of them.
    """
    closed = [name for name in NULLS if nulls[name].attainable < tau]
    if closed:
        most = min(nulls[name].attainable for name in closed)
        return "UNDER-NS", (
            f"no system can pass here: against {names(closed)} the largest delta that any ranking"
            f" can reach is {most:z.4f}, below tau = {tau:g}"
        )
    if n_units == 1:
        return "UNDER-NS", "one query, or one cluster of them, cannot tell a system from luck"
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
        f" {nulls[least].delta:z.4f} [{nulls[least].low:z.4f}, {nulls[least].high:z.4f}]"
    )


_INSTEAD = {
    "A": "with the right answers shuffled among the queries",
    "B": "with other queries' answers drawn at random",
    "C": "with random documents",
    "D": "with answers drawn by popularity",
}


def _why_failed(
    failed: list[str], nulls: dict[str, NullResult], tau: float, config: GateConfig
) -> str:
    worst = min(failed, key=lambda name: nulls[name].delta)
    null = nulls[worst]
    score = null.mean + null.delta
    interval = f" [{null.low:z.4f}, {null.high:z.4f}]" if config.decision == "interval" else ""
    return (
        f"fails {names(failed)}: {_INSTEAD[worst]} the score would be {null.mean:.4f}, it is"
        f" {score:.4f}; the difference of {null.delta:z.4f}{interval} is below tau = {tau:g}"
    )


def _why_open(open_: list[str], nulls: dict[str, NullResult], tau: float) -> str:
    parts = [
        f"{name} [{nulls[name].low:z.4f}, {nulls[name].high:z.4f}]"
        for name in open_
        if nulls[name].low < nulls[name].high
    ]
    if not parts:
        return f"too few queries, all alike: how far they vary against {names(open_)} is unknown"
    return (
        f"the queries cannot decide: tau = {tau:g} lies inside the interval of {', '.join(parts)}"
    )


def names(nulls: list[str]) -> str:
    """Return the nulls' names as a reader would list them.

    Examples
    --------
    >>> names(["A", "B", "D"])
    'A, B and D'
    """
    return nulls[0] if len(nulls) == 1 else f"{', '.join(nulls[:-1])} and {nulls[-1]}"


def verdict_under_ties(verdict: Verdict, reason: str, ties: Ties | None) -> tuple[Verdict, str]:
    """Return the verdict, UNDER-NS if the order of tied documents decides it, and why."""
    if ties is None or ties.low_verdict == ties.high_verdict == verdict:
        return verdict, reason
    return "UNDER-NS", (
        f"the order of tied documents decides: {ties.low_verdict} at"
        f" {ties.low_score:.4f} if ties fall against the system, {ties.high_verdict} at"
        f" {ties.high_score:.4f} if they fall for it"
    )
