"""The HTML page: whole, escaped, small, the same every time. The browser test looks at it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from falsify_adapters.audit import audit_benchmark
from falsify_adapters.certificate import Certifier
from falsify_adapters.errors import InputError, MissingExtraError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.gate import run_gate
from falsify_adapters.playground import make_playground
from falsify_adapters.report.averages import macro_averages
from falsify_adapters.report.html import to_html
from falsify_adapters.report.outcome import Outcome, Refusal, Skip
from falsify_adapters.results import GateConfig
from tests.hostile import NAMES, hostile_evaluation
from tests.report_factory import gate_report, note, ties

CONFIG = GateConfig(n_trials=160, n_boot=160)
VOID = {"meta", "link", "input", "br", "rect", "line", "circle"}


class Page(HTMLParser):
    """Collects elements and texts, and checks that everything that is opened is closed."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"<{tag}> has an attribute twice"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self.open):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def with_queries(**changes: object):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"query_id": [f"q{i}" for i in range(30)], "score": rng.random(30)}
        | {name: rng.random(30) / 10 for name in "ABCD"}
    )
    return gate_report(per_query=frame, **changes)


@pytest.fixture(scope="module")
def hostile() -> tuple[Outcome, str]:
    outcome = Outcome(
        [run_gate(hostile_evaluation(system=name), "RR@10", CONFIG) for name in NAMES],
        [Refusal(NAMES[0], InputError(NAMES[1], found=NAMES[4], hint=NAMES[5]))],
        [Skip(NAMES[3], NAMES[2])],
    )
    (first, *_) = outcome.gate_reports()
    outcome.playgrounds.append(
        make_playground(hostile_evaluation(system=NAMES[0]), first, CONFIG, progress=False)
    )
    return outcome, to_html(outcome)


def test_the_verdict_comes_first_and_says_why() -> None:
    page = Page(to_html(Outcome([with_queries(reason="clears all four nulls")])))
    assert page.text.index("PASS") < page.text.index("bm25 scores nDCG@10 0.3177")
    assert "None of the four nulls explains this score." in page.text
    assert "Clears all four nulls." in page.text


def test_everything_that_a_report_holds_stands_on_the_page() -> None:
    report = with_queries(
        ties=ties(),
        warnings=(note("W-SMALL-N", "43 queries"),),
        score_answered=0.3332,
        ceiling={"sentence": "one ranking for every query scores 0.0756 here", "below": False},
        provenance={"run": {"sha256": "ab" * 32}, "tools": ["a", "b"]},
    )
    page = Page(to_html(Outcome([report, with_queries(system="popularity", role="control")])))
    for text in (
        *("12 queries have tied scores", "W-SMALL-N 43 queries", "MTEB print 0.3332"),
        *("One ranking for every query scores 0.0756 here.", "run sha256", "ab" * 32, "a, b"),
        *("settings seed", "popularity (control)", "The 10 worst", "+0.308", "0.268 to 0.348"),
    ):
        assert text in page.text, text
    worst = report.per_query.assign(gap=lambda f: f["score"] - f["D"]).nsmallest(10, "gap")
    assert all(query in page.texts for query in worst["query_id"])


def test_a_pass_below_the_ceiling_says_so_beside_the_verdict() -> None:
    sentence = "one ranking for every query scores 0.6151 here, more than this system"
    for below in (True, False):
        report = with_queries(ceiling={"sentence": sentence, "below": below})
        text = Page(to_html(Outcome([report]))).text
        assert text.count(f"But {sentence}.") == (2 if below else 0)
        assert text.index("One ranking for every query") > 0


def test_every_picture_says_what_it_shows() -> None:
    page = Page(to_html(Outcome([with_queries()])))
    pictures = page.all("svg")
    assert len(pictures) == 4 * 2 + 1 + 1
    assert all(picture["role"] == "img" and picture["aria-label"] for picture in pictures)
    (first, *_) = pictures
    assert "the score is 0.318, the null's mean 0.010" in first["aria-label"]
    assert first["aria-label"].endswith("PASS")


