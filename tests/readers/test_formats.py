"""Each format: what is guessed, what is read, what is refused."""

from __future__ import annotations

import io
from typing import Any

import pandas as pd
import pytest

from falsify_adapters.errors import InputError, UsageError
from falsify_adapters.readers import RunFile, read_exclusions, read_qrels, read_run
from tests import run_writers as writers


def run(text: str, **options: Any) -> RunFile:
    return read_run(io.BytesIO(text.encode()), **options)


def as_dict(frame: pd.DataFrame) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for query, doc, value in frame.itertuples(index=False):
        found.setdefault(query, {})[doc] = value
    return found


def run_dict(text: str, **options: Any) -> dict[str, dict[str, float]]:
    return as_dict(run(text, **options).frame)


def qrels_dict(text: str, **options: Any) -> dict[str, dict[str, float]]:
    return as_dict(read_qrels(io.BytesIO(text.encode()), **options).frame)


def refusal(text: str, read: Any = read_run, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read(io.BytesIO(text.encode()), **options)
    return str(caught.value)


# -- ids stay text --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "doc",
    [
        "007",
        "1e5",
        "NA",
        "nan",
        "None",
        "null",
        "1.0",
        "-0",
        "#1",
        "a,b",
        '"x',
        "18446744073709551617",
    ],
)
def test_ids_are_text_from_the_first_byte_to_the_last(doc: str) -> None:
    assert run_dict(f"01\tQ0\t{doc}\t1\t2.0\tt\n") == {"01": {doc: 2.0}}
    assert run_dict(f"query-id\tcorpus-id\tscore\n01\t{doc}\t2.0\n") == {"01": {doc: 2.0}}
    assert qrels_dict(f"01 0 {doc} 1\n") == {"01": {doc: 1}}


@pytest.mark.parametrize("blank", ["\u00a0", "\u3000", "\u2028", "\u0085", "\x1c", "\v", "\f"])
def test_only_blank_and_tab_separate(blank: str) -> None:
    assert run_dict(f"q1 Q0 a{blank}b 1 2.0 t\n") == {"q1": {f"a{blank}b": 2.0}}


def test_blanks_at_the_ends_of_tab_separated_ids_stay() -> None:
    assert run_dict(" q 1\tQ0\td 1 \t1\t2.0\tt\n") == {" q 1": {"d 1 ": 2.0}}


def test_any_number_of_blanks_and_tabs_separates_blank_separated_fields() -> None:
    assert run_dict("  q1  Q0\td1   1 2.0 t  \nq1 Q0 d2 2 1.0 t\n") == {
        "q1": {"d1": 2.0, "d2": 1.0}
    }


def test_long_ids_and_short_ids_together() -> None:
    long = "x" * 500
    assert run_dict(f"q1 Q0 {long} 1 2.0 t\nq1 Q0 d 2 1.0 t\n") == {"q1": {long: 2.0, "d": 1.0}}


def test_ids_that_differ_in_one_late_character_stay_apart() -> None:
    lines = [f"q Q0 http://example.org/a/very/long/path/{i:08} {i} {100 - i} t" for i in range(50)]
    assert len(run("\n".join(lines)).frame) == 50


# -- TREC -----------------------------------------------------------------------------------------


def test_text_behind_the_tag_is_ignored() -> None:
    text = 'q1 Q0 a 1 2.0 my model v2\nq1 Q0 b 2 1.0 tag # {"x": 1}\n'
    assert run_dict(text) == {"q1": {"a": 2.0, "b": 1.0}}


@pytest.mark.parametrize(
    "line", ["q1 Q0 Apollo 13 1995 1 5.0 t", "q1 Q0 Ice core 2001 data 1 5.0 t", "q1 Q0 a b 1 2 t"]
)
def test_an_id_with_blanks_never_shifts_the_fields(line: str) -> None:
    assert "line 2 has" in refusal(f"q1 Q0 d1 1 9.0 t\n{line}\n")


def test_a_rank_that_is_no_number() -> None:
    said = refusal("q1 Q0 d1 1 9.0 t\nq1 Q0 d2 x 9.0 t\n")
    assert "line 2: 'x' is not a number" in said


@pytest.mark.parametrize(
    "score", ["0,95", "1_000", "0x10", "--1", "1e", "\u0661", "", "2.0.1", "True"]
)
def test_a_score_that_is_no_number(score: str) -> None:
    said = refusal(f"q1\tQ0\td1\t1\t2.0\tt\nq1\tQ0\td2\t2\t{score}\tt\n")
    assert f"line 2: {score!r} is not a number" in said


