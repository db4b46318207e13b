"""The MCP server through the official client, over standard input and output."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.from_thread import start_blocking_portal
from jsonschema import Draft202012Validator

from falsify_adapters import Evaluation, GateConfig, audit_benchmark, load_beir, run_gate
from falsify_adapters.certificate import Certifier
from falsify_adapters.errors import FalsifyError, InputError, MissingExtraError, UsageError
from falsify_adapters.mcp_server.limits import MIB, Limits
from falsify_adapters.mcp_server.server import request_of, run_child
from falsify_adapters.mcp_server.tools import INPUTS, OUTPUTS
from falsify_adapters.mcp_server.work import WORK
from falsify_adapters.report.outcome import SCHEMA
from falsify_adapters.report.schema import schema_text
from tests.cli_runs import ROOT, call, launcher, report, write_qrels, write_run

mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")
stdio_client = pytest.importorskip("mcp.client.stdio").stdio_client

N = 110
QRELS = {f"q{i:03}": {f"d{i:03}": 1} for i in range(N)}
RUN = {f"q{i:03}": {f"d{(i + j) % N:03}": 1.0 / (1 + j) for j in range(3)} for i in range(N)}
FAST = {"n_boot": 160, "n_trials": 160}
SMALL = {"run": RUN, "qrels": QRELS, "corpus_size": 1000, **FAST}
#: A call that takes minutes.
SLOW = {**SMALL, "n_boot": 1_000_000, "n_trials": 1_000_000}

Call = Callable[..., Any]


@contextmanager
def connected(*arguments: str | Path) -> Iterator[Call]:
    """Start the server and yield a function that does what a method of the client does."""
    command, *rest = launcher("main", "mcp", *arguments)
    server = mcp.StdioServerParameters(
        command=command, args=rest, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}
    )
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(mcp.Client(stdio_client(server))) as client,
    ):
        yield lambda method, *given: portal.call(getattr(client, method), *given)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mcp") / "root"
    write_qrels(folder / "qrels.trec", N)
    write_run(folder / "runs" / "good.trec", N)
    blind = write_run(folder / "runs" / "blind.trec", N, "blind").read_bytes()
    (folder / "runs" / "blind.trec.gz").write_bytes(gzip.compress(blind))
    write_qrels(folder.parent / "outside.trec", N)
    (folder / "large.trec").write_bytes(b"q 0 d 1\n" * (MIB // 8 + 1))
    return folder


@pytest.fixture(scope="module")
def tool(folder: Path) -> Iterator[Call]:
    with connected("--root", folder, "--max-mb", "1") as method:
        yield lambda name, **arguments: method("call_tool", name, arguments)


def refusal(result: Any) -> str:
    """Return the text of a refusal, which is one and holds no traceback."""
    assert result.is_error
    assert result.structured_content is None
    (content,) = result.content
    assert "Traceback" not in content.text
    assert "internal error" not in content.text
    return content.text


def child_that(does: str) -> tuple[str, ...]:
    """Return the command of a child whose work on audits is an expression."""
    code = "import falsify_adapters.mcp_server.work as w\n"
    code += f"w.WORK['audit_benchmark'] = lambda *_: {does}\n"
    code += "from falsify_adapters.mcp_server.child import main; main()"
    return (sys.executable, "-c", code)


def here(name: str, root: Path | None = None, **arguments: Any) -> tuple[str, Any]:
    """Do a call's work in this process, checked like any other: a tenth of the time."""
    call_ = json.loads(request_of(name, arguments, None if root is None else str(root), Limits()))
    return WORK[name](call_["arguments"], call_["root"], Limits())


def graded(result: Any) -> dict[str, Any]:
    """Return the only report of an answer that fits the schema of reports."""
    assert not result.is_error, result.content[0].text
    Draft202012Validator(json.loads(schema_text())).validate(result.structured_content)
    (one,) = result.structured_content["reports"]
    return one


# --- what an agent sees --------------------------------------------------------------------------


