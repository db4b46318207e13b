"""A pytest plugin: hold a retrieval system to the gate in a test suite.

pytest finds it by itself once the package is installed. Importing it loads nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from falsify_adapters.results import GateReport


def assert_gate(
    run: Any,
    qrels: Any,
    *,
    measure: Any = "nDCG@10",
    corpus_size: int | None = None,
    corpus_ids: Iterable[str] | None = None,
    expect: str = "PASS",
    system: str = "run",
    keep_self: bool = True,
    **settings: Any,
) -> GateReport:
    """Fail unless the gate's verdict is the expected one.

    Parameters
    ----------
    run, qrels : path, DataFrame, mapping, or iterable of namedtuples
        A file, or what :func:`falsify_adapters.as_run` and :func:`falsify_adapters.as_qrels` take.
    measure : str or ir_measures.Measure
        What the gate can grade.
    corpus_size, corpus_ids, keep_self
        As for :meth:`falsify_adapters.Evaluation.create`.
    expect : {"PASS", "FAIL", "UNDER-NS"}
        The verdict; a control is expected to FAIL.
    system : str
        The system's name in the message.
    **settings
        Of :class:`falsify_adapters.GateConfig`: ``tau``, ``seed``, ...

    Returns
    -------
    GateReport
        For further assertions.

    Raises
    ------
    AssertionError
        With the gate's table and reason.

    Examples
    --------
    >>> qrels = {f"q{i}": {f"d{i}": 1} for i in range(40)}
    >>> run = {f"q{i}": {f"d{i}": 1.0} for i in range(40)}
    >>> assert_gate(run, qrels, corpus_size=1000).score
    1.0
    >>> blind = {f"q{i}": {"d0": 1.0} for i in range(40)}
    >>> assert_gate(blind, qrels, corpus_size=1000, expect="FAIL").verdict
    'FAIL'
    """
    __tracebackhide__ = True
    from falsify_adapters.errors import UsageError
    from falsify_adapters.evaluation import Evaluation
    from falsify_adapters.gate import run_gate
    from falsify_adapters.readers import read_qrels, read_run
    from falsify_adapters.results import GateConfig

    if expect not in ("PASS", "FAIL", "UNDER-NS"):
        raise UsageError("expect must be PASS, FAIL or UNDER-NS", found=repr(expect))
    evaluation = Evaluation.create(
        read_run(run).frame if isinstance(run, (str, Path)) else run,
        read_qrels(qrels).frame if isinstance(qrels, (str, Path)) else qrels,
        corpus_size=corpus_size,
        corpus_ids=corpus_ids,
        keep_self=keep_self,
        system=system,
    )
    report = run_gate(evaluation, measure, GateConfig(**settings))
    if report.verdict != expect:
        raise AssertionError(_message(report, expect))
    return report


def _message(report: GateReport, expect: str) -> str:
    from falsify_adapters.report.outcome import Outcome
    from falsify_adapters.report.terminal import to_terminal

    table = to_terminal(Outcome([report]), width=90, color=False, ascii_only=True)
    return f"the gate says {report.verdict}, not {expect}: {report.reason}\n\n{table}"


@pytest.fixture(name="assert_gate", scope="session")
def assert_gate_fixture() -> Callable[..., GateReport]:
    """Return :func:`assert_gate`, so that a test need not import it."""
    return assert_gate
