"""The next release of a sequence: published rows stay, new records are grouped among themselves."""

from pathlib import Path
from typing import Any

import duckdb
import pytest

import duckdb_anon
from duckdb_anon import AnonError
from duckdb_anon.cli import main
from duckdb_anon.engine.records.register import numbered_rows, registered
from duckdb_anon.sequence.next_release import Next
from duckdb_anon.sequence.registration import Registration

CALLS = (
    "mondrian('people', 5)", "mondrian('people', 5, l := 2)", "anatomy('people', 3)",
    "slicing('people', 2, columns := [['age', 'gender'], ['education'], ['salary']])", "muco('people', 0.2)",
    "microaggregate('people', 5, categorical := ['gender', 'education'])",
)  # fmt: skip
MONDRIAN = CALLS[0]


def rows(con: duckdb.DuckDBPyConnection, query: str) -> int:
    return int(con.execute(f"select count(*) from ({query})").fetchall()[0][0])


def arrive(con: duckdb.DuckDBPyConnection, first: int, end: int) -> None:
    con.execute(f"insert into people from pool where person_id > 1000 + {first} and person_id <= 1000 + {end}")


@pytest.mark.parametrize("call", [CALLS[1], CALLS[2], CALLS[4]])
def test_published_rows_stay_to_the_byte(people, call):
    duckdb_anon.release(people, "r1", call, key="person_id")
    before = people.execute("select * exclude (deleted) from anon.records order by all").fetchall()
    arrive(people, 0, 200)
    people.execute("delete from people where person_id < 20; update people set age = age + 1 where person_id < 50")
    said = duckdb_anon.release(people, "r2", call, previous="r1")
    assert said.split("\n")[1] == (
        "continues r1: 200 new records published; 19 deleted records stay published; 30 records differ from what was "
        "published"
    )
    assert rows(people, "from r1 except all from r2") == 0 and rows(people, "from r2") == 800
    after = people.execute("select * exclude (deleted) from anon.records where release = 1 order by all").fetchall()
    assert after == before
    assert people.execute("select count(*) from anon.records where deleted = 2").fetchall() == [(19,)]
    groups = 'select "group" from anon.records where release = {}'
    assert rows(people, f"{groups.format(1)} intersect {groups.format(2)}") == (call.startswith("muco"))


def test_individuals_stay_in_their_groups(people):
    people.execute("insert into people select * replace (salary + 50 as salary) from people where person_id % 3 = 0")
    people.execute("""create table pay as select (i * 50)::varchar as leaf, i // 100 || 's', 'any'
        from range(20000) t(i)""")
    people.execute("comment on column people.person_id is 'anon: person'")
    calls = {"lists": "one_to_m_generalize('people', 4, 2, hierarchies := {'salary': 'pay'})", "boxes": MONDRIAN}
    for name, call in calls.items():
        duckdb_anon.release(people, f"{name}1", call, key="person_id", independent=True)
    arrive(people, 0, 150)
    people.execute("insert into people select * replace (salary + 100 as salary) from people where person_id < 10")
    for name, call in calls.items():
        said = duckdb_anon.release(people, f"{name}2", call, previous=f"{name}1")
        assert "150 new records published; 9 records differ" in said
        assert rows(people, f"from {name}1 except all from {name}2") == 0
        assert rows(people, f"from {name}2 except all from {name}1") == 150


def test_too_few_new_records_wait_and_are_published_together(people):
    call = MONDRIAN.replace(")", ", sensitive_edges := 1)")
    duckdb_anon.release(people, "r", call, key="person_id")
    arrive(people, 0, 3)
    said = duckdb_anon.release(people, "r", call, previous="r", replace=True)
    assert "0 new records published; 3 new records wait for the next release (mondrian: " in said
    arrive(people, 3, 5)
    assert "5 new records published" in duckdb_anon.release(people, "r", call, previous="r", replace=True)
    waited = people.execute("select added, waiting, previous from anon_register() order by number").fetchall()
    assert waited == [(600, 0, None), (0, 3, "r"), (5, 0, "r")]


