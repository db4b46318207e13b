"""What the tools do: the library's own calls, and the report's own words.

Each function takes the arguments of a call, the folder that files may come from, and the limits;
it returns a text and the structured data beside it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import pandas as pd

from falsify_adapters import readers
from falsify_adapters.audit import audit_benchmark
from falsify_adapters.errors import FalsifyError, InputError, UsageError
from falsify_adapters.evaluation import Evaluation
from falsify_adapters.frames import QRELS_COLUMNS, RUN_COLUMNS, as_qrels, as_run
from falsify_adapters.gate import run_gate
from falsify_adapters.mcp_server.files import Files
from falsify_adapters.mcp_server.limits import Limits
from falsify_adapters.mcp_server.tools import GATE_SETTINGS, REPORT_SCHEMA
from falsify_adapters.measures import parse_measure
from falsify_adapters.notes import REMEDIES, Note
from falsify_adapters.report import parsed
from falsify_adapters.report.audits import LEGEND as AUDIT_LEGEND
from falsify_adapters.report.groups import by_benchmark, warnings_of
from falsify_adapters.report.html import LEADS, MEANINGS
from falsify_adapters.report.jsonfile import to_json
from falsify_adapters.report.markdown import escape, to_markdown
from falsify_adapters.report.outcome import SCHEMA, Outcome
from falsify_adapters.report.terminal import remarks, to_terminal
from falsify_adapters.report.text import printable, sentence
from falsify_adapters.results import GateConfig, GateReport

Answer = tuple[str, Any]
#: Columns of the table in an explanation.
WIDTH = 100


def grade_retrieval(arguments: Mapping[str, Any], root: str | None, limits: Limits) -> Answer:
    """Grade one run by each measure; the answer is the report, as Markdown and as its JSON."""
    files = Files(root, limits.file_bytes)
    measures = _measures(arguments, limits)
    config = GateConfig(**{name: arguments[name] for name in GATE_SETTINGS if name in arguments})
    qrels, run = _qrels(arguments["qrels"], files), _run(arguments, files)
    evaluation = Evaluation.create(
        run.frame,
        qrels.frame,
        corpus_size=arguments.get("corpus_size"),
        keep_self=arguments.get("keep_self", True),
        notes=(*run.notes, *qrels.notes),
        system=arguments.get("system") or run.name,
        benchmark=arguments.get("benchmark") or qrels.name,
        provenance=_provenance(qrels=qrels, run=run),
    )
    reports = [run_gate(evaluation, measure, config) for measure in measures]
    outcome = Outcome(list(reports))
    return to_markdown(outcome) + _warning_lines(reports), _document(outcome)


def audit(arguments: Mapping[str, Any], root: str | None, limits: Limits) -> Answer:
    """Audit qrels by each measure; the answer is the report, as Markdown and as its JSON."""
    qrels = _qrels(arguments["qrels"], Files(root, limits.file_bytes))
    audits = [
        audit_benchmark(
            qrels.frame,
            measure,
            name=arguments.get("benchmark") or qrels.name or "benchmark",
            held_out=arguments.get("held_out", False),
            seed=arguments.get("seed", 0),
            notes=qrels.notes,
            provenance=_provenance(qrels=qrels),
        )
        for measure in _measures(arguments, limits)
    ]
    outcome = Outcome(list(audits))
    notes = dict.fromkeys(note for one in audits for note in one.warnings)
    text = to_markdown(outcome) + "".join(_line(note) for note in notes)
    return f"{text}\n{escape(AUDIT_LEGEND)}\n", _document(outcome)


def explain_report(arguments: Mapping[str, Any], root: str | None, limits: Limits) -> Answer:
    """Say in plain words what a report found, and what can be done about it."""
    document = _report(arguments["report"], Files(root, limits.file_bytes))
    found = document["reports"]
    shown = [_checked(one, number) for number, one in enumerate(found[: limits.reports], 1)]
    gates = [parsed.gate_report(one) for one in shown if one["kind"] == "gate"]
    audits = [parsed.audit(one) for one in shown if one["kind"] == "audit"]
    text = to_terminal(Outcome([*gates, *audits]), width=WIDTH, ascii_only=True).strip()
    rest = [_about(one) for one in shown if one["kind"] not in ("gate", "audit")]
    rest += [f"refused: {_of_error(error)}" for error in document["errors"][: limits.reports]]
    if len(found) > len(shown):
        rest.append(f"{len(found) - len(shown)} more reports are left out here.")
    codes = [note.code for report in gates for note in report.warnings]
    codes += [note.code for report in audits for note in report.warnings]
    rest += [f"{code}: {REMEDIES[code]}" for code in dict.fromkeys(codes)]
    by_place = iter(gates)
    data = {
        "reports": [
            _gate_words(next(by_place)) if one["kind"] == "gate" else _other_words(one)
            for one in shown
        ],
        "refused": [_of_error(error) for error in document["errors"][: limits.reports]],
        "left_out": len(found) - len(shown),
    }
    return "\n".join(part for part in (text, *rest) if part) + "\n", data


#: Each tool's work.
WORK: dict[str, Callable[[Mapping[str, Any], str | None, Limits], Answer]] = {
    "grade_retrieval": grade_retrieval,
    "audit_benchmark": audit,
    "explain_report": explain_report,
}


@dataclass(frozen=True)
class _Input:
    """A run or qrels, and what is known of the file if they came from one."""

    frame: pd.DataFrame
    notes: tuple[Note, ...] = ()
    provenance: Mapping[str, Any] | None = None
    name: str | None = None


def _qrels(given: Any, files: Files) -> _Input:
    if isinstance(given, str):
        with _stream(given, files, "qrels") as stream:
            file = readers.read_qrels(stream)
        return _from_file(file, given)
    notes: list[Note] = []
    return _Input(as_qrels(_rows(given, QRELS_COLUMNS, "qrels"), notes=notes), tuple(notes))


def _run(arguments: Mapping[str, Any], files: Files) -> _Input:
    given, order = arguments["run"], arguments.get("score_order")
    if isinstance(given, str):
        with _stream(given, files, "run") as stream:
            file = readers.read_run(stream, score_order=order)
        return _from_file(file, given, "run")
    frame = as_run(_rows(given, RUN_COLUMNS, "run"))
    if order == "ascending":
        frame = as_run(frame.assign(score=-frame["score"]))
    return _Input(frame, name="run")


def _from_file(file: Any, given: str, name: str | None = None) -> _Input:
    if not _is_text(given):
        name = file.provenance["name"]
    return _Input(file.frame, file.notes, dict(file.provenance), name)


def _provenance(**inputs: _Input) -> dict[str, Any]:
    """Return where the inputs came from; the report itself adds the hashes of the frames."""
    return {name: one.provenance for name, one in inputs.items() if one.provenance is not None}


def _is_text(given: str) -> bool:
    """Say whether a string is a file's content and not its path."""
    return "\n" in given or given.lstrip().startswith(("{", "["))


