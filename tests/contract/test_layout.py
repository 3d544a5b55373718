"""Modules by concept: of a size one reads in one go, and no class called as another one is."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import duckdb_anon

PACKAGE = Path(duckdb_anon.__file__).parent
MOST_LINES = 350


def test_no_module_is_longer_than_one_reads() -> None:
    long = {
        str(path.relative_to(PACKAGE)): lines
        for path in PACKAGE.rglob("*.py")
        if (lines := path.read_text().count("\n")) > MOST_LINES
    }
    assert not long


def test_no_module_is_called_as_another_one() -> None:
    """But for a kernel that stands under the entry it works for: anatomy, mondrian, definetti, special_uniques."""
    found = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        if path.stem != "__init__":
            found[path.stem].append(path.relative_to(PACKAGE).parts[0])
    twice = {stem: sorted(rooms) for stem, rooms in found.items() if len(rooms) > 1}
    allowed = (["kernels", "methods"], ["kernels", "measures"])
    assert {stem: rooms for stem, rooms in twice.items() if rooms not in allowed} == {}


def test_no_class_is_called_as_another_one() -> None:
    found = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: files for name, files in found.items() if len(files) > 1} == {}
