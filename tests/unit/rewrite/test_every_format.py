"""Every format of release is answered, in SQL that runs and names columns as the query does."""

from dataclasses import replace

import duckdb
import pytest

from duckdb_anon.model.release_formats.formats import FORMATS
from duckdb_anon.rewrite.rewriter import rewrite
from tests.reference.rewrite_releases import BOXES, BUCKETS, PEOPLE, SLICED
from tests.reference.rewrite_tables import REGIONS, TREE, seen

OTHERS = (
    "create table rows as select age, sex, region, born, weight, disease, cost from people where age is not null",
    "create table counts as select {lower: 20::integer, upper: 29::integer} as age, disease, "
    "12.5::double as noisy_count from (values ('flu'), ('cold')) as t(disease)",
    "create table sampled as select age, disease, cost, 0.5::double as sampling_rate from boxes",
    "create table edged as select age, disease, cost, 10 as sensitive_edges from boxes",
    "create table suppressed as select *, 6 as suppressed from boxes",
    "create table retained as select age, disease, cost, 0.7::double as retention from boxes",
    "create table randomized as select age, sex, cost, {age: {p: 0.8::double, domain: [30, 40]}, "
    "sex: {p: 0.7::double, domain: ['F', 'M']}} as rr from (values (30, 'F', 1), (40, 'M', 2)) as t(age, sex, cost)",
    "create table linked as select *, row_number() over () as row_id from boxes",
    "create table persons as select age, ['north', 's1'] as region from boxes",
)


QUERIES = (
    ("boxes", "SELECT count(*) FROM people WHERE age < 25"),
    ("boxes", "SELECT count(*) AS n FROM people WHERE weight BETWEEN 51 AND 53 OR sex = 'F'"),
    ("boxes", "SELECT count(*) AS n FROM people WHERE age > 21 AND (age < 24 OR age > 26) AND NOT age = 28"),
    ("boxes", "SELECT count(*) AS n, sum(cost) AS total FROM people WHERE region LIKE 'n%'"),
    ("boxes", "SELECT age // 5 AS five, count(*) AS n FROM people WHERE disease = 'flu' GROUP BY ALL"),
    ("buckets", "SELECT count(*) AS n FROM people WHERE age < 30 AND disease = 'flu'"),
    ("buckets", "SELECT sex, sum(cost) AS total FROM people WHERE region = 'n1' GROUP BY sex"),
    ("buckets", "SELECT disease, count(*) AS n FROM people GROUP BY 1"),
    ("counts", "SELECT disease, count(*) AS n FROM people WHERE age < 25 GROUP BY disease"),
    ("edged", "SELECT disease, count(*) AS n, sum(cost) AS total FROM people WHERE cost > 10 GROUP BY disease"),
    ("linked", "SELECT disease, sum(cost) AS total FROM people WHERE cost > 3 GROUP BY disease"),
    ("persons", "SELECT count(*) AS n FROM people WHERE region = 'n1' AND age < 25"),
    ("randomized", "SELECT count(*) AS n FROM people WHERE age < 35"),
    ("randomized", "SELECT sex, count(*) AS n FROM people WHERE age < 35 GROUP BY sex"),
    ("retained", "SELECT sum(cost) AS total FROM people WHERE disease = 'flu'"),
    (
        "rows",
        "SELECT sex, sum(cost) AS total FROM people WHERE age < 30 GROUP BY sex HAVING count(*) > 1 ORDER BY total DESC LIMIT 2",
    ),
    ("rows", "SELECT median(age), count(DISTINCT sex) FROM people WHERE cost > (SELECT avg(cost) FROM people)"),
    (
        "rows",
        "WITH young AS (FROM people SELECT * WHERE age < 30) SELECT r.climate, count(*) FROM young AS y JOIN regions AS r ON y.region = r.name GROUP BY ALL",
    ),
    ("sampled", "SELECT sum(cost) AS total FROM people WHERE age < 25"),
    ("sliced", "SELECT count(*) AS n FROM people WHERE age < 30 AND disease = 'flu'"),
    ("sliced", "SELECT avg(age) AS mean FROM people WHERE age < 30 OR sex = 'F'"),
    ("sliced", "SELECT sum(cost) AS total FROM people WHERE age < 30"),
    ("sliced", "SELECT disease, sex, count(*) AS n FROM people WHERE age < 30 GROUP BY disease, sex"),
    ("sliced", "SELECT disease, sum(cost) AS total FROM people WHERE age < 30 GROUP BY disease"),
    ("suppressed", "SELECT count(*) AS n FROM people WHERE cost > 10"),
)


def database() -> duckdb.DuckDBPyConnection:
    """A database with an empty original and a release of each shape."""
    con = duckdb.connect()
    con.register("_people", PEOPLE.empty_table())
    con.execute("create table people as from _people")
    for statement in (BOXES, BUCKETS, SLICED, TREE, REGIONS, *OTHERS):
        con.execute(statement)
    return con


@pytest.fixture(scope="module")
def con():
    return database()


@pytest.mark.parametrize(("shape", "query"), QUERIES)
def test_rewritten_query_runs_and_keeps_the_column_names(con, shape, query):
    people = replace(seen(con, "people", with_tree=True), roles={"disease": "sensitive"})
    text = rewrite(query, people, seen(con, shape), [seen(con, "regions")])
    names = [d[0].lower() for d in con.execute(query).description]
    rewritten = [d[0].lower() for d in con.execute(text).description]
    assert len(rewritten) == len(names)
    assert [r for r, n in zip(rewritten, names, strict=True) if "(" not in n] == [n for n in names if "(" not in n]


def test_every_format_has_a_query():
    assert {shape for shape, _ in QUERIES} == {node.name for node in FORMATS}


def test_bounds_on_exact_columns_are_the_answer(con):
    query = "SELECT disease, sum(cost) AS total FROM people GROUP BY disease"
    text = rewrite(query, seen(con, "people"), seen(con, "boxes"), bounds="likely")
    rows = con.execute(text).fetchall()
    assert rows
    assert all(total == low == high for _, total, low, high, _ in rows)


def test_rows_have_no_bounds_because_values_may_be_random(con):
    text = rewrite("SELECT sum(cost) AS total FROM people", seen(con, "people"), seen(con, "rows"), bounds="likely")
    assert "low" not in text
