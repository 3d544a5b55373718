"""Hierarchy tables (a leaf a row: leaf, its ancestors, root) to hierarchies, and values to their leaves."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckdb_anon.engine.arrow import by_duckdb, steps, type_text
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.coded_table import CodeArray
from duckdb_anon.model.errors import ColumnError, ParameterError
from duckdb_anon.model.hierarchy import NULL_LEAF, Hierarchy


def read_tree(function: str, name: str, levels: Sequence[Any]) -> Hierarchy:
    """Read a hierarchy table: Arrow columns from the leaf to the root, one row a leaf."""
    columns = [pc.cast(level, pa.string()).to_pylist() for level in levels]
    if not columns or not columns[0]:
        raise ParameterError(f"{function}: hierarchy '{name}' has no rows. It has a row for each leaf. Add rows")
    if any(None in column for column in columns):
        raise ParameterError(f"{function}: hierarchy '{name}' holds NULL. Pad short branches with their last node")
    paths = tuple(sorted({tuple(reversed(row)) for row in zip(*columns, strict=True)}))
    if len({path[0] for path in paths}) != 1:
        raise ParameterError(
            f"{function}: hierarchy '{name}' has {len({p[0] for p in paths})} roots. Its last column must be constant"
        )
    if len({path[-1] for path in paths}) != len(paths):
        raise ParameterError(
            f"{function}: hierarchy '{name}' names a leaf twice with different ancestors. A leaf has one row. Keep one"
        )
    tree = Hierarchy.of_paths(paths, name)
    grouping = int(np.isin(tree.node_of_leaf, tree.parent).sum())
    if grouping:
        raise ParameterError(
            f"{function}: {grouping} leaves of hierarchy '{name}' have the name of a group of several leaves"
            ". Labels are unique. Rename the group"
        )
    twice = len(tree.labels) - len(set(tree.labels))
    if twice:
        raise ParameterError(
            f"{function}: hierarchy '{name}' has {twice} label(s) of more than one node. Labels are unique. Rename "
            "the nodes"
        )
    return tree


def labelled(function: str, column: str, array: pa.Array, tree: Hierarchy) -> pa.Array:
    """Values as labels of the tree's leaves: texts are labels, others are equal to the label that reads as they do."""
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
        return array
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        raise ColumnError(
            f"{function}: column '{column}' is BLOB, which a hierarchy's labels cannot name. Cast it to VARCHAR"
        )
    if pa.types.is_nested(kind) or pa.types.is_interval(kind):
        return array
    leaf_of_value: dict[object, str] = {}
    for label, value in zip(tree.leaf_labels, _read_as(tree.leaf_labels, kind), strict=True):
        if value is not None and leaf_of_value.setdefault(value, label) != label:
            raise ColumnError(
                f"{function}: two leaves of hierarchy '{tree.name}' are one value of '{column}' ({kind}). Keep one"
            )
    encoded = array.dictionary_encode()
    labels = pa.array([leaf_of_value.get(value) for value in _comparable(encoded.dictionary)], pa.string())
    return pc.take(pc.coalesce(labels, pc.cast(encoded.dictionary, pa.string())), encoded.indices)


def _read_as(labels: Sequence[str], kind: pa.DataType) -> list[object]:
    """The values of a type that labels read as, None for one that is none."""
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind):  # 1.5 is no integer, though a cast makes it one
        return [_decimal(label) for label in labels]
    return _comparable(by_duckdb(pa.array(labels, pa.string()), f"try_cast(v as {type_text(kind)})"))


def _decimal(label: str) -> Decimal | None:
    try:
        return Decimal(label) if Decimal(label).is_finite() else None
    except InvalidOperation:
        return None


def _comparable(values: pa.Array) -> list[object]:
    """Values, of which NaN is one."""
    return ["nan" if value != value else value for value in steps(values).to_pylist()]


def _remedy(column: str, tree: Hierarchy, missing: Sequence[str]) -> str:
    """How to find the values that a hierarchy misses; an error never quotes values of the original."""
    stripped = {label.strip() for label in tree.leaf_labels}
    blanks = sum(value.strip() in stripped for value in missing)
    if blanks:
        return f"{blanks} of them differ from a label by blanks alone, which trim() removes"
    return (
        f"such as {tree.leaf_labels[0]!r}. To list them: SELECT DISTINCT {ident(column)} of the table that are not "
        f"among the first column of '{tree.name}'. Add a row for each value"
    )


def tree_leaves(
    function: str, column: str, tree: Hierarchy, labels: list[str], has_null: bool
) -> tuple[Hierarchy, CodeArray]:
    """The tree, with a leaf for NULL when `has_null`, and the leaf of each value (NULL has the last code)."""
    hierarchy = tree.with_null() if has_null else tree
    leaf_number = {label: leaf for leaf, label in enumerate(hierarchy.leaf_labels)}
    missing = [label for label in labels if label not in leaf_number]
    if missing:
        raise ColumnError(
            f"{function}: {len(missing)} distinct value(s) of '{column}' are not leaves (first column) of hierarchy "
            f"'{tree.name}', {_remedy(column, tree, missing)}"
        )
    if has_null and NULL_LEAF in hierarchy.labels[:-1]:
        raise ColumnError(
            f"{function}: column '{column}' has NULLs, which are released as '{NULL_LEAF}', and a node of hierarchy "
            f"'{tree.name}' has that name. Rename the node"
        )
    leaves = [leaf_number[label] for label in labels]
    if has_null:
        leaves.append(hierarchy.leaves - 1)
    return hierarchy, np.array(leaves, dtype=np.int32)
