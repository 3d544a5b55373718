"""Attacks by values that a table takes for equal, or orders, otherwise than a kernel might."""

import duckdb
import pytest

pytestmark = [pytest.mark.campaign, pytest.mark.weekly]


@pytest.mark.parametrize("special", ["'-inf'::double", "'inf'::double", "'nan'::double", "null::double"])
@pytest.mark.parametrize("method", ["mondrian", "incognito"])
def test_a_t_close_release_is_t_close_in_the_order_of_duckdb(con, method, special):
    # one group has many special values, which lie at one end of the order: nearest to the smallest or to the greatest
    con.execute(
        f"""create table t as select i // 6 as a, case when i % 6 < i // 12 then {special} when i % 2 = 0 then 1.0
        else 20.0 + i // 6 end as s from range(72) r(i)"""
    )
    for t in (0.1, 0.2, 0.3):
        con.execute(f"create or replace table r as from {method}('t', t := {t}, qi := ['a'], sensitive := 's')")
        # earth mover's distance by the definition, ranks as DuckDB orders values
        worst = con.execute(
            """with ranked as (select a, dense_rank() over (order by s nulls last) as p from r),
            places as (select unnest(range(1, max(p))) as p, max(p) - 1 as m from ranked),
            classes as (select distinct a from r)
            select max(d) from (
                select c.a, sum(abs((select avg((x.p <= places.p)::int) from ranked x where x.a = c.a)
                    - (select avg((x.p <= places.p)::int) from ranked x))) / any_value(m) as d
                from classes c, places group by c.a)"""
        ).fetchone()[0]
        told = con.execute("from t_closeness('r', qi := ['a'], sensitive := 's')").fetchone()[0]
        assert worst <= t + 1e-9
        assert told == pytest.approx(worst, abs=1e-9)


def test_minus_infinity_in_a_date_is_the_earliest(con):
    con.execute(
        """create table t as select i // 6 as a, case when i % 6 < i // 12 then '-infinity'::date
        else date '2020-01-01' + (i % 7)::int end as s from range(72) r(i)"""
    )
    con.execute("create table r as from mondrian('t', t := 0.15, qi := ['a'], sensitive := 's')")
    assert con.execute("from t_closeness('r', qi := ['a'], sensitive := 's')").fetchone()[0] <= 0.15 + 1e-9


COLLATED = """create table c(a integer, q varchar collate {0}, s varchar collate {0}, p varchar collate {0})"""


@pytest.mark.parametrize("collation", ["nocase", "noaccent", "nfc", "nocase.noaccent"])
def test_a_collated_column_is_refused_with_the_way_out(con, collation):
    con.execute(COLLATED.format(collation))
    con.execute("insert into c select i % 4, 'x', case when i % 2 = 0 then 'flu' else 'FLU' end, i from range(40) r(i)")
    roles = "qi := ['a'], sensitive := 's'"
    for call in (
        f"mondrian('{{}}', k := 2, {roles})", f"anatomy('{{}}', 2, {roles})", f"muco('{{}}', 0.5, {roles})",
        "distribution_distance('{}', '{}', columns := ['s'])",
    ):  # fmt: skip
        with pytest.raises(duckdb.Error, match=r"'s' has a collation.*Write \(select \* replace \(lower\(") as caught:
            con.execute(f"create table r as from {call.replace('{}', 'c')}").fetchall()
        way_out = str(caught.value).partition("Write ")[2].partition(" [bad-column]")[0].replace("from ...", "from c")
        plain = f"(select * replace (s || a as s) from {way_out})".replace("'", "''")
        assert con.execute(f"from {call.replace('{}', plain)}").fetchall()


def test_a_collated_column_that_is_only_kept_is_no_matter(con):
    con.execute(COLLATED.format("nocase"))
    con.execute("insert into c select i % 4, 'x', case when i % 2 = 0 then 'flu' else 'FLU' end, i from range(40) r(i)")
    con.execute("create table r as from mondrian('c', k := 5, qi := ['a'], keep := ['s'])")
    assert con.execute("select count(*) from r where s = 'flu'").fetchone() == (40,)


