"""one_to_m_generalize, rmr and the measures of their releases in SQL, on the example of Gong et al. (2017)."""

import duckdb
import pytest

import duckdb_anon

WHO = [
    ("Bob", 18, "M", 12000, ("a1", "a2", "b2")), ("David", 14, "M", 13000, ("b1",)), ("Tom", 21, "F", 21000, ("b2",)),
    ("Simon", 16, "M", 14000, ("c2",)), ("Daisy", 27, "F", 22000, ("a2", "b2")),
    ("Alice", 28, "F", 21000, ("c1", "c2")),
]  # fmt: skip
LABELS = {"pid": "person", "age": "quasi", "gender": "quasi", "zip": "quasi", "disease": "sensitive hierarchy=tree"}


@pytest.fixture
def hospital(con):
    con.execute("create table patients (pid varchar, age integer, gender varchar, zip integer, disease varchar)")
    rows = [(*person, item) for *person, items in WHO for item in items]
    con.executemany("insert into patients values (?, ?, ?, ?, ?)", rows)
    con.execute("create table tree as from (values ('a1','A','*'), ('a2','A','*'), ('b1','B','*'), ('b2','B','*'), "
                "('c1','C','*'), ('c2','C','*')) as t(leaf, letter, root)")  # fmt: skip
    # ages 1 to 100 in tens; zip codes in thousands: 30 of them as the printed figures take it, 20 as the text says
    con.execute("create table ages as select i::varchar as leaf, format('[{},{}]', (i - 1) // 10 * 10 + 1, "
                "(i - 1) // 10 * 10 + 10) as tens, '*' as root from range(1, 101) t(i)")  # fmt: skip
    for size, first in ((30, 1), (20, 11)):
        name = "format('[{},{}]', (i - 1) // 5 * 5000 + 1, (i - 1) // 5 * 5000 + 5000)"
        rows = f"select (i * 1000)::varchar as leaf, {name} as five, '*' as root from range({first}, 31) t(i)"
        con.execute(f"create table zips{size} as {rows}")
    for column, role in LABELS.items():
        con.execute(f"comment on column patients.{column} is 'anon: {role}'")
    return con


def printed(con: duckdb.DuckDBPyConnection, zips: str = "zips30") -> str:
    con.execute(f"""create or replace table r as from one_to_m_generalize('patients', 2, 3, row_id := true, hierarchies :=
        {{'disease': 'tree', 'age': 'ages', 'zip': '{zips}'}})""")
    return f"hierarchies := {{'disease': 'tree', 'age': 'ages', 'zip': '{zips}'}}"


def test_the_printed_table_comes_out(hospital):
    printed(hospital)
    rows = hospital.execute("select age, gender, zip, disease from r order by all").fetchall()
    young, old = ("[11,20]", ["M"], "[10001,15000]"), ("[21,30]", ["F"], "[20001,25000]")
    lists = (["A", "b2"], ["B"], ["C"])
    assert rows == [(*box, nodes) for box in (young, old) for nodes in lists]


@pytest.mark.parametrize(("zips", "mean"), [("zips30", 0.0889), ("zips20", 0.1167)])
def test_qid_ncp_is_the_mean_over_attributes(hospital, zips, mean):
    trees = printed(hospital, zips)
    loss = dict(hospital.execute(f"select attribute, ncp from information_loss('patients', 'r', {trees})").fetchall())
    assert loss["(all)"] == pytest.approx(mean, abs=5e-5)


@pytest.mark.parametrize(("variant", "value"), [("per_item", 8 / 30), ("published", 0.25), ("paper_example", 0.2)])
def test_sa_ncp_in_its_three_variants(hospital, variant, value):
    trees = printed(hospital)
    row = hospital.execute(f"from sa_ncp('patients', 'r', variant := '{variant}', {trees})").fetchone()
    assert row == ("disease", 10, 8, pytest.approx(value))


def test_a_fragment_finds_bob_only_among_two(hospital):
    trees = printed(hospital)
    rows = hospital.execute(f"from fragment_risk('patients', 'r', m := 3, {trees})").fetchall()
    # by one value: a1 a2 (A) 2, b1 (B) 2, b2 (b2 or B) 4, c1 c2 (C) 2 candidates; 10 person-values, b2 three times
    assert [row[:3] for row in rows] == [(1, 6, 0.5), (2, 4, 0.5), (3, 1, 0.5)]
    assert rows[0][3] == pytest.approx((7 * 0.5 + 3 * 0.25) / 10)


def test_exploded_rows_keep_each_persons_nodes_together(hospital):
    call = "one_to_m_generalize('patients', 2, 3, explode := true)"
    found = hospital.execute(f"select list(disease order by disease) from {call} group by pid order by all").fetchall()
    assert found == [(["A", "b2"],)] * 2 + [(["B"],)] * 2 + [(["C"],)] * 2
    numbers = hospital.execute(f"select distinct pid from {call} order by all").fetchall()
    assert numbers == [(i,) for i in range(1, 7)]