@pytest.mark.parametrize(
    "score", ["1", "+1", "1.", ".5", "-2.5e-3", "1E5", "00012", "12345678.12345678"]
)
def test_numbers_are_read_as_python_reads_them(score: str) -> None:
    assert run_dict(f"q1 Q0 d1 1 {score} t\n") == {"q1": {"d1": float(score)}}


def test_scores_are_exact_in_double_precision() -> None:
    scores = [0.1, 1 / 3, 2**53 + 2.0, 5e-324, 1.7976931348623157e308, 12.300000000000001]
    text = "".join(f"q Q0 d{i} 0 {score!r} t\n" for i, score in enumerate(scores))
    assert run_dict(text) == {"q": {f"d{i}": score for i, score in enumerate(scores)}}


def test_an_empty_id() -> None:
    assert "line 2 has an empty document id" in refusal("q1\tQ0\td\t1\t2\tt\nq1\tQ0\t\t1\t2\tt\n")


def test_blank_lines_are_skipped() -> None:
    assert run_dict("\n\nq1 Q0 d1 1 2.0 t\n \t \nq1 Q0 d2 2 1.0 t\n\n") == {
        "q1": {"d1": 2.0, "d2": 1.0}
    }


def test_comments_at_the_top_are_skipped_with_a_note() -> None:
    found = run("# made by hand\n#\n\nq1 Q0 d1 1 2.0 t\n")
    assert as_dict(found.frame) == {"q1": {"d1": 2.0}}
    assert [note.code for note in found.notes] == ["W-COMMENT-LINES"]


def test_a_comment_further_down_is_refused() -> None:
    said = refusal("q1 Q0 d1 1 2.0 t\n# the second query\nq2 Q0 d1 1 2.0 t\n")
    assert "line 2" in said
    assert "comments may only stand at the top" in said


def test_a_query_that_begins_with_a_hash_is_no_comment() -> None:
    assert run_dict("#1 Q0 d1 1 2.0 t\nq2 Q0 d1 1 2.0 t\n") == {
        "#1": {"d1": 2.0},
        "q2": {"d1": 2.0},
    }


# -- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "header",
    [
        "query-id\tcorpus-id\tscore",
        "Query ID\tDocument_ID\tSCORE",
        "qid\tdocno\tsim",
        "q_id\tdoc_id\tscore",
    ],
)
def test_headers_by_many_names(header: str) -> None:
    assert run_dict(f"{header}\nq1\td1\t0.5\n") == {"q1": {"d1": 0.5}}


def test_pyterrier_ranks_by_docno_and_not_by_its_own_docid() -> None:
    text = "qid,docid,docno,rank,score,query\nq1,77,MS_1,0,2.5,a b\nq1,78,MS_2,1,1.5,a b\n"
    assert run_dict(text) == {"q1": {"MS_1": 2.5, "MS_2": 1.5}}


def test_an_unknown_header_is_named() -> None:
    said = refusal("frage\tantwort\tnote\nq1\td1\t1\n", read_qrels)
    assert "line 1: 'note' is not a number" in said
    assert "query-id, corpus-id and score" in said


def test_a_header_without_a_score() -> None:
    said = refusal("query-id\tcorpus-id\ttext\nq1\td1\tx\n")
    assert "names no column for the score" in said


def test_a_table_with_a_rank_and_no_score() -> None:
    found = run("qid\tdocno\trank\nq1\td1\t2\nq1\td2\t1\n")
    assert found.frame["doc_id"].tolist() == ["d2", "d1"]
    assert [note.code for note in found.notes] == ["W-RANK-AS-SCORE"]


def test_a_row_with_a_field_too_many() -> None:
    said = refusal("query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t1\tx\n", read_qrels)
    assert "line 3 has 4 fields where 3 are expected" in said


def test_quotes_enclose_only_if_all_texts_are_enclosed() -> None:
    enclosed = 'query-id\tcorpus-id\tscore\n"q1"\t"d ""1"""\t1\n'
    assert qrels_dict(enclosed) == {'"q1"': {'"d ""1"""': 1}}, "the header is not enclosed"
    assert qrels_dict(
        enclosed.replace("query-id\tcorpus-id\tscore", '"query-id"\t"corpus-id"\t"score"')
    ) == {"q1": {'d "1"': 1}}
    assert qrels_dict('q1\t"d1"\t1\nq1\td2\t1\n') == {"q1": {'"d1"': 1, "d2": 1}}


