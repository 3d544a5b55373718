"""What cannot be estimated is an error that names the construct and the column."""

import duckdb
import pytest

import duckdb_anon
from duckdb_anon.model.errors import RewriteError
from duckdb_anon.rewrite.query.parse import read_query
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.rewriter import rewrite
from tests.reference.rewrite_tables import REGIONS, TREE, seen

REFUSED = [
    ("SELECT median(sex) FROM people", "a median of anything but plain numbers"),
    ("SELECT mad(age), count(*) FROM people", r"mad\(age\) is not a sum over rows"),
    ("SELECT median(age) OVER () FROM people", "without an aggregate"),
    ("SELECT count(DISTINCT age) FROM people GROUP BY ROLLUP (sex)", r"count\(DISTINCT age\) counts distinct values"),
    ("SELECT count(*) FROM (SELECT age FROM people UNION SELECT age FROM people)", "without an aggregate"),
    (
        "SELECT n, count(*) FROM (SELECT age, count(*) AS n FROM people GROUP BY 1) GROUP BY 1",
        "aggregates groups of the original",
    ),
    ("SELECT age FROM people", "without an aggregate"),
    ("SELECT string_agg(DISTINCT sex, ',') FROM people", "what single rows hold"),
    ("SELECT a.age, count(*) FROM people AS a JOIN people AS b USING (age) GROUP BY ALL", "joined with itself"),
    ("SELECT weight, count(*) FROM people GROUP BY weight", "values of 'weight', intervals of a continuous type"),
    ("SELECT sum(sqrt(weight)) FROM people", "values of 'weight', intervals of a continuous type"),
    ("SELECT count(*) FROM people WHERE sqrt(weight) < 3", "values of 'weight', intervals of a continuous type"),
    ("SELECT sum(2) FROM regions AS r LEFT JOIN people AS p ON r.name = p.region WHERE p.age < 3", "optional side"),
    ("SELECT count(*) FROM peple", r"does not read the original people; it reads peple \(did you mean 'people'"),
    ("SELECT medan(age) FROM people", r"medan is no aggregate \(did you mean 'median'\?\)"),
    ("DELETE FROM people", "must be one SELECT"),
    ("SELECT 1; SELECT 2", "must be one SELECT, found 2"),
    ("SELECT count(* FROM people", "could not be parsed"),
]


MISNAMED = {
    "SELECT agee, count(*) FROM people GROUP BY 1": '"agee" not found.*"age"',
    "SELECT p.agee, count(*) FROM people AS p GROUP BY 1": 'does not have a column named "agee".*"age"',
    "SELECT peple.age, count(*) FROM people GROUP BY 1": '"peple" not found.*"people"',
    "SELECT count(*) AS c FROM people HAVING cc > 1": 'column "cc" must appear',
    "SELECT count(*) FROM people GROUP BY age ORDER BY 2": "ORDER term out of range",
    "SELECT count(*) FROM people JOIN regions USING (naem)": '"naem" does not exist',
    "SELECT region, count(*) FROM people, people AS q GROUP BY 1": 'Ambiguous reference to column name "region"',
}


@pytest.mark.parametrize("query", MISNAMED)
def test_duckdb_says_which_names_are_near(numbers, query):
    with pytest.raises(duckdb.Error, match=f"rewrite_query: .*{MISNAMED[query]}"):
        numbers.execute("select rewrite_query($1, 'people', 'boxes')", [query])


PEOPLE = """
create table people (age integer, sex varchar, region varchar, born date, weight double, disease varchar, cost integer)
"""
BOXES = """
create table boxes as
select
  case when i % 11 = 0 then null else {lower: (20 + 2 * (i % 7))::integer, upper: (24 + 2 * (i % 7) + i % 3)::integer}
  end as age,
  case i % 5 when 0 then null when 1 then ['F', 'M', 'X'] when 2 then ['F'] else ['F', 'M'] end as sex,
  (['n1', 'north', 'south', '*'])[1 + i % 4] as region,
  {lower: date '1980-01-01' + (i * 40)::integer, upper: date '1980-03-01' + (i * 50)::integer} as born,
  {lower: 50.0 + i % 9, upper: 52.5 + i % 9 + (i % 4) * 3.0}::struct(lower double, upper double) as weight,
  (['flu', 'cold', 'acne'])[1 + i % 3] as disease,
  case when i % 6 = 0 then null else (i * 37) % 50 end::integer as cost
from (select i::integer as i from range(24) as t(i))
"""


