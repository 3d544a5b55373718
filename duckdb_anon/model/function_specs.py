"""What a registry entry says about a function: its parameters, what it reads and what it gives back.

Five kinds of entry, all plain frozen dataclasses:

* `Method`: a table function that releases a table. Its kernel is pure (coded table in, cells out).
* `Report`: a table function with a fixed schema, computed by a kernel over one or more coded tables.
* `Query`: a function whose planner writes SQL and nothing else runs.
* `Task`: a function whose work is done when the call runs, with the package's own functions on a connection.
* `PureSql`: a macro of `sql/` whose column lists are filled in from the columns' roles.

An entry is whole: all that is told of a function (`anon_functions`, the page, `recommend`) stands in it. `example` is a
statement on the tables that tests/contract makes: `people`, the labelled table of README's example, `visits`, in which
persons have several rows, and the releases that the methods' examples make of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.errors import ColumnError, listed
from duckdb_anon.model.parameters import REQUIRED, Parameter, ParameterKind, Params
from duckdb_anon.model.released_columns import Cells

__all__ = [
    "REQUIRED", "ColumnInfo", "ColumnPlan", "Cutting", "Entry", "Ladder", "Layout", "Method", "Parameter",
    "ParameterKind", "Params", "Parts", "PureSql", "Query", "Release", "Report", "Roles", "Task", "Unit",
]  # fmt: skip


@dataclass(frozen=True)
class ColumnPlan:
    """How one released column is decoded: the class of its cells, known before any row is read.

    Attributes:
        name: released column name.
        cells: class of the cells the kernel will return for it.
        column: source column that gives it values (Source) or the attribute (Coded, Interval, ...).
        frame: cells of the same frame share one `index` array.
        fields: for Struct, the plans of its fields.
        declared_type: DuckDB type of the column; set where cells may hold values that no row has.
        different: whether its cells are listed once each, in a frame of its own.
    """

    name: str
    cells: type[Cells]
    column: str | None = None
    frame: str = "group"
    fields: tuple[ColumnPlan, ...] = ()
    declared_type: str = ""
    different: bool = False


@dataclass(frozen=True)
class ColumnInfo:
    """A source column as the planner sees it: name, DuckDB type ('' when not visible), kind of attribute."""

    name: str
    type: str = ""
    kind: Literal["ordered", "nominal", "hierarchy", ""] = ""
    hierarchy: str | None = None


@dataclass(frozen=True)
class Roles:
    """Columns by role, in table order (arguments keep their own order)."""

    qi: tuple[ColumnInfo, ...] = ()
    sensitive: tuple[ColumnInfo, ...] = ()
    keep: tuple[ColumnInfo, ...] = ()
    person: ColumnInfo | None = None
    identifier: tuple[str, ...] = ()

    def one_sensitive(self, function: str) -> ColumnInfo:
        """The sensitive column of a function that takes exactly one.

        Raises:
            ColumnError: there are several, or none.
        """
        if len(self.sensitive) != 1:
            found = listed(info.name for info in self.sensitive)
            raise ColumnError(
                f"{function}: takes one sensitive column, found {found}; name it in sensitive := '...' "
                "(methods release other columns that are named in keep := [...])"
            )
        return self.sensitive[0]


Unit = Literal["row", "person", "any"]
"""Whom a function protects or measures.

'row': it takes each row for a person of its own, so a table in which somebody has several rows is refused; 'person':
it counts persons wherever a column says whose row it is; 'any': nothing it says is about persons.
"""


Finished = Literal["rows", "values", "classes", "diverse", "buckets", "lists"]
"""What holds of a whole release. 'rows': it has as many as the table. 'values': each quasi-identifier has the table's
values as often as the table, where output tables (if there are any) are uniform. 'classes': at least k rows of each
combination of quasi-identifiers. 'diverse': classes have the l and t that the call asks for. 'buckets': counts are of
all rows of their buckets, none above 1 / l of them. 'lists': at least k rows of each list of sensitive values."""


@dataclass(frozen=True)
class Cutting:
    """How a table too large for one call is cut into parts, each of which the method can work by itself.

    Attributes:
        by: 'loss', 'median', 'sse': the first cuts the method itself would make, see
            `kernels.partition.split_from_counts`;
            'deal': rows at random, for methods to which no row is nearer than another; 'deal by value': the rows of
            each sensitive value spread over the parts.
        requirement: what every part must satisfy (a `kernels.partition.Requirement`), None where nothing is asked.
        codes: sensitive code the requirement reads, of each row of the table it was made from.
        width: how median cuts rank attributes.
        persons: whether parts are of persons, all rows of one together, cut by the first row of each.
        most: most rows (persons) a part may have, whatever the memory.
        settled: parameters that are fixed for all parts.
        share: share of the rows that is released, where a sample is.
    """

    by: Literal["loss", "median", "sse", "deal", "deal by value"]
    requirement: Any = None
    codes: Any = None
    width: str = "range"
    persons: bool = False
    most: int | None = None
    settled: Mapping[str, Any] | None = None
    share: float = 1.0


Parts = Callable[[CodedTable, Params, bool], Cutting]
"""(combinations of sensitive values that occur, parameters, whether somebody has several rows) -> how to cut.

