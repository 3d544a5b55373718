"""release(con, name, call): table and comments in one transaction; measures read them first."""

import re

import duckdb
import pytest

import duckdb_anon
from duckdb_anon import AnonError
from duckdb_anon.cli import main

ROLES = "qi := ['age', 'edu'], sensitive := 'disease', hierarchies := {'edu': 'edu tree'}"


def make(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("""
        create table people as
        select (i * 7) % 50 as age, ['BA', 'MA', 'PhD', 'none'][i % 4 + 1] as edu, i % 2 as sex, 'd' || (i % 6) as disease
        from range(400) t(i)""")
    con.execute("""create table "edu tree" as
        from (values ('BA', 'univ', '*'), ('MA', 'univ', '*'), ('PhD', 'univ', '*'), ('none', 'none yet', '*'))""")


@pytest.fixture
def people(con):
    make(con)
    return con


def comments(con: duckdb.DuckDBPyConnection, table: str) -> tuple[str, dict[str, str]]:
    said = con.execute("select comment from duckdb_tables() where table_name = ?", [table]).fetchall()[0][0]
    rows = con.execute(
        "select column_name, comment from duckdb_columns() where table_name = ? and comment is not null", [table]
    ).fetchall()
    return said, dict(rows)


def test_a_release_says_what_it_is(people):
    said = duckdb_anon.release(people, "r", f"mondrian('people', k := 4, keep := 'sex', {ROLES})", independent=True)
    table, columns = comments(people, "r")
    assert table == said
    assert said.startswith("anon: release of people by mondrian(k := 4) on 20")
    version = re.escape(duckdb_anon.__version__)
    assert re.search(rf" with duckdb-anon {version} rows 400:\d+ digest [0-9a-f]{{64}} seal [0-9a-f]{{64}}$", said)
    assert columns == {
        "age": "anon: quasi", "edu": 'anon: quasi hierarchy="edu tree"', "disease": "anon: sensitive",
        "sex": "anon: insensitive",
    }  # fmt: skip
    # classes are found without a single argument
    assert people.execute("from k_anonymity('r')").fetchall()[0][0] >= 4


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("muko('people', 0.2)", "did you mean 'muco'"), ("muco('people', 0.2) limit 3", "is not one call"),
        ("muco('people', 0.2); drop table people", "is not one call"), ("people", "is not one call"),
        ("k_anonymity('people')",
         "is not a method: it looks at tables .*; methods near it are .*incognito.*mondrian"),
        ("rr_risk('people')", "is not a method: it looks at tables .*; methods near it are rr_distort$"),
        ("describe_release('people')", "is not a method: .*; methods are anatomy, .*muco.*, slicing"),
        (f"muco('people', 7, {ROLES})", "delta := 7"),
        (f"muco('people', 0.2, row_id := true, {ROLES})", "row_id := true ties rows"),
        (f"muco('people', 0.2, seed := 20261122, {ROLES})", "seed := ... makes no release"),
        (f"muco('people', 0.2, seed := 170141183460469231731687303715884105727, {ROLES})",
         "seed := ... makes no release"),
        (f"mondrian('people', k := 4000, {ROLES})", "mondrian: "),
    ],
)  # fmt: skip
def test_nothing_is_left_when_a_call_fails(people, call, reason):
    before = people.execute("show tables").fetchall()
    with pytest.raises(AnonError, match=reason):
        duckdb_anon.release(people, "r", call, independent=True)
    assert people.execute("show tables").fetchall() == before
    people.execute("begin")  # no transaction was left open
    people.execute("rollback")


def test_an_open_transaction_and_a_taken_name_are_refused(people):
    people.execute("begin")
    with pytest.raises(AnonError, match="a transaction is open"):
        duckdb_anon.release(people, "r", f"muco('people', 0.2, {ROLES})", independent=True)
    people.execute("rollback")
    with pytest.raises(AnonError, match="a table people already"):
        duckdb_anon.release(people, "people", f"muco('people', 0.2, {ROLES})", independent=True)
    duckdb_anon.release(people, "r", f"muco('people', 0.2, {ROLES})", independent=True)
    with pytest.raises(AnonError, match="a table R already"):
        duckdb_anon.release(people, "R", f"muco('people', 0.2, {ROLES})", independent=True)
    duckdb_anon.release(people, "r", f"muco('people', 0.25, {ROLES})", replace=True, independent=True)
    assert "delta := 0.25" in comments(people, "r")[0]


