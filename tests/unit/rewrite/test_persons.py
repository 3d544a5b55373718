"""Estimates from releases with a list of nodes a person, against hand-counted chances."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

import duckdb_anon

VISITS = [
    ("Bob", 18, "M", ("a1", "a2", "b2")),
    ("David", 14, "M", ("b1",)),
    ("Tom", 21, "F", ("b2",)),
    ("Simon", 16, "M", ("c2",)),
    ("Daisy", 27, "F", ("a2", "b2")),
    ("Alice", 28, "F", ("c1", "c2")),
]


@pytest.fixture
def hospital(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Visits, persons with lists, and the release <A, b2> <B> <C> in each of two classes of three."""
    con.execute("create table visits (name varchar, age integer, gender varchar, disease varchar)")
    rows = [(name, age, gender, item) for name, age, gender, items in VISITS for item in items]
    con.executemany("insert into visits values (?, ?, ?, ?)", rows)
    con.execute("create table persons as select name, age, gender, list(disease) as disease from visits group by all")
    con.execute("create table tree (leaf varchar, letter varchar, root varchar)")
    con.executemany("insert into tree values (?, ?, '*')", [(f"{x}{i}", x.upper()) for x in "abc" for i in (1, 2)])
    for table in ("visits", "persons"):
        con.execute(f"comment on column {table}.disease is 'anon: sensitive hierarchy=tree'")
    con.execute("create table r as from one_to_m_generalize('visits', 2, 3, qi := ['age', 'gender'], person := 'name')")
    return con


def answered(
    con: duckdb.DuckDBPyConnection, query: str, original: str, more: str = ""
) -> dict[tuple[tuple[str, str], ...], float]:
    rows = con.execute(f"select keys, estimate from relative_error($${query}$$, '{original}', 'r'{more})").fetchall()
    return {tuple(sorted(keys.items())): estimate for keys, estimate in rows}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("true", 6),
        ("list_contains(disease, 'a1')", 2 * 1 / 2),
        ("list_contains(disease, 'b2')", 2 * 1 + 2 * 1 / 2),
        ("'b2' in disease", 3),
        ("'b2' = any(disease)", 3),
        ("not list_contains(disease, 'b2')", 3),
        ("list_has_all(disease, ['a1', 'b2'])", 2 * 1 / 2 * 1),
        ("list_contains(disease, 'a1') and list_contains(disease, 'a2')", 2 * 1 / 4),
        ("list_has_any(disease, ['a1', 'a2'])", 2 * 3 / 4),
        ("list_contains(disease, 'a1') or list_contains(disease, 'c1')", 2 * 1 / 2 + 2 * 1 / 2),
        ("list_contains(disease, 'a1') and not list_contains(disease, 'a1')", 0),
        ("list_contains(disease, 'b1') and gender = 'M'", 1 / 2),
        ("list_has_all(disease, ['a1', 'c1'])", 0),
    ],
)
def test_persons_with_values_are_counted_by_chance(
    hospital: duckdb.DuckDBPyConnection, condition: str, expected: float
):
    found = answered(hospital, f"select count(*) from persons where {condition}", "persons")
    assert found == {(): pytest.approx(expected)}


def test_groups_and_averages_use_the_same_chances(hospital: duckdb.DuckDBPyConnection):
    query = "select gender, count(*) from persons where list_contains(disease, 'b2') group by gender"
    assert answered(hospital, query, "persons") == {(("gender", "F"),): 1.5, (("gender", "M"),): 1.5}


def test_bounds_hold_whatever_the_nodes_stand_for(hospital: duckdb.DuckDBPyConnection):
    rows = hospital.execute(
        "select original, low, high from relative_error($$select count(*) from persons where "
        "list_contains(disease, 'b2')$$, 'persons', 'r')"
    ).fetchall()
    assert rows == [(3, 2, 4)]


def test_visits_are_counted_value_by_value(hospital: duckdb.DuckDBPyConnection):
    found = answered(hospital, "select disease, count(*) from visits group by disease", "visits")
    expected = {"a1": 1, "a2": 1, "b1": 1, "b2": 3, "c1": 1, "c2": 1}
    assert found == {(("disease", d),): pytest.approx(n) for d, n in expected.items()}
    half = answered(hospital, "select count(*) from visits where disease = 'a1' and gender = 'M'", "visits")
    assert half == {(): pytest.approx(0.5)}