def test_the_tools_are_listed_with_schemas_and_are_harmless() -> None:
    with connected() as method:
        tools = method("list_tools").tools
    assert [tool.name for tool in tools] == list(WORK) == list(INPUTS) == list(OUTPUTS)
    for tool in tools:
        for schema in (tool.input_schema, tool.output_schema):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
        assert all(p.get("description") for p in tool.input_schema["properties"].values())
        assert tool.annotations.read_only_hint
        assert "Call it" in tool.description
    assert all(word in tools[0].description for word in ("PASS", "FAIL", "UNDER-NS", "leaked"))


def test_rows_and_dicts_give_what_the_library_gives(tool: Call) -> None:
    rows = [
        {"query_id": query, "doc_id": doc, "score": score}
        for query, docs in RUN.items()
        for doc, score in docs.items()
    ]
    judged = [{"query_id": f"q{i:03}", "doc_id": f"d{i:03}", "relevance": 1} for i in range(N)]
    first = tool("grade_retrieval", **SMALL, seed=3, tau=0.1)
    again = tool("grade_retrieval", **{**SMALL, "run": rows, "qrels": judged}, seed=3, tau=0.1)
    evaluation = Evaluation.create(RUN, QRELS, corpus_size=1000)
    settings = {"seed": 3, "tau": 0.1, **FAST}
    ours = run_gate(evaluation, "nDCG@10", GateConfig(**settings)).to_dict()
    assert graded(first) == graded(again) == ours
    assert ours["verdict"] == "PASS"
    assert "| run |" in first.content[0].text


def test_files_give_what_the_command_gives(tool: Call, folder: Path) -> None:
    options = ("--corpus-size", "1000", "--n-boot", "160", "--n-trials", "160")
    for name, given in (("good.trec", {}), ("blind.trec.gz", {"measure": ["RR@10"]})):
        measures = given.get("measure", [])
        run = folder / "runs" / name
        document = report("ir", folder / "qrels.trec", run, *measures, *options)
        names = {"system": document["reports"][0]["system"], "benchmark": "qrels"}
        found = tool(
            "grade_retrieval",
            run=f"runs/{name}",
            qrels=str(folder / "qrels.trec"),
            corpus_size=1000,
            **names,
            **FAST,
            **given,
        )
        assert graded(found) == document["reports"][0]
        assert found.structured_content["environment"] == document["environment"]


def test_the_text_of_a_file_is_read_like_the_file(tool: Call, folder: Path) -> None:
    texts = {
        "run": (folder / "runs" / "good.trec").read_text(),
        "qrels": json.dumps(QRELS),
    }
    one = graded(tool("grade_retrieval", **{**SMALL, **texts}))
    assert (one["system"], one["provenance"]["run"]["format"]) == ("run", "trec")
    assert one["provenance"]["run"]["name"] == "run"
    assert one["verdict"] == "PASS"


def test_several_measures_give_a_report_each_and_warnings_stand_in_the_text() -> None:
    given = {**SMALL, "measure": ["nDCG@10", "R@1", "ndcg@10"]}
    del given["corpus_size"]
    text, document = here("grade_retrieval", **given)
    assert [one["measure"] for one in document["reports"]] == ["nDCG@10", "R@1"]
    assert "W-CORPUS-ESTIMATED" in text


def test_distances_rank_from_the_smallest() -> None:
    far = {query: {doc: -score for doc, score in docs.items()} for query, docs in RUN.items()}
    for run in (far, json.dumps(far)):
        given = {**SMALL, "run": run, "score_order": "ascending"}
        (up,) = here("grade_retrieval", **given)[1]["reports"]
        (down,) = here("grade_retrieval", **SMALL)[1]["reports"]
        assert {**up, "provenance": None} == {**down, "provenance": None}


def test_a_benchmark_is_audited_as_by_the_library(tool: Call, folder: Path) -> None:
    answer = tool("audit_benchmark", qrels=QRELS, measure="R@10", held_out=True, benchmark="mine")
    ours = audit_benchmark(QRELS, "R@10", name="mine", held_out=True)
    assert graded(answer) == ours.to_dict()
    from_file = graded(tool("audit_benchmark", qrels="qrels.trec"))
    (command,) = report("audit", folder / "qrels.trec")["reports"]
    same = ("ceiling", "findings", "measure", "warnings")
    assert {key: from_file[key] for key in same} == {key: command[key] for key in same}
    assert "the ceiling is what one ranking scores" in answer.content[0].text


# --- explanations --------------------------------------------------------------------------------


