"""Columns of every type, odd names, odd comments, and releases that do not fit their original."""

import duckdb
import pytest

pytestmark = pytest.mark.campaign

ROLES = "qi := ['a', 'b'], sensitive := 's'"


def said(con: duckdb.DuckDBPyConnection, statement: str) -> str:
    with pytest.raises(duckdb.Error) as caught:
        con.execute(statement).fetchall()
    assert "internal error" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def pair(con):
    """A table and its release with row_id."""
    con.execute("create table t as select range % 7 as a, range % 3 as b, range % 11 as s from range(330)")
    con.execute(f"create table r as from muco('t', 0.2, {ROLES}, row_id := true)")
    return con


def test_query_texts_on_blobs_run(con):
    blob = "(['\\xFF\\x00', 'plain', '\\x80'])[1 + range % 3]::blob"
    con.execute(f"create table t as select {blob} as a, range % 3 as b from range(330)")
    for query, original in con.execute("""select query, original
        from workload_error('t', 't', qi := ['a', 'b'], n := 20, dims := 2)""").fetchall():
        assert con.execute(query).fetchone() == (original,)


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP"])
def test_infinite_dates_stand_apart_and_do_not_widen_the_domain(con, kind):
    con.execute(f"""create table t as select case when range % 10 = 0 then 'infinity'::{kind} when range % 10 = 1 then
        '-infinity'::{kind} else date '2020-01-01' + (range % 7)::integer end as a, range % 3 as b from range(330)""")
    con.execute("create table r as select * replace (case when isinf(a) then a else date '2020-01-01' end as a), "
                "row_number() over () - 1 as row_id from t")  # fmt: skip
    loss = con.execute("select ncp from information_loss('t', 'r', qi := ['a', 'b'])").fetchone()
    assert loss[0] == pytest.approx(0.8 * 0.5, rel=0.05)
    con.execute("from muco('t', 0.2, qi := ['a', 'b'])")


@pytest.mark.parametrize("value", ["[range]", "{'x': range}", "map {range: 1}", "to_days(range::integer)"])
def test_types_without_codes_are_refused_as_quasi_and_pass_as_insensitive(con, value):
    for temporary in ("", "temp"):
        con.execute(f"create or replace {temporary} table t{temporary} as select {value} as a, range % 3 as b "
                    "from range(330)")  # fmt: skip
        assert "column 'a'" in said(con, f"from muco('t{temporary}', 0.2, qi := ['a'])")
        kept = con.execute(f"select count(*) from (select a from muco('t{temporary}', 0.2, qi := ['b'], keep := ['a']) "
                           f"intersect select a from t{temporary})").fetchone()  # fmt: skip
        assert kept == (330,)


def test_reserved_column_names_are_refused(pair):
    pair.execute("create table odd as select a as _anon_rn, b, s from t")
    for call in (
        "muco('odd', 0.2, qi := ['b'])",
        "muco('odd', 0.2, qi := ['_anon_rn', 'b'])",
        "information_loss('t', 'odd', qi := ['b'])",
    ):
        assert "_anon_rn" in said(pair, f"from {call}")
    pair.execute("create temp table hidden as from odd")
    assert "reserved" in said(pair, "from muco('hidden', 0.2, qi := ['_anon_rn', 'b'])")


def test_a_comment_with_two_roles_is_refused(con):
    con.execute("create table t as select range % 7 as a from range(330)")
    con.execute("comment on column t.a is 'was anon: insensitive, now anon: quasi'")
    assert "several roles" in said(con, "from muco('t', 0.2)")


def test_an_empty_hierarchy_cell_is_refused(pair):
    pair.execute("create table tree as select * from (values (0, 'x', '*'), (1, null, '*'), (2, 'y', null)) h(l, m, t)")
    assert "holds NULL" in said(pair, "from muco('t', 0.2, qi := ['b'], hierarchies := {'b': 'tree'})")


@pytest.mark.parametrize(
    ("row_id", "reason"),
    [
        ("null::bigint", "does not number rows"), ("row_id + 0.5", "does not number rows"),
        ("row_id::varchar", "not a row number"), ("-1 - row_id", "do not belong together"),
        ("row_id + 5", "do not belong together"),
    ],
)  # fmt: skip
def test_row_ids_of_another_table_are_refused(pair, row_id, reason):
    pair.execute(f"create table wrong as select * replace ({row_id} as row_id) from r")
    for measure in ("disclosure", "information_loss"):
        assert reason in said(pair, f"from {measure}('t', 'wrong', {ROLES})")


def test_rows_released_twice_are_no_basis_for_disclosure(pair):
    pair.execute("create table wrong as select * replace (row_id // 2 as row_id) from r")
    assert "330 released rows share 165 row_ids" in said(pair, f"from disclosure('t', 'wrong', {ROLES})")


