"""Queries on a release on Spark: the estimator of `rewrite_query`, in Spark's dialect.

The query is rewritten on DuckDB against empty tables of the same columns, which is all a rewrite reads, and translated.
Cost: that of a rewrite, some milliseconds; the answer is Spark's work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import duckdb

from duckdb_anon.engine.sql_quoting import literal
from duckdb_anon.model.errors import AnonError
from duckdb_anon.model.release_comment import argument_text
from duckdb_anon.parts.run_part import message_of
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
    arguments = "".join(f", {name} := {argument_text(value)}" for name, value in given.items() if value)
    with connect() as con:
        con.execute("set python_enable_replacements = false")
        for name, frame in zip(names, (original, release), strict=True):
            create_labelled(con, name, frame, frame.limit(0).toArrow())
        try:
            how = "dialect := 'spark', spread := 'uniform'"  # the frames have no rows here to learn from
            call = f"rewrite_query({literal(query)}, {literal(names[0])}, {literal(names[1])}, {how}"
            return str(con.execute(f"select {call}{arguments})").fetchall()[0][0])
        except duckdb.Error as error:
            raise AnonError(message_of(error, "rewrite_query")) from error