def test_several_benchmarks_get_a_matrix_with_gaps() -> None:
    reports = [
        with_queries(),
        with_queries(system="other"),
        with_queries(benchmark="scifact", deltas=(0.0, 0.0, 0.1, 0.0)),
    ]
    page = Page(to_html(Outcome(reports)))
    assert "2 of 3 runs pass, 1 fails" in page.text
    assert "3 graded runs on 2 benchmarks or measures: would" in page.text
    one = Page(to_html(Outcome(reports[:2])))
    assert "2 graded runs on 1 benchmark or measure: would" in one.text
    assert "not graded" in page.text
    small = [svg for svg in page.all("svg") if "small" in svg["class"]]
    assert len(small) == 3


def test_averages_refusals_and_skips_are_told() -> None:
    parts = [with_queries(subset=part) for part in ("android", "physics")]
    outcome = Outcome([*parts], [Refusal("a.trec", InputError("a.trec is empty"))])
    outcome.reports += macro_averages(parts)
    outcome.skipped.append(Skip("b.log", "not a run"))
    text = Page(to_html(outcome)).text
    assert "a.trec : a.trec is empty" in text
    assert "has the macro average 0.3177 over 2 parts" in text
    assert "Left out b.log : Not a run." in text


def test_audits_stand_on_the_page_with_what_they_were_made_from() -> None:
    qrels = {f"q{i}": {"<b>d0</b>": 1, f"d{i}": 1} for i in range(4)}
    audit = audit_benchmark(qrels, "P@1", name="<b>mine</b>", held_out=True)
    page = Page(to_html(Outcome([audit])))
    assert "Four-null gate What a benchmark gives away for free" in page.text
    assert "<b>mine</b> 4 1.0000" in page.text
    assert audit.provenance["frames"]["qrels"]["sha256"] in page.text
    assert "<b>mine</b>" in page.text
    assert "No run was graded" not in page.text
    assert not page.all("b")


def test_scores_without_rankings_stand_on_the_page_with_the_hash_of_each_file() -> None:
    certifier = Certifier({f"q{i}": {f"d{i}": 1} for i in range(40)}, corpus_size=1000)
    facts = {
        "file": "a/<b>.json",
        "sha256": "1" * 64,
        "qrels": {"name": "gold", "sha256": "2" * 64},
    }
    names = {"system": "<b>e5</b>", "task": "T", "provenance": facts}
    certificates = [certifier.certify(score, **names) for score in (0.6, 0.03)]
    page = Page(to_html(Outcome([*certificates])))
    assert "Four-null gate What reported scores prove" in page.text
    assert "2 scores: 1 FAIL, 1 CERTIFIED" in page.text
    [frame] = {one.provenance["frames"]["qrels"]["sha256"] for one in certificates}
    for digest in ("1" * 64, "2" * 64, frame):
        assert page.text.count(digest) == 1  # two scores, one file
    assert "a/<b>.json" in page.text
    assert not page.all("b")


def test_an_empty_outcome_is_a_page() -> None:
    assert "No run was graded" in Page(to_html(Outcome())).text


