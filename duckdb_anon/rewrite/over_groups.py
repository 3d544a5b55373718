"""A SELECT that aggregates groups of the original: its functions of which groups exist, with bounds.

Reads the shape `SELECT ... FROM (SELECT ... FROM original ... GROUP BY ...)`; what is one grouping in truth was merged
before (`query.nested`). Anything else between the two (joins, several derived tables) is refused by name.
"""

from __future__ import annotations

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.rewrite.existence import HARD, Existing, Rewrite, Triple, function_of_groups, unlisted
from duckdb_anon.rewrite.query.aggregate_nodes import without_filter
from duckdb_anon.rewrite.query.grouping_sets import groups_of
from duckdb_anon.rewrite.query.parse import plain, reads_original
from duckdb_anon.rewrite.query.refusals import is_aggregate
from duckdb_anon.rewrite.query.single_rows import picks_first
from duckdb_anon.rewrite.query.template import copied, tree
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.released import Model


def groups_below(outer: exp.Select) -> exp.Subquery | None:
    """The groups of the original a SELECT aggregates; None where it does not.

    Raises:
        RewriteError: it aggregates groups joined with something else.
    """
    if not _aggregates(outer):
        return None
    source = outer.args.get("from_")
    items = ([source.this] if source else []) + [join.this for join in outer.args.get("joins") or []]
    derived = [one for one in items if isinstance(one, exp.Subquery) and _groups_original(one.this)]
    if not derived:
        return None
    if len(items) > 1 or not isinstance(derived[0].this, exp.Select):
        raise RewriteError(
            "the query aggregates groups that it joins or unites with something else, which depends on which groups "
            "exist; aggregate the rows before joining, or ask for the groups"
        )
    return derived[0]


def rewrite_over_groups(
    outer: exp.Select, groups: exp.Subquery, model: Model, rewrite: Rewrite, bounded: bool
) -> dict[int, float]:
    """Rewrite such a SELECT and its groups in place.

    Args:
        outer: the SELECT.
        groups: the groups it reads.
        model: what the release says.
        rewrite: rewrites the groups.
        bounded: whether to append low and high of its measures.

    Returns:
        Number of each output column whose low and high were appended, and their confidence.

    Raises:
        RewriteError: a function of which groups exist that has no bounds.
    """
    inner = groups.this
    assert isinstance(inner, exp.Select)  # noqa: S101 -- `groups_below` made sure
    text = plain(next(one for one in outer.expressions if _has_aggregate(one)).unalias()) if _any(outer) else "GROUP BY"
    before = copied(inner)
    most = _limit(inner, outer, text)
    _grouped(inner)
    counts = frozenset(e.alias_or_name for e in inner.expressions if isinstance(e.unalias(), exp.Count))
    guard = unlisted(inner, model)
    existing = Existing(inner, exp.to_identifier(groups.alias, quoted=True), text, guard=guard)
    existing.list(rewrite)
    if existing.as_it_stands:
        inner.replace(before)
        return {}
    _refuse_rows_of(before, text)
    _require_keys(outer, existing)
    where = [outer.args["where"].this] if outer.args.get("where") else []
    made: dict[exp.Expr, Triple] = {}
    for place in [*outer.expressions, *(outer.args[k] for k in ("having", "order") if outer.args.get(k))]:
        for node in _over_groups(place):
            if node not in made:
                function, among = without_filter(node)
                found = function_of_groups(function, existing, where if among is None else [*where, among], counts)
                made[copied(node)] = found if most is None else Triple(*(_at_most(x, most) for x in _ends(found)))
    appended: dict[int, float] = {}
    ends: list[exp.Expr] = []
    for place, projection in enumerate(outer.expressions):
        both = made.get(projection.unalias())
        if both is not None and bounded:
            appended[place] = HARD
            for end, which in ((both.low, "low"), (both.high, "high")):
                label = exp.to_identifier(f"{projection.alias_or_name}_{which}", quoted=True)
                ends.append(exp.Alias(this=copied(end), alias=label))
    for place in [*outer.expressions, *(outer.args[k] for k in ("having", "order") if outer.args.get(k))]:
        for node in _over_groups(place):
            node.replace(copied(made[node].middle))
    for end in ends:
        outer.append("expressions", end)
    outer.set("where", exp.Where(this=existing.chance(where).high))
    return appended


