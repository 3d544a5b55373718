"""Which of the original's columns a query asks of the release: those it names, but for persons whom it only counts."""

from __future__ import annotations

from sqlglot import exp

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.walking import all_of, columns_of
from duckdb_anon.rewrite.shapes.person_lists import ItemPart
from duckdb_anon.rewrite.shapes.released import Model


def require_columns(select: exp.Select, alias: str, model: Model, original: TableInfo) -> None:
    """Raise for a column that the release says nothing of.

    Args:
        select: a bound SELECT.
        alias: how it calls the original.
        model: what the release says.
        original: the original.

    Raises:
        RewriteError: naming the column.
    """
    for column in sorted(columns_of(select, alias) - counted_persons(select, model, original)):
        model.require(column, original)


def counted_persons(select: exp.Select, model: Model, original: TableInfo) -> set[str]:
    """The column of the person, where all that is asked of it is how many there are.

    Args:
        select: a bound SELECT.
        model: what the release says.
        original: the original.
    """
    persons = [column for column in all_of(select, exp.Column) if is_person(column, model, original)]
    inside = all(isinstance(c.parent, exp.Distinct) and isinstance(c.parent.parent, exp.Count) for c in persons)
    return {fold(column.name) for column in persons} if inside else set()


def is_person(value: exp.Expr, model: Model, original: TableInfo) -> bool:
    """Whether a value is the person of a row, of which the release has one row each instead.

    Args:
        value: an expression over the original.
        model: what the release says.
        original: the original.
    """
    known = {fold(name) for name, role in original.roles.items() if role == "person"} - set(model.exact)
    lists = any(isinstance(part, ItemPart) for part in model.parts)
    return lists and isinstance(value, exp.Column) and fold(value.name) in known
