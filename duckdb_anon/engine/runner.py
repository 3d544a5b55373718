"""The execution half: arrow in, kernel, arrow out. Knows no DuckDB.

One function runs every method and report. It gets the planned call as JSON, the needed columns of each table, and the
hierarchies; it returns the struct of `result_encoding`. Errors meant for users travel as data, so that DuckDB shows
their text alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from duckdb_anon.engine.arrow import give_back
from duckdb_anon.engine.catalog.person_checks import check_persons
from duckdb_anon.engine.draws.queried_tables import queried_tables
from duckdb_anon.engine.transport.column_coding import canonical_order, code_column, reordered, value_texts
from duckdb_anon.engine.transport.hierarchy_io import read_tree
from duckdb_anon.engine.transport.input_scan import InputTable, Statement
from duckdb_anon.engine.transport.release_reader import read_tables, types_of
from duckdb_anon.engine.transport.result_encoding import (
    ReleaseEncoder,
    Result,
    encode_release,
    encode_rows,
    error_result,
    in_buckets,
    length,
)
from duckdb_anon.kernels import thread_pool
from duckdb_anon.kernels.cells.table import MeasureCall
from duckdb_anon.kernels.rng_streams import generator, random_order
from duckdb_anon.model import progress, released_columns
from duckdb_anon.model.coded_table import Attribute, CodedTable, IntArray
from duckdb_anon.model.errors import ColumnError, RequirementError, reported
from duckdb_anon.model.function_specs import ColumnInfo, ColumnPlan, Method, Params, Report, Roles
from duckdb_anon.model.hierarchy import Hierarchy
from duckdb_anon.model.release_formats import EDGES, GROUP, Contents, in_doubt, read, refuse
from duckdb_anon.model.released_columns import Whole as Numbers

ASKED_BY = "asked_by"
"""Argument of a method's call by which a measure names itself and the table where it runs the method."""


_WRITTEN: dict[str, Callable[..., Any]] = {kind.__name__: kind for kind in (Roles, ColumnInfo, ColumnPlan)}
"""Classes of objects that travel inside the planned SQL."""


def to_json(function: str, roles: Roles, params: Params, extra: Mapping[str, Any]) -> str:
    """Write a planned call as text that travels inside the planned SQL."""
    return json.dumps({"function": function, "roles": roles, "params": dict(params), **extra}, default=_encode)


def from_json(text: str) -> tuple[str, Roles, dict[str, Any], dict[str, Any]]:
    """Read a planned call back: function name, roles, parameters, the rest.

    >>> plan = ColumnPlan("a", released_columns.Struct, fields=(ColumnPlan("b", released_columns.Coded),))
    >>> from_json(to_json("f", Roles(qi=(ColumnInfo("a"),)), {"delta": Fraction(1, 3)}, {"layout": [plan]})) == (
    ...     "f", Roles(qi=(ColumnInfo("a"),)), {"delta": Fraction(1, 3)}, {"layout": [plan]}
    ... )
    True
    """
    call = json.loads(text, object_hook=_decode)
    return call.pop("function"), call.pop("roles"), call.pop("params"), call


def _encode(value: object) -> object:
    if type(value).__name__ in _WRITTEN:
        return {"_anon_class": type(value).__name__, **vars(value)}
    if isinstance(value, Fraction):
        return {"_anon_fraction": str(value)}
    return {"_anon_cells": value.__name__} if isinstance(value, type) else str(value)


def _decode(value: dict[str, Any]) -> Any:
    if "_anon_fraction" in value:
        return Fraction(value["_anon_fraction"])
    if "_anon_cells" in value:
        return getattr(released_columns, value["_anon_cells"])
    if "_anon_class" in value:
        make = _WRITTEN[value.pop("_anon_class")]
        return make(**{name: tuple(item) if isinstance(item, list) else item for name, item in value.items()})
    return value