class _Text(io.BytesIO):
    """A file's content that was given in a call."""

    def __init__(self, text: str, name: str) -> None:
        super().__init__(text.encode("utf-8", "surrogatepass"))
        self.name = name


def _stream(given: str, files: Files, name: str) -> BinaryIO:
    return _Text(given, name) if _is_text(given) else files.open(given)


def _rows(given: Any, columns: Sequence[str], name: str) -> Any:
    """Return rows as a frame; a dict of dict is taken as it is."""
    if not isinstance(given, list):
        return given
    values: dict[str, list[Any]] = {column: [] for column in columns}
    for number, row in enumerate(given, 1):
        missing = [c for c in columns if c not in row] if isinstance(row, dict) else list(columns)
        if missing:
            raise InputError(
                f"row {number} of the {name} lacks {', '.join(missing)}",
                found=json.dumps(row)[:80],
                hint=f"each row is an object with {', '.join(columns)}",
            )
        for column in columns:
            values[column].append(row[column])
    return pd.DataFrame(values, dtype=object)


def _measures(arguments: Mapping[str, Any], limits: Limits) -> list[Any]:
    given = arguments.get("measure", "nDCG@10")
    names = [given] if isinstance(given, str) else given
    if not 0 < len(names) <= limits.measures:
        raise UsageError(f"measure takes 1 to {limits.measures} measures", found=str(len(names)))
    return list({str(measure): measure for measure in map(parse_measure, names)}.values())


