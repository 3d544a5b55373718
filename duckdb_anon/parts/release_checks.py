"""What a finished release must satisfy, queried from the release itself in SQL that shares nothing with the kernels.

The kernels check every part before it is released; this is the check of the full release, after parts were put together
and shuffled: classes and their diversity, histograms of permuted columns against the original's, shares in buckets, and
that no row was lost. k, l and t of releases of boxes or plain values are SQL that DuckDB and Spark both speak
(`rewrite.dialects` translates it). Papers: Sweeney (2002); Machanavajjhala et al. (2006); Li et al. (2007).
Cost: a GROUP BY of the release, by DuckDB, which spills; ordered t: classes times values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil

from duckdb_anon.engine.records.call_text import Recorded
from duckdb_anon.engine.sql_quoting import ident, idents
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.parts.placement import CodedRows


def k_sql(release: str, qi: Sequence[str]) -> str:
    """SELECT of `k`, the rows of the smallest class.

    >>> k_sql("r", ["age"])
    'select min(n) as k from (select count(*) as n from r group by "age") as classes'
    """
    return f"select min(n) as k from (select count(*) as n from {release} group by {idents(qi)}) as classes"


def l_sql(release: str, qi: Sequence[str], sensitive: str, least: int = 2) -> str:
    """SELECT of the l that every class reaches: `distinct_l`, `frequency_l`, `entropy_l`, and `recursive_c`.

    The last is of recursive (c, `least`)-diversity: the smallest c the release does not quite reach, infinite where a
    class has fewer values.
    """
    keys = idents(qi)
    return (
        f"with cells as (select {keys}, {idents([sensitive])} as s, count(*) as c from {release} "
        f"group by {keys}, {idents([sensitive])}), "
        f"ranked as (select *, row_number() over (partition by {keys} order by c desc) as place from cells), "
        "classes as (select sum(c) as n, max(c) as most, count(*) as many, sum(c * ln(c)) as inner_sum, "
        f"sum(case when place >= {least} then c else 0 end) as tail from ranked group by {keys}) "
        "select min(many) as distinct_l, min(n * 1.0 / most) as frequency_l, "
        "min(exp(ln(n) - inner_sum / n)) as entropy_l, "
        "max(case when tail = 0 then cast('infinity' as double) else most * 1.0 / tail end) as recursive_c from classes"
    )


def t_sql(release: str, qi: Sequence[str], sensitive: str, distance: str = "equal") -> str:
    """SELECT of `t`, the largest distance of a class to the whole release; 'ordered' where values have an order."""
    keys, s = idents(qi), idents([sensitive])
    cells = (
        f"with numbered as (select {s} as s, dense_rank() over (order by {keys}) as class from {release}), "
        "cells as (select class, s, count(*) as c from numbered group by class, s), "
        "sizes as (select class, sum(c) as n from cells group by class), "
        "whole as (select s, sum(c) as c from cells group by s), "
        "shares as (select s, c * 1.0 / sum(c) over () as q, row_number() over (order by s nulls last) as place, "
        "count(*) over () as m from whole)"
    )
    if distance == "equal":
        return (
            f"{cells}, excess as (select cells.class, "
            "sum(case when cells.c * 1.0 / sizes.n > shares.q then cells.c * 1.0 / sizes.n - shares.q else 0 end) as d "
            "from cells join sizes on cells.class = sizes.class join shares on cells.s is not distinct from shares.s "
            "group by cells.class) select max(d) as t from excess"
        )
    return (
        f"{cells}, every as (select sizes.class, sizes.n, shares.s, shares.q, shares.place, shares.m "
        "from sizes cross join shares), "
        "gaps as (select every.class, every.place, every.m, sum(coalesce(cells.c, 0) * 1.0 / every.n - every.q) over "
        "(partition by every.class order by every.place) as gap from every left join cells "
        "on every.class = cells.class and every.s is not distinct from cells.s), "
        "moved as (select class, sum(abs(gap)) / greatest(max(m) - 1, 1) as d from gaps group by class) "
        "select max(d) as t from moved"
    )


def check(original: CodedRows, release: str, columns: Sequence[str], rows: int, key: Callable[[str], str]) -> None:
    """Refuse a finished release that does not satisfy what its method promises.

    `release`: what was released, as SQL names it in a string of its own; `key`: SQL of what identifies the cells of a
    column: `ident`, or `hashed`.
    """
    for what, sql in _violations(original, release, columns, rows, key):
        found = original.ask(sql).column(0)[0].as_py()
        if found:
            raise RequirementError(
                f"{original.name}: {what}: {found} of the finished release fail the check in SQL. Nothing is "
                "released. This is an error of the package, not of the call"
            )


def hashed(column: str) -> str:
    """Key of a cell in 64 bits, which DuckDB groups by in a third of the time that lists and boxes take.

    Two cells of one column that share it (one chance in 10^9 with 200,000 of them) could hide a failure, not make one.
    """
    return f"hash({ident(column)})"


def _violations(
    original: CodedRows, release: str, columns: Sequence[str], rows: int, key: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    """What is checked, and the query that counts what fails it."""
    recorded = original.recorded
    finished, params = recorded.entry.finished, recorded.params
    persons = recorded.roles.person is not None
    qi = [info.name for info in recorded.roles.qi]
    sensitive = [info.name for info in recorded.roles.sensitive]
    if "rows" in finished:
        yield "rows", f"select abs(count(*) - {rows}) from {release}"
    if "values" in finished and params.get("tables", "uniform") == "uniform":
        # where individuals have several rows, values are known with their individuals, not with their rows
        n, counted = ("", "") if original.repeated else (", n", ", count(*) as n")
        for k, column in enumerate(qi):
            released_counts = f"(select {ident(column)} as value{counted} from {release} group by all)"
            known = f"(select value{n} from {original.values(k)})"
            yield (
                f"values of {column}",
                f"select count(*) from ((from {released_counts} except from {known}) union all "
                f"(from {known} except from {released_counts}))",
            )
    if "classes" in finished:
        # l persons with a value of their own each are l rows; what else is diverse of persons is checked by the kernels
        least = max(int(params.get("k") or 1), ceil(params.get("l") or 1) if persons and "diverse" in finished else 1)
        yield (
            "classes",
            f"select count(*) from (select 1 from {release} group by {', '.join(map(key, qi))} "
            f"having count(*) < {least})",
        )
    if "diverse" in finished and not persons:
        yield from _diverse(recorded, release, qi, sensitive, key)
    if "buckets" in finished:
        bucket, counts = ident(columns[0]), ident(sensitive[0])
        each = f"select {bucket} as b, any_value({counts}) as m, count(*) as n from {release} group by {bucket}"
        cells = f"select b, n, unnest(map_values(m)) as c from ({each}) as listed"
        summed = f"select b, max(n) as n, sum(c) as total, max(c) as most from ({cells}) as counted group by b"
        yield (
            "buckets",
            f"select count(*) from ({summed}) as summed where n <> total or most * {params['l']} > n",
        )
    if "lists" in finished and not params["explode"]:
        yield (
            "lists",
            f"select count(*) from (select 1 from {release} group by {idents(sensitive)} "
            f"having count(*) < {params['k']})",
        )


def _diverse(
    recorded: Recorded, release: str, qi: list[str], sensitive: list[str], key: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    params = recorded.params
    classes = ", ".join(f"{key(column)} as {ident(column)}" for column in qi)
    for column in sensitive:
        grouped = f"(select {classes}, {ident(column)} from {release}) as grouped"
        if params["l"] is not None:
            kind, least = params["diversity"], params["l"]
            fails = f"recursive_c >= {params['c']}" if kind == "recursive" else f"{kind}_l < {least} - 1e-6"
            measured = l_sql(grouped, qi, column, int(least) if kind == "recursive" else 2)
            yield f"diversity of {column}", f"select count(*) from ({measured}) as measured where {fails}"
        if params["t"] is not None and params["distance"] == "equal":
            measured = t_sql(grouped, qi, column)
            yield (
                f"closeness of {column}",
                f"select count(*) from ({measured}) as measured where t > {params['t']} + 1e-6",
            )
