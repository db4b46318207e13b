"""The one table of warning codes is complete, in the code and in the documentation."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import falsify_adapters
from falsify_adapters.errors import InputError
from falsify_adapters.notes import CODES, ON_VERDICTS, REMEDIES, Note, refuse_notes, some

PACKAGE = Path(falsify_adapters.__file__).parent
PAGE = PACKAGE.parent / "docs" / "warnings.md"
#: A page of the docs, which a terminal could not open.
LINK = re.compile(r" \(see \[[^]]*\]\([^)]*\)\)")
CODE = re.compile(r"W-[A-Z0-9]+(?:-[A-Z0-9]+)*")


def codes_in_use() -> set[str]:
    """Return every code that stands in a string of the package, its table and docs aside."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        if path.name == "notes.py":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= {node.value} if CODE.fullmatch(node.value) else set()
    return found


def test_every_code_of_the_table_is_used_and_every_used_code_is_in_the_table() -> None:
    assert codes_in_use() == set(CODES)


def test_the_table_is_in_order_and_says_something() -> None:
    assert list(CODES) == sorted(CODES)
    assert all(CODE.fullmatch(code) and len(text) > 10 for code, text in CODES.items())
    assert set(CODES) >= ON_VERDICTS


def test_the_documentation_lists_every_code_with_its_meaning_and_remedy() -> None:
    row = r"^\| `(W-[A-Z0-9-]+)` \| (.+?) \| .+? \| (.+?) \|$"
    rows = re.findall(row, PAGE.read_text(), re.MULTILINE)
    assert {code: meaning for code, meaning, _ in rows} == CODES
    assert {code: LINK.sub("", remedy) for code, _, remedy in rows} == REMEDIES
    assert len(rows) == len(CODES)


def test_an_unknown_code_is_a_mistake_of_ours() -> None:
    with pytest.raises(KeyError, match="W-NONSENSE"):
        Note("W-NONSENSE", "x")


def test_strict_mode_refuses_warnings_about_inputs_only() -> None:
    refuse_notes([], "run")
    refuse_notes([Note(code, "x") for code in ON_VERDICTS], "run")
    with pytest.raises(InputError, match="run has 2 warnings; found: W-TIES: a; W-DEPTH: b"):
        refuse_notes([Note("W-TIES", "a"), Note("W-SMALL-N", "x"), Note("W-DEPTH", "b")], "run")
    refuse_notes([Note("W-TIES", "a")], "run", accepted=frozenset({"W-TIES"}))


def test_a_few_items_are_named_and_the_others_counted() -> None:
    assert some([]) == ""
    assert some(range(3)) == "0, 1, 2"
    assert some(range(5), 1) == "0 and 4 more"
