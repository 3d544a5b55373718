"""Arrow tables of any release shape to `ReadTable`s on a common domain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from duckdb_anon.engine.arrow import plain, type_text
from duckdb_anon.engine.transport.column_coding import code_column
from duckdb_anon.engine.transport.hierarchy_io import labelled
from duckdb_anon.engine.transport.input_scan import InputTable
from duckdb_anon.kernels.cells.cells import Lists, Randomization, Ranges
from duckdb_anon.kernels.cells.table import ReadTable
from duckdb_anon.model.coded_table import Attribute, CodeArray, FloatArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import ColumnInfo
from duckdb_anon.model.hierarchy import NULL_LEAF, Hierarchy
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_formats import Contents


@dataclass(frozen=True)
class _Raw:
    """One column of one table before coding: what hands over the value arrays it contributes, and what else it has."""

    take: Callable[[], tuple[pa.Array, ...]]
    rest: dict[str, Any]
    slice: str = ""


def read_tables(
    function: str,
    tables: Sequence[InputTable],
    infos: Mapping[str, ColumnInfo],
    trees: Mapping[str, Hierarchy],
    literals: bool = False,
    contents: Sequence[Contents | None] = (),
) -> list[ReadTable]:
    """Code the columns of several tables together."""
    ordered = [_Ordered(table) for table in tables]
    spelled = {fold(name): name for name in infos}
    carried = list(contents) or [None] * len(tables)
    raws = [_raw_columns(table, trees, spelled, some) for table, some in zip(ordered, carried, strict=True)]
    coded: dict[str, dict[int, Ranges]] = {}
    for name in dict.fromkeys(name for raw in raws for name in raw):
        having = {k: raw[name] for k, raw in enumerate(raws) if name in raw}
        info, tree = infos.get(name, ColumnInfo(name)), trees.get(name)
        coded[name] = dict(zip(having, _coded(function, info, list(having.values()), tree, literals), strict=True))
    found = []
    for k, (table, known) in enumerate(zip(ordered, (some or Contents() for some in carried), strict=True)):
        columns = _blanked(table, {name: coded[name][k] for name in raws[k]}, known)
        found.append(ReadTable(len(table), columns, known, _numbers(function, table, known)))
    return found


def _blanked(table: _Ordered, columns: dict[str, Ranges], contents: Contents) -> dict[str, Ranges]:
    """The columns of a release, of which NULL stands for any value where cells were suppressed."""
    if not contents.blank or not len(table):
        return columns
    suppressed = {fold(name): number for name, number in table.field(contents.blank)[0].as_py().items()}
    for name, column in columns.items():
        number = suppressed.get(fold(name), 0)
        nulls = int((column.value_codes() == column.domain.null_code).sum()) if number and column.plain else 0
        if nulls:
            columns[name] = column.with_blanks(max(0.0, 1 - number / nulls))
    return columns


class _Ordered:
    """Columns of a table, rows as the table has them: DuckDB may list them in any order, which their numbers give."""

    def __init__(self, table: InputTable) -> None:
        tick()
        self.table, self.type = table, table.type
        number = table.field("_anon_rn").to_numpy(zero_copy_only=False)
        self.order = None if bool((number[1:] > number[:-1]).all()) else pa.array(np.argsort(number))

    def __len__(self) -> int:
        return len(self.table)

    def field(self, name: str) -> pa.Array:
        """One column; the table has it no more."""
        column = self.table.field(name)
        return column if self.order is None else column.take(self.order)


def _raw_columns(
    table: _Ordered, trees: Mapping[str, Hierarchy], spelled: Mapping[str, str], contents: Contents | None
) -> dict[str, _Raw]:
    """Columns by their name in the call: SQL ignores upper and lower case."""
    columns: dict[str, _Raw] = {}
    skipped = {"_anon_rn", *(contents.carriers if contents else ())}
    slices = contents.slices() if contents else {}
    channels = _channels(table, contents.channels) if contents and contents.channels else {}
    for name, kind in ((field.name, field.type) for field in table.type):
        tick()
        if name in skipped:
            continue
        column, is_nested = spelled.get(fold(name), name), pa.types.is_nested(kind)
        if fold(name) not in channels and not is_nested and not isinstance(kind, pa.BaseExtensionType):
            columns[column] = _Raw(partial(_taken, table, name), {})
            continue
        array = plain(table.field(name))
        if fold(name) in channels:
            p, domain = channels[fold(name)]
            columns[column] = _Raw(_given(array, domain), {"p": p})
        elif name in slices:
            for inner in array.type:
                columns[spelled.get(fold(inner.name), inner.name)] = _raw(plain(array.field(inner.name)), name)
        elif not pa.types.is_struct(array.type) or {f.name for f in array.type} == {"lower", "upper"}:
            columns[column] = _raw(array, "")
    return columns


def _taken(table: _Ordered, name: str) -> tuple[pa.Array, ...]:
    return (plain(table.field(name)),)


def _given(*arrays: pa.Array) -> Callable[[], tuple[pa.Array, ...]]:
    return lambda: arrays


def _channels(table: _Ordered, column: str) -> dict[str, tuple[float, pa.Array]]:
    """Probability and domain of each column that was randomized."""
    channels = table.field(column)
    channels = channels.filter(channels.is_valid())[:1]
    found = {}
    for i, field in enumerate(channels.type):
        if len(channels):
            channel = channels.field(i)
            found[fold(field.name)] = (channel.field("p")[0].as_py(), plain(channel.field("domain").flatten()))
    return found


def _numbers(function: str, table: _Ordered, contents: Contents) -> dict[str, FloatArray]:
    """The values of carriers, row by row."""
    numbers = {}
    weights = {weight.column: weight for weight in contents.weights}
    for name in contents.carriers:
        if name in (contents.channels, contents.blank, contents.count_error):
            continue
        array = plain(table.field(name))
        if name == contents.bucket:
            codes = array.dictionary_encode(null_encoding="encode").indices
            numbers[name] = np.unique(codes.to_numpy(zero_copy_only=False), return_inverse=True)[1].astype(np.float64)
        else:
            numbers[name] = pc.cast(array, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        if name not in (contents.source, contents.bucket) and np.isnan(numbers[name]).any():
            raise ColumnError(
                f"{function}: column {name} of the release contains NULL, so the weights of these rows are unknown"
            )
        if name in weights and len(numbers[name]):
            wrong = weights[name].wrong(numbers[name].min(), numbers[name].max())
            if wrong:
                raise ColumnError(f"{function}: {wrong}")
    return numbers


def types_of(table: InputTable) -> dict[str, str]:
    """DuckDB types of a table whose columns the planner did not see, as far as shapes go by them."""
    return {field.name: type_text(field.type) for field in table.type if field.name != "_anon_rn"}


def _raw(array: pa.Array, slice_name: str) -> _Raw:
    kind = array.type
    if pa.types.is_struct(kind):
        lower, upper = plain(array.field("lower")), plain(array.field("upper"))
        missing = array.is_null().to_numpy(zero_copy_only=False)
        return _Raw(_given(lower, upper), {"null": missing}, slice_name)
    if pa.types.is_map(kind):
        offsets = array.offsets.to_numpy().astype(np.int64)
        counts = pc.cast(array.items, pa.int64()).to_numpy(zero_copy_only=False)
        return _Raw(_given(plain(array.keys)), {"offsets": offsets, "counts": counts}, slice_name)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return _Raw(_given(plain(array.flatten())), {"offsets": offsets}, slice_name)
    return _Raw(_given(array), {}, slice_name)


def _coded(
    function: str, info: ColumnInfo, raws: Sequence[_Raw], tree: Hierarchy | None, literals: bool
) -> list[Ranges]:
    """The cells of one column, coded together over the tables that have it."""
    name, each = info.name, [raw.take() for raw in raws]
    arrays = [array for some in each for array in some]
    parts, ends = [len(some) for some in each], np.cumsum([len(array) for array in arrays])
    del each
    if tree is not None and len({array.type for array in arrays}) > 1:
        # nodes have labels: a number that is a leaf must meet the text that names its ancestor
        arrays = [labelled(function, name, array, tree) for array in arrays]
    values = _concatenated(function, name, arrays)
    del arrays
    tick()
    if tree is not None:
        codes, domain = _nodes(function, name, labelled(function, name, values, tree), tree, literals)
    else:
        attribute = code_column(
            function, name, values, "" if info.kind == "hierarchy" else info.kind, literals=literals
        )
        codes, domain = attribute.codes, attribute.shared()
    pieces = iter(np.split(codes, ends[:-1]))
    read = _of_codes if tree is None else _of_nodes
    return [read(raw, domain, list(islice(pieces, number))) for raw, number in zip(raws, parts, strict=True)]


def _of_codes(raw: _Raw, domain: Attribute, parts: Sequence[CodeArray]) -> Ranges:
    if "null" in raw.rest:
        anything = (parts[0] == domain.null_code) & ~raw.rest["null"]
        lower, upper = (np.where(anything, -1, ends).astype(np.int32) for ends in parts)
        return Ranges.of_ends(domain, lower, upper, slice=raw.slice)
    return _with_channel(raw, domain, parts)


def _with_channel(raw: _Raw, domain: Attribute, parts: Sequence[CodeArray]) -> Ranges:
    """Values, alone or in lists."""
    channel = Randomization(raw.rest["p"], parts[1]) if "p" in raw.rest else None
    values = Ranges.of_codes(domain, parts[0], slice=raw.slice, channel=channel)
    return Lists.of_members(values, **raw.rest) if "offsets" in raw.rest else values


def _of_nodes(raw: _Raw, domain: Attribute, parts: Sequence[CodeArray]) -> Ranges:
    """Nodes, alone or in lists; counts, and a column of nothing but leaves, are values."""
    leaves = [domain.tree()[0].leaf_of_node[nodes] for nodes in parts]
    if "counts" in raw.rest or ("offsets" not in raw.rest and (leaves[0] >= 0).all()):
        return _with_channel(raw, domain, [domain.code_of_leaf[leaf] for leaf in leaves])
    nodes = Ranges.of_nodes(domain, parts[0], slice=raw.slice)
    return Lists.of_members(nodes, **raw.rest) if "offsets" in raw.rest else nodes


def _nodes(function: str, name: str, values: pa.Array, tree: Hierarchy, literals: bool) -> tuple[CodeArray, Attribute]:
    """Node of each label, that of NULL where there is none, and the attribute of the leaves."""
    leaves = pa.array(tree.leaf_labels, pa.string())
    # a release alone has the leaf of NULL as its label
    encoded = values.dictionary_encode()
    labels = encoded.dictionary.cast(pa.string()).to_pylist()
    has_null = values.null_count > 0 or (NULL_LEAF not in tree.node_of_label and NULL_LEAF in labels)
    leaf_values = pa.concat_arrays([leaves, pa.nulls(int(has_null), pa.string())])
    domain = code_column(function, name, leaf_values, "hierarchy", tree, literals).shared()
    node_of_label = domain.tree()[0].node_of_label
    missing = [label for label in labels if label not in node_of_label]
    if missing:
        raise ColumnError(
            f"{function}: {len(missing)} value(s) of '{name}' are not nodes of hierarchy '{tree.name}'. Add a row "
            "for each value"
        )
    null_node = node_of_label.get(NULL_LEAF, 0)
    numbers = np.array([node_of_label[label] for label in labels] + [null_node], dtype=np.int32)
    nodes: CodeArray = numbers[pc.fill_null(encoded.indices, len(labels)).to_numpy(zero_copy_only=False)]
    return nodes, domain


def _concatenated(function: str, name: str, arrays: list[pa.Array]) -> pa.Array:
    types = {a.type for a in arrays if not pa.types.is_null(a.type)}
    try:
        if len(types) > 1:
            target = (
                pa.unify_schemas([pa.schema([("v", t)]) for t in types], promote_options="permissive").field(0).type
            )
            arrays = [a.cast(target) for a in arrays]
        elif types:
            target = next(iter(types))
            arrays = [a.cast(target) if pa.types.is_null(a.type) else a for a in arrays]
        return pa.concat_arrays(arrays)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ColumnError(
            f"{function}: column '{name}' has types that cannot be compared: {sorted(str(t) for t in types)}. Cells "
            "that another tool generalized are read by FROM read_generalized(original, release)"
        ) from error
