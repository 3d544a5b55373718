"""Plans of reports: tables as feeds of what a measure reads, and a SELECT over the columns it answers with."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from duckdb_anon.engine.catalog import Relation
from duckdb_anon.engine.collation import check_types, guard
from duckdb_anon.engine.column_roles import (
    column_of,
    require_free_names,
    with_labels_of,
)
from duckdb_anon.engine.person_checks import check_described
from duckdb_anon.engine.planning_context import Context
from duckdb_anon.engine.column_roles import with_labels_of
from duckdb_anon.engine.result_sql import report_select
from duckdb_anon.engine.runner import to_json
from duckdb_anon.engine.sql_quoting import ASKER, ident, literal, polled
from duckdb_anon.engine.statement import fed_table, opened_feed, run_ctes, trees_of
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import (
    ColumnInfo,
    Report,
    Roles,
)
from duckdb_anon.model.identifier_case import fold, folded_sql
from duckdb_anon.model.release_comment import is_release
from duckdb_anon.model.release_formats import Content, carriers, may_carry, read
from duckdb_anon.model.release_formats.duckdb_types import is_nested, struct_fields


def plan_report(entry: Report, context: Context, params: dict[str, Any]) -> str:
    """SQL of a report: one coded table, or several tables of any shape.

    Args:
        entry: the function that is called.
        context: what the planner can ask.
        params: checked parameters of the call.
    """
    if not entry.tables:
        call = to_json(entry.name, Roles(), params, {"trees": [], **context.catalog.settings()})
        start = f"_anon_start({{call: {literal(call)}, {ASKER}}})"
        run = f"_anon_run as not materialized {polled(start, '_anon_run')}"
        return f"with {run},\n{report_select(entry.returns, ())}"
    relation = context.relation(entry.tables[0])
    if entry.reads == "coded":
        roles = context.roles(relation, needs=entry.needs)
        if roles.person is None:
            check_described(entry, relation)
        return (
            f"with {run_ctes(entry, context, relation, roles, params, relation.columns)},\n"
            f"{report_select(entry.returns, roles.qi + roles.sensitive)}"
        )
    relations = [relation, *(context.relation(name) for name in entry.tables[1:])]
    labelled = relations[entry.tables.index(entry.labelled)] if entry.labelled else relation
    if not is_release(labelled.comment):
        labelled = with_labels_of(labelled, [r for r in relations if r is not labelled])
    flat = context.flat(labelled)
    roles = context.roles(flat, needs=entry.needs, nested=True)
    # nested columns that are released as they are have no values to compare
    roles = replace(roles, keep=tuple(info for info in roles.keep if not is_nested(info.type)))
    _require_plain_person(entry.name, labelled, roles)
    infos = roles.qi + roles.sensitive + roles.keep + ((roles.person,) if roles.person else ())
    read = [*entry.tables, *(name for name in entry.optional if context.arguments.get(name) is not None)]
    relations += [context.relation(name) for name in read[len(relations) :]]
    for other in relations if roles.person is None else ():
        check_described(entry, other)
    if entry.literals and not is_release(labelled.comment):
        # a query names values: one that the release shows as something else would be answered for certain and wrong
        for other in relations:
            if other is not relation and other.given != labelled.given:
                context.require_known(labelled, other, {i.name: i.hierarchy for i in infos if i.hierarchy})
    for other in relations[1:]:
        require_free_names(entry.name, other)
    for name, select in (entry.further(context, roles, params) if entry.further else {}).items():
        relations.append(Relation(select, f"{select} as _anon_given", {}, {}, text=select))
        read.append(name)
    trees, tree_sql = trees_of(context, infos)
    params = {**params, "tables": [r.text for r in relations], "read": read}
    wanted = {info.name for info in infos}
    if params.get("columns") is not None:
        # columns named for their own sake need no role
        params["columns"] = [column_of(entry.name, flat, name) for name in params["columns"]]
        wanted |= set(params["columns"])
    if not wanted:
        raise ColumnError(
            f"{entry.name}: no columns to compare in {relation.given}; name them in columns := [...] or label them: "
            "COMMENT ON COLUMN ... IS 'anon: quasi'"
        )
    types = [relation.columns if relation.visible else None for relation in relations]
    own = wanted | set(roles.identifier)  # columns with a role are the original's, read or not
    extra = {"trees": trees, "types": types, "labelled": sorted(own), **context.catalog.settings()}
    call = to_json(entry.name, roles, params, extra)
    feeds = "".join(f"{opened_feed(f'_anon_fed{k}')},\n" for k in range(len(relations)))
    original = labelled if len(entry.tables) > 1 and labelled.visible else None
    fed = ""
    for k, other in enumerate(relations):
        slices = {} if other.given == labelled.given and original else _slices(entry.name, other, original, own)
        fed += f", t{k}: {_fed(entry.name, f'_anon_fed{k}', other, wanted, slices)}"
    start = f"_anon_start({{call: {literal(call)}, {ASKER}{fed}{tree_sql}}})"
    run = f"_anon_run as not materialized {polled(start, '_anon_run')}"
    return f"with {feeds}{run},\n{report_select(entry.returns, ())}"


def _require_plain_person(function: str, relation: Relation, roles: Roles) -> None:
    person = fold(roles.person.name) if roles.person else ""
    for name, kind in relation.columns.items():
        if fold(name) == person and struct_fields(kind):
            raise ColumnError(f"{function}: column '{name}' is {kind}; a person is a number, a date or a text")


def _slices(
    function: str, relation: Relation, original: Relation | None, labelled: Collection[str]
) -> dict[str, list[Content]]:
    """Columns of a release that are slices, with what their fields carry."""
    against = original.columns if original is not None else None
    return read(relation.columns, against, labelled=labelled, table=relation.given, function=function).slices()


def _fed(
    function: str, feed: str, relation: Relation, wanted: set[str], slices: Mapping[str, Sequence[Content]]
) -> str:
    """Subquery that feeds what a measure reads: labelled names, slices that hold some, and shape columns."""
    folded = {fold(w) for w in wanted}
    numbered = f"(select *, row_number() over () - 1 as _anon_rn from {relation.sql})"
    if not relation.visible:
        # which of these columns there are shows when the rows are read; the kernel says what is missing
        listed_names = literal(["_anon_rn", *sorted(folded)])
        own = literal([carrier.word for carrier in carriers()])
        name = folded_sql("_anon_c")
        chosen = f"list_contains({listed_names}, {name}) or list_contains({own}, rtrim({name}, '_'))"
        there = f"(select columns(lambda _anon_c: {chosen}) from {numbered})"
        return fed_table(feed, "_anon_t", f"{there} as _anon_t")
    names = [
        column
        for column in relation.columns
        if fold(column) in folded or may_carry(column) or folded & {part.column for part in slices.get(column, ())}
    ]
    if not any(not may_carry(name) or fold(name) in folded for name in names):
        raise ColumnError(f"{relation.given} has none of the columns {', '.join(sorted(wanted))}")
    infos = [ColumnInfo(name, relation.columns[name]) for name in names if fold(name) in folded]
    check_types(function, infos)
    pairs = ", ".join(f"{ident(name)}: {ident(name)}" for name in names)
    row = f"{{_anon_rn: _anon_rn, {pairs}}}"
    return fed_table(feed, row, numbered, guard(function, infos, relation.sql))
