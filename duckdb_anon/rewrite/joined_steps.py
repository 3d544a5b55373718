"""Aggregates with steps of their own, computed group by group and joined to the rewritten query by its keys.

count(DISTINCT x)     from the groups by the query's keys and x           (`existence`)
mode(x)               the value with the most expected rows of them
median, quantile      from the rows' weights and ends                     (`bounds.quantiles`)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.bounds.quantiles import Quantile, Quantiles, in_intervals, read_quantile
from duckdb_anon.rewrite.estimate.asked_columns import is_person
from duckdb_anon.rewrite.estimate.homes import Homes
from duckdb_anon.rewrite.estimate.met_once import lists_do_not_say, meet_once
from duckdb_anon.rewrite.estimate.steps import Steps
from duckdb_anon.rewrite.estimate.value_steps import Step, append_step
from duckdb_anon.rewrite.existence import HARD, distinct_values, unlisted
from duckdb_anon.rewrite.query.aggregate_nodes import without_filter
from duckdb_anon.rewrite.query.grouping_sets import groups_of
from duckdb_anon.rewrite.query.parse import plain
from duckdb_anon.rewrite.query.tables import Bounds, TableInfo
from duckdb_anon.rewrite.query.template import copied, every, name, own, taken, tree
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.parts import Part, all_same, labelled
from duckdb_anon.rewrite.shapes.person_lists import ItemPart
from duckdb_anon.rewrite.shapes.released import Model

RewriteSelect = Callable[..., dict[int, float]]
Stands = Callable[[exp.Select, Model], bool]


@dataclass
class _Joined:
    """One aggregate and the last of its steps, which has its keys, `column` and perhaps low and high."""

    node: exp.Expr
    step: exp.Identifier
    column: str
    made: list[Step] = field(default_factory=list)
    bounded: bool = False
    quantile: Quantiles | None = None
    asked: Quantile | None = None
    none: int | None = None


@dataclass
class JoinedSteps:
    """The aggregates of one SELECT that have steps of their own."""

    keys: tuple[exp.Expr, ...]
    found: list[_Joined] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        select: exp.Select,
        nodes: Sequence[exp.Expr],
        model: Model,
        original: TableInfo,
        rewrite_select: RewriteSelect,
        stands: Stands,
    ) -> JoinedSteps:
        """Find them, and rewrite the groupings they read.

        Args:
            select: The SELECT, as the query has it.
            nodes: Its aggregates.
            model: Model of the release.
            original: The original table.
            rewrite_select: Rewrites a grouping in place, and says which of its outputs got bounds.
            stands: Whether a SELECT can be asked of the release as it stands.

        Raises:
            RewriteError: one of them cannot be estimated.
        """
        groups = groups_of(select)
        joined = cls(groups.keys)

        def hard(one: exp.Select) -> dict[int, float] | None:
            return None if stands(one, model) else rewrite_select(one, model, original, bounds_of_groups(model))

        for node in nodes:
            place = len(joined.found)
            asked = read_quantile(node)
            value, where = _distinct(node)
            mode = _mode(node)
            if asked is None and value is None and mode is None:
                continue
            if len(groups.sets) > 1:
                raise RewriteError(
                    f"{plain(node)} with ROLLUP, CUBE or GROUPING SETS cannot be estimated; ask one by one"
                )
            if asked is not None:
                one = _Joined(node, name(f"quantile_{place}"), "middle", asked=asked)
            elif value is not None and is_person(value, model, original):
                counted, bounded = _persons(select, groups.keys, where, model)
                rewrite_select(counted, replace(model, parts=_without_lists(model)), original, "none")
                if bounded:
                    ends = [labelled(copied(counted.expressions[-1].this), end) for end in ("low", "high")]
                    counted.set("expressions", [*counted.expressions, *ends])
                one = _Joined(node, name(f"persons_{place}"), "number", bounded=bounded, none=0)
                one.made.append((one.step, counted))
            elif value is not None:
                fine = finer(select, groups.keys, value, where)
                found, bounded = distinct_values(fine, groups.keys, plain(node), hard, unlisted(fine, model))
                one = _Joined(node, name(f"distinct_{place}"), "number", bounded=bounded, none=0)
                one.made.append((one.step, found))
            else:
                assert mode is not None  # noqa: S101 -- one of the three is there
                fine = finer(select, groups.keys, *mode)
                fine.append("expressions", labelled(tree("count(*)"), "rows"))
                if not stands(fine, model):
                    rewrite_select(fine, model, original, "none")
                one = _Joined(node, name(f"mode_{place}"), "middle")
                one.made.append((one.step, _commonest(fine, len(groups.keys))))
            joined.found.append(one)
        return joined

    @property
    def nodes(self) -> list[exp.Expr]:
        """The aggregates."""
        return [one.node for one in self.found]

    @property
    def filters(self) -> list[exp.Expr]:
        """Their FILTERs that the steps of the query itself judge."""
        return [one.asked.filtered for one in self.found if one.asked is not None and one.asked.filtered is not None]

    def reads(self, node: exp.Expr) -> bool:
        """Whether a node is one of the aggregates."""
        return any(one.node is node for one in self.found)

    def spell_out(self, homes: Homes) -> None:
        """Spell out the columns whose quantiles are read from their values."""
        for one in self.found:
            if one.asked is not None and not in_intervals(one.asked.value, homes):
                homes.spell_out(homes.columns(one.asked.value))
            if one.asked is not None:
                while any([homes.spell_out(homes.columns(piece)) for piece in list(homes.mixed(one.asked.condition))]):
                    continue

    def read(self, steps: Steps, where: exp.Expr | None, original: TableInfo) -> None:
        """Ask the query's steps for what quantiles need.

        Args:
            steps: Steps of the rewritten query.
            where: Its WHERE; None without one.
            original: The original table.
        """
        for place, one in enumerate(self.found):
            if one.asked is not None:
                one.quantile = Quantiles(one.asked, place, steps, where, original)
                one.quantile.read(self.keys)
                one.bounded = one.quantile.bounded

    def attach(self, select: exp.Select, bounded: bool) -> dict[int, float]:
        """Add the steps and joins to the rewritten query, and the ends of its outputs.

        Returns:
            Number of each output column whose low and high were appended, and their confidence.
        """
        if not self.found:
            return {}
        source, condition = copied(select.args["from_"]), select.args.get("where")
        joins = [copied(one) for one in select.args.get("joins") or []]
        appended: dict[int, float] = {}
        ends: list[exp.Expr] = []
        for one in self.found:
            if one.quantile is not None:
                assert one.quantile.source is not None  # noqa: S101 -- `read` came first
                one.quantile.source.set("joins", [copied(join) for join in joins])
                one.made = one.quantile.ctes(source, condition.this if condition else None, len(self.keys))
            for step, made_of in one.made:
                append_step(select, step, made_of)
            join_by_keys(select, one.step, self.keys)
            for place, projection in enumerate(select.expressions):
                if projection.unalias() is one.node and one.bounded and bounded and not one.node.find(*_ABOUT):
                    appended[place] = HARD
                    for which in ("low", "high"):
                        label = exp.to_identifier(f"{projection.alias_or_name}_{which}", quoted=True)
                        ends.append(exp.Alias(this=_of_group(one, which), alias=label))
        for one in self.found:
            one.node.replace(_of_group(one, one.column))
        for end in ends:
            select.append("expressions", end)
        return appended


_ABOUT = (exp.ApproxDistinct, exp.ApproxQuantile)
"""What DuckDB gives about: the bounds are those of the exact answer."""


def bounds_of_groups(model: Model) -> Bounds:
    """Which bounds tell the groups that exist: none where rows have a lower one alone.

    Args:
        model: what the release says.
    """
    return "none" if any(isinstance(part, ItemPart) for part in model.parts) else "hard"


def _without_lists(model: Model) -> tuple[Part, ...]:
    return tuple(part for part in model.parts if not isinstance(part, ItemPart))


def _persons(
    select: exp.Select, keys: Sequence[exp.Expr], where: exp.Expr | None, model: Model
) -> tuple[exp.Select, bool]:
    """SELECT the keys and the number of persons: of released rows; whether that is certain.

    It is for all persons together: a person's rows may differ in what conditions and keys ask for.
    """
    tests = [select.args["where"].this] if select.args.get("where") else []
    tests += [where] if where is not None else []
    listed = {column for part in model.parts if isinstance(part, ItemPart) for column in part.columns}
    asked = {fold(c.name) for one in [*tests, *keys] for c in all_of(one, exp.Column)} & listed
    if asked:
        raise RewriteError(lists_do_not_say(min(asked)))
    counted = exp.Select(expressions=[labelled(copied(key), f"key_{i}") for i, key in enumerate(keys)])
    counted.append("expressions", labelled(tree("count(*)"), "number"))
    counted.set("from_", copied(select.args["from_"]))
    counted.set("joins", [copied(join) for join in select.args.get("joins") or []])
    if tests:
        counted.set("where", exp.Where(this=every(tests)))
    if keys:
        counted.set("group", exp.Group(expressions=[copied(key) for key in keys]))
    if counted.args["joins"]:
        meet_once(counted, keys, sorted(listed))
    return counted, not tests and not keys and not select.args.get("joins") and model.weight is None


def join_by_keys(select: exp.Select, step: exp.Identifier, keys: Sequence[exp.Expr]) -> None:
    """Join a step with columns key_i to a query that groups by the keys.

    Args:
        select: the query.
        step: the step's name.
        keys: the keys.
    """
    mine = [tree("{step}.{k}", step=step, k=name(f"key_{i}")) for i in range(len(keys))]
    joined = exp.Join(this=exp.Table(this=taken(step)), side="LEFT")
    joined.set("on", all_same([(copied(key), k) for key, k in zip(keys, mine, strict=True)]))
    select.append("joins", joined)


def group_value(step: exp.Identifier, column: str) -> exp.Expr:
    """What a joined step says of a group.

    Args:
        step: the step's name.
        column: its column.
    """
    return tree("any_value({x})", x=own(column, step.this.lstrip("\0")))


def _of_group(one: _Joined, column: str) -> exp.Expr:
    found = group_value(one.step, column)
    # an end that is NULL is open
    return (
        found if one.none is None or column == "high" else tree("coalesce({found}, {none})", found=found, none=one.none)
    )


def _distinct(node: exp.Expr) -> tuple[exp.Expr | None, exp.Expr | None]:
    """The argument of count(DISTINCT x), and its FILTER."""
    inner, where = without_filter(node)
    if isinstance(inner, exp.Count) and isinstance(inner.this, exp.Distinct) and len(inner.this.expressions) == 1:
        return inner.this.expressions[0], where
    return (inner.this, where) if isinstance(inner, exp.ApproxDistinct) else (None, None)


def _mode(node: exp.Expr) -> tuple[exp.Expr, exp.Expr | None] | None:
    inner, where = without_filter(node)
    return (inner.this, where) if isinstance(inner, exp.Mode) and inner.this is not None else None


def finer(select: exp.Select, keys: Sequence[exp.Expr], value: exp.Expr, where: exp.Expr | None) -> exp.Select:
    """SELECT the keys and a value from the query's rows, grouped by both.

    Args:
        select: the query.
        keys: what it groups by.
        value: what else to group by; never NULL.
        where: what a row must satisfy beside the query's conditions.
    """
    if value.find(exp.Column) is None:
        value = tree("coalesce({v})", v=value)  # GROUP BY 3 means the third column
    tests = [select.args["where"].this] if select.args.get("where") else []
    tests += [one for one in (where, tree("{v} is not null", v=value)) if one is not None]
    columns = [labelled(copied(key), f"key_{i}") for i, key in enumerate(keys)]
    columns.append(labelled(copied(value), "value"))
    fine = exp.Select(expressions=columns, from_=copied(select.args["from_"]), where=exp.Where(this=every(tests)))
    if select.args.get("joins"):
        fine.set("joins", [copied(join) for join in select.args["joins"]])
    fine.set("group", exp.Group(expressions=[*(copied(key) for key in keys), copied(value)]))
    return fine


def _commonest(fine: exp.Select, keys: int) -> exp.Select:
    columns: list[exp.Expr] = [own(f"key_{i}", "values") for i in range(keys)]
    most = labelled(tree("arg_max(_values._value, _values._rows)"), "middle")
    found = exp.Select(expressions=[*columns, most])
    found.set("from_", exp.From(this=exp.Subquery(this=fine, alias=exp.TableAlias(this=name("values")))))
    if columns:
        found.set("group", exp.Group(expressions=[copied(one) for one in columns]))
    return found
