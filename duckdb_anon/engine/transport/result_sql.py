"""SQL that reads the result of a kernel: named columns become rows, and places in lists become values again.

The result is one row, so its lists are unnested in their order, which is the released one. What is looked up stands
with them as lists in the same row. Values are texts, cast to the type that their column has in the source. Only columns
that are the source's join with it, and are then ordered again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from duckdb_anon.engine.catalog.catalog import Relation
from duckdb_anon.engine.sql_quoting import ident, literal
from duckdb_anon.engine.transport.result_encoding import is_channel, source_key
from duckdb_anon.model import released_columns as c
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import ColumnPlan, Method, Params, Roles
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats import EDGES, SOURCE, released_name

_REPORT_COLUMNS = {"VARCHAR": "texts", "CODE": "texts", "DOUBLE": "reals", "DOUBLE OR NULL": "reals"}


def layout_of(entry: Method, roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """Released columns of a call, what `sensitive_edges` were and `row_id` last where the call has it."""
    layout = entry.layout(roles, params)
    if params.get(EDGES.word) is not None:
        layout += (ColumnPlan(EDGES.key, c.Whole),)
    if params["row_id"]:
        layout += (ColumnPlan(SOURCE.key, c.Source),)
    names = [fold(plan.name) for plan in layout]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ColumnError(f"{entry.name}: two released columns would be called {', '.join(twice)}. Rename the source's")
    return layout


def release_select(relation: Relation, roles: Roles, layout: Sequence[ColumnPlan]) -> str:
    """CTEs and SELECT of a release, after `_anon_src` and `_anon_run`."""
    taken = [*relation.columns, *(plan.name for plan in layout), *roles.by_name()]
    select = _Select()
    return select.sql({released_name(plan.name, taken): select.column(plan, ident(plan.name)) for plan in layout})


def report_select(returns: Mapping[str, str]) -> str:
    """CTEs and SELECT of a report, after `_anon_run`."""
    select = _Select()
    columns: dict[str, str] = {}
    for name, kind in returns.items():
        sql = select.row(_REPORT_COLUMNS.get(kind, "numbers"), ident(name))
        if kind == "BOOLEAN":
            sql = f"{sql} <> 0"
        elif kind == "INTEGER":
            sql = f"{sql}::integer"
        elif kind == "DOUBLE OR NULL":
            sql = f"case when not isnan({sql}) then {sql} end"
        columns[name] = select.value(sql)
    return select.sql(columns)


@dataclass
class _Select:
    """Collects what the columns of one result need, by alias; each CTE below is one row but the last two."""

    # `_anon_types`: columns of the source to whose type texts are cast
    typed: dict[str, str] = field(default_factory=dict)
    # `_anon_values`: lists that lambdas read, which would be computed for each of their entries
    values: list[str] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)  # `_anon_cells`: lists of what rows look up
    rows: list[str] = field(default_factory=list)  # `_anon_rows`: lists with one entry a row
    decoded: list[str] = field(default_factory=list)  # `_anon_decoded`: the values of a row
    source: str = ""  # SQL of the number of the source row of a row, where columns are read from the source

    def column(self, plan: ColumnPlan, key: str) -> str:
        """SQL of a released column, which was encoded under the name `key`."""
        name = plan.column or plan.name
        if is_channel(plan):
            return self.channel(key, self.channels(plan, key))
        if plan.cells is c.Struct:
            fields = (f"{literal(f.name)}: {self.column(f, _field(key, f))}" for f in plan.fields)
            return "{" + ", ".join(fields) + "}"
        if plan.cells is c.Source and plan.name == SOURCE.key:
            return self.value(f"case when {(row := self.row('numbers', source_key(plan, key)))} >= 0 then {row} end")
        if plan.cells is c.Source:
            self.source = self.source or self.value(self.row("numbers", source_key(plan, key)))
            return f"_anon_source.{ident(name)}"
        if plan.cells in (c.Whole, c.Real):
            return self.value(self.row("numbers" if plan.cells is c.Whole else "reals", key))
        return self.looked_up(key, self.different(plan, name, key))

    def different(self, plan: ColumnPlan, name: str, key: str) -> str:
        """SQL of the list of different values of a released column."""
        texts, lists = f"_anon_r.texts[{literal(key)}]", f"_anon_r.lists[{literal(key)}]"
        if plan.cells is c.Node:
            return texts
        if plan.cells is c.NodeSet:
            return f"list_transform({lists}, lambda _s: list_select({self.once(texts)}, _s))"
        if plan.cells is c.Interval:
            ends = (self.cast(f"_anon_r.texts[{literal(f'{key}.{end}')}]", name) for end in ("lower", "upper"))
            return f"list_transform(list_zip({', '.join(ends)}), lambda _s: {{'lower': _s[1], 'upper': _s[2]}})"
        values = self.cast(texts, name, plan.declared_type)
        if plan.cells is c.ValueSet:
            return f"list_transform({lists}, lambda _s: list_select({self.once(values)}, _s))"
        if plan.cells is c.Counts:
            pairs = f"list_zip({lists}, _anon_r.lists[{literal(f'{key}.counts')}])"
            return f"list_transform({pairs}, lambda _s: map(list_select({self.once(values)}, _s[1]), _s[2]::bigint[]))"
        return values

    def channels(self, plan: ColumnPlan, key: str) -> str:
        """SQL of how columns were randomized."""
        if plan.cells is c.Struct:
            fields = (f"{literal(f.name)}: {self.channels(f, _field(key, f))}" for f in plan.fields)
            return "{" + ", ".join(fields) + "}"
        domain = self.cast(f"_anon_r.texts[{literal(key)}]", plan.column or plan.name, plan.declared_type)
        return f"{{'p': _anon_r.reals[{literal(key)}][1], 'domain': {domain}}}"

    def cast(self, texts: str, name: str, declared_type: str = "") -> str:
        """SQL of texts as values of a declared type, or of the type that a column has when the call runs."""
        if declared_type:
            return f"{texts}::{declared_type}[]"
        self.typed.setdefault(name, f"list({ident(name)}) as {ident(name)}")
        return f"cast_to_type({texts}, _anon_types.{ident(name)})"

    def once(self, sql: str) -> str:
        """Have a list computed before the lambdas that read it; return its column."""
        if sql not in self.values:
            self.values.append(sql)
        return f"_v{self.values.index(sql)}"

    def cells(self, sql: str) -> str:
        """Have a list computed once; return what a row calls it."""
        if sql not in self.listed:
            self.listed.append(sql)
        return f"_c{self.listed.index(sql)}"

    def row(self, kind: str, key: str) -> str:
        """Have a list unnested; return its entry."""
        self.rows.append(f"rows.{kind}[{literal(key)}]")
        return f"_r{len(self.rows) - 1}"

    def value(self, sql: str) -> str:
        """Have `sql` computed for each row; return the column to select."""
        self.decoded.append(sql)
        return f"_anon_decoded._x{len(self.decoded) - 1}"

    def looked_up(self, key: str, listed: str) -> str:
        """A column of places in a list."""
        return self.value(f"{self.cells(listed)}[{self.row('codes', key)}]")

    def channel(self, key: str, sql: str) -> str:
        """A column of one value, in the rows whose code is 1."""
        return self.value(f"case when {self.row('codes', key)} = 1 then {self.cells(sql)} end")

    def sql(self, columns: Mapping[str, str]) -> str:
        """CTEs and SELECT around the expressions of columns."""
        ctes = [
            "_anon_result as materialized (select r as _anon_r from _anon_run "
            "where case when r.error is null then true else error(r.error) end)"
        ]
        constants = ["_anon_result"]
        if self.typed:
            types = ", ".join(self.typed.values())
            ctes.append(f"_anon_types as (select {types} from (select * from _anon_src limit 0) as _anon_none)")
            constants.append("_anon_types")
        if self.values:
            values = ", ".join(f"{sql} as _v{k}" for k, sql in enumerate(self.values))
            ctes.append(f"_anon_values as materialized (select {values} from {', '.join(constants)})")
            constants.append("_anon_values")
        names = [f"_c{k}" for k in range(len(self.listed))]
        source = "_anon_result"
        if self.listed:
            listed = ", ".join(f"{sql} as {name}" for sql, name in zip(self.listed, names, strict=True))
            ctes.append(f"_anon_cells as materialized (select {listed} from {', '.join(constants)})")
            source += ", _anon_cells"
        order = ["unnest(range(n)) as _ord"] if self.source else []
        rows = [f"unnest({sql}) as _r{k}" for k, sql in enumerate(self.rows)]
        taken = ", ".join(["_anon_r.n as n", "_anon_take({rows: _anon_r.rows}) as rows", *names])
        ctes.append(f"_anon_taken as (select {taken} from {source})")
        ctes.append(f"_anon_rows as (select {', '.join([*order, *rows, *names])} from _anon_taken)")
        decoded = [f"{sql} as _x{k}" for k, sql in enumerate(self.decoded)]
        ctes.append(f"_anon_decoded as (select {', '.join(['_ord'] * bool(order) + decoded)} from _anon_rows)")
        joins = f" left join _anon_src as _anon_source on _anon_source._anon_rn = {self.source}" if self.source else ""
        # a join may hand rows over in the order of the source
        ordered = " order by _anon_decoded._ord" if self.source else ""
        released = ", ".join(f"{sql} as {ident(name)}" for name, sql in columns.items())
        return ",\n".join(ctes) + f"\nselect {released}\nfrom _anon_decoded{joins}{ordered}"


def _field(key: str, part: ColumnPlan) -> str:
    """Name under which a field of a STRUCT was encoded."""
    return f"{key}.{ident(part.name)}"
