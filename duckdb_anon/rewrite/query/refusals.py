"""What no release answers, whatever its format: refused here by name, before a query is bound or when it is.

Constructs that need single rows; functions that change from call to call, and macros that are more than a computation;
texts that a collation takes for equal, of which a release keeps one spelling.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.tables import Tables
from duckdb_anon.rewrite.query.trees import AGGREGATES, all_of, is_aggregate, plain

_CHANGING = frozenset(
    "random gen_random_uuid uuid uuidv4 uuidv7 nextval currval setval setseed stats vector_type write_log "
    "sleep_ms pg_sleep".split()
)
"""DuckDB's functions that give another value at every call, or that depend on how rows are stored."""
_IN_LIST = re.compile(r"\bin\s*\[", re.IGNORECASE)
_CONSTANTS = (
    *(TokenType.NUMBER, TokenType.STRING, TokenType.COMMA, TokenType.TRUE, TokenType.FALSE, TokenType.DASH),
    *(TokenType.DATE, TokenType.TIMESTAMPNTZ, TokenType.DCOLON),
)


def is_changing(node: exp.Expr) -> bool:
    """Whether a node is a function that gives something else at every call."""
    named = isinstance(node, exp.Anonymous) and fold(node.name) in _CHANGING
    return named or isinstance(node, (exp.Rand, exp.Uuid))


def misspelt(select: exp.Select) -> str:
    """The first function of a SELECT that DuckDB may not have, and the aggregate it looks like; '' without one.

    >>> from sqlglot import parse_one
    >>> misspelt(parse_one("select medan(age), f(age) from t", "duckdb"))
    "; medan is no aggregate (did you mean 'median'?)"
    """
    for node in select.find_all(exp.Anonymous):
        close = difflib.get_close_matches(fold(node.name), AGGREGATES, n=1, cutoff=0.75)
        if close:
            return f"; {fold(node.name)} is no aggregate (did you mean '{close[0]}'?)"
    return ""


def refuse(query: exp.Expr, _: Tables) -> None:
    """Raise for constructs that no release answers.

    Raises:
        RewriteError: naming the construct and what to write instead.
    """
    for node in all_of(query, exp.Expr):
        if isinstance(node, exp.Columns):
            raise RewriteError(
                "COLUMNS(...) cannot be answered: which columns it stands for is not known before the release is read; "
                "name the columns"
            )
        if is_changing(node):
            raise RewriteError(
                f"{fold(node.sql('duckdb'))} cannot be answered: it is something else for every "
                "row and at every call, so nothing is known of it from the release; leave it out"
            )
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
            _refuse_method(node)
        if (
            isinstance(node, exp.Typeof) or (isinstance(node, exp.Anonymous) and fold(node.name) == "pg_typeof")
        ) and any(map(is_aggregate, node.walk())):
            raise RewriteError(
                f"{fold(node.sql('duckdb'))} cannot be answered: an estimate's type is not always its aggregate's; ask "
                "DESCRIBE of the query on the original's empty shape"
            )
        if isinstance(node, exp.PositionalColumn):
            raise RewriteError(
                f"#{node.this} cannot be answered: the columns of a release have an order of their own; write the "
                "column's name"
            )
        if isinstance(node, exp.SetOperation) and node.args.get("by_name"):
            raise RewriteError("UNION BY NAME cannot be answered; write the columns in the same order and UNION ALL")
        if isinstance(node, exp.TableSample):
            raise RewriteError(
                "TABLESAMPLE and USING SAMPLE cannot be answered: a sample of released rows is none of the original; "
                "leave it out"
            )
        if isinstance(node, exp.Pivot):
            if node.args.get("unpivot"):
                raise RewriteError("this UNPIVOT cannot be answered: name its columns, ON a, b INTO NAME k VALUE v")
            raise unlisted()


def unlisted() -> RewriteError:
    """The refusal of a PIVOT that does not say which columns it makes."""
    return RewriteError(
        "this PIVOT cannot be answered: name the values, ON column IN (...), and the keys, GROUP BY ..., or "
        "write count(*) FILTER (WHERE column = value)"
    )


