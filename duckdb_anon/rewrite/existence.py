"""Functions of which groups exist: their number, and extremes and means of what they measure.

    SELECT count(*) FROM (SELECT age, sex FROM t GROUP BY age, sex HAVING count(*) = 1)
    SELECT region, count(DISTINCT age) FROM t GROUP BY region

A release seldom shows which groups there are: a box of ages may hold one age or ten. The groups that may exist are
listed with hard bounds of their number of rows. One with a row at least exists for certain; one that expects r rows
exists with chance 1 - exp(-r) (Poisson, for rows spread thinly over many groups). Bounds follow group by group: only
the groups that surely exist for one end, all that may for the other. Without hard bounds of the numbers of rows
(randomized, sampled, noisy releases) the function is refused: a draw of groups says nothing certain, and its number of
groups is that of the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.grouping_sets import groups_of
from duckdb_anon.rewrite.query.parse import plain
from duckdb_anon.rewrite.query.refusals import is_aggregate
from duckdb_anon.rewrite.query.template import copied, every, mapped, name, own, some, tree
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.intervals import IntervalPart
from duckdb_anon.rewrite.shapes.parts import labelled
from duckdb_anon.rewrite.shapes.released import Model

Rewrite = Callable[[exp.Select], dict[int, float] | None]
"""Rewrites a grouped SELECT with hard bounds; gives the columns that have them, None where the release answers it as it
stands."""
HARD = 1.0
_FLIPPED = {exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.LTE: exp.GTE, exp.EQ: exp.EQ, exp.NEQ: exp.NEQ}
_MAY = {exp.GT: "{high} > {k}", exp.GTE: "{high} >= {k}", exp.LT: "{low} < {k}", exp.LTE: "{low} <= {k}"}
_MUST = {exp.GT: "{low} > {k}", exp.GTE: "{low} >= {k}", exp.LT: "{high} < {k}", exp.LTE: "{high} <= {k}"}


@dataclass(frozen=True)
class Triple:
    """An estimate with its ends."""

    middle: exp.Expr
    low: exp.Expr
    high: exp.Expr


@dataclass
class Existing:
    """The groups of a SELECT, listed with how sure each is.

    Attributes:
        groups: the SELECT; its keys and measures keep their names. `list` rewrites it.
        alias: its name in the SELECT around it.
        text: the function asked for, for messages.
        bounded: names of the measures that have bounds.
        having: condition on them.
        as_it_stands: whether the release answers the SELECT as it is.
        guard: whether some cell could be anything, so that there may be groups nothing lists; None if that cannot be.
    """

    groups: exp.Select
    alias: exp.Identifier
    text: str
    bounded: frozenset[str] = frozenset()
    having: exp.Expr | None = None
    as_it_stands: bool = False
    guard: exp.Expr | None = None

    def list(self, rewrite: Rewrite) -> None:
        """Rewrite the groups with the bounds of everything that decides whether they count.

        Raises:
            RewriteError: some of it has no bounds.
        """
        self._take_having()
        self.groups.append("expressions", labelled(tree("count(*)"), "rows"))
        found = rewrite(self.groups)
        if found is None:
            self.as_it_stands = True
            return
        names = [e.alias_or_name for e in self.groups.expressions]
        self.bounded = frozenset(names[i] for i, confidence in found.items() if confidence == HARD)
        if name("rows").this not in self.bounded:
            raise RewriteError(
                f"{self.text} depends on which groups exist, and the release does not bound how many rows each has; "
                "ask for the groups with their count(*)"
            )

    def _take_having(self) -> None:
        """Let HAVING read columns of the groups; it is judged from outside, with bounds."""
        having = self.groups.args.get("having")
        if having is None:
            return
        self.groups.set("having", None)
        labels: dict[exp.Expr, str] = {}

        def measured(node: exp.Expr) -> exp.Expr | None:
            if is_aggregate(node) or isinstance(node, exp.Filter):
                return self.column(name(labels.setdefault(copied(node), f"condition_{len(labels)}")).this)
            if isinstance(node, exp.Column):
                raise RewriteError(f"HAVING of {self.text} reads {plain(node)}, which is not one of its measures")
            return None

        self.having = mapped(having.this, measured)
        for node, label in labels.items():
            self.groups.append("expressions", labelled(node, label))

    def column(self, label: str) -> exp.Column:
        """A column of the groups."""
        return exp.Column(this=exp.Identifier(this=label, quoted=True), table=self.alias.copy())

    def measure(self, label: str) -> Triple | None:
        """A measure of the groups with its ends; None for a key."""
        if label not in self.bounded:
            return None
        return Triple(self.column(label), self.column(f"{label}_low"), self.column(f"{label}_high"))

    @property
    def rows(self) -> Triple:
        """Number of rows."""
        found = self.measure(name("rows").this)
        assert found is not None  # noqa: S101 -- `list` made sure
        return found

    def judged(self, condition: exp.Expr) -> Triple:
        """Whether a condition on a group holds by the estimates, surely (low), and possibly (high).

        Raises:
            RewriteError: it is none that bounds decide.
        """
        condition = condition.unnest()
        if isinstance(condition, (exp.And, exp.Or)):
            sides = [self.judged(condition.left), self.judged(condition.right)]
            join = every if isinstance(condition, exp.And) else some
            return Triple(*(join([getattr(side, end) for side in sides]) for end in ("middle", "low", "high")))
        if isinstance(condition, exp.Not):
            inner = self.judged(condition.this)
            return Triple(*(tree("not {x}", x=x) for x in (inner.middle, inner.high, inner.low)))
        columns = [c for c in all_of(condition, exp.Column) if c.table == self.alias.this]
        if not any(self.measure(c.name) for c in columns):
            return Triple(condition, condition, condition)
        if isinstance(condition, exp.Between):
            low, high = condition.args["low"], condition.args["high"]
            return self.judged(tree("{m} >= {low} and {m} <= {high}", m=condition.this, low=low, high=high))
        found = self._compared(condition)
        if found is None:
            raise RewriteError(
                f"{self.text} depends on which groups satisfy {plain(condition)}; compared can be one measure with a "
                "number (=, <>, <, <=, >, >=, BETWEEN)"
            )
        return found

    def _compared(self, condition: exp.Expr) -> Triple | None:
        kind = type(condition)
        if kind not in _FLIPPED:
            return None
        left, right = condition.this.unnest(), condition.expression.unnest()
        if not isinstance(left, exp.Column):
            left, right, kind = right, left, _FLIPPED[kind]
        if not isinstance(left, exp.Column) or right.find(exp.Column, exp.Query):
            return None
        measure = self.measure(left.name)
        if measure is None:
            return None
        holes = {"low": measure.low, "high": measure.high, "k": right}
        middle = kind(this=copied(left), expression=copied(right))
        if kind in _MAY:
            return Triple(middle, tree(_MUST[kind], **holes), tree(_MAY[kind], **holes))
        touches = tree("{low} <= {k} and {high} >= {k}", **holes)
        settled = tree("{low} = {k} and {high} = {k}", **holes)
        if kind is exp.EQ:  # a count is close to a whole number, seldom one
            return Triple(tree("round({m}) = {k}", m=left, k=right), settled, touches)
        return Triple(
            tree("round({m}) <> {k}", m=left, k=right), tree("not ({x})", x=touches), tree("not ({x})", x=settled)
        )

    def guarded(self, found: Triple, low: bool = True, high: bool = True) -> Triple:
        """Leave ends open where groups may exist that nothing lists.

        Args:
            found: What an output is in the middle and at its ends.
            low: Whether further groups could lower it.
            high: Whether further groups could raise it.
        """
        if self.guard is None:
            return found
        ends = [
            tree("case when {guard} then null else {x} end", guard=self.guard, x=x) if open_ else x
            for x, open_ in ((found.low, low), (found.high, high))
        ]
        return Triple(found.middle, ends[0], ends[1])

    def chance(self, where: Sequence[exp.Expr]) -> Triple:
        """Chance that a group exists and satisfies conditions, whether it surely does, whether it may."""
        conditions = [*where, *([self.having] if self.having is not None else [])]
        judged = [self.judged(one) for one in conditions]
        rows = self.rows
        chance = tree(
            "case when {low} >= 1 then 1 else 1 - exp(-greatest({rows}, 0)) end", low=rows.low, rows=rows.middle
        )
        holds = every([one.middle for one in judged])
        middle = (
            chance if not judged else tree("case when {holds} then {chance} else 0 end", holds=holds, chance=chance)
        )
        must = every([tree("{low} >= 1", low=rows.low), *(one.low for one in judged)])
        may = every([tree("{high} >= 1", high=rows.high), *(one.high for one in judged)])
        return Triple(middle, must, may)


def unlisted(select: exp.Select, model: Model) -> exp.Expr | None:
    """Whether there may be groups that no cell lists: of cells that could be anything, of rows that were left out.

    None where that cannot be.
    """
    keys = {fold(c.name) for key in groups_of(select).keys for c in all_of(key, exp.Column)}
    tests = [
        tree(
            "coalesce((select bool_or({cell} is not null and {cell}.lower is null) from {release}), false)",
            cell=part.key,
            release=part.source(),
        )
        for part in model.parts
        if isinstance(part, IntervalPart) and keys & set(part.columns)
    ]
    if model.missing is not None:
        tests.append(tree("{missing} > 0", missing=model.missing))
    return some(tests) if tests else None


def number(chance: Triple) -> Triple:
    """How many groups there are."""
    return Triple(
        tree("coalesce(sum({x}), 0)", x=chance.middle),
        tree("count_if({x})", x=chance.low),
        tree("count_if({x})", x=chance.high),
    )


def function_of_groups(node: exp.Expr, existing: Existing, where: Sequence[exp.Expr], counts: frozenset[str]) -> Triple:
    """An aggregate over groups, with its ends.

    Args:
        node: the aggregate.
        existing: the groups.
        where: conditions on them.
        counts: names of those measures that are numbers of rows.

    Raises:
        RewriteError: it has no bounds.
    """
    chance = existing.chance(where)
    argument = node.this
    star = argument is None or isinstance(argument, (exp.Star, exp.Literal))
    if isinstance(node, exp.Count) and (star or (isinstance(argument, exp.Column) and argument.name in counts)):
        return existing.guarded(number(chance), low=False)
    if isinstance(argument, exp.Column) and type(node) in (exp.Count, exp.Min, exp.Max, exp.Sum, exp.Avg):
        measure = existing.measure(argument.name)
        if measure is None and isinstance(node, exp.Count):
            there = tree("{x} is not null", x=argument)
            return existing.guarded(number(existing.chance([*where, there])), low=False)
        if measure is None and isinstance(node, (exp.Min, exp.Max)):
            return existing.guarded(_extreme(node, Triple(argument, argument, argument), chance))
        if measure is not None and not isinstance(node, exp.Count):
            return existing.guarded(_of_measure(node, measure, chance, argument.name in counts))
    raise RewriteError(
        f"{plain(node)} depends on which groups exist and cannot be bounded from the release; ask for the groups "
        "themselves, or for their number, sum, mean or extremes"
    )


def _of_measure(node: exp.Expr, measure: Triple, chance: Triple, counted: bool) -> Triple:
    if counted:  # a group that exists has a row
        measure = Triple(measure.middle, tree("greatest({x}, 1)", x=measure.low), measure.high)
    if isinstance(node, (exp.Min, exp.Max)):
        return _extreme(node, measure, chance)
    holes = {"m": measure.middle, "low": measure.low, "high": measure.high}
    holes |= {"chance": chance.middle, "must": chance.low, "may": chance.high}
    total = tree("sum(case when {chance} > 0 then {m} end)", **holes)
    if isinstance(node, exp.Sum):
        return Triple(
            total,
            tree("sum(case when {must} then {low} when {may} then least({low}, 0) end)", **holes),
            tree("sum(case when {must} then {high} when {may} then greatest({high}, 0) end)", **holes),
        )
    low = tree("min(case when {may} then {low} end)", **holes)
    high = tree("max(case when {may} then {high} end)", **holes)
    return Triple(tree("{total} / nullif(sum({chance}), 0)", total=total, chance=chance.middle), low, high)


def _extreme(node: exp.Expr, value: Triple, chance: Triple) -> Triple:
    pick = "max" if isinstance(node, exp.Max) else "min"
    first, second = (chance.low, chance.high) if pick == "max" else (chance.high, chance.low)
    middle, low, high = (
        tree(f"{pick}(case when {{test}} then {{x}} end)", test=test, x=x)
        for test, x in (
            (tree("{x} >= 0.5", x=chance.middle), value.middle),
            (first, value.low),
            (second, value.high),
        )
    )
    return Triple(tree("coalesce({middle}, {low})", middle=middle, low=low), low, high)


def distinct_values(
    fine: exp.Select, keys: Sequence[exp.Expr], text: str, rewrite: Rewrite, guard: exp.Expr | None
) -> tuple[exp.Select, bool]:
    """SELECT the keys and the number of distinct values with its ends, one row a group.

    Args:
        fine: SELECT the keys as key_i, grouped by them and by the value.
        keys: the keys.
        text: the aggregate, for messages.
        rewrite: rewrites a SELECT over the original.
        guard: whether there may be values that nothing lists.

    Returns:
        The SELECT with columns key_i, number, low, high; whether low and high are hard bounds.
    """
    existing = Existing(fine, name("values"), text, guard=guard)
    existing.list(rewrite)
    columns = [own(f"key_{i}", "values") for i in range(len(keys))]
    if existing.as_it_stands:
        both: Triple = Triple(*(tree("count(*)") for _ in range(3)))
    else:
        both = existing.guarded(number(existing.chance([])), low=False)
    numbers = [labelled(x, label) for x, label in ((both.middle, "number"), (both.low, "low"), (both.high, "high"))]
    found = exp.Select(expressions=[*(copied(c) for c in columns), *numbers])
    source = exp.Subquery(this=fine, alias=exp.TableAlias(this=name("values")))
    found.set("from_", exp.From(this=source))
    if columns:
        found.set("group", exp.Group(expressions=[copied(c) for c in columns]))
    return found, not existing.as_it_stands
