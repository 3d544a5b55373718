"""impute: tables drawn from releases of every format, held against the release and the original's shape."""

import duckdb
import pytest

import duckdb_anon
from tests.reference.rewrite_tables import PEOPLE

COLUMNS = {
    "turn": "insensitive", 'Age "x"': "quasi", "select": "quasi", "born": "quasi", "price in €": "quasi",
    "city": "quasi", "flag": "quasi", "level": "quasi", "seen at": "quasi", "extra": "insensitive",
    "disease": "sensitive",
}  # fmt: skip
"""Every column with its role."""


ROLES = "qi := ['RELATE', 'SEX', 'AGE', 'MARST', 'RACE', 'EDUC', 'UHRSWORK'], sensitive := 'INCWAGE'"


def ident(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@pytest.fixture
def odd(con):
    """A table with NULLs, odd names and many types, whose rows have a number that releases keep."""
    con.execute("""
        create table odd as select range as "turn", (20 + hash(range) % 60)::int as "Age ""x\""",
        (case when range % 17 = 0 then null else hash(range + 7) % 5 end)::tinyint as "select",
        (case when range % 23 = 0 then null else date '1950-01-01' + (hash(range + 1) % 9000)::int end) as born,
        (hash(range + 2) % 100000 / 100.0)::decimal(9, 2) as "price in €",
        'c' || hash(range + 3) % 6 as city, hash(range + 4) % 2 = 0 as flag,
        (['lo', 'mid', 'hi'])[1 + (hash(range + 9) % 3)::int]::enum('lo', 'mid', 'hi') as level,
        timestamp '2024-01-01' + to_seconds((hash(range + 8) % 10000000)::int) as "seen at",
        {'a b': range, 'c': [range]} as extra,
        'd' || (hash(range + 5) % 5 + hash(range) % 60 // 20) as disease from range(900)""")
    for column, role in COLUMNS.items():
        con.execute(f"comment on column odd.{ident(column)} is 'anon: {role}'")
    return con


def shape(con: duckdb.DuckDBPyConnection, table: str) -> list[tuple[str, str]]:
    return [(name, kind) for name, kind, *_ in con.execute(f"describe {table}").fetchall()]


CALLS = ("mondrian('odd', 5)", "anatomy('odd', 3)", "rr_distort('odd', p := 0.7)", "composition('odd', 5)")


@pytest.mark.parametrize("call", CALLS)
def test_draws_have_the_columns_and_types_of_the_original(odd, call):
    duckdb_anon.release(odd, "released", call)
    odd.execute("create table drawn as from impute('released', seed := 2)")
    released = {name for name, _ in shape(odd, "released")}
    slices = {name for name, kind in shape(odd, "released") if kind.startswith("STRUCT") and name not in COLUMNS}
    expected = [(n, k) for n, k in shape(odd, "odd") if n in released or slices]
    assert shape(odd, "drawn") == expected
    odd.execute("create table several as from impute('released', draws := 3, seed := 2)")
    assert shape(odd, "several") == [*expected, ("draw", "BIGINT")]
    rows = odd.execute("select count(*) from drawn").fetchone()
    assert odd.execute("select draw, count(*) from several group by all order by 1").fetchall() == [
        (draw, *rows) for draw in (1, 2, 3)
    ]


def test_values_lie_in_the_cells_of_their_rows(odd):
    duckdb_anon.release(odd, "boxes", "mondrian('odd', 10)")
    odd.execute("create table drawn as from impute('boxes', draws := 3, seed := 1)")
    for column in COLUMNS:
        d, b = f"d.{ident(column)}", f"b.{ident(column)}"
        kind = dict(shape(odd, "boxes"))[column]
        if kind.startswith("STRUCT(lower"):
            inside = f"case when {b} is null then {d} is null when {b}.lower is null then true "
            inside += f"else coalesce({d} between {b}.lower and {b}.upper, false) end"
        elif kind.endswith("[]") and column != "extra":
            inside = f"len(list_filter({b}, lambda v: v is not distinct from {d})) = 1"
        else:
            inside = f"{d} is not distinct from {b}"
        outside = odd.execute(f'select count(*) from drawn d join boxes b on d."turn" = b."turn" where not ({inside})')
        assert outside.fetchone() == (0,), column


def test_buckets_keep_their_counts(odd):
    duckdb_anon.release(odd, "buckets", "anatomy('odd', 3)")
    odd.execute("create table drawn as from impute('buckets', draws := 4, seed := 1)")
    differing = odd.execute("""
        with told as (select distinct bucket, unnest(map_entries(disease), recursive := true) from buckets),
        seen as (select draw, bucket, d.disease, count(*) as n from drawn d join buckets b on d."turn" = b."turn" group by all)
        select count(*) from seen full join told on seen.bucket = told.bucket and seen.disease = told.key
        where seen.n is distinct from told.value""").fetchone()
    assert differing == (0,)


def test_slices_stay_whole_inside_their_buckets(con):
    con.execute("create table t as select range % 7 as a, range % 7 * 2 as b, hash(range) % 5 as s from range(400)")
    roles = "qi := ['a', 'b'], sensitive := 's'"
    duckdb_anon.release(con, "sliced", f"slicing('t', l := 2, columns := [['a', 'b'], ['s']], {roles})")
    con.execute("create table drawn as from impute('sliced', draws := 2, seed := 1)")
    assert con.execute("select count(*) from drawn where b <> 2 * a").fetchone() == (0,)
    for column in ("a", "s"):
        counts = f"select {column}, count(*) as n from {{}} group by all order by all"
        assert (
            con.execute(counts.format("t")).fetchall()
            == con.execute(counts.format("(from drawn where draw = 2)")).fetchall()
        )


def test_a_seed_repeats_draws_for_any_number_of_threads(odd):
    duckdb_anon.release(odd, "boxes", "mondrian('odd', 10)")
    found = []
    for threads in (1, 3):
        odd.execute(f"set threads = {threads}")
        found.append(odd.execute("from impute('boxes', draws := 2, seed := 5) order by all").fetchall())
    assert found[0] == found[1]
    assert found[0] != odd.execute("from impute('boxes', draws := 2, seed := 6) order by all").fetchall()
    assert (
        odd.execute("from impute('boxes') order by all").fetchall()
        != odd.execute("from impute('boxes') order by all").fetchall()
    )


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("bit", ("10101", "1", "000000001")),
        ("date", ("-infinity", "infinity", "0044-03-15 (BC)", "10000-01-01")),
        ("timestamp", ("-infinity", "infinity", "0044-03-15 (BC) 00:00:00", "2020-01-01 00:00:00.5")),
        ("time", ("24:00:00", "12:00:00.5")),
    ],
)
def test_values_that_arrow_writes_differently_are_drawn(con, kind, values):
    listed = ", ".join(f"('{value}')" for value in values)
    con.execute(
        f"create table odd as select v::{kind} as v, 'd' || range % 2 as s from (values {listed}) t(v), range(4)"
    )
    con.execute("comment on column odd.v is 'anon: quasi'; comment on column odd.s is 'anon: sensitive'")
    con.execute("create table released as from slicing('odd', l := 2, seed := 1)")
    drawn = con.execute(
        "select v, count(*) from impute('released', original := 'odd', seed := 1) group by v order by v"
    )
    assert drawn.fetchall() == con.execute("select v, count(*) from odd group by v order by v").fetchall()


