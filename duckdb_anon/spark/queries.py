"""Queries and measures of a release on Spark.

A query is rewritten by `rewrite_query` on DuckDB against empty tables of the same columns, which is all a rewrite
reads, and translated to Spark's dialect; k, l and t are those of `parts.release_checks`.
Cost: a rewrite takes some milliseconds; the answer is Spark's work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import duckdb

from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.model.errors import AnonError, ColumnError, ParameterError, cause_of, listed, nearest
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.parts.release_checks import k_sql, l_sql, t_sql
from duckdb_anon.parts.run_part import message_of
from duckdb_anon.rewrite.dialects import spoken
from duckdb_anon.spark.dataframe_planning import create_labelled
from duckdb_anon.sql_functions import connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def estimate_sql(
    query: str,
    original: DataFrame,
    release: DataFrame,
    *,
    names: tuple[str, str] = ("people", "release"),
    qi: Sequence[str] | None = None,
    sensitive: Sequence[str] | str | None = None,
) -> str:
    """The query over the release that estimates a query over the original, in Spark SQL.

    Args:
        query: a query over the original, DuckDB's dialect.
        original: the original; its columns are read, not its rows.
        release: the release, likewise.
        names: how the query calls the original, and how the answer is to call the release.
        qi: quasi-identifiers; by default what the columns' metadata says.
        sensitive: sensitive columns, likewise.

    Returns:
        Spark SQL, for `spark.sql` once the release is a view of that name.

    Raises:
        AnonError: what the query asks cannot be estimated.

    Example:
        release.createOrReplaceTempView("release")
        spark.sql(estimate_sql("SELECT sex, count(*) FROM people GROUP BY sex", df, release, qi=["age", "sex"]))
    """
    given = {"qi": qi, "sensitive": sensitive}
    arguments = "".join(f", {name} := {literal(value)}" for name, value in given.items() if value)
    with connect() as con:
        con.execute("set python_enable_replacements = false")
        for name, frame in zip(names, (original, release), strict=True):
            create_labelled(con, name, frame, frame.limit(0).toArrow())
        try:
            how = "dialect := 'spark', spread := 'uniform'"  # the frames have no rows here to learn from
            call = f"rewrite_query({literal(query)}, {literal(names[0])}, {literal(names[1])}, {how}"
            return str(con.execute(f"select {call}{arguments})").fetchall()[0][0])
        except duckdb.Error as error:
            raise AnonError(message_of(error, "rewrite_query")) from cause_of(error)


_DISTANCES = ("equal", "ordered")


def k_anonymity(release: DataFrame, qi: Sequence[str]) -> int:
    """Rows of the smallest class of a release (Sweeney 2002).

    Args:
        release: boxes or plain values.
        qi: its quasi-identifiers.

    Returns:
        k, 1 or more.

    Raises:
        ColumnError: there is no such column.
    """
    names = _columns("k_anonymity", release, qi)
    return int(_computed(release, k_sql("{release}", names))["k"])


def l_diversity(release: DataFrame, qi: Sequence[str], sensitive: str, l: int = 2) -> dict[str, float]:  # noqa: E741
    """What l every class of a release reaches (Machanavajjhala et al. 2006).

    Args:
        release: boxes or plain values.
        qi: its quasi-identifiers.
        sensitive: its sensitive column.
        l: that of recursive (c, l)-diversity.

    Returns:
        'distinct', 'frequency', 'entropy', and 'recursive': the smallest c the release does not quite reach.

    Raises:
        ColumnError: there is no such column.
    """
    names = _columns("l_diversity", release, [*qi, sensitive])
    row = _computed(release, l_sql("{release}", names[:-1], names[-1], l))
    return {
        "distinct": float(row["distinct_l"]),
        "frequency": float(row["frequency_l"]),
        "entropy": float(row["entropy_l"]),
        "recursive": float(row["recursive_c"]),
    }


def t_closeness(release: DataFrame, qi: Sequence[str], sensitive: str, distance: str = "equal") -> float:
    """Largest distance of a class's sensitive values to the whole release's (Li et al. 2007).

    Args:
        release: boxes or plain values.
        qi: its quasi-identifiers.
        sensitive: its sensitive column.
        distance: 'equal', or 'ordered' where values have an order.

    Returns:
        t, 0 to 1.

    Raises:
        ColumnError: there is no such column.
        ParameterError: there is no such distance.
    """
    if distance not in _DISTANCES:
        raise ParameterError(
            f"t_closeness: distance := '{distance}' is not one of {listed(_DISTANCES)}{nearest(distance, _DISTANCES)}"
        )
    names = _columns("t_closeness", release, [*qi, sensitive])
    return float(_computed(release, t_sql("{release}", names[:-1], names[-1], distance))["t"])


def _columns(function: str, release: DataFrame, names: Sequence[str]) -> list[str]:
    spelled = {fold(column): column for column in release.columns}
    for name in names:
        if fold(name) not in spelled:
            raise ColumnError(
                f"{function}: there is no column '{name}' in the release{nearest(name, release.columns)}. Its columns "
                f"are {listed(release.columns)}"
            )
    return [spelled[fold(name)] for name in names]


def _computed(release: DataFrame, sql: str) -> dict[str, float]:
    text = spoken(sql.replace("{release}", "_anon_release"), "spark")
    release.createOrReplaceTempView("_anon_release")
    try:
        found: dict[str, float] = release.sparkSession.sql(text).collect()[0].asDict()
        return found
    finally:
        release.sparkSession.catalog.dropTempView("_anon_release")
