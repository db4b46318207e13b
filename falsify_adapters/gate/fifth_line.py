"""The fifth line of a report: the score beside what a ranking gets that never reads the query."""

from __future__ import annotations

from typing import Any

from falsify_adapters.blind import Best, best_constant, each_query
from falsify_adapters.coded import Coded
from falsify_adapters.kernels import Kernel
from falsify_adapters.resampling import ROUNDING
from falsify_adapters.results import Verdict


def fifth_line(coded: Coded, kernel: Kernel, score: float) -> dict[str, Any]:
    """Return the query-blind ceiling beside a score, as it stands in the report.

    Returns
    -------
    dict
        ``score`` of the best constant ranking found, ``kind`` ("exact" or "lower bound"),
        ``upper`` (no constant ranking scores more), ``below`` (whether the system scores less than
        that ranking) and a ``sentence``.
    """
    best = best_constant(coded, kernel, each_query(coded))
    below = score < best.score - ROUNDING
    return {
        "score": best.score,
        "kind": "exact" if best.bound.kind == "exact" else "lower bound",
        "upper": best.bound.value,
        "below": below,
        "sentence": _sentence(best, score, below),
    }


def _sentence(best: Best, score: float, below: bool) -> str:
    found = f"one ranking for every query scores {best.score:.4f} here"
    if below:
        return f"{found}, more than this system ({score:.4f}), without reading any"
    if abs(score - best.score) <= ROUNDING:
        return f"{found}, as much as this system"
    if score < best.bound.value - ROUNDING:
        return f"{found}, and none more than {best.bound.value:.4f}; this system {score:.4f}"
    more = f"this system scores {score - best.bound.value:z.4f} more"
    if best.bound.kind == "exact":
        return f"the best ranking that is the same for every query scores {best.score:.4f}; {more}"
    return (
        f"no ranking that is the same for every query scores above {best.bound.value:.4f}; {more}"
    )


def verdict_with_ceiling(
    verdict: Verdict, reason: str, best: Best, score: float, room: float, tau: float
) -> tuple[Verdict, str]:
    """Return the verdict if the score must also clear the query-blind ceiling by tau.

    By the point, not by an interval: the ceiling is the best of all rankings *for these very
    queries and answers*, so it already leans against the system, and it is the same rule that
    certifies a score without its rankings. Where only bounds of the ceiling are known, a score
    that clears the lower one alone is UNDER-NS.

    Parameters
    ----------
    verdict, reason
        Of the four nulls, which at least one system can clear.
    best : Best
        The ceiling.
    score : float
        The system's score.
    room : float
        How far the ideal ranking's score lies above the ceiling.
    tau : float
        The threshold.
    """
    if verdict == "FAIL":
        return verdict, reason
    if room < tau:
        return "UNDER-NS", (
            f"no system can pass here: the ideal ranking is {room:z.4f} above the query-blind"
            f" ceiling, below tau = {tau:g}"
        )
    margin = score - best.score
    if margin < tau or margin <= ROUNDING:
        return "FAIL", (
            f"fails the query-blind ceiling: one ranking for every query scores {best.score:.4f},"
            f" this system {score:.4f}; the difference of {margin:z.4f} is below tau = {tau:g}"
        )
    if score - best.bound.value < tau:
        return "UNDER-NS", (
            f"the query-blind ceiling is not known well enough: it lies between {best.score:.4f}"
            f" and {best.bound.value:.4f}, and the score is {score:.4f}"
        )
    return verdict, reason
