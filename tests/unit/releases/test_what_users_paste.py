"""Names as users write them, and remedies in messages, which run as they stand."""

import re

import duckdb
import pytest

import duckdb_anon

ROLES = {"my col": "sensitive", "age": "quasi", "sex": "quasi"}


@pytest.fixture
def people(con):
    con.execute(
        """create table "my people" as select i as "person id", (i * 7) % 50 as age, i % 2 as sex,
        if(i % 9 = 0, null, 'd' || i % 7) as "my col" from range(400) t(i)"""
    )
    for column, role in ROLES.items():
        con.execute(f'comment on column "my people"."{column}" is \'anon: {role}\'')
    return con


def test_remedy_for_missing_sensitive_values_runs(people):
    with pytest.raises(duckdb.Error, match="CREATE VIEW") as caught:
        people.execute("from anatomy('my people', 2)")
    statement = re.search(r"CREATE VIEW .* FROM \.\.\.", str(caught.value))
    assert statement is not None
    people.execute(statement[0].replace("...", '"my people"'))
    call = "anatomy('v', 2, qi := ['age', 'sex'], sensitive := 'my col')"
    assert people.execute(f"select count(*) from {call}").fetchall() == [(400,)]


@pytest.mark.parametrize("name", ["First Wave", 'main."first wave"'])
def test_releases_are_named_with_or_without_quotes(name, people):
    people.execute("""update "my people" set "my col" = 'none' where "my col" is null""")
    duckdb_anon.release(people, "first wave", "anatomy('my people', 2)", key="person id")
    people.execute("""insert into "my people" select i + 400, (i * 7) % 50, i % 2, 'd' || i % 7 from range(200) t(i)""")
    duckdb_anon.release(people, "second", "anatomy('my people', 2)", key="person id", previous=name)
    rows = people.execute("select release from sequence_risk('my people', [?, 'second'])", [name]).fetchall()
    assert [row[0] for row in rows][:2] == [name, "second"]


@pytest.mark.parametrize(
    "table", ["seen", "(select * from visits)", "(select pid as who, * exclude (pid) from visits)"]
)
@pytest.mark.parametrize("method", ["rr_distort('{}', p := 0.8", "mondrian('{}', 3", "slicing('{}', 2"])
def test_views_of_individuals_with_several_rows_are_refused_without_person(table, method, con):
    con.execute("""create table visits as select i % 50 as pid, i % 20 as age, 'd' || i % 7 as disease
        from range(300) t(i)""")
    con.execute("comment on column visits.pid is 'anon: person'; create view seen as from visits")
    call = f"from {method.format(table)}, qi := ['age'], sensitive := 'disease'"
    with pytest.raises(duckdb.Error, match=r"labelled person in visits.*Say person := '(pid|who)'.*\[several-rows\]"):
        con.execute(f"{call})")
    con.execute(f"{call}, force := true)")
    con.execute("create table single as select distinct on (pid) * from visits; create view one as from single")
    con.execute("comment on column single.pid is 'anon: person'")
    con.execute(f"from {method.format('one')}, qi := ['age'], sensitive := 'disease')")


@pytest.mark.parametrize("value", ["{'a': i, 'b': i}", "[i]", "map {i: 1}"])
def test_no_role_is_proposed_that_a_nested_column_cannot_have(value, con):
    con.execute(f"create table t as select i % 9 as age, {value} as nested from range(100) t(i)")
    found = dict(
        con.execute("select split_part(statement, '\"', 2), statement || reason from label_statements('t')").fetchall()
    )
    assert "anon: identifier" in found["nested"] and "expand it" in found["nested"]


def test_sequences_of_nothing_are_refused_by_name(people: duckdb.DuckDBPyConnection) -> None:
    people.execute("""update "my people" set "my col" = 'none' where "my col" is null""")
    duckdb_anon.release(people, "one", "mondrian('my people', 2)", key="person id")
    with pytest.raises(duckdb_anon.AnonError, match="previous := '' is not in the register"):
        duckdb_anon.release(people, "two", "mondrian('my people', 2)", key="person id", previous="")
    duckdb_anon.release(people, "two", "mondrian('my people', 2)", key="person id", previous="one")
    people.execute("update two set \"my col\" = 'another'")
    with pytest.raises(duckdb.Error, match="no row of two is one that the register lists"):
        people.execute("from sequence_risk('my people', ['one', 'two'])").fetchall()
    people.execute('delete from "my people"')
    with pytest.raises(duckdb.Error, match="sequence_risk: the original is empty"):
        people.execute("from sequence_risk('my people', ['one'])").fetchall()
