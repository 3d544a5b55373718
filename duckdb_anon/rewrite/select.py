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
from duckdb_anon.rewrite.aggregates import Aggregate, estimate, mass, possible, read_aggregate
from duckdb_anon.rewrite.blocks import Question
from duckdb_anon.rewrite.early import Early, Membership, append_step
from duckdb_anon.rewrite.ends import HARD, Limits
from duckdb_anon.rewrite.groups import Groups, groups_of
from duckdb_anon.rewrite.lists import NodePart
from duckdb_anon.rewrite.logic import EXACT, LATE, normal, split
from duckdb_anon.rewrite.model import Model
from duckdb_anon.rewrite.parse import is_original, plain
from duckdb_anon.rewrite.permuted import permuted
from duckdb_anon.rewrite.persons import unnested
from duckdb_anon.rewrite.schema import Bounds, TableInfo
from duckdb_anon.rewrite.squares import Squares
from duckdb_anon.rewrite.template import copied, every, some, taken, tree, truth
from duckdb_anon.rewrite.uncertainty import randomized_only
from duckdb_anon.rewrite.units import Units

MOST_SETS = 32
"""A query of more grouping sets has no bounds: each set takes two window functions."""


@dataclass(frozen=True)
class Conditions:
    """The WHERE clause taken apart: answered early, answered late, and answered in part."""

    early: list[exp.Expr]
    late: list[exp.Expr]
    rest: exp.Expr | None


def reads_original(select: exp.Select) -> bool:
    """Whether the original stands in the FROM clause of this SELECT itself."""
    return any(is_original(item) for item in _from_items(select))


def rewrite_select(select: exp.Select, model: Model, original: TableInfo, bounds: Bounds = "none") -> dict[int, float]:
    """Rewrite a bound SELECT in place.

    Args:
        select: a SELECT that reads the original in its FROM clause.
        model: what the release says.
        original: the original, for messages.
        bounds: which low and high to append for every output column that is an aggregate and has them.

    Returns:
        Number of each output column whose low and high were appended, and their confidence: 1 for hard bounds.

    Raises:
        RewriteError: naming the construct that cannot be estimated.
    """
    table = _the_original(select, original)
    alias = table.alias_or_name
    model = unnested(select, model, alias)
    for column in _columns_of(select, alias):
        model.require(column, original)
    if (
        not model.weight
        and not any(c in model.part_of for c in _columns_of(select, alias))
        and not any(p.counted for p in model.parts)
    ):
        return _append_answers(select) if bounds != "none" and _is_generalized(model) else {}
    others = [item.alias_or_name for item in _from_items(select) if item is not table]
    units = Units(alias, model, others)
    nodes = list(_aggregate_nodes(select))
    if not nodes:
        raise RewriteError(
            f"a SELECT of rows of {original.name} without an aggregate cannot be answered from the release "
            "(single rows are what it hides); ask for count, sum, avg, min or max"
        )
    aggregates = [read_aggregate(node) for node in nodes]
    _settle_late(select, units, aggregates, nodes)
    early = Early(units)
    conditions = _split_where(select, units)
    early.conditions = conditions.early
    appended: dict[int, float] = {}
    limits = None
    if bounds != "none":
        groups = groups_of(select)
        if early.spread and not early.inverted:
            early.membership = _membership(select, conditions, aggregates, early, groups)
        limits = Limits(
            conditions.rest,
            early,
            groups,
            Squares(Question(early, groups, copied(select), tuple(conditions.late))),
            permuted(select, early, groups),
            bounds,
        )
        appended = _append_ends(select, limits)
    _filter_rows(select, conditions, early, bool(appended) and not randomized_only(model))
    for node, aggregate in zip(nodes, aggregates, strict=True):
        node.replace(_in_place_of(node, estimate(aggregate, conditions.rest, early)))
    _replace_table(select, table, early)
    if limits is not None:
        limits.attach(select)
    return appended