def test_ids_in_quotation_marks_are_noted() -> None:
    found = read_qrels(io.BytesIO(b'q1\t"d1"\t1\nq1\td2\t1\n'))
    assert [note.code for note in found.notes] == ["W-QUOTED-IDS"]


def test_a_quote_never_swallows_a_line() -> None:
    assert "line 2 has quotes that do not match" in refusal(
        'q1,d1,1\nq2,"d2,1\nq3,d3,1\n', format="csv"
    )
    assert "line 2 has quotes that do not match" in refusal(
        'q1,d1,1\nq2,"d"2,1\nq3,d3,1\n', format="csv"
    )


def test_csv_with_commas_in_ids() -> None:
    assert qrels_dict('q1,"d,1",1\nq1,"say ""x""",2\n') == {"q1": {"d,1": 1, 'say "x"': 2}}


def test_csv_of_all_six_fields() -> None:
    assert run_dict("q1,Q0,d 1,1,2.0,t\nq1,Q0,d2,2,1.0,t\n") == {"q1": {"d 1": 2.0, "d2": 1.0}}


@pytest.mark.parametrize("text", ["q1\td1\n", "q1 d1 1 2.0 t\n", "a\n", "q1;d1;0.5\n"])
def test_no_known_form(text: str) -> None:
    assert "which is no known form of a run" in refusal(text)


def test_formats_can_be_forced() -> None:
    assert run_dict('{"q Q0 d1 1 2.0 t\n', format="trec") == {'{"q': {"d1": 2.0}}
    with pytest.raises(UsageError, match="unknown format"):
        run("", format="xml")
    assert "is not in the format parquet" in refusal("q1 Q0 d1 1 2.0 t\n", format="parquet")


# -- JSON -----------------------------------------------------------------------------------------


def test_json_with_integers_and_texts_as_ids_and_scores() -> None:
    results = '[{"corpus_id": 20, "score": "0.9"}, {"corpus_id": "x", "score": 1}]'
    text = f'{{"query_id": 1, "results": {results}}}\n'
    assert run_dict(text) == {"1": {"20": 0.9, "x": 1.0}}


def test_a_query_with_an_empty_result_is_answered() -> None:
    first = '{"query_id": "q1", "results": [{"corpus_id": "d1", "score": 1.0}]}'
    lines = f'{first}\n{{"query_id": "q2", "results": []}}\n'
    for text in ('{"q1": {"d1": 1.0}, "q2": {}}', lines):
        assert list(run(text).frame["query_id"].cat.categories) == ["q1", "q2"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"q1": {"d1": 1.0, "d1": 2.0}}', "key 'd1' twice"),
        ('{"q1": {"d1": 1.0}, "q1": {"d2": 2.0}}', "key 'q1' twice"),
        ('{"q1": {"d1": NaN}}', "not a finite number"),
        ('{"q1": {"d1": null}}', "None for query 'q1', document 'd1'"),
        ('{"q1": {"d1": true}}', "True for query 'q1', document 'd1'"),
        ('{"q1": {"d1": [1]}}', "score or grade that is not a number"),
        ('{"q1": ["d1", "d2"]}', "is not a dict of dict"),
        ('{"q1": {"d1": 1.0}', "not valid JSON"),
        ('{"q1": {"d1": ' + "9" * 5000 + "}}", "not valid JSON"),
        ("[" * 100_000, "no known form"),
        ('{"a":' * 100_000, "not valid JSON"),
        ('{"q1": {"\\ud800": 1.0}}', "lone surrogate"),
        ('{"q1": {"a\\u0000b": 1.0}}', "NUL"),
        ('{"q1": {"": 1.0}}', "empty doc_id"),
        ('{"ndcg": {"NDCG@10": 1}, "map": {}, "recall": {}, "precision": {}}', "of measures"),
        ('{"default": {"test": {"q1": {"d1": 0.3}}}}', "several subsets or splits"),
        ('{"mteb_model_meta": {"model_name": "m"}, "en": {"test": {}}}', "several subsets"),
        ('{"query_id": {"0": 1}, "doc_id": {"0": 2}, "score": {"0": 3}}', "column by column"),
        ('{"query_id": 1.5, "doc_id": "d", "score": 1}', "neither text nor a whole number"),
        ('{"query_id": "q", "results": {"d": 1}}', "results is not a list"),
        ('{"query_id": "q", "results": [{"id": "d"}]}', "without corpus_id or score"),
        ('{"query_id": "q", "doc_id": "d"}', "has no score or grade"),
        ('[{"query_id": "q", "doc_id": "d", "score": 1}, 7]', "entry 2 is not a JSON object"),
        ("{}", "is empty"),
        ("[]", "is empty"),
    ],
)  # fmt: skip
def test_what_json_is_refused_for(text: str, words: str) -> None:
    assert words in refusal(text)


