"""A database is released whole: it joins, intervals inside individuals are exact, and k individuals share each record."""

import random

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import duckdb_anon
from duckdb_anon import AnonError, ParameterError, database_risk, release_database

pytestmark = pytest.mark.campaign

KEYS = {"visits.pid": "patients.id", "labs.visit": "visits.visit"}
ROLES = {
    "patients.name": "identifier", "patients.age": "quasi", "patients.sex": "quasi categorical", "patients.debt": "sensitive",
    "visits.day": "quasi", "visits.ward": "quasi", "visits.disease": "sensitive", "labs.value": "insensitive",
}  # fmt: skip


def _hospital(con: duckdb.DuckDBPyConnection, patients: int, seed: int) -> None:
    """Patients with up to four visits, visits with up to two labs; some rows belong to no patient."""
    draw = random.Random(seed)
    people = [(i, f"Name {i}", draw.randint(0, 90), draw.randint(0, 1), draw.randint(0, 9)) for i in range(patients)]
    visits = [
        (1000 + n, pid, f"2024-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}", f"w{draw.randint(0, 3)}", f"d{draw.randint(0, 5)}")
        for n, pid in enumerate(p for p in range(patients + 1) for _ in range(draw.randint(0, 4)))
    ]  # fmt: skip
    labs = [(v[0], draw.randint(0, 9)) for v in visits for _ in range(draw.randint(0, 2))]
    con.execute("create table patients (id integer, name varchar, age integer, sex integer, debt integer)")
    _insert(con, "patients", people)
    con.execute("create table visits (visit integer, pid integer, day date, ward varchar, disease varchar)")
    _insert(con, "visits", visits)
    con.execute("create table labs (visit integer, value integer)")
    _insert(con, "labs", labs)
    for column, role in ROLES.items():
        con.execute(f"comment on column {column} is 'anon: {role}'")


def _insert(con: duckdb.DuckDBPyConnection, table: str, rows: list[tuple[object, ...]]) -> None:
    con.execute(f"insert into {table} values {', '.join(map(repr, rows))}")


def _release(con: duckdb.DuckDBPyConnection, **options: object) -> duckdb_anon.database.release.DatabaseRelease:
    given = {"individuals": "patients", "key": "id", "k": 3, "keys": KEYS, "independent": "replace" in options}
    return release_database(con, ["patients", "visits", "labs"], **{**given, **options})


def _least(con: duckdb.DuckDBPyConnection, events: int) -> int:
    """Least number of released individuals that fit demographics and any `events` known events of an individual."""
    rows = con.execute("""select p.id, p.age::varchar || p.sex::varchar, list(v.day::varchar || v.ward::varchar) filter (v.visit is not null)
        from release.patients p left join release.visits v on v.pid = p.id group by all""").fetchall()
    records = [(person, sorted(visits or [])) for _, person, visits in rows]
    least = len(records)
    for person, visits in records:
        known = visits if events < 0 else visits[:events]
        fits = sum(p == person and all(v.count(e) >= known.count(e) for e in known) for p, v in records)
        least = min(least, fits)
    return least


@settings(max_examples=5)
# of fewer patients, those with labs may be fewer than k, and then the table is refused
@given(seed=st.integers(0, 10_000), patients=st.integers(30, 60), k=st.integers(2, 4))
def test_every_known_record_fits_k_individuals(seed, patients, k):
    con = duckdb_anon.connect()
    _hospital(con, patients, seed)
    made = _release(con, k=k)
    assert made.linked and made.smallest >= k
    assert all(_least(con, events) >= k for events in (0, 1, 2, -1))
    # generalized cells cover what they stand for: every released visit is one of the original's
    covered = con.execute("""select count(*) from release.visits r where not exists (select 1 from visits o where o.disease = r.disease
        and o.day between r.day.lower and r.day.upper and list_contains(r.ward, o.ward))""").fetchone()
    assert covered == (0,)
    con.close()