def run_call(
    entry: Method | Report,
    call: str,
    rows_of_tables: Callable[[], Sequence[InputTable]],
    trees: Mapping[str, pa.Array],
    statement: Statement = (0, 0, 0),
) -> pa.Array:
    """Run one planned call; return a one-element struct array of type `RETURN_TYPE`."""
    _, roles, params, extra = from_json(call)
    try:
        with progress.running(entry.name), thread_pool.allowed(extra.get("threads")):
            tables = rows_of_tables()
            forest = {name: read_tree(entry.name, name, rows.flatten()) for name, rows in trees.items()}
            if isinstance(entry, Method):
                if extra.get(ASKED_BY) and len(tables[0]) == 0:
                    raise RequirementError(f"{extra[ASKED_BY]} is empty. There is no row to run {entry.name} on")
                result, rows = _release(entry, roles, params, extra, tables[0], forest)
            else:
                result, rows = _report(entry, roles, params, tables, forest, {**extra, "tree_rows": trees})
            done = result.to_arrow(entry.name, rows, statement)
            give_back()
            return done
    except Exception as error:
        return error_result(reported(entry.name, error))


def _release(
    entry: Method,
    roles: Roles,
    params: Params,
    extra: Mapping[str, Any],
    rows: InputTable,
    trees: Mapping[str, Hierarchy],
) -> tuple[Result, int]:
    """Code the table, run the method, and encode what it released; each of them goes as soon as the next is made."""

    def read() -> tuple[CodedTable, IntArray]:
        seeded = params["seed"] is not None
        table, source_row = coded_table(entry.name, roles, rows, trees, extra["conditions"], canonical=seeded)
        give_back()
        return table, source_row

    return run_method(entry, params, read, extra["layout"])


def run_method(
    entry: Method,
    params: Params,
    read: Callable[[], tuple[CodedTable, IntArray]],
    layout: Sequence[ColumnPlan],
) -> tuple[Result, int]:
    """What a method releases of a coded table, encoded, and the number of its rows."""
    table, source_row = read()
    check_persons(entry, table.person)
    rng = generator(params["seed"])
    cells = dict(entry.release(table, params, rng))
    names = {plan.name for plan in layout}
    groups = entry.groups(table, params) if entry.groups is not None and GROUP.key in names else None
    progress.say("writing")
    persons = () if table.person is None else (table.person,)
    attributes = {
        attribute.name: replace(attribute, codes=attribute.codes[:0].copy())
        for attribute in (*table.qi, *table.sensitive, *persons)
    }
    del table
    count = length(next(iter(cells.values())))
    if EDGES.key in names:
        cells[EDGES.key] = Numbers(np.full(count, params[EDGES.word], dtype=np.int64))
    if groups is not None:
        cells[GROUP.key] = Numbers(groups)
    encoder = ReleaseEncoder(attributes, source_row, in_buckets(random_order(rng, count), cells))
    return encode_release(layout, cells, encoder, entry.name), count


def _report(
    entry: Report,
    roles: Roles,
    params: Params,
    tables: Sequence[InputTable],
    trees: Mapping[str, Hierarchy],
    extra: Mapping[str, Any],
) -> tuple[Result, int]:
    rng = generator(params["seed"])
    coded: CodedTable | None = None
    if not entry.tables:
        answer = entry.compute([], params, rng)
    elif entry.reads == "coded":
        seeded, conditions = params["seed"] is not None, extra.get("conditions", ())
        coded, _ = coded_table(entry.name, roles, tables[0], trees, conditions, canonical=seeded)
        check_persons(entry, coded.person)
        answer = entry.compute([coded], params, rng)
    else:
        infos = {info.name: info for info in (*roles.coded, *roles.keep)}
        of_column = {name: trees[info.hierarchy] for name, info in infos.items() if info.hierarchy}
        contents = _contents(entry, roles, params, tables, extra)
        coded_too = [k for k, name in enumerate(params["read"]) if name not in entry.queried]
        some, their = [tables[k] for k in coded_too], [contents[k] for k in coded_too]
        found = read_tables(entry.name, some, infos, of_column, entry.literals, their)
        give_back()
        if roles.person is not None:
            labelled = found[entry.tables.index(entry.labelled or entry.tables[0])]
            check_persons(entry, labelled.attribute(roles.person.name))
        read_by_name = dict(zip([params["read"][k] for k in coded_too], found, strict=True))
        call = MeasureCall(read_by_name, roles, params, rng)
        if entry.queried:
            types = [seen or types_of(table) for seen, table in zip(extra["types"], tables, strict=True)]
            given = zip(params["tables"], types, tables, strict=True)
            by_name = dict(zip(params["read"], given, strict=True))
            with queried_tables(by_name, entry.queried, roles, extra["tree_rows"], extra["threads"]) as queried:
                answer = entry.compute(replace(call, queried=queried))
        else:
            answer = entry.compute(call)
    columns = entry.columns(answer)
    if coded is not None:
        codes = [name for name, kind in entry.returns.items() if kind == "CODE"]
        columns = {**columns, **{name: _texts(coded, columns["attribute"], columns[name]) for name in codes}}
    return encode_rows(entry.returns, columns), len(columns[next(iter(entry.returns))])


