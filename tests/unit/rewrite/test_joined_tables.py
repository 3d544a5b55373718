"""Tables of a released database: drawn together, so that they join and an individual has one value in all of them."""

import duckdb
import pytest

import duckdb_anon

TOGETHER = {"patients": "release.patients", "visits": "release.visits"}


@pytest.fixture(scope="module")
def hospital() -> duckdb.DuckDBPyConnection:
    """400 patients, of whom the older ones come more often, and their visits."""
    con = duckdb_anon.connect()
    con.execute("""create table patients as select range + 100 as id, (hash(range) % 80)::int as age,
        hash(range + 7) % 2 = 0 as female from range(400)""")
    con.execute("""create table visits as select row_number() over () as visit, id as patient, age + n as cost,
        'w' || hash(id, n) % 4 as ward from patients, range(6) t(n) where n <= age / 20 + hash(id) % 3 - 1""")
    for column, label in {"patients.age": "quasi", "patients.female": "quasi", "visits.ward": "quasi",
                          "visits.cost": "sensitive"}.items():  # fmt: skip
        con.execute(f"comment on column {column} is 'anon: {label}'")
    duckdb_anon.release_database(
        con, ["patients", "visits"], individuals="patients", key="id", k=4, keys={"visits.patient": "patients.id"}
    )
    return con


def test_tables_of_a_database_are_drawn_so_that_they_join(hospital):
    for name in TOGETHER:
        hospital.execute(f"create or replace temp table d_{name} as "
                         f"from impute('release.{name}', original := '{name}', seed := 1, together := {TOGETHER})")  # fmt: skip
    joined, people = hospital.execute(
        "select count(*), count(distinct id) from d_patients join d_visits on patient = id"
    ).fetchone()
    assert (joined,) == hospital.execute("select count(*) from release.visits").fetchone()
    assert (people,) == hospital.execute("select count(distinct patient) from release.visits").fetchone()
    # every drawn value lies in the released cell of its row
    outside = hospital.execute("""select count(*) from d_patients d join release.patients r using (id)
        where not (d.age between r.age.lower and r.age.upper and list_contains(r.female, d.female))""").fetchone()
    assert outside == (0,)


def test_the_ends_of_tight_boxes_are_values_of_their_class(con):
    # forty classes of three records, whose boxes overlap
    con.execute("create table people (age integer, class integer)")
    con.execute("comment on column people.age is 'anon: quasi'")
    con.execute(
        "create table boxes as select {'lower': range // 3, 'upper': range // 3 + 100} as age, range // 3 as class from range(120)"
    )
    ends = con.execute("select class, min(age) - class, max(age) - class from impute('boxes', original := 'people', seed := 1) "
                       "group by class order by class").fetchall()  # fmt: skip
    assert ends[1:] == [(number, 0, 100) for number in range(1, 40)]  # no other box ends near 100
