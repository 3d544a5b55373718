"""Counts of randomized releases, learnt from the columns of the query together.

Inversion answers a query over several randomized columns without bias, and where few rows qualify with little else than
noise. Its interval says how much of that there is: a count whose standard error is above half of what
`duckdb_anon.kernels.randomized_response.joint_counts` learns gives way to it; every other count, every sum and mean,
and every interval stays the inverted one. That rule reads nothing but the release.

The query itself runs over the true values of its columns and how many original rows have them, every count a sum of
these. Without cells that are better learnt there are no such rows, and the inverted counts stand.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import sqlglot
from sqlglot import exp

from duckdb_anon.model.learnt import MOST_COLUMNS, NOISE
from duckdb_anon.rewrite.bounds import REACH
from duckdb_anon.rewrite.factors import RandomizedFactor
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.trees import (
    columns_of,
    every,
    from_items,
    groups_of,
    is_original,
    laid_out,
    quoted,
    tree,
    unquote,
    without_filter,
)
from duckdb_anon.rewrite.release_model import ReleaseModel, release_model


def learnable_counts(query: exp.Query, release: TableInfo, original: TableInfo) -> Mapping[int, exp.Expr]:
    """The counts of a query that may be learnt: number of the output column, and what qualifies a row."""
    plain = isinstance(query, exp.Select) and len(list(query.find_all(exp.Query))) == 1
    if not isinstance(query, exp.Select) or not plain or len(from_items(query)) != 1:
        return {}
    unusual = ("with_", "having", "qualify", "limit", "offset", "order", "distinct", "windows", "sample")
    if any(query.args.get(key) for key in unusual) or len(groups_of(query).sets) > 1 or query.find(exp.Window):
        return {}
    if not is_original(from_items(query)[0]):
        return {}
    if randomized_columns(_read(query), release_model(release, original)) is None:
        return {}
    found = {}
    for position, projection in enumerate(query.expressions):
        qualifies = _counted(projection.unalias())
        if qualifies is not None:
            found[position] = qualifies
    return found


def with_learnt_counts(
    inverted: str,
    query: exp.Query,
    counts: Mapping[int, exp.Expr],
    tables: tuple[TableInfo, TableInfo],
    columns: tuple[Sequence[str], Sequence[int]],
) -> str:
    """Let noisy counts of a rewritten query give way to learnt ones."""
    assert isinstance(query, exp.Select)  # noqa: S101 -- learnable_counts has nothing else
    names, keys = columns
    release, original = tables
    learnt = _learnt(query, counts, keys, release, original)
    on = " and ".join(f"_inverted._c{key} is not distinct from _learnt._c{key}" for key in keys) or "true"
    chosen = []
    for position in counts:
        count, reach = f"_inverted._c{position}", f"(_inverted._c{position}_high - _inverted._c{position}) / {REACH}"
        noisy = f"_learnt._c{position} is not null and {reach} > {NOISE} * greatest(_learnt._c{position}, 1)"
        chosen.append(f"case when {noisy} then greatest(_learnt._c{position}, 0) else {count} end as _c{position}")
    replaced = {f"_c{index}": text for index, text in zip(counts, chosen, strict=True)}
    listed = ", ".join(replaced.get(name, f"_inverted.{name}") for name in names)
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
    return every([condition.copy() for condition in conditions])


def _read(query: exp.Select) -> set[str]:
    return columns_of(query, from_items(query)[0].alias_or_name)


def randomized_columns(columns: Collection[str], model: ReleaseModel) -> dict[str, RandomizedFactor | None] | None:
    """Columns that counts are learnt from together, and what randomized them.

    None where something else was done, to them or to rows, or where fewer than two were randomized.
    """
    found: dict[str, RandomizedFactor | None] = {}
    for node in sorted(columns):
        factor = model.factor_of(node)
        if node not in model.exact and not isinstance(factor, RandomizedFactor):
            return None
        found[node] = factor if isinstance(factor, RandomizedFactor) else None
    several = sum(factor is not None for factor in found.values()) > 1
    of_rows = model.weight == "1" and model.complete
    return found if of_rows and several and len(found) <= MOST_COLUMNS else None


def _learnt(
    query: exp.Select, counts: Mapping[int, exp.Expr], keys: Sequence[int], release: TableInfo, original: TableInfo
) -> str:
    """SELECT the keys and the learnt counts."""
    model = release_model(release, original)
    factors = randomized_columns(_read(query), model)
    assert factors is not None  # noqa: S101 -- asked before
    found = query.copy()
    projections = [projection.unalias() for projection in query.expressions]
    outputs = [exp.alias_(projections[key].copy(), f"_c{key}") for key in keys]
    for position, there in counts.items():
        outputs.append(exp.alias_(tree("sum(original_rows) filter (where {there})", there=there), f"_c{position}"))
    found.set("expressions", outputs)
    table = from_items(found)[0]
    alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name, quoted=True))
    joint = sqlglot.parse_one(_joint(factors, model), dialect="duckdb")
    table.replace(exp.Subquery(this=joint, alias=alias))
    unquote(found)
    return laid_out(found)


def _joint(factors: Mapping[str, RandomizedFactor | None], model: ReleaseModel) -> str:
    """SELECT the true values of the columns, and how many original rows have them."""
    channels = next(quoted(factor.channels) for factor in factors.values() if factor is not None)
    places = range(len(factors))
    cells = ", ".join(
        f"{model.exact[name] if factor is None else factor.cell} as cell_{k}"
        for k, (name, factor) in enumerate(factors.items())
    )
    domains, chances, values = [], [], []
    for k, (name, factor) in enumerate(factors.items()):
        listed = f"(select list(v) from (select distinct cell_{k} as v from _combinations))"
        domains.append(f"{listed if factor is None else f'rr.{quoted(name)}.domain'} as domain_{k}")
        chances.append("1" if factor is None else f"rr.{quoted(name)}.p")
        later = " * ".join(["1", *(f"len(domain_{after})" for after in places if after > k)])
        values.append(f"domain_{k}[1 + place // ({later}) % len(domain_{k})] as {quoted(name)}")
    codes = ", ".join(f"list_position(domain_{k}, cell_{k}) - 1" for k in places)
    sizes = ", ".join(f"len(domain_{k})" for k in places)
    return f"""
        with _channels as (select r.{channels} as rr from {model.release} as r where r.{channels} is not null limit 1),
        _combinations as (select {cells}, count(*) as records from {model.release} as r group by all),
        _domains as (select {", ".join(domains)}, [{", ".join(chances)}] as chances from _channels),
        _estimated as (
          select joint_counts(list([{codes}]), list(records), any_value([{sizes}]), any_value(chances)) as counts
          from _combinations cross join _domains)
        select {", ".join(values)}, original_rows from (
          select unnest(counts) as original_rows, generate_subscripts(counts, 1) - 1 as place from _estimated
        ) cross join _domains"""
