"""From a database file to a release of all its tables: a first plan, run, checks, nothing on failure, nothing twice."""

import os
import signal
import subprocess
import sys
import time
import tomllib

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.cli import main

pytestmark = pytest.mark.campaign

PLAN = """
[tables]
patients = "hospital.duckdb:patients"
visits = "hospital.duckdb:visits"
[labels.patients]
birth = "quasi"
sex = "quasi"
[labels.visits]
day = "quasi"
ward = "quasi"
disease = "sensitive"
[treatments.visits]
discharge = "shift(days := 60)"
[database]
force = ["visits.discharge"]
individuals = "patients"
key = "id"
k = 4
output = "release.duckdb"
keys.visits.patient = "patients.id"
[database.checks]
identity = 0.35
"""


@pytest.fixture
def folder(tmp_path):
    con = duckdb.connect(str(tmp_path / "hospital.duckdb"))
    con.execute("""create table patients as select i as id, 'Ann ' || i as name, date '1940-01-01' + (i * 7919 % 25000)::int as birth,
        case i % 2 when 0 then 'f' else 'm' end as sex from range(150) t(i)""")
    con.execute("""create table visits as select i as visit_id, i % 150 as patient, date '2024-01-01' + (i * 31 % 360)::int as day,
        'ward ' || i % 5 as ward, 'd' || i % 11 as disease, date '2024-01-05' + (i * 31 % 360)::int as discharge
        from range(280) t(i)""")
    con.execute("create table labs as select i as lab_id, i % 280 as visit_id, i / 7 as value from range(300) t(i)")
    con.close()
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    return tmp_path


def test_run_writes_one_file_that_joins_and_a_second_run_keeps_it(folder, capsys):
    assert main(["run", str(folder / "plan.toml")]) == 0
    printed = capsys.readouterr()
    assert "the tables were released" in printed.out and "and three events" in printed.err
    con = duckdb.connect(str(folder / "release.duckdb"), read_only=True)
    con.execute("""select count(*), count(*) filter (discharge between day.lower - 60 and day.upper + 64)
        from visits join patients on patient = id""")
    joined, spans = con.fetchone()
    assert joined == con.execute("select count(*) from visits").fetchall()[0][0] == spans > 200
    assert "name" not in {column for column, *_ in con.execute("describe patients").fetchall()}
    con.close()
    before = (folder / "release.duckdb").stat()
    assert main(["run", str(folder / "plan.toml")]) == 0
    assert "kept, nothing has changed" in capsys.readouterr().out
    assert (folder / "release.duckdb").stat().st_mtime_ns == before.st_mtime_ns
    assert before.st_mode & 0o007 == 0


def test_a_changed_table_is_not_released_twice_unless_the_plan_says_independent(folder, capsys):
    assert main(["run", str(folder / "plan.toml")]) == 0
    con = duckdb.connect(str(folder / "hospital.duckdb"))
    con.execute("delete from visits where visit_id = 7")
    con.close()
    assert main(["run", "--force", str(folder / "plan.toml")]) == 1
    assert "released before" in capsys.readouterr().err
    text = PLAN.replace('key = "id"', 'key = "id"\nindependent = true')
    (folder / "plan.toml").write_text(text, encoding="utf-8")
    assert main(["run", str(folder / "plan.toml")]) == 0


