"""Words that a reader has to guess stay out of what users read: pages, help, summaries of functions and messages."""

import ast
import re
from pathlib import Path

import pytest

from duckdb_anon.engine.planner import parameters_of
from duckdb_anon.measures.help.anon_functions import about
from duckdb_anon.registry import ENTRIES

PROJECT = Path(__file__).resolve().parents[2]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "duckdb_anon" / "docs").rglob("*.md"))]
EXAMPLES = sorted(
    path for ending in ("*.sql", "*.toml", "*.yml", "*.md") for path in (PROJECT / "examples").rglob(ending)
)
RETIRED = re.compile(
    r"\b(told|nobody|somebody|beside|she|hers?|secrets?|apart|comes? out as|what is had|nobody says)\b", re.I
)
"""What to write instead: the glossary's word (individual, record, attacker, sensitive value) or a shorter sentence."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_use_the_words_of_the_glossary(page):
    text = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert [found.group() for found in RETIRED.finditer(text)] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.relative_to(PROJECT / "examples").as_posix())
def test_examples_use_the_words_of_the_glossary(example):
    assert [found.group() for found in RETIRED.finditer(example.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_help_of_functions_uses_the_words_of_the_glossary(entry):
    texts = [entry.summary, about(entry) or "", *(parameter.doc for parameter in parameters_of(entry))]
    # quoted words and lists of choices are names
    prose = [re.sub(r"'[^']*'|some of .*", "", text) for text in texts]
    assert [found.group() for text in prose for found in RETIRED.finditer(text)] == []


def test_messages_use_the_words_of_the_glossary():
    names = re.compile(r"'[^']*'|secret :=|\.secret\b|create schema.*", re.DOTALL)
    found = [
        (path.relative_to(PROJECT).as_posix(), word.group(), text)
        for path in sorted((PROJECT / "duckdb_anon").rglob("*.py"))
        for text in _texts(ast.parse(path.read_text(encoding="utf-8")))
        for word in RETIRED.finditer(names.sub("", text))
    ]
    assert found == []


def _texts(module: ast.Module) -> list[str]:
    """Strings of several words that are neither docstrings nor SQL."""
    unread = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in unread
        if " " in node.value
        and not re.search(r"\bselect\b|\bfrom \(|\bcreate (table|view)\b", node.value, re.IGNORECASE)
    ]
