"""Results travel as named columns: each different value of a released column is listed once, rows have places."""

import pyarrow as pa

from duckdb_anon.engine.column_coding import code_column
from duckdb_anon.model.coded_table import Attribute


def attribute(name: str) -> Attribute:
    return code_column("test", name, pa.array(["v0", "v1", "v2", "v3", "v4"]), "nominal")


def test_channels_stand_in_few_rows_where_domains_are_long(con):
    con.execute("create table t as select i as name, i % 4 as s from range(3000) r(i)")
    call = "rr_distort('t', p := 0.7, qi := ['name'], sensitive := 's')"
    columns = [row[0] for row in con.execute(f"describe from {call}").fetchall()]
    told = next(name for name in columns if name not in ("name", "s"))
    rows, with_channel = con.execute(f'select count(*), count("{told}") from {call}').fetchall()[0]
    assert (rows, with_channel) == (3000, 2)