def _the_original(select: exp.Select, original: TableInfo) -> exp.Table:
    found = [item for item in _from_items(select) if is_original(item)]
    if len(found) > 1:
        raise RewriteError(
            f"{original.name} is joined with itself, which cannot be estimated: rows of a release do not say "
            "which belong together"
        )
    table = found[0]
    assert isinstance(table, exp.Table)  # noqa: S101 -- checked by is_original
    for position, join in enumerate(select.args.get("joins") or []):
        side = (join.side or "").upper()
        optional = join.this is table and side in ("LEFT", "FULL")
        optional |= side == "FULL"
        optional |= side == "RIGHT" and _place(select, table) <= position
        if optional or (join.this is table and (join.kind or "").upper() in ("SEMI", "ANTI")):
            raise RewriteError(
                f"{original.name} stands on the optional side of {plain(join)}; put it on the side that keeps its rows"
            )
    return table


def _place(select: exp.Select, table: exp.Table) -> int:
    """Number of the FROM item: 0 for the first, k for the k-th join."""
    return next(i for i, item in enumerate(_from_items(select)) if item is table)


def _from_items(select: exp.Select) -> list[exp.Expr]:
    source = select.args.get("from_")
    items = [source.this] if source else []
    return items + [join.this for join in select.args.get("joins") or []]


def _columns_of(node: exp.Expr, alias: str) -> set[str]:
    return {c.name.lower() for c in node.find_all(exp.Column) if c.table == alias}


def _aggregate_nodes(select: exp.Select) -> Iterator[exp.Expr]:
    """Aggregates of this SELECT, with their FILTER; those of subqueries are not its own."""
    places = list(select.expressions)
    places += [select.args[key] for key in ("having", "order", "qualify") if select.args.get(key)]
    for place in places:
        yield from _outermost(place)


