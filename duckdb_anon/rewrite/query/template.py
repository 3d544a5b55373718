"""Pieces of SQL as trees: written as SQL, parsed once a process, filled with trees.

    tree("coalesce(sum({amount}), 0)", amount=node)

A hole in braces takes a tree, a list of trees (spliced into the list it stands in), a name (`name`, or a string, which
names a column or table of the analyst's and is quoted), or a number. A tree that is an operation is put into
parentheses where the operation around the hole would take it apart.

Names that begin with an underscore in a template are the rewriter's own. They are marked until `names.spelled` gives
them a spelling that no column or table of the analyst has, so a template never has to think of clashes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any, TypeVar

import sqlglot
from sqlglot import exp

from duckdb_anon.rewrite.query.walking import LEAVES, all_of

OWN = "\0"
"""Marks a name as the rewriter's own: no identifier of SQL text can hold it."""

_HOLE = re.compile(r"\{(\w+)\}")
_PREFIX = "__hole_"
Tree = TypeVar("Tree", bound=exp.Expr)
Filling = exp.Expr | str | int | float | Fraction | Sequence[exp.Expr]


def tree(template: str, **holes: Filling) -> exp.Expr:
    """Fill a template of DuckDB SQL: an expression or a SELECT.

    Args:
        template: SQL with holes in braces.
        **holes: what to put into them; a tree that already stands somewhere is copied.

    Example:
        >>> tree("greatest({a} * {b}, 0)", a=exp.column("x") + 1, b=2).sql("duckdb")
        'GREATEST((x + 1) * 2, 0)'
    """
    found: exp.Expr = _made(template)(holes)[0]
    return found


def select(template: str, **holes: Filling) -> exp.Select:
    """Fill a template that is one SELECT."""
    found = tree(template, **holes)
    assert isinstance(found, exp.Select), template  # noqa: S101 -- templates are constants
    return found


def name(text: str) -> exp.Identifier:
    """One of the rewriter's own names."""
    return exp.Identifier(this=OWN + text, quoted=False)


def own(text: str, table: str | None = None) -> exp.Column:
    """A column with one of the rewriter's own names, of a table with another one."""
    return exp.Column(this=name(text), table=name(table) if table else None)


def column(text: str, table: exp.Identifier | None = None) -> exp.Column:
    """A column of the analyst's."""
    return exp.Column(this=_quoted(text), table=copied(table) if table is not None else None)


def number(value: int | float | Fraction) -> exp.Expr:
    """A number."""
    if isinstance(value, Fraction):
        value = value.numerator if value.denominator == 1 else float(value)
    literal = exp.Literal(this=repr(abs(value)), is_string=False)
    return exp.Neg(this=literal) if value < 0 else literal


def added(terms: Sequence[tuple[int, exp.Expr]]) -> exp.Expr:
    """A signed sum; 0 without terms."""
    if not terms:
        return number(0)
    sign, first = terms[0]
    total = first if sign > 0 else tree("-{x}", x=first)
    for sign, term in terms[1:]:
        total = tree("{a} + {b}" if sign > 0 else "{a} - {b}", a=total, b=term)
    return total


def multiplied(factors: Sequence[exp.Expr]) -> exp.Expr:
    """A product; ones are left out, 1 without factors."""
    kept = [one for one in factors if not (isinstance(one, exp.Literal) and one.this == "1")]
    return reduce(lambda a, b: tree("{a} * {b}", a=a, b=b), kept) if kept else number(1)


def every(conditions: Sequence[exp.Expr]) -> exp.Expr:
    """All of the conditions; true without any."""
    return _joined(exp.And, "{a} and {b}", conditions)


def some(conditions: Sequence[exp.Expr]) -> exp.Expr:
    """One of the conditions; false without any."""
    return _joined(exp.Or, "{a} or {b}", conditions)


def truth(value: bool) -> exp.Boolean:
    """TRUE or FALSE."""
    return exp.Boolean(this=value)


