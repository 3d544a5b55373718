"""The planning half: a checked call becomes the SQL text that carries it out.

Nothing is read here but names, types and comments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from duckdb_anon.engine.catalog import sensitive_coarsening as edges
from duckdb_anon.engine.catalog.catalog import Relation
from duckdb_anon.engine.catalog.collation import check_types, guard
from duckdb_anon.engine.catalog.column_roles import (
    ROLE_PARAMETERS,
    column_of,
    require_free_names,
    require_no_identifier,
    with_labels_of,
)
from duckdb_anon.engine.catalog.identifier_lineage import identifiers_read
from duckdb_anon.engine.catalog.person_checks import (
    check_described,
    refusing,
    require_no_frequency,
    require_no_person_beneath,
    with_persons,
)
from duckdb_anon.engine.input_sql import buffered_rows, declaring, open_buffer, run_cte, run_ctes, trees_of
from duckdb_anon.engine.memory_estimate import require_fit
from duckdb_anon.engine.planned_tables import CHECKED, ROWS, base_tables, checked_cte, rows_sql
from duckdb_anon.engine.planning_context import Context
from duckdb_anon.engine.records.call_text import Recorded, begin, note
from duckdb_anon.engine.runner import ASKED_BY, coded_table, to_json
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.engine.transport.result_sql import layout_of, release_select, report_select
from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.errors import ColumnError, ParameterError, listed, nearest, planning, with_code
from duckdb_anon.model.function_specs import (
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
from duckdb_anon.model.identifier_case import fold, folded_sql
from duckdb_anon.model.release_comment import is_release
from duckdb_anon.model.release_formats import (
    GROUP,
    Content,
    carriers,
    carriers_in_doubt,
    in_doubt,
    may_carry,
    read,
    refuse,
)
from duckdb_anon.model.release_formats.duckdb_types import is_nested, struct_fields
from duckdb_anon.model.release_formats.schema import Contents
from duckdb_anon.model.released_columns import Interval, Real, Value, Whole

SEED = Parameter(
    "seed",
    "whole number from 0 that makes the run repeatable (default: entropy of the operating system)",
    "integer",
    low=0,
    high=2**127 - 1,  # a HUGEINT: one below 2^64 can be guessed, so a release takes none
)
ROW_ID = Parameter(
    "row_id",
    "true adds the number of the source row, from 0; for the data holder's checks, never for publication",
    "boolean",
    False,
)
FORCE = Parameter(
    "force",
    "true allows a column labelled identifier, or a column that counts records, as a quasi-identifier or in keep",
    "boolean",
    False,
)
ORIGINAL = Parameter(
    "original",
    "the original of a release with row_id; its person column identifies the individuals",
)


def parameters_of(entry: Entry) -> tuple[Parameter, ...]:
    """All SQL parameters of an entry in order: tables, its own, roles, row_id, seed."""
    tables: tuple[Parameter, ...] = ()
    if not isinstance(entry, (Method, PureSql)):
        names = {p.name for p in entry.parameters}
        tables = tuple(Parameter(t, "a table") for t in entry.tables if t not in names)
    else:
        tables = (Parameter("tbl", "a table"),)
    taken = {p.name for p in entry.parameters}
    added: tuple[Parameter, ...] = ()
    if not isinstance(entry, (Query, Task)) and (tables or isinstance(entry, PureSql)):
        added += ROLE_PARAMETERS
    if isinstance(entry, Method):
        added += (edges.PARAMETER,) if edges.takes_edges(entry) else ()
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


def plan(entry: Entry, context: Context) -> str:
    """Return the SQL of one SELECT that answers the call."""
    begin(context)
    if not parameters_of(entry) and any(value is not None for value in context.arguments.values()):
        raise ParameterError(f"{entry.name}: it takes no arguments. Write FROM {entry.name}()")
    params = {p.name: p.check(entry.name, context.arguments.get(p.name)) for p in _own_parameters(entry)}
    refine = getattr(entry, "refine", None)
    if refine is not None:
        params = refine(params)
    if isinstance(entry, (Method, Report, Task)):
        ctes = _ctes_and_select(entry, context, params)
        return f"with {checked_cte(entry, context)},\n{ctes}"
    select = _plan_pure(entry, context, params) if isinstance(entry, PureSql) else _plan_query(entry, context, params)
    if isinstance(entry, Query) and entry.scalar:  # the answer is the text
        return select
    return f"with {checked_cte(entry, context)}\nfrom ({select}) as _anon_answer where (select ok from {CHECKED})"


def _ctes_and_select(entry: Method | Report | Task, context: Context, params: dict[str, Any]) -> str:
    """CTEs around a call of Python, which depends on `planned_tables`, and the SELECT of its answer."""
    if isinstance(entry, Method):
        return _plan_method(entry, context, params)
    if isinstance(entry, Report):
        return plan_report(entry, context, params)
    return _plan_task(entry, context, params)


def _own_parameters(entry: Entry) -> Iterable[Parameter]:
    roles = {p.name for p in ROLE_PARAMETERS} - {p.name for p in entry.parameters}
    tables = {"tbl"} if isinstance(entry, (Method, PureSql)) else set(entry.tables)
    tables |= set(getattr(entry, "optional", ()))
    return (p for p in parameters_of(entry) if p.name not in roles | tables)


def _plan_method(entry: Method, context: Context, params: dict[str, Any]) -> str:
    relation = context.relation("tbl")
    roles = context.roles(relation, needs=entry.needs)
    if not params["force"]:
        beneath = identifiers_read(context.catalog, relation)
        require_no_identifier(entry.name, relation, roles, beneath)
        require_no_person_beneath(entry.name, context.catalog, relation, roles, beneath)
        require_no_frequency(entry.name, context.catalog, relation, roles)
    if entry.resolve_params is not None:
        params = {**params, **entry.resolve_params(roles, params, lambda: _sample(entry, context, relation, roles))}
    given_roles = roles
    roles, layout = _typed(entry, roles, params)
    by_default, params = params.get(edges.PARAMETER.name) is None, dict(edges.settled(entry, roles, params))
    if entry.groups is not None and context.arguments.get(ASKED_BY) is not None:
        layout += (ColumnPlan(GROUP.key, Whole),)
    require_fit(entry, context.catalog, relation, roles, context.arguments)
    note(context, lambda: Recorded(entry, relation, given_roles, _given(entry, context), params, layout))
    before = ""
    if edges.are_joined(params):
        k = params[edges.PARAMETER.name]
        if not by_default:
            edges.require_joinable(entry, relation, roles, k)
        before, relation = edges.edged(entry.name, relation, roles, k, by_default)
    ran = run_ctes(entry, context, relation, roles, params, declaring(layout), layout)
    return f"{before}{ran},\n{release_select(relation, roles, layout)}"


def _given(entry: Method, context: Context) -> dict[str, Any]:
    """The call's own arguments as they were given, a MAP as a mapping."""
    arguments = {p.name: (p, context.arguments.get(p.name)) for p in _own_parameters(entry)}
    return {
        name: parameter.check(entry.name, value) if parameter.kind == "mapping" else value
        for name, (parameter, value) in arguments.items()
        if value is not None
    }