@pytest.mark.parametrize("call", [CALLS[0], CALLS[2]])
def test_a_deleted_record_takes_its_group_with_it_for_good(people, call):
    duckdb_anon.release(people, "r1", call, key="person_id")
    leaving = rows(
        people,
        'from anon.records where "group" in (select "group" from anon.records as r join (select substring(sha256((select '
        "secret from anon.secret) || 'key' || person_id::varchar), 1, 32)::uuid as k from people where person_id < 4) "
        "on r.key = k)",
    )
    people.execute("create table gone as from people where person_id < 4; delete from people where person_id < 4")
    said = duckdb_anon.release(people, "r2", call, previous="r1", deleted="withdraw")
    assert f"{leaving} records were withdrawn, with all of their groups" in said and leaving >= 3
    assert rows(people, "from r2") == 600 - leaving and rows(people, "from r2 except all from r1") == 0
    # neither they nor the others of their groups come back, not even when they are entered again
    people.execute("insert into people from gone")
    said = duckdb_anon.release(people, "r3", call, previous="r2", deleted="withdraw")
    assert said.endswith("continues r2: 0 new records published")
    assert rows(people, "(from r2 except all from r3) union all (from r3 except all from r2)") == 0


def test_the_order_of_rows_does_not_tell_new_records(people):
    duckdb_anon.release(people, "r1", CALLS[2], key="person_id")
    arrive(people, 0, 300)
    duckdb_anon.release(people, "r2", CALLS[2], previous="r1")
    greatest = "(select max(bucket) from r1)"
    first, second = people.execute(f"""select avg(rowid) filter (bucket <= {greatest}), avg(rowid) filter (bucket >
        {greatest}) from r2""").fetchall()[0]
    assert abs(first - second) < 100  # five standard errors; appended rows lie 450 later


def test_what_cannot_be_continued_is_refused(people):
    release = duckdb_anon.release
    release(people, "plain", MONDRIAN)
    release(people, "r1", MONDRIAN, key="person_id", independent=True)
    release(people, "r2", MONDRIAN, previous="r1")
    refused = [
        ({"previous": "plain"}, MONDRIAN, "plain was made without key"),
        ({"previous": "r1"}, MONDRIAN, "r1 has been continued by r2"),
        ({"previous": "r7"}, MONDRIAN, "'r7' is not in the register .did you mean"),
        ({"previous": "r2"}, "mondrian('people', 6)", r"made by mondrian\('people', k := 5"),
        ({"previous": "r2"}, "rank_swap('people', 5)", "rank_swap takes no previous"),
        ({"previous": "r2", "key": "age"}, MONDRIAN, "key := 'age' is not that of r2. Allowed: 'person_id'"),
        ({"previous": "r2", "deleted": "drop"}, MONDRIAN, "deleted := 'drop' is unknown. Allowed: keep, withdraw"),
        ({"previous": "r2", "changed": "drop"}, MONDRIAN, "changed := 'drop' is unknown. Allowed: keep, replace"),
        ({"previous": "r2", "changed": "replace"}, MONDRIAN, r"as they are \(anatomy\), and mondrian does not"),
        ({"previous": "r2", "independent": True}, MONDRIAN, "is not independent"),
        ({"previous": "r2", "part_rows": 1000}, MONDRIAN, "does not go with part_rows"),
        ({"previous": "r2", "deleted": "withdraw"}, "muco('people', 0.2)", "muco does not publish its groups"),
    ]
    for options, call, reason in refused:
        with pytest.raises(AnonError, match=reason):
            release(people, "r3", call, **options)
    people.execute("delete from r2 where rowid = 0")
    with pytest.raises(AnonError, match="r2 has other rows than the register lists"):
        release(people, "r3", MONDRIAN, previous="r2")
    people.execute("drop table r2")
    with pytest.raises(AnonError, match="the rows of previous := 'r2' cannot be read"):
        release(people, "r3", MONDRIAN, previous="r2")
    assert [name for (name,) in people.execute("select name from anon_register()").fetchall()] == ["plain", "r1", "r2"]
    assert rows(people, "from duckdb_databases() where database_name like '_anon%'") == 0


