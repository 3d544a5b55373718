"""What one SELECT that reads the original asks of its columns, and of the parts of a released row that carry them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard

from sqlglot import exp
from sqlglot.optimizer.scope import build_scope

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_enum
from duckdb_anon.rewrite.factors import BucketFactor, ColumnUse, Factor, SliceFactor, where_all
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.trees import aggregate_nodes, all_of, from_items, groups_of, is_original, quoted
from duckdb_anon.rewrite.release_model import ReleaseModel

_MANY = 100
COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
STRICT = (exp.Sum, exp.Avg, exp.Count)
_LISTS = ("any", "all", "some")
_VOLATILE = ("random", "uuid", "gen_random_uuid", "nextval", "setseed")


class Reading:
    """A SELECT over the original."""

    def __init__(self, select: exp.Select, model: ReleaseModel, release: TableInfo, original: TableInfo) -> None:
        """Find where the original stands, and which of its columns are read."""
        self.select, self.model, self.release, self.original = select, model, release, original
        self.item = next(source for source in from_items(select) if is_original(source))
        self.exact: dict[str, str] = dict(model.exact)
        self.alias = self.item.alias_or_name
        columns = [column for column in all_of(select, exp.Column) if column.table == self.alias]
        self.columns = [column for column in columns if column.find_ancestor(exp.Select)]
        self.read = {column.name for column in self.columns}

    @property
    def left(self) -> set[str]:
        """Columns that the SELECT reads now, folded."""
        columns = all_of(self.select, exp.Column)
        return {column.name for column in columns if column.table == self.alias}

    def is_correlated(self) -> bool:
        """Whether a row of a query around it decides what the SELECT reads."""
        scope = build_scope(self.select) if self.select.parent is not None else None
        return scope is not None and bool(scope.external_columns)

    def rejects_null(self, condition: exp.Expr) -> bool:
        """Whether a condition is never true of a row of NULLs in the place of the original, or does not read it."""
        columns = [column for column in all_of(condition, exp.Column) if column.table == self.alias]
        compares = isinstance(condition, (*COMPARISONS[:6], exp.Between, exp.In, exp.Like))
        return not columns or (compares and any(isinstance(column.parent, type(condition)) for column in columns))

    def sets(self) -> tuple[tuple[exp.Expr, ...], ...]:
        """The keys of each grouping set."""
        return groups_of(self.select).sets

    def factors(self) -> list[Factor]:
        """The factors that the query reads; of slices, the one with most columns is read from the row itself."""
        used = [factor for factor in self.model.factors if set(factor.columns) & self.read or factor.counted]
        slices = [factor for factor in used if isinstance(factor, SliceFactor) and not factor.generalized]
        # exact columns belong to the released row, and slices were permuted apart from them
        if slices and not self.read & self.model.exact.keys():
            first = max(slices, key=lambda node: len(set(node.columns) & self.read))
            self.exact = {**self.model.exact, **dict(first.fields)}
            return [factor for factor in used if factor is not first]
        self.exact = dict(self.model.exact)
        return used

    @property
    def is_rows(self) -> bool:
        """Whether rows of the original are shown, one by one."""
        grouped = self.select.args.get("group") or self.select.args.get("distinct")
        return not grouped and not any(True for _ in aggregate_nodes(self.select))

    def is_as_released(self, factors: Sequence[Factor]) -> bool:
        """Whether nothing that is read was changed, so that the release's columns stand for the original's."""
        nested = not self.is_rows or self.select.parent_select is not None
        return not factors and self.model.weight == "1" and nested

    @property
    def preserved(self) -> bool:
        """Whether every row of the original that passes WHERE is in the answer, whatever it is joined to."""
        position = next(k for k, source in enumerate(from_items(self.select)) if source is self.item)
        for number, join in enumerate(self.select.args.get("joins") or [], 1):
            side = (join.side or "").upper()
            if side == "FULL" or (side == "LEFT" and number == position) or (side == "RIGHT" and number > position):
                return False
        return True

    def pushed(self, factors: Sequence[Factor]) -> Pushed:
        """Move conjuncts of WHERE that read one factor alone, or exact columns alone, to where they are decided."""
        found: dict[str, list[exp.Expr]] = {factor.name: [] for factor in factors}
        exact: list[str] = []
        where = self.select.args.get("where")
        if where is None or not self.preserved:
            return Pushed(self, factors, found, exact)
        left = []
        for part in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
            columns = list(all_of(part, exp.Column))
            names = {c.name for c in columns}
            home = {next((f.name for f in factors if c in f.columns), "") for c in names}
            if any(c.table != self.alias for c in columns) or all_of(part, exp.Query) or len(home) != 1:
                left.append(part)
            elif home == {""}:
                exact.append(self.over_row(part))
            else:
                found[home.pop()].append(part)
        self.select.set("where", exp.Where(this=exp.and_(*left, copy=False)) if left else None)
        return Pushed(self, factors, found, exact)

    def over_row(self, node: exp.Expr) -> str:
        """SQL of an expression over exact columns, over a released row."""
        made = node.copy()
        for column in list(all_of(made, exp.Column)):
            cell = exp.Var(this=f"({self.exact[column.name]})")
            if column is made:
                return str(cell.this)
            column.replace(cell)
        return made.sql("duckdb")

    def plain(self, node: exp.Expr) -> str:
        """SQL of an expression over a factor's columns."""
        holder = exp.Paren(this=node.copy())
        for column in all_of(holder, exp.Column):
            column.set("table", None)
            kind = self.original.types.get(column.name, "")
            if is_enum(kind):
                column.replace(exp.cast(column.copy(), kind, dialect="duckdb"))
        return str(holder.this.sql("duckdb"))

    def weight(self) -> exp.Expr:
        """The weight of a row of FROM: one row of NULLs where the original is optional in a join and has no match."""
        weight = self.step_column("weight")
        return weight if self.preserved else exp.Coalesce(this=weight, expressions=[exp.Literal.number(1)])

    def step_column(self, name: str) -> exp.Column:
        """A column of the step that stands for the original: its weight, share or a sum."""
        return exp.column(f"_{name}", table=self.alias, quoted=True)

    def use(
        self,
        column: str,
        conditions: Mapping[str, Sequence[exp.Expr]],
        monotone: tuple[type[exp.Expr], ...] = (),
    ) -> ColumnUse:
        """What the query asks of a column."""
        constants: list[str] = []
        degree = 0
        roots = [self.select, *(node for group in conditions.values() for node in group)]
        for root in roots:
            for node in all_of(root, exp.Column):
                if node.table != self.alias or node.name != column:
                    continue
                compared = constants_beside(node)
                if compared is not None:
                    constants += compared
                else:
                    degree = max(degree, _degree_of_use(node, column, monotone))
        return ColumnUse(tuple(dict.fromkeys(constants)), degree > 1, degree > 0)

    def is_of_each_row(self, factors: Sequence[Factor]) -> TypeGuard[Sequence[BucketFactor]]:
        """Whether rows are spread over the values of their bucket alone, one by one."""
        return len(factors) == 1 and isinstance(factors[0], BucketFactor) and self.model.weight == "1"

    def typed(self, column: str, sql: str) -> str:
        """A value of a factor's column: an ENUM has the order of its type, which a text does not have."""
        kind = self.original.types.get(column, "")
        return f"{sql}::{kind} as {quoted(column)}" if is_enum(kind) else sql


