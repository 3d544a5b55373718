"""One SELECT over the original, turned into the SELECT that estimates it.

The query keeps its shape: the original gives way to a CTE with the same column names, aggregates become
weighted ones, and conditions that rows answer only in part move into the weights. Grouping, HAVING, ORDER BY,
LIMIT and joins stay as they were written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.rewrite.bounds.delta_method import randomized_only
from duckdb_anon.rewrite.bounds.ends import Limits, append_answers
from duckdb_anon.rewrite.bounds.permutation import permuted
from duckdb_anon.rewrite.bounds.variance_blocks import Question
from duckdb_anon.rewrite.bounds.variance_terms import VarianceTerms
from duckdb_anon.rewrite.estimate.aggregates import Aggregate, estimate, mass, not_zero, possible, read_aggregate
from duckdb_anon.rewrite.estimate.asked_columns import require_columns
from duckdb_anon.rewrite.estimate.expectation import BY_VALUE, EXACT, normal, split
from duckdb_anon.rewrite.estimate.homes import Homes
from duckdb_anon.rewrite.estimate.judged_inside import judge_inside
from duckdb_anon.rewrite.estimate.membership import Membership, intervals_of
from duckdb_anon.rewrite.estimate.moments import as_sums
from duckdb_anon.rewrite.estimate.numbers import add_numbers
from duckdb_anon.rewrite.estimate.rows_that_may import rows_that_may
from duckdb_anon.rewrite.estimate.step_ctes import stand_in
from duckdb_anon.rewrite.estimate.steps import Steps
from duckdb_anon.rewrite.estimate.unmatched_rows import UnmatchedRows
from duckdb_anon.rewrite.estimate.value_steps import drop_unread
from duckdb_anon.rewrite.joined_steps import JoinedSteps
from duckdb_anon.rewrite.likely_extremes import LikelyExtremes
from duckdb_anon.rewrite.query.aggregate_nodes import aggregate_nodes, columns_inside, columns_outside
from duckdb_anon.rewrite.query.grouping_sets import QueryGroups, groups_of
from duckdb_anon.rewrite.query.parse import from_items, is_original, plain
from duckdb_anon.rewrite.query.plain_from import items_beside
from duckdb_anon.rewrite.query.refusals import misspelt
from duckdb_anon.rewrite.query.tables import Bounds, TableInfo
from duckdb_anon.rewrite.query.template import copied, every, some, taken, tree, truth
from duckdb_anon.rewrite.query.under_where import mark
from duckdb_anon.rewrite.query.unmatched import of_columns_or_rows
from duckdb_anon.rewrite.query.walking import all_of, columns_of
from duckdb_anon.rewrite.shapes.listed import NodePart
from duckdb_anon.rewrite.shapes.own_counts import asked_of_counts, with_own_counts
from duckdb_anon.rewrite.shapes.own_slice import with_own_slice
from duckdb_anon.rewrite.shapes.person_lists import unnested
from duckdb_anon.rewrite.shapes.released import Model

MOST_SETS = 32
"""A query of more grouping sets has no bounds: each set takes two window functions."""


@dataclass(frozen=True)
class Conditions:
    """The WHERE clause taken apart: what a row tells exactly, what each value tells, what is answered in part."""

    exact: list[exp.Expr]
    by_value: list[exp.Expr]
    rest: exp.Expr | None


def stands(select: exp.Select, model: Model) -> bool:
    """Whether a SELECT can stay as it is: it reads exact columns of whole rows only."""
    table = next(item for item in from_items(select) if is_original(item))
    read = columns_of(select, table.alias_or_name)
    touched = any(column in model.part_of or model.is_cast(column) for column in read)
    return not model.weight and not touched and not any(part.counted for part in model.parts)


def rewrite_select(
    select: exp.Select, model: Model, original: TableInfo, bounds: Bounds = "none", outermost: bool = False
) -> dict[int, float]:
    """Rewrite a bound SELECT in place.

    Args:
        select: a SELECT that reads the original in its FROM clause.
        model: what the release says.
        original: the original, for messages.
        bounds: which low and high to append for every output column that is an aggregate and has them.
        outermost: whether it is the query itself, whose DISTINCT and GROUP BY without aggregates list the domain.

    Returns:
        Number of each output column whose low and high were appended, and their confidence: 1 for hard bounds.

    Raises:
        RewriteError: naming the construct that cannot be estimated.
    """
    table = _the_original(select, original)
    alias = table.alias_or_name
    whole = model
    model = unnested(select, model, alias)
    if bounds == "none":
        model = with_own_counts(model.estimated())
    require_columns(select, alias, model, original)
    _require_groups(select, original, outermost)
    if stands(select, model):
        return append_answers(select) if bounds != "none" and _is_generalized(model) else {}
    if bounds == "none":
        model = with_own_slice(model, select, alias)
    mark(select, alias, original)
    add_numbers(select, original, model)
    for node in list(aggregate_nodes(select)):
        formula = as_sums(node, alias, original.types)
        if formula is not None:
            node.replace(_in_place_of(node, formula))
    if select.args.get("distinct") is not None and not select.args.get("group") and lists_domain(select):
        select.set("distinct", None)
        select.set("group", exp.Group(expressions=[copied(e.unalias()) for e in select.expressions]))
    nothing = UnmatchedRows.of(select, table, original)
    others = items_beside(from_items(select), table)
    homes = Homes(alias, model, others)
    joined = JoinedSteps.of(select, list(aggregate_nodes(select)), whole, original, rewrite_select, stands)
    nodes = [node for node in aggregate_nodes(select) if not joined.reads(node)]
    aggregates = [read_aggregate(node) for node in nodes]
    beyond = {id(n) for n, one in zip(nodes, aggregates, strict=True) if nothing is not None and nothing.adds(one)}
    extremes = LikelyExtremes.of(select, nodes, aggregates, groups_of(select))
    _spell_out_values(select, homes, aggregates, [*nodes, *joined.nodes])
    joined.spell_out(homes)
    homes.spell_out(asked_of_counts(model, select, alias) if bounds == "none" else ())
    steps = Steps(homes, shown=columns_of(select, alias))
    steps.conditions = (conditions := _split_where(select, homes)).exact
    if nothing is not None:
        nothing.require_conditions(conditions.exact, conditions.rest, joined.nodes)
    appended: dict[int, float] = {}
    limits = None
    if bounds != "none":
        groups = groups_of(select)
        if steps.spread and not steps.inverted:
            filters = [a.condition for a in aggregates] + joined.filters
            steps.membership = _membership(select, conditions, filters, steps, groups)
        limits = Limits(
            conditions.rest,
            steps,
            groups,
            VarianceTerms(Question(steps, groups, copied(select), tuple(conditions.by_value))),
            permuted(select, steps, groups),
            bounds,
        )
        appended = _append_ends(select, limits, joined, beyond)
    joined.read(steps, conditions.rest, original)
    extremes.read(steps, conditions.rest, original, whole, rewrite_select, stands)
    if nothing is None or conditions.rest is not None or conditions.by_value:
        alone = not any(select.args.get(key) for key in ("group", "joins")) and not joined.nodes
        _filter_rows(
            select, conditions, steps, bool(appended) and not randomized_only(model), alone, nothing is not None
        )
    in_groups = select.args.get("joins") is None and () not in groups_of(select).sets
    for node, aggregate in zip(nodes, aggregates, strict=True):
        matched = nothing.matched(aggregate) if nothing is not None and id(node) in beyond else aggregate
        found = extremes.estimate(node) or estimate(matched, conditions.rest, steps, in_groups)
        if nothing is not None and id(node) in beyond:
            found = nothing.added_to(found, aggregate, conditions.rest, steps)
        node.replace(_in_place_of(node, found))
    steps.likely = rows_that_may(select, conditions.rest, conditions.by_value, steps)
    if limits is None and not extremes.found and not joined.found:
        steps.shown = columns_of(select, alias)
    stand_in(select, table, steps)
    extremes.attach(select)
    appended |= joined.attach(select, bounds != "none")
    if limits is not None:
        limits.attach(select)
    if any(part.signed for part in model.parts):
        drop_unread(select)
    return appended


def _the_original(select: exp.Select, original: TableInfo) -> exp.Table:
    found = [item for item in from_items(select) if is_original(item)]
    if len(found) > 1:
        raise RewriteError(
            f"{original.name} is joined with itself, which cannot be estimated: rows of a release do not say "
            "which belong together"
        )
    table = found[0]
    assert isinstance(table, exp.Table)  # noqa: S101 -- checked by is_original
    for position, join in enumerate(select.args.get("joins") or []):
        side = (join.side or "").upper()
        optional = join.this is table and side == "LEFT" and not of_columns_or_rows(select, table.alias_or_name)
        optional |= side == "FULL"
        optional |= side == "RIGHT" and _place(select, table) <= position
        if optional or (join.this is table and (join.kind or "").upper() in ("SEMI", "ANTI")):
            raise RewriteError(
                f"{original.name} stands on the optional side of {_written(join)}; put it on the side that keeps its "
                f"rows, or ask of its columns, as count({table.alias_or_name}.{original.columns[0][0]}) does: "
                "constants are there beside rows that found none, too"
            )
    return table


def _written(join: exp.Join) -> str:
    on = join.args.get("on")
    kind = f"{join.side or join.kind} JOIN"
    return f"{kind} ... ON {plain(on)}" if on is not None else kind


def lists_domain(select: exp.Select) -> bool:
    """Whether a SELECT lists values instead of measuring anything."""
    listing = select.args.get("group") or select.args.get("distinct")
    return bool(listing) and not any(True for _ in aggregate_nodes(select))


def _require_groups(select: exp.Select, original: TableInfo, outermost: bool) -> None:
    """Raise for a SELECT of rows; one that lists a domain is written as GROUP BY."""
    if any(True for _ in aggregate_nodes(select)):
        return
    if lists_domain(select) and not any(one.find(exp.Window) for one in select.expressions):
        if outermost:
            return
        raise RewriteError(
            f"which groups of {original.name} exist is not certain from the release, so what is done with a list "
            "of them cannot be answered; ask for the list itself, or for count(*) of each"
        )
    raise RewriteError(
        f"a SELECT of rows of {original.name} without an aggregate cannot be answered from the release "
        "(single rows are what it hides); ask for count, sum, avg, min or max, or SELECT DISTINCT for a column's domain"
        f"{misspelt(select)}"
    )


def _place(select: exp.Select, table: exp.Table) -> int:
    """Number of the FROM item: 0 for the first, k for the k-th join."""
    return next(i for i, item in enumerate(from_items(select)) if item is table)


def _spell_out_values(select: exp.Select, homes: Homes, aggregates: list[Aggregate], nodes: list[exp.Expr]) -> None:
    """Decide which columns the final query sees value by value."""
    inside = columns_inside(nodes)
    for key in ("group", "having", "order", "qualify"):
        clause = select.args.get(key)
        if clause is not None:
            homes.spell_out(columns_outside(clause, homes.alias, inside))
    for projection in select.expressions:
        homes.spell_out(columns_outside(projection, homes.alias, inside))
    for join in select.args.get("joins") or []:
        if join.args.get("on") is not None:
            homes.spell_out(homes.columns(join.args["on"]))
    where = select.args.get("where")
    pieces = [where.this] if where else []
    for aggregate in aggregates:
        pieces += [aggregate.condition] + ([aggregate.value] if aggregate.value is not None else [])
        if aggregate.kind in ("min", "max") and aggregate.value is not None and homes.of(aggregate.value) is None:
            homes.spell_out(homes.columns(aggregate.value))
    while any([homes.spell_out(homes.columns(one)) for piece in pieces for one in list(homes.mixed(piece))]):
        continue


def _split_where(select: exp.Select, homes: Homes) -> Conditions:
    where = select.args.get("where")
    found = Conditions([], [], None)
    rest = []
    for condition in split(where.this) if where else []:
        home = homes.of(condition)
        if home == EXACT:
            found.exact.append(condition)
        elif home == BY_VALUE:
            found.by_value.append(condition)
        else:
            rest.append(condition)
    return Conditions(found.exact, found.by_value, every(rest) if rest else None)


def _membership(
    select: exp.Select, conditions: Conditions, filters: list[exp.Expr], steps: Steps, groups: QueryGroups
) -> Membership | None:
    """Read what makes a value belong to a group; None where groups are many or other tables have a say."""
    partly = ([conditions.rest] if conditions.rest is not None else []) + filters
    if select.args.get("joins") or len(groups.sets) > MOST_SETS:
        return None
    if any(steps.homes.of(piece) == BY_VALUE for one in partly for piece in _leaves(one, steps.homes)):
        return None
    asked = [*groups.keys, *conditions.by_value]
    if any(steps.homes.columns(query) for one in asked for query in all_of(one, exp.Query)):
        return None
    if any(one.find(exp.Window) for one in asked):  # DuckDB reads no window inside another one, even in a subquery
        return None
    sets = tuple(tuple(steps.bare(key) or key for key in keys) for keys in groups.sets)
    return Membership(sets, steps.bare(every(conditions.by_value)) or truth(True), intervals_of(steps.joined))


def _leaves(condition: exp.Expr, homes: Homes) -> Iterator[exp.Expr]:
    condition = normal(condition, homes.of).unnest()
    if homes.of(condition) is None and isinstance(condition, (exp.And, exp.Or)):
        yield from _leaves(condition.left, homes)
        yield from _leaves(condition.right, homes)
    else:
        yield condition


def _filter_rows(
    select: exp.Select, conditions: Conditions, steps: Steps, bounded: bool, alone: bool, filled: bool
) -> None:
    """Keep the conditions on values and drop rows that stand for nothing, so that no empty group appears."""
    kept = [copied(c) for c in judge_inside(select, conditions.by_value, steps)]
    if conditions.rest is not None and alone:
        pass  # they add nothing to totals, and there is no group
    elif conditions.rest is not None:
        test = not_zero(mass(conditions.rest, steps), steps)
        kept.append(some([test, possible(conditions.rest, steps)]) if bounded else test)
    elif steps.membership is None and any(part.signed or isinstance(part, NodePart) for part in steps.joined):
        kept.append(tree("_weight is distinct from 0" if filled else "_weight <> 0"))
    select.set("where", exp.Where(this=every(kept)) if kept else None)


def _is_generalized(model: Model) -> bool:
    """Whether cells were coarsened or randomized and nothing else was done, so that exact columns are true."""
    generalized = model.bounded and not any(part.signed for part in model.parts)
    return bool(model.parts) and model.complete and not model.edged and (generalized or randomized_only(model))


def _append_ends(select: exp.Select, limits: Limits, joined: JoinedSteps, beyond: set[int]) -> dict[int, float]:
    found: dict[int, float] = {}
    ends: list[exp.Expr] = []
    for number, projection in enumerate(select.expressions):
        made_of = projection.unalias()
        apart = any(joined.reads(node) or id(node) in beyond for node in made_of.walk())
        both = None if apart or isinstance(made_of, exp.Grouping) else limits.of(made_of)
        if both is not None:
            found[number] = both.confidence
            name = projection.alias_or_name
            ends += [
                exp.Alias(this=taken(end), alias=exp.to_identifier(f"{name}_{which}", quoted=True))
                for end, which in ((both.low, "low"), (both.high, "high"))
            ]
    for end in ends:
        select.append("expressions", end)
    return found


def _in_place_of(node: exp.Expr, found: exp.Expr) -> exp.Expr:
    """An estimate where its aggregate stood, in parentheses where it is an operation that is part of an expression."""
    alone = node.parent is None or isinstance(node.parent, (exp.Alias, exp.Select, exp.Ordered, exp.Paren))
    call = isinstance(found, (exp.Func, exp.Filter, exp.Column)) and not isinstance(found, exp.Binary)
    return taken(found) if alone or call else exp.Paren(this=taken(found))
