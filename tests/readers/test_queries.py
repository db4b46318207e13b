"""Files about queries: texts, columns, one name each; and what is refused."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from falsify_adapters.errors import InputError
from falsify_adapters.readers.queries import read_names, read_queries


def names(text: str) -> dict[str, str]:
    return read_names(io.BytesIO(text.encode()))


@pytest.mark.parametrize(
    "text",
    [
        "q1\ta\nq2\tb\n",
        "q1,a\nq2,b",
        "query_id,cluster\r\nq1,a\r\nq2,b\r\n",
        "query-id\tname\n\nq1\ta\n\nq2\tb\n",
        '"q1","a"\n"q2","b"\n',
        "\ufeffqid,topic\n q1 , a \nq2,b\nq2,b\n",
    ],
)
def test_two_columns_in_all_their_forms(text: str) -> None:
    assert names(text) == {"q1": "a", "q2": "b"}


def test_names_may_hold_what_is_not_the_delimiter() -> None:
    assert names("q 1\ta, b\n") == {"q 1": "a, b"}
    assert names('q1,"a, b"\n') == {"q1": "a, b"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("\n\n", "empty"),
        ("query_id,name\n", "empty"),
        ("q1\n", "line 1 has not two fields"),
        ("q1,a\nq2\n", "line 2 has not two fields"),
        ("q1,a,b\n", "line 1 has not two fields"),
        ("q1,\n", "line 1 has not two fields"),
        (",a\n", "line 1 has not two fields"),
        ("q1,a\n\nq1,b\n", "line 3: query 'q1' has two names"),
    ],
)
def test_bad_names_are_refused_by_line(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        names(text)


def test_files_are_read_whatever_their_compression(tmp_path: Path) -> None:
    path = tmp_path / "names.tsv.gz"
    path.write_bytes(gzip.compress(b"q1\ta\n"))
    assert read_names(path) == {"q1": "a"}
    with pytest.raises(InputError, match="does not exist"):
        read_names(tmp_path / "nowhere.tsv")


def test_queries_keep_their_order_and_columns() -> None:
    text = (
        '{"_id": "q2", "text": "b", "metadata": {"topic": "x", "year": 1998, "url": ""}}\n'
        '{"_id": 7, "text": "a", "lang": "de", "metadata": {}}\n'
        '{"id": "q1", "metadata": null}\n'
    )
    found = read_queries(io.BytesIO(text.encode()))
    assert found.texts == {"q2": "b", "7": "a", "q1": ""}
    assert list(found.texts) == ["q2", "7", "q1"]
    assert found.column("topic") == {"q2": "x"}
    assert found.column("year") == {"q2": "1998"}
    assert found.column("lang") == {"7": "de"}
    with pytest.raises(InputError, match="no column 'url'; found: columns lang, topic, year"):
        found.column("url")
    assert read_queries(io.BytesIO(b"q1\tone two\nq2\tthree")).texts == {
        "q1": "one two",
        "q2": "three",
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "empty"),
        ("{bad\n", "line 1 is not JSON"),
        ('{"text": "a"}\n', "line 1 has no _id"),
        ('{"_id": true, "text": "a"}\n', "line 1 has no _id"),
        ('{"_id": "a", "text": 3}\n', "line 1: the text is no text"),
        ('{"_id": "a"}\n{"_id": "a"}\n', "line 2: query 'a' stands twice"),
        ("only a text\n", "line 1 is no query"),
        ("[1]\n", "line 1 is no query"),
    ],
)
def test_bad_queries_are_refused_by_line(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_queries(io.BytesIO(text.encode()))
