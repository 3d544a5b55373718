"""Entries: what the package knows of each of its SQL functions.

There are five kinds, plain frozen dataclasses: `Method` releases a table with a pure kernel (coded table in, columns
out); `Report` has a fixed schema and a kernel over coded tables; `Query` writes the SQL of its answer and nothing else
runs; `Task` does its work when the call runs, with the package's functions on a connection; `PureSql` is a macro of
`sql/` whose column lists are filled in from the columns' roles.

A module in `methods/`, `measures/` or `report/` declares its entries as module-level values, or writes a `Report` or
`Query` as a decorator of its function, which makes the function's name the entry; `registry` finds them there.
An entry is whole: SQL functions, help, function pages, `recommend`, contract tests and random calls read it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.errors import ColumnError, listed
from duckdb_anon.model.parameters import REQUIRED, Parameter, ParameterKind, Params
from duckdb_anon.model.released_columns import Cells

__all__ = ["REQUIRED", "Parameter", "ParameterKind", "Params"]
SECTIONS = (
    "Methods",
    "Equivalence classes",
    "Risk",
    "Utility",
    "Queries",
    "Safe outputs",
    "Preparing a call",
    "Choosing",
    "Help",
    "From papers, for comparison",
)
"""Headings of the function page, in order."""


@dataclass(frozen=True)
class ColumnPlan:
    """How one released column is decoded: the class of its cells, known before any row is read."""

    name: str  # released column name
    cells: type[Cells]  # class of the cells the kernel will return for it
    column: str | None = None  # source column that gives it values (Source) or the attribute (Coded, Interval, ...)
    fields: tuple[ColumnPlan, ...] = ()  # for Struct, the plans of its fields
    declared_type: str = ""  # DuckDB type of the column; set where cells may hold values that no row has


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
    person: ColumnInfo | None = None  # the unit that is protected or counted: an individual, or a household
    identifier: tuple[str, ...] = ()
    household: ColumnInfo | None = None

    @property
    def coded(self) -> tuple[ColumnInfo, ...]:
        """Every column that is coded, the person column last."""
        return self.qi + self.sensitive + ((self.person,) if self.person else ())

    @property
    def attributes(self) -> tuple[ColumnInfo, ...]:
        """Every column that a release shows."""
        return self.qi + self.sensitive + self.keep

    def by_name(self) -> dict[str, str]:
        """Role of each column."""
        infos = {"quasi": self.qi, "sensitive": self.sensitive, "insensitive": self.keep}
        roles = {info.name: role for role, columns in infos.items() for info in columns}
        roles |= dict.fromkeys(self.identifier, "identifier")
        roles |= {self.person.name: "person"} if self.person else {}
        return roles | ({self.household.name: "household"} if self.household else {})

    def trees(self) -> dict[str, str]:
        """Hierarchy table of each column that has one."""
        return {info.name: info.hierarchy for info in self.attributes if info.hierarchy}

    def one_sensitive(self, function: str) -> ColumnInfo:
        """The sensitive column of a function that takes exactly one."""
        if len(self.sensitive) != 1:
            found = listed(info.name for info in self.sensitive)
            raise ColumnError(
                f"{function}: takes one sensitive column, found {found}. Name it in sensitive := '...' "
                "(methods release other columns that are named in keep := [...])"
            )
        return self.sensitive[0]


Unit = Literal["row", "person", "any"]
"""What a function protects or counts.

