"""What is decided on values of an answer, against counts by hand."""

import itertools

import numpy as np
import pyarrow as pa
import pytest


def made(con, rows, columns="grp varchar, sex varchar, x double", policy="threshold := 3", person=False):
    """A labelled table `t` of these rows."""
    con.execute(f"create or replace table t ({'pid bigint, ' * person}{columns})")
    con.register("given", pa.table({f"c{place}": column for place, column in enumerate(zip(*rows, strict=True))}))
    con.execute("insert into t from given")
    con.unregister("given")
    con.execute(f"comment on table t is 'anon: outputs({policy})'")
    for name in ("grp", "sex"):
        con.execute(f"comment on column t.{name} is 'anon: quasi'")
    con.execute("comment on column t.x is 'anon: sensitive'")
    if person:
        con.execute("comment on column t.pid is 'anon: person'")
    return con


def asked(con, query):
    return con.execute("from safe_output(?)", [query]).fetchall()


def alone(con, query):
    """The answer without regard to earlier ones."""
    con.execute("drop table if exists anon.outputs; drop table if exists anon.output_rows")
    return asked(con, query)


def test_a_value_of_fewer_individuals_is_null_and_the_rule_is_named(con):
    rows = [("a", "f", 1.0)] * 3 + [("b", "f", 1.0)] * 2 + [("b", "m", 1.0)] * 3 + [("a", "m", 5.0)] * 2
    found = alone(made(con, rows), "select grp, sex, count(*) from t group by all order by 1, 2")
    assert found == [
        ("a", "f", 3, None), ("a", "m", None, "primary: threshold"),
        ("b", "f", None, "primary: threshold"), ("b", "m", 3, None),
    ]  # fmt: skip


def test_keys_of_rows_with_few_individuals_are_left_out_where_they_would_tell_a_sensitive_value(con):
    rows = [("a", "f", 7.0)] * 3 + [("a", "f", 8.0)] * 2 + [("c", "f", 7.0)]
    con = made(con, rows)
    assert alone(con, "select x, count(*) from t group by x") == [(7.0, None, "primary: threshold")]
    assert alone(con, "select grp, count(*) from t group by grp") == [("a", None, "primary: threshold")]
    con.execute("insert into t select 'b', 'f', 9 from range(20); insert into t values ('b', 'f', 10)")
    assert alone(con, "select x, count(*) from t group by x order by x") == [(7.0, 4, None), (9.0, 20, None)]


def test_zeros_are_answered_unless_they_tell_a_sensitive_value_or_the_policy_says_no(con):
    rows = [("a", "f", 1.0)] * 5
    query = "select count(*) from t where grp = 'z'"
    assert alone(made(con, rows), query) == [(0, None)]
    assert alone(con, "select count(*) from t where x > 100") == [(None, "primary: threshold")]
    con.execute("insert into t select 'n', 'f', null from range(20)")
    assert alone(con, "select grp, count(x) from t where grp = 'n' group by grp") == [("n", None, "primary: threshold")]
    assert alone(con, "select count(*) filter (x > 100) from t") == [(None, "primary: threshold")]
    assert alone(made(con, rows, policy="threshold := 3, zeros := ''disclosive''"), query)[0][0] is None


def test_a_complement_of_few_individuals_is_a_cell_of_few(con):
    rows = [("a", "f", 1.0)] * 20 + [("b", "m", 2.0)] * 2
    con = made(con, rows)
    for query in (
        "select count(*) from t where grp = 'a'",
        "select count(*) filter (grp = 'a') from t",
        "select sum(x) filter (x < 2) from t",
        "select 1.0 * count(*) filter (sex = 'f') / count(*) from t",
    ):
        assert alone(con, query)[0][0] is None, query
    assert alone(con, "select count(*) from t") == [(22, None)]


@pytest.mark.parametrize(
    ("amounts", "rule"),
    [
        ([10.0] * 5, None),
        ([100.0, 100.0, 5.0, 5.0, 5.0], "dominance"),
        ([100.0, 20.0, 5.0, 4.0, 0.9], "dominance"),
        ([100.0, 1.0, 3.0, 3.0, 3.0], "dominance"),
        ([0.0] * 5, "p_percent"),
        ([-10.0] * 5, None),
        ([1e3, -1e3, 1.0, 1.0, 1.0], "dominance"),
        ([float("nan"), 1.0, 1.0, 1.0, 1.0], "dominance"),
        ([float("inf"), 1.0, 1.0, 1.0, 1.0], "p_percent"),
    ],
)
def test_sums_and_means_of_a_few_large_amounts_are_suppressed(con, amounts, rule):
    con = made(con, [("a", "f", x) for x in amounts])
    expected = f"sum(x): {rule}; avg(x): {rule}" if rule else None
    ((_, _, count, rules),) = alone(con, "select sum(x), avg(x), count(*) from t")
    assert (count, rules) == (5, expected)


def test_p_percent_holds_where_the_dominance_rule_is_met(con):
    con = made(
        con, [("a", "f", x) for x in (100.0, 60.0, 9.0, 0.5, 0.0)], policy="threshold := 3, dominance := [1, 0.9]"
    )
    assert alone(con, "select sum(x) from t") == [(None, "p_percent")]
    con = made(
        con, [("a", "f", x) for x in (100.0, 60.0, 9.5, 0.5, 0.0)], policy="threshold := 3, dominance := [1, 0.9]"
    )
    assert alone(con, "select sum(x) from t") == [(170.0, None)]


def test_smallest_and_largest_values_are_answered_where_enough_individuals_share_them(con):
    con = made(con, [("a", "f", x) for x in (1.0, 1.0, 1.0, 2.0, 5.0, 5.0)])
    assert alone(con, "select min(x), max(x) from t") == [(1.0, None, "max(x): primary: threshold")]


