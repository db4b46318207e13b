"""What ir-measures is asked and how; which measures are refused, and with what words."""

from __future__ import annotations

from typing import Any

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from falsify_adapters.errors import FalsifyError, MeasureError
from falsify_adapters.frames import as_qrels, as_run
from falsify_adapters.measures import measure_depth, parse_measure, query_scores
from tests.strategies import qrels, runs


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("ndcg@10", "nDCG@10"),
        ("NDCG@10", "nDCG@10"),
        (" MAP ", "AP"),
        ("mrr@10", "RR@10"),
        ("Recall@100", "R@100"),
        ("p(rel=2)@5", "P(rel=2)@5"),
        ("rprec", "Rprec"),
        ("nDCG(gains={1:1,2:5})@5", "nDCG(gains={2:5})@5"),
        ("compat(p=0.8)", "Compat(p=0.8)"),
    ],
)
def test_measures_are_spelled_as_ir_measures_prints_them(text: str, printed: str) -> None:
    assert str(parse_measure(text)) == printed
    assert parse_measure(parse_measure(text)) == parse_measure(text)


@pytest.mark.parametrize(
    "measure",
    [
        *("P@0", "P@-1", "nDCG@0", "P(rel=0)@5", "RR(rel=-1)", "R@10000000", "nDCG@1000001"),
        *("Bpref", "infAP", "Judged@10", "NumRet", "NumRelRet", "NumRel", "NumQ"),
        *("Accuracy", "Accuracy@10", "P(judged_only=True)@5", "nDCG(judged_only=True)@10"),
        *("alpha_nDCG@10", "ERR_IA@10", "nERR_IA@5", "AP_IA", "P_IA@5", "StRecall@5", "NRBP"),
        *("nDCG(gains={0:1})@5", "nDCG(gains={1:0})@5", "nDCG(gains={1:-2})@5"),
        *("P", "R", "Success", "nDCG(dcg='other')@5", "P(colour='red')@5", "IPrec"),
        *("hitrate@10", "nDCG@ten", "nDCG@@10", "nDCG@10@20", "", "@10", "(", "10", "nDCG(", "a b"),
        *("nDCG@10 + P@5", "__import__('os')", "P(rel='x')@5", "Compat(p='x')", "P(rel=True)@5"),
        *("nDCG@10.5", "nDCG@1e3", "P@" + "9" * 400, "(" * 3000),
    ],
)
def test_refusals_name_measures_that_fit(measure: str) -> None:
    with pytest.raises(MeasureError) as refused:
        parse_measure(measure)
    assert "nDCG@10" in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("measure", [None, 10, 0.5, ["nDCG@10"], ir_measures.calc_aggregate])
def test_only_names_and_ir_measures_objects_are_measures(measure: Any) -> None:
    with pytest.raises(MeasureError):
        parse_measure(measure)


@pytest.mark.parametrize("measure", ["RBP(rel=1)", "INST(max_rel=3)", "SDCG(max_rel=3)@10"])
def test_an_absent_provider_is_named(measure: str) -> None:
    try:
        import cwl  # noqa: F401
    except ImportError:
        with pytest.raises(MeasureError, match=r"no provider.*cwl_eval.*nDCG@10"):
            parse_measure(measure)
    else:
        assert parse_measure(measure)


@settings(deadline=None, max_examples=150)
@given(st.text(alphabet="nDCGPRA@()=,1230.{}:'\" _-[]rel", max_size=24))
def test_any_text_is_a_measure_or_refused(text: str) -> None:
    try:
        measure = parse_measure(text)
    except FalsifyError as error:
        assert "\n" not in str(error)
    else:
        assert parse_measure(str(measure)) == measure


def test_defined_measures_are_probed() -> None:
    def define(function: Any) -> Any:
        return ir_measures.define_byquery(function, name="Mine")

    constant = define(lambda _, __: 0.5)
    count = define(lambda qrels, run: float(run["doc_id"].isin(qrels["doc_id"]).sum() * 2))
    never = define(lambda _, __: 0.0)
    for unfit in (constant, count, never):
        with pytest.raises(MeasureError, match=r"not a score in \[0, 1\]"):
            parse_measure(unfit)
    found = define(lambda qrels, run: float(run["doc_id"].isin(qrels["doc_id"]).any()))
    assert measure_depth(parse_measure(found) @ 3) == 3
    nameless = ir_measures.define(lambda _, run: [(query, 0.5) for query in run["query_id"]])
    with pytest.raises(MeasureError, match="name"):
        parse_measure(nameless)


