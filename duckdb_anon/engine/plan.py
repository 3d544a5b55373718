"""The planning half: a checked call becomes the SQL text that carries it out.

Nothing is read here but names, types and comments.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from duckdb_anon.engine.catalog import Catalog, Relation, require_visible
from duckdb_anon.engine.decode import Decoder, layout_of
from duckdb_anon.engine.known import require_known_values
from duckdb_anon.engine.labels import with_labels_of
from duckdb_anon.engine.persons import check_described, refusing, with_persons
from duckdb_anon.engine.quoting import ident, literal
from duckdb_anon.engine.recording import Recorded, begin, note
from duckdb_anon.engine.roles import (
    ROLE_PARAMETERS,
    column_of,
    labels_of,
    require_free_names,
    require_no_identifier,
    resolve_roles,
)
from duckdb_anon.engine.run import LIST_OF, coded_table, to_json
from duckdb_anon.engine.sent import guards, sent, sent_together
from duckdb_anon.engine.sliced import classes_of_slices, unsliced
from duckdb_anon.model.cells import Interval, Value
from duckdb_anon.model.description import is_release
from duckdb_anon.model.entries import (
    ColumnInfo,
    ColumnPlan,
    Entry,
    Method,
    Parameter,
    Params,
    PureSql,
    Query,
    Report,
    Roles,
    Task,
)
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.shapes import Contents, carriers, may_carry, read, refuse, released_name
from duckdb_anon.model.shapes.types import is_enum
from duckdb_anon.model.table import CodedTable
from duckdb_anon.rewrite.query.tables import TableInfo

SEED = Parameter(
    "seed",
    "whole number from 0 that makes the run repeatable; by default the system's entropy",
    "integer",
    low=0,
    high=2**127 - 1,  # a HUGEINT: one below 2^64 can be guessed, so a release takes none
)
ROW_ID = Parameter(
    "row_id", "true adds the source row's number (from 0, for the data holder's own checks)", "boolean", False
)
FORCE = Parameter(
    "force",
    "true lets the call name a column labelled identifier as a quasi-identifier or one to keep",
    "boolean",
    False,
)
ORIGINAL = Parameter(
    "original",
    "the table a release with row_id was made of, whose person column says whose the rows are",
)
_ASKER = "asker: current_connection_id()"
"""Field of a call that says whose interrupt stops it."""


def parameters_of(entry: Entry) -> tuple[Parameter, ...]:
    """All SQL parameters of an entry in order: tables, its own, roles, row_id, seed."""
    tables: tuple[Parameter, ...] = ()
    if not isinstance(entry, (Method, PureSql)):
        own = {p.name for p in entry.parameters}
        tables = tuple(Parameter(t, "a table") for t in entry.tables if t not in own)
    else:
        tables = (Parameter("tbl", "a table"),)
    taken = {p.name for p in entry.parameters}
    added: tuple[Parameter, ...] = ()
    if not isinstance(entry, (Query, Task)) and (tables or isinstance(entry, PureSql)):
        added += ROLE_PARAMETERS
    if isinstance(entry, Method):
        added += (ROW_ID, FORCE)
    if isinstance(entry, (Method, Report)):
        added += (SEED,)
    if isinstance(entry, PureSql):
        added += (ORIGINAL,)
    added = tuple(p for p in added if p.name not in taken)
    if isinstance(entry, PureSql):
        # the macro's own order, as the stock shell takes it: (tbl, qi, sensitive, ...)
        first = tuple(p for p in added if p.name in entry.needs)
        return tables + first + entry.parameters + tuple(p for p in added if p not in first)
    return tables + entry.parameters + added


@dataclass(frozen=True)
class Context:
    """What a planner can ask: relations, roles, and the raw arguments of the call."""

    function: str
    catalog: Catalog
    arguments: Mapping[str, Any]

    def relation(self, parameter: str, given: object = None) -> Relation:
        """Resolve the table argument `parameter` (or `given` in its place)."""
        return self.catalog.relation(self.function, parameter, given or self.arguments.get(parameter))

    def roles(
        self, relation: Relation, needs: tuple[str, ...] = (), nested: bool = False, only: Collection[str] = ()
    ) -> Roles:
        """Resolve roles of `relation` from comments and this call's role arguments, or `only` some of these."""
        checked = {
            p.name: p.check(self.function, self.arguments.get(p.name) if p.name in only or not only else None)
            for p in ROLE_PARAMETERS
        }
        return resolve_roles(self.function, relation, checked, needs=needs, nested=nested)

    def contents(self, relation: Relation) -> Contents:
        """What a table carries of whose original nothing is known but the roles it is given."""
        checked = {p.name: p.check(self.function, self.arguments.get(p.name)) for p in ROLE_PARAMETERS}
        labelled, sensitive, trees = labels_of(self.function, relation, checked)
        return read(
            relation.columns,
            None,
            labelled=labelled,
            sensitive=sensitive,
            trees=trees,
            table=relation.given,
            function=self.function,
        )

    def require_known(self, original: Relation, release: Relation, trees: Mapping[str, str]) -> None:
        """Refuse a release with texts that nothing knows; `trees` names the hierarchy table of attributes."""
        found = {name: self.relation(f"hierarchy of {name}", tree) for name, tree in trees.items()}
        require_known_values(self.function, self.catalog, original, release, found)

    def plain_info(self, relation: Relation) -> TableInfo:
        """`relation` as rewrites see it, without roles: those of a release are told by the original's."""
        require_visible(self.function, relation)
        return TableInfo(sql=relation.sql, columns=tuple(relation.columns.items()), given=relation.given)

    def table_info(self, relation: Relation, releases: Sequence[Relation] = ()) -> TableInfo:
        """`relation` as rewrites see it, its roles as `releases` tell them; raises unless its columns are visible."""
        require_visible(self.function, relation)
        relation = with_labels_of(relation, releases)
        roles = self.roles(relation, nested=True)
        named = {
            **dict.fromkeys((info.name for info in roles.qi), "quasi"),
            **dict.fromkeys((info.name for info in roles.sensitive), "sensitive"),
            **dict.fromkeys((info.name for info in roles.keep), "insensitive"),
            **dict.fromkeys(roles.identifier, "identifier"),
        }
        infos = [*roles.qi, *roles.sensitive, *roles.keep]
        trees = {i.name: self.relation(f"hierarchy of {i.name}", i.hierarchy) for i in infos if i.hierarchy}
        return TableInfo(
            sql=relation.sql,
            columns=tuple(relation.columns.items()),
            roles=named,
            hierarchies={n: TableInfo(t.sql, tuple(t.columns.items())) for n, t in trees.items()},
            given=relation.given,
            kinds={i.name: i.kind for i in infos if i.kind},
        )

    def tree_sql(self, info: ColumnInfo) -> str:
        """Scalar subquery that lists the rows of a column's hierarchy table."""
        tree = self.catalog.relation(self.function, f"hierarchy of {info.name}", info.hierarchy)
        return f"(select list(_anon_h) from (select columns(*)::varchar from {tree.sql}) as _anon_h)"


