"""Pages of random releases: whatever a release leaves out, contains twice or has no figure for, its page is written."""

import json
import random

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.engine.sql_quoting import ident, idents
from duckdb_anon.model.errors import AnonError
from duckdb_anon.report.anon_report import write_edition
from duckdb_anon.report.findings import Plan
from duckdb_anon.report.measure import measure
from duckdb_anon.report.release_context import HoldersContext

pytest.importorskip("altair", reason="the report extra is not installed")
pytest.importorskip("vl_convert", reason="the report extra is not installed")
COLUMNS = {
    "age": "case when range % 17 > 0 then 20 + range * 7 % 40 end",
    "sex": "['f', 'm', null][1 + range % 3]",
    "town": "['a', 'b', 'c'][1 + range * 5 % 3]",
    "day": "date '2020-01-01' + (range * 11 % 300)::integer",
    "ill": "['flu', 'hiv', 'cold', null][1 + range * 13 % 4]",
    "pay": "1000.5 + range * 31 % 97",
    "empty": "null::integer",
    "pid": "range // 2",
}
CALLS = ("mondrian('t', 3)", "muco('t', 0.3)", "anatomy('t', 2)", "rr_distort('t')", "microaggregate('t', 3)",
         "diffgen('t', 1.0)", "slicing('t', 2)", "incognito('t', 2)")  # fmt: skip


def random_release(con, rng, name):
    """A table that somebody may call a release of t."""
    calls, failures = rng.sample(CALLS, 3), 0
    for call in calls:
        try:
            if rng.random() < 0.4:
                duckdb_anon.release(con, name, call, independent=True)
                return
            con.execute(f"create table {name} as from {call}")
            break
        except (duckdb.Error, AnonError):
            failures += 1
    else:
        con.execute(f"create table {name} as from t limit 0")
    columns = [c for (c,) in con.execute(f"select column_name from (describe {name})").fetchall()]
    change = rng.choice(("none", "fewer columns", "no rows", "twice", "text", "nulls"))
    one = rng.choice(columns)
    if change == "fewer columns":
        kept = rng.sample(columns, rng.randint(1, len(columns)))
        con.execute(f"create or replace table {name} as select {idents(kept)} from {name}")
    elif change == "no rows":
        con.execute(f"delete from {name}")
    elif change == "twice":
        con.execute(f"insert into {name} from {name}")
    elif change == "text":
        con.execute(
            f"create or replace table {name} as select * replace ({ident(one)}::varchar as {ident(one)}) from {name}"
        )
    elif change == "nulls":
        con.execute(f"update {name} set {ident(one)} = null")


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(8))
def test_a_page_of_random_releases_is_written_in_every_edition(tmp_path, seed):
    rng = random.Random(seed)
    with duckdb_anon.connect(str(tmp_path / "t.duckdb")) as con:
        chosen = ["age", *rng.sample(list(COLUMNS)[1:], rng.randint(1, 6))]
        con.execute(f"create table t as select {', '.join(f'{COLUMNS[c]} as {c}' for c in chosen)} from range(60)")
        roles = {c: rng.choice(("quasi", "quasi", "sensitive", "insensitive", "identifier", "")) for c in chosen}
        for column, role in (roles | {"age": "quasi"}).items():
            if role:
                con.execute(f"comment on column t.{column} is 'anon: {role}'")
        names = [f"r{k}" for k in range(3)]
        for name in names:
            random_release(con, rng, name)
        con.execute("create table partial as select * exclude (age) from t")  # leaves out a labelled column
        names.append("partial")
        found = measure(con, Plan("t", tuple(names), targets=20, queries=8), HoldersContext(), lambda text: None)
    for edition in ("internal", "external", "short"):
        write_edition(found, str(tmp_path / "page.html"), edition)
        assert [r["name"] for r in json.loads((tmp_path / "page.json").read_text())["releases"]] == names
