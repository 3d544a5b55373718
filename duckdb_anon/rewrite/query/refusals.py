"""What no release answers, whatever its shape: named here, once, before a query is bound.

Also here: the names of DuckDB's aggregates that sqlglot reads as plain functions. Taken for functions of a row they
would be computed over released rows, unweighted.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

import sqlglot
from sqlglot import TokenType, exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.walking import all_of

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


_CHANGING = frozenset(
    "random gen_random_uuid uuid uuidv4 uuidv7 nextval currval setval setseed stats vector_type write_log "
    "sleep_ms pg_sleep".split()
)
"""Names of DuckDB's functions that give something else at every call, or tell of the rows as they are stored."""


_IN_LIST = re.compile(r"\bin\s*\[", re.IGNORECASE)
_CONSTANTS = (
    *(TokenType.NUMBER, TokenType.STRING, TokenType.COMMA, TokenType.TRUE, TokenType.FALSE, TokenType.CURRENT_DATE),
    *(TokenType.DASH, TokenType.PLUS, TokenType.STAR, TokenType.DPIPE, TokenType.L_PAREN, TokenType.R_PAREN),
)
_DIVISIONS = (TokenType.SLASH, TokenType.DIV, TokenType.MOD)
_NEVER_NULL = frozenset("abs ceil floor lower make_date round today trim upper".split())
"""Functions that are not NULL of what is not."""
_GO_ON = (TokenType.L_BRACKET, TokenType.DPIPE, TokenType.DCOLON, TokenType.DOT)
"""What makes another list of the one before it."""


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate function."""
    if isinstance(node, exp.AggFunc):
        return not isinstance(node, exp.Grouping)
    return isinstance(node, exp.Anonymous) and fold(node.name) in AGGREGATES


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an expression has an aggregate in it, its subqueries included."""
    return any(map(is_aggregate, node.walk()))


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


def refuse(query: exp.Expr) -> None:
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
            kind = "UNPIVOT" if node.args.get("unpivot") else "PIVOT"
            raise RewriteError(
                f"this {kind} cannot be answered: name the values, ON column IN (...), and the keys, GROUP BY ..., or "
                "write count(*) FILTER (WHERE column = value)"
            )


def refuse_lists(query: str) -> None:
    """Raise for x IN [...] of more than constants and what is reckoned of them.

    It is read as x IN (...), which is the same of constants: NULL is no member of a list, and makes IN (...) NULL.

    Args:
        query: the query's text.

    Raises:
        RewriteError: naming what to write instead.

    >>> refuse_lists("select [x for x in [a, b]] from t where c in ['x', 'y']")
    >>> refuse_lists("select 1 from t where d in [date '2000-01-01', '2000-01-02'::date]")
    >>> refuse_lists("select 1 from t where c in [2 * 10, -5, 7 / 2, upper('f')]")
    """
    if not _IN_LIST.search(query):
        return
    tokens = sqlglot.tokenize(query, read="duckdb")
    kinds = [token.token_type for token in tokens] + [TokenType.SEMICOLON] * 2
    for place in range(1, len(tokens)):
        if kinds[place - 1 : place + 1] != [TokenType.IN, TokenType.L_BRACKET]:
            continue
        if place > 2 and kinds[place - 3] == TokenType.FOR:
            continue
        end = place + 1
        while (wide := _width(kinds, end, tokens)) > 0:
            end += wide
        if kinds[end] != TokenType.R_BRACKET or kinds[end + 1] in _GO_ON:
            raise RewriteError(
                "IN [...] of more than constants cannot be answered as written: NULL is no member of a list; write "
                "list_contains([...], x) for x IN [...], or x IN (...) with constants"
            )


def _width(kinds: list[TokenType], place: int, tokens: Sequence[sqlglot.Token]) -> int:
    """How many tokens of a constant stand together: two in DATE '2000-01-01', ::date and / 2; 0 where none does."""
    first, second = kinds[place : place + 2]
    if first in _DIVISIONS:  # by 0 it may be NULL
        return 2 * (second == TokenType.NUMBER and float(tokens[place + 1].text) != 0)
    if first == TokenType.VAR:
        return 2 * (second == TokenType.L_PAREN and fold(tokens[place].text) in _NEVER_NULL)
    if first == TokenType.INTERVAL and second in (TokenType.NUMBER, TokenType.STRING):
        return 2 + (kinds[place + 2] == TokenType.VAR)
    typed = first in (TokenType.DATE, TokenType.TIMESTAMPNTZ) and second == TokenType.STRING
    return 2 if typed or first == TokenType.DCOLON else int(first in _CONSTANTS)


def _refuse_method(node: exp.Dot) -> None:
    """Raise for column.upper(), which would be taken for a table's column; main.upper(column) is a function's name."""
    before = node.this
    while isinstance(before, exp.Dot):
        before = before.this
    if isinstance(before, exp.Identifier) and fold(before.name) in ("main", "system", "pg_catalog"):
        return
    of, function = node.this.sql("duckdb"), fold(node.expression.sql("duckdb").partition("(")[0])
    raise RewriteError(f"{of}.{function}(...) cannot be answered as it is written; write {function}({of}, ...)")