def _infos(roles: Roles) -> tuple[ColumnInfo, ...]:
    return roles.qi + roles.sensitive + roles.keep + ((roles.person,) if roles.person else ())


def plan(entry: Entry, context: Context) -> str:
    """Return the SQL of one SELECT that answers the call.

    Raises:
        AnonError: whatever is wrong with the call.
    """
    begin(context)
    params = {p.name: p.check(entry.name, context.arguments.get(p.name)) for p in _own(entry)}
    refine = getattr(entry, "refine", None)
    if refine is not None:
        params = refine(params)
    if isinstance(entry, Method):
        return _plan_method(entry, context, params)
    if isinstance(entry, Report):
        return _plan_report(entry, context, params)
    if isinstance(entry, PureSql):
        return _plan_pure(entry, context, params)
    if isinstance(entry, Task):
        return _plan_task(entry, context, params)
    return _plan_query(entry, context, params)


def _own(entry: Entry) -> Iterable[Parameter]:
    roles = {p.name for p in ROLE_PARAMETERS} - {p.name for p in entry.parameters}
    tables = {"tbl"} if isinstance(entry, (Method, PureSql)) else set(entry.tables)
    tables |= set(getattr(entry, "optional", ()))
    return (p for p in parameters_of(entry) if p.name not in roles | tables)


def _plan_method(entry: Method, context: Context, params: dict[str, Any]) -> str:
    relation = context.relation("tbl")
    roles = context.roles(relation, needs=entry.needs)
    if not params["force"]:
        require_no_identifier(entry.name, relation, roles)
    if entry.settle is not None:
        params = {**params, **entry.settle(roles, params, lambda: _sample(entry, context, relation, roles))}
    asked = roles
    roles, layout = _typed(entry, roles, params)
    note(context, lambda: Recorded(entry, relation.given, asked, _given(entry, context), layout))
    decoder = Decoder()
    taken = [*relation.columns, *(plan.name for plan in layout), *(info.name for info in _infos(roles))]
    columns = {released_name(plan.name, taken): decoder.column(plan) for plan in layout}
    declaring = {plan.column or plan.name for plan in layout if plan.declared_type}
    return f"with {_run_ctes(entry, context, relation, roles, params, declaring)},\n{decoder.sql(columns)}"


