"""Arrow columns to codes: sorted distinct values, vectorised, independent of row order.

Cost: one hash pass a column plus a sort of its distinct values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckdb_anon.engine.arrow import as_numbers, by_duckdb, in_one_piece, plain, steps, type_text
from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.engine.transport.hierarchy_io import labelled, tree_leaves
from duckdb_anon.engine.transport.number_formatting import scale_of
from duckdb_anon.kernels.array_ops import gathered
from duckdb_anon.kernels.row_keys import joint, sort
from duckdb_anon.kernels.thread_pool import parallel_map
from duckdb_anon.model.coded_table import FARTHEST, Attribute, FloatArray, IntArray, first_rows
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import ColumnInfo
from duckdb_anon.model.hierarchy import Hierarchy
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_formats.duckdb_types import is_number, kind_of_type, spread_of

_KEY_BITS, _GAPS = 62, 1


def code_column(
    function: str,
    name: str,
    array: pa.Array,
    kind: Literal["ordered", "nominal", "hierarchy", ""],
    tree: Hierarchy | None = None,
    literals: bool = False,
) -> Attribute:
    """Code one column; kind '' is decided by the arrow type; `literals` adds the SQL text of each value."""
    tick()
    if tree is not None and kind == "hierarchy":
        array = labelled(function, name, plain(array), tree)
    else:
        array = in_one_piece(array) if pa.types.is_dictionary(array.type) else plain(array)
    if pa.types.is_nested(array.type) or pa.types.is_interval(array.type):
        raise ColumnError(
            f"{function}: column '{name}' is {array.type}. Quasi-identifiers and sensitive columns are numbers, dates, "
            "texts, booleans or enums"
        )
    text = type_text(array.type)
    orderable = kind_of_type(text) == "ordered"
    if kind == "":
        kind = "ordered" if orderable else "nominal"
    if kind == "ordered" and not orderable and not pa.types.is_null(array.type):
        raise ColumnError(
            f"{function}: column '{name}' is {text} and has no order. Name it in categorical := [{literal(name)}]"
        )
    encoded, declared = _encoded(array)
    tick()
    values = encoded.dictionary
    order, special, below = _sorted_values(values, orderable)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    null_code = len(order) if encoded.null_count else -1
    places = pc.fill_null(encoded.indices, len(order)) if encoded.null_count else encoded.indices
    codes = gathered(np.append(rank, np.int32(len(order))), places.to_numpy(zero_copy_only=False))
    domain = len(order) + (null_code >= 0)
    special_from = len(order) - special
    scale, lowest = None, -1
    if kind == "ordered":
        scale = scale_of(values.take(pa.array(order[:special_from])))
        positions = _positions(values, order, special_from, domain)
        lowest = special_from if below else -1
    else:
        positions = np.arange(domain, dtype=np.float64)
        special_from = len(order)
    first_row = first_rows(codes, domain)
    values = values.take(pa.array(order))
    attribute = Attribute(
        name, kind, codes, positions, special_from, null_code, first_row, declared=tuple(sorted(declared)), scale=scale,
        minus_infinity=lowest, discrete=spread_of(text) != "continuous", values=values,
    )  # fmt: skip
    if literals:
        attribute = replace(attribute, literals=sql_literals(attribute))
    if kind != "hierarchy":
        return attribute
    if tree is None:
        raise ColumnError(
            f"{function}: column '{name}' has no hierarchy table. Name it in hierarchies := "
            f"{{{literal(name)}: 'its_table'}}"
        )
    labels = values.cast(pa.string()).to_pylist()
    hierarchy, leaf_of_code = tree_leaves(function, name, tree, labels, null_code >= 0)
    unseen = tuple(sorted(set(tree.leaf_labels) - set(labels)))
    return replace(attribute, hierarchy=hierarchy, leaf_of_code=leaf_of_code, declared=unseen)


def code_counted(
    function: str, info: ColumnInfo, values: pa.Array, rows: IntArray, tree: Hierarchy | None
) -> Attribute:
    """Code the distinct values of a column, one row a value."""
    attribute = code_column(function, info.name, values, info.kind, tree)
    counts = np.zeros(attribute.domain, dtype=np.int64)
    np.add.at(counts, attribute.codes, rows)
    return replace(attribute, whole_counts=counts)


def value_texts(attribute: Attribute) -> pa.Array:
    """The text of each value by code, which DuckDB casts back to the value; then those that no row has."""
    values, null = attribute.values, [None] * (attribute.null_code >= 0)
    kind = values.type
    # Arrow writes these otherwise than DuckDB reads them
    if pa.types.is_temporal(kind) or pa.types.is_floating(kind) or pa.types.is_binary(kind):
        values = by_duckdb(values, "v::varchar")
    return pa.concat_arrays([values.cast(pa.string()), pa.array([*null, *attribute.declared], pa.string())])


def sql_literals(attribute: Attribute) -> tuple[str, ...]:
    """SQL literal of each value: numbers and booleans bare, everything else quoted."""
    kind = attribute.values.type
    bare = is_number(type_text(kind)) or pa.types.is_boolean(kind)
    texts = value_texts(attribute).to_pylist()[: attribute.size]
    finite = {"inf", "-inf", "nan"}.isdisjoint
    return tuple("NULL" if t is None else t if bare and finite((t,)) else literal(t) for t in texts)


def _encoded(array: pa.Array) -> tuple[pa.DictionaryArray, list[str]]:
    """Each value that occurs once with the place of each row's, and the values that an enum declares and no row has."""
    if not pa.types.is_dictionary(array.type):
        return array.dictionary_encode(), []
    occur = pc.unique(array.indices.drop_null()).to_numpy()
    if len(occur) == len(array.dictionary):
        return array, []
    unused = np.setdiff1d(np.arange(len(array.dictionary)), occur)
    return array.dictionary_decode().dictionary_encode(), array.dictionary.take(pa.array(unused)).to_pylist()


