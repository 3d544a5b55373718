"""The steps of a rewritten query as CTEs, written once all is known that its final query needs of them."""

from __future__ import annotations

from sqlglot import exp

from duckdb_anon.rewrite.estimate.combinations import COMBINATIONS, combined
from duckdb_anon.rewrite.estimate.in_buckets import in_buckets
from duckdb_anon.rewrite.estimate.membership import MEMBERS, members
from duckdb_anon.rewrite.estimate.row_answers import (
    Place,
    answered,
    as_rows,
    ends_read,
    place_of,
    shares_name,
    told_name,
    total_of,
)
from duckdb_anon.rewrite.estimate.steps import Steps
from duckdb_anon.rewrite.estimate.value_steps import SPREAD, Step, append_step, value_steps
from duckdb_anon.rewrite.query.template import column, name, number, own, select, taken, tree
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.inverted import inversions
from duckdb_anon.rewrite.shapes.parts import ROW, Part, Request, aliased, labelled, same

BOXES = name("box_ends")
SHARES = name("shares")
ROWS = name("eligible")


def stand_in(select: exp.Select, table: exp.Table, steps: Steps) -> None:
    """Let the last step stand in for the original, and put the steps before the query.

    Args:
        select: the query.
        table: the original in its FROM clause.
        steps: what it needs.
    """
    made = _ctes(steps)
    alias = exp.TableAlias(this=exp.to_identifier(steps.homes.alias, quoted=True))
    table.replace(exp.Table(this=taken(made[-1][0]), alias=alias, joins=table.args.get("joins")))
    if isinstance(select.parent, exp.SetOperation):
        select.replace(wrapped := exp.Subquery(this=exp.Select()))
        wrapped.set("this", select)
    for step, query in made:
        append_step(select, step, query)


def _ctes(steps: Steps) -> list[Step]:
    """The CTEs in order; the last one stands in for the original."""
    if steps.inverted:
        steps.column("sum", number(1))  # how many rows a true value is estimated to have, so that it is not lost
    buckets = in_buckets(steps)
    made: list[Step] = []
    for part in steps.model.parts:
        asked = steps.requests.get(part.name)
        if asked or part in steps.spread:
            made += [step for step in part.steps() if step[0] not in [known for known, _ in made]]
        if asked and buckets is None:
            made += _answers(steps, part, asked)
    made += [(ROWS, buckets)] if buckets is not None else _rows(steps, [step for step, _ in made])
    made += _inversions(steps)
    if steps.joined:
        shown = steps.homes.by_value & steps.shown
        columns = {part.name: sorted(shown & set(part.columns)) for part in steps.joined}
        made += value_steps(steps.joined, columns, made[-1], steps.membership is not None, steps.inside)
    if steps.membership is not None:
        made.append((MEMBERS, members(steps.membership, SPREAD)))
    return made


def _inversions(steps: Steps) -> list[Step]:
    """One CTE a randomized column, each reading the one before."""
    keys = [column(c).this for c in sorted(steps.homes.by_value) if c in steps.model.exact]
    keys += [name(label) for (kind, _), label in steps.columns.items() if kind == "key"]
    numbers = [name(label) for (kind, _), label in steps.columns.items() if kind in ("sum", "min", "max")]
    squares = [name(label) for (kind, _), label in steps.columns.items() if kind == "inverted square"]
    return inversions(steps.inverted, ROWS, keys, numbers, steps.columns.get(("sum", number(1))), squares)


def _answers(steps: Steps, part: Part, asked: dict[Request, str]) -> list[Step]:
    """The steps that rows join for what is asked of a part; none where a row tells it all."""
    of_row = {request: label for request, label in asked.items() if steps.of_row(part, request, label) is not None}
    others = {request: label for request, label in asked.items() if request not in of_row}
    made: list[Step] = []
    if others:
        made.append((shares_name(part), part.shares(list(others), list(others.values()))))
    told = part.told(list(of_row), list(of_row.values())) if of_row else None
    if told is not None:
        made.append((told_name(part), told))
    return made


def _rows(steps: Steps, made_before: list[exp.Identifier]) -> list[Step]:
    summed = steps.summed
    by_value = sorted(c for c in steps.homes.by_value if c in steps.model.exact)
    keys = [tree("{made_of} as {c}", made_of=steps.model.exact[c], c=c) for c in by_value]
    keys += steps.cells
    functions = {"min": "min({x})", "max": "max({x})", "key": "{x}"}
    columns: list[exp.Expr] = []
    for (kind, made_of), label in steps.columns.items():
        form = functions.get(kind, "") if summed else "{x}"
        of_rows = tree(form, x=made_of) if form else total_of(made_of, steps.model.parts, steps.requests)
        columns.append(labelled(of_rows, label))
    made: list[Step] = []
    source: exp.Expr = aliased(steps.model.release, ROW)
    told: list[exp.Join] = []
    ends: list[exp.Expr] = []
    answers: dict[Place, tuple[exp.Expr, str]] = {}
    joins: list[exp.Join] = []
    for part in steps.model.parts:
        requests = steps.requests.get(part.name, {})
        found = {
            (shares_name(part).this, name(label).this): (answer, f"{label}_of_{part.name}")
            for request, label in requests.items()
            if (answer := steps.of_row(part, request, label)) is not None
        }
        if found:
            ends += ends_read(part, part.key, [answer for answer, _ in found.values()])
            if told_name(part) in made_before:
                told.append(exp.Join(this=exp.Table(this=told_name(part)), kind="CROSS"))
        if len(found) < len(requests):
            shares = shares_name(part)
            on = same(part.key, tree("{shares}._cell", shares=shares))
            joins.append(exp.Join(this=exp.Table(this=shares), side="LEFT", on=on))
        answers |= found
    if ends:
        made.append((BOXES, select("select *, {ends} from {release}", ends=ends, release=source)))
        source = as_rows(BOXES)
    conditions, asked = steps.row_conditions, steps.asked
    rows_alone = by_value or joins or ends or steps.model.weight is not None
    totals = None if rows_alone else combined(asked, steps.requests, steps.spread, steps.columns, conditions)
    if totals is not None:
        made.append((COMBINATIONS, totals.totals))
        source, conditions, summed = as_rows(COMBINATIONS), [], summed and not totals.apart
        columns = [
            labelled(tree("sum({x})" if summed else "{x}", x=totals.columns[key]), label)
            for key, label in steps.columns.items()
        ]
        answers = {place: one for place, one in answers.items() if place not in totals.weighed}
    used = [place_of(c) for one in columns for c in all_of(one, exp.Column) if place_of(c) in answers]
    if len(used) > len(set(used)):
        # what several columns read is reckoned once
        shown = [labelled(answer, label) for answer, label in answers.values()]
        made.append((SHARES, select("select {r}.*, {shown} from {source}", r=ROW, shown=shown, source=source)))
        beside = {told_name(part).this for part in asked if totals is not None and part.name in totals.counted}
        made[-1][1].set("joins", [one for one in told if one.this.this.this not in beside])
        source, told = as_rows(SHARES), [one for one in told if one.this.this.this in beside]
        answers = {place: (own(label), label) for place, (_, label) in answers.items()}
    columns = [answered(one, answers) for one in columns]
    chosen = select(
        "select {columns} from {source}", columns=keys + columns or [labelled(number(1), "one")], source=source
    )
    chosen.set("joins", told + joins)
    for condition in conditions:
        chosen.where(condition, copy=False)
    if summed:
        chosen.set("group", exp.Group(all=True))
    return [*made, (ROWS, chosen)]
