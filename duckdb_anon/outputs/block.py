"""A query that may be answered from the original, as a `Block`: one SELECT of aggregates of one table.

The grammar is closed: a clause, node, function or name that is not listed here is refused by name, with what to ask
instead. What runs is written anew from the tree, never the user's text. Conditions and keys are computed a row at a
time by functions that neither fail nor see anything but their arguments; `TRY` makes NULL of what would be an error,
since an error that depends on values is an answer. Arguments of aggregates are columns, so that conditions stand where
they are checked: in WHERE, FILTER and GROUP BY. Columns that name individuals stand in none of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from duckdb_anon.model.errors import AnonError, ColumnError, listed, nearest
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.quoting import ident
from duckdb_anon.model.release_formats.duckdb_types import is_nested
from duckdb_anon.rewrite.query.normalize import synonyms
from duckdb_anon.rewrite.query.trees import groups_of, has_aggregate, without_filter

_LONGEST = 100_000  # characters of a query
_MOST_SETS = 64  # grouping sets of a query
_CLAUSES = {"expressions", "from_", "where", "group", "order", "limit", "offset", "kind", "hint"}
_INSTEAD = {
    "with_": ("WITH", "ask one SELECT of the table"),
    "joins": ("a join", "make a view that joins the tables and write its policy on it"),
    "having": ("HAVING", "ask without it and filter the answer"),
    "qualify": ("QUALIFY", "ask for aggregates with GROUP BY"),
    "distinct": ("DISTINCT", "ask for count(*) with GROUP BY"),
    "windows": ("a window", "ask for aggregates with GROUP BY"),
    "sample": ("a sample", "ask for all rows"),
}
_NODES: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Subquery: ("a subquery", "write the condition itself"),
    exp.Select: ("a subquery", "write the condition itself"),
    exp.SetOperation: ("UNION", "ask one question at a time"),
    exp.Window: ("a window function", "ask for aggregates with GROUP BY"),
    exp.Star: ("*", "ask for aggregates: rows of the original do not leave"),
    exp.Columns: ("COLUMNS(...)", "name the columns"),
    exp.Distinct: ("DISTINCT", "count rows of a GROUP BY, or individuals by count(DISTINCT) of the person column"),
    exp.Placeholder: ("a parameter", "write the value into the query"),
}
_ROWWISE = (
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.And, exp.Or, exp.Not, exp.Neg,
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In,
    exp.Like, exp.ILike, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Case, exp.If, exp.Coalesce,
    exp.Nullif, exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Lower, exp.Upper, exp.Trim, exp.Substring,
    exp.Left, exp.Right, exp.Length, exp.Floor, exp.Ceil, exp.Round, exp.Abs, exp.Year, exp.Month, exp.Quarter, exp.Day,
    exp.Extract, exp.TimestampTrunc, exp.DateTrunc, exp.StartsWith, exp.Contains, exp.DPipe, exp.Interval, exp.Var,
)  # fmt: skip
_BY_NAME = {"date_part", "datepart"}
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple)
_OUTER = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Neg, exp.Paren, exp.Literal, exp.Round, exp.Floor, exp.Ceil,
    exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Nullif, exp.Column, exp.Identifier,
)  # fmt: skip
PARAMETERS = {
    **dict.fromkeys(("stddev_samp", "stddev_pop", "var_samp", "var_pop"), 1),
    **dict.fromkeys(("corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2"), 2),
}
"""Parameters that a statistic estimates: the individuals without them are its degrees of freedom."""
QUANTILES = ("median", "quantile_cont", "quantile_disc")
EXTREMES = ("min", "max")
_FUNCTIONS = {"count", "sum", "avg", *EXTREMES, *QUANTILES, *PARAMETERS}
_SAME = {"quantile": "quantile_disc", "stddev": "stddev_samp", "variance": "var_samp"}  # so that they are compared
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "FLOAT",
            "DOUBLE", "DECIMAL")  # fmt: skip
_ORDERED = (*_NUMBERS, "DATE", "TIMESTAMP")


class NoRule(AnonError):
    """A query has something for which there is no rule of disclosure control."""

    code = "no-rule"


@dataclass(frozen=True)
class Table:
    """The table of a query: its columns, and those that queries may not read."""

    given: str  # as the user wrote it
    sql: str
    columns: Mapping[str, str]  # name to type
    roles: Mapping[str, str]  # column to role
    person: str | None = None  # column whose values are the individuals

    def are_known(self, columns: Iterable[str]) -> bool:
        """Whether everybody may know these columns."""
        return all(self.roles.get(name) in ("quasi", "insensitive") for name in columns)


@dataclass(frozen=True)
class Rowwise:
    """An expression over the columns of one row."""

    sql: str  # '' for the condition that always holds
    columns: frozenset[str] = frozenset()
    known: str = ""  # of a condition, the part that reads what everybody may know


@dataclass(frozen=True)
class Aggregate:
    """An aggregate of a query, over the rows of a group for which a condition holds."""

    function: str  # DuckDB's name
    arguments: tuple[str, ...]  # columns; () for count(*)
    condition: int  # index of its condition, which includes that its arguments are not NULL
    fraction: str = ""  # SQL of a quantile's fraction
    filter: str = ""  # SQL of its FILTER

    @property
    def measured(self) -> str | None:
        """The magnitude whose largest contributions are checked; None for other statistics."""
        return self.arguments[0] if self.function in ("sum", "avg") else None


@dataclass(frozen=True)
class Item:
    """A column of the answer: a key, a GROUPING of keys, or an expression over aggregates."""

    key: int | None = None
    grouping: tuple[int, ...] = ()
    sql: str = ""  # over `_a0`, `_a1`, ...
    aggregates: tuple[int, ...] = ()


@dataclass(frozen=True)
class Block:
    """One SELECT of aggregates of one table."""

    table: Table
    where: Rowwise
    keys: tuple[Rowwise, ...]
    sets: tuple[tuple[int, ...], ...]  # grouping sets, each a list of keys
    conditions: tuple[Rowwise, ...]  # the first one is of all rows of a group
    aggregates: tuple[Aggregate, ...]
    items: tuple[Item, ...]
    text: str  # the query without ORDER BY and LIMIT, for names and types of the columns
    order: tuple[str, ...] = ()  # ORDER BY over columns of the answer, by position
    limit: str = ""

    @property
    def known(self) -> tuple[Block, tuple[int, ...], tuple[int, ...]]:
        """The query by what everybody may know alone: its block, the keys that it has, and its aggregate by condition.

        Its aggregates are counts, one for each of its conditions.
        """
        kept = tuple(k for k, key in enumerate(self.keys) if self.table.are_known(key.columns))
        sets = (tuple(kept.index(k) for k in chosen if k in kept) for chosen in self.sets)
        parts = list(dict.fromkeys(each.known for each in self.conditions))
        counts = tuple(Aggregate("count", (), place, "", part) for place, part in enumerate(parts))
        keys, conditions = tuple(self.keys[k] for k in kept), tuple(map(Rowwise, parts))
        where = Rowwise(self.where.known)
        block = Block(self.table, where, keys, tuple(dict.fromkeys(sets)), conditions, counts, (), "")
        return block, kept, tuple(parts.index(each.known) for each in self.conditions)

    @property
    def read(self) -> frozenset[str]:
        """Columns in conditions and keys."""
        found = self.where.columns.union(*(key.columns for key in self.keys))
        return found.union(*(condition.columns for condition in self.conditions))


def table_name(function: str, query: str) -> str:
    """The table of a query, as the query writes it."""
    return _table(function, _select(function, query)).sql(dialect="duckdb")


def read_block(function: str, query: str, table: Table) -> Block:
    """Read a query of `table`.

    Args:
        function: name of the function, for errors.
        query: one SELECT.
        table: the table that `table_name` names.

    Raises:
        NoRule: the query has something without a rule; the message names it and what to ask instead.
        ColumnError: a column does not exist or may not be read.
    """
    try:
        return _Reader(function, _select(function, query), table).block()
    except RecursionError as error:
        raise NoRule(f"{function}: the query is nested too deeply. Write a shorter one") from error


def _select(function: str, query: str) -> exp.Select:
    try:
        trees = sqlglot.parse(query, dialect="duckdb") if len(query) <= _LONGEST else []
    except (SqlglotError, RecursionError) as error:
        raise NoRule(f"{function}: the query cannot be read as SQL. Give one SELECT") from error
    if len(trees) != 1 or trees[0] is None:
        raise NoRule(f"{function}: the query is not one statement. Ask one SELECT at a time")
    if not isinstance(trees[0], exp.Select):
        raise _refusal(function, trees[0])
    return trees[0]


def _table(function: str, select: exp.Select) -> exp.Table:
    for clause, value in select.args.items():
        if value and clause not in _CLAUSES:
            what, instead = _INSTEAD.get(clause, (clause.strip("_").upper(), "ask without it"))
            raise NoRule(f"{function}: there is no rule for {what}; {instead}")
    if select.args.get("kind") or select.args.get("hint"):
        raise NoRule(f"{function}: the query is not a plain SELECT. Ask for aggregates with GROUP BY")
    source = select.args.get("from_")
    table = source.this if source is not None else None
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise NoRule(f"{function}: the query does not read one table. Ask a table or view that has a policy")
    extra = {name for name, value in table.args.items() if value} - {"this", "db", "catalog", "alias"}
    if extra:
        what, instead = _INSTEAD.get(min(extra), (min(extra).upper(), "ask without it"))
        raise NoRule(f"{function}: there is no rule for {what}; {instead}")
    return exp.Table(**{name: table.args.get(name) for name in ("this", "db", "catalog")})


def _called(node: exp.Expr) -> str:
    """What DuckDB calls a function."""
    return node.sql(dialect="duckdb").partition("(")[0].lower()


def _refusal(function: str, node: exp.Expr) -> NoRule:
    """What there is no rule for."""
    for kind, (what, instead) in _NODES.items():
        if isinstance(node, kind):
            return NoRule(f"{function}: there is no rule for {what}; {instead}")
    if isinstance(node, (exp.IgnoreNulls, exp.RespectNulls)):
        node = node.this
    name = _called(node) if isinstance(node, exp.Func) else node.key
    return NoRule(
        f"{function}: there is no rule for {name}. Ask for count, sum, avg, median, quantile_cont, "
        "stddev, variance, corr or regr_slope of columns; min and max where many individuals share them"
    )


@dataclass
class _Reader:
    """Reads one SELECT; collects conditions and aggregates."""

    function: str
    select: exp.Select
    table: Table
    conditions: list[Rowwise] = field(default_factory=lambda: [Rowwise("")])
    aggregates: list[Aggregate] = field(default_factory=list)

    def __post_init__(self) -> None:
        _table(self.function, self.select)
        self.text = self.select.copy()  # as it names its columns
        synonyms(self.select, ())
        named = self.select.args["from_"].this
        self.aliases = {fold(named.alias_or_name)}
        self.columns = {fold(name): name for name in self.table.columns}
        self.outputs = [self._plain(item) for item in self.select.expressions]
        self.named = {
            fold(item.alias): place for place, item in enumerate(self.select.expressions) if isinstance(item, exp.Alias)
        }

    def block(self) -> Block:
        where = self.select.args.get("where")
        condition = self._condition(where.this) if where is not None else Rowwise("")
        trees, sets = self._groups()
        keys = tuple(self._condition(tree) for tree in trees)
        items = tuple(self._item(tree, trees) for tree in self.outputs)
        if not any(item.aggregates for item in items):
            raise NoRule(f"{self.function}: the query has no aggregate. Ask for count(*) with GROUP BY")
        order, limit = self._order(), self._limit()
        for clause in ("order", "limit", "offset"):
            self.text.set(clause, None)
        source = sqlglot.parse_one(self.table.sql, into=exp.Table, dialect="duckdb")
        self.text.args["from_"].this.replace(exp.alias_(source, min(self.aliases), table=True, quoted=True))
        return Block(
            self.table, condition, keys, sets, tuple(self.conditions), tuple(self.aggregates), items,
            self.text.sql(dialect="duckdb"), order, limit,
        )  # fmt: skip

    def _plain(self, item: exp.Expr) -> exp.Expr:
        """An item without its alias, columns named as the table has them."""
        tree = (item.this if isinstance(item, exp.Alias) else item).copy()
        if isinstance(tree, (exp.Grouping, exp.GroupingId)):
            return tree  # of keys, which may be named as columns of the answer are
        for column in list(tree.find_all(exp.Column)):
            if not isinstance(column.this, exp.Identifier):
                continue
            named = exp.column(exp.to_identifier(self._column(column), quoted=True))
            if column is tree:
                return named
            column.replace(named)
        return tree

    def _column(self, column: exp.Column) -> str:
        given, source = column.name, column.args.get("table")
        if column.args.get("db") or (source is not None and fold(source.name) not in self.aliases):
            raise ColumnError(f"{self.function}: {column.sql(dialect='duckdb')} is no column of {self.table.given}")
        name = self.columns.get(fold(given))
        if name is None:
            raise ColumnError(
                f"{self.function}: there is no column '{given}' in {self.table.given}"
                f"{nearest(given, self.table.columns)}. Its columns are {listed(self.table.columns)}"
            )
        return name

    def _rowwise(self, tree: exp.Expr) -> Rowwise:
        """An expression of one row, which cannot fail."""
        tree = self._plain(tree)
        for node in tree.walk():
            allowed = isinstance(node, _ROWWISE) or (isinstance(node, exp.Anonymous) and fold(node.name) in _BY_NAME)
            if isinstance(node, exp.In) and (node.args.get("query") or node.args.get("unnest")):
                raise _refusal(self.function, exp.Select())
            if isinstance(node, exp.DataType) and node.args.get("nested"):
                raise NoRule(f"{self.function}: there is no rule for casts to nested types; cast to plain types")
            if not allowed:
                raise _refusal(self.function, node)
        columns = frozenset(column.name for column in tree.find_all(exp.Column))
        for name in columns:
            self._require_readable(name)
        sql = tree.sql(dialect="duckdb")
        return Rowwise(sql if isinstance(tree, exp.Column) else f"try({sql})", columns)

    def _condition(self, tree: exp.Expr) -> Rowwise:
        """An expression of one row with its known part; no part of it, joined by AND, reads known and other columns."""
        parts, known = [tree], list[str]()
        while parts:
            part = parts.pop().unnest()
            inner = part.this.unnest() if isinstance(part, exp.Not) else None
            if isinstance(part, exp.And):
                parts += [part.right, part.left]
                continue
            if isinstance(inner, exp.Or):
                parts += [exp.not_(exp.paren(each)) for each in (inner.right, inner.left)]
                continue
            read = self._rowwise(part)
            if self.table.are_known(read.columns):
                known.append(read.sql)
            elif any(self.table.are_known([name]) for name in read.columns):
                raise NoRule(
                    f"{self.function}: {part.sql(dialect='duckdb')} reads {listed(sorted(read.columns))} in one "
                    "condition or key, some of which everybody may know and some not. Write parts joined by AND, or "
                    "several keys, of which each reads quasi-identifiers and insensitive columns alone, or others alone"
                )
        whole = self._rowwise(tree)
        return Rowwise(whole.sql, whole.columns, " and ".join(known))

    def _require_readable(self, name: str) -> None:
        role = self.table.roles.get(name, "")
        if name == self.table.person or role in ("identifier", "person", "household"):
            raise ColumnError(
                f"{self.function}: column '{name}' is labelled {role or 'person'}: it names individuals. Conditions, "
                "keys and aggregates cannot read it; ask by other columns"
            )
        if is_nested(self.table.columns[name]):
            raise NoRule(
                f"{self.function}: there is no rule for column '{name}', which is nested; make a view with columns of "
                "its fields"
            )

    def _groups(self) -> tuple[list[exp.Expr], tuple[tuple[int, ...], ...]]:
        """Keys, and the grouping sets over them."""
        group = self.select.args.get("group")
        if group is None:
            return [], ((),)
        if group.args.get("all"):
            plain = [tree for tree in self.outputs if not (has_aggregate(tree) or tree.find(exp.Grouping))]
            return plain, (tuple(range(len(plain))),)
        bare = exp.select("1")
        bare.set("group", exp.Group(expressions=[self._members(part) for part in group.expressions]))
        found = groups_of(bare)
        if len(found.sets) > _MOST_SETS:
            raise NoRule(f"{self.function}: the query has more than {_MOST_SETS} grouping sets. Ask for fewer")
        return list(found.keys), tuple(tuple(sorted(map(found.keys.index, keys))) for keys in found.sets)

    def _members(self, part: exp.Expr) -> exp.Expr:
        """An element of GROUP BY with its members resolved."""
        if isinstance(part, exp.Paren):
            return self._members(part.this)
        if not isinstance(part, _SETS):
            return self._resolved(part)
        part = part.copy()
        part.set("expressions", [self._members(each) for each in part.expressions])
        return part

    def _resolved(self, tree: exp.Expr) -> exp.Expr:
        """A member of GROUP BY: an expression, the position or the name of a column of the answer."""
        if isinstance(tree, exp.Literal) and not tree.is_string:
            place = int(tree.name) - 1 if tree.name.isdecimal() else -1
            if place not in range(len(self.outputs)):
                raise NoRule(f"{self.function}: GROUP BY {tree.name} is no column of the answer")
            return self.outputs[place]
        if isinstance(tree, exp.Column) and fold(tree.name) not in self.columns and fold(tree.name) in self.named:
            return self.outputs[self.named[fold(tree.name)]]
        return self._plain(tree)

    def _item(self, tree: exp.Expr, keys: Sequence[exp.Expr]) -> Item:
        if tree in keys:
            return Item(key=keys.index(tree))
        if isinstance(tree, (exp.Grouping, exp.GroupingId)):
            named = [self._resolved(each) for each in tree.expressions]
            if any(each not in keys for each in named):
                raise NoRule(f"{self.function}: GROUPING takes keys of GROUP BY")
            return Item(grouping=tuple(keys.index(each) for each in named))
        used: list[int] = []
        outer = self._over_aggregates(tree, used)
        if not used:
            raise NoRule(
                f"{self.function}: {tree.sql(dialect='duckdb')} is neither a key of GROUP BY nor an aggregate. Add it "
                "to GROUP BY, or ask for an aggregate"
            )
        return Item(sql=outer.sql(dialect="duckdb"), aggregates=tuple(used))

    def _over_aggregates(self, tree: exp.Expr, used: list[int]) -> exp.Expr:
        """An item with its aggregates replaced by columns, whose numbers are added to `used`."""
        if isinstance(tree, (exp.AggFunc, exp.Filter, exp.WithinGroup, exp.IgnoreNulls)):
            number = self._aggregate(tree)
            used.append(number)
            return exp.column(f"_a{number}")
        if not isinstance(tree, _OUTER) or (isinstance(tree, exp.DataType) and tree.args.get("nested")):
            raise _refusal(self.function, tree)
        if isinstance(tree, exp.Column):
            raise NoRule(f"{self.function}: column '{tree.name}' is neither a key of GROUP BY nor in an aggregate")
        copy = tree.copy()
        for child in list(copy.iter_expressions()):
            child.replace(self._over_aggregates(child, used))
        return copy

    def _aggregate(self, tree: exp.Expr) -> int:
        """Number of an aggregate."""
        tree, filtered = without_filter(tree)
        condition = self._condition(filtered) if filtered is not None else Rowwise("")
        name = _SAME.get(_called(tree), _called(tree))
        if not isinstance(tree, exp.AggFunc) or name not in _FUNCTIONS:
            raise _refusal(self.function, tree)
        arguments, fraction = self._arguments(tree, name)
        nulls = " and ".join(
            [condition.sql or "true", *(f"{ident(column)} is not null" for column in sorted(arguments))]
        )
        whole = Rowwise(nulls if arguments or condition.sql else "", condition.columns, condition.known)
        if whole not in self.conditions:
            self.conditions.append(whole)
        found = Aggregate(name, arguments, self.conditions.index(whole), fraction, condition.sql)
        if found not in self.aggregates:
            self.aggregates.append(found)
        return self.aggregates.index(found)

    def _arguments(self, tree: exp.Expr, name: str) -> tuple[tuple[str, ...], str]:
        """Columns that an aggregate takes, and the fraction of a quantile."""
        given = [value for value in tree.args.values() if isinstance(value, exp.Expr)]
        if name == "count" and (not given or isinstance(given[0], exp.Star)):
            return (), ""
        if name == "count" and isinstance(given[0], exp.Distinct):
            if given[0].expressions == [exp.column(exp.to_identifier(self.table.person or "", quoted=True))]:
                return (), "individuals"
        fraction = ""
        if name in QUANTILES[1:]:
            place = given.pop() if len(given) == 2 else None
            if not isinstance(place, exp.Literal) or place.is_string or not 0 <= float(place.name) <= 1:
                raise NoRule(f"{self.function}: {name} takes a column and a number in [0, 1]. Write {name}(x, 0.25)")
            fraction = place.name
        wanted = 2 if PARAMETERS.get(name) == 2 else 1
        for each in given:
            if not isinstance(each, exp.Column):
                if isinstance(each, exp.Distinct):
                    raise _refusal(self.function, each)
                raise NoRule(
                    f"{self.function}: {name} takes columns and no expressions. Write conditions as "
                    f"{name}(...) FILTER (WHERE ...), or make a view with a column of the expression"
                )
        if len(given) != wanted:
            raise NoRule(f"{self.function}: {name} takes {wanted} column{'s' * (wanted > 1)} here")
        columns = tuple(each.name for each in given)
        kinds = () if name == "count" else _ORDERED if name in (*EXTREMES, "median", "quantile_disc") else _NUMBERS
        for column in columns:
            self._require_readable(column)
            kind = self.table.columns[column].partition("(")[0]
            if kinds and kind not in kinds:
                raise NoRule(
                    f"{self.function}: {name} of '{column}' ({kind}) has no rule. Make a view that casts the column "
                    "to DOUBLE"
                )
        return columns, fraction

    def _order(self) -> tuple[str, ...]:
        order = self.select.args.get("order")
        found = []
        for each in order.expressions if order is not None else ():
            try:
                place = self.outputs.index(self._resolved(each.this)) + 1
            except (ValueError, ColumnError) as error:
                raise NoRule(
                    f"{self.function}: there is no rule for ORDER BY what is not in the answer; order by its columns"
                ) from error
            nulls = "first" if each.args.get("nulls_first") else "last"
            found.append(f"{place} {'desc' if each.args.get('desc') else 'asc'} nulls {nulls}")
        return tuple(found)

    def _limit(self) -> str:
        found = ""
        for clause in ("limit", "offset"):
            node = self.select.args.get(clause)
            if node is not None:
                extra = {name for name, value in node.args.items() if value} - {"expression"}
                if extra or not isinstance(node.expression, exp.Literal) or not node.expression.name.isdecimal():
                    raise NoRule(f"{self.function}: {clause.upper()} takes a whole number here")
                found += f" {clause} {node.expression.name}"
        return found
