"""Which of a row's values belong to which group, where the final query sees values one by one.

A released row may belong to several groups; it surely belongs to one when all of its values do. Bounds of a group
read both marks, one row a released row and group.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from duckdb_anon.rewrite.query.template import name, own, select, tree
from duckdb_anon.rewrite.shapes.parts import labelled

MEMBERS = name("by_group")


@dataclass(frozen=True)
class Membership:
    """What makes a value of a row belong to a group; expressions without table names.

    Attributes:
        sets: keys of each grouping set of the final query.
        by_value: its conditions on spread values.
        ranges: grouping sets and values whose ends within a row and group are asked for.
    """

    sets: tuple[tuple[exp.Expr, ...], ...]
    by_value: exp.Expr
    ranges: list[tuple[int, exp.Expr]] = field(default_factory=list)

    def range(self, place: int, value: exp.Expr) -> tuple[exp.Expr, exp.Expr, exp.Expr]:
        """The least and the most of a value among those of a row that belong to its group, and whether none is NULL.

        Args:
            place: number of the grouping set.
            value: an expression on values, without table names.
        """
        if (place, value) not in self.ranges:
            self.ranges.append((place, value))
        i = self.ranges.index((place, value))
        return own(f"least_{i}"), own(f"most_{i}"), own(f"never_null_{i}")


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
    for i, (place, value) in enumerate(membership.ranges):
        over: list[exp.Expr] = [own("row"), *membership.sets[place]]
        for end, pick in (("least", "min"), ("most", "max")):
            ranged = tree(
                f"{pick}(case when {{by_value}} then {{value}} end) over (partition by {{over}})",
                by_value=membership.by_value,
                value=value,
                over=over,
            )
            marks.append(labelled(ranged, f"{end}_{i}"))
        never = tree("bool_and({value} is not null) over (partition by {over})", value=value, over=over)
        marks.append(labelled(never, f"never_null_{i}"))
    return select("select *, {marks} from {spread}", marks=marks, spread=spread)
