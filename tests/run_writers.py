"""Writers of every format, independent of the readers: plain loops and the standard library."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Mapping

import lz4.frame
import pandas as pd

Values = Mapping[str, Mapping[str, float]]
Writer = Callable[[Values], str]


def rows(values: Values) -> list[tuple[str, str, float]]:
    return [(query, doc, value) for query, docs in values.items() for doc, value in docs.items()]


def trec_run(values: Values, separator: str = "\t") -> str:
    # BEIR writes 0 as the rank of every document, so that the order of lines is free
    lines = [
        separator.join([query, "Q0", doc, "0", repr(value), "tag"])
        for query, doc, value in rows(values)
    ]
    return "".join(line + "\n" for line in lines)


def trec_run_blanks(values: Values) -> str:
    return trec_run(values, separator=" ")


def trec_qrels(values: Values, separator: str = "\t") -> str:
    lines = [separator.join([q, "0", d, str(v)]) for q, d, v in rows(values)]
    return "".join(line + "\n" for line in lines)


def trec_qrels_blanks(values: Values) -> str:
    return trec_qrels(values, separator=" ")


def tsv(values: Values) -> str:
    lines = ["query-id\tcorpus-id\tscore"]
    lines += [f"{query}\t{doc}\t{value!r}" for query, doc, value in rows(values)]
    return "".join(line + "\n" for line in lines)


def tsv_other_order(values: Values) -> str:
    lines = ["score\tdoc_id\tnotes\tquery_id"]
    lines += [f"{value!r}\t{doc}\t-\t{query}" for query, doc, value in rows(values)]
    return "".join(line + "\n" for line in lines)


def tsv_all_quoted(values: Values) -> str:
    return _csv(values, delimiter="\t", quoting=csv.QUOTE_ALL)


def csv_file(values: Values) -> str:
    return _csv(values, delimiter=",", quoting=csv.QUOTE_MINIMAL)


def _csv(values: Values, *, delimiter: str, quoting: int) -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator="\n")
    writer.writerow(["query-id", "corpus-id", "score"])
    writer.writerows((query, doc, repr(value)) for query, doc, value in rows(values))
    return text.getvalue()


def json_dict(values: Values) -> str:
    return json.dumps(values)


def json_dict_readable(values: Values) -> str:
    return json.dumps(values, indent=1, ensure_ascii=False)


def json_rows(values: Values) -> str:
    found = [{"query_id": q, "doc_id": d, "score": v} for q, d, v in rows(values)]
    return "".join(json.dumps(row) + "\n" for row in found)


def json_list(values: Values) -> str:
    return json.dumps([{"qid": q, "docno": d, "score": v} for q, d, v in rows(values)])


def json_predictions(values: Values) -> str:
    """Write what sentence-transformers' InformationRetrievalEvaluator writes."""
    lines = [
        {
            "query_id": query,
            "query": "a text",
            "results": [{"corpus_id": doc, "score": value} for doc, value in docs.items()],
        }
        for query, docs in values.items()
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


def parquet(values: Values, value_name: str = "score") -> bytes:
    table = pd.DataFrame(rows(values), columns=["q_id", "doc_id", value_name])
    buffer = io.BytesIO()
    table.to_parquet(buffer)
    return buffer.getvalue()


def encoded(text: str, encoding: str) -> bytes:
    # with surrogates, which json writes as escapes, and nothing else does
    return text.encode(encoding)


def packed(data: bytes, compression: str | None) -> bytes:
    if compression == "gzip":
        return gzip.compress(data)
    return lz4.frame.compress(data) if compression == "lz4" else data
