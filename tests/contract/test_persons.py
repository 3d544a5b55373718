"""Every entry protects persons, counts them, or refuses a table in which somebody has several rows."""

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.model.function_specs import Method, PureSql, Report
from duckdb_anon.registry import ENTRIES, METHODS
from tests.reference.entry_calls import Tables, refusal, smallest_call

MEASURES_OF_ROWS = [e for e in ENTRIES if e.unit == "row" and not isinstance(e, Method)]
CLASSES = [e for e in ENTRIES if isinstance(e, PureSql) and "person" not in {p.name for p in e.parameters}]


@pytest.fixture(scope="module")
def visits():
    """The counterexample: 100 classes of five rows, each of one person alone."""
    con = duckdb_anon.connect()
    con.execute("create table visits as select i // 5 as pid, i // 5 as age, i % 5 as disease from range(500) t(i)")
    con.execute("create table sliced as select pid as bucket, {age: age} as a, {disease: disease} as d from visits")
    con.execute("create table alone as select i as pid, i // 5 as age, i % 5 as disease from range(500) t(i)")
    for table in ("visits", "alone"):
        for column, role in (("pid", "person"), ("age", "quasi"), ("disease", "sensitive")):
            con.execute(f"comment on column {table}.{column} is 'anon: {role}'")
    yield con
    con.close()


@pytest.mark.parametrize("entry", [m for m in METHODS if m.unit == "row"], ids=lambda m: m.name)
def test_a_method_of_rows_refuses_persons_with_several_and_names_others(visits, entry):
    function, code, message = refusal(visits, f"from {entry.name}({smallest_call(entry, 'visits')})")
    assert (function, code) == (entry.name, "several-rows")
    assert "100 of 100" in message and all(other in message for other in entry.instead)
    call = f"{smallest_call(entry, '(from visits)')}, qi := ['age'], sensitive := 'disease', person := 'pid'"
    assert refusal(visits, f"from {entry.name}({call})")[1] == "several-rows"


def test_a_release_that_counted_persons_is_not_checked_by_rows(visits):
    said = duckdb_anon.release(visits, "boxes", "mondrian('visits', k := 5)", replace=True)
    assert "counting persons" in said
    for entry in CLASSES:
        with pytest.raises(duckdb.Error, match=rf"{entry.name}: boxes was made counting individuals"):
            visits.execute(f"from {entry.name}('boxes')").fetchall()
    plain = "'(select age, disease from visits)', 'boxes', qi := ['age'], sensitive := 'disease'"
    for name in ("linkage_risk", "singling_out", "inference"):
        with pytest.raises(duckdb.Error, match=f"{name}: boxes was made counting individuals"):
            visits.execute(f"from {name}({plain})").fetchall()
    with pytest.raises(duckdb.Error, match="has no column row_id"):
        visits.execute("from k_anonymity('boxes', original := 'visits')").fetchall()
    visits.execute("create or replace table checked as from mondrian('visits', k := 5, row_id := true)")
    assert visits.execute("from k_anonymity('checked', ['age'])").fetchall()[0][0] >= 25
    persons = visits.execute("from k_anonymity('checked', ['age'], original := 'visits')").fetchall()[0][0]
    assert 5 <= persons < 25
    with pytest.raises(duckdb.Error, match=r"no column of .* identifies the individual of a row"):
        visits.execute("from k_anonymity('checked', ['age'], original := '(select age from visits)')").fetchall()
    assert visits.execute("from relative_error('select count(*) from visits', 'visits', 'boxes')").fetchall()


def test_a_sliced_release_tells_the_persons_of_its_buckets(visits):
    visits.execute("""create or replace table sliced_k as
        from merging('visits', 1, min_bucket := 7, row_id := true, seed := 1)""")
    found = visits.execute("from k_anonymity('sliced_k', ['age'], original := 'visits')").fetchall()
    whose = "(select pid, row_number() over () - 1 as row_id from visits)"
    counted = visits.execute(f"""select min(n) from (select count(distinct pid) as n from sliced_k join {whose} using (row_id)
        group by bucket)""").fetchall()
    assert found[0][0] == counted[0][0] >= 7 and found[0][1] == 1 / found[0][0]
    with pytest.raises(duckdb.Error, match="row_id is permuted like every slice"):
        visits.execute("from l_diversity('sliced_k', ['age'], 'disease', original := 'visits')").fetchall()