def test_a_release_that_is_taken_from_the_register_leaves_nothing(people):
    duckdb_anon.release(people, "r1", MONDRIAN, key="person_id")
    arrive(people, 0, 100)
    duckdb_anon.release(people, "r2", MONDRIAN, previous="r1")
    people.execute("delete from anon.releases where number = 2; drop table r2")
    assert "100 new records published" in duckdb_anon.release(people, "r2", MONDRIAN, previous="r1")
    assert people.execute("select number, rows from anon_register() order by 1").fetchall() == [(1, 600), (3, 700)]


def test_files_continue_files(people, tmp_path):
    first, second = str(tmp_path / "r1.parquet"), str(tmp_path / "r2.parquet")
    duckdb_anon.release(people, first, CALLS[2], key="person_id")
    arrive(people, 0, 100)
    duckdb_anon.release(people, second, CALLS[2], previous=first)
    assert rows(people, f"from '{first}' except all from '{second}'") == 0 and rows(people, f"from '{second}'") == 700


def test_a_second_release_is_refused_until_it_says_what_it_is(people):
    duckdb_anon.release(people, "r1", MONDRIAN, key="person_id")
    people.execute("create view adults as from people")
    for table in ("people", "adults", "(from adults where age > 30)"):
        with pytest.raises(AnonError, match=r"people has been released before: r1 .*previous := 'r1'") as error:
            duckdb_anon.release(people, "r2", f"mondrian('{table}', 5, qi := ['age'], sensitive := 'salary')")
        assert error.value.code == "released-before"
    said = duckdb_anon.release(people, "r2", MONDRIAN, independent=True)
    assert "mondrian(k := 5) independent of earlier releases on 20" in said
    with pytest.raises(AnonError, match="released before"):
        duckdb_anon.release(people, "r3", MONDRIAN, part_rows=1000)


def test_sql_alone(people):
    call = "mondrian(''people'', 5)"
    ((name, description, note),) = people.execute(f"from anon_release('r1', '{call}', key := 'person_id')").fetchall()
    assert (name, note) == ("r1", None) and description.startswith("anon: release of people by mondrian(k := 5) on ")
    arrive(people, 0, 100)
    told = people.execute(f"select note from anon_release('r2', '{call}', previous := 'r1', key := 'person_id')")
    assert told.fetchall() == [("continues r1: 100 new records published",)]
    with pytest.raises(duckdb.Error, match=r"has been released before.*\[released-before\]"):
        people.execute(f"from anon_release('r3', '{call}')")


def test_shell_and_command_line(tmp_path, capsys):
    path = str(tmp_path / "p.duckdb")
    con = duckdb_anon.connect(path)
    con.execute("create table people as select i as id, i % 60 as age, 'd' || i % 7 as ill from range(300) t(i)")
    con.close()
    call = "mondrian('people', 5, qi := ['age'], sensitive := 'ill')"
    quoted = call.replace("'", "''")
    assert main([path, "-c", f"from anon_release('r1', '{quoted}', key := 'id');"]) == 0
    assert main(["release", path, "r2", call, "--previous", "r1", "--deleted", "withdraw"]) == 0
    assert "continues r1: 0 new records published" in capsys.readouterr().out
    assert main([path, "-c", f"from anon_release('r3', '{quoted}', previous := 'r2')"]) == 0
    assert main(["release", path, "r4", call]) == 1
    assert "released before" in capsys.readouterr().err
    assert main(["release", path, "r4", call, "--independent"]) == 0
    assert main([path, "--readonly", "-c", f"from anon_release('{tmp_path / 'f.parquet'}', '{quoted}')"]) == 1
    assert "the database is read-only" in capsys.readouterr().err


def test_a_database_that_cannot_be_written_takes_independent_releases_alone(tmp_path):
    path = str(tmp_path / "p.duckdb")
    con = duckdb_anon.connect(path)
    con.execute("create table people as select i as id, i % 60 as age from range(300) t(i)")
    con.close()
    con = duckdb_anon.connect(path, read_only=True)
    call, file = "mondrian('people', 5, qi := ['age'])", str(tmp_path / "r.parquet")
    with pytest.raises(AnonError, match="the database is read-only, so the release cannot be entered"):
        duckdb_anon.release(con, file, call, key="id")
    said = duckdb_anon.release(con, file, call, independent=True)
    assert "independent of earlier releases" in said and Path(file).exists()
    con.close()


