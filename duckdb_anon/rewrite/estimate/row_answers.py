"""What a row of the release tells by itself, put in the place of what it would have to be joined with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from duckdb_anon.rewrite.query.template import kept_together, mapped, name, number, taken, tree
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.parts import ROW, Part, Request

Place = tuple[str, str]
"""A step and its column that an expression reads."""


def ends_read(part: Part, cell: exp.Expr, answers: Sequence[exp.Expr]) -> list[exp.Expr]:
    """The columns beside a part's cell that answers read.

    Args:
        part: the part.
        cell: its cell.
        answers: expressions.
    """
    return part.ends(cell, {column.name for answer in answers for column in all_of(answer, exp.Column)})


def place_of(column: exp.Column) -> Place:
    """The step and the column."""
    return column.table, column.this.this


def as_rows(step: exp.Identifier) -> exp.Expr:
    """A step in the place of the release."""
    return exp.Table(this=taken(step), alias=exp.TableAlias(this=taken(ROW)))


def answered(node: exp.Expr, answers: dict[Place, tuple[exp.Expr, str]]) -> exp.Expr:
    """An expression over joined shares, over what a row of the release tells in their place.

    Args:
        node: the expression.
        answers: what a row tells, by the place of the share.
    """

    def change(one: exp.Expr) -> exp.Expr | None:
        found = answers.get(place_of(one)) if isinstance(one, exp.Column) else None
        return kept_together(one.parent, one.arg_key, taken(found[0])) if found and one.parent else None

    return mapped(node, change)


def told_name(part: Part) -> exp.Identifier:
    """The step with what a part tells beside each row."""
    return name(f"channel_of_{part.name}")


def shares_name(part: Part) -> exp.Identifier:
    """The step with what a part answers, joined to the rows by its cells."""
    return name(f"shares_of_{part.name}")


def total_of(made_of: exp.Expr, parts: Sequence[Part], requests: Mapping[str, Mapping[Request, str]]) -> exp.Expr:
    """The sum of a number over rows: where it is an answer alone, as the part adds it up that gives it.

    Args:
        made_of: the number, over a row of the release.
        parts: the parts of the release.
        requests: what is asked of them, and the labels of the answers.
    """
    if not isinstance(made_of, exp.Column):
        return total(made_of)
    step, label = place_of(made_of)
    asked = [
        (part, one)
        for part in parts
        for one, told in requests.get(part.name, {}).items()
        if (shares_name(part).this, name(told).this) == (step, label)
    ]
    added_up = asked[0][0].of_rows(asked[0][1]) if asked else None
    return total(made_of) if added_up is None else added_up


def total(made_of: exp.Expr) -> exp.Expr:
    """The sum of a number over rows; a count where it is 1, or 1 where there is a value."""
    if made_of == number(1):
        return tree("count(*)")
    flag = made_of.this.unnest() if isinstance(made_of, exp.Cast) else None
    if isinstance(flag, exp.Not) and isinstance(flag.this, exp.Is) and isinstance(flag.this.expression, exp.Null):
        return tree("count({x})", x=flag.this.this)
    return tree("sum({x})", x=made_of)
