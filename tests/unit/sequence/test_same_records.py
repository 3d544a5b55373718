"""An original is recognized by its records, whatever it is called; tables of other individuals are not taken for it."""

import re

import pytest

import duckdb_anon
from duckdb_anon import AnonError
from duckdb_anon.engine.records.register import registered
from duckdb_anon.engine.sql_quoting import literal

ROLES = "qi := ['age', 'gender', 'education'], sensitive := 'salary'"


@pytest.fixture
def released(people, tmp_path):
    """A table of 600 records that has been released, and copies of it."""
    duckdb_anon.release(people, "r1", f"anatomy('people', 4, {ROLES})", key="person_id")
    people.execute(f"""
        create table copy as from people order by hash(person_id);
        copy people to '{tmp_path}/a.parquet'; copy people to '{tmp_path}/a.csv';
        create table names as select distinct education, upper(education) as title from people;
        create view joined as select people.*, title from people join names using (education);
        create macro persons() as table from people; create table few as select person_id from people where age > 30;
        create table typed as select age::double as age, gender, education::varchar as education, salary::varchar as salary
          from people;
        create table translated as select age as jahre, gender as geschlecht, education as bildung, salary as lohn from people;
        create table narrow as select p.age, p.gender, p.salary, p.education from people as p order by salary limit 150;
        create table changed as select * replace (case when person_id % 7 = 0 then age + 1 else age end as age) from people;
        create table more as from people union all from pool;
        create table coded as select 2020 - age as born, gender, salary % 10 as salary, person_id * 7919 as code from people;
        alter table r1 rename to r""")
    (tmp_path / "link.parquet").symlink_to(tmp_path / "a.parquet")
    return people


def test_the_same_records_under_another_name_are_refused(released, tmp_path):
    passed = []
    for table in (
        "copy", "joined", "(from people where person_id in (select person_id from few))",
        "(from query_table('people'))", "(from persons())", f"{tmp_path}/*.parquet", f"{tmp_path}/link.parquet",
        f"(from read_parquet('{tmp_path}/a.parquet'))", f"{tmp_path}/a.csv", "typed", "narrow", "changed", "more",
    ):  # fmt: skip
        call = f"anatomy({literal(table)}, 4, {ROLES})"
        try:
            duckdb_anon.release(released, "r2", call, replace=True)
            passed.append(table)
        except AnonError as error:
            assert error.code == "released-before"
            assert re.search(r"has \d+% of its records in common with people", str(error)), table
    assert passed == []


def test_renamed_tables_and_columns_are_refused(released):
    released.execute("alter table people rename to p2")
    for call in (
        f"anatomy('p2', 4, {ROLES})",
        "anatomy('translated', 4, qi := ['jahre', 'geschlecht', 'bildung'], sensitive := 'lohn')",
        "mondrian('joined', 4, qi := ['age', 'gender', 'education'], sensitive := 'title')",
    ):
        if "joined" in call:
            released.execute("alter table p2 rename to people")
        with pytest.raises(AnonError, match="% of its records in common with people"):
            duckdb_anon.release(released, "r2", call)


def test_a_renamed_table_is_continued(released):
    released.execute("alter table r rename to r1; alter table people rename to p2")
    released.execute("insert into p2 from pool limit 100")
    said = duckdb_anon.release(released, "r2", f"anatomy('p2', 4, {ROLES})", previous="r1")
    assert "100 new records published" in said
    assert {entry.original for entry in registered(released, "memory")} == {"people"}
    assert released.execute("select count(*) from sequence_risk('p2', ['r1', 'r2'], targets := 20)").fetchall() == [
        (3,)
    ]
    # its new records are recognized as those of its first release are
    released.execute("create table arrived as from pool limit 100")
    with pytest.raises(AnonError, match="100% of its records in common with people"):
        duckdb_anon.release(released, "r3", f"anatomy('arrived', 4, {ROLES})")


def test_individuals_are_recognized_by_keys_that_are_no_numbers_of_rows(people):
    people.execute("create table coded as select md5(person_id::varchar) as code, * from people")
    people.execute("create table born as select code, 2020 - age as born, gender, salary // 7 as pay from coded")
    people.execute("create table visits as select code, salary % 5 as ward, age % 3 as test from coded")
    people.execute("create table others as select 'P' || row_number() over () as code, born, gender, pay from born")
    duckdb_anon.release(people, "r1", f"anatomy('coded', 4, {ROLES})", key="code")
    with pytest.raises(AnonError, match="100% of its records in common with coded"):
        duckdb_anon.release(people, "r2", "mondrian('born', 4, qi := ['born', 'gender'], sensitive := 'pay')")
    # other facts about the same individuals, and rows that are merely numbered alike
    duckdb_anon.release(people, "r3", "mondrian('visits', 4, qi := ['test'], sensitive := 'ward')", key="code")
    people.execute("create table numbered as select 'P' || person_id as code, gender, age % 4 as young from people")
    people.execute(
        "create table wards as select 'P' || person_id as code, gender, age % 3 as ward from pool where "
        "(person_id - 1000) <= 600"
    )
    people.execute("update wards set code = 'P' || (code[2:]::integer - 1000)")
    duckdb_anon.release(people, "r4", "mondrian('numbered', 4, qi := ['gender'], sensitive := 'young')", key="code")
    duckdb_anon.release(people, "r5", "mondrian('wards', 4, qi := ['gender'], sensitive := 'ward')", key="code")


@pytest.mark.parametrize("columns", [["age", "gender"], ["age", "gender", "education"]])
def test_tables_of_other_individuals_pass(con, columns):
    con.execute(
        "create table census as select row_number() over () as id, * from anon_sample('census', 4000, seed := 3)"
    )
    roles = f"qi := {columns}, sensitive := 'salary'"
    for part, condition in (("one", "hash(id) % 2 = 0"), ("two", "hash(id) % 20 = 1"), ("three", "hash(id) % 20 > 10")):
        con.execute(f"create table {part} as from census where {condition} and (hash(id) % 2 = 0) = ('{part}' = 'one')")
        assert duckdb_anon.release(con, f"of_{part}", f"mondrian('{part}', 5, {roles})")


def test_samples_hold_no_value_and_leave_with_their_release(released):
    stored = released.execute("select kind, columns, hashes from anon.samples order by kind").fetchall()
    assert [kind for kind, *_ in stored] == ["key", "quasi", "record"]
    hashes = {number for _, _, hashed in stored for number in hashed}
    guesses = released.execute("""select (md5_number(concat('key ', person_id)) >> 64)::ubigint from people
        union all select hash(person_id) from people""").fetchall()
    assert not hashes & {number for (number,) in guesses}
    released.execute("delete from anon.releases")
    assert duckdb_anon.release(released, "r2", f"anatomy('copy', 4, {ROLES})")
