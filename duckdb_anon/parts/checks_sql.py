"""k, l and t of a release as SQL that DuckDB and Spark both speak (`rewrite.dialects` translates it).

The macros of sql/risk.sql answer the same for any shape; these are for releases of boxes or plain values, where a class
is a combination of published quasi-identifiers, and for engines without the macros.
Papers: Sweeney (2002); Machanavajjhala et al. (2006); Li, Li and Venkatasubramanian (2007).
Cost: a GROUP BY of the quasi-identifiers and the sensitive column; ordered t: classes times values.
"""

from __future__ import annotations

from collections.abc import Sequence

from duckdb_anon.engine.sql_quoting import idents


def k_sql(release: str, qi: Sequence[str]) -> str:
    """SELECT of `k`, the rows of the smallest class.

    >>> k_sql("r", ["age"])
    'select min(n) as k from (select count(*) as n from r group by "age") as classes'
    """
    return f"select min(n) as k from (select count(*) as n from {release} group by {idents(qi)}) as classes"


def l_sql(release: str, qi: Sequence[str], sensitive: str, least: int = 2) -> str:
    """SELECT of the l that every class reaches: `distinct_l`, `frequency_l`, `entropy_l`, and `recursive_c`.

    Args:
        release: relation.
        qi: quasi-identifiers.
        sensitive: sensitive column.
        least: l of recursive (c, l)-diversity; `recursive_c` is the smallest c the release does not quite reach,
            infinite where a class has fewer than l values.
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
    """SELECT of `t`, the largest distance of a class to the whole release.

    Args:
        release: relation.
        qi: quasi-identifiers.
        sensitive: sensitive column.
        distance: 'equal', or 'ordered' for values in order.
    """
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