def _sorted_values(values: pa.Array, orderable: bool) -> tuple[IntArray, int, bool]:
    """Order of the distinct values, finite ones first, the number of others, and whether -infinity leads those."""
    if orderable and pa.types.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
        infinite = ~np.isfinite(numbers)
        return np.lexsort((numbers, infinite)).astype(np.int64), int(infinite.sum()), bool(np.isneginf(numbers).any())
    if pa.types.is_date32(values.type) or pa.types.is_timestamp(values.type):
        # DuckDB's 'infinity' and '-infinity' are the largest number and its negative
        numbers = steps(values).to_numpy(zero_copy_only=False)
        greatest = np.iinfo(numbers.dtype).max
        infinite = np.isin(numbers, [greatest, -greatest])
        below = bool((numbers == -greatest).any())
        return np.lexsort((numbers, infinite)).astype(np.int64), int(infinite.sum()), below
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if pa.types.is_null(values.type):
        return np.zeros(0, dtype=np.int64), 0, False
    return pc.sort_indices(values).to_numpy().astype(np.int64), 0, False


def _positions(values: pa.Array, order: IntArray, special_from: int, domain: int) -> FloatArray:
    """Values as numbers; what is not finite, and NULL, lies one whole range apart beyond the maximum."""
    positions = np.empty(domain, dtype=np.float64)
    if special_from:
        finite = np.clip(as_numbers(values.take(pa.array(order[:special_from]))), -FARTHEST, FARTHEST)
        positions[:special_from] = finite
        step = float(finite[-1] - finite[0]) or 1.0
        top = float(finite[-1])
    else:
        top, step = 0.0, 1.0
    beyond = np.arange(1, domain - special_from + 1, dtype=np.float64)
    positions[special_from:] = top + step * beyond
    return positions


def canonical_order(attributes: list[Attribute], source_row: IntArray) -> IntArray:
    """Row order by the codes of all attributes, so that a seeded run does not depend on the scan order."""
    if not attributes:
        return np.argsort(source_row, kind="stable")
    tick()
    key = joint([attribute.codes for attribute in attributes], [attribute.size for attribute in attributes])
    bits = int(source_row.max(initial=0)).bit_length()
    if int(key.max(initial=0)).bit_length() + bits > _KEY_BITS or bits > _GAPS + len(key).bit_length():
        return np.lexsort((source_row, key)).astype(np.int64)
    # one sort of (key, row) packed into one number, several times faster than one of places
    position = np.empty(1 << bits, dtype=np.int32 if len(key) < 2**31 else np.int64)
    position[source_row] = np.arange(len(key))
    key <<= bits
    key |= source_row
    sort(key)
    key &= (1 << bits) - 1
    return position[key].astype(np.int64)


def reordered(attributes: Sequence[Attribute], order: IntArray) -> list[Attribute]:
    """The attributes with their rows in another order."""
    return parallel_map(lambda attribute: _in_order(attribute, order), attributes)


def _in_order(attribute: Attribute, order: IntArray) -> Attribute:
    tick()
    return attribute.with_codes(attribute.codes[order])