def test_an_answer_is_explained_in_the_words_of_the_reports(tool: Call) -> None:
    document = tool("grade_retrieval", **SMALL).structured_content
    whole = tool("explain_report", report=document)
    for given in (document["reports"][0], json.dumps(document)):
        assert here("explain_report", report=given)[1] == whole.structured_content
    (one,) = whole.structured_content["reports"]
    assert one["meaning"] == "None of the four nulls explains this score."
    assert one["reason"].startswith("Clears tau = 0.05 against all four nulls")
    assert [null["null"] for null in one["nulls"]] == ["A", "B", "C", "D"]
    assert one["nulls"][0]["delta"] == document["reports"][0]["nulls"]["A"]["delta"]
    (warning,) = (w for w in one["warnings"] if w["code"] == "W-COINCIDING-NULLS")
    assert warning["what_to_do"] == "Read the nulls that coincide as one test, not as several."
    assert "A  the right answers, shuffled among the queries" in whole.content[0].text
    assert warning["what_to_do"] in whole.content[0].text


def test_a_file_with_every_kind_of_report_is_explained(folder: Path) -> None:
    write_run(folder / "runs" / "base.trec", N, "blind")
    document = report(
        *("ir", folder / "qrels.trec", folder / "runs" / "good.trec", folder / "nowhere.trec"),
        *("--baseline", folder / "runs" / "base.trec", "--by-grade", "--n-boot", "160"),
        *("--alt-qrels", folder / "qrels.trec", "--n-trials", "160", "--controls"),
    )
    (folder / "report.json").write_text(json.dumps(document))
    kinds = {one["kind"] for one in document["reports"]}
    assert kinds == {"gate", "comparison", "grades", "judgements"}
    text, data = here("explain_report", folder, report="report.json")
    Draft202012Validator(OUTPUTS["explain_report"]).validate(data)
    found = document["reports"][: Limits.reports]
    for name in ("kind", "role", "system"):
        assert [one[name] for one in data["reports"]] == [one.get(name) for one in found]
    assert {one["kind"] for one in found} == kinds
    (comparison,) = (one for one in found if one["kind"] == "comparison")
    assert comparison["reason"] in text  # a system keeps its name: no capital
    (refused,) = data["refused"]
    assert "does not exist" in refused
    assert refused in text


def test_audits_and_certificates_are_explained() -> None:
    audit = audit_benchmark(QRELS, "R@10").to_dict()
    certificate = Certifier(QRELS, corpus_size=1000).certify(0.6).to_dict()
    document = {"schema": SCHEMA, "reports": [audit, certificate], "errors": []}
    text, data = here("explain_report", report=document)
    assert [one["kind"] for one in data["reports"]] == ["audit", "certificate"]
    assert "What R@10 gives away for free" in text
    assert data["reports"][1]["reason"] == certificate["reason"]
    assert certificate["reason"][1:] in text