def _outermost(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        # the function over a window works on the groups; only aggregates inside it are of the rows
        for part in node.iter_expressions():
            for inner in part.iter_expressions() if part is node.this else (part,):
                yield from _outermost(inner)
        return
    if isinstance(node, exp.Filter) or (isinstance(node, exp.AggFunc) and not isinstance(node, exp.Grouping)):
        yield node
        return
    for child in node.iter_expressions():
        yield from _outermost(child)


def _settle_late(select: exp.Select, units: Units, aggregates: list[Aggregate], nodes: list[exp.Expr]) -> None:
    """Decide which columns the final query sees value by value."""
    inside = {id(column) for node in nodes for column in node.find_all(exp.Column)}
    for key in ("group", "having", "order", "qualify"):
        clause = select.args.get(key)
        if clause is not None:
            units.delay(_outside(clause, units.alias, inside))
    for projection in select.expressions:
        units.delay(_outside(projection, units.alias, inside))
    for join in select.args.get("joins") or []:
        if join.args.get("on") is not None:
            units.delay(units.columns(join.args["on"]))
    where = select.args.get("where")
    pieces = [where.this] if where else []
    for aggregate in aggregates:
        pieces += [aggregate.condition] + ([aggregate.value] if aggregate.value is not None else [])
        if aggregate.kind in ("min", "max") and aggregate.value is not None and units.of(aggregate.value) is None:
            units.delay(units.columns(aggregate.value))
    while any([units.delay(units.columns(one)) for piece in pieces for one in list(units.mixed(piece))]):
        continue


def _outside(clause: exp.Expr, alias: str, inside: set[int]) -> set[str]:
    columns = (c for c in clause.find_all(exp.Column) if c.table == alias and id(c) not in inside)
    return {c.name.lower() for c in columns}


def _split_where(select: exp.Select, units: Units) -> Conditions:
    where = select.args.get("where")
    found = Conditions([], [], None)
    rest = []
    for condition in split(where.this) if where else []:
        unit = units.of(condition)
        if unit == EXACT:
            found.early.append(condition)
        elif unit == LATE:
            found.late.append(condition)
        else:
            rest.append(condition)
    whole = every(rest) if rest else None
    return Conditions(found.early, found.late, whole)


def _membership(
    select: exp.Select, conditions: Conditions, aggregates: list[Aggregate], early: Early, groups: Groups
) -> Membership | None:
    """Read what makes a value belong to a group; None where groups are many or other tables have a say."""
    partly = ([conditions.rest] if conditions.rest is not None else []) + [a.condition for a in aggregates]
    if select.args.get("joins") or len(groups.sets) > MOST_SETS:
        return None
    if any(early.units.of(piece) == LATE for one in partly for piece in _leaves(one, early.units)):
        return None
    if any(early.units.columns(query) for one in [*groups.keys, *conditions.late] for query in one.find_all(exp.Query)):
        return None
    sets = tuple(tuple(early.bare(key) or key for key in keys) for keys in groups.sets)
    return Membership(sets, early.bare(every(conditions.late)) or truth(True))


def _leaves(condition: exp.Expr, units: Units) -> Iterator[exp.Expr]:
    condition = normal(condition, units.of).unnest()
    if units.of(condition) is None and isinstance(condition, (exp.And, exp.Or)):
        yield from _leaves(condition.left, units)
        yield from _leaves(condition.right, units)
    else:
        yield condition


def _filter_rows(select: exp.Select, conditions: Conditions, early: Early, bounded: bool) -> None:
    """Keep the late conditions and drop rows that stand for nothing, so that no empty group appears."""
    kept = [copied(c) for c in conditions.late]
    if conditions.rest is not None:
        test = tree("{mass} <> 0", mass=mass(conditions.rest, early))
        kept.append(some([test, possible(conditions.rest, early)]) if bounded else test)
    elif early.membership is None and any(part.signed or isinstance(part, NodePart) for part in early.joined):
        kept.append(tree("_weight <> 0"))
    select.set("where", exp.Where(this=every(kept)) if kept else None)


def _is_generalized(model: Model) -> bool:
    """Whether cells were coarsened or randomized and nothing else was done, so that exact columns are true."""
    generalized = model.bounded and not any(part.signed for part in model.parts)
    return bool(model.parts) and model.complete and (generalized or randomized_only(model))


def _append_answers(select: exp.Select) -> dict[int, float]:
    """Bounds of a query on exact columns: both are its answer."""
    found = []
    for number, projection in enumerate(list(select.expressions)):
        made_of = projection.unalias()
        if isinstance(made_of, (exp.AggFunc, exp.Filter)) and not isinstance(made_of, exp.Grouping):
            found.append(number)
            for end in ("low", "high"):
                name = f"{projection.alias_or_name}_{end}"
                select.append(
                    "expressions", exp.Alias(this=copied(made_of), alias=exp.to_identifier(name, quoted=True))
                )
    return dict.fromkeys(found, HARD)


def _append_ends(select: exp.Select, limits: Limits) -> dict[int, float]:
    found: dict[int, float] = {}
    ends: list[exp.Expr] = []
    for number, projection in enumerate(select.expressions):
        made_of = projection.unalias()
        both = None if isinstance(made_of, exp.Grouping) else limits.of(made_of)
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


def _replace_table(select: exp.Select, table: exp.Table, early: Early) -> None:
    ctes = early.ctes()
    alias = exp.TableAlias(this=exp.to_identifier(early.units.alias, quoted=True))
    stand_in = exp.Table(this=taken(ctes[-1][0]), alias=alias, joins=table.args.get("joins"))
    table.replace(stand_in)
    if isinstance(select.parent, exp.SetOperation):
        select.replace(wrapped := exp.Subquery(this=exp.Select()))
        wrapped.set("this", select)
    for step, query in ctes:
        append_step(select, step, query)


def _in_place_of(node: exp.Expr, found: exp.Expr) -> exp.Expr:
    """An estimate where its aggregate stood, in parentheses where it is part of an expression."""
    alone = node.parent is None or isinstance(node.parent, (exp.Alias, exp.Select, exp.Ordered))
    return taken(found) if alone else exp.Paren(this=taken(found))
