"""Hand-made releases of one small table, whose completions are known."""

from typing import Any

import duckdb
import pyarrow as pa

from tests.reference.answers import dicts

PEOPLE = pa.schema(
    [
        ("age", pa.int32()),
        ("sex", pa.string()),
        ("region", pa.string()),
        ("born", pa.date32()),
        ("weight", pa.float64()),
        ("disease", pa.string()),
        ("cost", pa.int32()),
    ]
)
LEAVES = {"north": ["n1", "n2"], "south": ["s1", "s2", "s3"], "*": ["n1", "n2", "s1", "s2", "s3"]}

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
BUCKETS = """
create table buckets as
select
  (20 + (i * 7) % 20)::integer as age, (['F', 'M', null])[1 + i % 3] as sex,
  (['n1', 'n2', 's1'])[1 + (i // 2) % 3] as region,
  date '1980-01-01' + (i * 40)::integer as born, 50.0::double + i % 9 as weight, ((i * 37) % 50)::integer as cost,
  (i // 4)::bigint as bucket,
  case (i // 4) % 3 when 0 then map(['flu', 'cold'], [3::bigint, 1])
    when 1 then map(['flu', 'acne', 'cold'], [1::bigint, 2, 1])
    else map(['acne'], [3::bigint]) end as disease
from (select i::integer as i from range(24) as t(i))
"""
SLICED = """
create table sliced as
select (i // 6)::bigint as bucket,
  {age: (20 + (i * 7) % 20)::integer, sex: (['F', 'M', null])[1 + i % 3]} as age_sex,
  {region: (['n1', 'n2', 's1'])[1 + (i // 2) % 3], born: date '1980-01-01' + (i * 40)::integer,
    weight: 50.0::double + i % 9} as place,
  {disease: (['flu', 'cold', 'acne'])[1 + (i * i) % 3]} as disease,
  {cost: ((i * 37) % 50)::integer} as cost
from (select i::integer as i from range(24) as t(i))
"""
COUNTED = (
    "SELECT count(*) AS m1 FROM people WHERE age < 27",
    "SELECT count(*) AS m1, sum(cost) AS m2 FROM people WHERE age BETWEEN 23 AND 28 AND sex = 'F'",
    "SELECT count(*) AS m1 FROM people WHERE (age < 25 OR age > 30) AND NOT (sex = 'F' AND disease = 'flu')",
    "SELECT count(*) AS m1 FROM people WHERE age >= 26 OR sex <> 'F' OR region LIKE 'n%'",
    "SELECT sum(age) AS m1, sum(weight) AS m2, count(sex) AS m3"
    " FROM people WHERE weight < 55.25 AND disease IN ('flu', 'acne')",
    "SELECT sum(age * cost) AS m1, sum(age + cost) AS m2 FROM people WHERE age % 2 = 0 AND cost > 5",
    "SELECT sum(CASE WHEN region IN ('n1', 's2') THEN cost WHEN sex IS NULL THEN 1 ELSE 0 END) AS m1 FROM people",
    "SELECT count(*) AS m1 FROM people WHERE born BETWEEN DATE '1980-03-15' AND '1981-02-01' AND disease <> 'cold'",
    "SELECT disease, count(*) AS m1, sum(cost) AS m2 FROM people WHERE age < 28 GROUP BY disease",
    "SELECT age // 3 AS third, sex, count(*) AS m1 FROM people WHERE region <> 'n1' GROUP BY ALL",
    "SELECT region, sum(age) AS m1 FROM people WHERE sex IN ('F', 'X') OR age < 26 GROUP BY 1",
    "SELECT sex, disease, grouping(sex, disease) AS level, count(*) AS m1 FROM people GROUP BY CUBE (sex, disease)",
    "SELECT count(*) AS m1 FROM people WHERE age < cost",
    "SELECT count(*) FILTER (WHERE disease = 'flu' AND age < 30) AS m1, count_if(cost > 20) AS m2"
    " FROM people WHERE age > 22",
)
"""Queries whose measures are expectations: counts and sums."""
AVERAGED = (
    "SELECT avg(cost) AS m1, avg(weight) AS m2 FROM people WHERE age < 27",
    "SELECT avg(age) AS m1, sum(weight) AS m2 FROM people WHERE sex = 'F' AND disease <> 'cold'",
    "SELECT disease, avg(age) AS m1, count(age) AS m2, sum(age - 24) AS m3"
    " FROM people WHERE weight < 56 GROUP BY disease",
)
"""Queries with other measures that have bounds."""
GROUPED = (
    "SELECT age // 3 AS third, count(*) AS m1, sum(cost) AS m2, avg(cost) AS m3 "
    "FROM people WHERE region <> 'n1' GROUP BY ALL",
    "SELECT sex, region, count(*) AS m1, sum(age) AS m2, avg(age) AS m3 FROM people WHERE age < 28 GROUP BY ALL",
    "SELECT disease, sex, count(cost) AS m1, sum(cost - 20) AS m2 FROM people WHERE disease <> 'acne' AND sex <> 'X' "
    "AND age > 22 GROUP BY ALL",
    "SELECT count(*) AS m1, sum(weight) AS m2 FROM people WHERE age < cost",
    "SELECT sex, age // 5 AS fifth, grouping(sex, age // 5) AS level, count(*) AS m1, sum(cost) AS m2, avg(weight) AS m3 "
    "FROM people WHERE weight < 57 AND region <> 'n1' GROUP BY ROLLUP (sex, age // 5)",
    "SELECT disease, sex, region, grouping(disease, sex, region) AS level, count(*) AS m1 FROM people "
    "WHERE age > 22 GROUP BY disease, GROUPING SETS ((sex, region), (sex), ())",
)
"""Queries that spell out the values of boxes or bags."""


def rows_of(con: duckdb.DuckDBPyConnection, table: str) -> list[dict[str, Any]]:
    """A release as rows of Python values; a MAP as a dict."""
    return dicts(con, f"from {table}")
