"""The sets of keys a query groups by: one for a plain GROUP BY, several for ROLLUP, CUBE and GROUPING SETS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

from sqlglot import exp

from duckdb_anon.rewrite.query.template import copied

Keys = tuple[exp.Expr, ...]


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
        """What tells the set of a group, as an expression: GROUPING(all keys)."""
        return exp.Grouping(expressions=[copied(key) for key in self.keys])

    def level_of(self, keys: Keys) -> int:
        """What GROUPING(all keys) is for a set: a bit for each key that is not in it, the first key's the highest."""
        bits = [int(key not in keys) for key in self.keys]
        return sum(bit << place for place, bit in enumerate(reversed(bits)))


def groups_of(select: exp.Select) -> QueryGroups:
    """Read the GROUP BY of a bound SELECT."""
    group = select.args.get("group")
    clauses = [_sets(clause) for clause in group.expressions] if group else []
    sets = tuple({frozenset(keys): keys for keys in (_once(sum(pick, ())) for pick in product(*clauses))}.values())
    return QueryGroups(_once(sum(sets, ())), sets)


def _sets(clause: exp.Expr) -> list[Keys]:
    """The sets one element of GROUP BY stands for."""
    if isinstance(clause, exp.GroupingSets):
        return [keys for one in clause.expressions for keys in _sets(one)]
    if not isinstance(clause, (exp.Rollup, exp.Cube)):
        return [_members(clause)]
    elements = [_members(one) for one in clause.expressions]
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


def _once(keys: Sequence[exp.Expr]) -> Keys:
    return tuple(dict.fromkeys(keys))
