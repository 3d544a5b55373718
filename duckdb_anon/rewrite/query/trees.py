"""Trees of SQL: pieces made from templates, walks, the aggregates and grouping sets of a SELECT, steps of WITH.

tree("coalesce(sum({amount}), 0)", amount=node)      a tree in each hole, in parentheses where it needs them
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import combinations, product
from typing import Any, ClassVar, TypeVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.generators.duckdb import DuckDBGenerator

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.quoting import ident
from duckdb_anon.model.quoting import literal as literal

quoted = ident

SOURCE = "\0source_"
"""Begins the names that known tables have while a query is rewritten: no identifier of SQL text can hold it."""
KEYWORDS = {
    *DuckDB.Tokenizer.KEYWORDS,
    *map(str.upper, DuckDB.Generator.RESERVED_KEYWORDS),
    *"ANTI ASOF AUTHORIZATION BINARY CONCURRENTLY FREEZE GENERATED GLOB ILIKE ISNULL MAP NOTNULL OVERLAPS POSITIONAL "
    "SEMI SIMILAR STRUCT TABLESAMPLE TRY_CAST VERBOSE COALESCE EXTRACT GROUPING GROUPING_ID INTERVAL NULLIF OVERLAY "
    "POSITION ROW SUBSTRING TREAT TRIM VALUES".split(),
}
"""Words that are quoted when they are names; more than need be."""
AGGREGATES = frozenset(
    "any_value approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_max_null arg_max_nulls_last "
    "arg_min arg_min_null arg_min_nulls_last argmax argmin array_agg avg bit_and bit_or bit_xor bitstring_agg bool_and "
    "bool_or combine_aggr corr count count_if count_star countif covar_pop covar_samp decimal_average entropy favg "
    "first fsum geomean geometric_mean group_concat histogram histogram_exact json_group_array json_group_object "
    "json_group_structure kahan_sum kurtosis kurtosis_pop last list listagg lttb mad max max_by mean median min "
    "min_by mode product quantile quantile_cont quantile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 "
    "regr_slope regr_sxx regr_sxy regr_syy reservoir_quantile sem skewness stddev stddev_pop stddev_samp string_agg "
    "sum sum_no_overflow sumkahan var_pop var_samp variance variant_group_array variant_group_object wavg "
    "weighted_avg".split()
)
"""Names of DuckDB's aggregates and of its macros that aggregate (`duckdb_functions()`)."""
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_HOLE = re.compile(r"\{(\w+)\}")
_PREFIX = "__hole_"
Node = TypeVar("Node", bound=exp.Expr)
Keys = tuple[exp.Expr, ...]


def all_of(root: exp.Expr, *classes: type[Node]) -> list[Node]:
    """The nodes of these kinds, the root among them, level by level; a list, so the tree may be changed meanwhile."""
    nodes: list[Any] = [root]
    for node in nodes:
        for value in node.args.values():
            if isinstance(value, list):
                nodes += [node for node in value if isinstance(node, exp.Expr)]
            elif isinstance(value, exp.Expr):
                nodes.append(value)
    return [node for node in nodes if isinstance(node, classes)]


def columns_of(root: exp.Expr, alias: str) -> set[str]:
    """Columns of a table that a bound tree reads, its subqueries included."""
    return {column.name for column in all_of(root, exp.Column) if column.table == alias}


def leftmost(query: exp.Query) -> exp.Select:
    """The SELECT that names the columns: the leftmost one of a UNION."""
    while not isinstance(query, exp.Select):
        inner = query.this
        if not isinstance(inner, exp.Query):
            break
        query = inner
    assert isinstance(query, exp.Select)  # noqa: S101 -- every query of DuckDB's dialect ends in one
    return query


def tree(template: str, **holes: exp.Expr) -> exp.Expr:
    """Fill a template of DuckDB SQL with copies of trees.

    >>> tree("greatest({a} * {b}, 0)", a=exp.column("x") + 1, b=exp.column("y")).sql("duckdb")
    'GREATEST((x + 1) * y, 0)'
    """
    made = exp.Tuple(expressions=[_parsed(_HOLE.sub(rf"{_PREFIX}\1", template)).copy()])
    for column in all_of(made, exp.Column):
        if column.name.startswith(_PREFIX):
            filling = holes[column.name.removeprefix(_PREFIX)].copy()
            around = isinstance(column.parent, (exp.Binary, exp.Unary, exp.Between, exp.In, exp.Cast))
            operation = isinstance(filling, (exp.Binary, exp.Unary, exp.Between, exp.In))
            taken_apart = around and operation and not isinstance(filling, (exp.Paren, exp.Dot))
            column.replace(exp.Paren(this=filling) if taken_apart else filling)
    found: exp.Expr = made.expressions[0].pop()
    return found


@lru_cache(maxsize=256)
def _parsed(template: str) -> exp.Expr:
    return sqlglot.parse_one(template, dialect="duckdb")


def every(conditions: Sequence[exp.Expr]) -> exp.Expr:
    """All of the conditions; true without any."""
    return reduce(lambda a, b: tree("{a} and {b}", a=a, b=b), conditions) if conditions else exp.true()


