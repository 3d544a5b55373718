"""What a finished release must satisfy, queried from the release itself in SQL that shares nothing with the kernels.

The kernels check every part before it is released; this is the check of the whole, after parts were put together and
shuffled: classes and their diversity (`portable`), histograms of permuted columns against the
original's, shares in buckets, and that no row was lost. Cost: a GROUP BY of the release, by DuckDB, which spills.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import ceil

from duckdb_anon.engine.call_text import Recorded
from duckdb_anon.engine.sql_quoting import ident
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.parts.checks_sql import l_sql, t_sql

Ask = Callable[[str], Sequence[tuple[object, ...]]]


def check(
    ask: Ask, recorded: Recorded, release: str, columns: Sequence[str], rows: int, histogram: Callable[[int], str],
    key: Callable[[str], str] = ident,
) -> None:  # fmt: skip
    """Make sure of a finished release.

    Args:
        ask: answers a query.
        recorded: the call.
        release: what was released, as SQL names it in a string of its own.
        columns: its columns, in the order of the layout.
        rows: rows of the original.
        histogram: SELECT of the values (`value`) of the k-th quasi-identifier with their rows (`n`) in the original.
        key: SQL of what identifies the cells of a column; see `hashed`.

    Raises:
        RequirementError: something does not hold; nothing is released.
    """
    for what, sql in _violations(recorded, release, columns, rows, histogram, key):
        found = ask(sql)[0][0]
        if found:
            raise RequirementError(
                f"{recorded.entry.name}: {what}: {found} of the finished release fail the check in SQL. Nothing is "
                "released. This is an error of the package, not of the call"
            )


def hashed(column: str) -> str:
    """Key of a cell in 64 bits, which DuckDB groups by in a third of the time that lists and boxes take.

    Two cells of one column that share it (one chance in 10^9 with 200,000 of them) could hide a failure, not make one.
    """
    return f"hash({ident(column)})"


def _violations(
    recorded: Recorded, release: str, columns: Sequence[str], rows: int, histogram: Callable[[int], str],
    key: Callable[[str], str],
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """What is checked, and the query that counts what fails it."""
    finished, params = recorded.entry.finished, recorded.params
    persons = recorded.roles.person is not None
    qi = [info.name for info in recorded.roles.qi]
    sensitive = [info.name for info in recorded.roles.sensitive]
    if "rows" in finished:
        yield "rows", f"select abs(count(*) - {rows}) from {release}"
    if "values" in finished and params.get("tables", "uniform") == "uniform":
        for k, column in enumerate(qi):
            own = f"(select {ident(column)} as value, count(*) as n from {release} group by all)"
            original = f"({histogram(k)})"
            yield (
                f"values of {column}",
                f"select count(*) from ((from {own} except from {original}) union all "
                f"(from {original} except from {own}))",
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
        bucket, counts = ident(columns[0]), ident(columns[-1 - len(recorded.roles.keep)])
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
            f"select count(*) from (select 1 from {release} group by {_names(sensitive)} "
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


def _names(columns: Sequence[str]) -> str:
    return ", ".join(ident(column) for column in columns)
