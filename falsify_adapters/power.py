"""What a benchmark of this size can show, and how many queries would decide."""

from __future__ import annotations

import math
from collections.abc import Mapping

from scipy import stats

from falsify_adapters.notes import counted
from falsify_adapters.results import NULLS, GateConfig, NullResult, Power

#: The chance of a PASS that is called enough, as is usual in power analysis (Cohen 1988).
ENOUGH = 0.8
#: Where no number of queries helps.
NO_POWER = Power(ENOUGH, None, None, None)
#: From here on a number of queries is no plan.
BEYOND_REACH = 1_000_000


def power_of(
    nulls: Mapping[str, NullResult],
    standard_errors: Mapping[str, float],
    n_queries: int,
    tau: float,
    config: GateConfig,
) -> Power:
    """Return what the interval verdict can show with these queries, and how many would decide.

    Half an interval is taken to shrink with the square root of the number of queries. For the
    number of queries the true delta is taken to be the measured one. For another true delta, the
    variance is taken to follow the score as a share of wins would: S (1 - S).

    Parameters
    ----------
    nulls : mapping of str to NullResult
        The four comparisons.
    standard_errors : mapping of str to float
        Of each delta.
    n_queries : int
        Evaluated queries.
    tau : float
        The threshold.
    config : GateConfig
        Says whether intervals decide at all.
    """
    spread = [name for name in NULLS if standard_errors[name] > 0]
    closed = any(null.attainable < tau for null in nulls.values())
    if not spread or closed or n_queries < 2 or config.decision == "point":
        return NO_POWER
    reserve = {name: stats.norm.ppf(ENOUGH) * standard_errors[name] for name in spread}
    sure = stats.norm.ppf(1 - config.alpha_each / 2)
    reach = {
        name: max(nulls[name].delta - nulls[name].low, sure * standard_errors[name]) + reserve[name]
        for name in spread
    }
    needed = {name: _detectable(nulls[name], reach[name], tau) for name in spread}
    hardest = max(needed, key=lambda name: needed[name])
    queries = {
        name: _queries(nulls[name], reserve[name], n_queries, tau)
        for name in spread
        if nulls[name].verdict == "UNDER-NS"
    }
    return Power(ENOUGH, hardest, needed[hardest], _together(queries, nulls, tau))


def power_sentence(power: Power, n_queries: int, attainable: float) -> str:
    """Say in words what a power analysis found; an empty text if there is nothing to say.

    Parameters
    ----------
    power : Power
        From :func:`power_of`.
    n_queries : int
        Evaluated queries.
    attainable : float
        The largest delta that any system can reach against ``power.null``.

    Examples
    --------
    >>> power_sentence(Power(0.8, "D", 0.1234, 412), 100, 0.9)
    'with 100 queries a true delta must be about 0.123 to pass 8 times in 10; if the measured \
deltas hold, about 420 queries would decide'
    """
    if power.minimum_detectable_delta is None:
        return ""
    least = power.minimum_detectable_delta
    if least > attainable:
        first = (
            f"with {counted(n_queries, 'query')} no system can count on a PASS: the delta against"
            f" {power.null} would have to be about {least:.3f}, and {attainable:.3f} is the most"
            " that can be reached"
        )
    else:
        chance = f"{10 * power.chance:.0f} times in 10"
        first = (
            f"with {counted(n_queries, 'query')} a true delta must be about {least:.3f} to"
            f" pass {chance}"
        )
    if power.queries is None:
        return first
    if power.queries >= BEYOND_REACH:
        return f"{first}; the measured deltas are too close to tau for any number of queries"
    about = _two_digits(power.queries)
    return f"{first}; if the measured deltas hold, about {counted(about, 'query')} would decide"


def _detectable(null: NullResult, reach: float, tau: float) -> float:
    """Return the true delta whose interval ends above tau with the chance asked for.

    Parameters
    ----------
    null : NullResult
        The comparison as measured.
    reach : float
        How far above tau the delta would have to be if its spread were the measured one.
    tau : float
        The threshold.
    """
    score = null.mean + null.delta
    measured = score * (1.0 - score)
    delta = tau + reach
    if measured <= 0:
        return delta
    # a system with a larger delta has a larger score, and another spread
    for _ in range(50):
        other = min(max(score + delta - null.delta, 0.0), 1.0)
        delta = tau + reach * math.sqrt(other * (1.0 - other) / measured)
    return delta


def _queries(null: NullResult, reserve: float, n_queries: int, tau: float) -> float:
    """Return the queries after which this null's interval would leave tau out, 8 times in 10."""
    distance = abs(null.delta - tau)
    half = null.delta - null.low if null.delta >= tau else null.high - null.delta
    if distance == 0:
        return math.inf
    return n_queries * ((max(half, 0.0) + reserve) / distance) ** 2


def _together(
    queries: Mapping[str, float], nulls: Mapping[str, NullResult], tau: float
) -> int | None:
    """Return the queries that decide the gate: one FAIL is enough, a PASS takes all."""
    failing = [count for name, count in queries.items() if nulls[name].delta < tau]
    passing = [count for name, count in queries.items() if nulls[name].delta >= tau]
    if not queries:
        return None
    count = min(failing) if failing else max(passing)
    return math.ceil(min(count, BEYOND_REACH))


def _two_digits(count: int) -> int:
    """Round up to two digits: more would claim too much.

    Examples
    --------
    >>> _two_digits(412), _two_digits(8), _two_digits(12345)
    (420, 8, 13000)
    """
    step = 10 ** max(len(str(count)) - 2, 0)
    return math.ceil(count / step) * step
