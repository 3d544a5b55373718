"""The steps that spell out the values of grouped rows, one row a combination of values with its weight.

Where all values of a cell are as likely, they are opened from a list beside the cell. Elsewhere the values of each
distinct cell are joined with their weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from duckdb_anon.rewrite.estimate.row_answers import ends_read
from duckdb_anon.rewrite.query.template import OWN, column, multiplied, name, own, select, taken, tree
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.parts import Part, labelled, same

SPREAD = name("by_value")
SIZES, SIZE = name("sizes"), name("size")
"""A step with the number of rows of each bucket, and its column, which rows of one a bucket have themselves."""
Step = tuple[exp.Identifier, exp.Query]


def value_steps(
    parts: Sequence[Part],
    used: Mapping[str, Sequence[str]],
    latest: Step,
    numbered: bool,
    inside: Mapping[str, Sequence[exp.Expr]],
) -> list[Step]:
    """The steps; the last one is `SPREAD`.

    Args:
        parts: the parts whose values are spelled out.
        used: the columns of each that are needed, by its name.
        latest: the step with the rows, which hold a cell of each part, and perhaps the size of its bucket.
        numbered: whether each of those rows gets a number.
        inside: conditions that values of a part that counts them must satisfy, by its name.
    """
    opened = [part.opened(own(f"cell_{part.name}")) for part in parts]
    lists = [one for one in opened if one is not None]
    if len(lists) == len(parts):
        return [(SPREAD, _opened(parts, lists, latest[0], numbered))]
    sized = any(one.alias == SIZE.this for one in latest[1].selects)
    steps: list[Step] = []
    by_size: list[Part] = []
    for part in parts:
        tally = part.tallied(used[part.name], inside.get(part.name, ()))
        assert tally is not None or not inside.get(part.name)  # noqa: S101 -- only those that are counted are judged
        if tally is not None and sized:
            by_size.append(part)
        elif tally is not None:
            if SIZES not in [step for step, _ in steps]:
                steps.append((SIZES, _sizes(part)))
            tally = _divided(tally, used[part.name])
        steps.append((_values_name(part), tally or _weighted(part, used[part.name])))
    return [*steps, (SPREAD, _joined(parts, used, latest[0], numbered, by_size))]


def are_lists(parts: Sequence[Part]) -> bool:
    """Whether the values of all parts are lists, so that the weight of each is one part of their number, never 0.

    Args:
        parts: the parts whose values are spelled out.
    """
    return all(part.opened(own(f"cell_{part.name}")) is not None for part in parts)


def _opened(parts: Sequence[Part], lists: list[exp.Expr], latest: exp.Identifier, numbered: bool) -> exp.Select:
    """One row a row of the step and combination of values its cells may stand for."""
    ends = [
        end
        for part, values in zip(parts, lists, strict=True)
        for end in ends_read(part, own(f"cell_{part.name}"), [values])
    ]
    source: exp.Expr = exp.Column(this=taken(latest))
    if numbered:
        ends.append(tree("row_number() over () as _row"))
    if ends:
        source = select("select *, {ends} from {source}", ends=ends, source=source)
    sizes: list[exp.Expr] = []
    counted: list[exp.Expr] = []
    weights = [part.weight(own(f"cell_{part.name}")) for part in parts]
    for place, part in enumerate(parts):
        size = part.size(own(f"cell_{part.name}"))
        if size is not None and weights[place] is not None:  # reckoned once a cell, not once a value
            counted.append(labelled(size, f"rows_of_{part.name}"))
            size = own(f"rows_of_{part.name}")
        if size is None:
            listed = f"values_of_{part.name}"
            counted.append(labelled(lists[place], listed))
            lists[place] = own(listed)
            size = tree("array_length({values})", values=own(listed))
        sizes.append(size)
    if counted:
        source = select("select *, {counted} from {source}", counted=counted, source=source)
    each = multiplied([one for one in weights if one is not None])
    weight = labelled(tree("{each} / {size}", each=each, size=multiplied(sizes)), "weight")
    for part, values in zip(parts, lists, strict=True):
        value = tree("{values} as {value}", values=part.unlisted(values), value=part.columns[0])
        last = [weight] * (part is parts[-1])
        source = chosen = select("select *, {columns} from {source}", columns=[value, *last], source=source)
    return chosen


def _joined(
    parts: Sequence[Part],
    used: Mapping[str, Sequence[str]],
    latest: exp.Identifier,
    numbered: bool,
    by_size: Sequence[Part],
) -> exp.Select:
    columns, weights, joins = [tree("_last.*")], [], []
    for part in parts:
        values = _values_name(part)
        columns += [column(c, values) for c in used[part.name]]
        weight = "{values}._there / _last._size" if part in by_size else "{values}._weight"
        weights.append(tree(weight, values=values))
        on = same(own(f"cell_{part.name}", "last"), tree("{values}._cell", values=values))
        joins.append(exp.Join(this=exp.Table(this=values), on=on))
    source = "(select *, row_number() over () as _row from {latest})" if numbered else "{latest}"
    chosen = select(
        f"select {{columns}}, {{weight}} as _weight from {source} as _last",
        columns=columns,
        weight=multiplied(weights),
        latest=latest,
    )
    chosen.set("joins", joins)
    return chosen


def _sizes(part: Part) -> exp.Select:
    """How many rows each bucket has."""
    return select(
        "select {key} as _cell, count(*) as _size from {release} group by {key}", key=part.key, release=part.source()
    )


def _divided(tally: exp.Select, used: Sequence[str]) -> exp.Select:
    """The different cells of each bucket with their share of it."""
    return select(
        "select _cells._cell, {columns}, _there / _size as _weight from {tally} as _cells "
        "join {sizes} on _cells._cell is not distinct from {sizes}._cell",
        columns=[column(one, name("cells")) for one in used],
        tally=tally,
        sizes=SIZES,
    )


def _weighted(part: Part, used: Sequence[str]) -> exp.Select:
    weight = "1 / count(*)" if part.even else "_weight / sum(_weight)"
    weight = "_weight" if part.counted else f"{weight} over (partition by _cell) as _weight"
    columns, values = [column(one) for one in used], part.values(used)
    if part.total is not None:
        return select(
            "select _cell, {columns}, _weight / {total} as _weight from {values}",
            columns=columns,
            total=part.total,
            values=values,
        )
    return select(f"select _cell, {{columns}}, {weight} from {{values}}", columns=columns, values=values)


def _values_name(part: Part) -> exp.Identifier:
    return name(f"values_of_{part.name}")


def append_step(query: exp.Query, step: exp.Identifier, made_of: exp.Query) -> None:
    """Add a CTE to a query, after those it has.

    Args:
        query: the query.
        step: the step's name.
        made_of: its SELECT.
    """
    with_ = query.args.get("with_")
    if with_ is None:
        query.set("with_", with_ := exp.With(expressions=[]))
    with_.append("expressions", exp.CTE(this=made_of, alias=exp.TableAlias(this=taken(step))))


def drop_unread(query: exp.Query) -> None:
    """Take away the CTEs of a query that nothing reads.

    Args:
        query: the query.
    """
    with_ = query.args.get("with_")
    if with_ is None:
        return
    kept: list[exp.Expr] = []
    read = {one.name for key, value in query.args.items() if key != "with_" for one in _tables(value)}
    for cte in reversed(with_.expressions):
        if cte.alias in read or not cte.alias.startswith(OWN):
            kept.insert(0, cte)
            read |= {one.name for one in _tables(cte.this)}
    with_.set("expressions", kept)


def _tables(value: object) -> list[exp.Table]:
    """The tables in an argument of a tree."""
    values = value if isinstance(value, list) else [value]
    return [one for node in values if isinstance(node, exp.Expr) for one in all_of(node, exp.Table)]