def test_changing_quasi_identifiers_are_an_error_that_counts_persons(hospital):
    hospital.execute("insert into patients values ('Bob', 19, 'M', 12000, 'a1'), ('Tom', 22, 'F', 21000, 'b2')")
    with pytest.raises(duckdb.Error, match=r"2 or more of 6 persons have rows that differ in age; say changing"):
        hospital.execute("from one_to_m_generalize('patients', 2, 3)")


@pytest.mark.parametrize(("changing", "upper"), [("first", 18), ("last", 40), ("set", 40)])
def test_changing_says_which_values_the_box_must_cover(hospital, changing, upper):
    hospital.execute("insert into patients values ('Bob', 40, 'M', 12000, 'a1')")
    call = f"one_to_m_generalize('patients', 2, 3, changing := '{changing}', qi := ['age', 'gender'], edges := 'tight')"
    men = hospital.execute(f"select distinct age from {call} where gender = ['M']").fetchall()
    assert [age["upper"] for (age,) in men] == [upper]
    if changing == "set":
        assert men[0][0]["lower"] == 14


def test_two_sensitive_columns_make_one_fingerprint(hospital):
    hospital.execute("create table drugs as from (values ('x', '*'), ('y', '*')) as t(leaf, root)")
    drug = "case when pid < 'D' then 'x' else 'y' end as drug"
    hospital.execute(f"create table treated as select *, {drug} from patients")
    hospital.execute("""create table r2 as from one_to_m_generalize('treated', 2, 1, qi := ['age'], sensitive := ['disease', 'drug'],
        person := 'pid', hierarchies := {'disease': 'tree', 'drug': 'drugs'})""")
    found = hospital.execute("from kl_diversity('r2', ['age'], sensitive := ['disease', 'drug'])").fetchone()
    assert found is not None and found[0] == 6 and found[3] >= 2
    lists = hospital.execute("select disease, drug from r2").fetchall()
    assert all(len(drug) == 1 and drug[0] in ("x", "y", "*") and disease for disease, drug in lists)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("2, 3, keep := ['zip'], qi := ['age']", "zip belong to rows, but one row per person is released"),
        ("2, 3, sensitive := 'gender', qi := ['age']", "generalized along a hierarchy, and gender has none"),
        ("7, 3", "k := 7 persons must share each fingerprint, but the table has 6 persons"),
        ("2, 4",
         "l = 4 was requested; the largest l this table can meet is 3. With k := 2, 6 persons have 3 different lists"),
    ],
)  # fmt: skip
def test_errors_say_what_is_allowed(hospital, arguments, message):
    with pytest.raises(duckdb.Error, match=message):
        hospital.execute(f"from one_to_m_generalize('patients', {arguments})")


def test_unknown_diagnoses_are_items_of_their_own(hospital):
    hospital.execute("insert into patients values ('Eve', 20, 'F', 21000, null), ('Ann', 20, 'F', 21000, null)")
    lists = hospital.execute("select disease from one_to_m_generalize('patients', 2, 3)").fetchall()
    assert len(lists) == 8 and lists.count((["(null)"],)) == 2


RELEASED = """qi := ['month_of_birth', 'year_of_birth', 'race', 'years_of_education', 'income'],
    sensitive := 'diagnosis'"""
VISITS = RELEASED + ", person := 'person_id', hierarchies := {'diagnosis': 'icd'}"


@pytest.fixture(scope="module")
def visits(shared_data):
    con = duckdb_anon.connect()
    con.execute(f"create table visits as from read_csv('{shared_data}/visits.csv', types = {{'diagnosis': 'VARCHAR'}})")
    con.execute(f"create table icd as from read_csv('{shared_data}/diagnosis_hierarchy.csv', all_varchar = true)")
    yield con
    con.close()


@pytest.mark.campaign
def test_visits_lose_less_than_the_published_code(visits):
    k, most = 10, 0.1079
    options = f"diversity := 'distinct', row_id := true, {VISITS}"
    visits.execute(f"create or replace table r as from one_to_m_generalize('visits', {k}, 5, {options})")
    assert visits.execute(f"select sa_ncp from sa_ncp('visits', 'r', {VISITS})").fetchone()[0] <= most
    loss = f"select ncp from information_loss('visits', 'r', {VISITS}) where attribute = '(all)'"
    assert visits.execute(loss).fetchone()[0] <= 0.05
    attained = visits.execute(f"select persons, k, distinct_l from kl_diversity('r', {RELEASED})").fetchone()
    assert attained[0] == 58568 and attained[1] >= k and attained[2] >= 5