def test_randomized_leaves_of_a_hierarchy_are_drawn(con):
    con.execute("create table people as select (range % 4)::bigint as q, 'd' || range % 3 as s from range(60)")
    con.execute("create table tree as select range as leaf, 'g' || range // 2 as middle, '*' as root from range(4)")
    con.execute("comment on column people.q is 'anon: quasi hierarchy=tree'")
    con.execute("comment on column people.s is 'anon: sensitive'")
    con.execute("create table released as from rr_distort('people', p := 1)")
    drawn = con.execute("select q, count(*) from impute('released', original := 'people') group by q order by q")
    assert drawn.fetchall() == [(value, 15) for value in range(4)]


def test_a_sample_stands_for_all_rows(con):
    con.execute("create table t as select range % 10 as a from range(1000)")
    con.execute("create table sample as select a, 0.25 as sampling_rate from t where a % 2 = 0")
    found = con.execute("select count(*), sum(a) from impute('sample', original := 't', qi := ['a'], seed := 1)")
    assert found.fetchone() == (2000, 8000)
    con.execute("create table less as select a, 100 as suppressed from t where a < 9")
    found = con.execute("select count(*) from impute('less', original := 't', qi := ['a'], seed := 1)")
    assert found.fetchone() == (1000,)


def test_lists_of_persons_become_rows(con):
    con.execute(
        "create table tree as select 'v' || range as leaf, 'n' || range // 3 as node, '*' as root from range(9)"
    )
    con.execute("create table t (age integer, v varchar)")
    con.execute("comment on column t.age is 'anon: quasi'")
    con.execute("comment on column t.v is 'anon: sensitive hierarchy=tree'")
    con.execute("""create table lists as select {'lower': 20, 'upper': 29} as age, ['n0', 'v4', 'v4'] as v
        from range(50)""")
    con.execute("create table drawn as from impute('lists', original := 't', seed := 1)")
    assert shape(con, "drawn") == shape(con, "t")
    assert con.execute("select count(*), count(*) filter (v = 'v4') from drawn").fetchone() == (150, 100)
    assert con.execute("select list(distinct v order by v) from drawn where v <> 'v4'").fetchone() == (
        ["v0", "v1", "v2"],
    )
    assert con.execute("select count(*) from drawn where age not between 20 and 29").fetchone() == (0,)


