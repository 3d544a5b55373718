"""Mondrian, Incognito and Anatomy on random tables: what they promise, checked by plain SQL on the release."""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import duckdb_anon
from tests.reference.mondrian import effective_entropy, effective_frequency, equal_emd, recursive

LEAVES = {"b2": "A", "a1": "A", "c1": "C", "a2": "B", "b1": "B"}  # not in the order of their text
ROW = st.tuples(
    st.sampled_from([1, 2, 2, 5, 9, None]),
    st.sampled_from([date(2020, 1, 1), date(2020, 2, 29), date(2021, 5, 5), None]),
    st.sampled_from([Decimal("1.25"), Decimal("-3.50"), Decimal("7.00")]),
    st.sampled_from(["red", "green", "blue", None]),
    st.sampled_from([*LEAVES, None]),
    st.sampled_from(["flu", "hiv", "gout", "acne", None]),
)
TABLE = st.lists(ROW, min_size=6, max_size=28)
QI = "['i', 'd', 'm', 'e', 'h']"
ROLES = f"qi := {QI}, sensitive := 's', hierarchies := {{'h': 'tree'}}"
MONDRIAN = ("mode := 'strict'", "mode := 'relaxed'", "cut := 'loss'", "width := 'distinct'", "width := 'spread'")
Check = Any
GUARANTEES: list[tuple[str, Check]] = [
    ("k := 3", lambda g, t: len(g) >= 3),
    ("l := 2", lambda g, t: effective_frequency(g) >= 2),
    ("l := 2, diversity := 'distinct'", lambda g, t: len(set(g)) >= 2),
    ("l := 1.8, diversity := 'entropy'", lambda g, t: math.log(effective_entropy(g)) >= math.log(1.8) - 1e-9),
    ("l := 2, c := 2, diversity := 'recursive'", lambda g, t: recursive(g, 2, 2)),
    ("t := 0.4, distance := 'equal'", lambda g, t: equal_emd(g, t) <= 0.4 + 1e-9),
    ("k := 3, l := 2, t := 0.5", lambda g, t: len(g) >= 3 and effective_frequency(g) >= 2 and equal_emd(g, t) <= 0.5),
]


@pytest.fixture(scope="module")
def base():
    con = duckdb_anon.connect()
    con.execute("create type colour as enum ('red', 'green', 'blue')")
    con.execute("create table tree(leaf varchar, above varchar, root varchar)")
    con.executemany("insert into tree values (?, ?, '*')", list(LEAVES.items()))
    yield con
    con.close()


def _fill(con: duckdb.DuckDBPyConnection, rows: Sequence[tuple[Any, ...]], name: str = "t") -> None:
    con.execute(f"create or replace table {name}(i integer, d date, m decimal(6, 2), e colour, h varchar, s varchar)")
    values = ", ".join(["(?, ?, ?, ?, ?, ?)"] * len(rows))
    con.execute(f"insert into {name} values {values}", [v for row in rows for v in row])


def _meets(rows: Sequence[tuple[Any, ...]], check: Check) -> bool:
    table = [row[-1] for row in rows]
    return bool(check(table, table))


def _classes(con: duckdb.DuckDBPyConnection, release: str) -> list[list[Hashable]]:
    found: defaultdict[str, list[Hashable]] = defaultdict(list)
    for *boxes, s in con.execute(f"select i, d, m, e, h, s from {release}").fetchall():
        found[repr(boxes)].append(s)
    return list(found.values())


UNCOVERED = """
    with original as (select *, row_number() over () - 1 as row_id from t)
    select count(*) from r join original as o using (row_id)
    where r.s is distinct from o.s
        or not ({interval('i')} and {interval('d')} and {interval('m')})
        or not (list_contains(r.e, o.e) or (o.e is null and len(r.e) > list_count(r.e)))
        or not case when o.h is null then r.h in ('(null)', '*')
            else list_contains((select [leaf, above, root] from tree where leaf = o.h), r.h) end
"""