@pytest.fixture(scope="module")
def con():
    """An empty original, and releases of it."""
    con = duckdb.connect()
    for statement in (PEOPLE, BOXES, TREE, REGIONS):
        con.execute(statement)
    con.execute("create table counts as select {lower: 20, upper: 29} as age, 12.5::double as noisy_count")
    con.execute("create table sampled as select age, disease, cost, 0.5::double as sampling_rate from boxes")
    return con


@pytest.mark.parametrize(("query", "message"), REFUSED)
def test_refused_query_names_what_it_cannot_estimate(con, query, message):
    with pytest.raises(RewriteError, match=message):
        rewrite(query, seen(con, "people", with_tree=True), seen(con, "boxes"), [seen(con, "regions")])


@pytest.mark.parametrize("shape", ["sampled", "counts"])
def test_extremes_of_samples_and_noisy_counts_are_refused(con, shape):
    with pytest.raises(RewriteError, match=r"max\(age\) is not a sum over rows"):
        rewrite("SELECT max(age) FROM people", seen(con, "people"), seen(con, shape))


def test_column_the_release_leaves_out_is_named_with_its_nearest_neighbour(con):
    with pytest.raises(RewriteError, match=r"column 'born' is not in the release sampled.*released are"):
        rewrite("SELECT count(*) FROM people WHERE born > DATE '1980-01-01'", seen(con, "people"), seen(con, "sampled"))


def test_invisible_release_says_what_to_do(con):
    with pytest.raises(RewriteError, match="commit it"):
        rewrite("SELECT count(*) FROM people", seen(con, "people"), TableInfo("r", ()))


def test_node_release_without_its_hierarchy_says_which_table_is_missing(con):
    people = TableInfo("people", seen(con, "people").columns, hierarchies={"region": TableInfo("region_tree", ())})
    with pytest.raises(RewriteError, match="region_tree"):
        rewrite("SELECT count(*) FROM people WHERE region = 'n1'", people, seen(con, "boxes"))


_ROLES = "qi := ['a', 'b'], sensitive := 's'"


@pytest.fixture(scope="module")
def numbers():
    """A table of numbers and releases of it."""
    with duckdb_anon.connect() as con:
        con.execute("create table t as select i % 7 as a, i % 5 as b, (i * 3) % 4 as s from range(60) as r(i)")
        for k, call in enumerate(("muco('t', 0.5, ", "anatomy('t', 2, ")):
            con.execute(f"create table r{k} as from {call}{_ROLES}, seed := 1)")
        con.execute("create table people as select 1 as age, 'n' as region; create table regions as select 'n' as name")
        con.execute("create table boxes as select {'lower': 1, 'upper': 1} as age, 'n' as region")
        yield con


@pytest.mark.parametrize(
    "value",
    [
        "any_value(a) filter (where b > 1)", "arg_max(a, b)", "first(a)", "array_agg(a)", "string_agg(a, ',')",
        "arg_max_null(a, b)", "len(list(a))", "any_value(a) over (partition by b)", "max(a) + any_value(s)",
    ],
)  # fmt: skip
def test_what_single_rows_hold_is_never_passed_through(numbers, value):
    queries = {
        f"select {value} from t": "r0",
        f"select b, {value} as x, count(*) from t where a < 5 group by a, b": "r1",
        f"with c as (select a, b, s from t where a < 5) select {value} from c": "r1",
    }
    if value == "first(a)":
        queries["select distinct on (b) a, b from t"] = "r0"
    for query, release in queries.items():
        text = numbers.execute(f"select rewrite_query($1, 't', '{release}', {_ROLES})", [query]).fetchone()
        assert text is not None and "impute(" in text[0]


@pytest.mark.parametrize(
    "query",
    [
        "PIVOT people ON sex USING count(*) GROUP BY region",
        "PIVOT people ON sex IN ('F') USING count(*)",
        "SELECT * FROM (PIVOT people ON sex USING count(*) GROUP BY region)",
    ],
)
def test_a_pivot_without_values_or_keys_is_not_read_as_all_rows(query):
    with pytest.raises(RewriteError, match="name the values"):
        read_query(query, [TableInfo("people", (("sex", "VARCHAR"), ("region", "VARCHAR")))])
