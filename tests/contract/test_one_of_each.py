"""There is one column model, one tree class, one reader of types, one kernel of boxes and one of keys."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import duckdb_anon

PACKAGE = Path(duckdb_anon.__file__).parent
MODULES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")
}
TYPE_WORDS = re.compile(r"STRUCT|MAP\\?\(|UNION|ENUM|DECIMAL|INT\b|INTEGER|BIGINT|TIMESTAMP|VARCHAR|^(DATE|TIME)|\[\]$")
READING = {"compile", "match", "fullmatch", "search", "startswith", "endswith", "sqltype"}


def classes() -> Iterator[tuple[str, ast.ClassDef, set[str]]]:
    for path, module in MODULES.items():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                fields = {
                    f.target.id for f in node.body if isinstance(f, ast.AnnAssign) and isinstance(f.target, ast.Name)
                }
                yield path, node, fields


def second_trees() -> list[str]:
    """Classes called like trees, or that keep nodes by their parents."""
    found = [
        f"{path}: {node.name}"
        for path, node, fields in classes()
        if re.search(r"Tree|Hierarchy|Forest", node.name) or fields & {"parent", "ancestors", "leaf_count"}
    ]
    return sorted(found)


def second_readers_of_types() -> list[str]:
    """Calls that look into a text for words of DuckDB's types."""
    found = []
    for path, module in MODULES.items():
        for node in ast.walk(module):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READING):
                continue
            texts = [c.value for a in node.args for c in ast.walk(a) if isinstance(c, ast.Constant)]
            if node.func.attr == "sqltype" or any(isinstance(t, str) and TYPE_WORDS.search(t) for t in texts):
                found.append(f"{path}:{node.lineno}")
    return sorted(found)


def second_keys() -> list[str]:
    """Loops that fold columns into one number: x = x * size + column."""
    found = []
    for path, module in MODULES.items():
        for loop in ast.walk(module):
            if not isinstance(loop, (ast.For, ast.While)):
                continue
            for node in ast.walk(loop):
                if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
                    continue
                folded = [
                    sub
                    for sub in ast.walk(node.value)
                    if isinstance(sub, ast.BinOp)
                    and isinstance(sub.op, ast.Add)
                    and isinstance(sub.left, ast.BinOp)
                    and isinstance(sub.left.op, ast.Mult)
                    and isinstance(sub.left.left, ast.Name)
                    and sub.left.left.id == node.targets[0].id
                ]
                found += [f"{path}: {node.targets[0].id}"] * bool(folded)
    return sorted(set(found))


def makers_of_intervals() -> list[str]:
    """Modules that make cells of intervals out of codes."""
    found = []
    for path, module in MODULES.items():
        imported = any(
            isinstance(node, ast.ImportFrom)
            and node.module == "duckdb_anon.model.cells"
            and any(name.name == "Interval" for name in node.names)
            for node in ast.walk(module)
        )
        made = any(
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Interval"
            for node in ast.walk(module)
        )
        found += [path] * (imported and made)
    return found


def test_there_is_one_tree_class() -> None:
    assert second_trees() == ["model/hierarchy.py: Hierarchy"]


def test_there_is_one_reader_of_types() -> None:
    assert {line.split(":")[0] for line in second_readers_of_types()} == {"model/shapes/types.py"}


def test_there_is_one_keys_kernel() -> None:
    assert second_keys() == ["kernels/keys.py: key"]


def test_there_is_one_boxes_kernel() -> None:
    assert makers_of_intervals() == ["kernels/groups/box_cells.py"]


def test_no_two_classes_are_twins() -> None:
    """Entries share what every entry has, `Claims` are `Contents` half read; no others keep five of the same facts."""
    known = [
        (f"{path}: {node.name}", fields)
        for path, node, fields in classes()
        if path != "model/entries.py" and not any("Protocol" in ast.unparse(base) for base in node.bases)
    ]
    twins = [(a, b) for (a, x), (b, y) in itertools.combinations(known, 2) if len(x & y) >= 5]
    assert twins == [("model/shapes/contents.py: Contents", "model/shapes/contents.py: Claims")]


def test_a_column_has_at_most_seven_forms_and_the_page_names_those_there_are() -> None:
    page = (PACKAGE / "README.md").read_text(encoding="utf-8")
    section = page.split("## The forms of a column")[1].split("\n## ")[0]
    ways = re.split(r"\n[A-Z][^\n]*:\n", section)[1:]
    assert [0 < len(re.findall(r"^\d\. ", way, re.MULTILINE)) <= 7 for way in ways] == [True, True]
    for path in re.findall(r"`((?:model|engine|kernels)/[\w/]+\.py)`", section):
        assert path in MODULES
    for name, path in re.findall(r"`([A-Z]\w+)` \(`([\w/]+\.py)`\)", section):
        assert name in {node.name for where, node, _ in classes() if where == path}