@dataclass
class Pushed:
    """A SELECT whose conditions were moved to where they are decided.

    Attributes:
        reading: the SELECT.
        factors: the factors that it reads.
        conditions: name of a factor to the conditions on it alone.
        exact: SQL of the conditions on exact columns, over a released row.
    """

    reading: Reading
    factors: Sequence[Factor]
    conditions: Mapping[str, Sequence[exp.Expr]]
    exact: Sequence[str]

    @cached_property
    def left(self) -> set[str]:
        """Columns that the SELECT still reads, folded."""
        return self.reading.left

    @property
    def where(self) -> str:
        """WHERE of the conditions on exact columns."""
        return where_all(self.exact)

    def uses(self, factor: Factor, monotone: tuple[type[exp.Expr], ...] = ()) -> dict[str, ColumnUse]:
        """What the query asks of the columns of a factor."""
        read = [column for column in factor.columns if column in self.reading.read]
        return {column: self.reading.use(column, self.conditions, monotone) for column in read}

    def inside(self, factor: Factor) -> list[str]:
        """SQL of the conditions on a factor."""
        return [self.reading.plain(condition) for condition in self.conditions[factor.name]]

    def needed(self, factor: Factor) -> list[str]:
        """Columns of a factor that the SELECT still reads."""
        return [column for column in factor.columns if column in self.left]

    def carried(self, columns: Mapping[str, str]) -> list[str]:
        """Those of some exact columns that the SELECT still reads, in order."""
        return [column for column in sorted(self.left) if column in columns]