def copied(node: Tree) -> Tree:
    """Copy a tree."""
    if type(node) in LEAVES:
        made = node.__class__(**node.args)
    else:
        made = node.__class__(
            **{
                key: copied(value)
                if isinstance(value, exp.Expr)
                else [copied(one) if isinstance(one, exp.Expr) else one for one in value]
                if isinstance(value, list)
                else value
                for key, value in node.args.items()
            }
        )
    if node._meta is not None:
        made._meta = dict(node._meta)
    return made


def taken(node: exp.Expr) -> exp.Expr:
    """The tree itself, or a copy where it already stands in another one; of a name, which may be a constant, a copy."""
    return node if node.parent is None and not isinstance(node, exp.Identifier) else copied(node)


def _joined(kind: type[exp.Expr], template: str, conditions: Sequence[exp.Expr]) -> exp.Expr:
    neutral = kind is exp.And
    kept = [one for one in conditions if not (isinstance(one, exp.Boolean) and one.this is neutral)]
    if any(isinstance(one, exp.Boolean) for one in kept):
        return truth(not neutral)
    return reduce(lambda a, b: tree(template, a=a, b=b), kept) if kept else truth(neutral)


Holes = Mapping[str, Filling]
Maker = Callable[[Holes], list[Any]]
"""Makes what stands in a template's place from what its holes are filled with: one tree, several, or a plain value."""


@lru_cache(maxsize=1024)
def _made(template: str) -> Maker:
    """What makes a template's tree."""
    text = _HOLE.sub(lambda found: _PREFIX + found.group(1), template)
    parsed = sqlglot.parse_one(text, dialect="duckdb")
    for node in all_of(parsed, exp.Identifier):
        if node.name.startswith("_") and not node.name.startswith(_PREFIX):
            node.set("this", OWN + node.name[1:])
            node.set("quoted", False)
    return _maker(exp.Paren(), "this", parsed)


def _hole(node: Any) -> str | None:
    if type(node) is exp.Identifier and node.this.startswith(_PREFIX):
        return str(node.this[len(_PREFIX) :])
    return None


def _maker(parent: exp.Expr, key: str, node: exp.Expr) -> Maker:
    """What makes one node of a template.

    Args:
        parent: the node around it.
        key: as which of its arguments.
        node: the node.
    """
    hole = _hole(node)
    if hole is not None:
        return lambda holes: [_identifier(holes[hole])]
    whole = _hole(node.this) if isinstance(node, (exp.Column, exp.Table)) else None
    if whole is None or node.args.get("table" if isinstance(node, exp.Column) else "db"):
        if not any(_hole(one) is not None for one in all_of(node, exp.Identifier)):
            return lambda holes: [copied(node)]
        return _node_maker(node)
    if isinstance(node, exp.Column):
        return lambda holes: [kept_together(parent, key, one) for one in _fillings(holes[whole])]
    alias = node.args.get("alias")
    named = _maker(node, "alias", alias) if alias is not None else None
    return lambda holes: [_source(one, named(holes)[0] if named else None) for one in _fillings(holes[whole])]


def _node_maker(node: exp.Expr) -> Maker:
    """What makes a node with a hole somewhere below it."""
    kind, meta = type(node), node._meta
    plain = {key: value for key, value in node.args.items() if not isinstance(value, (list, exp.Expr))}
    single = [(key, _maker(node, key, value)) for key, value in node.args.items() if isinstance(value, exp.Expr)]
    several = [
        (key, [_maker(node, key, one) if isinstance(one, exp.Expr) else _same(one) for one in value])
        for key, value in node.args.items()
        if isinstance(value, list)
    ]

    def make(holes: Holes) -> list[Any]:
        given = {key: found[0] if (found := maker(holes)) else None for key, maker in single}
        for key, makers in several:
            given[key] = [one for maker in makers for one in maker(holes)]
        made = kind(**plain, **given)
        if meta is not None:
            made._meta = dict(meta)
        return [made]

    return make