def _typed(entry: Method, roles: Roles, params: Params) -> tuple[Roles, tuple[ColumnPlan, ...]]:
    """Layout of a call; a column of unknown type that is to become a box is taken as ordered."""
    unknown = [info for info in roles.qi if not info.kind]
    if not unknown:
        return roles, layout_of(entry, roles, params)
    guessed = tuple(info if info.kind else replace(info, kind="ordered") for info in roles.qi)
    layout = layout_of(entry, replace(roles, qi=guessed), params)
    boxes = {p.name for plan in layout for p in (plan, *plan.fields) if p.cells in (Interval, Value)}
    # a box whose ends are no values of the column, as of methods that draw them
    boxes |= {plan.name for plan in layout if plan.fields and all(p.cells is Real for p in plan.fields)}
    columns = tuple(g if g.name in boxes else info for g, info in zip(guessed, roles.qi, strict=True))
    return replace(roles, qi=columns), layout


def _sample(entry: Method, context: Context, relation: Relation, roles: Roles) -> CodedTable:
    """Code the table, or every m-th row of a large one, while planning; hierarchies count as names."""
    if not relation.visible:
        raise ColumnError(
            f"{entry.name}: the rows of '{relation.given}' are not visible while the call is planned, so its columns "
            "cannot be found by association. Say columns := [['...', '...'], ['...']], or use a committed table"
        )
    plain, sensitive = (
        tuple(replace(i, kind="nominal" if i.hierarchy else i.kind, hierarchy=None) for i in infos)
        for infos in (roles.qi, roles.sensitive)
    )
    infos = plain + sensitive
    check_types(entry.name, infos)
    row = "".join(f", {ident(info.name)} as c{k}" for k, info in enumerate(infos))
    rows = context.catalog.every_nth_row(relation, f"_anon_rn as rn{row}")
    return coded_table(entry.name, Roles(plain, sensitive), rows, {}, canonical=False)[0]


