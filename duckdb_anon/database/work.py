"""The working tables of a release of a database: the rows of its tables, with the individual of each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import duckdb

from duckdb_anon.database.plan import NAME, Plan, Table
from duckdb_anon.engine.catalog.sensitive_coarsening import joined_rows
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.kernels.attacks.linked_records import Covered
from duckdb_anon.model.errors import AnonError, RequirementError, cause_of
from duckdb_anon.model.function_specs import ColumnInfo, Roles
from duckdb_anon.parts.run_part import message_of


@dataclass(frozen=True)
class Work:
    """The working tables of a release, in a database in memory of their own."""

    con: duckdb.DuckDBPyConnection  # the connection
    plan: Plan  # what is released
    space: str  # name of the database
    covered: list[Covered] = field(default_factory=list)  # what was permuted last, for attackers to be tried on

    def of(self, table: Table, what: str = "rows") -> str:
        """A working table of a table of the plan."""
        # rows: with individual _anon_i, its key _anon_k, their number _anon_n, their parent's _anon_p; events: known
        # events with their place _anon_s; kept: numbers and places of released rows; release: what is released
        return f"{self.space}.{ident(f'{what} of {table.name}')}"

    @property
    def wide(self) -> str:
        """One row an individual: `i`, and its known record."""
        return f"{self.space}.wide"

    @property
    def cut(self) -> str:
        """Those rows of `wide` whose classes are made next."""
        return f"{self.space}.cut"

    @property
    def boxes(self) -> str:
        """One row an individual: `i`, class `c`, and its generalized record."""
        return f"{self.space}.boxes"

    def parent(self, table: Table) -> Table | None:
        """The parent of a table; None for the table of individuals and what is linked to it."""
        above = table.link.parent if table.link else self.plan.individuals.name
        return next((other for other in self.plan.tables[1:] if other.name == above), None)


def read_rows(work: Work) -> None:
    """Number the individuals, and find the individual of every row."""
    con, plan = work.con, work.plan
    first = plan.individuals
    _require_unique(con, first, plan.key)
    con.execute(
        f"create table {work.of(first)} as select row_number() over () - 1 as _anon_i, {ident(plan.key)} as _anon_k, "
        f"row_number() over () - 1 as _anon_n, null::bigint as _anon_p, * from {first.relation.sql} "
        f"where {ident(plan.key)} is not null"
    )
    for table in plan.tables[1:]:
        if table.link is None:
            continue
        parent = next(other for other in plan.tables if other.name == table.link.parent)
        if parent is not first:
            _require_unique(con, parent, table.link.to)
        con.execute(
            f"create table {work.of(table)} as select p._anon_i, p._anon_k, row_number() over () - 1 as _anon_n, "
            f"p._anon_n as _anon_p, t.* from {table.relation.sql} as t join {work.of(parent)} as p "
            f"on t.{ident(table.link.column)} = p.{ident(table.link.to)}"
        )


def join_rare_values(work: Work) -> None:
    """Put means in the place of rare sensitive numbers and dates, so that each is that of enough individuals."""
    for table in work.plan.tables:
        infos = table.joined()
        if not infos or work.plan.sensitive_edges == 1:
            continue
        relation = replace(table.relation, sql=work.of(table), place=None)
        roles = Roles(sensitive=infos, person=ColumnInfo("_anon_i"))
        rows = joined_rows(NAME, relation, roles, work.plan.sensitive_edges, True)
        try:
            work.con.execute(f"create or replace table {work.of(table)} as {rows}")
        except duckdb.Error as error:
            text, mark = message_of(error, NAME), f" [{RequirementError.code}]"
            kind = RequirementError if text.endswith(mark) else AnonError
            raise kind(text.removesuffix(mark)) from cause_of(error)


def _require_unique(con: duckdb.DuckDBPyConnection, table: Table, column: str) -> None:
    present, distinct = con.execute(
        f"select count({ident(column)}), count(distinct {ident(column)}) from {table.relation.sql}"
    ).fetchall()[0]
    if distinct < present:
        raise AnonError(
            f"{NAME}: {table.name}.{column} has {distinct} values in {present} rows. A key that other tables refer to "
            "is unique. Remove the duplicates, or name another column"
        )
