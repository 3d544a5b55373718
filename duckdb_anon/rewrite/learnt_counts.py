"""Counts of randomized releases, learnt from the columns of the query together.

Inversion answers a query over several randomized columns without bias, and where few rows qualify with little else than
noise. Its interval says how much of that there is: a count whose standard error is above half of what
`duckdb_anon.kernels.randomized_response.joint_counts` learns gives way to it; every other count, every sum and mean,
and every interval stays the inverted one. That rule reads nothing but the release.

    _combinations: the released rows of each combination of the query's columns
    _joint:        true values of them, and how many original rows have them

The query itself runs over `_joint`, every count a sum of its rows. Without cells that are better learnt `_joint` has no
rows, and the inverted counts stand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from duckdb_anon.model.learnt import MOST_COLUMNS, NOISE
from duckdb_anon.rewrite.bounds.delta_method import REACH
from duckdb_anon.rewrite.query.aggregate_nodes import without_filter
from duckdb_anon.rewrite.query.grouping_sets import groups_of
from duckdb_anon.rewrite.query.indentation import laid_out
from duckdb_anon.rewrite.query.parse import from_items, is_original
from duckdb_anon.rewrite.query.spelling import spell
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.template import column, copied, every, name, number, select, tree
from duckdb_anon.rewrite.query.walking import columns_of
from duckdb_anon.rewrite.shapes.inverted import RandomizedPart
from duckdb_anon.rewrite.shapes.parts import ROW, aliased, labelled
from duckdb_anon.rewrite.shapes.released import Model
from duckdb_anon.rewrite.shapes.released_parts import model_of


def learnable_counts(query: exp.Query, release: TableInfo, original: TableInfo) -> Mapping[int, exp.Expr]:
    """The counts of a query that may be learnt: number of the output column, and what qualifies a row.

    Args:
        query: a bound query.
        release: the release.
        original: its original.

    Returns:
        Nothing for a query of anything but groups and aggregates of one table with several randomized columns.
    """
    plain = isinstance(query, exp.Select) and len(list(query.find_all(exp.Query))) == 1
    if not isinstance(query, exp.Select) or not plain or len(from_items(query)) != 1:
        return {}
    unusual = ("with_", "having", "qualify", "limit", "offset", "order", "distinct", "windows", "sample")
    if any(query.args.get(key) for key in unusual) or len(groups_of(query).sets) > 1 or query.find(exp.Window):
        return {}
    if not is_original(from_items(query)[0]):
        return {}
    model = model_of(release, original)
    if model.weight is not None or not model.complete or _randomized(query, model) is None:
        return {}
    found = {}
    for place, projection in enumerate(query.expressions):
        qualifies = _counted(projection.unalias())
        if qualifies is not None:
            found[place] = qualifies
    return found


def with_learnt_counts(
    inverted: str,
    query: exp.Query,
    counts: Mapping[int, exp.Expr],
    tables: tuple[TableInfo, TableInfo],
    columns: tuple[Sequence[str], Sequence[int]],
) -> str:
    """Let noisy counts of a rewritten query give way to learnt ones.

    Args:
        inverted: SQL of the rewritten query, columns `_c0`, `_c1`, ...; `_c0_low` and `_c0_high` of those with bounds.
        query: the bound query.
        counts: what `learnable_counts` gave.
        tables: the release and its original.
        columns: all columns of `inverted`, and the numbers of the keys.
    """
    assert isinstance(query, exp.Select)  # noqa: S101 -- learnable_counts has nothing else
    names, keys = columns
    release, original = tables
    learnt = _learnt(query, counts, keys, release, original)
    on = " and ".join(f"_inverted._c{key} is not distinct from _learnt._c{key}" for key in keys) or "true"
    chosen = []
    for place in counts:
        count, reach = f"_inverted._c{place}", f"(_inverted._c{place}_high - _inverted._c{place}) / {REACH}"
        noisy = f"_learnt._c{place} is not null and {reach} > {NOISE} * greatest(_learnt._c{place}, 1)"
        chosen.append(f"case when {noisy} then greatest(_learnt._c{place}, 0) else {count} end as _c{place}")
    replaced = {f"_c{place}": text for place, text in zip(counts, chosen, strict=True)}
    listed = ", ".join(replaced.get(one, f"_inverted.{one}") for one in names)
    return f"select {listed} from (\n{inverted}\n) as _inverted left join (\n{learnt}\n) as _learnt on {on}"


def _counted(node: exp.Expr) -> exp.Expr | None:
    """The condition of a COUNT that is an output column; None for anything else."""
    inner, among = without_filter(node)
    argument = inner.this
    if not isinstance(inner, exp.Count) or isinstance(argument, exp.Distinct) or inner.args.get("expressions"):
        return None
    conditions = [] if among is None else [among]
    if isinstance(argument, exp.Expr) and not isinstance(argument, (exp.Star, exp.Literal)):
        conditions.append(tree("{x} is not null", x=argument))
    return every([copied(one) for one in conditions])


def _randomized(query: exp.Select, model: Model) -> dict[str, RandomizedPart | None] | None:
    """The query's columns, and what randomized them; None where something else was done, or to fewer than two."""
    alias = from_items(query)[0].alias_or_name
    used = sorted(columns_of(query, alias))
    found: dict[str, RandomizedPart | None] = {}
    for one in used:
        part = model.part_of.get(one)
        if one not in model.exact and not isinstance(part, RandomizedPart):
            return None
        found[one] = part if isinstance(part, RandomizedPart) else None
    several = sum(part is not None for part in found.values()) > 1
    return found if several and len(found) <= MOST_COLUMNS else None


