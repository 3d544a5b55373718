"""What is said of files and hierarchies that do not fit, and how labels may be written."""

import duckdb
import pyarrow as pa
import pytest

from duckdb_anon.engine.transport.hierarchy_io import read_tree
from duckdb_anon.model.errors import ParameterError, code_of

TREE = "create table tree as select * from (values ('HS-grad', 'school', 'any'), ('PhD', 'high', 'any')) t(a, b, c)"
ROLES = "qi := ['e'], hierarchies := {'e': 'tree'}"


def test_a_csv_in_another_encoding_is_named(con, tmp_path):
    file = tmp_path / "people.csv"
    file.write_bytes(b"name,age\nJos\xe9,3\n" * 20)
    with pytest.raises(duckdb.Error, match=r"not in UTF-8.*encoding := ''latin-1''") as caught:
        con.execute(f"from k_anonymity('{file}', qi := ['age'])")
    call = str(caught.value).split("for instance '")[1].split("' [")[0].replace("''", "'")
    assert con.execute(f"select count(*) from {call}").fetchone() == (39,)


def test_values_that_a_hierarchy_misses_are_counted_and_how_to_list_them_is_said(con):
    con.execute(TREE)
    con.execute("""create table people as select ['HS-grad', 'a', 'b', 'c', 'd', 'e', 'f'][1 + i % 7] as e
        from range(70) t(i)""")
    with pytest.raises(duckdb.Error, match=r"6 distinct value.*SELECT DISTINCT \"e\".*Add a row"):
        con.execute(f"from mondrian('people', 2, {ROLES})").fetchall()


def test_a_blank_beside_a_leaf_is_named(con):
    con.execute(TREE)
    con.execute("create table people as select ' HS-grad' as e from range(10)")
    with pytest.raises(duckdb.Error, match=r"1 of them differ from a label by blanks alone, which trim\(\) removes"):
        con.execute(f"from mondrian('people', 2, {ROLES})").fetchall()


@pytest.mark.parametrize("label", ["anon:quasi", "the age; ANON:  QUASI"])
def test_a_label_means_the_same_however_it_is_written(con, label):
    con.execute("create table people as select i % 5 as age, i % 3 as s from range(60) t(i)")
    con.execute(f"comment on column people.age is '{label}'; comment on column people.s is 'ANON:sensitive'")
    con.execute("create table boxes as from mondrian('people', 5, row_id := true)")
    assert con.execute("select k from k_anonymity('people')").fetchone() == (12,)
    assert len(con.execute("from compare('people', ['boxes'], n := 3, p_match := 0.5, seed := 1)").fetchall()) == 1
    con.execute(f"comment on column people.age is '{label.lower().replace('quasi', 'identifier')}'")
    with pytest.raises(duckdb.Error, match="labelled identifier"):
        con.execute("from mondrian('(select age from people)', 5, qi := ['age'])")


def test_the_call_of_an_attack_may_name_its_table(con):
    con.execute("create table t as select i % 7 as a, i % 3 as s from range(60) t(i)")
    con.execute("create table r as from muco('t', 0.2, qi := ['a'], sensitive := 's', row_id := true)")
    call = "muco(''t'', delta := 1/5)"
    assert con.execute(f"from linkage_risk('t', 'r', qi := ['a'], sensitive := 's', call := '{call}')").fetchall()


COUNTS = """create table titanic as select c as class, s as sex, y as survived, (hash(c, s, y) % 90 + 2)::int as Freq
    from (values ('1st'), ('2nd'), ('3rd')) t(c), (values ('f'), ('m')) u(s), (values ('yes'), ('no')) v(y)"""


