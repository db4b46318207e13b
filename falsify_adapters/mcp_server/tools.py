"""The tools as an agent sees them: names, descriptions, the schemas of what goes in and out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from falsify_adapters.report.schema import schema_text

#: Arguments of grade_retrieval that are settings of the gate.
GATE_SETTINGS = ("tau", "alpha", "n_boot", "n_trials", "seed", "decision", "require_ceiling")
#: Arguments that hold data, and may be large.
DATA = ("run", "qrels", "report")
REPORT_SCHEMA: dict[str, Any] = json.loads(schema_text())

INSTRUCTIONS = (
    "Says whether a retrieval score (nDCG, recall, MRR, ... of a search system, a retriever, an"
    " embedding model or a reranker) means anything: whether something that knows nothing of the"
    " queries would score as much. Use grade_retrieval on ranked results with known relevant"
    " documents before you report their score; audit_benchmark on relevance judgements before you"
    " use them; explain_report on a report of this tool that you or a user already has."
)

_GRADE = """\
Decide whether a retrieval score means anything. Call it when ranked documents for a set of \
queries (a run) and their known relevant documents (qrels) are at hand, before the score is \
reported or used to choose a system.

The score is compared with four nulls that know nothing of the queries: A, the right answers \
shuffled among the queries; B, answer sets drawn at random; C, random documents; D, answers drawn \
by popularity. Each comparison gives a difference (delta) with an interval over fresh queries.

Verdict: PASS, every interval lies at or above tau: none of the four explains the score. FAIL, one \
lies below tau: something that reads no query comes as close as that. UNDER-NS, tau lies inside an \
interval: too few queries to tell, neither good nor bad news; below about 100 queries expect it.

PASS does not say that the system is good or better than another, that the judgements are right, \
or that nothing leaked from the test set. It judges rankings, never generated text. Read the \
warnings in the answer: they say what to mend in the input.

Returns the report as Markdown, and as JSON in the shape that `falsify-ir --json` writes."""

_AUDIT = """\
Say what a retrieval benchmark gives away for free, from its relevance judgements (qrels) alone. \
Call it before a benchmark is chosen or built on; no run is needed.

The query-blind ceiling is the best score that a single ranking reaches which is the same for \
every query. A system that scores below it has shown nothing that a ranking without reading could \
not. The audit also counts queries without relevant documents and queries that share theirs.

It gives no verdict, does not look at any system, and says nothing about whether the questions or \
the judgements make sense."""

_EXPLAIN = """\
Explain a report of falsify-adapters in plain words. Call it when a report's JSON is at hand \
(a file that `--json` wrote, or what grade_retrieval or audit_benchmark returned) and a person \
asks what it means or what to do next.

