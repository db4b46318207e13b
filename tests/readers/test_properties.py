"""What holds for any run, any qrels, and any bytes."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from falsify_adapters.errors import FalsifyError
from falsify_adapters.frames import as_qrels, as_run, codes, drop_rows, rank_in_query
from falsify_adapters.readers import read_exclusions, read_qrels, read_run
from falsify_adapters.readers.layout import Layout
from falsify_adapters.readers.lines import (
    Columns,
    _NotRegularError,
    careful_columns,
    fast_columns,
)
from tests import run_writers as writers

# No surrogates, no control characters that end a line or a text, and no byte order mark: at the
# start of a file it is one. A leading quote, brace or hash means something at the start of a file.
BAD = "\0\n\r\t\ufeff"
ANY_ID = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=BAD), min_size=1, max_size=12
).filter(lambda text: text[0] not in '"{[#<' and text.strip(" ") != "")
NO_BLANK_ID = ANY_ID.filter(lambda text: " " not in text)
TRICKY = (
    "NA",
    "nan",
    "null",
    "None",
    "1e5",
    "007",
    "1.0",
    "-1",
    "inf",
    "a b",
    "x#1",
    'y"',
    "ü",
    "　",
)
IDS = st.one_of(ANY_ID, st.sampled_from(TRICKY))
BLANKLESS_IDS = st.one_of(NO_BLANK_ID, st.sampled_from([t for t in TRICKY if " " not in t]))
SCORES = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-5, 5).map(float))
GRADES = st.integers(-2, 5)

FORMATS: dict[str, tuple[Callable[[Any], str], st.SearchStrategy[str], str | None]] = {
    "trec, tabs": (writers.trec_run, IDS, "trec"),
    "trec, blanks": (writers.trec_run_blanks, BLANKLESS_IDS, "trec"),
    "tsv": (writers.tsv, IDS, "tsv"),
    "tsv, header in any order": (writers.tsv_other_order, IDS, "tsv"),
    "tsv, all quoted": (writers.tsv_all_quoted, IDS, "tsv"),
    "csv": (writers.csv_file, IDS, "csv"),
    "json": (writers.json_dict, IDS, "json"),
    "json, readable": (writers.json_dict_readable, IDS, "json"),
    "json rows": (writers.json_rows, IDS, "jsonl"),
    "json list": (writers.json_list, IDS, "json"),
    "json predictions": (writers.json_predictions, IDS, "jsonl"),
}
QRELS_FORMATS = {
    "trec, tabs": (writers.trec_qrels, IDS, "trec"),
    "trec, blanks": (writers.trec_qrels_blanks, BLANKLESS_IDS, "trec"),
    **{name: made for name, made in FORMATS.items() if not name.startswith("trec")},
}


def tables(ids: st.SearchStrategy[str], values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    documents = st.dictionaries(ids, values, min_size=1, max_size=5)
    return st.dictionaries(ids, documents, min_size=1, max_size=4)


def file(text: str | bytes, data: st.DataObject) -> io.BytesIO:
    """Encode and compress in any way that the readers promise to see through."""
    if isinstance(text, str):
        if data.draw(st.booleans()):
            text = text.replace("\n", "\r\n")
        text = text.encode(data.draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16"])))
    return io.BytesIO(writers.packed(text, data.draw(st.sampled_from([None, "gzip", "lz4"]))))


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_any_run_is_read_back_as_it_was(name: str, data: st.DataObject) -> None:
    write, ids, format = FORMATS[name]
    run = data.draw(tables(ids, SCORES))
    found = read_run(file(write(run), data), format=format, score_order="descending")
    pd.testing.assert_frame_equal(found.frame, as_run(run))
    n_rows = sum(map(len, run.values()))
    assert found.provenance["rows"] == found.provenance["rows_kept"] == n_rows


@pytest.mark.parametrize("name", QRELS_FORMATS)
@given(data=st.data())
def test_any_qrels_are_read_back_as_they_were(name: str, data: st.DataObject) -> None:
    write, ids, format = QRELS_FORMATS[name]
    qrels = data.draw(tables(ids, GRADES))
    found = read_qrels(file(write(qrels), data), format=format)
    pd.testing.assert_frame_equal(found.frame, as_qrels(qrels))
    assert found.provenance["rows"] == sum(map(len, qrels.values()))


@given(data=st.data())
def test_parquet_is_read_back_as_it_was(data: st.DataObject) -> None:
    run = data.draw(tables(IDS, SCORES))
    found = read_run(file(writers.parquet(run), data))
    pd.testing.assert_frame_equal(found.frame, as_run(run))
    assert found.provenance["format"] == "parquet"


TAME_IDS = st.from_regex(r"[a-zA-Z0-9._-]{1,12}", fullmatch=True)


@pytest.mark.parametrize("name", FORMATS)
@given(data=st.data())
def test_the_format_of_a_run_with_usual_ids_is_guessed(name: str, data: st.DataObject) -> None:
    write, _, format = FORMATS[name]
    run = data.draw(tables(TAME_IDS, SCORES))
    found = read_run(file(write(run), data))
    pd.testing.assert_frame_equal(found.frame, as_run(run))
    one_line = {"json", "jsonl"} if len(run) == 1 else {format}
    assert found.provenance["format"] in one_line | {format}


@given(tables(TAME_IDS, SCORES), st.integers(1, 4))
def test_depth_keeps_the_best_of_each_query(run: Any, depth: int) -> None:
    whole = as_run(run)
    below = rank_in_query(codes(whole["query_id"])) > depth
    last = whole[~below].groupby("query_id", observed=True)["score"].min()
    tied = whole["score"].to_numpy() == last[whole["query_id"]].to_numpy()
    best = drop_rows(whole, below & ~tied)
    found = read_run(io.BytesIO(writers.trec_run(run).encode()), depth=depth)
    for column in ("query_id", "doc_id", "score"):
        assert found.frame[column].tolist() == best[column].tolist()
    assert ("W-DEPTH" in {note.code for note in found.notes}) == (len(best) < len(whole))


# -- any bytes ------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        *("q1", "d1", "Q0", "0", "1", "1.5", "-2e3", "nan", "inf", "0,5", "1_0", "tag", "NA", "#"),
        *(" ", "\t", ",", "\n", "\r\n", "\r", '"', '""', "{", "}", "[", "]", ":", "é", "\u2028"),
        *("query-id", "corpus-id", "score", "rank", '{"q1": {"d1": 1}}', '"results"', "null"),
        *("q1 Q0 d1 1 2.0 t\n", "q1 0 d1 1\n", "q1\td1\t1\n", '{"query_id": 1, "doc_id": 2}'),
    ]
)
BYTES = st.one_of(
    st.binary(max_size=200),
    st.lists(PIECES, max_size=30).map(lambda pieces: "".join(pieces).encode()),
    st.lists(PIECES, max_size=30).map(lambda pieces: "".join(pieces).encode("utf-16")),
    st.binary(max_size=60).map(lambda data: b"\x1f\x8b\x08" + data),
    st.binary(max_size=60).map(lambda data: b"\x04\x22\x4d\x18" + data),
    st.binary(max_size=60).map(lambda data: b"PAR1" + data + b"PAR1"),
    st.binary(max_size=60).map(lambda data: b"\x80\x04" + data),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Make a valid file of any format and compression with some bytes changed, or cut."""
    write = draw(st.sampled_from([writers.parquet, *(made[0] for made in FORMATS.values())]))
    text = write(draw(tables(TAME_IDS, SCORES)))
    whole = text if isinstance(text, bytes) else text.encode()
    whole = writers.packed(whole, draw(st.sampled_from([None, "gzip", "lz4"])))
    data = bytearray(whole)
    for _ in range(draw(st.integers(0, 3))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data[: draw(st.integers(0, len(data)))])


