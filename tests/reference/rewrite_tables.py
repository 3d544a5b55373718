"""Small tables in every release shape, made by hand in SQL, and how the planner sees them."""

import duckdb

from duckdb_anon.rewrite.query.tables import TableInfo

PEOPLE = """
create table people as
with numbered as (
  select i, (hash(i, 1) % 1000)::integer as a, (hash(i, 2) % 1000)::integer as b,
    (hash(i, 3) % 1000)::integer as c, (hash(i, 4) % 1000)::integer as d
  from range({rows}) as t(i)
)
select
  case when a % 17 = 0 then null else 20 + a % 21 end::integer as age,
  case b % 7 when 0 then null when 1 then 'F' when 2 then 'F' when 3 then 'X' else 'M' end as sex,
  (['n1', 'n2', 's1', 's2', 's3'])[1 + c % 5] as region,
  date '1975-01-01' + ((d * 9) % 8000)::integer as born,
  40 + (a * 7 + b) % 60 + case when c % 3 = 0 then 0.5 else 0 end as weight,
  case when (a + c) % 13 = 0 then null else (['flu', 'cold', 'acne', 'gout'])[1 + (b + d) % 4] end as disease,
  case when (b + c) % 11 = 0 then null else (c + d) % 100 end::integer as cost
from numbered
"""
REGIONS = """create table regions as select *
    from (values ('n1', 'cold'), ('n2', 'cold'), ('s1', 'hot')) t(name, climate)"""
TREE = """create table region_tree as select * from (values ('n1', 'north', '*'), ('n2', 'north', '*'),
    ('s1', 'south', '*'), ('s2', 'south', '*'), ('s3', 'south', '*')) t(leaf, half, everything)"""
POINT = "case when {0} is null then null else {{lower: {0}, upper: {0}}} end as {0}"
RANDOMIZED = ("age", "sex", "region", "disease", "cost")
SELF = {
    "rows": "create table identity_rows as from people",
    "boxes": "create table identity_boxes as select "
    + ", ".join(POINT.format(c) for c in ("age", "born", "weight"))
    + ", case when sex is null then null else [sex] end as sex, region, disease, cost from people",
    "buckets": "create table identity_buckets as select * exclude (disease), row_number() over () as bucket, "
    "case when disease is null then map([]::varchar[], []::bigint[]) else map([disease], [1::bigint]) end as disease "
    "from people",
    "sliced": "create table identity_sliced as select row_number() over () as bucket, "
    "{age: age, sex: sex} as age_sex, {region: region, born: born, weight: weight} as region_born_weight, "
    "{disease: disease} as disease, {cost: cost} as cost from people",
    "randomized": "create table identity_randomized as select *, (select {"
    + ", ".join(f"{c}: {{p: 1.0::double, domain: list(distinct {c})}}" for c in RANDOMIZED)
    + "} from people) as rr from people",
    "counts": "create table identity_counts as select "
    + POINT.format("age")
    + ", * exclude (age), 1.0::double as noisy_count from people",
    "sampled": "create table identity_sampled as select "
    + POINT.format("age")
    + ", * exclude (age), 1.0::double as sampling_rate from people",
}


def database(rows: int = 60) -> duckdb.DuckDBPyConnection:
    """A database with `people`, `regions`, the hierarchy `region_tree` and an identity release of each shape."""
    con = duckdb.connect()
    for statement in [PEOPLE.format(rows=rows), REGIONS, TREE, *SELF.values()]:
        con.execute(statement)
    return con


def seen(con: duckdb.DuckDBPyConnection, name: str, with_tree: bool = False) -> TableInfo:
    """Describe a table as the planner would."""
    columns = tuple((r[0], r[1]) for r in con.execute(f"describe {name}").fetchall())
    trees = {"region": seen(con, "region_tree")} if with_tree else {}
    return TableInfo(name, columns, hierarchies=trees, given=name)