def test_a_query_may_be_called_like_a_key_of_another_format() -> None:
    for name in ("precision", "mteb_model_meta", "results", "query_id", "score"):
        assert run_dict(f'{{"{name}": {{"d1": 1.0}}}}') == {name: {"d1": 1.0}}


def test_json_lines_name_the_line() -> None:
    row = '{"query_id": "q", "doc_id": "d%d", "score": 1}\n'
    said = refusal(row % 1 + row % 2 + row.replace("1", "x") % 3)
    assert "line 3 is not valid JSON" in said


def test_json_lines_of_one_query_each() -> None:
    assert run_dict('{"q1": {"d1": 1.0}}\n{"q2": {"d1": 2.0}}\n') == {
        "q1": {"d1": 1.0},
        "q2": {"d1": 2.0},
    }


# -- parquet --------------------------------------------------------------------------------------


def parquet(**columns: Any) -> io.BytesIO:
    buffer = io.BytesIO()
    pd.DataFrame(columns).to_parquet(buffer)
    return io.BytesIO(buffer.getvalue())


def test_parquet_with_whole_numbers_as_ids() -> None:
    file = parquet(qid=[1, 1], docno=[2**63 - 1, 5], score=[0.5, 0.25])
    assert as_dict(read_run(file).frame) == {"1": {str(2**63 - 1): 0.5, "5": 0.25}}


def test_parquet_goes_through_the_same_checks() -> None:
    file = parquet(qid=["q"] * 3, docno=list("abc"), score=[1.0, 2.0, 3.0], rank=[0, 1, 2])
    with pytest.raises(InputError, match="reverse of the rank column"):
        read_run(file)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"qid": [1.0], "docno": ["d"], "score": [1.0]}, "neither text nor whole numbers"),
        ({"qid": ["q", None], "docno": ["d", "d"], "score": [1.0, 1.0]}, "rows without a query id"),
        ({"qid": ["q"], "docno": ["d"], "score": [None]}, "rows without a score"),
        ({"qid": ["q"], "docno": ["d"], "score": [True]}, "yes and no"),
        ({"qid": ["q"], "docno": ["d"], "score": ["x"]}, "cannot be read as parquet"),
        ({"qid": ["q"], "docno": ["d"]}, "names no column for the score"),
        ({"a": ["q"], "b": ["d"]}, "lacks a column for query or document"),
    ],
)
def test_what_parquet_is_refused_for(columns: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_run(parquet(**columns))


# -- exclusions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "q1 d1\nq2 d2\n",
        "q1\td1\nq2\td2\nq2\td2\n",
        "query_id,doc_id\nq1,d1\nq2,d2\n",
        "corpus-id\tquery-id\nd1\tq1\nd2\tq2\n",
    ],
)
def test_exclusions_in_two_columns(text: str) -> None:
    found = read_exclusions(io.BytesIO(text.encode()))
    assert found.to_numpy().tolist() == [["q1", "d1"], ["q2", "d2"]]


@pytest.mark.parametrize("text", ["", "q1\n", "q1 d1 x\n", "{}"])
def test_no_exclusions(text: str) -> None:
    assert refusal(text, read_exclusions)


# -- notes ----------------------------------------------------------------------------------------


def test_notes_are_collected_and_say_the_base_name(tmp_path: Any) -> None:
    path = tmp_path / "run.tsv"
    path.write_text("q1\td1\t1\nq1\td2\t2\n")
    collected: list[Any] = []
    found = read_run(path, notes=collected)
    assert tuple(collected) == found.notes
    assert found.notes[0].message.startswith("run.tsv: third column read as rank")


def test_writers_and_readers_know_the_same_formats() -> None:
    values = {"q1": {"d1": 2.0, "d2": 1.0}}
    for write in (writers.trec_run, writers.tsv, writers.csv_file, writers.json_dict):
        assert run_dict(write(values)) == values