@pytest.mark.parametrize("join", [", unnest(disease) as u(d)", "cross join unnest(persons.disease) as u(d)"])
def test_unnested_lists_are_counted_value_by_value(hospital: duckdb.DuckDBPyConnection, join: str):
    query = f"select d, count(*) from persons {join} where age < 21 group by d"
    found = answered(hospital, query, "persons", ", spread := 'uniform'")
    assert hospital.sql("select distinct age.lower, age.upper from r").order("all").fetchall() == [(13, 20), (20, 31)]
    # in the young class age < 21 is certain; in the other, whose ends are rounded too, 1 of 12 ages is below 21
    expected = {
        d: n * (1 + 1 / 12) for d, n in {"a1": 0.5, "a2": 0.5, "b1": 0.5, "b2": 1.5, "c1": 0.5, "c2": 0.5}.items()
    }
    assert found == {(("d", d),): pytest.approx(n) for d, n in expected.items()}
    one = answered(hospital, f"select count(*) from persons {join} where d = 'a1' and gender = 'M'", "persons")
    assert one == {(): pytest.approx(0.5)}


def test_a_list_cannot_be_unnested_and_asked_for_at_once(hospital: duckdb.DuckDBPyConnection):
    query = "select count(*) from persons, unnest(disease) as u(d) where d = 'a1' and list_contains(disease, 'b2')"
    with pytest.raises(duckdb.Error, match="unnests it and asks for the whole list as well"):
        answered(hospital, query, "persons")


@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from persons where len(disease) > 1",
        "select disease, count(*) from persons group by disease",
        "select count(*) from persons where list_contains(disease, name)",
        "select count(*) from persons where disease = ['a1']",
    ],
)
def test_what_lists_of_nodes_cannot_say_is_an_error(hospital: duckdb.DuckDBPyConnection, query: str):
    with pytest.raises(duckdb.Error, match=r"published as lists of hierarchy nodes|not in the release"):
        answered(hospital, query, "persons")


def test_too_many_values_at_once_are_an_error(hospital: duckdb.DuckDBPyConnection):
    values = [f"x{i}" for i in range(9)]
    with pytest.raises(duckdb.Error, match="name 9 values; at most 8"):
        answered(hospital, f"select count(*) from persons where list_has_any(disease, {values})", "persons")


def asked(con: duckdb.DuckDBPyConnection, query: str) -> list[tuple[object, ...]]:
    """Truth, estimate, low, high and confidence of a query on visits, whose person is known."""
    more = ", qi := ['age', 'gender'], sensitive := 'disease', person := 'name'"
    text = f"select original, estimate, low, high, confidence from relative_error($${query}$$, 'visits', 'r'{more})"
    return con.execute(text).fetchall()


def test_persons_are_counted_as_the_release_states_them(hospital: duckdb.DuckDBPyConnection):
    assert asked(hospital, "select count(distinct name) from visits") == [(6, 6, 6, 6, 1)]
    both = "select gender, count(distinct name) as persons from visits group by gender order by gender"
    assert [row[:4] for row in asked(hospital, both)] == [(3, pytest.approx(3), None, None)] * 2
    with pytest.raises(duckdb.Error, match="persons cannot be counted by 'disease'"):
        asked(hospital, "select count(distinct name) from visits where disease = 'a1'")
    with pytest.raises(duckdb.Error, match="column 'name' is not in the release"):
        asked(hospital, "select count(distinct name) from visits where name < 'C'")


@pytest.mark.parametrize(
    ("query", "low"),
    [
        ("select count(*) from visits", 2 * 2 + 4),
        ("select count(*) from visits where disease = 'b2'", 2),
        ("select count(*) from visits where disease in ('b1', 'b2')", 2 + 2),
        ("select count(*) from visits where disease <> 'b1'", 2 * 2 + 2),
        ("select count(*) from visits where disease like 'c%' or disease = 'a1'", 2),
        ("select count(disease) from visits", 2 * 2 + 4),
        ("select count(*) filter (where disease = 'b2') from visits", 2),
    ],
)
def test_records_have_the_nodes_that_surely_stand_for_them_as_a_lower_bound(
    hospital: duckdb.DuckDBPyConnection, query: str, low: int
):
    assert hospital.execute("select disease, count(*) from r group by all order by all").fetchall() == [
        (["A", "b2"], 2), (["B"], 2), (["C"], 2),
    ]  # fmt: skip
    ((truth, estimate, found, high, confidence),) = asked(hospital, query)
    assert (found, high, confidence) == (low, None, 1)
    assert isinstance(truth, float) and isinstance(estimate, float)
    assert found <= truth and found <= estimate + 1e-9


