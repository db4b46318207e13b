"""The page on sources: every source has its section, and every command there runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from falsify_adapters.adapters.sources import SOURCES
from tests.adapters import test_choices, test_sources
from tests.adapters.test_falsify_eval import write_bench
from tests.cli_runs import ROOT, call

PAGE = (ROOT / "docs" / "sources.md").read_text("utf-8")
COMMANDS = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]


def write_everything(folder: Path) -> None:
    """Write all the files that the commands name."""
    results, qrels = test_sources.pyterrier_frames()
    lines = [f"{r.qid} 0 {r.docno} {r.label}\n" for r in qrels.itertuples()]
    (folder / "qrels.trec").write_text("".join(lines))
    lines = [f"{r.qid} Q0 {r.docno} {r.rank} {r.score} x\n" for r in results.itertuples()]
    (folder / "run.trec").write_text("".join(lines))
    test_sources.jsonl(
        folder / "predictions_cosine.jsonl", test_sources.sentence_transformers_rows("d")
    )
    (folder / "bm25.res.gz").write_bytes((folder / "run.trec").read_bytes())
    for name, data in zip(("run", "qrels"), test_sources.ranx_objects(), strict=True):
        data.to_dataframe().to_json(folder / f"{name}.json", orient="records")
    write_bench(folder, 0.7, 0.6, "skilled")
    test_sources.jsonl(folder / "samples.jsonl", test_sources.ragas_rows())
    test_sources.jsonl(folder / "retrieval.jsonl", test_sources.llamaindex_rows())
    test_sources.elasticsearch_files(folder)
    recommended, held_out = test_sources.recommendations()
    recommended.to_csv(folder / "top_k.csv", index=False)
    held_out.to_csv(folder / "held_out.csv", index=False)
    labels = test_choices.BALANCED
    scores = test_choices.knows(labels, 0.6)
    test_choices.save(folder / "predictions.jsonl", test_choices.olmes(scores, labels))


def lay_down_nfcorpus(irds_home: Path) -> None:
    """Lay judgements where ir_datasets keeps those of the data set that the page names."""
    kept = irds_home / "beir" / "nfcorpus" / "test.qrels"
    kept.parent.mkdir(parents=True, exist_ok=True)
    _, qrels = test_sources.pyterrier_frames()
    lines = [f"{r.qid}\t{r.docno}\t{r.label}\n" for r in qrels.itertuples()]
    kept.write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_runs(
    command: str, irds_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_everything(tmp_path)
    lay_down_nfcorpus(irds_home)
    if "lm-eval" in command:  # the same name as RAGAS' samples
        labels = test_choices.BALANCED
        rows = test_choices.harness(test_choices.knows(labels, 0.6), labels)
        test_choices.save(tmp_path / "samples.jsonl", rows)
    monkeypatch.chdir(tmp_path)
    program, *arguments = shlex.split(command)
    assert program == "falsify-ir"
    result = call("ir", *arguments, "--n-trials", "200")
    assert result.exit_code in (0, 1, 3), result.stderr


def test_every_section_says_what_to_save_and_what_to_run() -> None:
    for section in PAGE.split("\n## ")[1:-1]:
        name, _, text = section.partition("\n")
        assert "\nSave: " in text, name
        assert text.count("```sh") >= 1, name
        # and what the answer means: something stands below the command
        assert len(text.rpartition("```\n")[2].split()) > 10, name


def test_the_lines_of_python_on_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_everything(tmp_path)
    monkeypatch.chdir(tmp_path)
    first = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]
    exec(compile(first, "docs/sources.md", "exec"), {})


def test_every_source_has_a_command() -> None:
    named = re.findall(r"--from ([\w-]+)", "\n".join(COMMANDS))
    assert sorted(named) == sorted(SOURCES)
