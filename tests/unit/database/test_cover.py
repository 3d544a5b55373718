"""A database by mutual cover: types stay, members of a group keep equal rows, values are permuted, l holds at the end."""

import datetime
import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

from duckdb_anon import AnonError, ParameterError, database_risk, release_database
from duckdb_anon.database.plan import Plan
from duckdb_anon.database.released_tables import make_release, working
from tests.unit.database.test_release_database import KEYS, _hospital

HOSPITAL = Path(__file__).resolve().parents[3] / "examples" / "hospital" / "hospital.py"
TABLES = ["patients", "visits", "labs"]
OPTIONS = {"individuals": "patients", "key": "id", "keys": KEYS, "force": ["patients.debt"]}


def _labelled(con, patients=150, seed=1):
    """The hospital, where laboratory values are known too, and debts tell the tests which patient is which."""
    _hospital(con, patients, seed)
    con.execute("update patients set debt = id")
    con.execute("comment on column labs.value is 'anon: quasi'")


def test_types_rows_and_values_are_those_of_the_originals(con):
    _labelled(con)
    made = release_database(con, TABLES, delta=0.2, sensitive_edges=1, **OPTIONS)
    assert made.smallest >= 8 and made.linked  # 1.6 / delta
    for table in TABLES:
        before, after = (con.execute(f"describe {schema}.{table}").fetchall() for schema in ("main", "release"))
        types = {name: kind for name, kind, *_ in before if name not in ("id", "pid", "visit")}
        assert {name: kind for name, kind, *_ in after if name in types}.items() <= types.items()
    joined = con.execute("""select count(*) from release.labs join release.visits using (visit)
        join release.patients on pid = id""").fetchone()
    assert joined == con.execute("select count(*) from release.labs").fetchone() > (0,)
    # each number of visits and laboratory values is that of a group or more
    assert (
        con.execute("""select min(n) from (select count(*) as n from (select p.id, count(distinct v.visit) as visits,
        count(l.visit) as labs from release.patients p left join release.visits v on pid = id
        left join release.labs l using (visit) group by 1) group by visits, labs)""").fetchone()[0]
        >= 8
    )
    # no value is new or lost, and few individuals have their own
    assert con.execute("""select count(*) from (from (select age, sex from patients) unpivot (v for c in (age, sex))
        except all from (select age, sex from release.patients) unpivot (v for c in (age, sex)))""").fetchone() == (0,)
    assert con.execute("select count(*) from (select day from release.visits except all select day from visits)"
    ).fetchone() == (0,)  # fmt: skip
    same = con.execute("""select avg(((o.age, o.sex) = (r.age, r.sex))::integer) from patients o
        join release.patients r using (debt)""").fetchone()[0]  # fmt: skip
    assert same < 0.3
    # sensitive values stay with their individual
    assert con.execute("""select count(*) from (select debt, disease from release.patients join release.visits on pid = id
        except all select debt, disease from patients p join visits v on v.pid = p.id)""").fetchone() == (0,)


@pytest.mark.parametrize("linked", [True, False])
def test_l_holds_in_every_group_after_rows_are_dropped(con, linked):
    _labelled(con, 200)
    con.execute("comment on column patients.debt is 'anon: identifier'")
    plan = Plan.of(con, TABLES, {**OPTIONS, "delta": 0.25, "l": 2, "linked": linked}, {})
    with working(con, plan) as work:
        made = make_release(work)
        visits = work.of(plan.tables[1], "release")
        shares = con.execute(
            f"select count(distinct _anon_i) / any_value(n) from {visits} join (select _anon_i, _anon_c, "
            f"count(*) over (partition by _anon_c) as n from {work.boxes} semi join {visits} using (_anon_i)) "
            "using (_anon_i) group by _anon_c, disease"
        ).fetchall() if linked else []  # fmt: skip
    assert max(shares, default=(0,))[0] <= 0.5 and 0 < made.largest <= 0.5
    assert made.smallest >= 7