def _uncovered(con: duckdb.DuckDBPyConnection) -> int:
    """Released rows whose original lies outside the box, or whose sensitive value changed."""

    def interval(c: str) -> str:
        return (
            f"case when r.{c} is null then o.{c} is null when r.{c}.lower is null then r.{c}.upper is null "
            f"else coalesce(o.{c} between r.{c}.lower and r.{c}.upper, false) end"
        )

    sql = UNCOVERED
    for column in "idm":
        sql = sql.replace(f"{{interval('{column}')}}", interval(column))
    return int(con.execute(sql).fetchone()[0])


@settings(max_examples=20)
@given(rows=TABLE, guarantee=st.sampled_from(GUARANTEES), options=st.sampled_from(MONDRIAN))
def test_mondrian_keeps_its_promises(base, guarantee, options, rows):
    asked, check = guarantee
    _fill(base, rows)
    call = f"mondrian('t', {asked}, {options}, {ROLES}, row_id := true)"
    if not _meets(rows, check):
        with pytest.raises(duckdb.Error, match="the table as one group fails the requirement"):
            base.execute(f"from {call}").fetchall()
        return
    base.execute(f"create or replace table r as from {call}")
    assert base.execute("select count(*), count(distinct row_id) from r").fetchone() == (len(rows), len(rows))
    assert _uncovered(base) == 0
    table = [row[-1] for row in rows]
    assert all(check(group, table) for group in _classes(base, "r"))


@settings(max_examples=20)
@given(rows=TABLE, guarantee=st.sampled_from(GUARANTEES), suppression=st.sampled_from([0.0, 0.3]))
def test_incognito_keeps_its_promises(base, guarantee, suppression, rows):
    asked, check = guarantee
    asked += "" if "diversity" in asked else ", diversity := 'frequency'"
    assume(_meets(rows, check))
    _fill(base, rows)
    base.execute(
        f"create or replace table r as from incognito('t', {asked}, max_suppression := {suppression}, branching := 2, "
        f"{ROLES}, row_id := true)"
    )
    released = int(base.execute("select count(distinct row_id) from r").fetchone()[0])
    if suppression:
        assert set(base.execute("select distinct suppressed from r").fetchall()) <= {(len(rows) - released,)}
        assert len(rows) - released <= suppression * len(rows)
    else:
        assert released == len(rows)
    assert _uncovered(base) == 0
    table = [row[-1] for row in rows]
    assert all(check(group, table) for group in _classes(base, "r"))


@settings(max_examples=15)
@given(rows=TABLE, least=st.integers(1, 4), seed=st.integers(0, 5))
def test_anatomy_keeps_its_promises(base, rows, least, seed):
    rows = [(*row[:-1], row[-1] or "none") for row in rows]
    _fill(base, rows)
    call = f"anatomy('t', l := {least}, {ROLES}, seed := {seed}, row_id := true)"
    largest = len(rows) // max(Counter(row[-1] for row in rows).values())
    if least > largest:
        with pytest.raises(duckdb.Error, match=f"largest possible l is {largest}"):
            base.execute(f"from {call}").fetchall()
        return
    base.execute(f"create or replace table r as from {call}")
    exact = base.execute("select i, d, m, e, h from r order by row_id").fetchall()
    assert exact == [row[:5] for row in rows]
    buckets: defaultdict[int, list[str]] = defaultdict(list)
    told: dict[int, dict[str, int]] = {}
    for bucket, row_id, counts in base.execute("select bucket, row_id, s from r").fetchall():
        buckets[bucket].append(rows[row_id][-1])
        told[bucket] = counts
    assert len(buckets) == len(rows) // least
    for bucket, values in buckets.items():
        assert len(values) >= least
        assert told[bucket] == Counter(values)
        assert set(told[bucket].values()) == {1}


@pytest.mark.parametrize("call", ["mondrian({}, k := 2, {})", "incognito({}, k := 2, {})"])
@settings(max_examples=6)
@given(rows=TABLE, order=st.randoms(use_true_random=False))
def test_the_release_does_not_depend_on_the_order_of_the_rows(base, call, rows, order):
    mixed = list(rows)
    order.shuffle(mixed)
    _fill(base, rows)
    _fill(base, mixed, "u")
    first, second = (
        Counter(map(repr, base.execute(f"from {call.format(name, ROLES)}").fetchall())) for name in ("'t'", "'u'")
    )
    assert first == second
