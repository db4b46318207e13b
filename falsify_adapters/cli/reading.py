"""How the grading commands read runs and join them to qrels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from falsify_adapters.errors import InputError, UsageError

if TYPE_CHECKING:
    import pandas as pd

    from falsify_adapters.evaluation import Evaluation
    from falsify_adapters.readers import RunFile

#: Bytes from which on a run file is read only as deep as the measures look.
LARGE_FILE = 32 * 2**20
#: The warnings about ids look at so many documents per query.
LOOKED_AT = 10


#: Largest depth and corpus: whole numbers are exact up to here.
LARGEST = 2**53


@dataclass(frozen=True)
class Reading:
    """How runs are read and joined, from the options of a command.

    Parameters
    ----------
    ranking : mapping
        What ``read_run`` is told: ``score_order``, ``rank_from_column``.
    depth, large_depth : int or None
        How deep runs are read, and how deep large files are: as the measures look.
    chunks : str or None
        What of a document's id only names its chunk.
    joining : mapping
        What :meth:`Evaluation.create` and :meth:`Dataset.evaluate` are told: ``corpus_size``,
        ``keep_self``, ``top_k``, ``exclude``.
    """

    ranking: Mapping[str, Any]
    depth: int | None
    large_depth: int | None
    chunks: str | None
    joining: Mapping[str, Any]

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Reading:
        """Pick these settings from all options of a command; reads the exclusions."""
        # these would be refused for every run anew
        for name in ("top_k", "corpus_size"):
            value, option = options[name], f"--{name.replace('_', '-')}"
            if value is not None and value < 1:
                raise UsageError(f"{option} must be at least 1", found=str(value))
            if value is not None and value > LARGEST:
                raise UsageError(f"{option} is too large (limit {LARGEST})", found=str(value))
        depth = None if options["top_k"] is None else options["top_k"] + 1
        # what may be left out, put together or refused must be seen first
        whole = options["chunks"] or options["exclude"] or options["strict"]
        return cls(
            depth=None if whole else depth,
            large_depth=None if whole else depth or _measures_depth(options),
            ranking={
                "score_order": options["score_order"],
                "rank_from_column": options["rank_from_column"],
            },
            chunks=options["chunks"],
            joining={
                "corpus_size": options["corpus_size"],
                "keep_self": options["keep_self"],
                "top_k": options["top_k"],
                "exclude": _exclusions(options["exclude"]),
            },
        )

    def read(self, path: str, qrels: pd.DataFrame | None = None) -> RunFile:
        """Read a run file.

        With qrels, a refusal for contradicting scores and ranks says what each would score.
        """
        from falsify_adapters.adapters.files import read_run_beside
        from falsify_adapters.readers import read_run

        depth = self.large_depth if _is_large(path) else self.depth
        if qrels is None:
            file = read_run(path, depth=depth, **self.ranking)
        else:
            file = read_run_beside(path, qrels, depth=depth, **self.ranking)
        if self.chunks is None:
            return file
        from falsify_adapters.chunks import best_chunks

        return replace(file, frame=best_chunks(file.frame, self.chunks))

    def read_baseline(
        self, path: str, qrels: pd.DataFrame | None, judged: Mapping[str, Any]
    ) -> RunFile:
        """Read the run to compare with; a stored score is refused as such.

        `judged` is where the qrels came from.
        """
        from falsify_adapters.adapters.files import refuse_stored_score

        try:
            return self.read(path, qrels)
        except InputError:
            refuse_stored_score(path, judged)
            raise


def _measures_depth(options: Mapping[str, Any]) -> int | None:
    """Return how deep the measures look, and one more: the query's own document may have to go.

    None where all documents count: for a measure without cutoff, or to estimate the corpus size.
    """
    if options["corpus_size"] is None:
        return None
    from falsify_adapters.cli.options import chosen_measures
    from falsify_adapters.measures import measure_depth

    depths = [measure_depth(measure) for measure in chosen_measures(options)]
    return None if None in depths else max([LOOKED_AT, *filter(None, depths)]) + 1


def _is_large(path: str) -> bool:
    try:
        return Path(path).stat().st_size >= LARGE_FILE
    except OSError:  # standard input, or no such file: said when it is read
        return False


def _exclusions(path: str | None) -> pd.DataFrame | None:
    if path is None:
        return None
    from falsify_adapters.readers import read_exclusions

    return read_exclusions(path)


def joined(file: RunFile, evaluation: Evaluation) -> Evaluation:
    """Return the evaluation with what is known of the file that its run came from."""
    return replace(
        evaluation,
        notes=(*file.notes, *evaluation.notes),
        provenance={**evaluation.provenance, "run": dict(file.provenance)},
    )