def readable(name: str) -> exp.Identifier:
    """A name, in quotes where it needs them.

    >>> readable("age").sql(), readable("Age").sql(), readable("order").sql()
    ('age', '"Age"', '"order"')
    """
    return exp.Identifier(this=name, quoted=not _PLAIN.fullmatch(name) or name.upper() in KEYWORDS)


def unquote(query: exp.Expr) -> None:
    """Take quotes away that names do not need, in place."""
    for name in all_of(query, exp.Identifier):
        name.set("quoted", readable(name.name).quoted)
    for source in all_of(query, exp.Var):  # what stands after FROM
        inner = source.name[1:-1]
        if source.name == f'"{inner}"' and not readable(inner).quoted:
            source.set("this", inner)


CALLS: dict[type[exp.Func], tuple[str, str]] = {
    exp.CurrentDate: ("current_date", "today"),
    exp.CurrentTime: ("current_time", "get_current_time"),
    exp.CurrentTimestamp: ("current_timestamp", "get_current_timestamp"),
    exp.Localtime: ("localtime", "current_localtime"),
    exp.Localtimestamp: ("localtimestamp", "current_localtimestamp"),
    exp.CurrentCatalog: ("current_catalog", "current_catalog"),
    exp.CurrentUser: ("current_user", "current_user"),
    exp.SessionUser: ("session_user", "session_user"),
}
"""What is written without parentheses, and the function that it calls."""


def _call(name: str) -> Callable[..., str]:
    return lambda *_: f"{name}()"


class _Printer(DuckDBGenerator):
    """Prints names and texts of several lines as they are, which the library would indent, and functions as calls."""

    TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        **DuckDBGenerator.TRANSFORMS,
        **{kind: _call(call) for kind, (_, call) in CALLS.items()},
    }

    def identifier_sql(self, expression: exp.Identifier) -> str:
        return self._unbroken(super().identifier_sql(expression))

    def var_sql(self, expression: exp.Var) -> str:
        return self._unbroken(str(expression.this))

    def _unbroken(self, text: str) -> str:
        return text.replace("\n", self.SENTINEL_LINE_BREAK) if self.pretty else text


def laid_out(query: exp.Expr) -> str:
    r"""Print a query, a clause a line, without the analyst's comments.

    >>> print(laid_out(sqlglot.parse_one('select "a\nb" from t', dialect="duckdb")))
    SELECT
      "a
    b"
    FROM t
    """
    printer = _Printer(dialect="duckdb", pretty=True, normalize_functions="lower", max_text_width=120, comments=False)
    return str(printer.generate(query))


def plain(node: exp.Expr) -> str:
    """Print an expression for a message: names as short as the analyst wrote them."""
    made = exp.Tuple(expressions=[node.copy()])
    for item in all_of(made, exp.Table, exp.Column):
        if isinstance(item, exp.Column):
            item.replace(exp.column(item.name))
        elif item.name.startswith(SOURCE):
            item.replace(exp.to_table(item.alias))
    return str(made.expressions[0].sql("duckdb", normalize_functions="lower", comments=False))


def table_number(table: exp.Expr) -> int | None:
    """Number of a table of a bound tree among the query's tables; None of a step and of a table that is not known."""
    found = table.name.removeprefix(SOURCE)
    return int(found) if found != table.name else None


def is_original(table: object) -> bool:
    """Whether a table of a bound tree is the original."""
    return isinstance(table, exp.Table) and table.name == f"{SOURCE}0"


def from_items(select: exp.Select) -> list[exp.Expr]:
    """What stands in FROM: the first item, then the joined ones."""
    source = select.args.get("from_")
    return ([source.this] if source else []) + [join.this for join in select.args.get("joins") or []]


def reads_original(select: exp.Select) -> bool:
    """Whether the original stands in the FROM clause of a bound SELECT itself."""
    return any(is_original(item) for item in from_items(select))


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate function."""
    if isinstance(node, exp.AggFunc):
        return not isinstance(node, exp.Grouping)
    return isinstance(node, exp.Anonymous) and fold(node.name) in AGGREGATES


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an expression has an aggregate in it, its subqueries included."""
    return any(map(is_aggregate, node.walk()))


def aggregate_nodes(select: exp.Select) -> Iterator[exp.Expr]:
    """Aggregates of this SELECT, with their FILTER; not those of its subqueries."""
    places = list(select.expressions)
    places += [select.args[key] for key in ("having", "order", "qualify") if select.args.get(key)]
    for position in places:
        yield from outermost_aggregates(position)


def outermost_aggregates(node: exp.Expr) -> Iterator[exp.Expr]:
    """Aggregates in an expression, with their FILTER; not those of its subqueries."""
    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        # the function over a window works on the groups; only aggregates inside it are of the rows
        for part in window_parts(node):
            yield from outermost_aggregates(part)
        return
    if isinstance(node, (exp.Filter, exp.WithinGroup)) or is_aggregate(node):
        yield node
        return
    for child in node.iter_expressions():
        yield from outermost_aggregates(child)


