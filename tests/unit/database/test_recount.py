"""k and l of a database hold on what is published: after dropped rows and treatments, of each table and of the join."""

from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import duckdb_anon
from duckdb_anon import AnonError, release_database
from tests.unit.database.test_release_database import KEYS, _hospital

pytestmark = [pytest.mark.campaign, pytest.mark.weekly]

PEOPLE = "create table patients as select i as id, 20 + i % 10 as age{} from range(100) t(i)"
FIRST = "select i as pid, date '2024-01-01' as day, 'HIV' as disease from range(100) t(i)"
ROLES = {"patients.age": "quasi", "visits.day": "quasi", "visits.disease": "sensitive"}


def _label(con, **roles):
    for column, role in roles.items():
        con.execute(f"comment on column {column.replace('__', '.')} is 'anon: {role}'")


def _refused(con, tables, what, **options):
    """What is refused leaves no schema; the message names what was counted."""
    with pytest.raises(AnonError, match=what) as caught:
        release_database(con, tables, individuals="patients", key="id", **options)
    assert caught.value.code == "requirement-not-met"
    assert con.execute("select count(*) from duckdb_schemas() where schema_name = 'release'").fetchone() == (0,)


@pytest.mark.parametrize(
    "second",
    [
        "select i, date '2024-02-01' + i::int, 'd' || i from range(90) t(i)",  # of 90 only, so that they are dropped
        "select i, date '2024-02-01', 'd' || i from range(100) t(i)",  # distinct values beside the one of everybody
    ],
)
@pytest.mark.parametrize("linked", [True, False])
def test_a_diagnosis_of_everybody_beside_others_is_refused(con, second, linked):
    con.execute(PEOPLE.format(""))
    con.execute(f"create table visits as {FIRST} union all {second}")
    _label(con, patients__age="quasi", visits__day="quasi", visits__disease="sensitive")
    options = {"k": 10, "l": 5, "keys": {"visits.pid": "patients.id"}, "linked": linked}
    _refused(con, ["patients", "visits"], r"visits.disease has the share 1\b", **options)


def test_lists_count_as_they_leave_too(con):
    con.execute(PEOPLE.format(""))
    con.execute(
        f"create table visits as {FIRST} union all select i, date '2024-02-01' + i::int, 'd' || i from range(90) t(i)"
    )
    _label(con, patients__age="quasi", visits__day="quasi", visits__disease="sensitive")
    options = {"k": 10, "l": 5, "keys": {"visits.pid": "patients.id"}, "l_counts": "lists"}
    _refused(con, ["patients", "visits"], "a list of sensitive values has the share 1", **options)
    con.execute("update visits set day = '2024-02-01' where day > '2024-01-01'")
    con.execute("insert into visits select i, date '2024-02-01', 'd' || i from range(90, 100) t(i)")
    made = release_database(con, ["patients", "visits"], individuals="patients", key="id", **options)
    assert made.largest <= 0.2 and made.counted[0].value == 1


def test_a_sensitive_column_that_is_dropped_or_rounded_does_not_count(con):
    con.execute(PEOPLE.format(", 'HIV' as disease, 'x' || i as note, 30000.5 + i as wage"))
    _label(con, patients__age="quasi", patients__disease="sensitive", patients__note="sensitive")
    options = {"k": 10, "l": 5}
    _refused(con, ["patients"], "patients.disease", treatments={"patients": {"note": "redact"}}, **options)
    _label(con, patients__wage="sensitive", patients__disease="identifier", patients__note="identifier")
    _refused(con, ["patients"], "patients.wage", treatments={"patients": {"wage": "round(to := 1000)"}}, **options)


def test_l_counts_without_known_columns(con):
    con.execute("create table patients as select i as id, 'HIV' as disease from range(20) t(i)")
    _label(con, patients__disease="sensitive")
    _refused(con, ["patients"], "patients.disease has the share 1", k=5, l=4)


@pytest.mark.parametrize("linked", [True, False])
def test_a_table_of_three_individuals_breaks_k(con, linked):
    con.execute(PEOPLE.format(""))
    con.execute("create table labs as select i as pid, 'v' || i as value from range(3) t(i)")
    _label(con, patients__age="quasi", labs__value="insensitive")
    options = {"k": 5, "keys": {"labs.pid": "patients.id"}, "linked": linked}
    _refused(con, ["patients", "labs"], "labs: a released record is that of 3", **options)


def _classes(con, linked):
    """Sensitive values of each released individual, by what is published of its known columns: read from the tables."""
    rows = defaultdict(lambda: (Counter(), set()))
    for pid, age, sex, debt in con.execute("select id, age, sex, debt from release.patients").fetchall():
        rows["patients", pid][0][str(age) + str(sex)] += 1
        rows["patients", pid][1].add(("debt", debt))
    of = "patients" if linked else "visits"
    for pid, day, ward, disease in con.execute("select pid, day, ward, disease from release.visits").fetchall():
        rows[of, pid][0][str(day) + str(ward)] += 1
        rows[of, pid][1].add(("disease", disease))
    found = defaultdict(list)
    for (table, _), (record, values) in rows.items():
        found[table, *sorted(record.items())].append(values)
    return found


@settings(max_examples=8)
@given(seed=st.integers(0, 10_000), patients=st.integers(40, 120), linked=st.booleans())
def test_k_and_l_hold_when_counted_from_the_published_tables(seed, patients, linked):
    con = duckdb_anon.connect()
    _hospital(con, patients, seed)
    options = {"individuals": "patients", "key": "id", "k": 3, "l": 2, "keys": KEYS, "linked": linked}
    made = release_database(con, ["patients", "visits", "labs"], **options)
    classes = _classes(con, linked)
    assert made.smallest <= min(map(len, classes.values())) and made.smallest >= 3
    shares = [
        most / len(members)
        for members in classes.values()
        for most in Counter(value for values in members for value in values).values()
    ]
    assert max(shares) <= made.largest <= 0.5
    con.close()


def test_domains_of_pseudonyms_shifts_and_tables_never_meet(con, tmp_path):
    con.execute("create table patients as select i as id, 20 + i % 10 as age, i as nr from range(200) t(i)")
    con.execute("""create table visits as select i % 200 as pid, i % 200 as nr, date '2024-01-01' as left_on
        from range(400) t(i)""")
    con.execute("create table labs as select i as pid, date '2024-01-01' as taken from range(200) t(i)")
    _label(con, patients__age="quasi")
    shift = "shift(days := 30000)"
    numbers = {
        "patients": {"nr": "pseudonym", "id": "pseudonym(format := 'integer', domain := 'shift')"},
        "visits": {"nr": "pseudonym", "left_on": shift}, "labs": {"taken": shift},
    }  # fmt: skip
    options = {"k": 5, "keys": {"visits.pid": "patients.id", "labs.pid": "patients.id"}, "treatments": numbers}
    for linked in (True, False):
        release_database(
            con, ["patients", "visits", "labs"], individuals="patients", key="id", linked=linked, replace=True,
            independent=True, **options,
        )  # fmt: skip
        undone = con.execute("""select count(*) from release.labs
            where taken - (pid % 60001 - 30000)::integer = date '2024-01-01'""").fetchall()[0][0]
        assert undone <= 2  # one in 60,001 by chance
        joined = con.execute("select count(*) from release.patients join release.visits using (nr)").fetchall()[0][0]
        same_day = con.execute(
            "select count(*) from release.labs semi join release.visits on taken = left_on"
        ).fetchall()[0][0]
        assert (joined, same_day) == (400, 200) if linked else joined == 0 and same_day <= 10