@pytest.mark.parametrize("entry", MEASURES_OF_ROWS, ids=lambda e: e.name)
def test_a_measure_of_rows_refuses_persons_with_several(visits, entry):
    release = "sliced" if isinstance(entry, Report) and "rows" not in entry.answers else "visits"
    tables = Tables("visits", release, number="age", text="disease", sensitive="disease", qi=("age",))
    function, code, message = refusal(visits, tables.statement(entry))
    assert (function, code) == (entry.name, "several-rows")
    assert all(other in message for other in entry.instead)


def test_compare_refuses_rows_of_persons_beside_lists(visits):
    # any of the measures it asks may be the first to refuse
    for releases in ("['visits']", "['visits', 'sliced']"):
        with pytest.raises(duckdb.Error, match=r"\w+: .*individuals of .* have several rows"):
            visits.execute(f"from compare('visits', {releases})").fetchall()


def test_rows_are_persons_where_nobody_has_two(visits):
    released = visits.execute("from mondrian('alone', k := 5)").fetchall()
    assert len(released) == 500
    assert visits.execute("from delta_probability('alone', 0.5)").fetchall()


@pytest.mark.parametrize("entry", CLASSES, ids=lambda e: e.name)
def test_classes_count_persons(visits, entry):
    found = visits.execute(f"from {entry.name}('visits')").fetchall()
    expected = {
        "k_anonymity": [(1.0, 1.0)],
        "l_diversity": [("distinct", 1.0), ("frequency", 1.0), ("entropy", 1.0), ("recursive", float("inf")), ("rows",
         1.0)],
        "t_closeness": [(0.0, "ordered")], "reidentification_risk": [(100, 1.0, 1.0, 1.0, 1.0, 100, 100.0)],
        "class_statistics": [(100, 100, 1, 1.0, 1, 100.0)], "equivalence_classes": [(age, 1) for age in range(100)],
        "uniques": [(age,) for age in range(100)],
        "record_risk": [(*row, 1, 1.0, 1.0) for row in visits.execute("from visits").fetchall()],
    }  # fmt: skip
    assert sorted(found) == sorted(expected[entry.name])  # fmt: skip


@pytest.mark.parametrize(
    "call", ["mondrian('many', k := 5", "mondrian('many', l := 2", "incognito('many', k := 5",
             "incognito('many', k := 2, l := 2, max_suppression := 0.3"],
)  # fmt: skip
def test_one_person_has_not_most_rows_of_a_class(visits, call):
    """Five persons in a class of 100 rows are no crowd where 95 of these are one person's."""
    visits.execute("create or replace table many as select case when i < 95 then 0 else i end as pid, 30 as age, "
                   "i % 7 as s from range(100) t(i)")  # fmt: skip
    roles = "qi := ['age'], sensitive := 's', person := 'pid', sensitive_edges := 1"
    with pytest.raises(duckdb.Error, match=r"of a group's rows may belong to one individual.* 1/1.052 are|supp"):
        visits.execute(f"from {call}, {roles})").fetchall()
    assert visits.execute("from k_anonymity('many', ['age'], person := 'pid')").fetchall() == [(6.0, 0.95)]
    # beside others enough she is one of many; her class has to hold them
    visits.execute("insert into many select 1000 + i // 2, 30 + i % 60, i % 7 from range(2000) t(i)")
    visits.execute(f"create or replace table made as from {call}, {roles}, row_id := true)")
    share = visits.execute("""select max(m / n) from (select max(c) as m, sum(c) as n from (select made.age, pid, count(*) as c from made
        join (select pid, row_number() over () - 1 as row_id from many) using (row_id)
        group by all) group by age)""").fetchall()[0][0]
    assert share <= (1 / 5 if "k := 5" in call else 1 / 2) + 1e-9


def test_a_row_of_nobody_is_refused(visits):
    lost = "('(select nullif(pid, 7) as pid, age, disease from alone)', qi := ['age'], person := 'pid'"
    for call in (f"mondrian{lost}, k := 5)", f"k_anonymity{lost})", f"delta_probability{lost}, delta := 0.5)"):
        with pytest.raises(duckdb.Error, match="NULL in"):
            visits.execute(f"from {call}").fetchall()