def _over_groups(place: exp.Expr) -> list[exp.Expr]:
    """The aggregates of a clause, each with its FILTER."""
    found = [one for one in place.walk() if is_aggregate(one)]
    return [one.parent if isinstance(one.parent, exp.Filter) else one for one in found]


def _refuse_rows_of(inner: exp.Select, text: str) -> None:
    """Raise where what is aggregated is no list of groups: the first ones of DISTINCT ON, or one row for all."""
    if picks_first(inner):
        raise RewriteError(f"{text} depends on which groups come first; leave DISTINCT ON of the groups out")
    if inner.args.get("distinct") is None and not groups_of(inner).keys:
        raise RewriteError(
            f"{text} aggregates one row, which is there even where no row of the original is; ask for what it shows"
        )


def _ends(found: Triple) -> tuple[exp.Expr, exp.Expr, exp.Expr]:
    return found.middle, found.low, found.high


def _at_most(x: exp.Expr, most: exp.Expr) -> exp.Expr:
    return tree("least({x}, {most})", x=x, most=most)


def _limit(inner: exp.Select, outer: exp.Select, text: str) -> exp.Expr | None:
    """The LIMIT of the groups, which caps their number and nothing else that is answered."""
    limit: exp.Expr | None = inner.args.get("limit")
    inner.set("order", None)
    if limit is None and not inner.args.get("offset"):
        return None
    aggregates = [one for e in outer.expressions for one in e.walk() if is_aggregate(one)]
    most: exp.Expr | None = limit.expression if limit is not None else None
    if (
        most is None
        or not isinstance(most, exp.Literal)
        or limit is None
        or limit.args.get("limit_options")  # a share of the groups
        or inner.args.get("offset")
        or outer.args.get("where")
        or outer.args.get("group")
        or any(type(a) is not exp.Count or isinstance(a.parent, exp.Filter) for a in aggregates)
    ):
        raise RewriteError(f"{text} depends on which groups come first; leave LIMIT and OFFSET of the groups out")
    inner.set("limit", None)
    return copied(most)


def _grouped(inner: exp.Select) -> None:
    """Write DISTINCT as GROUP BY."""
    if inner.args.get("distinct") is not None and not inner.args.get("group"):
        inner.set("distinct", None)
        inner.set("group", exp.Group(expressions=[copied(e.unalias()) for e in inner.expressions]))


def _require_keys(outer: exp.Select, existing: Existing) -> None:
    group = outer.args.get("group")
    for key in group.expressions if group else []:
        if isinstance(key, (exp.Rollup, exp.Cube, exp.GroupingSets)) or any(
            existing.measure(c.name) for c in all_of(key, exp.Column)
        ):
            raise RewriteError(
                f"grouping by {plain(key)} depends on the exact size of every group, which a release does not tell; "
                "ask how many groups are in a range: WHERE n BETWEEN ... AND ..."
            )
    if outer.args.get("qualify") or any(one.find(exp.Window) for one in outer.expressions):
        raise RewriteError("window functions over functions of which groups exist cannot be answered; leave them out")


def _groups_original(query: exp.Expr) -> bool:
    if isinstance(query, exp.Subquery):
        return _groups_original(query.this)
    if isinstance(query, exp.SetOperation):
        return any(_groups_original(one) for one in (query.left, query.right))
    if not isinstance(query, exp.Select):
        return False
    if reads_original(query):
        return bool(query.args.get("group") or query.args.get("distinct") or _any(query))
    source = query.args.get("from_")
    items = ([source.this] if source else []) + [join.this for join in query.args.get("joins") or []]
    return any(isinstance(one, exp.Subquery) and _groups_original(one) for one in items)


def _aggregates(select: exp.Select) -> bool:
    return bool(select.args.get("group") or select.args.get("distinct")) or _any(select)


def _any(select: exp.Select) -> bool:
    return any(_has_aggregate(one) for one in select.expressions)


def _has_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, (exp.Query, exp.Window)):
        return False
    return is_aggregate(node) or any(_has_aggregate(one) for one in node.iter_expressions())
