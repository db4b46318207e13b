"""``falsify-ir --from SOURCE``: grade files that hold rankings and gold together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from falsify_adapters.cli.grading import Session, system_names
from falsify_adapters.cli.options import chosen_measures, gate_config, was_chosen
from falsify_adapters.cli.reading import Reading
from falsify_adapters.errors import UsageError

if TYPE_CHECKING:
    from falsify_adapters.evaluation import Evaluation

#: What ``--from`` takes to guess the source by content.
AUTO = "auto"
#: Options that say how qrels and runs are read or looked at again.
FOR_RUNS = {
    "chunks": "--chunks",
    "score_order": "--score-order",
    "rank_from_column": "--rank-from-column",
    "baseline": "--baseline",
    "by_grade": "--by-grade",
    "alt_qrels": "--alt-qrels",
    "controls": "--controls",
    "clusters": "--clusters",
    "blocks": "--blocks",
    "strata": "--strata",
    "queries": "--queries",
}


def grade_sources(session: Session, options: Mapping[str, Any]) -> None:
    """Grade the files of a source, each a system of its own."""
    from falsify_adapters.adapters.sources import find_source, load

    for name, written in FOR_RUNS.items():
        if options.get(name):
            raise UsageError(f"{written} goes with QRELS and RUN, not with --from")
    config = gate_config(options)
    source = None if options["source"] == AUTO else options["source"]
    files, gold = [options["qrels"], *options["runs"]], None
    if source is not None and find_source(source).gold is not None:
        gold = files.pop(0)
        if not files:
            raise UsageError(f"--from {source} takes two files", hint="first the gold")
    joining = {**Reading.from_options(options).joining, **pool(options)}
    if options["choice_score"] is not None:
        joining["score"] = options["choice_score"]
    for path, name in system_names(files).items():
        with session.attempt(path):
            evaluation = load(
                path,
                source,
                gold=gold,
                system=name,
                benchmark=options["benchmark"],
                **joining,
            )
            session.grade(evaluation, _measures(options, evaluation), config)


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