@pytest.mark.parametrize("promise", [{"k": 5}, {"k": None, "delta": 0.2}])
def test_a_rare_sensitive_number_or_date_is_a_mean_of_ten_individuals(con, promise):
    _hospital(con, 300, 2)
    con.execute("alter table patients alter debt type decimal(12, 2) using 1000 + id * id")
    con.execute("alter table labs add column seen date")
    con.execute("update labs set seen = date '2024-01-01' + rowid::integer")
    for column in ("patients.debt", "labs.seen"):
        con.execute(f"comment on column {column} is 'anon: sensitive'")
    made = _release(con, **promise)
    done = {name: done for table in made.tables for name, done in table.columns.items()}
    assert (done["debt"], done["seen"], done["value"]) == ("rare values joined", "rare values joined", "unchanged")
    counted = """select min(n) from (select count(distinct p.id) as n from release.patients as p {} group by {})"""
    joins = "join release.visits as v on v.pid = p.id join release.labs using (visit)"
    assert con.execute(counted.format("", "debt")).fetchone()[0] >= 10
    assert con.execute(counted.format(joins, "seen")).fetchone()[0] >= 8  # rows of the original count ten
    assert con.execute("select typeof(debt) from release.patients limit 1").fetchone() == ("DECIMAL(12,2)",)
    _release(con, replace=True, sensitive_edges=1, **promise)
    assert con.execute("select max(debt) from release.patients").fetchone() == (1000 + 299 * 299,)


def test_a_table_with_too_few_sensitive_numbers_is_refused(con):
    _hospital(con, 40, 2)
    con.execute("update patients set debt = null where id >= 6")
    with pytest.raises(AnonError, match="sensitive_edges := 10 is more than the table has carriers of 'debt'"):
        _release(con)
    assert con.execute("select 1 from duckdb_schemas() where schema_name = 'release'").fetchone() is None
    assert _release(con, sensitive_edges=1).smallest >= 3


def test_the_tables_join_and_nothing_of_the_keys_stays(con):
    _hospital(con, 300, 1)
    made = _release(con, treatments={"visits": {"visit": "pseudonym(format := 'integer')"}})
    con.execute("""select (select count(*) from release.visits), (select count(*) from release.labs),
        (select count(*) from release.labs join release.visits using (visit)
        join release.patients p on p.id = pid)""")
    visits, labs, joined = con.fetchone()
    assert labs == joined > 0
    assert con.execute("select count(*) from release.visits join release.patients on id = pid").fetchone() == (visits,)
    assert con.execute("select typeof(any_value(visit)) from release.labs").fetchone() == ("BIGINT",)
    by_name = {table.name: table for table in made.tables}
    assert by_name["patients"].dropped == ["name"]
    assert by_name["visits"].rows == visits and by_name["visits"].dropped_rows > 0
    assert con.execute("""select count(*) from release.patients r
        join patients o on r.id::varchar = o.id::varchar""").fetchone() == (0,)
    comments = con.execute("select comment from duckdb_tables() where schema_name = 'release'").fetchall()
    assert all(text.startswith("anon: release") and "k := 3" in text for (text,) in comments)


def test_intervals_inside_individuals_are_exact(con):
    _hospital(con, 200, 2)
    con.execute("alter table visits add column discharge date")
    con.execute("update visits set discharge = day + visit % 9")
    con.execute("alter table labs add column taken date")
    con.execute("update labs set taken = (select any_value(v.discharge) from visits v where v.visit = labs.visit) - 2")
    shift = {"visits": {"discharge": "shift(90)", "visit": "pseudonym"}, "labs": {"taken": "shift(90)"}}
    _release(con, treatments=shift, force=["visits.discharge", "labs.taken"])
    spans = con.execute("""select distinct discharge - taken from release.labs
        join release.visits using (visit)""").fetchall()
    assert spans == [(2,)]
    moved = con.execute("""select count(*) from release.visits
        where not discharge between day.lower - 90 and day.upper + 99""").fetchone()
    assert moved == (0,)


def test_unlinked_tables_keep_the_promise_by_themselves(con):
    _hospital(con, 120, 6)
    made = _release(con, linked=False)
    assert not made.linked and made.smallest >= 3 and "not linked" in made.lines()[-1]
    assert con.execute("select count(*) from release.visits join release.patients on pid = id").fetchone() == (0,)
    assert con.execute("select count(*) from release.visits join release.labs using (visit)").fetchone() == (0,)
    assert con.execute("""select count(*) from release.labs l join release.visits v
        on l.visit = v.visit or l.visit = v.pid""").fetchone() == (0,)
    least = con.execute("""select min(n) from (select count(*) as n from (select pid, list((day, ward)::varchar order by (day, ward)::varchar)
        as record from release.visits group by pid) group by record)""").fetchall()[0][0]
    assert least >= 3


