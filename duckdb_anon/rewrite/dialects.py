"""SQL that was written for DuckDB, in the words of another engine.

What sqlglot does not know by name it would pass on as it is, to fail on the other engine; so such functions are named
here with their words there, and any other is refused. So is what has no words there at all: several lists unnested side
by side, numbers of rows that have no order. Cost: a parse and a generation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sqlglot
from sqlglot import exp

from duckdb_anon.model.errors import RewriteError, listed
from duckdb_anon.model.identifier_case import fold

DIALECTS = ("duckdb", "spark")
_NOW = {name: "current_timestamp" for name in ("now", "get_current_timestamp", "transaction_timestamp")}
_SPARK = {"error": "raise_error", "map_values": "map_values", "map_keys": "map_keys", **_NOW}
_LARGEST = "1.7976931348623157e308"
_WIDER = {
    exp.DType.INT128: "DECIMAL(38, 0)",
    exp.DType.UINT128: "DECIMAL(38, 0)",
    exp.DType.UBIGINT: "DECIMAL(20, 0)",
    exp.DType.UINT: "BIGINT",
    exp.DType.USMALLINT: "INT",
    exp.DType.UTINYINT: "SMALLINT",
    exp.DType.TIMESTAMP_S: "TIMESTAMP",
    exp.DType.TIMESTAMP_MS: "TIMESTAMP",
}
"""Types of DuckDB that others lack, and types of theirs that hold all of their values, or as many as there are."""
_UNKNOWN = {exp.DType.BIGNUM, exp.DType.TIMESTAMP_NS, exp.DType.TIME, exp.DType.UUID, exp.DType.BIT}


def spoken(sql: str, dialect: str) -> str:
    """Translate one statement from DuckDB's dialect.

    Args:
        sql: the statement.
        dialect: one of `DIALECTS`.

    Raises:
        RewriteError: it uses what the other engine has no words for.

    >>> spoken("select a::hugeint as n from t", "spark")
    'SELECT CAST(a AS DECIMAL(38, 0)) AS n FROM t'
    >>> spoken("select count(*) as n from t group by grouping sets ((a), (b))", "spark")
    'SELECT COUNT(*) AS n FROM t GROUP BY GROUPING SETS ((a), (b))'
    """
    if dialect == "duckdb":
        return sql
    try:
        tree = sqlglot.parse_one(sql, read="duckdb")
        for step in tree.find_all(exp.CTE):
            step.set("materialized", None)
        _name_functions(tree, dialect)
        _refuse_rows_without_order(tree, dialect)
        _unnest_alone(tree, dialect)
        _widen_types(tree, dialect)
        _count_arguments(tree)
        _measure(tree)
        _rename_equal_steps(tree)
        return str(tree.sql(dialect, unsupported_level=sqlglot.ErrorLevel.RAISE))
    except (sqlglot.errors.UnsupportedError, sqlglot.errors.ParseError) as error:
        raise RewriteError(f"{dialect} has no words for this: {str(error).splitlines()[0]}") from error


def _name_functions(tree: exp.Expr, dialect: str) -> None:
    """Give functions that sqlglot does not know their names there."""
    unknown = set()
    for call in list(tree.find_all(exp.Anonymous)):
        name = fold(str(call.this))
        if name == "isfinite":  # NaN is larger than any number there
            call.replace(exp.Between(this=call.expressions[0], low=_end("-"), high=_end("")))
        elif name not in _SPARK:
            unknown.add(name)
        else:
            call.set("this", _SPARK[name])
    if unknown:
        raise RewriteError(f"{dialect} has no words for {listed(sorted(unknown))}, which the estimate needs")


def _end(sign: str) -> exp.Expr:
    return sqlglot.parse_one(f"{sign}{_LARGEST}::double", read="duckdb")


def _refuse_rows_without_order(tree: exp.Expr, dialect: str) -> None:
    """Refuse numbers of rows, and rows before others, where no order is said: rows of a DataFrame have none."""
    by_order = (exp.RowNumber, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue)
    if any(isinstance(window.this, by_order) and not window.args.get("order") for window in tree.find_all(exp.Window)):
        raise RewriteError(
            f"{dialect} does not number rows that have no order, which the estimate needs; fewer do without low and "
            "high (bounds := 'none')"
        )


def _unnest_alone(tree: exp.Expr, dialect: str) -> None:
    """Unnest in SELECT, whole and one list at a time: cast lists before, and refuse several side by side."""
    for table in list(tree.find_all(exp.Table)):
        alias = table.args.get("alias")
        if isinstance(table.this, exp.GenerateSeries) and alias is not None and len(alias.columns) == 1:
            column = exp.Alias(this=exp.Explode(this=table.this.copy()), alias=alias.columns[0].copy())
            alone = exp.TableAlias(this=alias.this.copy())
            table.replace(exp.Subquery(this=exp.Select(expressions=[column]), alias=alone))
    for cast in list(tree.find_all(exp.Cast)):
        unnested = cast.this
        if isinstance(unnested, (exp.Explode, exp.Unnest)) and not isinstance(cast, exp.TryCast):
            (inside,) = unnested.expressions or [unnested.this]
            kind = exp.DataType(this=exp.DType.ARRAY, expressions=[cast.to.copy()], nested=True)
            inside.replace(exp.Cast(this=inside.copy(), to=kind))
            cast.replace(unnested.copy())
    for select in tree.find_all(exp.Select):
        if sum(1 for projection in select.expressions for _ in projection.find_all(exp.Explode, exp.Unnest)) > 1:
            raise RewriteError(f"{dialect} unnests one list a SELECT, and the estimate needs several side by side")


def _widen_types(tree: exp.Expr, dialect: str) -> None:
    """Give types that are not there others that hold their values."""
    for kind in list(tree.find_all(exp.DataType)):
        if kind.this in _UNKNOWN:
            raise RewriteError(f"{dialect} has no type for {kind.sql('duckdb')}")
        if kind.this in _WIDER:
            kind.replace(exp.DataType.build(_WIDER[kind.this], dialect=dialect))


def _measure(tree: exp.Expr) -> None:
    """Write numbers with a point as DOUBLEs, which DuckDB divides as: decimals there are rounded to six digits."""
    for number in tree.find_all(exp.Literal):
        if not number.is_string and "." in number.name and "e" not in number.name.lower():
            number.set("this", f"{number.name}e0")


def _count_arguments(tree: exp.Expr) -> None:
    """Let the greatest or least of one value be that value, and what is grouped by of several columns have its name."""
    for call in list(tree.find_all(exp.Greatest, exp.Least)):
        if not call.expressions:
            call.replace(call.this.copy())
    for grouping in list(tree.find_all(exp.Grouping)):
        if len(grouping.expressions) > 1:
            grouping.replace(
                exp.Anonymous(
                    this="grouping_id", expressions=[projection.copy() for projection in grouping.expressions]
                )
            )


def _rename_equal_steps(tree: exp.Expr) -> None:
    """Give steps inside of steps names of their own, as sqlglot brings them to one WITH, and none a table's."""
    tables: set[str] = set()
    _rename_steps(tree, {}, lambda name: tables.add(fold(name)), lambda name: name)

    def free(name: str) -> str:
        found, number = name, 1
        while fold(found) in tables:
            number += 1
            found = f"{name}_{number}"
        tables.add(fold(found))
        return found

    _rename_steps(tree, {}, lambda name: None, free)


def _rename_steps(
    node: exp.Expr, names: Mapping[str, str], table: Callable[[str], None], new: Callable[[str], str]
) -> None:
    """Rename the steps in a tree, and where they are read.

    Args:
        node: the tree.
        names: new name of each step that can be read here.
        table: is told the name of each table that is no step.
        new: new name of a step.
    """
    if isinstance(node, exp.Table) and not node.db:
        name = names.get(fold(node.name))
        if name is None:
            table(node.name)
        elif name != node.name:
            if not node.alias:
                node.set("alias", exp.TableAlias(this=node.this.copy()))
            node.set("this", exp.to_identifier(name, quoted=node.this.quoted))
    with_ = node.args.get("with_")
    if with_ is not None:
        names = dict(names)
        for cte in with_.expressions:
            _rename_steps(cte.this, names, table, new)
            old = cte.args["alias"].this
            names[fold(old.name)] = new(old.name)
            cte.args["alias"].set("this", exp.to_identifier(names[fold(old.name)], quoted=old.quoted))
    for key, value in node.args.items():
        if key != "with_":
            for inside in value if isinstance(value, list) else [value]:
                if isinstance(inside, exp.Expr):
                    _rename_steps(inside, names, table, new)
