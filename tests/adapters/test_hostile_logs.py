"""Logs with something else in each place: read, or refused in one line, never a traceback."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from falsify_adapters.adapters.records import read_records
from falsify_adapters.adapters.sources import SOURCES, load
from falsify_adapters.errors import FalsifyError, InputError

CALL = {"arg_0": "question"}
GOOD: dict[str, Any] = {
    "elasticsearch": {
        "details": {"q": {"hits": [{"hit": {"_index": "i", "_id": "a"}, "rating": 1}]}}
    },
    "falsify-eval": {"retrieved": ["a"], "gold": "a", "rel": 1},
    "llamaindex": {"expected_ids": ["a"], "retrieved_ids": ["a"]},
    "lm-eval": {
        "doc_id": 1,
        "target": "0",
        "filtered_resps": [["-1", "True"], ["-2", "False"]],
        "acc": 1,
        "acc_norm": 1,
        "arguments": {"gen_args_0": {**CALL, "arg_1": " a"}, "gen_args_1": {**CALL, "arg_1": " b"}},
    },
    "olmes": {
        "doc_id": 1,
        "label": 0,
        "model_output": [{"sum_logits": -1}, {"sum_logits": -2}],
        "metrics": {"predicted_index_raw": 0},
    },
    "ragas": {"retrieved_context_ids": ["a"], "reference_context_ids": ["a"]},
    "recommender": {"user_id": 1, "item_id": 2, "score": 0.5},
}
GOLD: dict[str, Any] = {
    "elasticsearch": {
        "requests": [{"id": "q", "ratings": [{"_index": "i", "_id": "a", "rating": 1}]}]
    },
    "recommender": {"user_id": 1, "item_id": 2},
}
JUNK: list[Any] = [
    *(None, [], {}, "", 0, -1, 1.5, True, "x", [None], [[]], [{}], ["a", "a"], {"a": 1}),
    *("[", "['a' 'b']", "[1,", "\ud800", 10**400, float("nan"), float("inf"), "[" * 3000),
]


def places(item: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    inside = item.items() if isinstance(item, dict) else enumerate(item)
    for key, value in inside if isinstance(item, (dict, list)) else ():
        if isinstance(value, (dict, list)):
            yield from places(value, (*place, key))
        else:
            yield (*place, key)


def replaced(item: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    item = copy.deepcopy(item)
    inside = item
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    return item


def refused(source: str | None, log: bytes, gold: bytes | None, **options: Any) -> bool:
    try:
        load(io.BytesIO(log), source, gold=gold and io.BytesIO(gold), **options)
    except FalsifyError as error:
        assert "\n" not in str(error)
        return True
    return False


def as_bytes(item: Any) -> bytes | None:
    return None if item is None else json.dumps(item).encode()


def test_the_good_ones_are_read() -> None:
    assert GOOD.keys() == SOURCES.keys()
    for source, log in GOOD.items():
        assert not refused(source, as_bytes(log) or b"", as_bytes(GOLD.get(source))), source


@pytest.mark.parametrize("source", GOOD)
def test_something_else_in_each_place(source: str) -> None:
    log, gold = GOOD[source], GOLD.get(source)
    refusals = 0
    for value in JUNK:
        for place in places(log):
            data = as_bytes(replaced(log, place, value)) or b""
            refusals += refused(source, data, as_bytes(gold))
            if source == "lm-eval":
                refused(source, data, None, score="norm")
        for place in places(gold) if gold else ():
            refusals += refused(
                source, as_bytes(log) or b"", as_bytes(replaced(gold, place, value))
            )
    assert refusals > len(JUNK)


NO_LOGS = [
    *(
        b"",
        b"\0",
        b"\xff\xfe",
        b"\xff",
        b"a,b\n1,2,3\n",
        b'a,"b\n1',
        b"PAR1xxxx",
        b"{",
        b"[",
        b"[1]",
    ),
    *(b"[[]]", b"{}", b"[{}]", b"\xef\xbb\xbf{}", b"retrieved\n\xff\n", b"a\n", b'{"a":1}\n[]\n'),
    *(b"retrieved,gold\n,\n", b"\x1f\x8b", b"[" * 100_000, b"retrieved,retrieved\n1,2\n"),
]


@pytest.mark.parametrize("data", NO_LOGS, ids=lambda data: repr(data[:20]))
def test_files_that_are_no_logs(data: bytes) -> None:
    for source in (None, *GOOD):
        gold = as_bytes(GOLD.get(source)) if source else None
        assert refused(source, data, gold), source


def test_a_cell_that_holds_a_list_of_lists_is_refused() -> None:
    data = b"retrieved,gold\n\"[['a']]\",a\n"
    with pytest.raises(InputError, match="neither text nor a whole number"):
        load(io.BytesIO(data), "falsify-eval")


def test_a_parquet_log_is_bounded_as_runs_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.parquet"
    pd.DataFrame({"retrieved": [["d1"]] * 50, "gold": ["d1"] * 50}).to_parquet(path)
    assert len(read_records(path).rows) == 50
    monkeypatch.setattr("falsify_adapters.readers.parquet.LARGEST_WHOLE", 100)
    with pytest.raises(InputError, match="too large to be read as a whole"):
        read_records(path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(InputError, match="cannot be read as parquet"):
        read_records(path)
