"""Which of a row's values belong to which group, where the final query sees values one by one.

A released row may belong to several groups; it surely belongs to one when all of its values do. Bounds of a group
read both marks, one row a released row and group.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from duckdb_anon.rewrite.query.template import name, own, select, tree
from duckdb_anon.rewrite.shapes.parts import labelled

MEMBERS = name("by_group")


@dataclass(frozen=True)
class Membership:
    """Keys of each grouping set of the final query, and its conditions on spread values; without table names."""

    sets: tuple[tuple[exp.Expr, ...], ...]
    by_value: exp.Expr


def members(membership: Membership, spread: exp.Identifier) -> exp.Select:
    """Mark one value of each row and group, and whether all of the row's values belong to the group, for each set."""
    marks: list[exp.Expr] = []
    for place, keys in enumerate(membership.sets):
        groups: list[exp.Expr] = [own("row"), *keys]
        first = tree(
            "row_number() over (partition by {groups} order by {by_value} is true desc) = 1",
            groups=groups,
            by_value=membership.by_value,
        )
        whole = tree(
            "count(*) filter (where {by_value}) over (partition by {groups}) = count(*) over (partition by _row)",
            groups=groups,
            by_value=membership.by_value,
        )
        marks += [labelled(first, f"first_{place}"), labelled(whole, f"whole_{place}")]
    return select("select *, {marks} from {spread}", marks=marks, spread=spread)
