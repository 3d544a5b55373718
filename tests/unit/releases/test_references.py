"""Keys of individuals do not leave through another table, by declared foreign keys at any distance or by their numbers."""

import duckdb
import pytest

import duckdb_anon
from duckdb_anon import AnonError, release, release_database
from duckdb_anon.gate.references import reference_of
from duckdb_anon.gate.source_tables import tables_of
from duckdb_anon.serve.publish import publish


@pytest.fixture
def hospital(con):
    """The number of the patient stands in visits as pid and in labs, two links away, under a name of its own."""
    con.execute("create table patients as select i as id, 20 + i % 50 as age from range(400) t(i)")
    con.execute("create table visits as select 1000 + i as visit, i % 400 as pid, i % 9 as ward from range(900) t(i)")
    con.execute("""create table labs as select 1000 + i as visit, i % 400 as pat, i % 7 as level, i % 5 as site
        from range(900) t(i)""")
    for column, role in {
        "patients.id": "identifier", "patients.age": "quasi", "visits.ward": "quasi", "labs.pat": "insensitive",
        "labs.level": "insensitive",
    }.items():  # fmt: skip
        con.execute(f"comment on column {column} is 'anon: {role}'")
    return con


@pytest.mark.parametrize("kind", ["integer", "double", "varchar"])
def test_a_release_does_not_carry_the_keys_of_another_table(hospital, tmp_path, kind):
    hospital.execute(f"alter table labs alter pat type {kind}")
    for name in ("r", str(tmp_path / "r.parquet")):
        with pytest.raises(AnonError, match=r"'pat' of labs has the numbers of 'id' of patients") as caught:
            release(hospital, name, "mondrian('labs', 5, qi := ['site'])")
        assert caught.value.code == "key-column"
    release(hospital, "r", "mondrian('labs', 5, qi := ['site'], force := true)")


@pytest.mark.parametrize(("label", "linked"), [("'anon: identifier'", True), ("null", False)])
def test_a_database_keeps_keys_two_links_away(hospital, label, linked):
    hospital.execute(f"comment on column patients.id is {label}")
    keys = {"visits.pid": "patients.id", "labs.visit": "visits.visit"}
    options = {"individuals": "patients", "key": "id", "k": 5, "keys": keys, "linked": linked}
    with pytest.raises(AnonError, match=r"'pat' of labs has the numbers of 'id' of patients"):
        release_database(hospital, ["patients", "visits", "labs"], **options)
    release_database(hospital, ["patients", "visits", "labs"], treatments={"labs": {"pat": "pseudonym"}}, **options)
    assert (
        hospital.execute(
            "select count(*) from release.labs l join patients p on l.pat::varchar = p.id::varchar"
        ).fetchall()[0][0]
        == 0
    )
    forced = {**options, "force": ["labs.pat"], "independent": True, "replace": True}
    release_database(hospital, ["patients", "visits", "labs"], **forced)


def test_keys_of_attached_databases_count(hospital):
    hospital.execute(
        "attach ':memory:' as other; create table other.staff as select i * 7919 % 100003 as nr from range(300) t(i)"
    )
    hospital.execute("comment on column other.staff.nr is 'anon: identifier'")
    hospital.execute("update labs set level = (level + pat) * 7919 % 100003")
    hospital.execute("comment on column labs.pat is null; delete from labs where pat > 250")
    with pytest.raises(AnonError, match=r"'level' of labs has the numbers of 'nr' of staff"):
        release(hospital, "r", "mondrian('labs', 5, qi := ['site'])")


def test_publish_refuses_them(tmp_path):
    con = duckdb_anon.connect(str(tmp_path / "h.duckdb"))
    con.execute("create table labs as select i % 400 as owner, i % 5 as site from range(900) t(i)")
    con.execute("comment on column labs.owner is 'anon: insensitive'")
    release(con, "r", "mondrian('labs', 5, qi := ['site'])")
    con.execute("create table patients as select i as id from range(400) t(i)")
    con.execute("comment on column patients.id is 'anon: person'")
    con.close()
    with pytest.raises(AnonError, match=r"'owner' of r has the numbers of 'id' of patients"):
        publish(str(tmp_path / "h.duckdb"), str(tmp_path / "out.duckdb"))


def test_methods_know_declared_foreign_keys_at_any_distance(con):
    con.execute("create table a (id integer primary key, age integer)")
    con.execute("create table b (id integer primary key references a (id))")
    con.execute("create table c (ref integer references b (id), site integer)")
    con.execute("insert into a select i, i from range(20) t(i)")
    con.execute("insert into b select id from a")
    con.execute("insert into c select id, id % 2 from b")
    call = "from mondrian('c', 2, qi := ['site'], keep := ['ref'])"
    con.execute(call)
    con.execute("comment on column a.id is 'anon: identifier'")
    with pytest.raises(duckdb.Error, match=r"keep names ref, labelled identifier in a"):
        con.execute(call)
    con.execute(call.replace("'ref']", "'ref'], force := true"))


@pytest.mark.campaign
@pytest.mark.parametrize("first", [0, 1, 1000])
@pytest.mark.parametrize("many", [40, 60, 150, 400, 1000, 20000])
def test_numbers_of_real_tables_are_no_keys_and_references_are(con, shared_data, first, many):
    con.execute(f"create table keys as select {first} + i as id from range({many}) t(i)")
    con.execute("comment on column keys.id is 'anon: identifier'")
    for name in ("census", "adult", "visits"):
        for rows in (300, 3000, 1_000_000):
            con.execute(
                f"create or replace table {name}_{rows} as from read_csv('{shared_data / f'{name}.csv'}') using sample {rows} rows (reservoir, 1)"
            )
    found = tables_of(con)
    keys = next(table for table in found if table.name == "keys")
    alarms = {table.name: reference_of(con, table, table.columns, [keys]) for table in found if table is not keys}
    assert not any(alarms.values()), alarms
    for share in (1, 0.6, 0.3):
        con.execute(f"""create or replace table refs as select id as x, random() as r from keys, range(3)
            where hash(id, {first}) % 1000 < {share * 1000}""")
        [refs] = [table for table in tables_of(con) if table.name == "refs"]
        wanted = many * share >= 50
        assert (reference_of(con, refs, ["x"], [keys]) is not None) >= wanted