def _given(entry: Method, context: Context) -> dict[str, Any]:
    """The call's own arguments as they were given, a MAP as a mapping."""
    own = {p.name: (p, context.arguments.get(p.name)) for p in _own(entry)}
    return {
        name: parameter.check(entry.name, value) if parameter.kind == "mapping" else value
        for name, (parameter, value) in own.items()
        if value is not None
    }


def _typed(entry: Method, roles: Roles, params: Params) -> tuple[Roles, tuple[ColumnPlan, ...]]:
    """Layout of a call whose column types may be invisible.

    A column of unknown type that is to become a box is taken as ordered; if it turns out to be text when the call
    runs, the error says to name it in `categorical`. Columns that keep their type need no such guess.
    """
    unknown = [info for info in roles.qi if not info.kind]
    if not unknown:
        return roles, layout_of(entry, roles, params)
    guessed = tuple(info if info.kind else replace(info, kind="ordered") for info in roles.qi)
    layout = layout_of(entry, replace(roles, qi=guessed), params)
    boxes = {p.name for plan in layout for p in (plan, *plan.fields) if p.cells in (Interval, Value)}
    kept = tuple(g if g.name in boxes else info for g, info in zip(guessed, roles.qi, strict=True))
    return replace(roles, qi=kept), layout


def _sample(entry: Method, context: Context, relation: Relation, roles: Roles) -> CodedTable:
    """Code the table, or every m-th row of a large one, while planning; hierarchies count as names."""
    if not relation.visible:
        raise ColumnError(
            f"{entry.name}: the rows of '{relation.given}' are not visible while the call is planned, so its columns "
            "cannot be found by association; say columns := [['...', '...'], ['...']], or use a committed table"
        )
    plain, sensitive = (
        tuple(replace(i, kind="nominal" if i.hierarchy else i.kind, hierarchy=None) for i in infos)
        for infos in (roles.qi, roles.sensitive)
    )
    infos = plain + sensitive
    values = sent(entry.name, context.catalog, relation, infos)
    row = "".join(f", {values[info.name]} as c{k}" for k, info in enumerate(infos))
    rows = context.catalog.every_nth_row(relation, f"_anon_rn as rn{row}")
    return coded_table(entry.name, Roles(plain, sensitive), rows, {}, canonical=False)[0]


def _without_unused(column: str, relation: Relation, kept_enums: Collection[str]) -> str:
    """A column of the source; an enum as text, for its type would tell values that nobody has (any more)."""
    if is_enum(relation.columns.get(column, "")) and column not in kept_enums:
        return f"{ident(column)}::varchar as {ident(column)}"
    return ident(column)


def _run_ctes(
    entry: Method | Report,
    context: Context,
    relation: Relation,
    roles: Roles,
    params: Params,
    kept_enums: Collection[str] = (),
) -> str:
    """CTEs `_anon_src` (needed columns, numbered) and `_anon_run` (the kernel's answer) for one coded table."""
    coded = roles.qi + roles.sensitive + ((roles.person,) if roles.person else ())
    names = dict.fromkeys(info.name for info in coded + roles.keep)
    needed = "".join(f"{_without_unused(n, relation, kept_enums)}, " for n in names)
    values = sent(entry.name, context.catalog, relation, coded)
    row = "".join(f", c{k}: {values[info.name]}" for k, info in enumerate(coded))
    asked = getattr(entry, "conditions", None)
    conditions = asked(roles, params) if asked else {}
    for k, condition in enumerate(conditions.values()):
        needed += f"coalesce((\n{condition}\n), false)::integer as _anon_x{k}, "
        row += f", x{k}: _anon_x{k}"
    trees, tree_sql = _trees(context, coded)
    call = to_json(
        entry.name, roles, params, {"trees": trees, "conditions": list(conditions), "threads": context.catalog.threads}
    )
    counted = _combinations(entry, roles, params, values)
    return (
        f"_anon_src as materialized (select {needed}row_number() over () - 1 as _anon_rn from {relation.sql}),\n"
        "_anon_fed as materialized (select _anon_open({asker: current_connection_id(), statement: current_query_id()}) "
        "as _feed),\n"
        f"_anon_run as materialized (select _anon_run({{call: {_guarded(entry.name, coded, call)}, {_ASKER}, "
        f"feed: (from _anon_fed), rows: sum(_anon_feed({{feed: (from _anon_fed), row: {{rn: _anon_rn{row}}}}}))"
        f"{counted}{tree_sql}}}) as r from _anon_src)"
    )