def test_nothing_is_loaded_and_no_other_script_may_run(hostile: tuple[Outcome, str]) -> None:
    for html in (to_html(Outcome([with_queries()])), hostile[1]):
        page = Page(html)
        for tag, attributes in page.elements:
            assert tag not in {"img", "iframe", "object", "base", "form"}
            assert not [name for name in attributes if name.startswith("on") or name == "style"]
            for name in ("src", "href", "action", "data"):
                assert attributes.get(name, "#").startswith(("#", "data:,"))
        assert "url(" not in html and "@import" not in html
        assert "<math" not in html
        (policy,) = [m["content"] for m in page.all("meta") if "http-equiv" in m]
        assert policy.startswith("default-src 'none'")
        for tag in ("script", "style"):
            (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            assert f"{tag}-src 'sha256-{digest}'" in policy


def test_hostile_names_are_shown_and_do_nothing(hostile: tuple[Outcome, str]) -> None:
    html = hostile[1]
    page = Page(html)
    assert len(page.all("script")) == 2
    assert not page.all("b")
    assert "<script>globalThis" not in html
    assert not set(html) & set("\u202e\u2066\u2028\u2029\x85\x1b")
    for name in (NAMES[0], NAMES[1], NAMES[2], NAMES[3], NAMES[6], NAMES[7]):
        assert page.text.count(name[:30]) > 1
    assert "{{ 7 * 7 }}" in page.text
    # in full once as a system's name and once in the refusal, cut elsewhere
    assert html.count("x" * 2000) == 2
    (data,) = re.findall(r'class="data">(.*?)</script>', html, re.DOTALL)
    assert not set(data) & set("<>&")
    assert json.loads(data)["predictors"]


def test_queries_of_hostile_name_are_among_the_worst(hostile: tuple[Outcome, str]) -> None:
    page = Page(hostile[1])
    assert f"{NAMES[0]} 0" in page.texts


def test_the_same_outcome_gives_the_same_bytes() -> None:
    def page() -> str:
        evaluation = hostile_evaluation()
        outcome = Outcome([run_gate(evaluation, "RR@10", CONFIG)])
        ground = make_playground(evaluation, outcome.gate_reports()[0], CONFIG, progress=False)
        outcome.playgrounds.append(ground)
        return to_html(outcome)

    assert page() == page()


def test_ids_and_links_fit_together(hostile: tuple[Outcome, str]) -> None:
    page = Page(hostile[1])
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(set(ids)) == len(ids)
    for _, attributes in page.elements:
        for name in ("aria-labelledby", "href"):
            target = attributes.get(name) or ""
            if target and not target.startswith("data:"):
                assert target.lstrip("#") in ids


def test_the_playground_is_a_table_without_a_script() -> None:
    evaluation = hostile_evaluation(system="mine")
    report = run_gate(evaluation, "RR@10", CONFIG)
    ground = make_playground(evaluation, report, CONFIG, progress=False)
    html = to_html(Outcome([report], playgrounds=[ground]))
    (table,) = re.findall(r'<table class="map">.*?</table>', html, re.DOTALL)
    shown = re.findall(r'<td class="v-(\S+)" title="(\S+)">(\S+) ', table)
    assert len(shown) == 44
    taus = ground.taus.index(report.tau)
    expected = [
        (ground.point(name, tenth / 10).at(taus).verdict, ground.point(name, tenth / 10).score)
        for tenth in range(11)
        for name in ("constant", "popularity", "popularity-sample", "random")
    ]
    assert [(v, s) for _, v, s in shown] == [(v, f"{s:.2f}") for v, s in expected]
    assert html.count('<div class="controls" hidden>') == 1


def test_ten_thousand_queries_stay_below_three_megabytes() -> None:
    rng = np.random.default_rng(0)
    n = 10_000
    gold = rng.integers(0, 5000, n)
    qrels = pd.DataFrame(
        {"query_id": [f"query-{i}" for i in range(n)], "doc_id": [f"d{g}" for g in gold]}
    ).assign(relevance=1)
    run = qrels[["query_id", "doc_id"]].assign(score=1.0).iloc[: n // 2]
    evaluation = Evaluation.create(run, qrels, corpus_size=100_000, benchmark="large")
    report = run_gate(evaluation, "RR@10", replace(CONFIG, companion=False))
    controls = [replace(report, system=f"system {i}") for i in range(9)]
    html = to_html(Outcome([report, *controls]))
    assert "10,000" in html
    assert len(html.encode()) < 3_000_000
    # cells, not points: the size does not grow with the queries
    assert len(html.encode()) < 60_000 * 10 + 60_000


def test_trials_without_spread_and_undefined_figures_are_drawn() -> None:
    report = with_queries()
    null = replace(report.nulls["A"], adjusted=float("nan"), trials=np.zeros(100), mean=0.0)
    html = to_html(Outcome([replace(report, nulls={**report.nulls, "A": null})]))
    assert "n/a" in html
    assert "nan" not in html.lower()


def test_without_jinja_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"falsify-adapters\[report\]"):
        to_html(Outcome())
