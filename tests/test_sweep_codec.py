"""What is kept of a unit comes back exactly, or not at all."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from falsify_adapters import Evaluation, GateConfig
from falsify_adapters.errors import InputError
from falsify_adapters.gate import calibration_curve, run_gate
from falsify_adapters.judgements import gate_by_grade, judge_again
from falsify_adapters.notes import Note
from falsify_adapters.playground import make_playground
from falsify_adapters.report.outcome import Refusal
from falsify_adapters.sweep.codec import pack, unpack
from falsify_adapters.sweep.finished import Event, Finished
from falsify_adapters.two_systems import compare_systems

QUICK = GateConfig(n_trials=160, n_boot=160)


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    qrels = {f"q{i}": {f"d{i}": 2, f"e{i}": 1} for i in range(40)}
    run = {f"q{i}": {f"e{i}": 1.0, "d0": 0.5} for i in range(40)}
    return Evaluation.create(run, qrels, corpus_size=999, system="mine", benchmark="made")


def assert_same(one: Any, other: Any) -> None:
    """Compare all there is, arrays and frames that dataclasses do not compare included."""
    assert type(one) is type(other)
    if is_dataclass(one):
        for each in fields(one):
            assert_same(getattr(one, each.name), getattr(other, each.name))
    elif isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, other, check_exact=True)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            assert_same(left, right)
    elif isinstance(one, float):
        # no document shows the sign of a NaN
        both_nan = math.isnan(one) and math.isnan(other)
        assert both_nan or (one == other and math.copysign(1, one) == math.copysign(1, other))
    elif isinstance(one, Exception):
        assert str(one) == str(other)
    else:
        assert one == other


def reports_of(evaluation: Evaluation) -> dict[str, Any]:
    report = run_gate(evaluation, "nDCG@10", QUICK)
    other = evaluation.with_run({f"q{i}": {f"d{i}": 1.0} for i in range(40)}, system="other")
    judged = {f"q{i}": {f"d{i}": 1} for i in range(40)}
    return {
        "gate": report,
        "curve": calibration_curve(evaluation, "nDCG@10", QUICK),
        "grades": gate_by_grade(evaluation, "RR@10", QUICK),
        "judged again": judge_again(evaluation, judged, "nDCG@10", QUICK, judge="llm"),
        "comparison": compare_systems(evaluation, other, "nDCG@10", QUICK)[0],
        "playground": make_playground(evaluation, report, QUICK),
        "refusal": Refusal("a.trec", InputError("no", found="x", hint="y")),
    }


def test_every_kind_of_report_comes_back_exactly(evaluation: Evaluation) -> None:
    for name, item in reports_of(evaluation).items():
        before = Finished((Event(item, name),), evaluated=True, accepted=True)
        assert_same(before, unpack(pack(before)))


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values)
def test_any_plain_value_comes_back_exactly(value: Any) -> None:
    assert_same(value, unpack(pack(value)))


def test_half_characters_and_keys_like_tags_come_back() -> None:
    value = {"$": "GateReport", "\udc80": ["\ud83d", np.float64(0.1), np.int64(2)]}
    assert_same(value, unpack(pack(value)))


@pytest.mark.parametrize("value", [object(), {1, 2}, np.array(["a"]), lambda: 0])
def test_what_cannot_be_kept_is_an_error_and_no_surprise_later(value: Any) -> None:
    with pytest.raises(TypeError, match="cannot be kept"):
        pack([value])


@given(st.data())
def test_a_changed_byte_is_noticed(data: st.DataObject) -> None:
    value = (Note("W-TIES", "3 queries"), [0.1] * 9)
    packed = bytearray(pack(value))
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with suppress(ValueError):  # a few bits of the header mean nothing
        assert unpack(bytes(packed)) == value


@pytest.mark.parametrize(
    "text", ['{"$":"os.system"}', '{"$":"Note","code":"W-TIES"}', "{}", '{"$":"frame"}', "["]
)
def test_strange_content_makes_no_object(text: str) -> None:
    import zlib

    with pytest.raises(ValueError):
        unpack(zlib.compress(text.encode()))
