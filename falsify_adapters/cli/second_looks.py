"""``--by-grade``, ``--alt-qrels``, ``--baseline``: what is asked beside the gate's verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from falsify_adapters.cli.grading import Session

if TYPE_CHECKING:
    from falsify_adapters.evaluation import Evaluation
    from falsify_adapters.readers import QrelsFile
    from falsify_adapters.results import GateConfig


class SecondLooks:
    """What is asked about each graded run, and about all of one benchmark together.

    Parameters
    ----------
    session : Session
        Takes the refusals of files with other judgements.
    options : mapping
        ``by_grade``, ``alt_qrels``.
    measures, config
        As the gate takes them.
    """

    def __init__(
        self,
        session: Session,
        options: Mapping[str, Any],
        measures: Sequence[Any],
        config: GateConfig,
    ) -> None:
        self._measures, self._config = measures, config
        self._by_grade = bool(options["by_grade"])
        self._others: dict[str, QrelsFile] = {}
        for path in options["alt_qrels"]:
            with session.attempt(path):
                from falsify_adapters.readers import read_qrels

                self._others[path] = read_qrels(path)

    def with_measures(self, measures: Sequence[Any]) -> SecondLooks:
        """Return the same looks by other measures; no file is read again."""
        other = copy(self)
        other._measures = measures
        return other

    @property
    def alt_qrels(self) -> tuple[str, ...]:
        """The files of other judgements that could be read."""
        return tuple(self._others)

    def look(self, session: Session, evaluation: Evaluation) -> None:
        """Grade one run again: at each grade, and by each other set of judgements."""
        for measure in self._measures if self._by_grade else ():
            with session.attempt(f"{evaluation.system} by grade, {measure}"):
                from falsify_adapters.judgements import gate_by_grade

                session.take(gate_by_grade(evaluation, measure, self._config))
        for path, file in self._others.items():
            for measure in self._measures:
                with session.attempt(f"{evaluation.system} by {path}, {measure}"):
                    from falsify_adapters.judgements import judge_again

                    report = judge_again(
                        evaluation,
                        file.frame,
                        measure,
                        self._config,
                        judge=Path(path).name,
                        notes=file.notes,
                        provenance=file.provenance,
                    )
                    session.add_beside(report, report.system)

    def compare(
        self, session: Session, baseline: Evaluation, candidates: Iterable[Evaluation]
    ) -> None:
        """Compare the candidates of one benchmark with its baseline.

        The baseline's own file may be among the runs; it is a candidate only if it is alone.
        """
        runs = list(candidates)
        tested = [one for one in runs if one.system != baseline.system] or runs
        if not tested:
            return
        for measure in self._measures:
            with session.attempt(f"comparison with {baseline.system}, {measure}"):
                from falsify_adapters.two_systems import compare_systems

                for report in compare_systems(baseline, tested, measure, self._config):
                    session.add_beside(report, report.candidate)
