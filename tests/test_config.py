"""Settings files: what is read, what is refused, and that the examples run."""

from __future__ import annotations

from pathlib import Path

import pytest

from falsify_adapters.cli.beir import main
from falsify_adapters.cli.options import option_names
from falsify_adapters.config import read_config
from falsify_adapters.errors import UsageError
from tests.cli_runs import runner

EXAMPLES = sorted((Path(__file__).parents[1] / "configs").glob("*.toml"))
KEYS = {"dataset", "tau", "n_boot", "quiet", "measure"}


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "gate.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return path


def test_values_come_as_they_stand(tmp_path: Path) -> None:
    path = write(tmp_path, 'dataset = ["a", "b"]\ntau = "auto"\nn_boot = 500\nquiet = true\n')
    expected = {"dataset": ["a", "b"], "tau": "auto", "n_boot": 500, "quiet": True}
    assert read_config(str(path), KEYS) == expected
    assert read_config(write(tmp_path, "# nothing\n"), KEYS) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n-boot = 1", r"gate\.toml: unknown key; found: n-boot; hint: did you mean n_boot\?"),
        ("Measure = 1", r"found: Measure; hint: did you mean measure\?"),
        ("zzz = 1", r"known keys are dataset, measure, n_boot, quiet, tau"),
        ("[gate]\ntau = 1", r"unknown key; found: gate"),
        ("tau = {a = 1}", r"tau has a value of a kind that no option takes.*tables are not used"),
        ("tau = 2020-01-01", r"tau has a value of a kind"),
        ('dataset = [["a"]]', r"dataset has a value of a kind"),
        ("tau 0.05", r"gate\.toml is not TOML.*line 1"),
        ("tau = 1\ntau = 2", r"gate\.toml is not TOML"),
        ("\udcff", r"gate\.toml is not UTF-8"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_config(write(tmp_path, text), KEYS)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"absent\.toml cannot be read.*No such file"):
        read_config(tmp_path / "absent.toml", KEYS)
    with pytest.raises(UsageError, match="cannot be read"):
        read_config(tmp_path, KEYS)


def test_there_is_an_example_for_each_kind_of_use() -> None:
    names = [path.stem for path in EXAMPLES]
    assert names == ["ci-gate", "pre-publication", "single-gold", "small-benchmark"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_run(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read_config(path, option_names(main))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fast = ["--n-boot", "200", "--n-trials", "200"]
    result = runner().invoke(main, ["--config", str(path), *fast])
    assert result.exit_code in (0, 1, 3), result.output
    assert "BM25" in result.output or "bm25" in result.output
    for key in ("json", "markdown"):
        assert (key in settings) == (tmp_path / settings.get(key, "none")).is_file()
