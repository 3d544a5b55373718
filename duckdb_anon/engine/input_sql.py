"""The SQL around one kernel: numbered source rows, passed to Python vector by vector, and the call of the kernel."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from duckdb_anon.engine.catalog import sensitive_coarsening as edges
from duckdb_anon.engine.catalog.catalog import Relation
from duckdb_anon.engine.catalog.collation import check_types, guard
from duckdb_anon.engine.planned_tables import IS_CHECKED
from duckdb_anon.engine.planning_context import Context
from duckdb_anon.engine.runner import ASKED_BY, to_json
from duckdb_anon.engine.sql_quoting import CALLER, STATEMENT, ident, literal
from duckdb_anon.model.function_specs import (
    ColumnInfo,
    ColumnPlan,
    Method,
    Params,
    Report,
    Roles,
)
from duckdb_anon.model.release_formats.duckdb_types import is_enum

_OF_BYTES = re.compile(r"\b(?:BIT|BIGNUM)(?=[],)[]|$)")
NUMBER = "_anon_rn"
"""Column that numbers the rows of a source."""
_ON_ONE_THREAD = "(from _anon_src qualify row_number() over () > 0)"
"""The source. One thread numbers its rows, in order, which is what this is for: DuckDB converts rows
for Python under the GIL, and two threads that wait for each other at every vector take half as long again as one."""


def declaring(layout: Iterable[ColumnPlan]) -> set[str]:
    """Columns of which a release may show values that their type declares and no row has."""
    return {plan.column or plan.name for plan in layout if plan.declared_type}


def source_column(column: str, relation: Relation, kept_enums: Collection[str]) -> str:
    """A column of the source; an enum as text, for its type would reveal values that no record has."""
    if is_enum(relation.columns.get(column, "")) and column not in kept_enums:
        return f"{ident(column)}::varchar as {ident(column)}"
    return ident(column)


def as_texts(kind: str) -> str:
    """The cast of values that Arrow carries as bytes, which say nothing of their text."""
    return f"::{_OF_BYTES.sub('VARCHAR', kind)}" if _OF_BYTES.search(kind) else ""


def run_ctes(
    entry: Method | Report,
    context: Context,
    relation: Relation,
    roles: Roles,
    params: Params,
    kept_enums: Collection[str] = (),
    layout: Sequence[ColumnPlan] = (),
) -> str:
    """CTEs `_anon_src` (needed columns, numbered) and `_anon_run` (the kernel's answer) for one coded table."""
    coded = roles.coded
    names = dict.fromkeys(info.name for info in coded + roles.keep)
    needed = "".join(f"{source_column(n, relation, kept_enums)}, " for n in names)
    check_types(entry.name, coded)
    row = "".join(f", c{k}: {ident(info.name)}{as_texts(info.type)}" for k, info in enumerate(coded))
    conditions_of = getattr(entry, "conditions", None)
    conditions = conditions_of(roles, params) if conditions_of else {}
    for k, condition in enumerate(conditions.values()):
        needed += f"{truth_of(condition)} as _anon_x{k}, "
        row += f", x{k}: _anon_x{k}"
    trees, tree_sql = trees_of(context, coded)
    info = {"trees": trees, "conditions": list(conditions), "layout": layout}
    requested: dict[str, object] = {}
    if context.arguments.get(ASKED_BY) is not None:
        requested[ASKED_BY] = context.arguments[ASKED_BY]
    call = to_json(entry.name, roles, params, {**info, **requested, **context.catalog.settings()})
    number, source = f"row_number() over () - 1 as {NUMBER}", relation.rows
    if edges.are_joined(params):
        source, number = edges.SOURCE, NUMBER
    guarded = guard(entry.name, coded, "_anon_src")
    rows = buffered_rows("_anon_input", f"{{rn: {NUMBER}{row}}}", _ON_ONE_THREAD, guarded)
    return (
        f"_anon_src as materialized (select {needed}{number} from {source}),\n"
        f"{open_buffer('_anon_input')},\n"
        f"{run_cte(call, f', t0: {rows}{tree_sql}')}"
    )


def run_cte(call: str, given: str = "") -> str:
    """CTE `_anon_run`, the runner's answer to a planned call; `given` are further fields."""
    arguments = f"call: {literal(call)}, {CALLER}, {STATEMENT}, {IS_CHECKED}{given}"
    return f"_anon_run as not materialized (select _anon_run({{{arguments}}}) as r)"


def truth_of(condition: str) -> str:
    """SQL of whether a condition holds, as 1 or 0."""
    return f"coalesce((\n{condition}\n), false)::integer"


def open_buffer(name: str) -> str:
    """CTE that opens a buffer and has its number."""
    return f"{name} as materialized (select _anon_open({{{CALLER}, {STATEMENT}, {IS_CHECKED}}}) as _buffer)"


def buffered_rows(buffer: str, row: str, source: str, guarded: str = "true") -> str:
    """Subquery that puts the rows of a table into a buffer; an empty list has the type of a row."""
    put = f"sum(_anon_put({{buffer: if({guarded}, (from {buffer}), null), row: {row}}}))"
    return f"(select {{buffer: (from {buffer}), rows: {put}, row: list({row}) filter (where false)}} from {source})"


def trees_of(context: Context, infos: Iterable[ColumnInfo]) -> tuple[list[str], str]:
    """Names of the hierarchy tables of some columns, and the fields of the call that list their rows."""
    named = {info.hierarchy: info for info in infos if info.hierarchy}
    sql = "".join(f", h{k}: {context.tree_sql(info)}" for k, info in enumerate(named.values()))
    return [str(name) for name in named], sql