def test_a_release_that_moved_a_value_out_of_its_place_is_refused(con, monkeypatch):
    _labelled(con)
    from duckdb_anon.database import released_tables

    write = released_tables.write_table

    def tampered(work, table, record, key):
        made = write(work, table, record, key)
        if table.name == "visits":
            con.execute(f"update {work.of(table, 'release')} set ward = 'w0' where rowid = 3 or ward = 'w1'")
        return made

    monkeypatch.setattr(released_tables, "write_table", tampered)
    with pytest.raises(AnonError, match="visits: released values of"):
        release_database(con, TABLES, delta=0.2, **OPTIONS)


def test_stays_keep_their_lengths_and_tests_follow_the_visit(con):
    _labelled(con, 120)
    con.execute("alter table visits add column discharge date")
    con.execute("update visits set discharge = day + visit % 7")
    con.execute("alter table labs add column taken timestamp")
    con.execute(
        "update labs set taken = (select any_value(v.day) from visits v where v.visit = labs.visit) + interval 9 hour"
    )
    for column in ("visits.discharge", "labs.taken"):
        con.execute(f"comment on column {column} is 'anon: quasi'")
    release_database(con, TABLES, delta=0.2, **OPTIONS)
    spans = con.execute("select discharge - day from release.visits group by all order by 1").fetchall()
    assert spans == [(days,) for days in range(7)]
    assert con.execute("""select distinct taken - day::timestamp from release.labs
        join release.visits using (visit)""").fetchall() == [(datetime.timedelta(hours=9),)]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({}, "no promise is named"), ({"delta": 0.1, "k": 5}, "k and delta"), ({"k": 5, "method": "muco"}, "goes with delta"),
        ({"delta": 0.1, "method": "mondrian"}, "goes with k"), ({"delta": 0.1, "events": 4}, "events goes with k"),
        ({"delta": 0.9}, "delta"),
    ],
)  # fmt: skip
def test_a_promise_is_k_or_delta(con, options, what):
    _hospital(con, 30, 1)
    with pytest.raises(ParameterError, match=what):
        release_database(con, TABLES, **OPTIONS, **options)


def test_too_few_individuals_are_refused(con):
    _hospital(con, 9, 1)
    with pytest.raises(AnonError) as caught:
        release_database(con, TABLES, delta=0.1, **OPTIONS)
    assert caught.value.code == "requirement-not-met"


@pytest.mark.parametrize("emptied", [["labs"], ["labs", "visits"], ["labs", "visits", "patients"]])
def test_empty_tables_are_released(con, emptied):
    _hospital(con, 60, 1)
    for table in emptied:
        con.execute(f"delete from {table}")
    made = release_database(con, TABLES, **{**OPTIONS, "force": []}, delta=0.2)
    assert [table.rows for table in made.tables if table.name in emptied] == [0] * len(emptied)


def test_values_of_any_type_hierarchies_and_missing_values_come_back(con):
    con.execute("""create table patients as select i as id, (i * 7919 % 101)::hugeint * 10000000000000000000000000::hugeint as big,
        (['a', 'b', NULL])[1 + i % 3]::enum('a', 'b', 'c') as e, (i % 5)::bit as bits, ['1.5', 'nan', '-inf', NULL][1 + i % 4]::double as d,
        'k' || i % 9 as c from range(200) t(i)""")
    con.execute(
        "create table visits as select i % 200 as pid, time '08:00' + to_minutes(i % 90) as hour, i % 7 = 0 as urgent from range(600) t(i)"
    )
    con.execute("create table towns as select distinct c as leaf, 'r' || right(c, 1)::integer % 3, '*' from patients")
    for column in ("patients.big", "patients.e", "patients.bits", "patients.d", "visits.hour", "visits.urgent"):
        con.execute(f"comment on column {column} is 'anon: quasi'")
    con.execute("comment on column patients.c is 'anon: quasi hierarchy=towns'")
    release_database(
        con, ["patients", "visits"], individuals="patients", key="id", keys={"visits.pid": "patients.id"}, delta=0.1
    )
    for column in ("big", "e", "bits", "d", "c"):
        counted = "select {0}, typeof({0}), count(*) from {1}.patients group by all"
        assert (
            con.execute(f"{counted.format(column, 'main')} except {counted.format(column, 'release')}").fetchall() == []
        )
    assert con.execute("select typeof(any_value(hour)) from release.visits").fetchone() == ("TIME",)