def test_a_column_that_counts_records_is_no_quasi_identifier(con):
    con.execute(COUNTS)
    records = con.execute("select sum(Freq) from titanic").fetchall()[0][0]
    roles = "qi := ['class', 'sex', 'Freq'], sensitive := 'survived'"
    with pytest.raises(duckdb.Error, match=r"'Freq' counts the records of each row.*Expand") as caught:
        con.execute(f"from mondrian('titanic', 2, {roles})")
    expanded = str(caught.value).split("the table: '")[1].split("'. If")[0]
    assert con.execute(f"select count(*) from {expanded}").fetchone() == (records,)
    assert con.execute(f"select count(*) from mondrian('titanic', 2, {roles}, force := true)").fetchone() == (12,)
    with pytest.raises(duckdb.Error, match="sample_weights := 'Freq'"):
        con.execute("from equivalence_classes('titanic', qi := ['class', 'sex', 'survived', 'Freq'])")
    weighted = "equivalence_classes('titanic', qi := ['class', 'sex', 'survived'], sample_weights := 'Freq')"
    assert con.execute(f"select count(*) from {weighted}").fetchone() == (12,)
    pytest.importorskip("stdnum", reason="the profile extra is not installed")
    profile = "select role, reason from anon_profile('titanic') where column_name = 'Freq'"
    role, reason = con.execute(profile).fetchall()[0]
    assert role is None and "sample_weights := 'Freq'" in reason
    assert "Freq" not in str(con.execute("select statement from label_statements('titanic')").fetchall())


def test_a_count_that_is_an_attribute_is_left_alone(con):
    con.execute("create table visits as select i % 5 as age, i % 2 as sex, i % 4 as n from range(80) t(i)")
    assert con.execute("select count(*) from mondrian('visits', 2, qi := ['age', 'sex', 'n'])").fetchone() == (80,)


def levels(*paths: tuple[str, ...]) -> list[pa.Array]:
    return [pa.array(level) for level in zip(*paths, strict=True)]


def test_short_branch_padded_with_its_leaf_is_one_node():
    tree = read_tree("f", "t", levels(("a", "a", "*"), ("b1", "b", "*"), ("b2", "b", "*")))
    assert sorted(tree.labels) == ["*", "a", "b", "b1", "b2"]


@pytest.mark.parametrize("group", ["d1", "d10"])
def test_leaf_that_bears_the_name_of_its_group_is_refused(group):
    with pytest.raises(ParameterError, match="name of a group"):
        read_tree("f", "t", levels(("d1", group, "*"), ("d10", group, "*"), ("d2", "d2", "*")))


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamp_ms", "timestamp_s", "timestamptz"])
def test_dates_that_arrow_does_not_read_are_leaves_as_duckdb_prints_them(con, kind, zone):
    con.execute(f"set TimeZone = '{zone}'")
    far = ["0044-03-15 (BC)", "10000-05-06", "2020-02-29"] if kind != "timestamptz" else ["10000-05-06", "2020-02-29"]
    far += ["infinity", "-infinity"] if kind in ("date", "timestamp", "timestamptz") else []
    con.execute(f"create table t as select v::{kind} as a from (select unnest({far}) as v), range(4)")
    con.execute("create table tree as select distinct a::varchar as leaf, 'any' as root from t")
    released = con.execute("select distinct a from mondrian('t', k := 3, qi := ['a'], hierarchies := {'a': 'tree'})")
    assert {a for (a,) in released.fetchall()} == {leaf for (leaf,) in con.execute("select leaf from tree").fetchall()}


def test_an_error_of_the_sql_of_an_estimate_is_known_as_one_of_the_package(con):
    """One NULL in a class of all records leaves its column's intervals without ends."""
    con.execute(
        "create table t as select case when range > 0 then 20 + range % 30 end as age, range % 2 as b from range(60)"
    )
    con.execute("create table r as from mondrian('t', 40, qi := ['age', 'b'])")
    with pytest.raises(duckdb.Error) as raised:
        con.execute("from relative_error('select count(*) from t where age < 30', 't', 'r')").fetchall()
    assert code_of(str(raised.value)) == "cannot-estimate" and "age" in str(raised.value)
