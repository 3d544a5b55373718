"""Anatomy as a SQL function, and its two tables."""

import duckdb
import pytest


@pytest.fixture
def patients(con):
    con.execute("""
        create table patients as
        select i as age, ['f', 'm'][1 + i % 2] as sex, ['flu', 'hiv', 'gout', 'mumps', 'acne'][1 + i % 5] as disease,
            i * 1.5 as cost
        from range(52) t(i);
        comment on column patients.age is 'anon: quasi';
        comment on column patients.sex is 'anon: quasi';
        comment on column patients.disease is 'anon: sensitive';
        comment on column patients.cost is 'anon: insensitive';
        create table r as from anatomy('patients', l := 4, seed := 3);
    """)
    return con


def test_the_two_tables_say_what_the_release_says(patients):
    qit = patients.execute("select * from anatomy_qit('r') order by age")
    assert [d[0] for d in qit.description] == ["bucket", "age", "sex", "cost"]
    assert len(qit.fetchall()) == 52
    st = patients.execute("select * from anatomy_st('r')")
    assert [d[0] for d in st.description] == ["bucket", "disease", "count"]
    assert sum(row[2] for row in st.fetchall()) == 52


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("anatomy('patients', l := 6)", "largest possible l is 4"),
        ("anatomy('(select age, nullif(disease, ''flu'') as disease from patients)', l := 2, qi := 'age', "
         "sensitive := 'disease')", "is NULL in 11 rows"),
        ("anatomy_qit('patients')", "no column 'bucket' and a MAP column"),
        ("anatomy_st('r', sensitive := 'diseases')", "did you mean 'disease'"),
    ],
)  # fmt: skip
def test_bad_calls_are_errors(patients, call, message):
    with pytest.raises(duckdb.Error, match=message):
        patients.execute(f"from {call}").fetchall()


ROLES = "qi := ['age', 'sex', 'job'], sensitive := 'disease'"


@pytest.fixture
def people(con):
    """400 people."""
    con.execute(
        """create table people as select (20 + hash(i) % 50)::int as age, ['f', 'm'][(hash(i, 1) % 2 + 1)::int] as sex,
        'job' || hash(i, 2) % 5 as job, 'd' || hash(i, 3) % 6 as disease from range(400) r(i)"""
    )
    return con


def test_the_sensitive_attribute_may_be_kept_alone(people):
    people.execute("create table linked as select * replace (disease || age as job) from people")
    alone = people.execute(f"describe from slicing('linked', 2, {ROLES}, sensitive_column := 'alone')").fetchall()
    assert alone[-1][0] == "disease"
    clustered = people.execute(f"describe from slicing('linked', 2, {ROLES}, column_count := 1)").fetchall()
    assert clustered[-1][0] == "age_sex_job_disease"


def test_the_error_says_which_l_could_be_met(people):
    with pytest.raises(duckdb.Error, match=r"slicing: .* the largest l this table can meet is [0-9.]+"):
        people.execute(f"from slicing('people', 7, {ROLES}, columns := [['age', 'sex', 'job']])").fetchall()
    with pytest.raises(duckdb.Error, match="takes one sensitive column"):
        people.execute("from slicing('people', 2, qi := ['age'], sensitive := ['job', 'disease'])").fetchall()