'row': each row as one individual, so a table with several rows of one individual is refused; 'person': individuals,
where a column has the role person; 'any': its answer is not about individuals.
"""


Finished = Literal["rows", "values", "classes", "diverse", "buckets", "lists"]
"""What holds of a whole release. 'rows': as many as the table has. 'values': each quasi-identifier has the table's
values as often as the table. 'classes': at least k rows of each combination of quasi-identifiers. 'diverse': classes
have the l and t that the call requires. 'buckets': counts are of all rows of their buckets, none above 1 / l of them.
'lists': at least k rows of each list of sensitive values."""


@dataclass(frozen=True)
class Cutting:
    """How a table too large for one call is cut into parts, each of which the method can work by itself."""

    # 'cut': similar rows together, see `parts.split_planner`; 'deal': rows at random, for methods to which no row is
    # nearer than another; 'deal by value': the rows of each sensitive value spread over the parts
    by: Literal["cut", "deal", "deal by value"]
    requirement: Any = None  # what every part must satisfy (a `kernels.partition.PrivacyModel`); None with 'deal'
    codes: Any = None  # sensitive code the requirement reads, of each row of the table it was made from
    persons: bool = False  # whether parts are of persons, all rows of one together, cut by the first row of each
    most: int | None = None  # most rows (persons) a part may have, whatever the memory
    settled: Mapping[str, Any] | None = None  # parameters that are fixed for all parts
    share: float = 1.0  # share of the rows that is released, where a sample is


Parts = Callable[[CodedTable, Params, bool], Cutting]
"""(combinations of sensitive values that occur, parameters, whether an individual has several rows) -> how to cut.

