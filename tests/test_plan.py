"""A plan fixes what is graded before there is a run, and the report says whether it was kept to."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from falsify_adapters import read_qrels
from falsify_adapters.plan import read_plan
from falsify_adapters.provenance import frame_sha256
from tests.cli_runs import call, report, write_dataset, write_qrels, write_run
from tests.test_schema import check

FAST = ("--n-trials", "160", "--n-boot", "160")
SIZE = ("--corpus-size", "99")


@pytest.fixture
def planned(tmp_path: Path) -> Path:
    write_qrels(tmp_path / "gold.trec", 40)
    write_run(tmp_path / "mine.trec", 40)
    result = call(
        *("plan", tmp_path / "gold.trec", "-m", "R@5", "-m", "nDCG@10", "--tau", "0.2"),
        *("--seed", "7", "--decision", "point", *FAST, "--out", tmp_path / "plan.toml"),
    )
    assert result.exit_code == 0, result.stderr
    assert result.stdout == (tmp_path / "plan.toml").read_text()
    return tmp_path


def test_a_plan_takes_no_option_that_it_would_not_fix() -> None:
    from falsify_adapters.cli.plan import main
    from falsify_adapters.plan import SETTINGS

    written = {"measures", "min_rel", *SETTINGS}
    assert {parameter.name for parameter in main.params} == written | {"qrels", "out"}


def graded(folder: Path, *more: Any) -> dict[str, Any]:
    return report(
        "ir",
        folder / "gold.trec",
        folder / "mine.trec",
        *SIZE,
        "--plan",
        folder / "plan.toml",
        *more,
    )


def test_a_plan_holds_settings_and_the_hash_of_the_qrels(planned: Path) -> None:
    plan = read_plan(planned / "plan.toml")
    assert plan["measure"] == ["R@5", "nDCG@10"]
    assert (plan["tau"], plan["seed"], plan["decision"], plan["alpha"]) == (0.2, 7, "point", 0.05)
    assert plan["qrels_sha256"] == frame_sha256(read_qrels(planned / "gold.trec").frame)


def test_a_report_takes_the_plans_settings_and_keeps_to_it(planned: Path) -> None:
    document = graded(planned)
    check(document)
    assert [one["measure"] for one in document["reports"]] == ["R@5", "nDCG@10"]
    assert document["reports"][0]["settings"]["tau"] == 0.2
    assert document["plan"] == {
        "name": "plan.toml",
        "sha256": hashlib.sha256((planned / "plan.toml").read_bytes()).hexdigest(),
        "kept": True,
        "departures": [],
    }


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--tau", "0.1"), ["tau is 0.1, planned was 0.2"]),
        (("--seed", "8"), ["seed is 8, planned was 7"]),
        (("-m", "nDCG@10"), ["R@5 was not graded"]),
        (("-m", "R@5", "-m", "nDCG@10", "-m", "RR@10"), ["RR@10 was not planned"]),
        (("--permute", "label"), ["permute is label, planned was query"]),
    ],
)
def test_each_departure_is_named(planned: Path, more: tuple[str, ...], said: list[str]) -> None:
    document = graded(planned, *more)
    assert document["plan"]["kept"] is False
    assert document["plan"]["departures"] == said


def test_other_qrels_are_a_departure(planned: Path) -> None:
    path = planned / "gold.trec"
    path.write_text(path.read_text().replace("q001 0 d001 1", "q001 0 d002 1"))
    [said] = graded(planned)["plan"]["departures"]
    assert said.startswith("the qrels of gold are others than planned")


def test_the_same_qrels_in_another_format_are_the_same(planned: Path) -> None:
    folder = write_dataset(planned / "small", 40)
    options = ("-d", folder, "-r", planned / "mine.trec", "--offline")
    document = report("beir", *options, "--plan", planned / "plan.toml")
    assert document["plan"]["kept"] is True


def test_a_plan_wins_over_a_configuration_file(planned: Path) -> None:
    (planned / "my.toml").write_text("tau = 0.3\ncorpus_size = 77\n")
    document = graded(planned, "--config", planned / "my.toml")
    assert document["plan"]["kept"] is True


def test_departures_are_told(planned: Path) -> None:
    inputs = (planned / "gold.trec", planned / "mine.trec", *SIZE, "--plan", planned / "plan.toml")
    result = call("ir", *inputs)
    assert "kept to" in result.stderr
    assert result.exit_code == 0
    result = call("ir", *inputs, "--tau", "0.1")
    assert "not kept to: tau is 0.1, planned was 0.2" in result.stderr
    assert "kept to" not in call("ir", *inputs, "--quiet").stderr


def written(folder: Path, *more: Any) -> dict[str, str]:
    """Return what stands on the terminal, in Markdown and on the page."""
    paths = {name: folder / f"report.{name}" for name in ("markdown", "html")}
    result = call(
        *("ir", folder / "gold.trec", folder / "mine.trec", *SIZE, "--no-playground"),
        *("--plan", folder / "plan.toml", *more),
        *(part for name, path in paths.items() for part in (f"--{name}", path)),
    )
    assert result.exit_code == 0, result.stderr
    texts = {name: path.read_text("utf-8") for name, path in paths.items()}
    return {"terminal": result.stdout, **texts}


def test_every_report_for_people_says_that_the_plan_was_kept(planned: Path) -> None:
    for text in written(planned).values():
        assert "Kept to plan plan.toml, SHA-256 " in " ".join(text.split())
        assert "Not kept to" not in text
        assert "Departures" not in text


def test_every_report_for_people_names_the_departures(planned: Path) -> None:
    shown = written(planned, "--tau", "0.1", "-m", "nDCG@10", "-m", "RR@10")
    for text in shown.values():
        flat = " ".join(text.split())
        assert "Not kept to plan plan.toml, SHA-256 " in flat
        for said in ("tau is 0.1, planned was 0.2", "RR@10 was not planned", "R@5 was not graded"):
            assert said in flat
    assert "**Not kept to plan plan.toml" in shown["markdown"]
    assert '<h2 id="plan">Departures from the plan</h2>' in shown["html"]


def test_departures_are_escaped(planned: Path) -> None:
    (planned / "<b>.trec").write_text((planned / "gold.trec").read_text() + "q001 0 d005 1\n")
    paths = {name: planned / f"report.{name}" for name in ("markdown", "html")}
    call(
        *("ir", planned / "<b>.trec", planned / "mine.trec", *SIZE, "--no-playground"),
        *("--plan", planned / "plan.toml"),
        *(part for name, path in paths.items() for part in (f"--{name}", path)),
    )
    for path in paths.values():
        text = path.read_text("utf-8")
        assert "are others than planned" in text
        assert "<b>" not in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("tau = 0.1", "is no plan: it lacks measure"),
        ("n-boot = 3", "unknown key"),
        ("[x]", "unknown key"),
    ],
)
def test_what_is_no_plan_is_refused(planned: Path, content: str, message: str) -> None:
    (planned / "plan.toml").write_text(content)
    inputs = (planned / "gold.trec", planned / "mine.trec", "--plan", planned / "plan.toml")
    result = call("ir", *inputs)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_report_made_with_a_plan_verifies(planned: Path) -> None:
    target = planned / "report.json"
    target.write_text(json.dumps(graded(planned)))
    result = call("verify", target, "--data", planned)
    assert result.exit_code == 0, result.stdout + result.stderr