def _learnt(
    query: exp.Select, counts: Mapping[int, exp.Expr], keys: Sequence[int], release: TableInfo, original: TableInfo
) -> str:
    """SELECT the keys and the learnt counts."""
    model = model_of(release, original)
    parts = _randomized(query, model)
    assert parts is not None  # noqa: S101 -- asked before
    found = copied(query)
    projections = [one.unalias() for one in query.expressions]
    outputs = [labelled(copied(projections[key]), f"c{key}") for key in keys]
    outputs += [
        labelled(tree("sum(_rows_there) filter (where {there})", there=there), f"c{place}")
        for place, there in counts.items()
    ]
    found.set("expressions", outputs)
    table = from_items(found)[0]
    alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name, quoted=True))
    table.replace(exp.Subquery(this=_joint(parts, release, model), alias=alias))
    spell_own(found, [one for table in (release, original) for one, _ in table.columns])
    return laid_out(found)


def spell_own(found: exp.Select, taken: Sequence[str]) -> None:
    """Spell the names, the output columns as the outer query reads them.

    Args:
        found: the query.
        taken: names its tables have inside.
    """
    labels = [one.alias for one in found.expressions]
    spell(found, taken)
    for one, label in zip(found.expressions, labels, strict=True):
        one.set("alias", exp.to_identifier(f"_{label[1:]}"))


def _joint(parts: Mapping[str, RandomizedPart | None], release: TableInfo, model: Model) -> exp.Select:
    """SELECT the true values of the columns, and how many original rows have them."""
    carrier = next(part for part in parts.values() if part is not None).channels
    cells = [
        labelled(part.key if part is not None else model.exact[one], f"cell_{place}")
        for place, (one, part) in enumerate(parts.items())
    ]
    domains, chances = [], []
    for place, (one, part) in enumerate(parts.items()):
        distinct = f"select list(_v) from (select distinct _cell_{place} as _v from _combinations)"
        told = tree("_rr.{value}.domain", value=column(one).this)
        domain = told if part is not None else exp.Subquery(this=select(distinct))
        domains.append(labelled(domain, f"domain_{place}"))
        chances.append(tree("_rr.{value}.p", value=column(one).this) if part is not None else number(1))
    places = range(len(parts))
    codes = exp.Array(expressions=[tree(f"list_position(_domain_{k}, _cell_{k}) - 1") for k in places])
    sizes = exp.Array(expressions=[tree(f"len(_domain_{k})") for k in places])
    values = []
    for place, one in enumerate(parts):
        later = " * ".join(["1", *(f"_size_{k}" for k in places if k > place)])
        values.append(
            exp.Alias(
                this=tree(f"_domain_{place}[1 + _at // ({later}) % _size_{place}]"),
                alias=exp.to_identifier(one, quoted=True),
            )
        )
    made = select(
        """
        select {values}, _rows_there from (
          select unnest(_counts) as _rows_there, generate_subscripts(_counts, 1) - 1 as _at from _estimated
        ) cross join _domains""",
        values=values,
    )
    steps = {
        "channels": select(
            "select {rr} as _rr from {release} where {rr} is not null limit 1",
            rr=column(carrier, ROW),
            release=aliased(release, ROW),
        ),
        "combinations": select(
            "select {cells}, count(*) as _rows_there from {release} group by all",
            cells=cells,
            release=aliased(release, ROW),
        ),
        "listed": select("select {domains}, {chances} as _chances from _channels",
                         domains=domains, chances=exp.Array(expressions=chances)),
        "domains": select("select *, {sizes} from _listed",
                          sizes=[labelled(tree(f"len(_domain_{k})"), f"size_{k}") for k in places]),
        "estimated": select(
            "select joint_counts(list({codes}), list(_rows_there), any_value({sizes}), any_value(_chances)) as _counts "
            "from _combinations cross join _domains",
            codes=codes, sizes=sizes,
        ),
    }  # fmt: skip
    for step, body in steps.items():
        made.with_(name(step), as_=body, copy=False)
    return made