def test_records_by_value_have_lower_bounds_and_other_columns_take_them_away(hospital: duckdb.DuckDBPyConnection):
    found = asked(hospital, "select disease, count(*) from visits group by disease order by disease")
    assert [(truth, low) for truth, _, low, _, _ in found] == [(1, 0), (2, 0), (1, 0), (3, 2), (1, 0), (2, 0)]
    # a person's rows may differ in gender where the release shows the first row's
    for query in ("select count(*) from visits where gender = 'M'", "select sum(age) from visits"):
        assert asked(hospital, query)[0][2:] == (None, None, None)


NULLS = ", qi := ['sex'], sensitive := 'ill', person := 'who', hierarchies := {'ill': 'ills'}"
RECORDS = {
    "count(*)": 8, "count(ill)": 4, "count_if(ill is null)": 4, "count_if(ill = 'flu')": 2,
    "count_if((ill = 'flu') is not true)": 6,
}  # fmt: skip


@pytest.fixture(scope="module")
def with_nulls() -> Iterator[duckdb.DuckDBPyConnection]:
    """Eight persons with a record each, half of them NULL."""
    con = duckdb_anon.connect()
    con.execute("create table ills (leaf varchar, kind varchar, root varchar)")
    con.execute("insert into ills values ('flu', 'lung', '*'), ('cold', 'lung', '*')")
    con.execute(
        "create table v as from (values (1, 'm', 'flu'), (2, 'm', 'flu'), (3, 'f', null), (4, 'f', 'cold'), "
        "(5, 'f', null), (6, 'm', null), (7, 'm', 'cold'), (8, 'm', null)) as v(who, sex, ill)"
    )
    yield con
    con.close()


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("call", ["rmr('v', 2", "one_to_m_generalize('v', 2, 1", "one_to_m_generalize('v', 4, 1"])
def test_a_record_that_is_null_counts_and_a_root_may_stand_for_it(
    with_nulls: duckdb.DuckDBPyConnection, call: str, record: str
):
    with_nulls.execute(f"create or replace table r as from {call}{NULLS}, seed := 1)")
    ((truth, estimate, low),) = with_nulls.execute(
        f"select original, estimate, low from relative_error($$select {record} as n from v$$, 'v', 'r'{NULLS})"
    ).fetchall()
    assert truth == RECORDS[record]
    if call.startswith("rmr"):  # all lists are the root alone, which may stand for NULL
        assert with_nulls.execute("select distinct ill from r").fetchall() == [(["*"],)]
        assert low is None or low <= (8 if record == "count(*)" else 0)
    else:
        assert estimate == pytest.approx(truth)
    assert low is None or low <= truth


@pytest.mark.parametrize(
    "condition",
    [
        "disease in (['a1'], ['b1'])",
        "disease not in (['a1'], ['b1'])",
        "list_contains([['a1'], ['a1', 'b1']], disease)",
        "list_has_all(['a1', 'b1', 'c1'], disease)",
        "array_has_all(['a1', 'b1', 'c1'], disease)",
        "['a1', 'b1', 'c1'] @> disease",
        "'a1' < any(disease)",
        "'a1' <> any(disease)",
        "any(disease) = 'a1'",
        "'a1' is not distinct from any(disease)",
        "'a1' in (disease)",
        "disease = any([['a1']])",
    ],
)
def test_what_a_list_is_or_has_besides_is_refused_by_name(hospital: duckdb.DuckDBPyConnection, condition: str) -> None:
    """Each of these once was answered, for certain, as if it asked whether the list has a value."""
    with pytest.raises(
        duckdb.Error, match=r"'disease' is published as lists of hierarchy nodes, which .* cannot be answered"
    ):
        answered(hospital, f"select count(*) from persons where {condition}", "persons")