def test_of_two_connections_that_continue_one_release_the_second_is_refused(people, monkeypatch):
    duckdb_anon.release(people, "r1", MONDRIAN, key="person_id")
    arrive(people, 0, 100)
    other, rows_sql = people.cursor(), Next.rows_sql

    def meanwhile(following: Next) -> str:
        monkeypatch.undo()
        duckdb_anon.release(other, "first", MONDRIAN, previous="r1")
        return rows_sql(following)

    monkeypatch.setattr(Next, "rows_sql", meanwhile)
    with pytest.raises(AnonError, match="another connection has released this table meanwhile; nothing was written"):
        duckdb_anon.release(people, "second", MONDRIAN, previous="r1")
    assert people.execute("select name, rows from anon_register() order by number").fetchall() == [
        ("r1", 600),
        ("first", 700),
    ]
    assert rows(people, "from duckdb_tables() where table_name = 'second'") == 0


def test_of_two_first_releases_at_once_the_second_is_refused(people, monkeypatch):
    people.execute("create table others as from pool")
    duckdb_anon.release(people, "others_r", "mondrian('others', 10, qi := 'age', sensitive := 'salary')")
    other, call = people.cursor(), Registration.call

    def meanwhile(registration: Registration, *given: Any, **named: Any) -> str:
        monkeypatch.undo()
        duckdb_anon.release(other, "o2", "mondrian('others', 10, qi := 'age', sensitive := 'salary')", independent=True)
        duckdb_anon.release(other, "first", MONDRIAN, key="person_id")
        return call(registration, *given, **named)

    monkeypatch.setattr(Registration, "call", meanwhile)
    with pytest.raises(AnonError, match="another connection has released this table meanwhile; nothing was written"):
        duckdb_anon.release(people, "second", MONDRIAN, key="person_id")
    made = people.execute("select number, name from anon_register() order by number").fetchall()
    assert [name for _, name in made] == ["others_r", "o2", "first"] and len({number for number, _ in made}) == 3
    assert rows(people, "from duckdb_tables() where table_name = 'second'") == 0


def test_replaced_records_stay_in_buckets_whose_sensitive_values_stay(people):
    call = "anatomy('people', 3)"
    duckdb_anon.release(people, "r1", call, key="person_id")
    arrive(people, 0, 90)
    people.execute("update people set age = age + 100 where person_id <= 30")
    people.execute("update people set salary = salary + 7 where person_id between 21 and 40")
    said = duckdb_anon.release(people, "r2", call, previous="r1", changed="replace")
    assert said.endswith(
        "90 new records published; 40 records differ from what was published; 30 of them are published with their new "
        "quasi-identifiers and the sensitive values of their buckets as before"
    )
    assert rows(people, "from r1 except all from r2") == 30
    replaced = people.execute("select age - 100, gender, education from r2 where age > 100 order by all").fetchall()
    before = people.execute("select age, gender, education from (from r1 except all from r2) order by all").fetchall()
    assert replaced == before
    buckets = "select bucket, salary::varchar, count(*) from {} group by all"
    assert rows(people, f"{buckets.format('r1')} except {buckets.format('r2')}") == 0
    # the third release knows the second's versions, for withdrawals and for further changes
    people.execute("update people set age = age + 100 where person_id <= 10; delete from people where person_id = 1")
    said = duckdb_anon.release(people, "r3", call, previous="r2", changed="replace", deleted="withdraw")
    withdrawn = people.execute("select bucket from r2 except select bucket from r3").fetchall()
    assert len(withdrawn) == 1
    stayed = f"from r2 where bucket <> {withdrawn[0][0]}"
    assert rows(people, "from r3") == rows(people, stayed)
    assert rows(people, f"{stayed} except all from r3") == rows(people, "from r3 where age > 200") > 0
    (attribute,) = people.execute("""select max(attribute)
        from sequence_risk('people', ['r1', 'r2', 'r3'], targets := 100)""").fetchall()[0]
    (alone,) = people.execute("select max(attribute) from sequence_risk('people', ['r1'], targets := 100)").fetchall()[
        0
    ]
    assert attribute <= alone + 0.1