def test_a_check_that_fails_or_a_kill_leaves_nothing(folder, capsys):
    strict = PLAN.replace("identity = 0.35", "identity = 0.001")
    (folder / "plan.toml").write_text(strict, encoding="utf-8")
    assert main(["run", str(folder / "plan.toml")]) == 3
    assert "0.001 is required" in capsys.readouterr().err
    assert not (folder / "release.duckdb").exists() and not list(folder.glob("*.state.json"))
    (folder / "plan.toml").write_text(PLAN, encoding="utf-8")
    command = [sys.executable, "-m", "duckdb_anon.cli", "run", str(folder / "plan.toml")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    process.stderr.readline()
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()
    assert not (folder / "release.duckdb").exists() and not list(folder.glob("*.state.json"))
    assert main(["run", str(folder / "plan.toml")]) == 0
    assert not list(folder.glob("*.part*"))


def test_a_first_plan_finds_keys_and_runs(folder, capsys):
    pytest.importorskip("stdnum", reason="the profile extra is not installed")
    (folder / "plan.toml").unlink()
    assert main(["plan", str(folder / "hospital.duckdb"), "-o", str(folder / "plan.toml"), "-k", "3"]) == 0
    plan = tomllib.loads((folder / "plan.toml").read_text(encoding="utf-8"))
    assert plan["database"]["keys"] == {"visits.patient": "patients.id", "labs.visit_id": "visits.visit_id"}
    assert (plan["database"]["individuals"], plan["database"]["key"], plan["database"]["k"]) == ("patients", "id", 3)
    assert plan["labels"]["patients"]["name"] == "identifier" and plan["labels"]["visits"]["day"] == "quasi"
    assert plan["labels"]["visits"]["discharge"] == "quasi" and "visits" not in plan["treatments"]
    text = (folder / "plan.toml").read_text(encoding="utf-8").replace("identity =", "# identity =")
    (folder / "plan.toml").write_text(text, encoding="utf-8")
    assert main(["run", str(folder / "plan.toml")]) == 0
    con = duckdb.connect(str(folder / "hospital_release.duckdb"), read_only=True)
    assert con.execute("""select count(*) > 0 from labs join visits using (visit_id)
        join patients on patient = id""").fetchone() == (True,)
    con.close()
    assert main(["plan", str(folder / "hospital.duckdb"), "-o", str(folder / "plan.toml")]) == 1
    assert "exists" in capsys.readouterr().err


def test_declared_keys_come_first(tmp_path):
    pytest.importorskip("stdnum", reason="the profile extra is not installed")
    con = duckdb_anon.connect(str(tmp_path / "shop.duckdb"))
    con.execute("create table customer (nr integer primary key, city varchar)")
    con.execute("create table orders (nr integer primary key, buyer integer references customer (nr), day date)")
    con.execute("insert into customer select i, 'c' || i % 3 from range(30) t(i)")
    con.execute("insert into orders select i, i % 30, date '2024-01-01' + i::int from range(60) t(i)")
    from duckdb_anon.database.first_plan import first_plan

    plan = tomllib.loads(first_plan(con, "shop.duckdb"))
    assert plan["database"]["keys"] == {"orders.buyer": "customer.nr"}
    assert plan["database"]["delta"] == 0.1 and "k" not in plan["database"]


def test_a_first_plan_of_a_file_of_rows_runs(tmp_path, capsys):
    rows = "".join(f"{i};{20 + i % 40};{i % 3};d{i % 7}\n" for i in range(300))
    (tmp_path / "people.csv").write_text("pid;age;sex;diagnosis\n" + rows, encoding="utf-8")
    plan = tmp_path / "plan.toml"
    assert main(["plan", str(tmp_path / "people.csv"), "-o", str(plan), "-k", "4"]) == 0
    found = tomllib.loads(plan.read_text(encoding="utf-8"))
    assert found["tables"] == {"people": "people.csv"}
    assert found["labels"]["people"] == {"pid": "identifier", "age": "quasi", "sex": "quasi", "diagnosis": "sensitive"}
    assert [(r["original"], r["checks"]["k"]) for r in found["releases"]] == [("people", 4)]
    assert "# purpose" in plan.read_text(encoding="utf-8")
    assert main(["run", str(plan)]) == 0 and (tmp_path / "people_release.parquet").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("k = 4", "kk = 4", "unknown 'kk'"),
        ("k = 4", "", "no promise is named"),
        ("release.duckdb", "release.parquet", "ends in .duckdb"),
        ("k = 4", 'k = 4\nevidence = "page.pdf"', "ends in .html"),
        ("[treatments.visits]", "[treatments.visit]", "unknown 'visit'"),
        ("keys.visits.patient", "keys.visit.patient", "unknown 'visit'"),
        ("shift(days := 60)", "shift(weeks := 6)", "no parameter 'weeks'"),
        ("identity = 0.35", "identitty = 0.35", "unknown 'identitty'"),
    ],
)
def test_a_plan_with_a_mistake_is_refused(folder, capsys, old, new, message):
    (folder / "plan.toml").write_text(PLAN.replace(old, new), encoding="utf-8")
    assert main(["run", str(folder / "plan.toml")]) == 1
    assert message in capsys.readouterr().err
    assert not (folder / "release.duckdb").exists()