def test_an_insider_of_the_groups_is_measured(con):
    _labelled(con)
    given = {**OPTIONS, "sensitive_edges": 1, "delta": 0.2}
    risks = {risk.known: risk for risk in database_risk(con, TABLES, targets=150, **given)}
    of_groups = risks["and all events and the groups"]
    assert of_groups.identity <= 1 / 8 and of_groups.judged
    assert risks["and all events"].pseudonyms > 0.9 and risks["and all events"].identity < 1 / 8
    assert risks["strongest"].low <= 0.2
    assert risks["and all events and one value of patients.debt"].identity == 1
    assert not risks["and all events and one value of patients.debt"].judged


@pytest.mark.parametrize(("share", "people", "is_refused"), [(0.35, 1500, False), (1.0, 560, True)])
def test_groups_grow_until_an_insider_who_learns_stays_at_delta(con, share, people, is_refused):
    con.execute(f"create table patients as select i as id, i * 7919 % 90 as age from range({people}) t(i)")
    con.execute(
        f"create table visits as select i % {people} as pid, hash(i) % 9 as ward, '' as disease from range(4500) t(i)"
    )
    con.execute(
        f"update visits set disease = 'd' || if(hash(pid, ward) % 1000 < {1000 * share}, ward, hash(pid, rowid) % 9)"
    )
    for column, role in {
        "patients.age": "quasi",
        "visits.ward": "quasi categorical",
        "visits.disease": "sensitive",
    }.items():
        con.execute(f"comment on column {column} is 'anon: {role}'")
    options = {"individuals": "patients", "key": "id", "keys": {"visits.pid": "patients.id"}, "delta": 0.1}
    if is_refused:
        with pytest.raises(AnonError, match=r"visits\.disease depend"):
            release_database(con, ["patients", "visits"], **options)
        con.execute("comment on column visits.disease is 'anon: quasi'")
        assert release_database(con, ["patients", "visits"], **options).smallest >= 16
        return
    assert release_database(con, ["patients", "visits"], **options).smallest >= 32
    [strongest] = [
        r for r in database_risk(con, ["patients", "visits"], targets=1500, **options) if r.known == "strongest"
    ]
    assert strongest.low <= 0.1


def test_gaps_of_a_shifted_date_are_measured_inside_the_group(con):
    _labelled(con, 120)
    con.execute("alter table visits add column discharge date")
    con.execute("update visits set discharge = day + visit % 4")
    treated = {**OPTIONS, "delta": 0.2, "treatments": {"visits": {"discharge": "shift(days := 180)"}}}
    with pytest.raises(AnonError) as caught:
        release_database(con, TABLES, **treated)
    assert caught.value.code == "determined-date"
    treated["force"] = ["patients.debt", "visits.discharge"]
    risks = {risk.known: risk for risk in database_risk(con, TABLES, targets=120, **treated)}
    gaps = risks["and all events and the gaps of visits.discharge"]
    assert gaps.judged and gaps.identity > 2 * risks["and all events and the groups"].identity


def test_the_page_knows_the_groups_and_a_plan_is_carried_out(con, tmp_path):
    pytest.importorskip("altair", reason="the report extra is not installed")
    _labelled(con)
    page = tmp_path / "page.html"
    release_database(con, TABLES, delta=0.2, evidence=str(page), **OPTIONS)
    facts = json.loads(page.with_suffix(".json").read_text(encoding="utf-8"))
    assert facts["permuted"] and facts["smallest"] >= 8
    assert {row["treatment"] for row in facts["columns"] if row["label"] == "quasi"} == {"permuted"}
    assert all(row["holds"] for row in facts["guarantees"])
    known = [row["known"] for row in facts["risks"]]
    assert "demographics and all events and the groups" in known and "muco, delta" in facts["figures"]["method"][0]
    assert "permuted in groups of" in page.read_text(encoding="utf-8")


