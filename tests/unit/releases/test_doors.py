"""Every door that writes a release passes the same checks, and nothing of the original lies where others read."""

import json
import os
from pathlib import Path

import duckdb
import pytest

import duckdb_anon
from duckdb_anon import AnonError
from duckdb_anon.cli import main
from duckdb_anon.engine.records.private_files import folder_for, private_root

pytestmark = pytest.mark.campaign

ROLES = "qi := ['age'], sensitive := 'disease'"
PLAN = """
[tables]
people = "o.duckdb:people"
other = "o.duckdb:people"
[[releases]]
name = "r"
original = "{original}"
call = "{call}"
output = "r.parquet"
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "private").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "private"))
    with duckdb.connect(str(tmp_path / "o.duckdb")) as con:
        con.execute("""create table people as select (i * 7) % 50 as age, 'd' || i % 6 as disease, 'code ' || i * 7919 as contact,
            'Code ' || i * 7919 as name from range(400) t(i)""")
        con.execute("comment on column people.name is '/srv/in.csv; anon: identifier'")
    return tmp_path


def by_publish(place: Path, call: str) -> None:
    assert main(["release", str(place / "o.duckdb"), "r", call]) == 0
    assert main(["publish", str(place / "o.duckdb"), str(place / "r.duckdb")]) == 0


def by_release(place: Path, call: str) -> None:
    assert main(["release", str(place / "o.duckdb"), str(place / "r.parquet"), call]) == 0


def by_parts(place: Path, call: str) -> None:
    assert main(["release", str(place / "o.duckdb"), str(place / "r.parquet"), call, "--part-rows", "1000"]) == 0


def by_plan(place: Path, call: str) -> None:
    (place / "plan.toml").write_text(PLAN.format(original="people", call=call), encoding="utf-8")
    assert main(["run", str(place / "plan.toml")]) == 0


def by_write_parquet(place: Path, call: str) -> None:
    with duckdb_anon.connect(str(place / "o.duckdb")) as con:
        duckdb_anon.release(con, "r", call)
        try:
            duckdb_anon.write_parquet(con, "r", str(place / "r.parquet"))
        except AnonError as error:
            print(error)
            raise AssertionError from error


DOORS = (by_publish, by_release, by_parts, by_plan, by_write_parquet)


@pytest.mark.parametrize("door", DOORS)
def test_every_door_refuses_what_protects_nothing_and_what_carries_identifiers(place, capsys, door):
    for call, reason in (
        (f"mondrian('people', k := 1, {ROLES})", "protects nothing"),
        (f"mondrian('people', k := 5, keep := 'contact', {ROLES})", "column 'contact' of"),
    ):
        with pytest.raises(AssertionError):
            door(place, call)
        found = capsys.readouterr()
        assert reason in found.out + found.err
        assert not any(place.glob("r.*"))
        with duckdb.connect(str(place / "o.duckdb")) as con:
            con.execute("drop table if exists r; drop schema if exists anon cascade")


@pytest.mark.parametrize("door", DOORS)
def test_files_are_read_by_owner_and_group_alone(place, door):
    door(place, f"mondrian('people', k := 5, {ROLES})")
    (made,) = place.glob("r.*")
    assert made.stat().st_mode & 0o777 == 0o640
    assert b"/srv" not in made.read_bytes() and b"Code" not in made.read_bytes()
    assert list((place / "private").glob("*/parts-*")) == []


def test_a_plan_checks_the_table_that_it_releases(place, capsys):
    (place / "plan.toml").write_text(
        PLAN.format(original="other", call=f"mondrian('people', k := 5, {ROLES})"), encoding="utf-8"
    )
    assert main(["run", str(place / "plan.toml")]) == 1
    assert "Name one table in call and original" in capsys.readouterr().err
    assert not (place / "r.parquet").exists()


def test_a_plans_state_tells_nothing_of_the_original_without_its_key(place):
    by_plan(place, f"mondrian('people', k := 5, {ROLES})")
    state, key = place / ".plan.toml.state.json", place / ".plan.toml.key"
    first = json.loads(state.read_text(encoding="utf-8"))
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in (state, key))
    for file in (key, place / ".plan.toml.register.duckdb"):
        file.unlink()
    (place / "r.parquet").unlink()
    by_plan(place, f"mondrian('people', k := 5, {ROLES})")
    assert json.loads(state.read_text(encoding="utf-8")) != first


def test_a_table_that_is_no_release_is_not_written(place):
    with duckdb_anon.connect(str(place / "o.duckdb")) as con:
        with pytest.raises(AnonError, match="people is not declared a release"):
            duckdb_anon.write_parquet(con, "people", str(place / "r.parquet"))
        con.execute("create table r as select age // 10 as tens from people; comment on table r is 'anon: release'")
        with pytest.raises(AnonError, match="does not record the digest"):
            duckdb_anon.write_parquet(con, "r", str(place / "r.parquet"))
        duckdb_anon.write_parquet(con, "r", str(place / "r.parquet"), allow=True)


def test_a_folder_that_is_open_to_others_is_not_used(place):
    root = private_root()
    assert root.stat().st_mode & 0o777 == 0o700
    assert folder_for("parts", "a") == folder_for("parts", "a") != folder_for("parts", "b")
    root.chmod(0o755)
    with pytest.raises(AnonError, match="does not belong to this user alone"):
        private_root()
    root.chmod(0o700)
    root.rename(place / "elsewhere")
    os.symlink(place / "elsewhere", root)
    with pytest.raises(AnonError, match="does not belong to this user alone"):
        private_root()


def test_what_duckdb_spills_lies_in_the_private_folder(place):
    for database in (":memory:", str(place / "o.duckdb")):
        with duckdb_anon.connect(database) as con:
            folder = Path(con.execute("select current_setting('temp_directory')").fetchall()[0][0])
            assert folder.parent == private_root()
            con.execute("set memory_limit = '60MB'; set threads = 1")
            con.execute("create temp table t as select i, sha256(i::varchar) as s from range(800000) r(i)")
            con.execute("select count(*) from (select s from t order by s)").fetchall()
            assert folder.exists()
        assert not folder.exists()