def test_quantiles_have_enough_individuals_on_both_sides(con):
    con = made(con, [("a", "f", float(x)) for x in range(11)])
    found = alone(con, "select median(x), quantile_cont(x, 0.3), quantile_cont(x, 0.29), quantile_disc(x, 0.99) from t")
    assert found[0][:4] == (5.0, 3.0, None, None)


def test_individuals_without_parameters_are_at_least_the_threshold(con):
    con = made(con, [("a", "f", float(x)) for x in range(4)])
    found = alone(con, "select stddev(x), corr(x, x), regr_slope(x, x), var_pop(x) from t")
    assert found[0][0] is not None and found[0][1:3] == (None, None) and found[0][3] == 1.25


def test_rows_of_an_individual_are_summed_first_and_counted_once(con):
    rows = [(1, "a", "f", 50.0)] * 4 + [(2, "a", "f", 10.0), (3, "a", "f", 10.0), (4, "a", "f", 10.0)]
    con = made(con, rows, person=True)
    assert alone(con, "select count(distinct pid), count(*), sum(x) from t") == [(4, 7, None, "sum(x): dominance")]
    # four of the seven rows are of one individual: those of the smaller half may be of two
    assert alone(con, "select median(x) from t")[0][0] is None
    for pid in (1, None):  # records without an individual are of one
        con = made(con, [(pid, "a", "f", 1.0)] * 9, person=True)
        assert alone(con, "select count(*) from t") == [(None, "primary: threshold")]


def test_the_answer_has_the_querys_columns_types_and_order(con):
    con = made(con, [("a", "f", 1.0)] * 3 + [("b", "f", 2.0)] * 5 + [("c", "f", 2.0)] * 4)
    con.execute("alter table t add column day date default date '2024-02-29'")
    con.execute("comment on column t.day is 'anon: quasi'")
    query = "select grp as g, day, count(*) n, 2 * avg(x) from t group by all order by n desc limit 2"
    assert con.execute(f"describe from safe_output('{query}')").fetchall() == [
        *con.execute(f"describe {query}").fetchall(), ("suppressed", "VARCHAR", "YES", None, None, None)
    ]  # fmt: skip
    assert [row[:3:2] for row in alone(con, query)] == [("b", 5), ("c", 4)]


@pytest.mark.parametrize("person", [False, True])
def test_decisions_are_those_of_a_loop_over_rows(con, person):
    """Counts, sums and means of random tables, each decision computed from the rows by hand."""
    rng = np.random.default_rng(5)
    for _ in range(6):
        rows = [
            ("abc"[rng.integers(3)], "fm"[rng.integers(2)], float(np.round(rng.lognormal(0, 2), 2))) for _ in range(40)
        ]
        rows = [(int(rng.integers(25)), *row) for row in rows] if person else rows
        con = made(con, rows, person=person)
        query = "select grp, sex, count(*) n, sum(x) s from t where x < 8 group by all"
        decided = con.execute("select cell, statistic, value from check_output(?) where coalesce(rule, '') "
                              "in ('', 'differencing')", [query]).fetchall()  # fmt: skip
        values = {(cell, statistic): float(value) for cell, statistic, value in decided}
        for cell in itertools.product("abc", "fm"):
            count, total = by_hand(rows, cell, person)
            at = f"grp={cell[0]}, sex={cell[1]}"
            assert values.get((at, "n")) == count
            assert values.get((at, "s")) == (pytest.approx(total) if total is not None else None)


def by_hand(rows, cell, person):
    """Count and sum of a cell; None where they are suppressed."""
    rows = [row if person else (number, *row) for number, row in enumerate(rows)]
    rows = [row for row in rows if row[3] < 8]
    inside = [row for row in rows if row[1:3] == cell]
    outside = {row[0] for row in rows if row[1:3] != cell}
    amounts = {}
    for pid, *_, x in inside:
        amounts[pid] = amounts.get(pid, 0) + x
    if len(amounts) < 3 or 0 < len(outside) < 3:
        return None, None
    sizes = sorted(amounts.values(), reverse=True)
    total = sum(sizes)
    safe = sum(sizes[:2]) <= 0.9 * total and total - sum(sizes[:2]) >= 0.1 * sizes[0]
    return len(inside), total if safe else None


@pytest.mark.parametrize("call", [
    "count(*)", "count(x)", "sum(x)", "avg(x)", "mean(x)", "median(x)", "quantile(x, 0.3)", "quantile_cont(x, 0.3)",
    "quantile_disc(x, 0.3)", "stddev(x)", "stddev_pop(x)", "variance(x)", "var_samp(x)", "var_pop(x)", "corr(x, y)",
    "covar_samp(x, y)", "covar_pop(x, y)", "regr_slope(x, y)", "regr_intercept(x, y)", "regr_r2(x, y)",
    "sum(x) filter (y < 30)", "count(*) filter (y < 30)",
])  # fmt: skip
def test_what_is_answered_is_what_the_query_computes(con, call):
    rows = [("ab"[k % 2], "f", None if k % 3 == 0 else float(k * k % 97), k) for k in range(200)]
    con = made(con, rows, "grp varchar, sex varchar, x double, y bigint")
    query = f"select grp, {call} as found from t group by grouping sets ((grp), ()) order by 1"
    wanted = con.execute(query)
    names, wanted = [column[:2] for column in wanted.description], wanted.fetchall()
    found = con.execute("from safe_output(?)", [query])
    assert [column[:2] for column in found.description[:2]] == names
    assert [(key, pytest.approx(value)) for key, value, _ in found.fetchall()] == wanted
