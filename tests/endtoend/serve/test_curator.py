"""The curator's endpoint: the database itself, from the stock shell."""

from pathlib import Path
from typing import Any

import duckdb


def test_curator_anonymizes_and_measures_from_the_stock_shell(curator: Any) -> None:
    made = curator.rows("create or replace table mine as from muco('patients', 0.25, row_id := true)")
    assert made == [["2000"]]
    assert float(curator.rows("select identity from disclosure('patients', 'mine')")[0][0]) < 0.05
    assert float(curator.rows("from k_anonymity('patients')")[0][0]) >= 1
    assert curator.rows("select count(*) > 20 from anon_functions()") == [["true"]]


def test_curators_client_macro_hides_the_wire(curator: Any) -> None:
    found = curator.attached_rows(
        "create macro muco(t, delta) as table from r.query(format($$from muco('{}', {})$$, t, delta));\n"
        "select count(*) from muco('patients', 0.2)"
    )
    assert found == [["2000"]]


def test_serving_leaves_nothing_in_the_curators_file(serve: Any, tmp_path: Path) -> None:
    file = tmp_path / "plain.duckdb"
    con = duckdb.connect(str(file))
    con.execute("create table t as select 1 as a; create macro mine(x) as x + 1")
    con.close()
    with serve(file, "curator") as endpoint:
        assert endpoint.rows("select mine(1), (select count(*) > 0 from anon_functions())") == [["2", "true"]]
    con = duckdb.connect(str(file), read_only=True)
    assert con.execute("select function_name from duckdb_functions() where not internal").fetchall() == [("mine",)]
    con.close()


def test_curators_own_macro_is_not_overwritten(run: Any, tmp_path: Path) -> None:
    con = duckdb.connect(str(tmp_path / "own.duckdb"))
    con.execute("create macro muco(x) as table select x")
    con.close()
    code, said = run("serve", str(tmp_path / "own.duckdb"), "--role", "curator")
    assert code == 1
    assert "macros of its own called muco" in said
