"""What a registry entry says about a function: its parameters, what it reads and what it gives back.

Four kinds of entry, all plain frozen dataclasses:

* `Method`: a table function that releases a table. Its kernel is pure (coded table in, cells out).
* `Report`: a table function with a fixed schema, computed by a kernel over one or more coded tables.
* `Query`: a function whose planner writes SQL and nothing else runs.
* `PureSql`: a macro of `sql/` whose column lists are filled in from the columns' roles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from duckdb_anon.model.cells import Cells
from duckdb_anon.model.errors import ColumnError, ParameterError, listed, nearest
from duckdb_anon.model.table import CodedTable

REQUIRED = object()
ParameterKind = Literal["number", "fraction", "integer", "text", "boolean", "names", "mapping", "any"]
Params = Mapping[str, Any]


@dataclass(frozen=True)
class Parameter:
    """One argument of a SQL function.

    Attributes:
        name: its SQL name.
        doc: one line: meaning, unit, range.
        kind: 'number' float, 'fraction' exact (0.2 and 1/6 alike), 'integer', 'text', 'boolean', 'names'
            (a list of column names; one name is a list of one), 'mapping' (MAP or STRUCT), 'any' (unchecked).
        default: value when not given; REQUIRED has none.
        choices: allowed texts, for kind 'text'.
        low, high: inclusive range for numbers; `above` excludes its own value.
    """

    name: str
    doc: str
    kind: ParameterKind = "any"
    default: Any = None
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    above: float | None = None

    def check(self, function: str, given: Any) -> Any:
        """Return `given` as this parameter's type, or raise a ParameterError that says what is allowed."""
        if given is None:
            if self.default is REQUIRED:
                raise ParameterError(f"{function}: '{self.name}' is missing; {self.doc}")
            return self.default
        try:
            value = _CONVERT[self.kind](given)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise ParameterError(
                f"{function}: {self.name} := {given!r} is not {_ARTICLE[self.kind]}; {self.doc}"
            ) from error
        if self.choices and value not in self.choices:
            raise ParameterError(
                f"{function}: {self.name} := {given!r} is none of {listed(self.choices)}"
                f"{nearest(str(given), self.choices)}"
            )
        self._check_range(function, given, value)
        return value

    def _check_range(self, function: str, given: Any, value: Any) -> None:
        if self.kind not in ("number", "fraction", "integer"):
            return
        finite = np.isfinite(float(value))
        low = self.low is None or value >= self.low
        high = self.high is None or value <= self.high
        above = self.above is None or value > self.above
        if not (finite and low and high and above):
            ends = (("above", self.above), ("at least", self.low), ("at most", self.high))
            allowed = " and ".join(f"{word} {end:g}" for word, end in ends if end is not None) or "finite"
            raise ParameterError(
                f"{function}: {self.name} := {given} is out of range, it must be {allowed}; {self.doc}"
            )


def _names(given: Any) -> list[str]:
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Sequence) or not all(isinstance(g, str) for g in given):
        raise TypeError
    return list(given)