def test_a_release_in_parts_is_continued(people):
    call = CALLS[2]
    people.execute("""insert into people select * replace (person_id + 10000 as person_id) from people union all
        from pool""")
    with pytest.raises(AnonError, match="key := 'age' must be a column that is not released"):
        duckdb_anon.release(people, "r1", call, key="age", part_rows=1000)
    duckdb_anon.release(people, "r1", call, key="person_id", part_rows=1000)
    published = rows(people, "from r1")
    assert rows(people, "from anon.records") == published == rows(people, "from people")
    assert "person_id" not in [row[0] for row in people.execute("describe r1").fetchall()]
    people.execute("insert into people select * replace (person_id + 20000 as person_id) from people limit 100")
    assert "100 new records published" in duckdb_anon.release(people, "r2", call, previous="r1")
    assert rows(people, "from r1 except all from r2") == 0 and rows(people, "from r2") == published + 100
    # each row belongs to the record that it was made from
    (release, _) = registered(people, "memory")
    numbered = numbered_rows(people, "memory", release, "people")
    different = f"""select r.age, r.gender, r.education from {numbered} as r join (select *, row_number() over () - 1 as n
        from people) as p on r.row_id = p.n where (r.age, r.gender, r.education) <> (p.age, p.gender, p.education)"""
    assert rows(people, different) == 0 and rows(people, f"from {numbered} where row_id is null") == 0


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("alter table people alter age type double", "age (DOUBLE, before "),
        ("alter table people alter salary type varchar", "salary (MAP(VARCHAR, BIGINT), before "),
        ("alter table people drop age", "differs in qi (age)"),
        ("alter table people rename age to years", "differs in qi (age, years)"),
        ("alter table people add column zip integer; comment on column people.zip is 'anon: quasi'", "differs in qi (zip)"),
        ("comment on column people.education is 'anon: insensitive'", "differs in qi (education), keep (education)"),
        ("alter table people rename person_id to pid", "'person_id'"),
        ("update people set person_id = null where person_id < 4", "'person_id' is NULL in 3 rows"),
        ("insert into people from people where person_id < 4", "'person_id' has one value in several records"),
    ],
)  # fmt: skip
def test_a_changed_column_of_a_sequence_is_named(people, change, named):
    duckdb_anon.release(people, "r1", "anatomy('people', 4)", key="person_id")
    arrive(people, 0, 150)
    people.execute(change)
    with pytest.raises(AnonError) as caught:
        duckdb_anon.release(people, "r2", "anatomy('people', 4)", previous="r1")
    assert named in str(caught.value)
    assert people.execute("select count(*) from anon_register()").fetchall() == [(1,)]


@pytest.mark.parametrize(
    "change", ["update people set person_id = 5000 - person_id", "alter table people alter person_id type double"]
)
def test_records_whose_keys_have_changed_are_not_published_again(people, change):
    duckdb_anon.release(people, "r1", "anatomy('people', 4)", key="person_id")
    people.execute(change)
    with pytest.raises(AnonError, match="100% of the new records are equal to published ones") as caught:
        duckdb_anon.release(people, "r2", "anatomy('people', 4)", previous="r1")
    assert caught.value.code == "changed-keys"


def test_others_in_place_of_those_who_left_are_new(people):
    duckdb_anon.release(people, "r1", "anatomy('people', 4)", key="person_id")
    people.execute("delete from people where person_id % 2 = 0")
    arrive(people, 0, 300)
    assert "300 new records" in duckdb_anon.release(people, "r2", "anatomy('people', 4)", previous="r1")


def test_a_key_of_several_columns_is_refused_by_name(people):
    with pytest.raises(AnonError, match="key := 'person_id, age' names several columns, and a key is one"):
        duckdb_anon.release(people, "r1", MONDRIAN, key="person_id, age")
