"""``falsify-ir --from SOURCE``: grade files that hold rankings and gold together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from falsify_adapters.cli.dependence import Grouping, Judged, queries_of
from falsify_adapters.cli.grading import Session, system_names
from falsify_adapters.cli.options import chosen_measures, gate_config, was_chosen
from falsify_adapters.cli.reading import Reading
from falsify_adapters.cli.second_looks import SecondLooks
from falsify_adapters.errors import UsageError

if TYPE_CHECKING:
    from falsify_adapters.adapters.sources import Log
    from falsify_adapters.dependence import Dependence
    from falsify_adapters.evaluation import Evaluation
    from falsify_adapters.readers.queries import Queries

#: What ``--from`` takes to guess the source by content.
AUTO = "auto"
#: Options that a log leaves nothing to choose for.
FOR_RUNS = {
    "score_order": "--score-order",
    "rank_from_column": "--rank-from-column",
}


def grade_sources(session: Session, options: Mapping[str, Any]) -> None:
    """Grade the files of a source, each a system of its own."""
    for name, written in FOR_RUNS.items():
        if options.get(name):
            raise UsageError(
                f"{written} goes with QRELS and RUN, not with --from",
                hint="a log has no column of ranks: its tool says what comes first",
            )
    config = gate_config(options)
    logs = _Logs.from_options(options)
    looks = SecondLooks(session, options, [], config)
    baseline = [options["baseline"]] if options["baseline"] else []
    names = system_names([*logs.files, *baseline])
    first: Evaluation | None = None
    accepted = []
    for path in logs.files:
        with session.attempt(path):
            evaluation = logs.evaluate(path, names[path])
            first = first or evaluation
            measures = _measures(options, evaluation)
            if session.grade(evaluation, measures, config):
                accepted.append(evaluation)
                looks.with_measures(measures).look(session, evaluation)
    for path in baseline:
        with session.attempt(path):
            evaluation = logs.evaluate(path, names[path], role="baseline")
            measures = _measures(options, evaluation)
            if path in logs.files or session.grade(evaluation, measures, config):
                looks.with_measures(measures).compare(session, evaluation, accepted)
    if options["controls"] and first is not None:
        session.grade_controls(first, _measures(options, first), config, logs.corpus_ids)


@dataclass(frozen=True)
class _Logs:
    """What all logs of one call share.

    Parameters
    ----------
    source : str or None
        Whose logs; None is guessed for each.
    files : list of str
        The logs.
    gold : str or None
        The gold file, for sources that keep it apart.
    joining : mapping
        Keywords of ``load_log``.
    grouping : Grouping
        How the queries hang together.
    queries_file : str or None
        ``--queries``.
    """

    source: str | None
    files: list[str]
    gold: str | None
    joining: Mapping[str, Any]
    grouping: Grouping
    queries_file: str | None

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> _Logs:
        """Take the options of the command; says what is missing."""
        from falsify_adapters.adapters.sources import find_source, guess_gold

        source = None if options["source"] == AUTO else options["source"]
        files, gold = [options["qrels"], *options["runs"]], None
        if source is None:
            # one file is a log by itself; of several the first may be the gold of the others
            source = guess_gold(files[0]) if len(files) > 1 and files[0] != "-" else None
        guessed = options["source"] == AUTO and source is not None
        if source is not None and find_source(source).gold is not None:
            gold = files.pop(0)
            if not files:
                raise UsageError(f"--from {source} takes two files", hint="first the gold")
        joining = {
            **Reading.from_options(options).joining,
            **pool(options),
            "chunks": options["chunks"],
        }
        if options["choice_score"] is not None:
            joining["score"] = options["choice_score"]
        return cls(
            source=None if guessed else source,
            files=list(dict.fromkeys(files)),
            gold=gold,
            joining={**joining, "benchmark": options["benchmark"]},
            grouping=Grouping.from_options(options),
            queries_file=options["queries"],
        )

    @property
    def corpus_ids(self) -> Any:
        """The ids of all documents, if ``--pool`` names them."""
        return self.joining.get("corpus_ids")

    def evaluate(self, path: str, system: str, **names: Any) -> Evaluation:
        """Read one log."""
        from falsify_adapters.adapters.sources import load_log

        log = load_log(path, self.source, gold=self.gold, system=system, **self.joining, **names)
        return replace(log.evaluation, dependence=self._dependence(log))

    def _dependence(self, log: Log) -> Dependence | None:
        """Join what the options say of the queries to what the source does."""
        evaluation = log.evaluation
        judged = Judged(
            evaluation.qrels, lambda: self._queries(log), log.order, "order of the log's records"
        )
        asked = self.grouping.of(judged)
        own = evaluation.dependence
        if asked is None or own is None or own.strata is None:
            return asked or own
        if asked.strata is None:
            return replace(asked, strata=own.strata, strata_from=own.strata_from)
        both = {query: f"{asked.strata.get(query)}, {name}" for query, name in own.strata.items()}
        return replace(asked, strata=both, strata_from=f"{asked.strata_from}; {own.strata_from}")

    def _queries(self, log: Log) -> Queries:
        if self.queries_file is None and log.queries is not None:
            return log.queries
        return queries_of(self.queries_file)


def _measures(options: Mapping[str, Any], evaluation: Evaluation) -> list[Any]:
    """Return the chosen measures, or else those that suit the source."""
    from falsify_adapters.adapters.sources import SOURCES

    if was_chosen("measures") or options["measures_after"]:
        return chosen_measures(options)
    usual = SOURCES[evaluation.provenance["source"]].measure
    return chosen_measures({**options, "measures": [usual]})


def pool(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``--pool`` says about the corpus, as keywords of :meth:`Evaluation.create`."""
    given = options["pool"]
    if given is None:
        return {}
    if options["corpus_size"] is not None:
        raise UsageError("--pool and --corpus-size exclude each other")
    if given.isdecimal() and not Path(given).exists():
        if int(given) < 1:
            raise UsageError("--pool must be at least 1", found=given)
        return {"corpus_size": int(given)}
    from falsify_adapters.adapters.pools import read_pool

    return {"corpus_ids": read_pool(given)}