def _texts(table: CodedTable, attributes: Sequence[str], codes: Sequence[int]) -> list[str | None]:
    """The texts of codes, each of an attribute of its own."""
    listed = {attribute.name: value_texts(attribute).to_pylist() for attribute in table.qi + table.sensitive}
    return [listed[name][code] for name, code in zip(attributes, codes, strict=True)]


def _contents(
    entry: Report, roles: Roles, params: Params, tables: Sequence[InputTable], extra: Mapping[str, Any]
) -> list[Contents | None]:
    """What each table carries, None for the original of the others."""
    types = [seen or types_of(table) for seen, table in zip(extra["types"], tables, strict=True)]
    labelled_table = entry.labelled or (entry.tables[0] if len(tables) > 1 else "original")
    position = entry.tables.index(labelled_table) if labelled_table in entry.tables else None
    # of an original that the planner did not see only the columns that were read are known
    original = types[position] if position is not None and extra["types"][position] is not None else None
    labelled = [*extra["labelled"], *(types[position] if position is not None else ())]
    found: list[Contents | None] = []
    for k, (columns, name) in enumerate(zip(types, params["tables"], strict=True)):
        if k == position:
            found.append(None)
            continue
        contents = read(
            columns,
            original,
            labelled=labelled,
            sensitive=[info.name for info in roles.sensitive],
            trees=roles.trees(),
            table=name,
            function=entry.name,
        )
        refuse(entry.name, name, contents, entry.answers)
        doubtful = [name for name in contents.carriers if name not in (contents.channels, contents.source)]
        if position is None and extra["types"][k] is None and doubtful:
            raise ColumnError(f"{entry.name}: {doubtful[0]}{in_doubt(name)}")
        found.append(contents)
    return found


def coded_table(
    function: str,
    roles: Roles,
    rows: InputTable,
    trees: Mapping[str, Hierarchy],
    conditions: Sequence[str] = (),
    *,
    canonical: bool,
) -> tuple[CodedTable, IntArray]:
    """Code one table; with `canonical` in the order of codes, so that what a seed draws does not depend on the scan."""
    if len(rows) == 0:
        raise RequirementError(f"{function}: the table is empty. Give a table with rows")
    infos = roles.coded

    def numbers() -> IntArray:
        array: IntArray = rows.field("rn").to_numpy(zero_copy_only=False)
        return array

    def coded(k: int) -> Attribute:
        tree = trees.get(infos[k].hierarchy or "")
        return code_column(function, infos[k].name, rows.field(f"c{k}"), infos[k].kind, tree)

    work: list[Callable[[], Any]] = [numbers, *(partial(coded, k) for k in range(len(infos)))]
    source_row, *attributes = thread_pool.parallel_map(lambda do: do(), work)
    truths = [code_column(function, name, rows.field(f"x{k}"), "ordered") for k, name in enumerate(conditions)]
    if canonical or not bool((np.diff(source_row) > 0).all()):
        order = canonical_order(attributes, source_row) if canonical else np.argsort(source_row, kind="stable")
        attributes, truths = reordered(attributes, order), reordered(truths, order)
        source_row = source_row[order]
    return by_role(roles, attributes, {truth.name: truth for truth in truths}), source_row


def by_role(roles: Roles, attributes: Sequence[Attribute], other: Mapping[str, Attribute]) -> CodedTable:
    """The table of some attributes, given in the order of the roles."""
    q, s = len(roles.qi), len(roles.sensitive)
    person = attributes[q + s] if roles.person else None
    rows = len(attributes[0].codes)
    return CodedTable(rows, tuple(attributes[:q]), tuple(attributes[q : q + s]), person, dict(other))