def test_values_outside_0_and_1_are_refused() -> None:
    def found(qrels: Any, run: Any) -> float:
        return float(run["doc_id"].isin(qrels.loc[qrels["relevance"] > 0, "doc_id"]).sum())

    count = parse_measure(ir_measures.define_byquery(found, name="Hits"))
    run = as_run({"q": {"d1": 2.0, "d2": 1.0}})
    with pytest.raises(MeasureError, match=r"outside \[0, 1\]"):
        query_scores(run, as_qrels({"q": {"d1": 1, "d2": 1}}), count)


MEASURES = ["nDCG@3", "nDCG", "P@3", "R@3", "RR@3", "RR", "AP", "Success@2", "Rprec", "SetF"]


@settings(deadline=None, max_examples=40)
@given(run=runs(), judged=qrels())
def test_scores_are_ir_measures_own(run: Any, judged: Any) -> None:
    qrels_frame = as_qrels(judged)
    positive = {q: {d: s + 100 for d, s in docs.items()} for q, docs in run.items() if docs}
    clipped = {q: {d: max(g, 0) for d, g in docs.items()} for q, docs in judged.items()}
    for text in MEASURES:
        measure = parse_measure(text)
        theirs = {m.query_id: m.value for m in ir_measures.iter_calc([measure], clipped, positive)}
        (ours,) = query_scores(as_run(run), qrels_frame, measure)
        expected = [theirs.get(query, 0.0) for query in qrels_frame["query_id"].cat.categories]
        np.testing.assert_allclose(ours, expected, atol=1e-12)


def test_gdeval_gets_queries_as_numbers() -> None:
    # its script reads "PLAIN-2" as 2 and refuses "two"
    run, judged = {}, {}
    for name in ("PLAIN-2", "two", "2", "a b"):
        run[name] = {"d1": 2.0, "d2": 1.0}
        judged[name] = {"d2": 2}
    (scores,) = query_scores(as_run(run), as_qrels(judged), parse_measure("nDCG(dcg='exp-log2')@5"))
    np.testing.assert_allclose(scores, 1 / np.log2(3), atol=1e-5)


def test_gdeval_refuses_large_grades_in_words() -> None:
    with pytest.raises(MeasureError, match="grades up to 4"):
        query_scores(as_run({"q": {"d": 1.0}}), as_qrels({"q": {"d": 5}}), parse_measure("ERR@5"))


def test_the_last_document_counts_as_retrieved() -> None:
    # Compat ranks ideal documents by their score, 0 if they were not retrieved
    judged = {"q": {"a": 1, "z": 1}}
    run = {"q": {"x": 5.0, "z": 4.0}}
    measure = parse_measure("Compat(p=0.8)")
    (ours,) = query_scores(as_run(run), as_qrels(judged), measure)
    assert ours[0] == pytest.approx(ir_measures.calc_aggregate([measure], judged, run)[measure])


def test_a_cutoff_cuts_before_scoring() -> None:
    run = {"q": {f"d{i}": -float(i) for i in range(30)}}
    judged = {"q": {"d9": 1, "d10": 1}}
    for text, value in {"P@10": 0.1, "R@10": 0.5, "RR@5": 0.0, "AP@10": 0.05}.items():
        assert query_scores(as_run(run), as_qrels(judged), parse_measure(text))[0][0] == value


@pytest.mark.parametrize(
    ("name", "missing"), [("INST", "max_rel"), ("SDCG@10", "max_rel"), ("BPM", "cutoff")]
)
def test_a_measure_that_lacks_a_parameter_says_which(name: str, missing: str) -> None:
    with pytest.raises(MeasureError) as refused:
        parse_measure(name)
    assert "object at" not in str(refused.value)  # nothing that differs from run to run
    assert f"needs a value for {missing}" in str(refused.value)


@pytest.mark.parametrize("names", [("RR@1", "nDCG@5"), ("P@3", "AP", "R@1"), ("nDCG", "nDCG@2")])
def test_measures_asked_for_together_score_as_each_does_alone(names: tuple[str, ...]) -> None:
    run = as_run({f"q{i}": {f"d{j}": float(9 - j) for j in range(9)} for i in range(9)})
    qrels = as_qrels({f"q{i}": {f"d{i}": 2, f"d{8 - i}": 1} for i in range(9)})
    measures = [parse_measure(name) for name in names]
    for measure, scores in zip(measures, query_scores(run, qrels, *measures), strict=True):
        np.testing.assert_array_equal(scores, query_scores(run, qrels, measure)[0])