def test_a_name_is_taken_where_it_points_and_nowhere_else(people):
    people.execute("attach ':memory:' as other; create table other.r as select 1 as x; create schema apart")
    people.execute("create view apart.r as select 1 as x; create temp table hidden as select 1 as x")
    call = f"muco('people', 0.2, {ROLES})"
    duckdb_anon.release(people, "r", call, independent=True)
    for name in ("other.r", "other.main.R", "apart.r", "hidden", "main.r"):
        with pytest.raises(AnonError, match=f"a table {name} already"):
            duckdb_anon.release(people, name, call, independent=True)
    duckdb_anon.release(people, "apart.s", call, independent=True)
    people.execute("""attach ':memory:' as "DÄ"; create table "DÄ".t as select 1 as x""")
    with pytest.raises(AnonError, match="already"):
        duckdb_anon.release(people, '"dÄ".T', call, independent=True)
    for free in ('"Ä"', '"ä"', '"DÄ".u'):  # letters beyond Z are told apart, as DuckDB does
        duckdb_anon.release(people, free, call, independent=True)
    assert (
        people.execute("select count(*) from apart.s").fetchone()
        == people.execute("from (select count(*) from r)").fetchone()
    )
    duckdb_anon.release(people, "other.s", call, independent=True)


def test_measures_read_the_release_before_the_original(people):
    people.execute("comment on column people.sex is 'anon: quasi'")  # not what the release was made with
    people.execute("comment on column people.disease is 'anon: sensitive'")
    duckdb_anon.release(people, "r", f"mondrian('people', k := 4, {ROLES})", independent=True)
    loss = people.execute("select attribute from information_loss('people', 'r')").fetchall()
    assert {name for (name,) in loss} >= {"age", "edu"} and ("sex",) not in loss
    people.execute("from workload_error('people', 'r', n := 20, dims := 2, seed := 1)").fetchall()
    people.execute("""select original, estimate, low, high from relative_error('select count(*) from people where edu = ''BA''',
        'people', 'r')""")
    truth, estimate, low, high = people.fetchone()
    assert truth == 100 and low <= truth <= high and abs(estimate - truth) < 60


def test_describe_release_tells_it_in_rows(people):
    duckdb_anon.release(people, "r", f"mondrian('people', k := 4, keep := 'sex', {ROLES})", independent=True)
    rows = people.execute("select fact, name, value, words from describe_release('r')").fetchall()
    told = {(fact, name): (value, words) for fact, name, value, words in rows}
    assert told["rows", None][0] == "400"
    assert told["parameter", "k"][0] == "4"
    assert told["original", "people"]
    assert "intervals of INTEGER" in told["column", "age"][1] or "intervals of BIGINT" in told["column", "age"][1]
    assert "nodes of the hierarchy edu tree" in told["column", "edu"][1]
    undeclared = people.execute("select words from describe_release('people') where fact = 'release'").fetchall()
    assert "does not say that it is a release" in undeclared[0][0]


def test_a_parquet_file_carries_its_description(people, tmp_path):
    file = tmp_path / "r.parquet"
    said = duckdb_anon.release(people, str(file), f"mondrian('people', k := 4, {ROLES})", independent=True)
    assert [p.name for p in tmp_path.iterdir()] == ["r.parquet"]
    # parquet_kv_metadata is DuckDB's own reading
    kept = dict(people.execute(f"select decode(key), decode(value) from parquet_kv_metadata('{file}')").fetchall())
    assert kept["anon"] == said and kept["anon.column.edu"] == 'anon: quasi hierarchy="edu tree"'
    assert people.execute(f"from k_anonymity('{file}')").fetchall()[0][0] >= 4
    assert ("method", "mondrian") in people.execute(f"select fact, name from describe_release('{file}')").fetchall()
    with pytest.raises(AnonError, match="exists"):
        duckdb_anon.release(people, str(file), f"mondrian('people', k := 4, {ROLES})", independent=True)
    duckdb_anon.release(people, "s", f"slicing('people', 2, {ROLES})", independent=True)
    other = tmp_path / "s.parquet"
    duckdb_anon.write_parquet(people, "s", str(other))
    assert people.execute(f"select l from slicing_diversity('people', '{other}')").fetchall()[0][0] >= 2


def test_shell_and_command_line_write_the_same(tmp_path, capsys):
    file = str(tmp_path / "p.duckdb")
    with duckdb_anon.connect(file) as con:
        make(con)
    assert main(["release", file, "a", f"mondrian('people', k := 4, {ROLES})"]) == 0
    roles = ROLES.replace("'", "''")
    call = f"mondrian(''people'', k := 4, {roles})"
    assert main([file, "-c", f"from anon_release('b', '{call}', independent := true)"]) == 0
    assert "anon: release of people by mondrian(k := 4)" in capsys.readouterr().out
    assert main([file, "-c", f"from anon_release('c', '{call[:-1]}, seed := 3)')"]) == 1
    assert "makes no release" in capsys.readouterr().err
    with duckdb.connect(file) as con:
        (first, columns), (second, same) = comments(con, "a"), comments(con, "b")
        assert columns == same and first != second  # a seal is of all that a description says
        assert first.split(" seal ")[0] == second.replace(" independent of earlier releases", "").split(" seal ")[0]
        assert {name for (name,) in con.execute("show tables").fetchall()} == {"a", "b", "people", "edu tree"}
