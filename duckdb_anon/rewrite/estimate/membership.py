"""Which of a row's values belong to which group, where the final query sees values one by one.

A released row may belong to several groups; it surely belongs to one when all of its values do. Bounds of a group
read both marks, one row a released row and group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.estimate.expectation import split
from duckdb_anon.rewrite.query.template import every, name, own, select, tree
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.intervals import IntervalPart
from duckdb_anon.rewrite.shapes.parts import Part, labelled

MEMBERS = name("by_group")


@dataclass(frozen=True)
class Membership:
    """What makes a value of a row belong to a group; expressions without table names.

    Attributes:
        sets: keys of each grouping set of the final query.
        by_value: its conditions on spread values.
        intervals: the spread intervals. What has no ends may be a value that is not listed: it surely belongs nowhere.
        ranges: grouping sets and values whose ends within a row and group are asked for.
    """

    sets: tuple[tuple[exp.Expr, ...], ...]
    by_value: exp.Expr
    intervals: tuple[IntervalPart, ...] = ()
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

    def mixed(self) -> list[IntervalPart]:
        """Intervals that a key or a condition reads together with other columns.

        Values outside all lists may bring a cell without ends into a group that none of its listed values belongs to.
        """
        found = []
        read = [{fold(c.name) for c in all_of(one, exp.Column)} for one in self._asked()]
        for part in self.intervals:
            if any(columns & set(part.columns) and columns - set(part.columns) for columns in read):
                found.append(part)
        return found

    def _asked(self) -> Iterator[exp.Expr]:
        for keys in self.sets:
            yield from keys
        yield from split(self.by_value)


def intervals_of(parts: Sequence[Part]) -> tuple[IntervalPart, ...]:
    """Those of spread parts that are intervals."""
    return tuple(part for part in parts if isinstance(part, IntervalPart))


def members(membership: Membership, spread: exp.Identifier) -> exp.Select:
    """Mark one value of each row and group, and whether all of the row's values belong to the group, for each set."""
    marks: list[exp.Expr] = []
    cells = [own(f"cell_{part.name}") for part in membership.intervals]
    listed = [tree("({cell}.lower is not null or {cell} is null)", cell=cell) for cell in cells]
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
        whole = every([whole, *listed])
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
