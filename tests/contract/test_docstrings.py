"""What public docstrings promise: every parameter of a function that takes three or more stands under Args."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import duckdb_anon

PACKAGE = Path(duckdb_anon.__file__).parent
OF_ENTRIES = {
    ("tables", "params", "rng"), ("table", "params", "rng"), ("roles", "params", "rows"), ("table", "params", "repeated")
}  # fmt: skip
"""What entries call their functions with; model/entries.py documents these once, for all of them."""
OTHERS = {"bi/dialect.py"}
"""Methods whose signatures are another library's."""
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def public(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, FUNCTIONS]]:
    """Functions and methods without an underscore, and constructors."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, FUNCTIONS) and (node.name == "__init__" or not node.name.startswith("_")):
            yield f"{prefix}{node.name}", node


def parameters(node: FUNCTIONS) -> list[str]:
    found = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    return [a.arg for a in found if a is not None and a.arg not in ("self", "cls")]


def documented(node: FUNCTIONS) -> set[str]:
    section = re.search(r"^Args:\n((?:    .*\n?|\n)*)", ast.get_docstring(node) or "", re.MULTILINE)
    entries = re.findall(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)*):", section.group(1) if section else "", re.MULTILINE)
    return {name.strip("* ") for entry in entries for name in entry.split(",")}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_every_parameter_of_a_function_with_several_is_documented(path: Path) -> None:
    if path.relative_to(PACKAGE).as_posix() in OTHERS:
        pytest.skip("signatures of SQLAlchemy's")
    silent = {}
    for name, node in public(ast.parse(path.read_text(encoding="utf-8")).body):
        takes = parameters(node)
        if len(takes) >= 3 and tuple(takes) not in OF_ENTRIES and set(takes) - documented(node):
            silent[name] = sorted(set(takes) - documented(node))
        assert not documented(node) or documented(node) <= set(takes), f"{name} documents what it does not take"
    assert silent == {}
