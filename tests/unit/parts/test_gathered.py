"""Rows that are gathered as places in lists of cells come out as they went in, in another order."""

import numpy as np
import pyarrow as pa
import pytest

from duckdb_anon.parts.run_directory import DATABASE
from duckdb_anon.parts.shuffle_merge import KEY, Gathered

PART = """
    select case when i % 7 = 0 then null else {{'lower': i % 50, 'upper': i % 50 + {0}}} end as box,
        case when i % 3 = 0 then 'flu' else 'FLU' end collate nocase as illness,
        case i % 4 when 0 then null when 1 then [] else ['a', null, 'b' || i % 9 + {0}] end as names,
        i * 2 + {0} as own, i % 5 as bucket
    from range(3000) r(i)"""


@pytest.fixture
def gathered(con):
    con.execute(f"attach ':memory:' as {DATABASE}")
    rng = np.random.default_rng(5)
    made = Gathered(con, lambda sql: con.sql(sql).to_arrow_table())
    for k in range(2):
        con.execute(f"create or replace temp table out as {PART.format(k)}")
        con.register("keys", pa.table({KEY: rng.integers(0, 2**63, 3000)}))
        made.begin("out", ["bucket"])
        made.add("out", "keys", 100 * k, ["bucket"])
    yield made
    con.unregister("keys")
    con.execute(f"detach {DATABASE}; drop table out")


def test_cells_come_out_as_they_went_in(con, gathered):
    went_in = " union all ".join(
        f"select * replace (bucket + {100 * k} as bucket) from ({PART.format(k)})" for k in (0, 1)
    )
    told = (
        "select box::varchar, hash(illness), names::varchar, own, bucket, count(*) from ({}) group by all order by all"
    )
    assert con.execute(told.format(gathered.shuffled())).fetchall() == con.execute(told.format(went_in)).fetchall()
    types = "select column_name, column_type from (describe {})"
    assert con.execute(types.format(gathered.released())).fetchall() == con.execute(types.format(went_in)).fetchall()


def test_few_different_cells_are_held_as_places(con, gathered):
    held = dict(con.execute(f"select column_name, column_type from (describe {DATABASE}.released)").fetchall())
    assert [held[name] for name in ("box", "illness", "names", "own", "bucket")] == [
        "UINTEGER", "UINTEGER", "UINTEGER", "BIGINT", "BIGINT",
    ]  # fmt: skip


def test_rows_stand_in_the_order_of_their_keys(con, gathered):
    con.execute(f"create temp table shown as {gathered.shuffled()}")
    by_key = con.execute(f"select own from {DATABASE}.released order by {KEY}").fetchall()
    assert con.execute("select own from shown").fetchall() == by_key
    con.execute("drop table shown")
