"""Guess a file's format from its first lines: by what stands in them, never by the suffix."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace

from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.notes import counted, some
from falsify_adapters.readers.layout import INTEGER, NUMBER, Kind, Layout, header_columns
from falsify_adapters.readers.lines import split

FORMATS = ("trec", "tsv", "csv", "msmarco", "json", "jsonl", "parquet")
_TREC_FIELDS: dict[Kind, int] = {"run": 6, "qrels": 4, "exclusions": 0}
#: Lines of the head that a guess must fit.
SAMPLE = 200

_SHAPES: dict[Kind, str] = {
    "run": "query Q0 document rank score tag (TREC), or query document score under a header",
    "qrels": "query 0 document grade (TREC), or query-id corpus-id score (BEIR)",
    "exclusions": "query document",
}


def sniff(head: bytes, kind: Kind, label: str, *, whole: bool, format: str | None) -> Layout | str:
    """Return "json" or "jsonl", or the layout of a table.

    Parameters
    ----------
    head : bytes
        The beginning of the file.
    kind : {"run", "qrels", "exclusions"}
        What the file is read as.
    label : str
        Name of the source, for errors.
    whole : bool
        Whether `head` is the whole file.
    format : str, optional
        One of :data:`FORMATS`, instead of a guess.

    Raises
    ------
    InputError
        If the file is empty or no known format fits.
    """
    if format is not None and format not in FORMATS:
        raise UsageError("unknown format", found=str(format), hint=f"one of {', '.join(FORMATS)}")
    if format in ("json", "jsonl"):
        return format
    if whole and not head.strip():
        raise InputError(
            f"{label} is empty",
            found=f"{len(head)} bytes of blank lines" if head else "0 bytes",
            hint="did the job that wrote it fail?",
        )
    if format is None and _is_json(head):
        return _json_kind(head, whole)
    return _table(_sample(head, whole), kind, label, format)


def _is_json(head: bytes) -> bool:
    return re.match(rb'\s*(?:\{\s*["}]|\[\s*[\]{])', head) is not None


def _json_kind(head: bytes, whole: bool) -> str:
    first, _, rest = head.lstrip().partition(b"\n")
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return "json"
    return "jsonl" if rest.strip() or not whole else "json"


def _sample(head: bytes, whole: bool) -> list[tuple[int, str]]:
    lines = head.replace(b"\r\n", b"\n").split(b"\n")
    if not whole and len(lines) > 1:
        lines.pop()  # cut in the middle
    numbered = [
        (number, line.decode(errors="replace"))
        for number, line in enumerate(lines, start=1)
        if line.strip(b" \t\r")
    ]
    return numbered[:SAMPLE]


def _table(sample: list[tuple[int, str]], kind: Kind, label: str, format: str | None) -> Layout:
    if not sample:
        raise InputError(f"{label} begins with nothing but blank lines", found="no row in 64 KiB")
    comments = 0
    while True:
        guesses = [layout for make in _makers(kind, format) if (layout := make(sample[comments:]))]
        fitting = [layout for layout in guesses if _fits(layout, sample[comments:], kind)]
        more = comments + 1 < len(sample) and sample[comments][1].startswith("#")
        if fitting or not more:
            break
        comments += 1
    if not fitting and comments:  # what looked like comments explains nothing
        comments = 0
        guesses = [layout for make in _makers(kind, format) if (layout := make(sample))]
    if not (fitting or guesses):
        raise _unknown(sample[0], kind, label)
    layout = (fitting or guesses)[0]
    first = comments + bool(layout.header)
    skip = sample[first][0] - 1 if first < len(sample) else sample[first - 1][0]
    return replace(layout, skip=skip if first else 0, comments=comments)


_Maker = Callable[[list[tuple[int, str]]], Layout | None]


def _makers(kind: Kind, format: str | None) -> list[_Maker]:
    """Return the guesses in the order in which they are preferred."""

    def trec(delimiter: str) -> _Maker:
        return lambda sample: _trec(sample, delimiter, kind)

    def plain(delimiter: str) -> _Maker:
        return lambda sample: _plain(sample, delimiter, kind, format)

    makers: dict[str | None, list[_Maker]] = {
        None: [plain("\t"), trec("\t"), trec(" "), plain(","), trec(","), plain(" ")],
        "trec": [trec("\t"), trec(" ")],
        "tsv": [plain("\t")],
        "csv": [plain(","), trec(",")],
        "msmarco": [plain("\t"), plain(" ")],
    }
    return makers.get(format, [])


def _trec(sample: list[tuple[int, str]], delimiter: str, kind: Kind) -> Layout | None:
    layout = Layout("trec", delimiter, {}, _TREC_FIELDS[kind], quoted=delimiter == ",")
    try:
        n = len(split(sample[0][1], layout))
    except ValueError:
        return None
    if kind == "run" and n >= layout.n_fields:
        columns = {"query": 0, "doc": 2, "rank": 3, "value": 4}
        return replace(layout, columns=columns, tag_runs_on=True)
    if kind == "qrels" and n == layout.n_fields:
        return replace(layout, columns={"query": 0, "doc": 2, "value": 3})
    return None


def _plain(
    sample: list[tuple[int, str]], delimiter: str, kind: Kind, format: str | None
) -> Layout | None:
    name = "msmarco" if format == "msmarco" else "csv" if delimiter == "," else "tsv"
    layout = Layout(name, delimiter, {}, 0, quoted=_quoted(sample, delimiter))
    try:
        fields = split(sample[0][1], layout)
    except ValueError:
        return None
    layout = replace(layout, n_fields=len(fields))
    columns = header_columns(fields, kind)
    if columns is not None:
        return replace(layout, columns=columns, header=tuple(fields))
    if len(fields) == (2 if kind == "exclusions" else 3):
        positions = {"query": 0, "doc": 1, "value": 2}
        if kind == "exclusions":
            del positions["value"]
        return replace(layout, columns=positions)
    return None


def _quoted(sample: list[tuple[int, str]], delimiter: str) -> bool:
    """Tell whether quotes enclose fields: always in csv, else only if every text is enclosed."""
    if delimiter == ",":
        return True
    if delimiter == " ":
        return False
    fields = [field for _, line in sample for field in line.split(delimiter)]
    texts = [field for field in fields if not NUMBER.fullmatch(field)]
    return bool(texts) and all(len(f) > 1 and f[0] == f[-1] == '"' for f in texts)


def _fits(layout: Layout, sample: list[tuple[int, str]], kind: Kind) -> bool:
    for _, line in sample[bool(layout.header) :]:
        try:
            fields = split(line, layout)
        except ValueError:
            return False
        n, at = len(fields), layout.columns
        if n != layout.n_fields and not (layout.tag_runs_on and n > layout.n_fields):
            return False
        if "value" in at and not NUMBER.fullmatch(fields[at["value"]].strip()):
            return False
        if kind == "run" and layout.tag_runs_on and not INTEGER.fullmatch(fields[at["rank"]]):
            return False
    return True


def _unknown(line: tuple[int, str], kind: Kind, label: str) -> InputError:
    number, text = line
    delimiter = "\t" if "\t" in text else "," if "," in text and " " not in text else " "
    fields = split(text, Layout("", delimiter, {}, 0))
    what = {"run": "a run", "qrels": "qrels", "exclusions": "a list of exclusions"}[kind]
    return InputError(
        f"{label}: line {number} has {counted(len(fields), 'column')}, which is no known form of"
        f" {what}",
        found=some(fields, 8)[:80],
        hint=f"a line is {_SHAPES[kind]}",
    )