def without_filter(node: exp.Expr) -> tuple[exp.Expr, exp.Expr | None]:
    """An aggregate and the condition of its FILTER; None where it has none.

    >>> [one.sql() for one in without_filter(sqlglot.parse_one("sum(a) filter (where b > 1)"))]
    ['SUM(a)', 'b > 1']
    """
    return (node.this, node.expression.this) if isinstance(node, exp.Filter) else (node, None)


def window_parts(node: exp.Window) -> Iterator[exp.Expr]:
    """What a window function reads of each group: its arguments, its FILTER, PARTITION BY, ORDER BY and frame.

    >>> [one.sql() for one in window_parts(sqlglot.parse_one("sum(count(*)) filter (where a) over (partition by b)"))]
    ['COUNT(*)', 'a', 'b']
    """
    function: exp.Expr = node.this
    around: list[exp.Expr] = [child for child in node.iter_expressions() if child is not function]
    while isinstance(function, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)):
        if isinstance(function.expression, exp.Expr):
            around.insert(0, function.expression)
        function = function.this
    yield from function.iter_expressions()
    for item in around:
        yield from (item.this,) if isinstance(item, exp.Where) else (item,)


@dataclass(frozen=True)
class QueryGroups:
    """What a query groups by.

    Attributes:
        keys: all keys, each once.
        sets: the keys of each grouping set; one set for a plain GROUP BY, an empty one without.
    """

    keys: Keys
    sets: tuple[Keys, ...]

    def level(self) -> exp.Expr:
        """GROUPING(all keys), which distinguishes the sets."""
        return exp.Grouping(expressions=[key.copy() for key in self.keys])

    def level_of(self, keys: Keys) -> int:
        """GROUPING(all keys) of a set: a bit for each key that is not in it, the first key's the highest."""
        bits = [int(key not in keys) for key in self.keys]
        return sum(bit << position for position, bit in enumerate(reversed(bits)))


def groups_of(select: exp.Select) -> QueryGroups:
    """Read the GROUP BY of a bound SELECT."""
    group = select.args.get("group")
    clauses = [_sets(_at_position(clause, select)) for clause in group.expressions] if group else []
    sets = tuple({frozenset(keys): keys for keys in (_unique(sum(pick, ())) for pick in product(*clauses))}.values())
    return QueryGroups(_unique(sum(sets, ())), sets)


def _at_position(key: exp.Expr, select: exp.Select) -> exp.Expr:
    """What a position in GROUP BY stands for; any other key as it is."""
    is_position = isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(select.expressions)
    return select.expressions[int(key.name) - 1].unalias() if is_position else key


def _sets(clause: exp.Expr) -> list[Keys]:
    """The sets one element of GROUP BY stands for."""
    if isinstance(clause, exp.GroupingSets):
        return [keys for projection in clause.expressions for keys in _sets(projection)]
    if not isinstance(clause, (exp.Rollup, exp.Cube)):
        return [_members(clause)]
    elements = [_members(projection) for projection in clause.expressions]
    if isinstance(clause, exp.Rollup):
        return [sum(elements[:size], ()) for size in range(len(elements), -1, -1)]
    return [sum(pick, ()) for size in range(len(elements), -1, -1) for pick in combinations(elements, size)]


def _members(element: exp.Expr) -> Keys:
    """A tuple of keys is one element; () is none."""
    if isinstance(element, exp.Tuple):
        return tuple(element.expressions)
    if isinstance(element, exp.Paren):
        return _members(element.this)
    return (element,)


def _unique(keys: Sequence[exp.Expr]) -> Keys:
    return tuple(dict.fromkeys(keys))


def step_of(table: exp.Table) -> exp.CTE | None:
    """The step of a WITH that a table of a query means; None for a table of the database.

    A step is visible in those after it, in the query its WITH begins, and in itself only if the WITH is RECURSIVE; the
    innermost one counts.

    >>> query = sqlglot.parse_one("WITH t AS (SELECT a FROM t) SELECT a FROM t", "duckdb")
    >>> [step_of(one) is not None for one in query.find_all(exp.Table)]
    [True, False]
    """
    if table.db or not isinstance(table.this, exp.Identifier):
        return None
    name = fold(table.name)
    below: exp.Expr = table
    step: exp.Expr | None = None
    while below.parent is not None:
        around = below.parent
        if isinstance(around, exp.With):
            step = below
        else:
            found = _visible(around, name, step if isinstance(step, exp.CTE) else None)
            if found is not None:
                return found
            step = None
        below = around
    return None


def _visible(query: exp.Expr, name: str, inside: exp.CTE | None) -> exp.CTE | None:
    """The step of this name in the WITH of a query, seen from its body or from inside one of the steps."""
    with_ = query.args.get("with_")
    if with_ is None:
        return None
    found: exp.CTE | None = None
    for step in with_.expressions:
        if step is inside and not with_.args.get("recursive"):
            break
        if fold(step.alias) == name:
            found = step
        if step is inside:
            break
    return found