def test_a_long_report_is_cut_and_says_so() -> None:
    one = here("grade_retrieval", **SMALL)[1]["reports"][0]
    document = {"schema": SCHEMA, "reports": [one] * 50, "errors": []}
    text, data = here("explain_report", report=document)
    assert len(data["reports"]) == Limits.reports
    assert data["left_out"] == 50 - Limits.reports
    assert "30 more reports are left out here." in text


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "this is no report of falsify-adapters"),
        ({"schema": "falsify-adapters/report/2", "reports": []}, "this is no report"),
        ({"schema": SCHEMA}, "lacks its lists"),
        ({"kind": "gate"}, "report 1 does not fit the JSON Schema"),
        ({"kind": "pickle", "role": "run"}, "report 1 does not fit the JSON Schema"),
        ("[" * 100_000, "the report is not JSON"),
        ('{"schema": ', "the report is not JSON"),
        ("[1]", "this is no report"),
        ([1], "this is no report"),
        (
            {"schema": SCHEMA, "reports": [], "errors": [{"input": 1}]},
            "its list of errors does not fit",
        ),
    ],
)
def test_what_is_no_report_is_refused(given: Any, says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        here("explain_report", report=given)


def test_a_report_with_an_unknown_warning_is_refused() -> None:
    one = here("grade_retrieval", **SMALL)[1]["reports"][0]
    one["warnings"] = [{"code": "W-FROM-THE-FUTURE", "message": "x"}]
    with pytest.raises(InputError, match="W-FROM-THE-FUTURE"):
        here("explain_report", report=one)


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"run": []}, "run is empty"),
        ({"run": {}}, "run is empty"),
        ({"run": [1, 2]}, "row 1 of the run lacks query_id, doc_id, score"),
        ({"run": [{"query_id": "q1", "doc_id": "d1"}]}, "row 1 of the run lacks score"),
        ({"run": {"q1": ["d1"]}}, "run is not a dict of dict"),
        ({"run": {"q001": {"d1": "high"}}}, "not a number"),
        ({"run": {"q001": {"d1": True}}}, "not a number"),
        ({"run": {"q001": {"": 1}}}, "empty doc_id"),
        ({"run": {"other": {"d1": 1}}}, "no query"),
        ({"run": [{"query_id": 0.5, "doc_id": "d1", "score": 1}]}, "query_id is not text"),
        ({"run": [{"query_id": ["q"], "doc_id": "d1", "score": 1}]}, "query_id is not text"),
        ({"qrels": [{"query_id": "q", "doc_id": {}, "relevance": 1}]}, "doc_id is not text"),
        ({"run": 7}, "run has a form that is not understood"),
        ({"qrels": {"q001": {"d1": 0}}}, "no query has a relevant document"),
        ({"qrels": {"q001": {"d1": 0.5}}}, "not a whole number"),
        ({"qrels": None}, "qrels has a form that is not understood"),
        ({"measure": "Bpref"}, "Bpref needs judged non-relevant documents"),
        ({"measure": "__import__('os').system('true')"}, "is not a measure"),
        ({"measure": []}, "measure: [] "),
        ({"measure": ["R@1"] * 11}, "measure takes 1 to 10 measures"),
        ({"tau": 2}, "tau: 2 is greater than the maximum of 1"),
        ({"tau": "0.1"}, "tau: '0.1' is not of type 'number'"),
        ({"seed": -1}, "seed: -1 is less than the minimum of 0"),
        ({"n_boot": 10**9}, "n_boot is too large"),
        ({"n_trials": 1}, "n_trials must be at least"),
        ({"corpus_size": 2}, "more documents than the corpus holds"),
        ({"decision": "maybe"}, "decision: 'maybe' is not one of"),
        ({"taux": 0.1}, "grade_retrieval has no argument 'taux'"),
    ],
)
def test_bad_input_is_refused_in_words(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(FalsifyError, match=re.escape(says)):
        here("grade_retrieval", **{**SMALL, **changes})


def test_an_agent_reads_why_its_input_was_refused(tool: Call) -> None:
    assert refusal(tool("grade_retrieval")) == "grade_retrieval needs run and qrels"
    assert "there is no such tool" in refusal(tool("delete_everything"))
    assert "tau: 2 is greater" in refusal(tool("grade_retrieval", **{**SMALL, "tau": 2}))
    said = refusal(tool("grade_retrieval", **{**SMALL, "run": [{"query_id": "q1"}]}))
    assert said.startswith("row 1 of the run lacks doc_id, score; found: ")
    said = refusal(tool("grade_retrieval", **{**SMALL, "measure": "Bpref"}))
    assert said.startswith("Bpref needs judged non-relevant documents")


def test_no_path_leads_out_of_the_folder(tool: Call, folder: Path) -> None:
    """Which paths do not is the matter of test_files."""
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to(folder.parent / "outside.trec")
    for path in (f"{folder.parent}/outside.trec", "link"):
        said = refusal(tool("audit_benchmark", qrels=path))
        assert "leads out of the server's folder" in said
        assert str(folder) not in said.replace(path, "")
    assert "no plain file" in refusal(tool("audit_benchmark", qrels="pipe"))
    given = {**SMALL, "run": "../outside.trec"}
    assert "leads out" in refusal(tool("grade_retrieval", **given))
    assert "leads out" in refusal(tool("explain_report", report="../outside.trec"))


def test_without_a_folder_no_file_is_read(folder: Path) -> None:
    with connected() as method:
        given = {**SMALL, "qrels": str(folder / "qrels.trec")}
        said = refusal(method("call_tool", "grade_retrieval", given))
        assert "this server reads no files" in said


def test_a_file_and_arguments_that_are_too_large_are_refused(tool: Call) -> None:
    assert "'large.trec' is too large" in refusal(tool("audit_benchmark", qrels="large.trec"))
    padded = {**QRELS, "q" * (9 * MIB): {"d": 1}}
    said = refusal(tool("audit_benchmark", qrels=padded))
    assert "the arguments are too large (limit 8,388,608 bytes of JSON)" in said


def test_what_a_child_is_told_is_checked_before() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InputError, match="cannot be read"):
        request_of("audit_benchmark", {"qrels": deep}, None, Limits())
    with pytest.raises(InputError, match="too large"):
        request_of("audit_benchmark", {"qrels": QRELS}, None, Limits(inline_bytes=1000))


