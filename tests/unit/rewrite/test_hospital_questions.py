"""Questions that join the tables of a released hospital are answered, and near the original's answers on average."""

import statistics

import duckdb
import pytest

import duckdb_anon

TOGETHER = {"patients": "release.patients", "visits": "release.visits"}
QUESTIONS = (
    "select sex, count(*) as n from patients join visits on id = patient group by sex",
    "select sex, avg(cost) as c from patients join visits on id = patient group by sex",
    "select diagnosis, avg(age) as a from patients join visits on id = patient group by diagnosis",
    "select age // 20 as band, count(*) as n from patients join visits on id = patient group by band",
    "select region, sum(cost) as c from patients join visits on id = patient where age >= 40 group by region",
    "select kind, count(distinct patient) as n from visits join wards using (ward) group by kind",
    "select kind, sex, sum(cost) as c from visits join wards using (ward) join patients on id = patient group by all",
    "select count(*) as n from patients where exists (select 1 from visits where patient = id and diagnosis = 'flu')",
    "select count(*) as n from patients where id not in (select patient from visits)",
    "select avg(n) as a, max(n) as m from (select id, count(visit) as n from patients left join visits on patient = id group by id)",
    "select sex, avg(total) as a from (select id, sex, sum(cost) as total from patients join visits on id = patient group by all) group by sex",
    "select count(*) as n from visits a join visits b on a.patient = b.patient and a.visit < b.visit and a.diagnosis = b.diagnosis",
    "select count(distinct id) as n from patients join visits on id = patient where age between 30 and 59 and diagnosis in ('flu', 'asthma')",
    "select region, count(*) filter (where diagnosis = 'flu') / count(*) as share from patients join visits on id = patient group by region",
)
"""Joined questions about persons, their visits and a lookup table."""


def hospital(con: duckdb.DuckDBPyConnection, patients: int) -> None:
    """Patients, their visits, of which older ones have more and other diagnoses, and the wards of the analyst."""
    con.execute(
        f"create table patients as select range as id, (20 + (hash(range) % 60))::int as age, "
        "['f', 'm'][1 + (hash(range, 1) % 2)::int] as sex, ['north', 'south', 'east', 'west'][1 + (hash(range, 2) % 4)::int] as region "
        f"from range({patients})"
    )
    con.execute(
        "create table visits as select row_number() over () as visit, id as patient, 'w' || hash(id, n) % 6 as ward, "
        "['flu', 'asthma', 'gout', 'fracture', 'migraine'][1 + least(4, (hash(id, n, 3) % 4)::int * age // 60)] as diagnosis, "
        "(20 + hash(id, n, 4) % 200 + age)::int as cost from patients, range(4) t(n) where n <= (hash(id, 5) % 3)::int + age // 50 - 1"
    )
    con.execute(
        "create table wards as select 'w' || range as ward, if(range < 2, 'surgery', 'other') as kind from range(6)"
    )
    labels = {"patients": {"age": "quasi", "sex": "quasi", "region": "quasi"},
              "visits": {"ward": "quasi", "diagnosis": "sensitive", "cost": "sensitive"}}  # fmt: skip
    for table, columns in labels.items():
        for column, label in columns.items():
            con.execute(f"comment on column {table}.{column} is 'anon: {label}'")
    duckdb_anon.release_database(
        con, ["patients", "visits"], individuals="patients", key="id", k=5, keys={"visits.patient": "patients.id"},
        treatments={"visits": {"visit": "pseudonym"}},
    )  # fmt: skip


@pytest.mark.parametrize(("patients", "mean"), [(300, 0.15), pytest.param(5000, 0.10, marks=pytest.mark.campaign)])
def test_joined_questions_are_all_answered_near_the_truth(patients, mean):
    with duckdb_anon.connect() as con:
        hospital(con, patients)
        errors = []
        for query in QUESTIONS if patients > 1000 else QUESTIONS[::3]:
            rows = con.execute(
                f"select estimate, relative_error from relative_error($${query}$$, {TOGETHER})"
            ).fetchall()
            assert rows and all(estimate is not None for estimate, _ in rows), query
            errors.append(statistics.mean([error for _, error in rows if error is not None]))
    assert statistics.mean(errors) <= mean
