"""Draws beside a release: stock DuckDB reads them, and reaches what `estimate` says."""

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.serve.publish import publish

RUBIN = """
with one as (select _draw, avg(cost) as q, var_samp(cost) / count(*) as u from boxes_draws where age < 40 group by _draw)
select avg(q) as mean, sqrt(avg(u) + (1 + 1.0 / count(*)) * var_samp(q)) as error, stddev_samp(q) as spread from one"""


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("draws")
    with duckdb_anon.connect(str(folder / "people.duckdb")) as con:
        con.execute("""create table people as select (hash(range) % 60)::int as age, 'c' || hash(range, 1) % 5 as city,
            1000 + 20 * (hash(range) % 60)::int + (hash(range, 2) % 100)::int as cost from range(600)""")
        for column, role in {"age": "quasi", "city": "quasi categorical", "cost": "sensitive"}.items():
            con.execute(f"comment on column people.{column} is 'anon: {role}'")
        duckdb_anon.release(con, "boxes", "mondrian('people', 10)")
    done = publish(str(folder / "people.duckdb"), str(folder / "out.duckdb"), draws=10)
    assert done.draws == {"boxes_draws": 6000}
    return folder


def test_draws_have_the_types_of_the_original_and_are_numbered_from_0(published):
    with duckdb.connect(str(published / "out.duckdb"), read_only=True) as con:
        kinds = [row[:2] for row in con.execute("describe boxes_draws").fetchall()]
        numbers = con.execute("select min(_draw), max(_draw), count(distinct _draw) from boxes_draws").fetchone()
    with duckdb_anon.connect(str(published / "people.duckdb"), read_only=True) as con:
        assert kinds == [("_draw", "INTEGER"), *(row[:2] for row in con.execute("describe people").fetchall())]
    assert numbers == (0, 9, 10)


def test_stock_duckdb_reaches_the_estimate_by_rubins_rules(published):
    with duckdb.connect(str(published / "out.duckdb"), read_only=True) as con:
        mean, error, spread = con.execute(RUBIN).fetchone()
        slope = con.execute(
            "select avg(b) from (select regr_slope(cost, age) as b from boxes_draws group by _draw)"
        ).fetchone()
    with duckdb_anon.connect(str(published / "out.duckdb"), read_only=True) as con:
        wanted = con.execute("""select estimate from estimate('select avg(cost) from people where age < 40', 'boxes',
            engine := 'imputed')""").fetchone()
    assert abs(mean - wanted[0]) <= spread + 1e-9 and error >= spread
    with duckdb_anon.connect(str(published / "people.duckdb"), read_only=True) as con:
        true = con.execute("select regr_slope(cost, age) from people").fetchone()
    assert slope[0] == pytest.approx(true[0], rel=0.1)
