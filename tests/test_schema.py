"""Every kind of report fits the published JSON Schema, and what is wrong does not."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

import falsify_adapters
from falsify_adapters import audit_benchmark
from falsify_adapters.certificate import Certifier, failed_certificate
from falsify_adapters.errors import InputError
from falsify_adapters.report.averages import macro_averages
from falsify_adapters.report.jsonfile import to_json
from falsify_adapters.report.models import FolderReport, model_rows
from falsify_adapters.report.outcome import Outcome, Refusal, Skip
from falsify_adapters.report.schema import schema_text
from tests.cli_runs import report, write_qrels, write_run
from tests.report_factory import gate_report

SCHEMA = json.loads(schema_text())
PACKAGE = Path(falsify_adapters.__file__).parent
QRELS = {f"q{i}": {f"d{i}": 1} for i in range(40)}


def check(document: Any) -> None:
    """Raise unless a document fits the schema."""
    Draft202012Validator(SCHEMA).validate(document)


def document_of(*reports: Any) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(to_json(Outcome(list(reports))))
    return parsed


@pytest.fixture(scope="module")
def graded() -> dict[str, Any]:
    return report("beir", "--controls", "--n-trials", "160", "--n-boot", "160", "-m", "RR@10")


def test_gate_reports_and_controls_fit(graded: dict[str, Any]) -> None:
    check(graded)
    assert {one["role"] for one in graded["reports"]} == {"run", "control"}


def test_certificates_fit() -> None:
    certifier = Certifier(QRELS, corpus_size=1000)
    certificates = [certifier.certify(score) for score in (0.6, 0.15, 0.03)]
    without_qrels = failed_certificate("nDCG@10", 0.0)
    document = document_of(*certificates, without_qrels)
    check(document)
    assert len({one["verdict"] for one in document["reports"]}) == 3


def test_audits_fit() -> None:
    check(document_of(audit_benchmark(QRELS), audit_benchmark(QRELS, "AP@10", held_out=True)))
    check(report_of_sample())


def report_of_sample() -> dict[str, Any]:
    return report("audit", "--held-out")


def test_averages_models_and_folders_fit() -> None:
    frame = {"sha256": "0" * 64, "rows": 1, "queries": 1}
    frames = {"frames": {"run": frame, "qrels": frame}}
    parts = [gate_report(subset=name, task="T", provenance=frames) for name in ("a", "b")]
    models = model_rows(parts, lambda _task: ("test",), by_measure=True)
    folder = FolderReport({"results": 2}, {"empty": 1}, {"empty": "a.json"})
    averages = macro_averages(parts)
    assert averages
    assert models
    check(document_of(*parts, *averages, *models, folder))


def test_a_baseline_grades_other_judgements_and_groups_fit(tmp_path: Path) -> None:
    qrels, other = write_qrels(tmp_path / "a.trec", 60), write_qrels(tmp_path / "b.trec", 50)
    good, blind = (write_run(tmp_path / f"{k}.trec", 60, k) for k in ("good", "blind"))
    options = ["--baseline", blind, "--by-grade", "--alt-qrels", other, "--strata", "gold-count"]
    few = ["--n-trials", "160", "--n-boot", "160"]
    for more in ([*few, "--blocks", "5"], [*few, "--curve", "--corpus-size", "1000"]):
        document = report("ir", qrels, good, *options, *more)
        check(document)
        assert {one["kind"] for one in document["reports"]} == {
            *("gate", "grades", "judgements", "comparison")
        }
    check(report("ir", qrels, good, "--baseline", good, *few))


def test_refusals_and_what_is_left_out_fit() -> None:
    refusal = Refusal("a.trec", InputError("a.trec is empty", hint="check it"))
    check(json.loads(to_json(Outcome([], [refusal], [Skip("b", "not a run")]))))


def test_every_kind_of_report_that_the_package_has_is_in_the_schema() -> None:
    sources = [path.read_text("utf-8") for path in PACKAGE.rglob("*.py")]
    declared = {
        kind
        for source in sources
        for kind in re.findall(r'^    kind: Literal\["(\w+)"\] = ', source, re.MULTILINE)
    }
    kinds = SCHEMA["$defs"]["report"]["properties"]["kind"]["enum"]
    assert declared == set(kinds)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("schema",), "falsify-adapters/report/0"),
        (("reports", 0, "kind"), "gates"),
        (("reports", 0, "verdict"), "CERTIFIED"),
        (("reports", 0, "score"), "0.5"),
        (("reports", 0, "nulls", "A", "p_value"), 1.5),
        (("reports", 0, "unknown"), 1),
        (("reports", 0, "provenance", "frames", "run", "sha256"), "abc"),
        (("environment", "blas_threads"), 4),
    ],
)
def test_what_is_wrong_is_found(graded: dict[str, Any], path: tuple[Any, ...], value: Any) -> None:
    wrong = deepcopy(graded)
    place = wrong
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(ValidationError):
        check(wrong)


def test_a_missing_hash_is_found(graded: dict[str, Any]) -> None:
    wrong = deepcopy(graded)
    del wrong["reports"][0]["provenance"]["frames"]
    with pytest.raises(ValidationError):
        check(wrong)