def test_releases_that_lack_columns_or_rows_are_refused(pair):
    assert "no column b" in said(pair, f"from disclosure('t', '(select a, s, row_id from r)', {ROLES})")
    assert "no column s" in said(pair, f"from disclosure('t', '(select a, b, row_id from r)', {ROLES})")
    assert "no column row_id" in said(pair, f"from disclosure('t', '(select a, b, s from r)', {ROLES})")
    assert "empty" in said(pair, f"from disclosure('t', '(from r limit 0)', {ROLES})")
    assert "empty" in said(pair, f"from workload('(from t limit 0)', {ROLES}, dims := 1)")


def test_a_locked_configuration_does_not_matter(pair):
    pair.execute("set lock_configuration = true")
    assert pair.execute(f"select count(*) from muco('t', 0.2, {ROLES})").fetchone() == (330,)


@pytest.mark.parametrize("kind", ["decimal(4,1)", "decimal(18,3)", "decimal(38,10)", "hugeint"])
def test_ends_released_as_double_hold_the_values_they_stand_at(con, kind):
    con.execute(f"create table t as select 999.9::{kind} as a, range % 3 as b, 'd' || range % 2 as s from range(30)")
    call = "diffgen('t', 1.0, domain := 'observed', qi := ['a', 'b'], sensitive := 's', seed := 1)"
    con.execute(f"create table r as from {call}")
    covered = "select bool_and(t.a between r.a.lower and r.a.upper) from t, (select distinct a from r) as r"
    assert con.execute(covered).fetchone() == (True,)


def test_columns_that_reach_both_ends_of_bigint_are_generalized(con):
    con.execute("""create table t as select case when range < 3 then 9223372036854775807 when range < 50 then
        -9223372036854775808 else range % 2 end as a, range % 3 as s from range(60)""")
    for call in ("hybrid('t', 5, q := 0.0, {})", "composition('t', 5, {})", "mondrian('t', 5, {})"):
        con.execute("create or replace table r as from " + call.format("qi := ['a'], sensitive := 's'"))
        assert con.execute("select bool_and(a.lower <= a.upper) from r where a.lower is not null").fetchone() != (
            False,
        )


def test_whole_noisy_counts_of_large_numbers_are_summed(con):
    con.execute("create table t as select range % 2 = 0 as a, case range % 3 when 0 then -9223372036854775808 else 7 end "
                "as s from range(90)")  # fmt: skip
    con.execute("""create table r as from diffgen('t', 50.0, domain := 'observed', qi := ['a'], sensitive := 's', seed
        := 1)""")
    answer = con.execute("from estimate('select sum(s) as v from t', 'r', original := 't', qi := ['a'], "
                         "sensitive := 's')").fetchone()  # fmt: skip
    assert answer is not None and answer[1] == pytest.approx(-30 * 2.0**63, rel=0.05)


def test_cells_of_noisy_counts_come_from_no_row_and_row_id_is_no_remedy(con):
    con.execute("create table t as select range % 7 as a, range % 3 as b, range % 11 as s from range(330)")
    con.execute("create table r as select distinct a, b, s, 3::bigint as noisy_count from t")
    for measure in ("information_loss", "distortion_ratio"):
        told = said(con, f"from {measure}('t', 'r', {ROLES})")
        assert "noisy counts" in told and "row_id" not in told


def test_the_least_hugeint_is_below_all_others_in_learnt_shares(con):
    con.execute("create table t as select case when range < 20 then '-170141183460469231731687303715884105728'::hugeint "
                "else range % 9 end as a, range % 3 as s from range(60)")  # fmt: skip
    con.execute("create table r as from mondrian('t', 5, edges := 'tight', qi := ['a'], sensitive := 's')")
    told = con.execute("from estimate('select s, count(*) as n from t where a < 0 group by s', 'r', original := 't', "
                       "qi := ['a'], sensitive := 's')").fetchall()  # fmt: skip
    assert all(0 <= row[2] <= 20 for row in told)


@pytest.mark.parametrize("kind", ["time", "timestamp_s", "timestamptz"])
def test_intervals_of_times_of_day_are_asked_whether_they_are_there(con, kind):
    con.execute(f"""create table t as select (timestamp '2020-01-01' + to_minutes((range * 7) % 1400))::{kind} as a,
        range % 2 = 0 as b, range % 3 as s from range(300)""")
    roles = "qi := ['a', 'b'], sensitive := 's'"
    con.execute(f"create table r as from mondrian('t', 5, {roles})")
    asked = "select count(*) as n from t where a is null or b"
    told = con.execute(f"select estimate, original from relative_error('{asked}', 't', 'r', {roles})").fetchone()
    assert told == (pytest.approx(150), 150)