@dataclass(frozen=True)
class _PureCall:
    """What a call of a macro reads: the table, and which of its columns are what."""

    relation: Relation  # as the call names it
    source: Relation  # with `_anon_person` where an original says who the individuals are
    contents: Contents  # what its columns carry
    roles: Roles
    person: str | None  # column of the individuals
    household: str | None

    @property
    def slices(self) -> dict[str, list[str]]:
        """Fields of each column that is a slice."""
        return {name: [field.field for field in fields] for name, fields in self.contents.slices().items()}


def _plan_pure(entry: PureSql, context: Context, params: dict[str, Any]) -> str:
    call = _resolved_pure(entry, context, params)
    if call.person is None and call.household is None:
        check_described(entry, call.relation)
        if "sample_weights" in params and params["sample_weights"] is None and call.contents.shape == "rows":
            require_no_frequency(entry.name, context.catalog, call.relation, call.roles, weights=True)
    select = f"from _anon_{entry.name}({', '.join(_positional(entry, call))}{_named(entry, context, call, params)})"
    infos = [info for info in (*call.roles.qi, *call.roles.sensitive)]
    infos = [info for info in infos if info.name in call.relation.columns or not call.relation.visible]
    select += f" where {guard(entry.name, infos, call.relation.rows)}"
    return select if call.relation.visible else _refused_if_release(entry, context, call.relation, select)


def _resolved_pure(entry: PureSql, context: Context, params: Params) -> _PureCall:
    """The table and columns of a call, with individuals of the original where it names one."""
    relation = context.relation("tbl")
    contents = context.contents(relation)
    refuse(entry.name, relation.given, contents, entry.answers)
    source, person = relation, None
    if params["original"] is not None:
        original = context.relation("original", params["original"])
        labelled = context.roles(original, only=("person",)).person
        joined = with_persons(entry, relation, contents, original, labelled.name if labelled else None)
        source, person = replace(relation, sql=joined, columns={**relation.columns, "_anon_person": ""}), "_anon_person"
        context = replace(context, arguments={**context.arguments, "person": None})
    roles = context.roles(context.flat(relation), needs=entry.needs, nested=True)
    takes_households = any(p.name == "household" for p in entry.parameters)
    household = roles.household.name if roles.household and takes_households else None
    person = person or (roles.person.name if roles.person else None)
    # the risk of a household is put together from those of its records
    person = None if household is not None and person == household else person
    return _PureCall(relation, source, contents, roles, person, household)


def _positional(entry: PureSql, call: _PureCall) -> list[str]:
    """Table, quasi-identifiers and the sensitive column, as the macro takes them."""
    qi, sensitive = [info.name for info in call.roles.qi], [info.name for info in call.roles.sensitive]
    text = call.source.rows if call.source is call.relation else call.source.sql
    if call.slices:
        qi = classes_of_slices(call.slices, call.contents.bucket, qi, sensitive if "sensitive" in entry.needs else [])
        text = unsliced(call.source, call.slices)
    arguments = [literal(text), literal(qi)]
    return [*arguments, literal(call.roles.one_sensitive(entry.name).name)] if "sensitive" in entry.needs else arguments