# --- time, memory, many calls --------------------------------------------------------------------


def test_a_call_that_takes_too_long_is_stopped_and_the_server_goes_on() -> None:
    with connected("--timeout", "0.2") as method:
        for _ in range(2):
            said = refusal(method("call_tool", "grade_retrieval", SLOW))
            assert "longer than 0.2 seconds and was stopped" in said
        assert len(method("list_tools").tools) == 3


def test_a_process_that_is_stopped_is_gone_with_all_that_it_started(tmp_path: Path) -> None:
    script = (
        "import os, subprocess, sys, time\n"
        "inner = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'draft')!r}, 'w').write(f'{{os.getpid()}} {{inner.pid}}')\n"
        f"os.rename({str(tmp_path / 'draft')!r}, {str(tmp_path / 'pids')!r})\n"
        "time.sleep(600)\n"
    )

    async def cancel_when_both_run() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run_child, b"{}", 600, (sys.executable, "-c", script))
            while not (tmp_path / "pids").exists():
                await anyio.sleep(0.02)
            tasks.cancel_scope.cancel()

    anyio.run(cancel_when_both_run)
    left = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    for _ in range(3000):  # the system ends them when it comes to it
        left = [pid for pid in left if _runs(pid)]
        if not left:
            break
        time.sleep(0.02)
    assert not left


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"  # what is dead and not yet collected


def test_a_process_without_an_answer_is_a_refusal() -> None:
    for code in ("raise SystemExit(3)", "print('no JSON')", "import os; os.kill(os.getpid(), 9)"):
        with pytest.raises(InputError, match="ended without an answer"):
            anyio.run(run_child, b"x" * MIB, 60, (sys.executable, "-c", code))
    with pytest.raises(UsageError, match=r"longer than 0\.1 seconds"):
        anyio.run(run_child, b"", 0.1, (sys.executable, "-c", "import time; time.sleep(600)"))


def test_a_call_that_needs_too_much_memory_is_refused() -> None:
    request = request_of("audit_benchmark", {"qrels": QRELS}, None, Limits())
    answer = anyio.run(run_child, request, 120, child_that("bytearray(8 << 30)"))
    assert answer == {"error": "the call needs too much memory (limit 4,294,967,296 bytes)"}


def test_calls_at_the_same_time_do_not_mix() -> None:
    command, *rest = launcher("main", "mcp")
    server = mcp.StdioServerParameters(
        command=command, args=rest, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}
    )
    found: dict[int, Any] = {}

    async def all_at_once() -> None:
        async with mcp.Client(stdio_client(server)) as client, anyio.create_task_group() as tasks:

            async def one(seed: int) -> None:
                found[seed] = await client.call_tool("grade_retrieval", {**SMALL, "seed": seed})

            for seed in range(3):
                tasks.start_soon(one, seed)

    anyio.run(all_at_once)
    for seed, answer in found.items():
        assert graded(answer)["settings"]["seed"] == seed
        assert [graded(answer)] == here("grade_retrieval", **SMALL, seed=seed)[1]["reports"]


# --- the process ---------------------------------------------------------------------------------


