"""composition_risk: the worked example, and pairs of shapes against a person-by-person count."""

import itertools

import duckdb
import pytest

from tests.reference.answers import dicts
from tests.reference.merging import HOSPITAL_A, HOSPITAL_B, victims

pytestmark = [pytest.mark.campaign, pytest.mark.weekly]

QI = ["age", "sex", "place"]
ROLES = "qi := ['age', 'sex', 'place'], sensitive := 'disease'"
EXAMPLE = "qi := ['zip', 'age', 'sex'], sensitive := 'disease'"
SHAPES = {
    "rows": "select * from {t}",
    "boxes": "mondrian('{t}', k := 3, {roles})",
    "sampled": "composition('{t}', 3, rho := 0.8, alpha := 0.9, {roles}, seed := 1)",
    "perturbed": "hybrid('{t}', 3, {roles}, seed := 1)",
    "sliced": "merging('{t}', 1.5, columns := [['age', 'sex'], ['place']], {roles}, seed := 1)",
    "partners": "slicing('{t}', 1, columns := [['age'], ['sex'], ['place', 'disease']], {roles}, seed := 1)",
    "buckets": "anatomy('{t}', 2, {roles}, seed := 1)",
    "counts": "laplace_on_groups('{t}', 3, 2.0, {roles}, seed := 1)",
}


@pytest.fixture
def tables(con):
    """Two tables that share 12 persons, some values NULL."""
    person = """select i as number, case when i % 11 = 0 then null else (hash(i) % 9)::int end as age,
        ['f', 'm'][(hash(i, 1) % 2 + 1)::int] as sex, 'place' || hash(i, 2) % 3 as place,
        'd' || hash(i, 3) % 5 as disease from range(100) r(i)"""
    con.execute(f"create table everybody as {person}")
    con.execute("create table one as select * exclude number from everybody where number < 56")
    con.execute("create table other as select * exclude number from everybody where number >= 44")
    con.execute("create table shared as select * exclude number from everybody where number between 44 and 55")
    return con


def _release(con: duckdb.DuckDBPyConnection, first: str, second: str) -> None:
    """Make r1 of table one and r2 of table other."""
    for release, shape, table in (("r1", first, "one"), ("r2", second, "other")):
        call = SHAPES[shape].format(t=table, roles=ROLES)
        con.execute(f"create table {release} as " + (call if shape == "rows" else f"from {call}"))


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations_with_replacement(SHAPES, 2))[::3])
def test_pairs_of_shapes_agree_with_counting_person_by_person(tables, first, second):
    _release(tables, first, second)
    first_rows, other, persons = (dicts(tables, f"from {name}") for name in ("r1", "r2", "shared"))
    found = tables.execute(
        f"""select true_matches, true_matches + false_matches, singled_out, privacy_risk from composition_risk('r1', 'r2',
        'shared', {ROLES})"""
    ).fetchone()
    true, total, alone = victims(first_rows, other, persons, QI, "disease")
    assert found[:3] == pytest.approx((true, total, alone), abs=1e-12)
    assert found[3] == pytest.approx(100 * true / total if total else 0)


@pytest.fixture
def hospitals(con):
    """The worked example's tables, the persons in both, and a tree of zip codes."""
    for name, rows in (("a", HOSPITAL_A), ("b", HOSPITAL_B)):
        con.execute(f"create table {name} (age int, sex varchar, zip int, disease varchar)")
        con.executemany(f"insert into {name} values (?, ?, ?, ?)", rows)
    con.execute("create table shared as (from a intersect from b)")
    con.execute(
        "create table zips as select distinct zip::varchar as leaf, zip // 10 || '*' as four, zip // 100 || '**' as three, "
        "'*' as top from (from a union all from b)"
    )
    return con


def _risk(con: duckdb.DuckDBPyConnection, extra: str = "") -> float:
    found = con.execute(f"select privacy_risk from composition_risk('ra', 'rb', 'shared', {EXAMPLE}{extra})").fetchone()
    return float(found[0])


def test_mondrian_s_risk_is_two_thirds(hospitals):
    for name in "ab":
        hospitals.execute(
            f"create table r{name} as from mondrian('{name}', k := 2, cut := 'median', width := 'distinct', {EXAMPLE})"
        )
    assert _risk(hospitals) == pytest.approx(200 / 3)


def test_generalized_nodes_are_read_through_their_hierarchy(hospitals):
    published = {
        "a": [("22", "*", "47905", "Gastritis Ovarian"), ("54-60", "*", "47902", "Dyspepsia Fever")],
        "b": [("22", "M", "4790*", "Gastritis Blood"), ("30-60", "*", "4790*", "Dyspepsia Fever")],
    }
    for name, rows in published.items():
        hospitals.execute(
            f"create table r{name} (age struct(lower int, upper int), sex varchar[], zip varchar, disease varchar)"
        )
        for age, sex, zips, diseases in rows:
            low, high = (age.split("-") * 2)[:2]
            for disease in diseases.split():
                row = [{"lower": int(low), "upper": int(high)}, ["F", "M"] if sex == "*" else [sex], zips, disease]
                hospitals.execute(f"insert into r{name} values (?, ?, ?, ?)", row)
    assert _risk(hospitals, ", hierarchies := {'zip': 'zips'}") == pytest.approx(200 / 3)


def test_no_candidate_at_all_is_reported_as_undefined(tables):
    tables.execute("create table nobody as select * from one where false union all select 999, 'x', 'y', 'z'")
    found = tables.execute(
        f"select privacy_risk, defined, persons from composition_risk('nobody', 'nobody', 'shared', {ROLES})"
    ).fetchone()
    assert found == (0.0, False, 12)


def test_errors_name_the_cause(tables):
    tables.execute("create table narrow as select age, sex, disease from one")
    with pytest.raises(duckdb.Error, match="place"):
        tables.execute(f"from composition_risk('one', 'narrow', 'shared', {ROLES})").fetchall()
    tables.execute(f"create table noisy as from rr_distort('one', p := 0.7, {ROLES})")
    with pytest.raises(duckdb.Error, match=r"is randomized, .* which composition_risk does not read.*rr_risk"):
        tables.execute(f"from composition_risk('noisy', 'other', 'shared', {ROLES})").fetchall()


def test_the_table_of_persons_may_carry_the_labels(tables):
    _release(tables, "boxes", "buckets")
    given = tables.execute(f"from composition_risk('r1', 'r2', 'shared', {ROLES})").fetchall()
    for column in QI:
        tables.execute(f"comment on column shared.{column} is 'anon: quasi'")
    tables.execute("comment on column shared.disease is 'anon: sensitive'")
    assert tables.execute("from composition_risk('r1', 'r2', 'shared')").fetchall() == given
