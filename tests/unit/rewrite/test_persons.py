"""Estimates from releases with a list of nodes a person, against hand-counted chances."""

import duckdb
import pytest

import duckdb_anon

pytestmark = pytest.mark.campaign

VISITS = [
    ("Bob", 18, "M", ("a1", "a2", "b2")),
    ("David", 14, "M", ("b1",)),
    ("Tom", 21, "F", ("b2",)),
    ("Simon", 16, "M", ("c2",)),
    ("Daisy", 27, "F", ("a2", "b2")),
    ("Alice", 28, "F", ("c1", "c2")),
]


@pytest.fixture
def hospital(con):
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
    ("condition", "least", "most"),
    [
        ("list_contains(disease, 'b2')", 2, 4),
        ("'b2' = any(disease)", 2, 4),
        ("disease @> ['b2']", 2, 4),
        ("not list_contains(disease, 'b2')", 2, 4),
        ("list_has_any(disease, ['a1', 'a2'])", 2, 2),
        ("list_contains(disease, 'b1') and gender = 'M'", 0, 1),
        ("list_has_all(disease, ['a1', 'c1'])", 0, 0),
    ],
)
def test_persons_with_values_are_counted_in_plausible_tables(hospital, condition, least, most):
    """Each person has as many values as nodes, one below each."""
    found = answered(hospital, f"select count(*) from persons where {condition}", "persons")
    assert least <= found[()] <= most


def test_unnested_lists_are_counted_value_by_value(hospital):
    found = answered(hospital, "select d, count(*) from persons, unnest(disease) as u(d) group by d", "persons")
    by_node = {letter: sum(n for ((_, d),), n in found.items() if d[0] == letter) for letter in "abc"}
    # a value in fewer than half of the tables is left out
    assert 3 < by_node["b"] <= 4 and 1 <= by_node["a"] <= 2 and 1 <= by_node["c"] <= 2


def asked(con: duckdb.DuckDBPyConnection, query: str) -> list[tuple[object, ...]]:
    """Truth, estimate, low, high and confidence of a query on visits, whose person is known."""
    more = ", qi := ['age', 'gender'], sensitive := 'disease', person := 'name'"
    text = f"select original, estimate, low, high, confidence from relative_error($${query}$$, 'visits', 'r'{more})"
    return con.execute(text).fetchall()


def test_persons_are_counted_as_the_release_states_them(hospital):
    assert asked(hospital, "select count(distinct name) from visits") == [(6, 6, None, None, None)]
    both = "select gender, count(distinct name) as persons from visits group by gender order by gender"
    assert [row[:2] for row in asked(hospital, both)] == [(3, 3)] * 2
    ((truth, estimate),) = (
        row[:2] for row in asked(hospital, "select count(distinct name) from visits where disease = 'b2'")
    )
    assert truth == 3 and 2 <= estimate <= 4
    nested = "select avg(n) from (select name, count(*) as n from visits group by name)"
    assert asked(hospital, nested)[0][1] == pytest.approx(8 / 6)
    for names in (
        "select count(distinct name) from visits where name < 'C'",
        "select name, count(*) from visits group by name",
    ):
        with pytest.raises(duckdb.Error, match="'name' is not in the release r: persons can be counted"):
            asked(hospital, names)


def test_plausible_persons_have_numbers_and_lists(hospital):
    rows = "from impute('r', original := 'visits', person := 'name', seed := 1)"
    assert hospital.execute(f"select name, count(*) from ({rows}) group by name order by name").fetchall() == [
        (str(i), n) for i, n in hospital.execute("select row_number() over (), len(disease) from r").fetchall()
    ]
    lists = hospital.execute("select disease from impute('r', original := 'persons', seed := 1)").fetchall()
    assert sorted(sorted(value[0].upper() for value in node) for (node,) in lists) == [
        ["A", "B"], ["A", "B"], ["B"], ["B"], ["C"], ["C"],
    ]  # fmt: skip


NULLS = ", qi := ['sex'], sensitive := 'ill', person := 'who', hierarchies := {'ill': 'ills'}"
RECORDS = {
    "count(*)": 8, "count_if(ill is null)": 4, "count_if((ill = 'flu') is not true)": 6,
}  # fmt: skip


@pytest.fixture(scope="module")
def with_nulls():
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
@pytest.mark.parametrize("call", ["rmr('v', 2", "one_to_m_generalize('v', 2, 1"])
def test_a_record_that_is_null_counts_and_a_root_may_stand_for_it(with_nulls, call, record):
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


def test_exploded_rows_are_not_the_originals(hospital):
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
    ("select count(distinct name) from visits left join wards on visits.gender = wards.gender", [6]),
    ("select floor as k, count(distinct name) from visits join wards using (gender) group by k order by k", [6, 3]),
    ("select v.gender as k, count(distinct name) filter (where ward in ('a', 'A')) from visits as v join wards as w "
     "on w.gender = v.gender group by k order by k", [3, 3]),
    ("select a.floor as k, b.ward as l, count(distinct name) from visits as v join wards as a on v.gender = a.gender "
     "join wards as b on v.gender = b.gender where b.ward in ('a', 'b') group by k, l order by k, l", [6, 3, 3, 3]),
)  # fmt: skip


@pytest.mark.parametrize(("query", "persons"), WARDS)
def test_persons_who_meet_several_rows_of_another_table_count_once(hospital, query, persons):
    hospital.execute(
        "create table wards as from (values ('F', 'a', 1), ('F', 'A', 1), ('M', 'a', 1), ('M', 'A', 1), ('M', 'b', 2), "
        "('M', 'c', 2), ('M', 'c', 2)) as w(gender, ward, floor)"
    )
    found = asked(hospital, query)
    assert [row[0] for row in found] == persons
    assert [row[1] for row in found] == pytest.approx(persons)


@pytest.mark.parametrize("engine", ["closed", "imputed"])
@pytest.mark.parametrize(("measure", "low"), [("count(*)", True), ("sum(age)", True), ("avg(age)", False)])
def test_counts_and_sums_of_records_are_noted_to_be_too_low(hospital, engine, measure, low):
    call = "select note from estimate($1, 'r', original := 'visits', engine := $2, bounds := 'none')"
    ((note,),) = hospital.execute(call, [f"select {measure} as n from visits", engine]).fetchall()
    assert ("counts and sums of records are too low" in (note or "")) == low