def test_nothing_but_the_protocol_is_on_standard_output() -> None:
    version = {"protocolVersion": "2025-06-18", "capabilities": {}}
    client = {"clientInfo": {"name": "test", "version": "0"}}
    messages = [
        {"id": 1, "method": "initialize", "params": version | client},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "grade_retrieval"}},
        {
            "id": 3,
            "method": "tools/call",
            "params": {"name": "audit_benchmark", "arguments": {"qrels": QRELS}},
        },
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0"} | message) + "\n" for message in messages)
    server = subprocess.Popen(
        launcher("main", "mcp"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(lines + "not JSON\n")
    server.stdin.flush()
    answers = [json.loads(server.stdout.readline()) for _ in range(3)]
    rest, said = server.communicate()
    assert {answer["id"] for answer in answers if "id" in answer} >= {1}
    assert all(answer["jsonrpc"] == "2.0" for answer in answers)
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest.splitlines())
    assert "Traceback" not in said
    assert server.returncode == 0


def test_a_child_answers_with_one_object_whatever_is_printed() -> None:
    command = child_that("(print('noise'), 'text')[1:] + ({},)")
    request = request_of("audit_benchmark", {"qrels": QRELS}, None, Limits())
    done = subprocess.run(command, input=request, capture_output=True, check=True, cwd=ROOT)
    assert json.loads(done.stdout) == {"text": "text", "data": {}}
    assert done.stderr == b"noise\n"


def test_a_child_does_not_import_from_the_folder_it_runs_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pandas.py").write_text("raise SystemExit('taken from the folder')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    request = request_of("audit_benchmark", {"qrels": QRELS}, None, Limits())
    assert "text" in anyio.run(run_child, request, 120)


def test_an_internal_error_is_a_refusal_without_traceback() -> None:
    request = request_of("audit_benchmark", {"qrels": QRELS}, None, Limits())
    answer = anyio.run(run_child, request, 120, child_that("1 / 0"))
    assert answer["error"].startswith("internal error: ZeroDivisionError: division by zero")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--root", "nowhere"), "--root nowhere is no folder"),
        (("--timeout", "0"), "--timeout must lie above 0"),
        (("--timeout", "nan"), "--timeout must lie above 0"),
        (("--max-mb", "0"), "--max-mb must be 1 to 1024"),
    ],
)
def test_the_command_checks_its_options(arguments: tuple[str, ...], says: str) -> None:
    result = call("mcp", *arguments)
    assert result.exit_code == 2
    assert says in result.stderr


@pytest.mark.parametrize("found", [None, "1.30.0"])
def test_a_missing_extra_is_named(found: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import PackageNotFoundError

    from falsify_adapters.mcp_server import server

    def version(name: str) -> str:
        if found is None:
            raise PackageNotFoundError(name)
        return found

    monkeypatch.setattr(server, "version", version)
    with pytest.raises(MissingExtraError, match=r"falsify-adapters\[mcp\]"):
        server.serve(None, Limits())
    result = call("mcp")
    assert result.exit_code == 2
    assert "falsify-adapters[mcp]" in result.stderr


def test_the_page_about_it_says_what_is_there(folder: Path) -> None:
    page = (ROOT / "docs" / "mcp.md").read_text("utf-8")
    for name in INPUTS:
        assert f"| `{name}` |" in page
    limits = Limits()
    assert f"{limits.seconds:g} seconds" in page
    assert f"{limits.inline_bytes // MIB} MiB of JSON" in page
    assert f"{limits.file_bytes // MIB} MiB as it lies on disk" in page
    assert f"{limits.memory_bytes // MIB >> 10} GiB of address space" in page
    assert f"| {limits.measures}; {limits.reports}, the others are counted |" in page
    config, given = (json.loads(text) for text in re.findall(r"```json\n(.*?)```", page, re.DOTALL))
    assert config["mcpServers"]["falsify"]["args"][:2] == ["mcp", "--root"]
    sample = load_beir("sample", offline=True)
    frame = sample.run.astype({"query_id": str, "doc_id": str})
    lines = [f"{r.query_id} Q0 {r.doc_id} 1 {r.score!r} bm25\n" for r in frame.itertuples()]
    judged = sample.qrels.astype({"query_id": str, "doc_id": str})
    rows = [f"{r.query_id} 0 {r.doc_id} {r.relevance}\n" for r in judged.itertuples()]
    (folder / "runs" / "bm25.trec").write_text("".join(lines))
    (folder / "sample.trec").write_text("".join(rows))
    text, _ = here("grade_retrieval", folder, **given | {"qrels": "sample.trec"})
    (shown,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    assert text.startswith(shown)
