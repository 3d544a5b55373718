"""Boxes: generalized cells, each attribute independent and uniform inside its own.

STRUCT(lower T, upper T) is an interval of an ordered attribute, T[] a set of nominal values, a label of the
attribute's hierarchy all leaves below that node (uniform overlap: Zhang et al. 2007; Xiao and Tao 2006). The type
does not tell a label from a value: a text column with a hierarchy is read as labels, of which leaves are some.
"""

from __future__ import annotations

from duckdb_anon.rewrite.intervals import IntervalPart
from duckdb_anon.rewrite.lists import NodePart, SetPart
from duckdb_anon.rewrite.parts import Part
from duckdb_anon.rewrite.reading import Reading, field_of_row
from duckdb_anon.rewrite.schema import TableInfo, box_type, list_type


def claim(reading: Reading) -> None:
    """Claim intervals, sets and hierarchy nodes."""
    for name, kind in list(reading.unclaimed.items()):
        part = part_of(reading, name, kind, field_of_row(name))
        if part is not None:
            del reading.unclaimed[name]
            reading.parts.append(part)


def part_of(reading: Reading, name: str, kind: str, key: str) -> Part | None:
    """Give the part of a generalized cell; None for a column that holds values."""
    own = reading.original_type(name)
    stem, columns = f"_{name.lower()}", (name.lower(),)
    if not own:
        return None
    inside = box_type(kind)
    if inside is not None and box_type(own) is None:
        return IntervalPart(stem, columns, key, reading.release, kind=inside)
    if list_type(kind) is not None and list_type(own) is None:
        if role_of(reading.original, name) == "sensitive":
            # a set of sensitive items is what a person has, all of them, not what one value may be
            return None
        return SetPart(stem, columns, key, reading.release)
    tree = hierarchy_of(reading.original, name)
    if tree is not None and kind.upper() == "VARCHAR":
        return NodePart(stem, columns, key, reading.release, hierarchy=tree, kind=own)
    return None


def role_of(original: TableInfo, column: str) -> str:
    """The role of a column, '' if it has none."""
    folded = {name.lower(): role for name, role in original.roles.items()}
    return folded.get(column.lower(), "")


def hierarchy_of(original: TableInfo, column: str) -> TableInfo | None:
    """The hierarchy table of a column, if it has one."""
    folded = {name.lower(): tree for name, tree in original.hierarchies.items()}
    return folded.get(column.lower())