def _guarded(function: str, infos: Sequence[ColumnInfo], call: str) -> str:
    cases = guards(function, infos, "_anon_src")
    return f"case{cases} else {literal(call)} end" if cases else literal(call)


def _combinations(entry: Method | Report, roles: Roles, params: Params, values: Mapping[str, str]) -> str:
    """Field of the call that lists a row and the number of rows of each combination of values a method asks for."""
    asked = getattr(entry, "combinations", None)
    if asked is None:
        return ""
    keys = []
    for info in asked(roles, params):
        keys.append(values[info.name])
    counted = f"(select min(_anon_rn) as rn, count(*) as n from _anon_src group by {', '.join(keys)})"
    return f", f: (select list(_anon_f) from {counted} as _anon_f)"


def _trees(context: Context, infos: Iterable[ColumnInfo]) -> tuple[list[str], str]:
    named = {info.hierarchy: info for info in infos if info.hierarchy}
    sql = "".join(f", h{k}: {context.tree_sql(info)}" for k, info in enumerate(named.values()))
    return [str(name) for name in named], sql


def _plan_report(entry: Report, context: Context, params: dict[str, Any]) -> str:
    if not entry.tables:
        call = to_json(entry.name, Roles(), params, {"trees": [], "threads": context.catalog.threads})
        run = f"_anon_run as materialized (select _anon_run({{call: {literal(call)}, {_ASKER}}}) as r)"
        return f"with {run},\n{_report_select(entry, ())}"
    relation = context.relation(entry.tables[0])
    if entry.reads == "coded":
        roles = context.roles(relation, needs=entry.needs)
        if roles.person is None:
            check_described(entry, relation)
        return (
            f"with {_run_ctes(entry, context, relation, roles, params, relation.columns)},\n"
            f"{_report_select(entry, roles.qi + roles.sensitive)}"
        )
    relations = [relation, *(context.relation(name) for name in entry.tables[1:])]
    labelled = relations[entry.tables.index(entry.labelled)] if entry.labelled else relation
    if not is_release(labelled.comment):
        labelled = with_labels_of(labelled, [r for r in relations if r is not labelled])
    flat = replace(labelled, columns=context.catalog.flattened(labelled.columns))
    roles = context.roles(flat, needs=entry.needs, nested=True)
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
    trees, tree_sql = _trees(context, infos)
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
    extra = {"trees": trees, "types": types, "labelled": sorted(wanted), "threads": context.catalog.threads}
    call = to_json(entry.name, roles, params, extra)
    values = sent_together(entry.name, context.catalog, relations, wanted)
    lists = "".join(f", t{k}: {_row_list(r, wanted, context.catalog, values[k])}" for k, r in enumerate(relations))
    run = f"_anon_run as materialized (select _anon_run({{call: {literal(call)}, {_ASKER}{lists}{tree_sql}}}) as r)"
    return f"with {run},\n{_report_select(entry, ())}"


def _row_list(relation: Relation, wanted: set[str], catalog: Catalog, values: Mapping[str, str]) -> str:
    """Subquery that lists what a measure reads: labelled names, slices that hold some, and shape columns."""
    folded = {w.lower() for w in wanted}
    numbered = f"(select *, row_number() over () - 1 as _anon_rn from {relation.sql})"
    if not relation.visible:
        # which of these columns there are shows when the rows are read; the kernel says what is missing
        listed_names = literal(["_anon_rn", *sorted(folded)])
        own = literal([carrier.word for carrier in carriers()])
        chosen = f"list_contains({listed_names}, lower(_anon_c)) or list_contains({own}, rtrim(lower(_anon_c), '_'))"
        there = f"(select columns(lambda _anon_c: {chosen}) from {numbered})"
        return f"(select list(_anon_t) from {there} as _anon_t)"
    names = [
        column
        for column, kind in relation.columns.items()
        if column.lower() in folded
        or may_carry(column)
        or folded & {f.lower() for f in catalog.flattened({column: kind})}
    ]
    if not any(not may_carry(name) or name.lower() in folded for name in names):
        raise ColumnError(f"{relation.given} has none of the columns {', '.join(sorted(wanted))}")
    pairs = ", ".join(f"{ident(name)}: {values.get(name, ident(name))}" for name in names)
    return f"(select list({{_anon_rn: _anon_rn, {pairs}}}) from {numbered})"