def _named(entry: PureSql, context: Context, call: _PureCall, params: Params) -> str:
    """The macro's named arguments; one of a role's name takes the columns of the role."""
    by_role: dict[str, Any] = {
        "sensitive": [info.name for info in call.roles.sensitive] or None,
        "person": call.person,
        "household": call.household,
        "hierarchy": _hierarchy_of(context, call.roles, params),
    }
    given = {p.name: by_role.get(p.name) if params[p.name] is None else params[p.name] for p in entry.parameters}
    given = {"person": call.person, **given} if entry.unit == "person" else given
    if (weights := given.get("sample_weights")) is not None:
        given["sample_weights"] = column_of(entry.name, call.relation, str(weights))
    return "".join(f", {name} := {literal(value)}" for name, value in given.items() if value is not None)


def _refused_if_release(entry: PureSql, context: Context, relation: Relation, select: str) -> str:
    """`select`, refused when it runs on a table, unseen till then, that may be a release."""
    labelled = {fold(name) for name in context.labels(relation).named}
    carriers = {name for name in carriers_in_doubt(entry.answers) if name not in labelled}
    if not carriers:
        return select
    names = "(select json_keys(to_json(_anon_row)) from (from " + relation.sql + " limit 1) as _anon_row)"
    folded, words = folded_sql("_n"), ", ".join(map(literal, sorted(carriers)))
    doubtful = f"list_filter({names}, lambda _n: rtrim({folded}, '_') in ({words}) "
    doubtful += f"and {folded} not in ({', '.join(map(literal, sorted(labelled) or ['']))}))"
    reason = literal(with_code(in_doubt(relation.given), ColumnError.code))
    refusal = f"error({literal(f'{entry.name}: ')} || {doubtful}[1] || {reason})"
    return f"from ({select}) as _anon_answer where case when len({doubtful}) > 0 then {refusal} else true end"


def _plan_query(entry: Query, context: Context, params: Params) -> str:
    with planning(entry.name):
        select = entry.plan(context, params)
    if entry.unit != "row":  # one that counts persons refuses by itself what it cannot count
        return select
    if not isinstance(context.arguments.get(entry.tables[0]), str):  # several tables, of a released database
        return select
    relation = context.relation(entry.tables[0])
    person = context.roles(relation, nested=True).person
    for table in (relation, *(context.relation(name) for name in entry.tables[1:])) if person is None else ():
        check_described(entry, table)
    return refusing(entry, select, relation.sql, person.name) if person else select


def _plan_task(entry: Task, context: Context, params: Params) -> str:
    """SELECT over the rows of a task's answer; the task runs once, when the SELECT does."""
    info, lists = entry.plan(context, params)
    catalog = context.catalog
    base: list[str] = []
    if entry.database == "callers":
        base = base_tables(catalog) if entry.requires_committed else []
        lists = {**lists, ROWS: rows_sql(catalog, base)}
    facts = {"info": info, "base": base, "database": catalog.database, "schema": catalog.schema}
    call = to_json(entry.name, Roles(), {}, facts)
    rows = "".join(f", {ident(name)}: {sql}" for name, sql in lists.items())
    ran = f"{run_cte(call, rows)},\n{report_select(entry.returns)}"
    return ran if entry.select is None else f"_anon_answer as (with {ran})\n{entry.select(info)}"


def _hierarchy_of(context: Context, roles: Roles, params: Params) -> str | None:
    """The hierarchy table of the sensitive column, unless the call names another distance."""
    tree = roles.sensitive[0].hierarchy if roles.sensitive else None
    if tree is None or params.get("distance") not in (None, "hierarchy"):
        return None
    return context.catalog.relation(context.function, "hierarchy", tree).sql


def plan_report(entry: Report, context: Context, params: dict[str, Any]) -> str:
    """SQL of a report: one coded table, or several tables of any shape."""
    if not entry.tables:
        call = to_json(entry.name, Roles(), params, {"trees": [], **context.catalog.settings()})
        return f"{run_cte(call)},\n{report_select(entry.returns)}"
    if entry.reads == "coded":
        relation = context.relation(entry.tables[0])
        roles = context.roles(relation, needs=entry.needs)
        if roles.person is None:
            check_described(entry, relation)
        run = run_ctes(entry, context, relation, roles, params, relation.columns)
        return f"{run},\n{report_select(entry.returns)}"
    return _plan_comparison(entry, context, params)