def _same(value: Any) -> Maker:
    return lambda holes: [value]


def _fillings(value: Any) -> list[exp.Expr]:
    return [_filling(one) for one in value] if isinstance(value, (list, tuple)) else [_filling(value)]


def _filling(value: Any) -> exp.Expr:
    if isinstance(value, exp.Identifier):
        return exp.Column(this=taken(value))
    if isinstance(value, exp.Expr):
        return taken(value)
    if isinstance(value, str):
        return exp.Column(this=_quoted(value))
    return number(value)


def _identifier(value: Any) -> exp.Expr:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, exp.Column):
        value = value.this
    assert isinstance(value, exp.Identifier), value  # noqa: S101 -- templates are constants
    return taken(value)


def _source(value: exp.Expr, alias: exp.Expr | None) -> exp.Expr:
    """A FROM item: a named step, a table, or a SELECT in parentheses."""
    if isinstance(value, exp.Column):
        value = exp.Table(this=taken(value.this))
    if isinstance(value, exp.Query) and not isinstance(value, exp.Subquery):
        value = exp.Subquery(this=value)
    if alias is not None:
        value.set("alias", alias)
    return value


_ATOMS = (
    *(exp.Column, exp.Literal, exp.Boolean, exp.Null, exp.Func, exp.Paren, exp.Subquery, exp.Star, exp.Dot),
    *(exp.Window, exp.Filter, exp.Bracket, exp.Tuple, exp.Lambda, exp.Interval),
)
_RANK: dict[type[exp.Expr], int] = {
    exp.Or: 1, exp.And: 2, exp.Not: 3,
    exp.Add: 6, exp.Sub: 6, exp.Mul: 7, exp.Div: 7, exp.IntDiv: 7, exp.Mod: 7, exp.Neg: 8,
}  # fmt: skip
_COMPARISON = 5


def _rank(node: exp.Expr) -> int | None:
    """How tightly an operation binds; None for what is none."""
    found = _RANK.get(type(node))
    if found is None and isinstance(node, (exp.Condition, exp.Predicate)) and not _atomic(node):
        return _COMPARISON
    return found


def _atomic(node: exp.Expr) -> bool:
    return isinstance(node, exp.Pow) or (isinstance(node, _ATOMS) and not isinstance(node, exp.Binary))


def kept_together(parent: exp.Expr, key: str | None, node: exp.Expr) -> exp.Expr:
    """Put an operation into parentheses where the one around it would take it apart.

    Args:
        parent: what the operation is put into.
        key: as which argument.
        node: the operation.
    """
    if isinstance(node, exp.Query) and not isinstance(node, exp.Subquery):
        return exp.Subquery(this=node)
    inside = _rank(node)
    if inside is None or isinstance(parent, (exp.Paren, exp.Alias)):
        return node
    outside = _rank(parent)
    if outside is None:
        binds = isinstance(parent, (exp.Dot, exp.Bracket, exp.Between, exp.In, exp.Is, exp.Like)) and key == "this"
        return exp.Paren(this=node) if binds else node
    associative = key == "this" or (type(parent) in (exp.And, exp.Or, exp.Mul) and type(node) is type(parent))
    if inside > outside or (inside == outside and associative and inside != _COMPARISON):
        return node
    return exp.Paren(this=node)


def _quoted(text: str) -> exp.Identifier:
    return exp.Identifier(this=text, quoted=True)


def mapped(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
    """Copy a tree, with what `change` gives in the place of each node it does not give None for."""
    found = change(node)
    if found is not None:
        return taken(found)
    made = node.__class__(
        **{
            key: [mapped(v, change) if isinstance(v, exp.Expr) else v for v in value]
            if isinstance(value, list)
            else mapped(value, change)
            if isinstance(value, exp.Expr)
            else value
            for key, value in node.args.items()
        }
    )
    if node._meta is not None:
        made._meta = dict(node._meta)
    return made
