"""workload_error answers every query of a workload as the closed form of `relative_error` does, on every format."""

import pytest

import duckdb_anon
from duckdb_anon.model.release_formats import formats, read

RELEASES = {
    "rows": "muco('people', 0.5, seed := 1)",
    "boxes": "mondrian('people', k := 4, seed := 1)",
    "levels": "incognito('people', 4, max_suppression := 0.2, hierarchies := {'job': 'jobs'})",
    "buckets": "anatomy('people', 3, seed := 1)",
    "sliced": "slicing('people', 2, columns := [['age', 'sex'], ['zip', 'job']], seed := 1)",
    "hybrid": "hybrid('people', 4, rho := 0.7, q := 0.6, seed := 1)",
    "counts": "laplace_on_groups('people', 5, 1.0, keep := [], seed := 1)",
    "randomized": "rr_distort('people', p := 0.8, seed := 1)",
    "blank": "suppress('people', 3)",
    "made": "dp_synthesize('people', 3.0, bounds := {'age': [18, 57], 'zip': [100, 119], 'dose': [10, 16]}, seed := 1)",
    "persons": "one_to_m_generalize('visits', 2, 2, seed := 1)",
}


@pytest.fixture(scope="module")
def people():
    con = duckdb_anon.connect()
    con.execute(
        "create table people as select (18 + hash(i, 1) % 40)::integer as age, (['f', 'm'])[1 + (hash(i, 2) % 2)::int] "
        "as sex, nullif(100 + hash(i, 3) % 20, 107)::integer as zip, chr((97 + hash(i, 5) % 9)::int) as job, "
        "(10 + hash(i, 4) % 7)::integer as dose from range(400) t(i)"
    )
    con.execute("create table visits as select * replace (10 + rowid % 7 as dose, 30 + rowid // 2 % 9 as age, "
                "100 + rowid // 2 % 7 as zip, 'm' as sex, 'a' as job), rowid // 2 as person from people")  # fmt: skip
    con.execute(
        "create table jobs as select chr((97 + i)::int) as leaf, i // 3 as node, '*' as root from range(9) t(i)"
    )
    con.execute("create table doses as select (10 + i)::integer as leaf, 'all' as root from range(7) t(i)")
    for table, sensitive in (("people", "sensitive"), ("visits", "sensitive hierarchy=doses")):
        for column in ("age", "sex", "zip", "job"):
            con.execute(f"comment on column {table}.{column} is 'anon: quasi'")
        con.execute(f"comment on column {table}.dose is 'anon: {sensitive}'")
    con.execute("comment on column visits.person is 'anon: person'")
    for name, call in RELEASES.items():
        con.execute(f"create table {name} as from {call}")
    return con


def original_of(release):
    return "visits" if release == "persons" else "people"


@pytest.mark.parametrize("release", sorted(RELEASES))
def test_a_workload_has_the_answers_of_its_queries_one_by_one(people, release):
    original, roles = original_of(release), ", hierarchies := {'job': 'jobs'}" if release == "levels" else ""
    summed = "age" if release == "persons" else "dose"
    for options in ("dims := 2, predicate_on_sensitive := true", f"dims := 3, aggregate := 'sum({summed})'"):
        options += f", n := 4, selectivity := 0.4, seed := 3{roles}"
        call = f"select query, original, estimate from workload_error('{original}', '{release}', {options})"
        answers = people.execute(call).fetchall()
        assert answers
        for query, *found in answers:
            one = f"select original, estimate from relative_error($1, $2, $3, engine := 'closed', bounds := 'none'{roles})"
            assert people.execute(one, [query, original, release]).fetchall() == [pytest.approx(tuple(found))], query


def test_these_releases_have_every_format(people):
    def types(table):
        return dict(people.execute(f"select column_name, column_type from (describe {table})").fetchall())

    shapes = set()
    for release in RELEASES:
        found = read(types(release), types(original_of(release)), sensitive=["dose"], trees=["job", "dose"])
        shapes |= {*found.shapes, *(["blank"] if found.blank else []), *(["made"] if found.count_error else [])}
    assert shapes == {rule.name for rule in formats.FORMATS} - {"linked", "edged"}