def source_of(select: exp.Select) -> exp.Select:
    """FROM and WHERE of a SELECT."""
    made = exp.Select(expressions=[])
    for part in ("from_", "joins", "where"):
        value = select.args.get(part)
        made.set(part, [node.copy() for node in value] if isinstance(value, list) else value and value.copy())
    return made


def cell_name(factor: Factor) -> str:
    """The column of a step that holds a factor's cells."""
    return quoted(f"_cell_{factor.name}")


def constants_beside(column: exp.Column) -> list[str] | None:
    """The constants that a column is compared with, [] for a test of NULL, None where it is not only compared."""
    node: exp.Expr = column
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    parent = node.parent
    if isinstance(parent, COMPARISONS):
        other = parent.expression if parent.this is node else parent.this
        single = not isinstance(other, (exp.Any, exp.All, exp.Array, exp.Tuple)) and fold(other.name) not in _LISTS
        return [other.sql("duckdb")] if single and _constant(other) else None
    if isinstance(parent, exp.Between) and parent.this is node:
        ends = [parent.args["low"], parent.args["high"]]
        return [end.sql("duckdb") for end in ends] if all(map(_constant, ends)) else None
    if isinstance(parent, exp.In) and parent.this is node and parent.expressions and not parent.args.get("query"):
        return (
            [projection.sql("duckdb") for projection in parent.expressions]
            if all(map(_constant, parent.expressions))
            else None
        )
    if isinstance(parent, exp.Is) and parent.this is node and isinstance(parent.expression, exp.Null):
        return []
    return None


def _constant(node: exp.Expr) -> bool:
    """Whether an expression is the same for every row."""
    if all_of(node, exp.Column, exp.Query, exp.Placeholder, exp.Parameter):
        return False
    return not any(item.name.lower() in _VOLATILE for item in all_of(node, exp.Anonymous, exp.Rand, exp.Uuid))


def _degree_of_use(column: exp.Column, name: str, monotone: tuple[type[exp.Expr], ...]) -> int:
    """Of which degree in a column the aggregate around it is; `_MANY` where all of its values must be listed."""
    node: exp.Expr | None = column
    while node is not None and not isinstance(node, exp.AggFunc):
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return _MANY if _degree(node.this, name) >= _MANY else 0
        if isinstance(node, exp.Filter) or isinstance(node.parent, exp.Query):
            return _MANY
        node = node.parent
    if node is None or not isinstance(node, (*STRICT, *monotone)):
        return _MANY
    if isinstance(node, exp.Count):
        only_null = isinstance(node.this, exp.Column)
        return 1 if only_null else _MANY
    return _degree(node.this, name)


def _degree(node: exp.Expr, name: str) -> int:
    """Degree of an expression as a polynomial of a column, `_MANY` where it is none."""
    if isinstance(node, exp.Column) and node.name == name:
        return 1
    if not any(column.name == name for column in all_of(node, exp.Column)):
        return 0
    if isinstance(node, (exp.Paren, exp.Neg)):
        return _degree(node.this, name)
    if isinstance(node, (exp.Add, exp.Sub)):
        return max(_degree(node.this, name), _degree(node.expression, name))
    if isinstance(node, exp.Mul):
        return _degree(node.this, name) + _degree(node.expression, name)
    if isinstance(node, exp.Div):
        return _degree(node.this, name) + _MANY * _degree(node.expression, name)
    if isinstance(node, exp.Coalesce) and all(map(_constant, node.expressions)):
        return _degree(node.this, name)
    if isinstance(node, (exp.Case, exp.If)):
        branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        tests = [branch.this for branch in branches] + ([node.this] if isinstance(node, exp.Case) and node.this else [])
        tested = [column for test in tests for column in all_of(test, exp.Column) if column.name == name]
        if any(constants_beside(node) is None for node in tested):
            return _MANY
        values = [branch.args.get("true") for branch in branches] + [node.args.get("default"), node.args.get("false")]
        return max(_degree(value, name) for value in values if value is not None)
    return _MANY
