"""Readers: any run or qrels file to the common frames, or a refusal that names the reason.

The stages, each in its module: :mod:`~falsify_adapters.readers.source` (bytes to text),
:mod:`~falsify_adapters.readers.sniff` and :mod:`~falsify_adapters.readers.layout` (which format),
:mod:`~falsify_adapters.readers.lines`, :mod:`~falsify_adapters.readers.jsons`,
:mod:`~falsify_adapters.readers.parquet` (text to columns),
:mod:`~falsify_adapters.readers.rows` (columns to a frame, within the depth),
:mod:`~falsify_adapters.readers.ranks` (do scores and ranks agree).
"""

from falsify_adapters.readers.files import (
    QrelsFile,
    RunFile,
    read_exclusions,
    read_qrels,
    read_run,
)
from falsify_adapters.readers.ranks import ScoreOrderError

__all__ = ["QrelsFile", "RunFile", "ScoreOrderError", "read_exclusions", "read_qrels", "read_run"]