def refuse_lists(query: str) -> None:
    """Raise for x IN [...] of more than constants: it is read as x IN (...), which differs where a member is NULL.

    >>> refuse_lists("select [x for x in [a, b]] from t where c in ['x', 'y'] and d in [date '2000-01-01', -1]")
    """
    if not _IN_LIST.search(query):
        return
    tokens = sqlglot.tokenize(query, read="duckdb")
    token_types = [token.token_type for token in tokens] + [TokenType.SEMICOLON] * 2
    for position in range(1, len(tokens)):
        if (
            token_types[position - 1 : position + 1] != [TokenType.IN, TokenType.L_BRACKET]
            or token_types[position - 3] == TokenType.FOR
        ):
            continue
        end = position + 1
        while token_types[end] in _CONSTANTS:
            end += 1
        if token_types[end] != TokenType.R_BRACKET or token_types[end + 1] in (
            TokenType.DPIPE,
            TokenType.DCOLON,
            TokenType.DOT,
        ):
            raise RewriteError(
                "IN [...] of more than constants cannot be answered as written: NULL is no member of a list; write "
                "list_contains([...], x) for x IN [...], or x IN (...) with constants"
            )


def _refuse_method(node: exp.Dot) -> None:
    """Raise for column.upper(), which would be taken for a table's column; main.upper(column) is a function's name."""
    before = node.this
    while isinstance(before, exp.Dot):
        before = before.this
    if isinstance(before, exp.Identifier) and fold(before.name) in ("main", "system", "pg_catalog"):
        return
    of, function = node.this.sql("duckdb"), fold(node.expression.sql("duckdb").partition("(")[0])
    raise RewriteError(f"{of}.{function}(...) cannot be answered as it is written; write {function}({of}, ...)")


_COMPARES = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between, exp.In, exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ,
    exp.Like, exp.ILike,
)  # fmt: skip
_KEEPS = (
    exp.Paren, exp.Alias, exp.Ordered, exp.Count, exp.Max, exp.Min, exp.AnyValue, exp.Case, exp.If,
    exp.Coalesce, exp.Nullif, exp.Lower, exp.Upper, exp.Tuple, exp.Filter,
)  # fmt: skip
_CLAUSES = (exp.Query, exp.Group, exp.Order, exp.Where, exp.Having, exp.Join, exp.GroupingSets, exp.Cube, exp.Rollup)


def refuse_collated(tree: exp.Query, tables: Tables) -> None:
    """Raise where a query distinguishes spellings of one value."""
    names = _with_aliases(tree, tables[0].collated)
    for column in all_of(tree, exp.Column):
        if column.name not in names:
            continue
        if any(group.args.get("all") for group in all_of(tree, exp.Group)):
            raise RewriteError(
                f"GROUP BY ALL groups '{column.name}' by its letters, but its collation takes some texts for equal, "
                "and the release keeps one of them; write GROUP BY and the keys"
            )
        reader = _reader(column)
        if reader is not None:
            raise RewriteError(
                f"{reader.sql('duckdb', normalize_functions='lower')} reads the letters of '{column.name}', whose "
                "collation takes some texts for equal, and the release keeps one of them; compare the column itself "
                "with =, IN or LIKE"
            )


def _with_aliases(tree: exp.Query, collated: Collection[str]) -> set[str]:
    """Names of the columns, and of whatever a SELECT calls an expression with one of them in it."""
    names, before = {fold(name) for name in collated}, 0
    while names and len(names) > before:
        before = len(names)
        for alias in all_of(tree, exp.Alias):
            if any(column.name in names for column in all_of(alias.this, exp.Column)):
                names.add(alias.alias)
    return names


def _reader(column: exp.Column) -> exp.Expr | None:
    """The function that reads a column's letters; None where only its equality and order are asked."""
    node = column.parent
    while node is not None and not isinstance(node, (*_COMPARES, *_CLAUSES, exp.Connector, exp.Not)):
        if not isinstance(node, _KEEPS):
            return node.parent if isinstance(node, exp.Distinct) and node.parent else node
        node = node.parent
    return None


ROW_AGGREGATES = frozenset(
    "any_value arbitrary arg_max arg_max_null arg_max_nulls_last arg_min arg_min_null arg_min_nulls_last argmax "
    "argmin array_agg combine_aggr first group_concat json_group_array json_group_object json_group_structure last "
    "list listagg lttb max_by min_by reservoir_quantile string_agg variant_group_array variant_group_object".split()
)
"""Aggregates that show what single rows hold."""