def _document(outcome: Outcome) -> Any:
    return json.loads(to_json(outcome))


def _warning_lines(reports: Sequence[GateReport]) -> str:
    groups = by_benchmark(reports)
    notes = dict.fromkeys(note for group in groups for note, _ in warnings_of(group))
    return "".join(_line(note) for note in notes)


def _line(note: Note) -> str:
    return f"- {escape(str(note))}\n"


def _report(given: Any, files: Files) -> dict[str, Any]:
    """Return the document of a report, of which one entry alone is taken too."""
    if isinstance(given, str):
        with _stream(given, files, "report") as stream:
            content = stream.read()
        try:
            given = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise InputError("the report is not JSON", found=str(error)[:120]) from None
    if isinstance(given, dict) and "kind" in given:
        given = {"schema": SCHEMA, "reports": [given], "errors": []}
    if not isinstance(given, dict) or given.get("schema") != SCHEMA:
        found = repr(given.get("schema"))[:80] if isinstance(given, dict) else type(given).__name__
        raise InputError(
            "this is no report of falsify-adapters",
            found=f"schema {found}",
            hint=f'give what --json writes, or what grade_retrieval returned: "schema": "{SCHEMA}"',
        )
    if not all(isinstance(given.get(name), list) for name in ("reports", "errors")):
        raise InputError("the report lacks its lists of reports and errors")
    _validate(given["errors"], REPORT_SCHEMA["properties"]["errors"], "its list of errors")
    return given


def _checked(one: Any, number: int) -> dict[str, Any]:
    _validate(one, REPORT_SCHEMA["$defs"]["report"], f"report {number}")
    checked: dict[str, Any] = one
    return checked


def _validate(instance: Any, schema: Mapping[str, Any], name: str) -> None:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    validator = Draft202012Validator({**schema, "$defs": REPORT_SCHEMA["$defs"]})
    error = best_match(validator.iter_errors(instance))
    if error is not None:
        raise InputError(
            f"{name} does not fit the JSON Schema of reports",
            found=f"{error.json_path[:80]}: {error.message[:160]}",
            hint="falsify-adapters schema prints it",
        )


def _gate_words(report: GateReport) -> dict[str, Any]:
    return _plain_names(report) | {
        "kind": "gate",
        "role": report.role,
        "verdict": report.verdict,
        "meaning": LEADS[report.verdict],
        "reason": sentence(report.reason),
        "score": report.score,
        "tau": report.tau,
        "n_queries": report.n_queries,
        "nulls": [
            {
                "null": name,
                "meaning": MEANINGS[name],
                **{key: null.to_dict()[key] for key in ("mean", "delta", "low", "high", "verdict")},
            }
            for name, null in report.nulls.items()
        ],
        "remarks": list(remarks(report)),
        "warnings": [
            {"code": note.code, "message": note.message, "what_to_do": REMEDIES[note.code]}
            for note in report.warnings
        ],
    }


def _plain_names(report: Any) -> dict[str, Any]:
    return {name: getattr(report, name) for name in ("system", "benchmark", "measure")}


def _other_words(one: Mapping[str, Any]) -> dict[str, Any]:
    names = ("kind", "role", "system", "benchmark", "measure", "verdict", "reason")
    return {name: one.get(name) for name in names}


def _about(one: Mapping[str, Any]) -> str:
    """Return one line about a report that has no table here."""
    names = ("system", "model", "candidate", "benchmark", "measure")
    head = ", ".join(str(one[name]) for name in names if one.get(name))
    # no capital: a reason may begin with the name of a system
    said = ". ".join(printable(str(one[name])) for name in ("verdict", "reason") if one.get(name))
    return f"{one['kind']} {printable(head)}: {said}".strip(": ")


def _of_error(error: Mapping[str, Any]) -> str:
    return f"{error['input']}: " + str(
        FalsifyError(error["lacks"], found=error["found"], hint=error["hint"])
    )
