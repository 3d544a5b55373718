"""Anatomy as a SQL function, and its two tables."""

from __future__ import annotations

import duckdb
import pytest


@pytest.fixture
def patients(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
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


def test_the_two_tables_say_what_the_release_says(patients: duckdb.DuckDBPyConnection) -> None:
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
        ("anatomy('patients', l := 0)", "out of range"),
        ("anatomy('patients')", "missing required argument l"),
        ("anatomy('(select age, nullif(disease, ''flu'') as disease from patients)', l := 2, qi := 'age', "
         "sensitive := 'disease')", "is NULL in 11 rows"),
        ("anatomy_qit('patients')", "no column 'bucket' and a MAP column"),
        ("anatomy_st('r', sensitive := 'diseases')", "did you mean 'disease'"),
    ],
)  # fmt: skip
def test_bad_calls_are_errors(patients: duckdb.DuckDBPyConnection, call: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match=message):
        patients.execute(f"from {call}").fetchall()