def shows_rows(node: exp.Expr) -> bool:
    """Whether a node is an aggregate that shows what single rows hold."""
    if isinstance(node, exp.Anonymous):
        return fold(node.name) in ROW_AGGREGATES
    if isinstance(node, (exp.AnyValue, exp.First, exp.Last, exp.ArrayAgg, exp.GroupConcat, exp.ArgMax, exp.ArgMin)):
        return True
    return isinstance(node, exp.AggFunc) and bool({fold(item) for item in node.sql_names()} & ROW_AGGREGATES)


def unnests(node: exp.Expr) -> bool:
    """Whether a node makes several rows of one."""
    if isinstance(node, exp.Anonymous):
        return fold(node.name) in ("generate_subscripts", "regexp_split_to_table")
    return isinstance(node, (exp.Unnest, exp.Explode))


def single_row_reason(select: exp.Select) -> str:
    """Why a SELECT shows single rows of the original, which no released row is known to be; '' where it does not."""
    distinct = select.args.get("distinct")
    if isinstance(distinct, exp.Distinct) and distinct.args.get("on") is not None and not select.args.get("group"):
        return "DISTINCT ON picks single rows"
    functions = (node for e in select.expressions for node in all_of(e, exp.Unnest, exp.Explode, exp.Anonymous))
    if any(function.find_ancestor(exp.Select) is select for function in functions if unnests(function)):
        return "UNNEST of what a row holds makes several rows of each one"
    found = next(filter(shows_rows, all_of(select, exp.Expr)), None)
    return "" if found is None else f"{plain(found)} shows what single rows hold"


@dataclass(frozen=True)
class Called:
    """One function of the caller's database.

    Attributes:
        kind: 'scalar', 'aggregate' or 'macro'.
        changing: whether it gives something else at every call.
        macro: what a macro stands for, as SQL.
    """

    kind: str
    changing: bool = False
    macro: str = ""


Find = Callable[[Sequence[str]], dict[str, list[Called]]]
"""The functions there are of these names that are not DuckDB's own; None of a name that is DuckDB's."""


def require_understood(query: exp.Query, find: Find) -> None:
    """Raise for a function of the caller's that is more than a computation with a row's values.

    >>> known = {"twice": [Called("macro", macro="2 * x")]}
    >>> tree = sqlglot.parse_one("select sum(twice(n)) from t", "duckdb")
    >>> require_understood(tree, lambda names: {one: known[one] for one in names})
    """
    _require(_called(query), find, set())


def _require(names: Sequence[str], find: Find, seen: set[str]) -> None:
    for name, found in find([name for name in names if name not in seen]).items():
        if not found:
            raise RewriteError(f"there is no function {name} among those that DuckDB brings and those committed here")
        for node in found:
            if node.kind == "aggregate":
                raise RewriteError(
                    f"{name} is an aggregate of an extension, which cannot be estimated from the release"
                )
            if node.changing:
                raise RewriteError(f"{name} gives something else at every call, so it cannot be answered; leave it out")
            if node.kind == "macro":
                body = _body(name, node)
                seen.add(name)
                _require(_called(body), find, seen)


def _called(tree: exp.Expr) -> list[str]:
    """Names of the functions of a tree that sqlglot has no class for; those of FROM are tables of their own."""
    calls = (node for node in all_of(tree, exp.Anonymous) if not isinstance(node.parent, exp.Table))
    names = dict.fromkeys(fold(node.name) for node in calls)
    return [name for name in names if name != "all"]  # x > all(list)


def _body(name: str, macro: Called) -> exp.Expr:
    """A macro as a tree, which computes with its arguments."""
    message = f"{name} is a macro of {macro.macro}; write that in its place"
    try:
        body = sqlglot.parse_one(macro.macro, read="duckdb")
    except SqlglotError as error:
        raise RewriteError(message) from error
    if any(
        isinstance(node, (exp.Query, exp.Window)) or is_aggregate(node) or is_changing(node) for node in body.walk()
    ):
        raise RewriteError(message)
    return body