def test_a_lasting_key_gives_the_same_pseudonyms(con, tmp_path):
    _hospital(con, 60, 3)
    (tmp_path / "key").write_text("f" * 64, encoding="utf-8")
    found = []
    for options in (
        {"key_file": str(tmp_path / "key")},
        {"key_file": str(tmp_path / "key"), "replace": True},
        {"replace": True},
    ):
        _release(con, **options)
        found.append({row[0] for row in con.execute("select id from release.patients").fetchall()})
    assert found[0] == found[1] and not found[0] & found[2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keys": {"visits.pid": "patients.id"}}, "labs cannot be traced"),
        ({"keys": {**KEYS, "visits.ward": "patients.id"}}, "two columns of visits"),
        ({"keys": {**KEYS, "visit.pid": "patients.id"}}, "TABLE.COLUMN"), ({"key": "ident"}, "no column 'ident'"),
        ({"individuals": "people"}, "no table of the plan"),
        ({"treatments": {"visits": {"day": "shift"}}}, "labelled quasi and treated"),
        ({"treatments": {"visits": {"pid": "mask(keep := 1)"}}}, "is a key"),
        ({"treatments": {"labs": {"value": "shift"}}}, "takes a DATE"), ({"kk": 3}, "unknown option 'kk'"),
        ({"k": 1}, "at least 2"),
    ],
)  # fmt: skip
def test_a_plan_that_does_not_fit_is_refused(con, options, message):
    _hospital(con, 30, 4)
    with pytest.raises(AnonError, match=message):
        _release(con, **options)
    assert con.execute("select count(*) from duckdb_schemas() where schema_name = 'release'").fetchone() == (0,)
    assert con.execute("select count(*) from duckdb_databases() where database_name like 'anon_work%'").fetchone() == (
        0,
    )


def test_an_identifier_is_not_released_under_another_label(con):
    _hospital(con, 60, 5)
    con.execute("alter table visits add column nurse varchar")
    con.execute("update visits set nurse = 'Name ' || pid")
    con.execute("comment on column visits.nurse is 'anon: insensitive'")
    with pytest.raises(AnonError, match=r"nurse.*identify"):
        _release(con)
    with pytest.raises(ParameterError, match="no treatment"):
        _release(con, treatments={"visits": {"nurse": "hide"}})


def test_risk_on_the_join_is_at_most_the_promise(con):
    _hospital(con, 250, 7)
    options = {"individuals": "patients", "key": "id", "k": 4, "keys": KEYS}
    risks = {r.known: r for r in database_risk(con, ["patients", "visits", "labs"], targets=250, **options)}
    assert list(risks) == [
        "demographics", "and one event", "and two events", "and three events", "and all events",
        "and all events and one value of patients.debt", "and all events and one value of visits.disease",
        "and all events and one value of labs.value", "strongest",
    ]  # fmt: skip
    assert all(
        risk.identity <= 1 / 4 + 1e-9
        for known, risk in risks.items()
        if " value of " not in known and known != "strongest"
    )
    assert [known for known, risk in risks.items() if not risk.judged] == list(risks)[5:7]
    assert risks["strongest"].low <= 1 / 4
    assert risks["and two events"].pseudonyms > 0.85
    _release(con, k=4)
    # demographics alone: brute force over released boxes
    people = con.execute("select id, age, sex from patients").fetchall()
    boxes = con.execute("select age, sex from release.patients").fetchall()
    chances = [1 / sum(a["lower"] <= age <= a["upper"] and sex in s for a, s in boxes) for _, age, sex in people]
    assert risks["demographics"].identity == pytest.approx(sum(chances) / len(chances))
    same = [1 / sum((a, s) == (age, sex) for _, a, s in people) for _, age, sex in people]
    assert risks["demographics"].pseudonyms == pytest.approx(sum(same) / len(same))
    with pytest.raises(ParameterError, match="unlinked"):
        database_risk(con, ["patients", "visits", "labs"], linked=False, **options)