def _mapping(given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(given)
    if isinstance(given, Sequence) and not isinstance(given, str):
        return dict(given)  # a DuckDB MAP arrives as a list of pairs
    raise TypeError


def _integer(given: Any) -> int:
    if isinstance(given, bool) or float(given) != int(given):
        raise TypeError
    return int(given)


def _fraction(given: Any) -> Fraction:
    if isinstance(given, bool):
        raise TypeError
    if isinstance(given, float):
        near = Fraction(given).limit_denominator(10_000)
        return near if abs(float(near) - given) < 1e-15 else Fraction(given)
    return Fraction(given)


def _number(given: Any) -> float:
    if isinstance(given, (bool, str)):
        raise TypeError
    return float(given)


def _boolean(given: Any) -> bool:
    if not isinstance(given, bool):
        raise TypeError
    return given


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError
    return given


_CONVERT: dict[str, Callable[[Any], Any]] = {
    "number": _number,
    "fraction": _fraction,
    "integer": _integer,
    "text": _text,
    "boolean": _boolean,
    "names": _names,
    "mapping": _mapping,
    "any": lambda given: float(given) if isinstance(given, Decimal) else given,
}
_ARTICLE = {
    "number": "a number",
    "fraction": "a number",
    "integer": "a whole number",
    "text": "a text",
    "boolean": "true or false",
    "names": "a list of column names",
    "mapping": "a MAP or STRUCT",
    "any": "allowed",
}


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
    """

    name: str
    cells: type[Cells]
    column: str | None = None
    frame: str = "group"
    fields: tuple[ColumnPlan, ...] = ()
    declared_type: str = ""


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


Layout = Callable[[Roles, Params], tuple[ColumnPlan, ...]]
Release = Callable[[CodedTable, Params, np.random.Generator], dict[str, Cells]]


@dataclass(frozen=True)
class Method:
    """A method that releases a table.

    Attributes:
        name: SQL name.
        summary: one line for `anon_functions()`.
        paper: authors, year, section.
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
    """

    name: str
    summary: str
    paper: str
    parameters: tuple[Parameter, ...]
    layout: Layout
    release: Release
    needs: tuple[Literal["qi", "sensitive", "person"], ...] = ("qi",)
    refine: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    settle: Callable[[Roles, Params, Callable[[], CodedTable]], Mapping[str, Any]] | None = None
    conditions: Callable[[Roles, Params], Mapping[str, str]] | None = None
    combinations: Callable[[Roles, Params], Sequence[ColumnInfo]] | None = None


@dataclass(frozen=True)
class Report:
    """A fixed-schema table function computed by a kernel.

    Attributes:
        returns: released column to DuckDB type (BIGINT, DOUBLE, VARCHAR or BOOLEAN).
        tables: names of the parameters that are tables, in order.
        labelled: the one of them that roles are resolved on; '' for the first one.
        reads: 'coded': `compute` gets one `CodedTable` of the first table. 'tables': it gets a `ReadTable` for
            each table, coded on a common domain; of the tables after the first, the columns that bear the
            name of a labelled column, and those that tell a release's shape, are read. `params['roles']`
            holds the roles, `params['tables']` how SQL calls the tables.
        literals: whether the domains carry the SQL text of their values (for functions that write queries).
        compute: (tables, params, generator) -> column arrays of equal length.
    """

    name: str
    summary: str
    paper: str
    parameters: tuple[Parameter, ...]
    returns: Mapping[str, str]
    compute: Callable[[Sequence[Any], Params, np.random.Generator], Mapping[str, Any]]
    tables: tuple[str, ...] = ("tbl",)
    labelled: str = ""
    reads: Literal["coded", "tables"] = "coded"
    literals: bool = False
    needs: tuple[Literal["qi", "sensitive", "person"], ...] = ("qi",)
    refine: Callable[[dict[str, Any]], dict[str, Any]] | None = None


@dataclass(frozen=True)
class Query:
    """A function whose planner writes the SQL that answers it.

    Attributes:
        plan: (planning context, checked parameters) -> SQL text of one SELECT.
        scalar: true for a scalar function (the SQL text itself is the result), such as rewrite_query.
        tables: names of the parameters that are tables, given to `plan` resolved.
    """

    name: str
    summary: str
    paper: str
    parameters: tuple[Parameter, ...]
    plan: Callable[[Any, Params], str]
    tables: tuple[str, ...] = ("tbl",)
    scalar: bool = False


@dataclass(frozen=True)
class PureSql:
    """A table macro of sql/ with the signature (tbl, qi, [sensitive, ...]); roles fill what is not given."""

    name: str
    summary: str
    paper: str
    parameters: tuple[Parameter, ...]
    file: str
    needs: tuple[Literal["qi", "sensitive", "person"], ...] = ("qi",)


Entry = Method | Report | Query | PureSql
