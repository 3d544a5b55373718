"""PIVOT as aggregates with conditions, one for each value; UNPIVOT as lists of values.

A PIVOT that names no values has those that the release is estimated to hold; one that names no keys has all columns
that it does not read, as in DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_text
from duckdb_anon.rewrite.query.tables import Tables
from duckdb_anon.rewrite.query.trees import all_of, every, tree

MOST_VALUES = 200
OPEN = "open pivot"
"""Mark of a parsed query with a PIVOT of which values or keys are not named."""
UNPIVOTED = "unpivoted"
"""Mark of a query with an UNPIVOT: it selects all other columns, of which the query may read none."""
_PIVOTED = "pivoted"


@dataclass(frozen=True)
class LookUp:
    """What a PIVOT does not say.

    Attributes:
        columns: gives the names of the columns of a query.
        values: gives the rows of the answer to a query.
    """

    columns: Callable[[str], Sequence[str]]
    values: Callable[[str], Sequence[tuple[Any, ...]]]


def spelled_out(query: exp.Expr, look_up: LookUp | None = None) -> exp.Expr:
    """Spell out each PIVOT of a parsed statement, in place; without `look_up` those that name values and keys."""
    for pivot in reversed(_pivots(query)):  # inner ones first
        made = _aggregates(pivot, look_up)
        if made is not None:
            query = _replaced(query, pivot, made)
    return query


def spell_out_pivots(query: exp.Expr, _: Tables) -> exp.Expr:
    """Spell out each PIVOT that names values and keys; of any other one what it reads, until `with_values` does."""
    made = spelled_out(query)
    unlisted = reversed(_pivots(made))
    for pivot in unlisted:
        made = _replaced(made, pivot, exp.Select(expressions=[exp.Star()], from_=exp.From(this=_source(pivot))))
        made.meta[OPEN] = True
    return made


def spell_out_unpivots(query: exp.Expr, _: Tables) -> exp.Expr:
    """Write UNPIVOT as a list of values that is unnested; one that does not name its columns stays, to be refused."""
    for pivot in reversed([pivot for pivot in all_of(query, exp.Pivot) if pivot.args.get("unpivot")]):
        made = _unnested(pivot)
        if made is not None:
            query = _replaced(query, pivot, made)
            query.meta[UNPIVOTED] = True
    return query


def _unnested(pivot: exp.Pivot) -> exp.Select | None:
    """The SELECT that an UNPIVOT of single columns is."""
    fields, into = pivot.args.get("fields"), pivot.args.get("into")
    columns = fields[0].expressions if fields else pivot.expressions
    if not all(isinstance(column, exp.Column) for column in columns):
        return None
    names = [fields[0].this, *pivot.expressions] if fields else [into.this, *into.expressions] if into else []
    name, value = [name.name for name in names] or ["name", "value"]
    labels = exp.Array(expressions=[exp.Literal.string(column.name) for column in columns])
    rest = exp.Star(except_=[column.copy() for column in columns])
    unnested = [
        exp.alias_(exp.Explode(this=listed), called, quoted=True)
        for listed, called in ((labels, name), (exp.Array(expressions=[column.copy() for column in columns]), value))
    ]
    made = exp.Select(expressions=[rest, *unnested], from_=exp.From(this=_source(pivot)))
    if pivot.args.get("include_nulls"):
        return made
    present = tree("{value} is not null", value=exp.column(value, quoted=True))
    return exp.select("*").from_(made.subquery("_unpivoted")).where(present)


def _pivots(query: exp.Expr) -> list[exp.Pivot]:
    return [pivot for pivot in all_of(query, exp.Pivot) if not pivot.args.get("unpivot")]


def _source(pivot: exp.Pivot) -> exp.Expr:
    """What a PIVOT reads, as an item of FROM."""
    if pivot.arg_key != "pivots":
        read: exp.Expr = pivot.this.copy()
        return read
    assert pivot.parent is not None  # noqa: S101 -- a clause of an item
    source = pivot.parent.copy()
    source.set("pivots", None)
    source.set("joins", None)
    return source


def _replaced(query: exp.Expr, pivot: exp.Pivot, made: exp.Select) -> exp.Expr:
    if pivot.arg_key != "pivots":
        if pivot.args.get("with_"):
            made.set("with_", pivot.args["with_"].copy())
        if pivot is query:
            return made
        pivot.replace(made)
        return query
    source = pivot.parent
    assert source is not None  # noqa: S101 -- as above
    alias = pivot.args.get("alias") or exp.TableAlias(this=exp.to_identifier("pivoted"))
    source.replace(exp.Subquery(this=made, alias=alias.copy(), joins=source.args.get("joins")))
    return query


def _aggregates(pivot: exp.Pivot, look_up: LookUp | None) -> exp.Select | None:
    """The SELECT that a PIVOT is; None where it does not say its values or keys."""
    clause = pivot.arg_key == "pivots"
    fields = list(pivot.args.get("fields") or []) if clause else list(pivot.expressions)
    aggregates = list(pivot.expressions) if clause else list(pivot.args.get("using") or [exp.Count(this=exp.Star())])
    source, group = _source(pivot), pivot.args.get("group")
    others = pivot.parent.args["pivots"] if clause and pivot.parent is not None else [pivot]
    if any(all_of(field, exp.Query) for field in fields) or len(others) > 1:
        return None
    if group is not None:
        keys = list(group.expressions)
    else:
        names = _columns(pivot, source, look_up)
        if names is None:
            return None
        used = {fold(column.name) for node in (*fields, *aggregates) for column in all_of(node, exp.Column)}
        keys = [exp.column(name, quoted=True) for name in names if fold(name) not in used]
    listed = [_listed(pivot, source, field, look_up) for field in fields]
    return _select(source, keys, [field for field in listed if field is not None], aggregates) if all(listed) else None


def _columns(pivot: exp.Pivot, source: exp.Expr, look_up: LookUp | None) -> Sequence[str] | None:
    """Names of the columns that a PIVOT reads."""
    inner = source.this if isinstance(source, exp.Subquery) else None
    if isinstance(inner, exp.Select) and not inner.is_star:
        return inner.named_selects
    return None if look_up is None else look_up.columns(_with_steps(pivot, "*", source))


def _listed(pivot: exp.Pivot, source: exp.Expr, field: exp.Expr, look_up: LookUp | None) -> exp.In | None:
    """What follows ON, with the values that make columns."""
    if isinstance(field, exp.In):
        return field if field.expressions else None
    if look_up is None:
        return None
    value = field.sql("duckdb")
    rows = look_up.values(_with_steps(pivot, f"{value} AS v, ({value})::varchar AS label", source, value))
    if not 0 < len(rows) <= MOST_VALUES:
        raise RewriteError(
            f"PIVOT ON {value} is estimated to have {len(rows):,} values, and 1 to {MOST_VALUES} make columns. Name "
            f"those that you need: ON {value} IN (...)"
        )
    named = [
        exp.PivotAlias(this=exp.convert(value), alias=exp.to_identifier(label, quoted=True)) for value, label in rows
    ]
    return exp.In(this=field.copy(), expressions=named)


def _with_steps(pivot: exp.Pivot, selected: str, source: exp.Expr, present: str = "") -> str:
    """Text of a SELECT from what a PIVOT reads; of the values of what follows ON that are `present`, each once."""
    root = pivot.root()
    steps = [step for step in all_of(root, exp.CTE) if not any(node is pivot for node in step.walk())]
    written = ", ".join(step.sql("duckdb") for step in steps)
    more = f" WHERE {present} IS NOT NULL GROUP BY ALL ORDER BY ALL" if present else ""
    return f"{f'WITH {written} ' if written else ''}SELECT {selected} FROM {source.sql('duckdb')}{more}"


def _select(
    source: exp.Expr, keys: Sequence[exp.Expr], fields: Sequence[exp.In], aggregates: Sequence[exp.Expr]
) -> exp.Select:
    combined: list[tuple[str, list[exp.Expr]]] = [("", [])]
    for field in fields:
        combined = [
            (f"{label}_{_label(value)}" if label else _label(value), [*tests, _test(field.this, value)])
            for label, tests in combined
            for value in field.expressions
        ]
    columns: list[exp.Expr] = [key.copy() for key in keys]
    for label, tests in combined:
        for aggregate in aggregates:
            value = aggregate.unalias()
            long = len(aggregates) > 1 or isinstance(aggregate, exp.Alias)
            tail = aggregate.alias if isinstance(aggregate, exp.Alias) else _called(value)
            filtered = exp.Filter(this=value.copy(), expression=exp.Where(this=every(tests)))
            name = f"{label}_{tail}" if long else label
            columns.append(exp.Alias(this=filtered, alias=exp.to_identifier(name, quoted=True)))
    found = exp.Select(expressions=columns, from_=exp.From(this=source.copy()))
    if keys:
        found.set("group", exp.Group(expressions=[key.copy() for key in keys]))
    return found


def _called(aggregate: exp.Expr) -> str:
    """What DuckDB calls an aggregate among several."""
    if isinstance(aggregate, exp.Count) and isinstance(aggregate.this, exp.Star):
        return "count_star()"
    return aggregate.sql("duckdb", normalize_functions="lower")


def _label(value: exp.Expr) -> str:
    if isinstance(value, exp.PivotAlias):
        return str(value.args["alias"].name)
    return value.name if isinstance(value, exp.Literal) else value.sql("duckdb")


def _test(column: exp.Expr, value: exp.Expr) -> exp.Expr:
    inner = value.this if isinstance(value, exp.PivotAlias) else value
    if isinstance(inner, exp.Null):
        return tree("{column} is null", column=column)
    test = tree("{column} = {value}", column=column, value=inner)
    test.meta[_PIVOTED] = True
    return test


def as_texts(query: exp.Query, tables: Tables) -> None:
    """Compare texts with the numbers of a PIVOT as texts, in place, as DuckDB does: IN (1) means '1' there."""
    for test in [test for test in all_of(query, exp.EQ) if test.meta.get(_PIVOTED)]:
        column, value = test.this.unnest(), test.expression
        is_cast = isinstance(column, exp.Cast) and column.to.is_type(*exp.DataType.TEXT_TYPES)
        texts = is_cast or (isinstance(column, exp.Column) and is_text(tables[0].types.get(fold(column.name), "")))
        if texts and isinstance(value, exp.Literal) and not value.is_string:
            value.replace(exp.Literal.string(value.name))
