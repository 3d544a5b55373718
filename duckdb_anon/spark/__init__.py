"""The same releases where one machine ends: on Spark, part by part, each part by the ordinary call on DuckDB.

    import duckdb_anon.spark as anon
    release = anon.release(df, "muco(0.2)", qi=["age", "sex"], sensitive=["disease"])
    anon.k_anonymity(release, ["age", "sex"])
    anon.estimate_sql("SELECT sex, count(*) FROM people GROUP BY sex", df, release)

`release` plans parts by counting with Spark SQL, works them with `applyInArrow`, and shuffles them as one. Measures
that are SQL, and rewritten queries, run on Spark in its own dialect. Needs the extra `spark` and Java 17.
"""

from __future__ import annotations

from duckdb_anon.spark.queries import estimate_sql, k_anonymity, l_diversity, t_closeness
from duckdb_anon.spark.release import release

__all__ = ["estimate_sql", "k_anonymity", "l_diversity", "release", "t_closeness"]
