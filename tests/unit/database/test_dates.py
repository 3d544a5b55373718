"""Dates beside known ones: gaps of shifted dates identify, so they are refused, measured, and not proposed."""

import datetime
import random
import tomllib

import pytest

from duckdb_anon import AnonError, database_risk, release_database
from duckdb_anon.cli import main
from duckdb_anon.database.first_plan import first_plan

pytestmark = pytest.mark.campaign

OPTIONS = {"individuals": "patients", "key": "id", "k": 5, "keys": {"visits.pid": "patients.id"}}
SHIFT = {"visits": {"discharge": "shift(days := 180)"}}


def _hospital(con, stays=3, people=300, schema=""):
    """Patients with two visits each; the discharge is up to `stays` days after the day."""
    draw = random.Random(1)
    con.execute(f"create table {schema}patients (id integer primary key, age integer, sex varchar)")
    con.execute(
        f"create table {schema}visits (visit integer primary key, pid integer references {schema}patients (id), day date, "
        "discharge date, diagnosis varchar)"
    )
    visits = []
    for n in range(2 * people):
        day = datetime.date(2023, 1, 1) + datetime.timedelta(draw.randint(0, 700))
        left = day + datetime.timedelta(draw.randint(0, stays))
        visits.append((n, n // 2, day, left, f"d{draw.randint(0, 200)}"))
    con.executemany(
        f"insert into {schema}patients values (?, ?, ?)",
        [(i, draw.randint(20, 90), draw.choice("fm")) for i in range(people)],
    )
    con.executemany(f"insert into {schema}visits values (?, ?, ?, ?, ?)", visits)
    for column, role in {
        "patients.age": "quasi", "patients.sex": "quasi", "visits.day": "quasi", "visits.diagnosis": "sensitive",
    }.items():  # fmt: skip
        con.execute(f"comment on column {schema}{column} is 'anon: {role}'")


def _named_by_gaps(con):
    """Share of patients of whom an attacker, who knows age, sex and days, names both diagnoses: apart from the product."""
    released = con.execute("""select any_value(age), any_value(sex), list({day: day, gone: discharge, what: diagnosis} order by discharge)
        from release.patients join release.visits on pid = id group by id""").fetchall()
    originals = con.execute("""select any_value(age), any_value(sex), list(day order by day), list(diagnosis)
        from patients join visits on pid = id group by id""").fetchall()
    right = 0
    for age, sex, days, diagnoses in originals:
        fits = [
            (abs((visits[1]["gone"] - visits[0]["gone"]) - (days[1] - days[0])), {visit["what"] for visit in visits})
            for ages, sexes, visits in released
            if ages["lower"] <= age <= ages["upper"] and sex in sexes and len(visits) == 2
            and all(any(v["day"]["lower"] <= day <= v["day"]["upper"] for v in visits) for day in days)
        ]  # fmt: skip
        right += bool(fits) and min(fits, key=lambda fit: fit[0])[1] == set(diagnoses)
    return right / len(originals)


@pytest.mark.parametrize("stays", [0, 3, 9])
def test_a_shifted_date_that_a_known_one_determines_is_refused_and_its_gaps_are_measured(con, stays):
    _hospital(con, stays)
    with pytest.raises(AnonError, match=r"visits\.discharge is shifted, and visits\.day") as caught:
        release_database(con, ["patients", "visits"], treatments=SHIFT, **OPTIONS)
    assert caught.value.code == "determined-date"
    forced = {**OPTIONS, "treatments": SHIFT, "force": ["visits.discharge"]}
    release_database(con, ["patients", "visits"], **forced)
    risks = {risk.known: risk for risk in database_risk(con, ["patients", "visits"], targets=300, **forced)}
    measured = risks["and all events and the gaps of visits.discharge"]
    assert measured.judged and measured.identity > 0.7
    assert measured.identity == pytest.approx(_named_by_gaps(con), abs=0.1)
    assert risks["and all events"].identity <= 0.2


def test_an_unchanged_date_beside_a_known_one_and_one_of_another_table_are_refused(con):
    _hospital(con)
    con.execute("comment on column visits.discharge is 'anon: insensitive'")
    with pytest.raises(AnonError, match=r"visits\.discharge is released unchanged"):
        release_database(con, ["patients", "visits"], **OPTIONS)
    con.execute("comment on column visits.discharge is 'anon: quasi'")
    con.execute("create table labs as select pid, day + 2 as taken from visits")
    given = {**OPTIONS, "keys": {**OPTIONS["keys"], "labs.pid": "patients.id"}}
    tables = ["patients", "visits", "labs"]
    with pytest.raises(AnonError, match=r"labs\.taken is shifted, and visits\.day"):
        release_database(con, tables, treatments={"labs": {"taken": "shift"}}, **given)
    risks = database_risk(con, tables, treatments={"labs": {"taken": "shift"}}, force=["labs.taken"], **given)
    assert next(risk.identity for risk in risks if risk.known.endswith("gaps of labs.taken")) > 0.9


def test_dates_that_known_ones_do_not_determine_are_shifted(con):
    _hospital(con)
    con.execute("update visits set discharge = date '2023-01-01' + (hash(visit) % 700)::integer")
    release_database(con, ["patients", "visits"], treatments=SHIFT, **OPTIONS)
    risks = {
        risk.known: risk.identity for risk in database_risk(con, ["patients", "visits"], treatments=SHIFT, **OPTIONS)
    }
    assert risks["and all events and the gaps of visits.discharge"] < 0.35


def test_values_of_treated_columns_are_known_to_an_acquaintance(con):
    _hospital(con)
    con.execute("alter table visits add column cost double")
    con.execute("update visits set cost = 100000 + visit * 7919 % 1009")
    tables = ["patients", "visits"]
    found = {}
    for treatment in ("round(to := 1)", "noise(scale := 0.1)", "round(to := 1000000)"):
        risks = database_risk(con, tables, treatments={"visits": {"cost": treatment}}, **OPTIONS)
        [risk] = [risk for risk in risks if risk.known == "and all events and one value of visits.cost"]
        found[treatment] = risk.identity
        assert risk.judged
    assert min(found["round(to := 1)"], found["noise(scale := 0.1)"]) > 0.9
    assert found["round(to := 1000000)"] == pytest.approx(
        next(r.identity for r in risks if r.known == "and all events")
    )


def test_a_first_plan_generalizes_dates_together_and_a_check_judges_gaps(tmp_path, capsys):
    pytest.importorskip("stdnum", reason="the profile extra is not installed")
    import duckdb_anon

    con = duckdb_anon.connect(str(tmp_path / "h.duckdb"))
    _hospital(con)
    text = first_plan(con, "h.duckdb", 5)
    con.close()
    plan = tomllib.loads(text)
    assert {plan["labels"]["visits"][name] for name in ("day", "discharge")} == {"quasi"} and "shift" not in text
    (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
    assert main(["run", str(tmp_path / "plan.toml")]) == 0
    lines = [line for line in text.splitlines() if not line.startswith("discharge")]
    lines[lines.index("k = 5")] = 'k = 5\nforce = ["visits.discharge"]\nindependent = true'
    (tmp_path / "plan.toml").write_text("\n".join([*lines, '[treatments.visits]\ndischarge = "shift(days := 180)"\n']))
    capsys.readouterr()
    assert main(["run", str(tmp_path / "plan.toml")]) == 3
    assert "gaps of visits.discharge is up to" in capsys.readouterr().err