@pytest.mark.parametrize(
    "condition",
    ["disease && ['b2']", "['b2'] && disease", "disease @> ['b2']", "list_has_any(['b2'], disease)", "'b2' in disease"],
)
def test_a_list_that_has_a_value_is_asked_for_in_many_ways(hospital: duckdb.DuckDBPyConnection, condition: str) -> None:
    assert answered(hospital, f"select count(*) from persons where {condition}", "persons") == {(): 3}


def test_no_rows_are_sure_where_a_constant_refuses_them(hospital: duckdb.DuckDBPyConnection):
    several = "count(null), count(*) filter (where false), count_if(1 = 2), count(case when 1 = 0 then 1 end), count(*)"
    found = asked(hospital, f"select {several} from visits")
    assert all(row[:2] == (0, 0) and not row[2] for row in found[:4])
    assert found[4][2] == 2 * 2 + 4


def test_exploded_rows_are_not_the_originals(hospital: duckdb.DuckDBPyConnection):
    hospital.execute("insert into visits select * from visits where name = 'Bob'")  # records that are alike
    hospital.execute(
        "create or replace table r as from one_to_m_generalize('visits', 1, 1, qi := ['age', 'gender'], "
        "person := 'name', explode := true)"
    )
    query = "select count(*), sum(age), count(*) filter (where disease = 'a1') from visits"
    rows = asked(hospital, query)
    assert [row[0] for row in rows] != [row[1] for row in rows]
    assert all(row[2:] == (None, None, None) for row in rows)


WARDS = (
    ("select count(distinct name) from visits join wards using (gender)", [6]),
    ("select count(distinct name) from visits left join wards on visits.gender = wards.gender", [6]),
    ("select floor as k, count(distinct name) from visits join wards using (gender) group by k order by k", [6, 3]),
    ("select upper(ward) as k, count(distinct name) from wards as w join visits as v on w.gender = v.gender "
     "where ward <> 'c' group by k order by k", [6, 3]),
    ("select v.gender as k, count(distinct name) filter (where ward in ('a', 'A')) from visits as v join wards as w "
     "on w.gender = v.gender group by k order by k", [3, 3]),
    ("select a.floor as k, b.ward as l, count(distinct name) from visits as v join wards as a on v.gender = a.gender "
     "join wards as b on v.gender = b.gender where b.ward in ('a', 'b') group by k, l order by k, l", [6, 3, 3, 3]),
)  # fmt: skip


@pytest.mark.parametrize(("query", "persons"), WARDS)
def test_persons_who_meet_several_rows_of_another_table_count_once(
    hospital: duckdb.DuckDBPyConnection, query: str, persons: list[int]
):
    hospital.execute(
        "create table wards as from (values ('F', 'a', 1), ('F', 'A', 1), ('M', 'a', 1), ('M', 'A', 1), ('M', 'b', 2), "
        "('M', 'c', 2), ('M', 'c', 2)) as w(gender, ward, floor)"
    )
    found = asked(hospital, query)
    assert [row[0] for row in found] == persons
    assert [row[1] for row in found] == pytest.approx(persons)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select count(distinct name) from visits, days", "a join with days"),
        ("select count(distinct name) from visits join days on age < day", "a join with days"),
        ("select count(distinct name) from visits join days d on age = day where d.day < age + 3", "a join with d"),
        ("select count(distinct name) from days d left join visits on age = day", "a join with d"),
        (
            "select d.day || gender, count(distinct name) from visits join days d on age = day group by 1",
            "a join with d",
        ),
        ("select count(distinct name) from visits join kinds using (disease)", "by 'disease'"),
        (
            "select kind, count(distinct name) from visits v join kinds k on v.disease = k.disease group by 1",
            "by 'disease'",
        ),
    ],
)
def test_persons_are_not_counted_over_joins_that_may_meet_them_often(
    hospital: duckdb.DuckDBPyConnection, query: str, said: str
):
    hospital.execute("create table days as select range::int as day from range(40)")
    hospital.execute("create table kinds as select distinct disease, disease[1] as kind from visits")
    with pytest.raises(duckdb.Error, match=f"persons cannot be counted .*{said}"):
        asked(hospital, query)