def _columns_named(entry: Report, roles: Roles, params: Params) -> dict[str, Any]:
    """Arguments that name labelled columns, as the columns are spelled."""
    found: dict[str, Any] = {}
    for parameter in entry.parameters:
        given = params.get(parameter.name)
        if not parameter.of or not given:
            continue
        infos = roles.qi if parameter.of == "qi" else roles.qi + roles.sensitive
        columns = {fold(info.name): info.name for info in infos}
        names = [given] if isinstance(given, str) else given
        for name in names:
            if fold(name) not in columns:
                role = "quasi-identifiers" if parameter.of == "qi" else "quasi-identifiers and sensitive columns"
                raise ParameterError(
                    f"{entry.name}: {parameter.name} has '{name}'{nearest(name, columns.values())}. The {role} are "
                    f"{listed(columns.values())}"
                )
        spelled = [columns[fold(name)] for name in names]
        found[parameter.name] = spelled[0] if isinstance(given, str) else spelled
    return found


@dataclass(frozen=True)
class _Comparison:
    """What a report on several tables reads of each of them."""

    names: list[str]  # the parameters that name the tables, and the names of further ones
    relations: list[Relation]  # the tables
    labelled: Relation  # the one whose labels say what columns are
    roles: Roles
    wanted: set[str]  # the columns that are compared
    params: Params

    @property
    def original(self) -> Relation | None:
        """The table that the others are releases of."""
        return self.labelled if len(self.relations) > 1 and self.labelled.visible else None

    @property
    def of_original(self) -> set[str]:
        """Columns of the original; those with a role are, read or not."""
        return self.wanted | set(self.roles.identifier)


def _plan_comparison(entry: Report, context: Context, params: dict[str, Any]) -> str:
    """SQL of a report on tables of any shape, coded on a common domain."""
    found = _resolved_tables(entry, context, params)
    _require_plain_person(entry.name, found.labelled, found.roles)
    _check_tables(entry, context, found)
    if not found.wanted:
        raise ColumnError(
            f"{entry.name}: no columns to compare in {found.relations[0].given}. Name them in columns := [...] or "
            "label them: COMMENT ON COLUMN ... IS 'anon: quasi'"
        )
    infos = (*found.roles.attributes, *((found.roles.person,) if found.roles.person else ()))
    trees, tree_sql = trees_of(context, infos)
    types = [relation.columns if relation.visible else None for relation in found.relations]
    extra = {"trees": trees, "types": types, "labelled": sorted(found.of_original), **context.catalog.settings()}
    params = {**found.params, "tables": [r.sql for r in found.relations], "read": found.names}
    opened, tables = "", ""
    for k, relation in enumerate(found.relations):
        opened += f"{open_buffer(f'_anon_input{k}')},\n"
        slices = _slices(entry.name, relation, found)
        tables += f", t{k}: {_buffered(entry.name, f'_anon_input{k}', relation, found.wanted, slices)}"
    call = to_json(entry.name, found.roles, params, extra)
    return f"{opened}{run_cte(call, tables + tree_sql)},\n{report_select(entry.returns)}"


def _resolved_tables(entry: Report, context: Context, params: dict[str, Any]) -> _Comparison:
    """The tables of a call with the roles of their columns, and the queries that it reads beside them."""
    relations = [context.relation(name) for name in entry.tables]
    labelled = relations[entry.tables.index(entry.labelled)] if entry.labelled else relations[0]
    if not is_release(labelled.comment):
        labelled = with_labels_of(labelled, [r for r in relations if r is not labelled])
    flat = context.flat(labelled)
    roles = context.roles(flat, needs=entry.needs, nested=True)
    # nested columns that are released unchanged have no values to compare
    roles = replace(roles, keep=tuple(info for info in roles.keep if not is_nested(info.type)))
    params = {**params, **_columns_named(entry, roles, params)}
    names = [*entry.tables, *(name for name in entry.optional if context.arguments.get(name) is not None)]
    relations += [context.relation(name) for name in names[len(relations) :]]
    for name, select in (entry.further(context, roles, params) if entry.further else {}).items():
        relations.append(Relation(select, select, {}, {}))
        names.append(name)
    wanted = {info.name for info in (*roles.attributes, *((roles.person,) if roles.person else ()))}
    if params.get("columns") is not None:
        # columns named for their own sake need no role
        params["columns"] = [column_of(entry.name, flat, name) for name in params["columns"]]
        wanted |= set(params["columns"])
    return _Comparison(names, relations, labelled, roles, wanted, params)