Gives, for each graded system, the verdict and its reason, what each of the four nulls stands for \
and how far the score lies above it, and for each warning what to do about it. Nothing is computed \
again and no figure is checked: `falsify-adapters verify` does that."""

_PLACE = (
    " Or a path below the server's folder (TREC, tsv, csv, JSON or Parquet, gzip too), or such a"
    " file's text."
)
_MEASURE = {
    "anyOf": [
        {"type": "string"},
        {"type": "array", "items": {"type": "string"}, "minItems": 1},
    ],
    "default": "nDCG@10",
    "description": "As ir-measures spells it, or a list: nDCG@10, RR@10, R@100, AP@100, P(rel=2)@5."
    " Only measures with values in [0, 1].",
}
_SEED = {
    "type": "integer",
    "minimum": 0,
    "default": 0,
    "description": "Same seed, same numbers. Leave it: trying seeds until one passes proves"
    " nothing.",
}


def _pairs(value: str, kind: str, text: str) -> dict[str, Any]:
    """Return the schema of rows, a dict of dict, a path or a text."""
    row = {
        "type": "object",
        "properties": {
            "query_id": {"type": "string"},
            "doc_id": {"type": "string"},
            value: {"type": kind},
        },
        "required": ["query_id", "doc_id", value],
    }
    by_query = {"type": "object", "additionalProperties": {"type": kind}}
    return {
        "anyOf": [
            {"type": "array", "items": row},
            {"type": "object", "additionalProperties": by_query},
            {"type": "string"},
        ],
        "description": text + _PLACE,
    }


_RUN = _pairs(
    "score",
    "number",
    "What the system returned: [{query_id, doc_id, score}, ...] or {query_id: {doc_id: score}}."
    " Higher scores rank first. Give all queries, and each ranking as deep as the measure looks.",
)
_QRELS = _pairs(
    "relevance",
    "integer",
    "The judgements: [{query_id, doc_id, relevance}, ...] or {query_id: {doc_id: relevance}}."
    " A relevance above 0 is relevant. Every query here counts; one that the run lacks scores 0.",
)


def _object(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _described(text: str, **schema: Any) -> dict[str, Any]:
    return {**schema, "description": text}


_BENCHMARK = _described("The benchmark's name in the report.", type="string", maxLength=200)

INPUTS: dict[str, dict[str, Any]] = {
    "grade_retrieval": _object(
        ("run", "qrels"),
        run=_RUN,
        qrels=_QRELS,
        measure=_MEASURE,
        corpus_size=_described(
            "How many documents the system could have returned. Give it: without it only the"
            " documents in run and qrels are counted, and null C gets harder to beat than it is.",
            type="integer",
            minimum=1,
        ),
        tau=_described(
            "What each difference to a null must clear. Choose it before you see the score.",
            type="number",
            minimum=0,
            maximum=1,
            default=0.05,
        ),
        alpha=_described(
            "Error level of the four intervals together.",
            type="number",
            exclusiveMinimum=0,
            exclusiveMaximum=1,
            default=0.05,
        ),
        seed=_SEED,
        decision=_described(
            "Whether the whole interval must clear tau, or the difference itself. The latter"
            " ignores how few the queries are.",
            enum=["interval", "point"],
            default="interval",
        ),
        require_ceiling=_described(
            "Also ask that the score lies tau above the query-blind ceiling.",
            type="boolean",
            default=False,
        ),
        keep_self=_described(
            "False removes documents whose id is the query's own, as BEIR does.",
            type="boolean",
            default=True,
        ),
        score_order=_described(
            "ascending if the scores are distances; without it, what the scores and ranks say.",
            enum=["descending", "ascending"],
        ),
        n_boot=_described(
            "Resamples of the queries; 10000 if the warning W-FEW-BOOT asks for it.",
            type="integer",
            default=1000,
        ),
        n_trials=_described("Trials of each null.", type="integer", default=1000),
        system=_described("The system's name in the report.", type="string", maxLength=200),
        benchmark=_BENCHMARK,
    ),
    "audit_benchmark": _object(
        ("qrels",),
        qrels=_QRELS,
        measure=_MEASURE,
        held_out=_described(
            "Also make the ranking from a random half of the queries and score it on the others:"
            " how much of the ceiling carries over.",
            type="boolean",
            default=False,
        ),
        seed=_SEED,
        benchmark=_BENCHMARK,
    ),
    "explain_report": _object(
        ("report",),
        report=_described(
            "The report: its JSON object, one entry of its list of reports, a path below the"
            " server's folder, or the file's text.",
            type=["object", "string"],
        ),
    ),
}

_TEXT, _MAYBE, _NUMBER = {"type": "string"}, {"type": ["string", "null"]}, {"type": "number"}
_NULL = {
    "type": "object",
    "properties": {
        "null": {"enum": ["A", "B", "C", "D"]},
        "meaning": _TEXT,
        "mean": _described("What the null scores on average.", type="number"),
        "delta": _described("The score minus that.", type=["number", "null"]),
        "low": _described("Lower end of its interval.", type=["number", "null"]),
        "high": _described("Upper end of its interval.", type=["number", "null"]),
        "verdict": _TEXT,
    },
    "required": ["null", "meaning", "mean", "delta", "low", "high", "verdict"],
}
_WARNING = {
    "type": "object",
    "properties": {"code": _TEXT, "message": _TEXT, "what_to_do": _TEXT},
    "required": ["code", "message", "what_to_do"],
}
_EXPLANATION = {
    "type": "object",
    "properties": {
        "reports": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    **dict.fromkeys(
                        ("system", "benchmark", "measure", "verdict", "reason"), _MAYBE
                    ),
                    "role": _described(
                        'Of the system; "run" has been graded, others do not count.'
                    ),
                    "kind": _described('"gate" has all that follows, others only what is above.'),
                    "meaning": _described("The verdict in one sentence.", type="string"),
                    **dict.fromkeys(("score", "tau"), _NUMBER),
                    "n_queries": {"type": "integer"},
                    "nulls": {"type": "array", "items": _NULL},
                    "remarks": {"type": "array", "items": _TEXT},
                    "warnings": {"type": "array", "items": _WARNING},
                },
                "required": ["kind", "role", "verdict", "reason"],
            },
        },
        "refused": _described(
            "Inputs that the report's command refused.", type="array", items=_TEXT
        ),
        "left_out": _described("Further reports in the file.", type="integer", minimum=0),
    },
    "required": ["reports", "refused", "left_out"],
}


def _reports_of(kind: str) -> dict[str, Any]:
    """Return the schema of reports, of one kind only."""
    properties = REPORT_SCHEMA["properties"] | {
        "reports": {"type": "array", "items": {"$ref": f"#/$defs/{kind}"}},
        "call": {"type": "null"},
        "plan": {"type": "null"},
    }
    kept: dict[str, Any] = {}
    waiting = list(_references(properties))
    while waiting:
        name = waiting.pop()
        if name not in kept:
            kept[name] = REPORT_SCHEMA["$defs"][name]
            waiting += _references(kept[name])
    own = {key: REPORT_SCHEMA[key] for key in ("type", "required", "additionalProperties")}
    return {**own, "properties": properties, "$defs": dict(sorted(kept.items()))}


def _references(schema: Any) -> Iterator[str]:
    """Yield the names of the definitions that a schema refers to."""
    if isinstance(schema, Mapping):
        if isinstance(reference := schema.get("$ref"), str):
            yield reference.removeprefix("#/$defs/")
        for part in schema.values():
            yield from _references(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _references(part)


OUTPUTS: dict[str, dict[str, Any]] = {
    "grade_retrieval": _reports_of("gate"),
    "audit_benchmark": _reports_of("audit"),
    "explain_report": _EXPLANATION,
}

#: Name, title and description of each tool, in the order in which they are listed.
TOOLS = (
    ("grade_retrieval", "Does this retrieval score mean anything?", _GRADE),
    ("audit_benchmark", "What does this benchmark give away for free?", _AUDIT),
    ("explain_report", "What does this report say?", _EXPLAIN),
)
