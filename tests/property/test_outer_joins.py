"""The original on the optional side of LEFT JOIN: random queries against the original itself."""

import random
from math import inf

import duckdb
import pytest

from duckdb_anon import load

pytestmark = [pytest.mark.campaign, pytest.mark.weekly]

VALUES = (
    "p.age", "p.cost", "p.z", "coalesce(p.cost, 7)", "coalesce(p.z, p.cost, 0)", "if(p.cost > 5, 1, 2)", "p.age * 2",
    "case when p.sex = 'F' then 1 else 0 end", "case when p.age > 20 then p.cost end", "abs(p.age - 20)", "p.cost + 1",
    "case when p.sex is null then 5 else p.cost end", "case when p.region is null then 0 else 1 end", "nullif(p.cost, 3)",
    "case when d.num > 2 then p.cost else 3 end", "case when p.z is not null and d.num > 1 then 2 else 9 end",
    "coalesce(p.cost + d.num, 4)", "ifnull(p.z, d.num)",
)  # fmt: skip
CONDITIONS = (
    "p.age > 22", "p.sex = 'F'", "p.sex is null", "p.z is null", "p.cost between 3 and 9", "d.num > 2", "p.age is null",
    "not (p.sex = 'F')", "p.sex is distinct from 'F'", "p.region is null", "coalesce(p.age, 0) < 20", "d.grp is null",
    "p.sex = 'F' or p.z is null", "p.cost > d.num", "p.sex in ('F', 'M')", "p.age > 22 and d.num is not null",
)  # fmt: skip
ON = (
    "p.region = d.code", "p.region = d.code and p.age > 21", "p.region = d.code and p.sex = 'F'", "p.cost = d.num",
    "d.code = p.region and d.num > 2", "p.region = d.code and p.cost > 5", "p.age = d.num + 17",
)  # fmt: skip
KEYS = ("d.code", "d.grp", "", "d.grp, d.num", "d.code, p.sex")
EXACT, COARSE = ("points", "kept"), "boxes"


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as con:
        load(con)
        con.execute("""create table people as select (18 + hash(i) % 10)::int as age,
            case when i % 11 <> 0 then ['F', 'M'][1 + (hash(i * 3) % 2)::int] end as sex,
            case when i % 13 <> 0 then 'r' || (hash(i * 5) % 4) end as region, (hash(i * 17) % 20)::int as cost,
            case when i % 3 = 0 then i end as z from range(60) t(i)""")
        con.execute("""create table dim as select * from (values ('r0', 1, 'a'), ('r1', 2, 'a'), ('r2', 3, null), ('r2', 4, 'b'),
            ('r8', 20, 'c'), ('r9', null, 'c'), (null, 5, 'd')) t(code, num, grp)""")
        point = "{lower: age, upper: age} as age, [sex] as sex"
        con.execute(f"create table points as select {point}, [region] as region, cost, z from people")
        con.execute(f"create table kept as select {point}, region, cost, z from people")
        con.execute("""create table boxes as select {lower: age - age % 3, upper: age - age % 3 + 2} as age,
            case when sex is null then ['F', 'M', null] else [sex] end as sex, region, cost, z from people""")
        yield con


def asked(rng: random.Random) -> tuple[str, int]:
    """A query, and how many of its columns are keys; `m` is its measure."""
    kind = rng.choice(["sum", "count", "avg", "min", "max", "those", "sum of those", "rows"])
    value, among = rng.choice(VALUES), rng.choice(CONDITIONS)
    measure = {"rows": rng.choice(["count(*)", "count(1)", "count(p)"]), "those": f"count(*) filter (where {among})"}
    measure |= {"sum of those": f"sum({value}) filter (where {among})"}
    keys = rng.choice(KEYS)
    query = f"select {keys}{', ' if keys else ''}{measure.get(kind, f'{kind}({value})')} as m from dim d "
    query += f"left join people p on {rng.choice(ON)}"
    query += f" where {rng.choice(CONDITIONS)}" if rng.random() < 0.3 else ""
    return query + (f" group by {keys}" if keys else ""), keys.count(",") + bool(keys)


@pytest.mark.parametrize("seed", range(2))
def test_rows_without_a_match_count_as_they_do_on_the_original(con, seed):
    rng, answered = random.Random(seed), 0
    for _ in range(20):
        query, keys = asked(rng)
        truth = {row[:keys]: row[keys] for row in con.execute(query).fetchall()}
        for release in (*EXACT, COARSE):
            try:
                text = con.execute(
                    f"select rewrite_query($1, 'people', '{release}', bounds := 'sure', spread := 'uniform')", [query]
                )
                rewritten = text.fetchall()[0][0]
            except duckdb.Error as error:
                assert "internal error" not in str(error), query
                continue
            answered += 1
            found = {row[:keys]: row[keys:] for row in con.execute(rewritten).fetchall()}
            if release in EXACT:
                assert set(found) == set(truth), (query, release)
                estimates = {key: told[0] for key, told in found.items()}
                assert estimates == pytest.approx(truth), (query, release)
            for key, (_, *ends) in found.items():
                if ends and truth.get(key) is not None:
                    low, high = (end if end is not None else free for end, free in zip(ends, (-inf, inf), strict=True))
                    assert low - 1e-6 <= truth[key] <= high + 1e-6, (query, release, key)
    assert answered > 30  # of 60: the others are refused by name