def _check_tables(entry: Report, context: Context, found: _Comparison) -> None:
    """Refuse tables whose rows or texts would be read as something else than they are."""
    read = len(entry.tables) + sum(context.arguments.get(name) is not None for name in entry.optional)
    relations, labelled = found.relations[:read], found.labelled
    for relation in relations if found.roles.person is None else ():
        check_described(entry, relation)
    for relation in relations[1:]:
        require_free_names(entry.name, relation)
    if entry.literals and not is_release(labelled.comment):
        # a query names values: one that the release shows as something else would be answered for certain and wrong
        for relation in relations[1:]:
            if relation.given != labelled.given:
                context.release_pair(labelled, relation, found.roles.trees()).require_clear_texts()


def _require_plain_person(function: str, relation: Relation, roles: Roles) -> None:
    person = fold(roles.person.name) if roles.person else ""
    for name, kind in relation.columns.items():
        if fold(name) == person and struct_fields(kind):
            raise ColumnError(f"{function}: column '{name}' is {kind}. A person is a number, a date or a text")


def _slices(function: str, relation: Relation, found: _Comparison) -> dict[str, list[Content]]:
    """Columns of a release that are slices, with what their fields carry."""
    if found.original is not None and relation.given == found.original.given:
        return {}
    against = found.original.columns if found.original is not None else None
    return read(relation.columns, against, labelled=found.of_original, table=relation.given, function=function).slices()


def _buffered(
    function: str, buffer: str, relation: Relation, wanted: set[str], slices: Mapping[str, Sequence[Content]]
) -> str:
    """Subquery that buffers what a measure reads: labelled names, slices that hold some, and shape columns."""
    folded = {fold(w) for w in wanted}
    numbered = f"(select *, row_number() over () - 1 as _anon_rn from {relation.rows})"
    if not relation.visible:
        # which of these columns there are shows when the rows are read; the kernel says what is missing
        listed_names = literal(["_anon_rn", *sorted(folded)])
        words = literal([carrier.word for carrier in carriers()])
        name = folded_sql("_anon_c")
        chosen = f"list_contains({listed_names}, {name}) or list_contains({words}, rtrim({name}, '_'))"
        there = f"(select columns(lambda _anon_c: {chosen}) from {numbered})"
        return buffered_rows(buffer, "_anon_t", f"{there} as _anon_t")
    names = [
        column
        for column in relation.columns
        if fold(column) in folded or may_carry(column) or folded & {part.column for part in slices.get(column, ())}
    ]
    if not any(not may_carry(name) or fold(name) in folded for name in names):
        raise ColumnError(f"{function}: {relation.given} has none of the columns {', '.join(sorted(wanted))}")
    infos = [ColumnInfo(name, relation.columns[name]) for name in names if fold(name) in folded]
    check_types(function, infos)
    pairs = ", ".join(f"{ident(name)}: {ident(name)}" for name in names)
    row = f"{{_anon_rn: _anon_rn, {pairs}}}"
    return buffered_rows(buffer, row, numbered, guard(function, infos, relation.rows))


def classes_of_slices(
    slices: Mapping[str, Sequence[str]], bucket: str, qi: Sequence[str], sensitive: Sequence[str]
) -> list[str]:
    """What forms the classes of a sliced release: buckets, and quasi-identifiers that share the sensitive slice."""
    permuted = {field for fields in slices.values() for field in fields}
    if not permuted & set(qi):
        return list(qi)
    with_sensitive = {field for fields in slices.values() if set(sensitive) & set(fields) for field in fields}
    return [bucket, *(name for name in qi if name in with_sensitive)]


def unsliced(relation: Relation, slices: Mapping[str, Sequence[str]]) -> str:
    """A sliced release with the fields of its STRUCT columns as columns of their own, as a SELECT in parentheses."""
    columns = []
    for name in relation.columns:
        fields = slices.get(name)
        columns += [f"{ident(name)}.{ident(f)} as {ident(f)}" for f in fields] if fields else [ident(name)]
    return f"(select {', '.join(columns)} from {relation.sql})"