The table has one row a combination of sensitive values, and the attributes of the whole.
"""
Layout = Callable[[Roles, Params], tuple[ColumnPlan, ...]]
Release = Callable[[CodedTable, Params, np.random.Generator], dict[str, Cells]]


@dataclass(frozen=True)
class Ladder:
    """Calls of one method that differ in strength, for `recommend` to climb.

    A ladder is climbed until a step meets the largest risk, since a stronger one would only lose more, or cannot be
    taken, since a stronger one asks for more.

    Attributes:
        arguments: with {n} for the strength and {l} for an l: the strength, but no more than the table can meet.
        strengths: from weak to strong.
        note: what to keep in mind when its figures are read.
        finds_columns: whether the method looks for columns in the rows; the call then names those it found.
    """

    arguments: str
    strengths: tuple[float, ...]
    note: str = ""
    finds_columns: bool = False

    def calls(self, most: int) -> list[str]:
        """Arguments of each step, weak to strong, where no l above `most` can be met; each once.

        >>> Ladder("k := {n}, l := {l}", (5, 10, 25)).calls(8)
        ['k := 5, l := 5', 'k := 10, l := 8', 'k := 25, l := 8']
        """
        texts = [self.arguments.format(n=n, l=min(n, max(most, 2))) for n in self.strengths]
        return list(dict.fromkeys(texts))


@dataclass(frozen=True)
class Method:
    """A method that releases a table.

    Attributes:
        name: SQL name.
        summary: one line for `anon_functions()`.
        paper: authors, year, section.
        example: a statement `CREATE TABLE ... AS FROM ...`.
        smallest: the arguments a call cannot do without, the weakest a tiny table can meet; roles are given beside
            them. Contract tests call every method so.
        parameters: own parameters; roles, `row_id` and `seed` are added to every method.
        layout: released columns, from roles and parameters, before any row is read.
        release: the kernel. It must shuffle nothing: the engine does.
        needs: roles without which the method makes no sense.
        refine: checks across parameters and fills derived defaults; runs when the call is planned.
        settle: parameters the layout depends on but only rows can tell, as changes to the parameters; runs when
            the call is planned. Its last argument codes (a systematic sample of) the table when called.
        conditions: SQL conditions on the table's columns by name; `CodedTable.other[name]` holds their truth in
            each row, 1 or 0.
        combinations: columns whose combinations of values DuckDB counts for `CodedTable.combinations`.
        ladders: what `recommend` tries of it; () where its figures would not say what it is for.
        unit: whom it protects, see `Unit`.
        parts: how a table too large for one call is cut; None: what it releases is decided for the table as a whole.
        finished: what is asked in SQL of a whole release whose parts were put together, see `Finished`.
        moves_values: whether quasi-identifiers come out as other values of their own types, so that running the call on
            its own release shows what it does. Boxes, and values that stay, say so themselves.
    """

    name: str
    summary: str
    paper: str
    example: str
    smallest: str
    parameters: tuple[Parameter, ...]
    layout: Layout
    release: Release
    needs: tuple[Literal["qi", "sensitive", "person"], ...] = ("qi",)
    refine: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    settle: Callable[[Roles, Params, Callable[[], CodedTable]], Mapping[str, Any]] | None = None
    conditions: Callable[[Roles, Params], Mapping[str, str]] | None = None
    combinations: Callable[[Roles, Params], Sequence[ColumnInfo]] | None = None
    ladders: tuple[Ladder, ...] = ()
    unit: Unit = "row"
    parts: Parts | None = None
    finished: tuple[Finished, ...] = ()
    moves_values: bool = False


@dataclass(frozen=True)
class Report:
    """A fixed-schema table function computed by a kernel.

    Attributes:
        returns: released column to DuckDB type (BIGINT, DOUBLE, VARCHAR or BOOLEAN); 'DOUBLE OR NULL' shows NaN so.
        tables: names of the parameters that are tables, in order.
        labelled: the one of them that roles are resolved on; '' for the first one.
        optional: names of parameters that may be a further table; those given are read after `tables`.
        further: (planning context, roles, parameters) -> SELECTs in parentheses by name, whose rows are read last.
            `params['read']` lists the names of everything read.
        reads: 'coded': `compute` gets one `CodedTable` of the first table. 'tables': it gets a `ReadTable` for
            each table, coded on a common domain; of the tables after the first, the columns that bear the
            name of a labelled column, and those that tell a release's shape, are read. `params['roles']`
            holds the roles, `params['tables']` how SQL calls the tables.
        answers: shapes of releases it is right on; any other is refused before it is computed. The tables after
            the first, or a single one, are releases; where another one is `labelled`, all but that.
        literals: whether the domains carry the SQL text of their values (for functions that write queries).
        compute: (tables, params, generator) -> column arrays of equal length.
        unit: whose risk it measures, see `Unit`.
    """

    name: str
    summary: str
    paper: str
    example: str
    parameters: tuple[Parameter, ...]
    returns: Mapping[str, str]
    compute: Callable[[Sequence[Any], Params, np.random.Generator], Mapping[str, Any]]
    tables: tuple[str, ...] = ("tbl",)
    labelled: str = ""
    optional: tuple[str, ...] = ()
    further: Callable[[Any, Roles, Params], Mapping[str, str]] | None = None
    reads: Literal["coded", "tables"] = "coded"
    literals: bool = False
    answers: tuple[str, ...] = ("rows",)
    needs: tuple[Literal["qi", "sensitive", "person"], ...] = ("qi",)
    refine: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    unit: Unit = "row"

    def columns(self, rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
        """Rows of the answer as `compute` gives them back: a list a column."""
        columns = zip(*rows, strict=True) if rows else ((),) * len(self.returns)
        return dict(zip(self.returns, map(list, columns), strict=True))


@dataclass(frozen=True)
class Query:
    """A function whose planner writes the SQL that answers it.

    Attributes:
        plan: (planning context, checked parameters) -> SQL text of one SELECT.
        scalar: true for a scalar function (the SQL text itself is the result), such as rewrite_query.
        tables: names of the parameters that are tables, given to `plan` resolved.
        answers: shapes of releases it is right on; its plan refuses others, with `shapes.refuse` or query by query.
        unit: whose risk it measures, see `Unit`; the rows of the first of `tables` are looked at when the call runs.
    """

    name: str
    summary: str
    paper: str
    example: str
    parameters: tuple[Parameter, ...]
    plan: Callable[[Any, Params], str]
    tables: tuple[str, ...] = ("tbl",)
    scalar: bool = False
    answers: tuple[str, ...] = ("rows",)
    unit: Unit = "any"


@dataclass(frozen=True)
class Task:
    """A table function whose work is done when the call runs, with the other functions on a connection handed to it.

    Attributes:
        returns: released column to DuckDB type (VARCHAR, DOUBLE, BIGINT or BOOLEAN).
        plan: (planning context, checked parameters) -> what the work needs to know, as JSON takes it, and name to
            scalar subquery of each list of rows it needs, as the caller's statement sees them.
        work: (loaded connection, what `plan` said, name to rows) -> rows of the answer, in order.
        database: 'callers': the connection is another one to the caller's database, in the caller's schema; it sees
            committed tables, and what it commits stays. 'own': to a database in memory that goes when the work is done.
        tables: names of the parameters that are tables.
        unit: whose risk it measures, see `Unit`; told here, kept by the functions it calls.
    """

    name: str
    summary: str
    paper: str
    example: str
    parameters: tuple[Parameter, ...]
    returns: Mapping[str, str]
    plan: Callable[[Any, Params], tuple[Mapping[str, Any], Mapping[str, str]]]
    work: Callable[[Any, Mapping[str, Any], Mapping[str, Any]], Sequence[Mapping[str, Any]]]
    database: Literal["callers", "own"] = "callers"
    tables: tuple[str, ...] = ("tbl",)
    unit: Unit = "any"


@dataclass(frozen=True)
class PureSql:
    """A table macro of sql/ with the signature (tbl, qi, [sensitive, ...]); roles fill what is not given.

    It reads raw tables and releases of the shapes it `answers`; others are refused when the call is planned. `unit`
    says whose risk it measures, see `Unit`; a macro that counts persons takes the column's name as `person`.
    """

    name: str
    summary: str
    paper: str
    example: str
    parameters: tuple[Parameter, ...]
    file: str
    needs: tuple[Literal["qi", "sensitive", "person"], ...] = ("qi",)
    answers: tuple[str, ...] = ("rows",)
    unit: Unit = "person"


Entry = Method | Report | Query | Task | PureSql
