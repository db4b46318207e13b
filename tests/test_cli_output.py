"""What goes to which stream: pipes, terminals, encodings, files."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli_runs import ROOT, call, in_subprocess, launcher, write_qrels, write_run

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """QRELS and RUNs that give a PASS, a FAIL and a warning."""
    paths = [
        write_qrels(tmp_path / "qrels.trec", 120),
        write_run(tmp_path / "good.trec", 120),
        write_run(tmp_path / "blind.trec", 120, "blind"),
    ]
    return [*map(str, paths)]


def on_a_terminal(arguments: list[str], columns: int = 80, **environment: str) -> tuple[int, str]:
    """Run falsify-ir with all streams on one terminal; return its status and the screen."""
    leader, follower = pty.openpty()
    size = {"COLUMNS": str(columns), "LINES": "24"}
    process = subprocess.Popen(
        launcher("ir", *arguments),
        stdin=follower,
        stdout=follower,
        stderr=follower,
        cwd=ROOT,
        env={**os.environ, "TERM": "xterm-256color", **size, **environment},
    )
    os.close(follower)
    screen = b""
    while True:
        try:
            block = os.read(leader, 1 << 16)
        except OSError:  # the other side is closed
            break
        if not block:
            break
        screen += block
    os.close(leader)
    return process.wait(), screen.decode().replace("\r\n", "\n")


def test_colours_on_a_terminal_and_warnings_only_once(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    status, screen = on_a_terminal(arguments)
    assert status == 1
    assert "\x1b[1;31mFAIL" in screen
    assert screen.count("W-CORPUS-ESTIMATED") == 1


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colours_where_they_are_not_wanted(
    arguments: list[str], environment: dict[str, str]
) -> None:
    _, screen = on_a_terminal(arguments, **environment)
    assert "\x1b[" not in screen
    assert "FAIL" in screen


@pytest.mark.parametrize("columns", [80, 200])
def test_the_terminal_width_is_kept(arguments: list[str], columns: int) -> None:
    _, screen = on_a_terminal(arguments, columns)
    widths = [len(ANSI.sub("", line).rstrip()) for line in screen.splitlines()]
    assert max(widths) <= columns
    one_line_rows = re.search(r"^good .*PASS *$", ANSI.sub("", screen), re.MULTILINE)
    assert bool(one_line_rows) == (columns == 200)


def test_warnings_go_to_standard_error_with_their_codes(arguments: list[str]) -> None:
    done = in_subprocess("ir", *arguments)
    assert "falsify-ir: warning: W-CORPUS-ESTIMATED: " in done.stderr
    assert "W-CORPUS-ESTIMATED" in done.stdout
    assert "\x1b[" not in done.stdout + done.stderr


def test_json_to_standard_output_is_json_only(arguments: list[str]) -> None:
    done = in_subprocess("ir", *arguments, "--json", "-")
    document = json.loads(done.stdout)
    assert [report["verdict"] for report in document["reports"]] == ["PASS", "FAIL"]
    assert done.returncode == 1


def test_json_to_a_file_leaves_the_table(arguments: list[str], tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    done = in_subprocess("ir", *arguments, "--json", target)
    assert "good: PASS." in done.stdout
    assert len(json.loads(target.read_bytes())["reports"]) == 2


def test_markdown_to_standard_output(arguments: list[str]) -> None:
    done = in_subprocess("ir", *arguments, "--markdown", "-")
    assert done.stdout.startswith("**qrels · nDCG@10**")
    assert "How to read it" not in done.stdout


def test_quiet_prints_nothing(arguments: list[str]) -> None:
    done = in_subprocess("ir", *arguments, "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")


def test_same_seed_same_bytes(arguments: list[str]) -> None:
    first, second = (call("ir", *arguments, "--json", "-").stdout for _ in range(2))
    assert first == second
    assert call("ir", *arguments, "--json", "-", "--seed", "1").stdout != first


def test_no_path_of_this_machine_stands_in_a_report(arguments: list[str], tmp_path: Path) -> None:
    assert str(tmp_path) not in call("ir", *arguments, "--json", "-").stdout


@pytest.mark.parametrize("form", [[], ["--json", "-"], ["--markdown", "-"], ["--help"]])
def test_a_reader_that_leaves_early_is_no_error(arguments: list[str], form: list[str]) -> None:
    process = subprocess.Popen(
        launcher("ir", *arguments, *form),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate(timeout=120)
    assert b"Traceback" not in errors
    assert b"BrokenPipe" not in errors
    assert process.returncode in ((0, 1) if form == ["--help"] else (1,))


def test_ctrl_c_ends_it_without_a_traceback(arguments: list[str]) -> None:
    process = subprocess.Popen(
        launcher("ir", *arguments, "--n-trials", "2000000", "--json", "-"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stderr is not None
    # two million trials take minutes: the interrupt meets them, or the imports before them
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert output == b""
    assert b"falsify-ir: interrupted" in errors
    assert b"Traceback" not in errors


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_stream_that_is_not_unicode_gets_ascii(arguments: list[str], encoding: str) -> None:
    done = in_subprocess("ir", *arguments, env={**os.environ, "PYTHONIOENCODING": encoding})
    assert done.returncode == 1
    assert done.stdout.isascii()
    forced = in_subprocess("ir", *arguments, "--ascii")
    assert forced.stdout == done.stdout


def test_a_file_name_that_is_not_utf8_is_no_trouble(arguments: list[str]) -> None:
    strange = Path(os.fsdecode(os.fsencode(arguments[1]).replace(b"good", b"g\xffod")))
    try:
        strange.write_bytes(Path(arguments[1]).read_bytes())
    except OSError:
        pytest.skip("this file system has no such names")
    for form in ([], ["--json", "-"], ["--markdown", "-"]):
        done = in_subprocess("ir", arguments[0], strange, *form)
        assert done.returncode == 0, done.stderr
        assert "udcff" in done.stdout


def test_nothing_waits_for_input(arguments: list[str]) -> None:
    process = subprocess.Popen(
        launcher("ir", *arguments, "-q"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], 120)
    assert ready
    process.communicate()
    assert process.returncode == 1


def test_a_run_comes_from_standard_input(arguments: list[str]) -> None:
    with Path(arguments[2]).open() as run:
        done = in_subprocess("ir", arguments[0], "-", "--json", "-", stdin=run)
    (report,) = json.loads(done.stdout)["reports"]
    assert (report["system"], report["verdict"]) == ("stdin", "FAIL")


def test_one_of_anything_is_not_spoken_of_as_several(tmp_path: Path) -> None:
    (tmp_path / "q.trec").write_text("q1 0 d1 1\n")
    (tmp_path / "r.trec").write_text("q1 Q0 d1 1 2 x\nq2 Q0 d1 1 2 x\n")
    page, table = tmp_path / "r.html", tmp_path / "r.md"
    arguments = [tmp_path / "q.trec", tmp_path / "r.trec", "P@1", "--html", page, "--markdown"]
    result = call("ir", *arguments, table, "--no-playground", "--by-grade")
    assert result.exit_code == 3, result.stderr
    said = "\n".join([result.stdout, result.stderr, page.read_text(), table.read_text()])
    several = r"(?<![\d.,])1 (?:judged |pooled |relevant )?(?:queries|documents|runs|trials|rows)\b"
    assert re.findall(rf"\S* \S* {several}[^<\n]*", said) == []
    assert "1 of 2 queries of the run has no judgements and is ignored" in " ".join(said.split())