@pytest.mark.parametrize("call", ["k_anonymity('{}', qi := ['q'])", "l_diversity('{}', qi := ['a'], sensitive := 's')"])
def test_plain_checks_refuse_a_collated_column(con, call):
    con.execute(COLLATED.format("nocase"))
    con.execute("insert into c select 0, 'north', ['flu', 'FLU'][1 + i % 2], i from range(12) r(i)")
    with pytest.raises(duckdb.Error, match="has a collation"):
        con.execute(f"from {call.format('c')}").fetchall()
    lower = '(select * replace (lower(q) collate "binary" as q, lower(s) collate "binary" as s) from c)'
    assert con.execute(f"from {call.format(lower)}").fetchall()


@pytest.mark.parametrize(
    "made",
    [
        "create table c as select * from plain; alter table c add column t varchar collate nocase; update c set t = s; "
        "alter table c drop column s; alter table c rename t to s",
        "create table held(s varchar collate nocase); insert into held select s from plain; "
        "create view c as select p.a, h.s from plain p positional join held h",
        "set default_collation = 'nocase'; create table c as from plain",
        "create temp table c(a bigint, s varchar collate nocase); insert into c from plain",
    ],
    ids=["a column added later", "a view", "the default", "a table the planner cannot see"],
)
def test_a_collation_is_seen_wherever_it_was_said(con, made):
    con.execute("""create table plain as select i % 4 as a, case when i // 4 % 2 = 0 then 'flu' else 'FLU' end as s
        from range(40) r(i)""")
    con.execute(made)
    assert con.execute("select count(*) from (select s from c group by s)").fetchone() == (1,)
    with pytest.raises(duckdb.Error, match="'s' has a collation"):
        con.execute("from mondrian('c', l := 2, qi := ['a'], sensitive := 's')").fetchall()
    con.execute("set default_collation = ''")
    assert len(con.execute("from mondrian('plain', l := 2, qi := ['a'], sensitive := 's')").fetchall()) == 40


LABELS = [
    ("double", "5.0", "6.5"), ("float", "5.0", "6.1"), ("decimal(9,2)", "5.00", "6.5"), ("integer", "5.0", "7"),
    ("hugeint", "5", "-170141183460469231731687303715884105728"), ("date", "2020-01-01", "2021-02-03"),
    ("timestamp", "2020-01-01", "2020-01-01 12:30:00.5"), ("timestamp_s", "2020-01-01 00:00:00", "2020-01-01 12:30:00"),
    ("timestamp_ns", "2020-01-01 00:00:00", "2020-01-01 12:30:00.000000001"), ("time", "10:00:00", "10:00:01.5"),
    ("timestamptz", "2020-01-01 00:00:00+00", "2020-01-01 12:30:00+05"), ("boolean", "true", "false"),
    ("uuid", "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"), ("varchar", "a", "b"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "one", "other"), LABELS)
@pytest.mark.parametrize("printed", ["as_given", "as_duckdb_prints", "as_type"])
def test_leaves_are_the_values_they_read_as(con, kind, one, other, printed):
    con.execute(
        f"create table y as select unnest([?, ?, ?, ?]::{kind}[]) as x, unnest(range(4)) as s", [one, other] * 2
    )
    leaf = {"as_given": "l", "as_duckdb_prints": f"l::{kind}::varchar", "as_type": f"l::{kind}"}[printed]
    con.execute(
        f"create table h as select {leaf} as leaf, 'all' as root from (select unnest([?, ?]) as l)", [one, other]
    )
    labels = {label for (label,) in con.execute("select leaf::varchar from h").fetchall()}
    table = "(select * from y)" if printed == "as_type" else "y"
    rows = con.execute(f"""select x, count(*) from mondrian('{table}', k := 2, qi := ['x'], sensitive := 's',
        hierarchies := {{'x': 'h'}}) group by x""").fetchall()
    assert {label for label, _ in rows} == labels and {n for _, n in rows} == {2}