def test_hierarchies_missing_values_and_columns_of_any_name(con):
    con.execute("""create table patients as select i as id, case when i % 7 > 0 then 20 + i % 60 end as s,
        case when i % 11 > 0 then 'c' || i % 9 end as c from range(300) t(i)""")
    con.execute("""create table visits as select i % 300 as i, case when i % 5 > 0 then timestamp '2024-01-01' + to_hours(i * 7) end
        as n, 'd' || i % 30 as icd from range(700) t(i)""")
    con.execute("""create table towns as select distinct c as leaf, 'r' || right(c, 1)::integer % 3, '*' from patients
        where c > ''""")
    con.execute("create table icds as select distinct icd as leaf, 'g' || substr(icd, 2)::integer % 5, '*' from visits")
    for column, role in {
        "patients.s": "quasi", "patients.c": "quasi hierarchy=towns", "visits.n": "quasi", "visits.icd": "quasi hierarchy=icds",
    }.items():  # fmt: skip
        con.execute(f"comment on column {column} is 'anon: {role}'")
    options = {"individuals": "patients", "key": "id", "k": 4, "keys": {"visits.i": "patients.id"}}
    assert release_database(con, ["patients", "visits"], **options).smallest >= 4
    assert con.execute("select count(*) from release.visits join release.patients on i = id").fetchall()[0][0] > 500
    nodes = {node for (node,) in con.execute("select distinct icd from release.visits").fetchall()}
    assert any(node.startswith("g") or node == "*" for node in nodes)
    risks = {risk.known: risk for risk in database_risk(con, ["patients", "visits"], targets=300, **options)}
    assert 0 < risks["and two events"].identity <= 0.25


def test_a_copy_of_the_key_is_not_released(con):
    _hospital(con, 80, 8)
    con.execute("alter table visits add column copied integer")
    con.execute("update visits set copied = pid")
    con.execute("comment on column visits.copied is 'anon: insensitive'")
    with pytest.raises(AnonError, match=r"copied.*carries 'pid'"):
        _release(con)


def test_a_second_release_is_refused_unless_it_is_independent(con):
    _hospital(con, 80, 9)
    _release(con)
    with pytest.raises(AnonError, match=r"patients has been released before: release.patients") as caught:
        _release(con, schema="other")
    assert caught.value.code == "released-before"
    with pytest.raises(AnonError, match="released before"):
        duckdb_anon.release(con, "r", "mondrian('visits', 3)")
    _release(con, schema="other", independent=True)
    (comment,) = con.execute("select comment from duckdb_tables() where schema_name = 'other' limit 1").fetchone()
    assert ") independent of earlier releases on " in comment
    entries = con.execute("select original, previous, independent from anon_register() order by number").fetchall()
    assert [name for name, *_ in entries] == ["patients", "visits", "labs"] * 2
    assert [independent for *_, independent in entries] == [False] * 3 + [True] * 3
    for statement in (str(caught.value).rpartition("with ")[2], "delete from anon.releases where sequence = 4"):
        con.execute(statement.removesuffix(" [released-before]"))
    _release(con, schema="third")


def test_the_register_may_be_another_database(con):
    _hospital(con, 60, 10)
    con.execute("attach ':memory:' as keeper")
    _release(con, register="keeper")
    rows = con.execute("select database, name, original from anon_register() order by number").fetchall()
    assert rows == [("keeper", f"memory.release.{name}", f"memory.{name}") for name in ("patients", "visits", "labs")]
    with pytest.raises(AnonError, match="released before"):
        _release(con, schema="other")


def test_sql_releases_and_measures_as_python_does(con):
    _hospital(con, 80, 11)
    given = """['patients', 'visits', 'labs'], individuals := 'patients', key := 'id', k := 3,
        keys := {'visits.pid': 'patients.id', 'labs.visit': 'visits.visit'}, treatments := {'labs.value': 'round(to := 5)'}"""
    rows = con.execute(f"select table_name, rows, dropped_columns from anon_release_database({given})").fetchall()
    counted = [con.execute(f"select count(*) from {name}").fetchall()[0][0] for name, *_ in rows]
    assert [row[1] for row in rows] == counted and rows[0][2] == "name"
    assert con.execute("select count(*) from release.labs where value % 5 > 0").fetchone() == (0,)
    with pytest.raises(duckdb.Error, match="anon_release_database: patients has been released before"):
        con.execute(f"from anon_release_database({given}, replace := true)")
    found = con.execute(f"select known, identity from anon_database_risk({given}, targets := 80)").fetchall()
    treatments = {"labs": {"value": "round(to := 5)"}}
    options = {"individuals": "patients", "key": "id", "k": 3, "keys": KEYS, "treatments": treatments, "targets": 80}
    risks = database_risk(con, ["patients", "visits", "labs"], **options)
    assert found[:-1] == [(risk.known, pytest.approx(risk.identity)) for risk in risks[:-1]]