def test_randomized_values_are_drawn_near_their_shares(con):
    con.execute("create table t as select (case when range % 10 < 8 then 'a' else 'b' end) as v from range(20000)")
    con.execute("create table randomized as from rr_distort('t', p := 0.7, qi := ['v'], seed := 1)")
    (share,) = con.execute("""select avg((v = 'a')::int) from impute('randomized', draws := 5, original := 't',
        qi := ['v'], seed := 1)""").fetchone() or (None,)
    assert share == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("impute('counted', original := 't', qi := ['a'])", "noisy counts"),
        ("impute('nowhere', original := 't')", "nowhere"),
        ("impute('plain', original := 'other')", "shows no column of other"),
        ("impute('plain', draws := 0)", "draws"),
        ("impute('plain', original := 'missing')", "missing"),
        ("impute('buckets', original := 't')", "counts of a do not add up"),
        ("impute('other_type', original := 't')", "column 'a' of other_type has type MAP"),
    ],
)
def test_what_cannot_be_drawn_is_refused_by_name(con, sql, says):
    con.execute("create table t as select range as a from range(10)")
    con.execute("create table other as select range as b from range(10)")
    con.execute("create table plain as from t")
    con.execute("create table buckets as select 0 as bucket, map {1::bigint: 3::bigint} as a from range(2)")
    con.execute("create table other_type as select map {'x': 1} as a")
    con.execute("create table counted as select {'lower': 0, 'upper': 9} as a, 10.5 as noisy_count")
    with pytest.raises(duckdb.Error, match=f"impute: .*{says}"):
        con.execute(f"from {sql}").fetchall()


def test_draws_of_buckets_answer_averages_on_real_rows(census):
    con = duckdb_anon.connect()
    con.register("rows", census.cursor().sql("from census where hash(rowid) % 3 = 0").to_arrow_table())
    con.execute("create table census as from rows")
    con.execute(f"create table buckets as from anatomy('census', 4, {ROLES}, seed := 1)")
    con.execute(f"create table drawn as from impute('buckets', draws := 5, original := 'census', {ROLES}, seed := 1)")
    drawn, estimated = [], []
    for where in ("AGE < 30", "EDUC >= 10", "SEX = 2 and UHRSWORK < 35", "MARST = 6 and AGE > 40"):
        query = f"select avg(INCWAGE) as v from {{}} where {where}"
        (truth,) = con.execute(query.format("census")).fetchone() or (None,)
        (mean,) = con.execute(query.format("drawn")).fetchone() or (None,)
        call = f"estimate($${query.format('census')}$$, 'buckets', original := 'census', engine := 'closed', {ROLES})"
        statement = f"select estimate from {call}"
        (estimate,) = con.execute(statement).fetchone() or (None,)
        drawn.append(abs(mean / truth - 1))
        estimated.append(abs(estimate / truth - 1))
    assert sum(drawn) < 0.5 * sum(estimated)