@given(
    st.one_of(BYTES, damaged()),
    st.sampled_from([None, "trec", "tsv", "csv", "msmarco", "json", "jsonl", "parquet"]),
)
def test_any_bytes_give_frames_or_a_refusal(data: bytes, format: str | None) -> None:
    attempts: list[Callable[[], Any]] = [
        lambda: read_run(io.BytesIO(data), format=format),
        lambda: read_run(io.BytesIO(data), format=format, depth=1, score_order="ascending"),
        lambda: read_run(io.BytesIO(data), format=format, rank_from_column=True),
        lambda: read_qrels(io.BytesIO(data), format=format),
    ]
    for attempt in attempts:
        try:
            found = attempt()
        except FalsifyError as error:
            assert str(error)
            continue
        values = found.frame.iloc[:, 2].to_numpy()
        assert len(found.frame) > 0
        assert np.isfinite(values).all()
        assert 0 < found.provenance["rows_kept"] <= found.provenance["rows"]
        if found.provenance["rows_kept"] < found.provenance["rows"]:
            said = {note.code for note in found.notes}
            assert said & {"W-DEPTH", "W-DUPLICATE-JUDGEMENTS"}
    try:
        assert list(read_exclusions(io.BytesIO(data)).columns) == ["query_id", "doc_id"]
    except FalsifyError as error:
        assert str(error)


# -- two ways to read a line ----------------------------------------------------------------------

LAYOUTS = (
    Layout("trec", " ", {"query": 0, "doc": 2, "rank": 3, "value": 4}, 6, tag_runs_on=True),
    Layout("tsv", "\t", {"query": 0, "doc": 1, "value": 2}, 3),
    Layout("csv", ",", {"query": 1, "doc": 0, "value": 2}, 3, quoted=True),
)
FIELDS = st.one_of(
    st.sampled_from(
        ["q", "1", "2.5", "-1e-3", "+4", ".5", "5.", "nan", "1e999", "a" * 70, "é" * 9]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters='\0\n\r\t ,"'), max_size=9),
)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
@given(data=st.data())
def test_the_fast_way_reads_what_the_careful_way_reads(layout: Layout, data: st.DataObject) -> None:
    line = st.lists(FIELDS, min_size=layout.n_fields, max_size=layout.n_fields)
    lines = data.draw(st.lists(line, min_size=1, max_size=5))
    text = "".join(layout.delimiter.join(fields) + "\n" for fields in lines).encode()
    try:
        fast = fast_columns(text, layout)
    except _NotRegularError:
        return
    assert _plain(fast) == _plain(careful_columns(text, layout, "x", 1))


def _plain(columns: Columns) -> list[Any]:
    ids = [
        np.array(part.texts(), object)[part.codes].tolist() for part in (columns.query, columns.doc)
    ]
    numbers = [part for part in (columns.value, columns.rank) if part is not None]
    return ids + [["nan" if math.isnan(x) else x for x in part.tolist()] for part in numbers]
