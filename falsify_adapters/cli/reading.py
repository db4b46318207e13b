"""How the grading commands read run files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.notes import Note

if TYPE_CHECKING:
    from falsify_adapters.evaluation import Evaluation
    from falsify_adapters.readers import RunFile


@dataclass(frozen=True)
class Reading:
    """How runs are read.

    Parameters
    ----------
    top_k, keep_self, score_order, rank_from_column, exclude
        The options of the same names.
    """

    top_k: int | None
    keep_self: bool
    score_order: Any
    rank_from_column: bool
    exclude: str | None

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Reading:
        """Pick these settings from all options of a command."""
        names = ("top_k", "keep_self", "score_order", "rank_from_column", "exclude")
        if options["top_k"] is not None and options["top_k"] < 1:
            raise UsageError("--top-k must be at least 1", found=str(options["top_k"]))
        return cls(**{name: options[name] for name in names})

    def read(self, path: str) -> RunFile:
        """Read a run file, without the documents that are to be left out."""
        from falsify_adapters.readers import read_run

        file = read_run(path, score_order=self.score_order, rank_from_column=self.rank_from_column)
        return file if self.exclude is None else _leave_out(file, path, self.exclude)


def _leave_out(file: RunFile, path: str, exclude: str) -> RunFile:
    from falsify_adapters.frames import drop_pairs
    from falsify_adapters.readers import read_exclusions

    pairs = read_exclusions(exclude)
    frame = drop_pairs(file.frame, pairs["query_id"], pairs["doc_id"])
    n_dropped = len(file.frame) - len(frame)
    if n_dropped == len(file.frame):
        raise InputError(f"{exclude} leaves nothing of {path}")
    note = Note(
        "W-EXCLUDED",
        f"{n_dropped} of the {len(pairs)} documents to leave out were in the run",
    )
    return replace(file, frame=frame, notes=(*file.notes, note))


def joined(file: RunFile, evaluation: Evaluation) -> Evaluation:
    """Return the evaluation with what is known of the file that its run came from."""
    return replace(
        evaluation,
        notes=(*file.notes, *evaluation.notes),
        provenance={**evaluation.provenance, "run": dict(file.provenance)},
    )