def test_a_null_released_as_a_leaf_of_a_hierarchy_is_drawn_as_null(con):
    con.execute("create table tree as from (values ('n1', 'north', '*'), ('n2', 'north', '*'), ('s1', 'south', '*'))")
    con.execute(
        "create table p as select i % 90 as age, ['n1', 'n2', 's1', null][1 + i % 4] as region from range(400) t(i)"
    )
    roles = "qi := ['age', 'region'], hierarchies := {'region': 'tree'}"
    con.execute(f"create table q as from mondrian('p', 50, {roles})")
    assert ("(null)",) in con.execute("select distinct region from q").fetchall()
    drawn = con.execute(
        f"select region, count(*) from impute('q', original := 'p', {roles}) group by region"
    ).fetchall()
    assert dict(drawn) == {"n1": 100, "n2": 100, "s1": 100, None: 100}


EXACT = """
    case when range % 7 = 0 then null else 9223372036854775807 - range end as far,
    (range % 256)::utinyint as small,
    ([-0.0, 0.0, 'nan'::double, 'infinity'::double, 1 / 3, null])[1 + range % 6]::double as real,
    (range / 3)::float as short,
    case when range % 5 = 0 then null else range % 2 = 0 end as flag,
    (['', 'a', 'it"s', null])[1 + range % 4] as word,
    (['lo', 'hi', null])[1 + range % 3]::enum('lo', 'hi') as level,
    ([date 'infinity', date '-infinity', date '0044-03-15 (BC)', null])[1 + range % 4] as born,
    ([timestamp 'infinity', timestamp '1600-01-01 00:00:00.000001', null])[1 + range % 3] as seen,
    (range / 7)::decimal(30, 12) as amount"""


@pytest.mark.parametrize(
    "more", ["", ", range::hugeint as huge", ", [range] as nested"], ids=["copied", "huge", "nested"]
)
def test_exact_values_are_those_of_the_release(con, more):
    con.execute(f"create table t as select range as number, hash(range) % 50 as a, {EXACT}{more} from range(500)")
    exact = [name for name, _ in shape(con, "t") if name != "a"]
    keep = ", ".join(f"'{name}'" for name in exact)
    roles = f"qi := ['a'], keep := [{keep}]"
    con.execute(f"create table boxes as from mondrian('t', 5, {roles})")
    for name in exact:
        columns = "'number', 'a'" + (f", '{name}'" if name != "number" else "")
        call = f"impute('boxes', draws := 3, original := 't', seed := 1, columns := [{columns}], {roles})"
        differ = f"d.{name}::varchar is distinct from t.{name}::varchar or d.{name} is distinct from t.{name}"
        counted = f"select count(*), count(*) filter (where {differ}) from {call} as d join t using (number)"
        assert con.execute(counted).fetchone() == (1500, 0), name
        kinds = [con.execute(f"select typeof({name}) from {table} limit 1").fetchone() for table in (call, "t")]
        assert kinds[0] == kinds[1]


def test_a_changed_release_is_drawn_anew(con):
    con.execute("create table t as select range as number, hash(range) % 50 as a, range % 9 as b from range(500)")
    roles = "qi := ['a'], keep := ['number', 'b']"
    con.execute(f"create table boxes as from mondrian('t', 5, {roles})")
    total = f"select sum(b) from impute('boxes', draws := 2, seed := 1, columns := ['number', 'b'], {roles})"
    before = con.execute(total).fetchone()[0]
    con.execute("begin; update boxes set b = b + 1000 where number = 3")
    assert con.execute(total).fetchone() == (before + 2000,)
    con.execute("rollback")
    assert con.execute(total).fetchone() == (before,)


@pytest.mark.parametrize("method", ["mondrian('people', 5", "composition('people', 4"])
def test_drawn_numbers_vary_as_the_original_does(con, method):
    con.execute(PEOPLE.format(rows=600))
    roles = "qi := ['age', 'sex', 'region', 'born', 'weight'], sensitive := 'disease'"
    con.execute(f"create table boxes as from {method}, {roles}, seed := 1)")
    assert con.execute("select count(*) > 0 from boxes where age is not null and age.lower is null").fetchone()[0]
    measure = "select var_pop(age), var_pop(weight) from"
    truth = con.execute(f"{measure} people").fetchone()
    drawn = con.execute(f"{measure} impute('boxes', 5, original := 'people', seed := 1, {roles})").fetchone()
    assert drawn == pytest.approx(truth, rel=0.12)