The table has one row a combination of sensitive values, and the attributes of the whole.
"""
Layout = Callable[[Roles, Params], tuple[ColumnPlan, ...]]
Release = Callable[[CodedTable, Params, np.random.Generator], dict[str, Cells]]


@dataclass(frozen=True)
class Sweep:
    """Calls of one method that differ in strength, which `recommend` tries from weak to strong.

    It stops at the first call that meets the largest risk, since a stronger one only loses more, or that the table
    cannot meet, since a stronger one asks for more.
    """

    arguments: str  # with {n} for the strength and {l} for an l: the strength, but no more than the table can meet
    strengths: tuple[float, ...]  # from weak to strong
    note: str = ""  # what to keep in mind when its figures are read
    # whether the method looks for columns in the rows; the call then names those it found
    finds_columns: bool = False

    def calls(self, most: int) -> list[str]:
        """Arguments of each call, weak to strong, where no l above `most` can be met; each once.

        >>> Sweep("k := {n}, l := {l}", (5, 10, 25)).calls(8)
        ['k := 5, l := 5', 'k := 10, l := 8', 'k := 25, l := 8']
        """
        texts = [self.arguments.format(n=n, l=min(n, max(most, 2))) for n in self.strengths]
        return list(dict.fromkeys(texts))


@dataclass(frozen=True, kw_only=True)
class Function:
    """What every entry has."""

    name: str  # SQL name; of an entry that decorates its function, by default the function's name
    summary: str  # one line for `anon_functions()` and the function's page
    paper: str = ""  # authors, year, section
    example: str  # a statement that runs on the tables of tests/contract and gives rows
    section: str  # heading of the function page it stands under, one of `SECTIONS`
    # its own parameters; tables, roles, `row_id` and `seed` are added, see `planner.parameters_of`
    parameters: tuple[Parameter, ...] = ()
    # named arguments that a call cannot do without besides its tables, as weak as a tiny table can meet. In a measure
    # {original} and {release} stand for tables, {number} and {text} for an ordered and a nominal quasi-identifier,
    # {sensitive} for the sensitive column.
    smallest: str = ""
    trials: tuple[str, ...] = ()  # further named arguments that the random calls of tests/fuzz try
    unit: Unit = "any"  # what it protects or counts, see `Unit`
    instead: tuple[str, ...] = ()  # functions that count individuals, offered where a table has several rows of one
    extra: str = ""  # the extra of the package that it needs


@dataclass(frozen=True, kw_only=True)
class Method(Function):
    """A method that releases a table."""

    layout: Layout  # released columns, from roles and parameters, before any row is read
    release: Release  # the kernel. It must shuffle nothing: the engine does.
    formats: tuple[str, ...]  # formats of the release it makes, as `model.release_formats` names them
    section: str = "Methods"
    unit: Unit = "row"
    differentially_private: bool = False  # whether the release as a whole is
    needs: tuple[Literal["qi", "sensitive", "person"], ...] = ("qi",)  # roles without which the method makes no sense
    # checks across parameters and fills derived defaults; runs when the call is planned
    refine: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    # parameters the layout depends on but only rows can give, as changes to the parameters; runs when the call is
    # planned. Its last argument codes (a systematic sample of) the table when called.
    resolve_params: Callable[[Roles, Params, Callable[[], CodedTable]], Mapping[str, Any]] | None = None
    # what only rows can say of a call, for the description of its release: (parameters) -> a parameter that is a list,
    # a report, its arguments, and the SQL of the list on the report's answer; None where there is nothing to add
    described_by: Callable[[Params], tuple[str, str, Mapping[str, Any], str] | None] | None = None
    # SQL conditions on the table's columns by name; `CodedTable.other[name]` holds their truth in each row, 1 or 0
    conditions: Callable[[Roles, Params], Mapping[str, str]] | None = None
    sweeps: tuple[Sweep, ...] = ()  # what `recommend` tries of it; () where its figures would not say what it is for
    # how a table too large for one call is cut; None: what it releases is decided for the table as a whole
    parts: Parts | None = None
    finished: tuple[Finished, ...] = ()  # what SQL checks of a release put together from parts, see `Finished`
    # whether quasi-identifiers come out as other values of their own types, so that running the call on its own release
    # shows what it does
    moves_values: bool = False
    # group of each row inside which it moves values; None where it forms none
    groups: Callable[[CodedTable, Params], Any] | None = None


def fields(text: str) -> dict[str, str]:
    """Columns of an answer, written as SQL declares them.

    >>> fields("rows BIGINT, share DOUBLE OR NULL")
    {'rows': 'BIGINT', 'share': 'DOUBLE OR NULL'}
    """
    return dict(field.strip().split(" ", 1) for field in text.split(","))


Answer = Mapping[str, Any] | Sequence[Sequence[Any]] | Sequence[Mapping[str, Any]]
"""Columns of an answer by name, or rows: values in the order of the columns, or by name, NULL where one is missing."""


def _without_function(*_: object) -> Any:
    raise TypeError("the entry decorates no function")


@dataclass(frozen=True, kw_only=True)
class Report(Function):
    """A fixed-schema table function computed by a kernel, which the entry decorates."""

    name: str = ""
    # released column to DuckDB type (BIGINT, DOUBLE, VARCHAR or BOOLEAN); 'DOUBLE OR NULL' shows NaN so
    returns: Mapping[str, str]
    # gives the answer: of (tables, params, generator), or of a `MeasureCall` where it reads 'tables'
    compute: Callable[..., Answer] = _without_function
    # names of the parameters that are tables, in order; those of releases begin with 'release'
    tables: tuple[str, ...] = ("tbl",)
    unit: Unit = "row"
    labelled: str = ""  # the one of them that roles are resolved on; '' for the first one
    # names of parameters that may be a further table; those given are read after `tables`
    optional: tuple[str, ...] = ()
    # (planning context, roles, parameters) -> SELECTs in parentheses by name, whose rows are read last.
    # `params['read']` lists the names of everything read.
    further: Callable[[Any, Roles, Params], Mapping[str, str]] | None = None
    # 'coded': `compute` gets one `CodedTable` of the first table. 'tables': it gets a `ReadTable` for each table, coded
    # on a common domain; of the tables after the first, columns with the name of a labelled column, and those of a
    # release's format, are read. `params['roles']` holds the roles, `params['tables']` how SQL calls the tables.
    reads: Literal["coded", "tables"] = "coded"
    # whether the domains carry the SQL text of their values (for functions that write queries)
    literals: bool = False
    queried: tuple[str, ...] = ()  # those of the tables that are not coded: `compute` asks them in SQL
    # formats of releases it is right on; any other is refused before it is computed. The tables after the first, or a
    # single one, are releases; where another one is `labelled`, all but that.
    answers: tuple[str, ...] = ("rows",)
    needs: tuple[Literal["qi", "sensitive", "person"], ...] = ("qi",)
    # see `Method`, for a report that reads coded tables
    conditions: Callable[[Roles, Params], Mapping[str, str]] | None = None
    refine: Callable[[dict[str, Any]], dict[str, Any]] | None = None

    def __call__(self, compute: Callable[..., Answer]) -> Report:
        """The entry of a function, called as the function is where it has no name."""
        return replace(self, name=self.name or compute.__name__, compute=compute)

    def columns(self, answer: Answer) -> Mapping[str, Any]:
        """An answer as one sequence a column."""
        if isinstance(answer, Mapping):
            return answer
        rows = [list(map(row.get, self.returns)) if isinstance(row, Mapping) else row for row in answer]
        columns = zip(*rows, strict=True) if rows else ((),) * len(self.returns)
        return dict(zip(self.returns, map(list, columns), strict=True))


@dataclass(frozen=True, kw_only=True)
class Query(Function):
    """A function whose planner, which the entry decorates, writes the SQL that answers it."""

    name: str = ""
    # (planning context, checked parameters) -> SQL text of one SELECT
    plan: Callable[[Any, Params], str] = _without_function
    tables: tuple[str, ...] = ("tbl",)  # names of the parameters that are tables, given to `plan` resolved
    scalar: bool = False  # true for a scalar function (the SQL text itself is the result), such as rewrite_query
    # formats of releases it is right on; its plan refuses others, with `release_formats.refuse` or query by query
    answers: tuple[str, ...] = ("rows",)

    def __call__(self, plan: Callable[[Any, Params], str]) -> Query:
        """The entry of a planner, called as the planner is where it has no name."""
        return replace(self, name=self.name or plan.__name__, plan=plan)


@dataclass(frozen=True, kw_only=True)
class Task(Function):
    """A table function whose work is done when the call runs, with the other functions on a connection handed to it."""

    returns: Mapping[str, str]  # released column to DuckDB type (VARCHAR, DOUBLE, BIGINT or BOOLEAN)
    # (planning context, checked parameters) -> what the work needs to know, as JSON takes it, and name to scalar
    # subquery of each list of rows it needs, as the caller's statement sees them
    plan: Callable[[Any, Params], tuple[Mapping[str, Any], Mapping[str, str]]]
    # (loaded connection, what `plan` said, name to rows) -> rows of the answer, in order
    work: Callable[[Any, Mapping[str, Any], Mapping[str, Any]], Sequence[Mapping[str, Any]]]
    # 'callers': the connection is another one to the caller's database, in the caller's schema; it sees committed
    # tables, and what it commits stays. 'own': to a database in memory that goes when the work is done.
    database: Literal["callers", "own"] = "callers"
    requires_committed: bool = True  # False: `work` itself refuses rows that the caller's transaction has changed
    tables: tuple[str, ...] = ("tbl",)  # names of the parameters that are tables
    # of what `plan` said, the SELECT of the answer from `_anon_answer`, where its columns depend on the call
    select: Callable[[Mapping[str, Any]], str] | None = None


@dataclass(frozen=True, kw_only=True)
class PureSql(Function):
    """A table macro of sql/ with the signature (tbl, qi, [sensitive, ...]); roles fill what is not given.

    It reads raw tables and releases of the formats it `answers`; others are refused when the call is planned. A macro
    that counts individuals takes the column's name as `person`.
    """

    unit: Unit = "person"
    needs: tuple[Literal["qi", "sensitive", "person"], ...] = ("qi",)
    answers: tuple[str, ...] = ("rows",)


Entry = Method | Report | Query | Task | PureSql
