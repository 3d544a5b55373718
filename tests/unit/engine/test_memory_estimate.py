"""A call that will not fit says so before it starts, and the command it names works."""

import re
import shlex

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.cli import main

pytestmark = [pytest.mark.campaign, pytest.mark.weekly]

ROWS = 300_000
ROLES = "qi := ['a', 'b', 'c'], sensitive := 's'"


def fill(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(f"""create table big as select i % 90 as a, i * 7 % 50 as b, i * 13 % 20 as c, i * 31 % 9 as s
        from range({ROWS}) r(i)""")


def test_the_message_names_rows_estimate_and_a_command_that_works(tmp_path):
    file = tmp_path / "people.duckdb"
    with duckdb_anon.connect(str(file)) as con:
        fill(con)
        con.execute("set memory_limit = '50MB'")
        with pytest.raises(duckdb.Error, match="300,000 rows, which takes about 96 MB in one call") as caught:
            con.execute(f"create table r as from mondrian('big', 50, {ROLES})")
        con.execute("set memory_limit = '4GB'")
    command = re.search(r"Work in parts: duckdb-anon (.*), or in Python", str(caught.value))
    arguments = shlex.split(command.group(1))
    assert arguments[:3] == ["release", str(file), "NAME"]
    assert main([*arguments[:-2], "--memory", "1GB", "--part-rows", "100000"]) == 0
    with duckdb.connect(str(file)) as con:
        assert con.execute("select count(*) from NAME").fetchall() == [(ROWS,)]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["people.duckdb"]


def test_the_python_call_of_the_message_works(con):
    fill(con)
    before = con.execute("select current_setting('memory_limit')").fetchall()[0][0]
    con.execute("set memory_limit = '50MB'")
    with pytest.raises(duckdb.Error, match=r"Work in parts: duckdb_anon\.release") as caught:
        con.execute(f"from muco('(from big where a >= 0)', 0.1, {ROLES})")
    con.execute(f"set memory_limit = '{before}'")
    command = re.search(r"Work in parts: (duckdb_anon.release\(.*\))", str(caught.value))
    said = eval(command.group(1))
    assert said.startswith("anon: release of a query by muco(delta := 0.1)")
    assert con.execute("select count(*) from NAME").fetchall() == [(ROWS,)]


def test_what_has_no_parts_says_so(con):
    fill(con)
    con.execute("set memory_limit = '50MB'")
    with pytest.raises(duckdb.Error, match=r"as a whole, so it cannot be worked in parts\. Raise"):
        con.execute(f"from incognito('big', 50, {ROLES})")


def test_a_view_whose_estimate_is_too_large_is_counted_before_it_is_refused(con):
    fill(con)
    con.execute("create view few as from big where hash(a, b, c, s) % 100000 < 200")
    con.execute("set memory_limit = '50MB'")
    rows = con.execute("select count(*) from few").fetchall()[0][0]
    assert con.execute(f"select count(*) from mondrian('few', 2, {ROLES})").fetchall() == [(rows,)]


def test_more_rows_than_a_list_can_number_are_refused_before_the_call_starts(con):
    con.execute("""create view huge as select i % 90 as a, i % 50 as b, i % 20 as c, i % 9 as s
        from range(2200000000) r(i)""")
    con.execute("set memory_limit = '9000GB'")
    with pytest.raises(duckdb.Error, match=r"has 2,200,000,000 rows, .* more than the 2,147,483,647 .* Work in parts"):
        con.execute(f"explain from mondrian('huge', 50, {ROLES})")