def _counted(con, schema, questions, boxes):
    """Counts of the joined tables; of generalized ones as if values were even in their cells."""
    factors = {
        (False, "between"): "({0} between '{1}' and '{2}')::integer", (False, "in"): "list_contains({1}, {0})::integer",
        (True, "between"): "greatest(0, least({0}.upper, date '{2}') - greatest({0}.lower, date '{1}') + 1) / ({0}.upper - {0}.lower + 1)",
        (True, "in"): "len(list_intersect({0}, {1})) / len({0})",
    }  # fmt: skip
    sums = ", ".join(
        f"sum({' * '.join(factors[boxes, how].format(*given) for how, *given in question)})" for question in questions
    )
    return np.array(
        con.execute(f"select {sums} from {schema}.patients join {schema}.visits using (patient_id)").fetchone(), float
    )


def _questions(con, share, many):
    """Conditions on two to four known columns of both tables, each of a share of its values."""
    rng, of_patients = np.random.default_rng(5), ("birth_date", "sex", "postcode")
    of_visits = ("admitted", "discharged", "ward")
    values = {c: [v for (v,) in con.execute(f"select distinct {c} from {t} order by 1").fetchall()]
              for t, columns in (("patients", of_patients), ("visits", of_visits)) for c in columns}  # fmt: skip
    found = []
    while len(found) < many:
        chosen = rng.choice([*of_patients, *of_visits], rng.integers(2, 5), replace=False).tolist()
        if not set(chosen) & set(of_patients) or not set(chosen) & set(of_visits):
            continue
        question = []
        for column in chosen:
            size = max(1, int(len(values[column]) * share))
            if column in ("sex", "postcode", "ward"):
                some = sorted(values[column][k] for k in rng.choice(len(values[column]), size, replace=False))
                question.append(("in", column, str(some)))
            else:
                first = int(rng.integers(0, len(values[column]) - size + 1))
                question.append(("between", column, values[column][first], values[column][first + size - 1]))
        found.append(question)
    return found


@pytest.mark.campaign
def test_joined_counts_of_a_hospital_have_half_of_the_error_of_boxes_at_a_quarter_of_the_risk(con, tmp_path):
    spec = spec_from_file_location("hospital", HOSPITAL)
    assert spec is not None and spec.loader is not None
    hospital = module_from_spec(spec)
    spec.loader.exec_module(hospital)
    hospital.make(tmp_path / "hospital.duckdb", 5000)
    con.execute(f"attach '{tmp_path / 'hospital.duckdb'}' as source (read_only)")
    for table in ("patients", "visits"):
        con.execute(f"create table {table} as from source.{table}")
    for column in (
        "patients.birth_date",
        "patients.sex",
        "patients.postcode",
        "visits.admitted",
        "visits.discharged",
        "visits.ward",
    ):
        con.execute(f"comment on column {column} is 'anon: quasi'")
    con.execute("comment on column visits.diagnosis is 'anon: sensitive'")
    options = {"individuals": "patients", "key": "patient_id", "keys": {"visits.patient_id": "patients.patient_id"}}
    questions = _questions(con, 0.36, 250)
    truth = _counted(con, "main", questions, False)
    questions = [question for question, count in zip(questions, truth, strict=True) if count >= 20][:200]
    truth = _counted(con, "main", questions, False)
    error = {}
    for name, promise in (("boxes", {"k": 5}), ("cover", {"delta": 1 / 16})):
        release_database(con, ["patients", "visits"], **options, **promise, replace=True, independent=True)
        error[name] = float(np.mean(np.abs(_counted(con, "release", questions, name == "boxes") - truth) / truth))
    risks = database_risk(con, ["patients", "visits"], **options, delta=1 / 16, targets=1000)
    assert [risk.known for risk in risks if risk.judged and risk.identity > 1 / 16] == []
    assert error["cover"] < 0.060 and error["cover"] < 0.6 * error["boxes"], error