def _report_select(entry: Report, coded: tuple[ColumnInfo, ...]) -> str:
    """SELECT over the lists of a report; CODE columns become the text of the value they stand for."""
    decoder = Decoder()
    raw = {name: decoder.row(LIST_OF[kind]) for name, kind in entry.returns.items()}
    has_codes = "CODE" in entry.returns.values()
    values_of = {info.name: decoder.dictionary(info.name) for info in coded} if has_codes else {}
    columns: dict[str, str] = {}
    for name, kind in entry.returns.items():
        sql = raw[name]
        if kind == "CODE":
            cases = "".join(f" when {literal(a)} then {v}[{sql} + 1]::varchar" for a, v in values_of.items())
            sql = f"case {raw['attribute']}{cases} end"
        elif kind == "BOOLEAN":
            sql = f"{sql} <> 0"
        elif kind == "INTEGER":
            sql = f"{sql}::integer"
        elif kind == "DOUBLE OR NULL":
            sql = f"case when not isnan({sql}) then {sql} end"
        columns[name] = decoder.value(sql)
    return decoder.sql(columns)


def _plan_pure(entry: PureSql, context: Context, params: dict[str, Any]) -> str:
    relation = context.relation("tbl")
    contents = context.contents(relation)
    refuse(entry.name, relation.given, contents, entry.answers)
    source, whose = relation, None
    if params["original"] is not None:
        original = context.relation("original", params["original"])
        whose = context.roles(original, only=("person",)).person
        joined = with_persons(entry, relation, contents, original, whose.name if whose else None)
        source = replace(relation, sql=joined, text=joined, columns={**relation.columns, "_anon_person": ""})
        context = replace(context, arguments={**context.arguments, "person": None})
    slices = {name: [field.field for field in fields] for name, fields in contents.slices().items()}
    flat = replace(relation, columns=context.catalog.flattened(relation.columns)) if slices else relation
    roles = context.roles(flat, needs=entry.needs, nested=True)
    qi, text = [info.name for info in roles.qi], source.text
    if slices:
        qi = classes_of_slices(
            slices, contents.bucket, qi, [info.name for info in roles.sensitive] if "sensitive" in entry.needs else []
        )
        text = unsliced(source, slices)
    by_person = "_anon_person" if whose else roles.person.name if roles.person else None
    if by_person is None:
        check_described(entry, relation)
    arguments = [literal(text), literal(qi)]
    if "sensitive" in entry.needs:
        arguments.append(literal(roles.one_sensitive(entry.name).name))
    # a macro with parameters of these names takes all sensitive columns, and the person column
    by_role: dict[str, Any] = {
        "sensitive": [info.name for info in roles.sensitive] or None,
        "person": by_person,
        "hierarchy": _hierarchy_of(context, roles, params),
    }
    given = {p.name: by_role.get(p.name) if params[p.name] is None else params[p.name] for p in entry.parameters}
    given = {"person": by_role["person"], **given} if entry.unit == "person" else given
    named = "".join(f", {name} := {literal(value)}" for name, value in given.items() if value is not None)
    return f"from _anon_{entry.name}({', '.join(arguments)}{named})"


def _plan_query(entry: Query, context: Context, params: Params) -> str:
    select = entry.plan(context, params)
    if entry.unit == "any":
        return select
    relation = context.relation(entry.tables[0])
    person = context.roles(relation, nested=True).person
    for table in (relation, *(context.relation(name) for name in entry.tables[1:])) if person is None else ():
        check_described(entry, table)
    return refusing(entry, select, relation.sql, person.name) if person else select


def _plan_task(entry: Task, context: Context, params: Params) -> str:
    """SELECT over the rows of a task's answer; the task runs once, when the SELECT does."""
    told, lists = entry.plan(context, params)
    place = f"database: {literal(context.catalog.database)}, schema: {literal(context.catalog.schema)}"
    rows = "".join(f", {ident(name)}: {sql}" for name, sql in lists.items())
    call = f"{{{place}, {_ASKER}, told: {literal(json.dumps(told))}{rows}}}"
    shown = ", ".join(f"_anon_row.{ident(name)} as {ident(name)}" for name in entry.returns)
    return (
        f"with _anon_done as materialized (select {task_function(entry)}({call}) as r)\n"
        f"select {shown} from (select unnest(case when r.error is not null then error(r.error) else r.rows end) "
        "as _anon_row from _anon_done)"
    )


def task_function(entry: Task) -> str:
    """SQL name of the function that runs a task."""
    return f"_anon_task_{entry.name}"


def _hierarchy_of(context: Context, roles: Roles, params: Params) -> str | None:
    """The hierarchy table of the sensitive column, unless another distance is asked for."""
    tree = roles.sensitive[0].hierarchy if roles.sensitive else None
    if tree is None or params.get("distance") not in (None, "hierarchy"):
        return None
    return context.catalog.relation(context.function, "hierarchy", tree).text
