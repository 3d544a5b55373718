"""A pass over an estimate: groups of fewer than half a record are left out, and the others add up to all records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from duckdb_anon.model.errors import when_run
from duckdb_anon.rewrite.query.trees import QueryGroups, all_of, tree


@dataclass(frozen=True)
class Estimated:
    """The estimate of an aggregate in a tree, and whether the estimates of groups add up to that of all of them."""

    node: exp.Expr
    additive: bool


NO_GROUP = (
    "most records are in groups with an estimated count below half a record, so the release does not say which groups "
    "exist; group by fewer columns"
)


def keep_likely_groups(
    select: exp.Select, groups: QueryGroups, estimates: Sequence[Estimated], weight: exp.Expr, alias: str
) -> None:
    """Leave out groups of fewer than half a record, in place, and let those that stay add up to all records.

    SELECT sex, sum(_weight) FROM w GROUP BY sex    becomes
    SELECT g._k0, g._a0 * g._scale FROM (
      SELECT *, <all records / records of groups that stay> AS _scale, _n >= 0.5 AS _stays
      FROM (SELECT sex AS _k0, sum(_weight) AS _a0, sum(_weight) AS _n FROM w GROUP BY 1)) AS g
    WHERE g._stays

    HAVING, windows, ORDER BY and LIMIT hold of the groups that stay.
    """
    several = len(groups.sets) > 1
    clauses = [select.args[key] for key in ("having", "qualify", "order", "distinct") if select.args.get(key)]
    # the nodes themselves are moved, as their subqueries are still to be rewritten
    named: dict[str, exp.Expr] = {f"_k{number}": key for number, key in enumerate(groups.keys)}
    marks = dict.fromkeys(node for c in [*select.expressions, *clauses] for node in all_of(c, exp.Grouping))
    named |= {f"_g{number}": node for number, node in enumerate(marks)}
    for number, estimate in enumerate(estimates):
        read: exp.Expr = exp.column(f"_a{number}", table=alias, quoted=True)
        if estimate.additive:
            scaled = exp.Mul(this=read, expression=exp.column("_scale", table=alias, quoted=True))
            read = exp.Paren(this=scaled)
        estimate.node.replace(read)
        named[f"_a{number}"] = estimate.node
    # larger ones first: a key may be a part of another
    keys = [name for name in named if name.startswith(("_k", "_g"))]
    for name in sorted(keys, key=lambda name: -sum(1 for _ in named[name].walk())):
        _read_instead(select, clauses, named[name], exp.column(name, table=alias, quoted=True))
    group, having = select.args["group"], select.args.get("having")
    if several:
        named |= {name: key.copy() for name, key in named.items() if name.startswith("_k")}
    else:
        group = exp.Group(expressions=[exp.Literal.number(number + 1) for number, _ in enumerate(groups.keys)])
    named["_n"] = tree("sum({w})", w=weight)
    if several:
        named["_level"] = groups.level()
    level = exp.column("_level") if several else None
    scale, likely = _scale_and_likely(exp.column("_n"), level)
    if level is not None and any(not keys for keys in groups.sets):  # the total of all records is a row, however few
        total = exp.EQ(this=level.copy(), expression=exp.Literal.number(groups.level_of(())))
        likely = exp.Or(this=likely, expression=total)
    inner = exp.Select(
        expressions=[exp.Alias(this=node, alias=exp.to_identifier(name)) for name, node in named.items()],
        group=group,
        **{part: select.args.get(part) for part in ("from_", "joins", "where")},
    )
    # windows read columns of a step of their own, as Spark has no QUALIFY
    counted = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("_counted")))
    judged = exp.Select(
        expressions=[exp.Star(), exp.alias_(scale, "_scale"), exp.alias_(likely, "_stays")],
        from_=exp.From(this=counted),
    )
    source = exp.Subquery(this=judged, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    select.set("from_", exp.From(this=source))
    for part in ("joins", "group", "having"):
        select.set(part, None)
    stays: exp.Expr = exp.column("_stays", table=alias, quoted=True)
    select.set("where", exp.Where(this=stays if having is None else exp.and_(stays, having.this, copy=False)))


def _scale_and_likely(rows: exp.Expr, level: exp.Expr | None) -> tuple[exp.Expr, exp.Expr]:
    """What estimates of groups that stay are multiplied by, level by level, and whether a group stays.

    Where most records are in groups of fewer than half a record, to spread them would only make others too large.
    """

    def over(function: str, parts: Sequence[exp.Expr] = ()) -> exp.Expr:
        return exp.Window(this=tree(function, n=rows), partition_by=[part.copy() for part in parts] or None)

    parts, stays = [] if level is None else [level], "sum(case when {n} >= 0.5 then {n} else 0 end)"
    scale = tree(
        "case when {kept} >= {all} / 2 then {all} / {kept} else 1 end",
        kept=over(stays, parts),
        all=over("sum({n})", parts),
    )
    likely = tree(
        "case when {kept} < {all} / 2 and {all} >= 0.5 then error({why}) else {n} >= 0.5 end",
        n=rows, kept=over(stays), all=over("sum({n})"), why=exp.Literal.string(when_run(NO_GROUP)),
    )  # fmt: skip
    return scale, likely


def _read_instead(select: exp.Select, clauses: Sequence[exp.Expr], node: exp.Expr, column: exp.Expr) -> None:
    """Read a column of the groups wherever a SELECT has an expression of them, in place."""
    for projection in [*select.expressions, *clauses]:
        for found in [other for other in all_of(projection, type(node)) if other == node]:
            if found.find_ancestor(exp.Select) is None:
                continue
            made: exp.Expr = column.copy()
            if found is projection:  # an output column keeps its name
                made = exp.alias_(made, found.alias_or_name, quoted=True)
            found.replace(made)
