"""The table of BEIR's data sets says what BEIR's README says."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from falsify_adapters.data.table import beir_table, close_names, find_entry


def test_every_figure_is_the_one_in_the_source(data_dir: Path) -> None:
    source = data_dir / "beir_datasets.csv"
    if not source.is_file():
        pytest.skip(f"{source.name} is not among the real data")
    with source.open(newline="") as file:
        rows = {row["beir_name"]: row for row in csv.DictReader(file)}
    assert list(rows) == [entry.name for entry in beir_table()]
    for entry in beir_table():
        row = rows[entry.name]
        assert (entry.md5 or "") == row["md5"]
        assert " ".join(entry.splits) == row["splits"]
        assert (entry.mteb_task or "") == row["mteb_task"]
        assert entry.judgements_per_query == float(row["judgments_per_query"])
        assert entry.queries == int(row["queries"].removesuffix(" (dev)"))
        assert entry.default_split == ("dev" if row["queries"].endswith("(dev)") else "test")
        scale = {"M": 1_000_000, "K": 1_000}.get(row["documents"][-1])
        assert entry.approximate is (scale is not None)
        documents = row["documents"] if scale is None else float(row["documents"][:-1]) * scale
        assert entry.documents == round(float(documents))


def test_only_four_data_sets_have_no_download() -> None:
    without = {entry.name for entry in beir_table() if entry.md5 is None}
    assert without == {"bioasq", "signal1m", "trec-news", "robust04"}


def test_the_default_split_is_among_the_splits() -> None:
    assert all(entry.default_split in entry.splits for entry in beir_table())


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("nfcorpus", "nfcorpus"),
        ("NFCorpus", "nfcorpus"),
        ("touche", "webis-touche2020"),
        ("webis-touche2020", "webis-touche2020"),
        ("Webis_Touche2020", "webis-touche2020"),
        ("Touche2020", "webis-touche2020"),
        ("climate-fever", "climate-fever"),
        ("climatefever", "climate-fever"),
        ("ClimateFEVER", "climate-fever"),
        ("trec_covid", "trec-covid"),
        ("MS MARCO", "msmarco"),
        ("dbpedia", "dbpedia-entity"),
        ("FiQA2018", "fiqa"),
        ("CQADupstackRetrieval", "cqadupstack"),
        ("QuoraRetrieval", "quora"),
        ("signal-1m", "signal1m"),
    ],
)
def test_names_are_understood_as_people_type_them(typed: str, name: str) -> None:
    entry = find_entry(typed)
    assert entry is not None
    assert entry.name == name


def test_no_two_data_sets_share_a_name() -> None:
    typed = [name for entry in beir_table() for name in (entry.name, *entry.aliases)]
    for entry in beir_table():
        for name in (entry.name, *entry.aliases):
            assert find_entry(name) is entry
    assert len(typed) == len(set(typed))


@pytest.mark.parametrize("typed", ["", "-", "mine", "nfcorpus2", "Touche2020Retrieval.v3"])
def test_other_names_mean_nothing(typed: str) -> None:
    assert find_entry(typed) is None


def test_a_misspelt_name_suggests_the_right_one() -> None:
    assert close_names("nfcorpsu") == ["nfcorpus"]
    assert close_names("qwertz") == []