def test_blobs_are_refused_with_a_hierarchy(con):
    con.execute("create table y as select unnest(['\\xAA', 'b']::blob[]) as x, unnest(range(2)) as s")
    con.execute("create table h as select x as leaf, 'all' as root from y")
    with pytest.raises(duckdb.Error, match="Cast it to VARCHAR"):
        con.execute("from mondrian('y', k := 2, qi := ['x'], sensitive := 's', hierarchies := {'x': 'h'})").fetchall()
    plain = "(select x::varchar as x, s from y)"
    assert con.execute(f"""select distinct x from mondrian('{plain}', k := 2, qi := ['x'], sensitive := 's',
        hierarchies := {{'x': 'h'}})""").fetchall() == [("all",)]


@pytest.mark.parametrize(
    ("values", "rows", "told"),
    [
        (
            "5.0::double, 6.5",
            "('5', 'all'), ('5.0', 'all'), ('6.5', 'all')",
            "two leaves of hierarchy 'h' are one value",
        ),
        ("5.0::double, 6.5", "('5', 'all'), ('6', 'all')", "1 distinct value.*are not leaves.*such as '5'"),
        ("'(null)', null", "('(null)', '*')", "has that name"),
        ("'a', 'b', 'c'", "('a', 'g', 'u', '*'), ('b', 'g', 'v', '*'), ('c', 'w', 'v', '*')", "more than one node"),
        ("'a', 'b', 'c'", "('a', 'b', 'u', '*'), ('b', 'c', 'v', '*'), ('c', 'w', 'v', '*')", "more than one node"),
        (
            "'a', 'b', 'c'",
            "('a', '*', 'u', '*'), ('b', 'c', 'v', '*'), ('c', 'w', 'v', '*')",
            "more than one|of a group",
        ),
    ],
)
def test_labels_that_are_no_leaves_or_of_several_nodes_are_refused_by_name(con, values, rows, told):
    con.execute(f"create table y as select unnest([{values}]) as x, 1 as s; create table h as from (values {rows})")
    with pytest.raises(duckdb.Error, match=told):
        con.execute("from mondrian('y', k := 1, qi := ['x'], sensitive := 's', hierarchies := {'x': 'h'})").fetchall()


@pytest.mark.parametrize("temp", ["", "temp"])
def test_values_that_would_arrive_as_others_are_refused_by_name(con, temp):
    con.execute(f"create {temp} table z as select '10:00:00+01'::timetz as x, i as s from range(4) r(i)")
    con.execute(f"create {temp} table u as select (2::uhugeint ** 0 + i)::uhugeint as x, i as s from range(4) r(i)")
    con.execute("insert into u values (300000000000000000000000000000000000000, 9)")
    for table, told in (("z", "TIME WITH TIME ZONE"), ("u", "UHUGEINT")):
        for call in ("mondrian('{}', k := 2, qi := ['x'], sensitive := 's')", "anatomy('{}', 2, qi := ['s'], sensitive := 'x')",
                     "slicing('{}', 2, qi := ['x'], sensitive := 's', columns := [['x'], ['s']])"):  # fmt: skip
            with pytest.raises(duckdb.Error, match=told) as error:
                con.execute(f"from {call.format(table)}").fetchall()
            assert "300000000000000000000000000000000000000" not in str(error.value)


def test_a_sensitive_column_may_have_a_hierarchy_where_columns_are_found(con):
    con.execute("""create table t as select i % 7 as a, i // 10 as b, ['flu', 'cough', 'cold'][1 + i % 3] as s
        from range(60) r(i)""")
    con.execute("""create table h as from (values ('flu', 'r', '*'), ('cough', 'r', '*'), ('cold', 'x', '*')) v(leaf,
        l1, root)""")
    roles = "qi := ['a', 'b'], sensitive := 's', hierarchies := {'s': 'h'}"
    for call in (f"slicing('t', 2, {roles})", f"merging('t', 2, {roles}, fake := 0)"):
        assert len(con.execute(f"from {call}").fetchall()) == 60
