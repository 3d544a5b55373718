"""disclosure against its definition."""

import duckdb
import pytest

from tests.reference.linkage import covers

pytestmark = pytest.mark.campaign

LABELS = "qi := ['a', 'b', 'c'], sensitive := 's'"


def table(con: duckdb.DuckDBPyConnection, name: str, rows: int, salt: int) -> list[tuple[object, ...]]:
    con.execute(
        f"create table {name} as select case when hash(range + {salt}) % 11 = 0 then null else hash(range, {salt}) % 4 end "
        f"as a, 'v' || hash(range, {salt} + 1) % 3 as b, hash(range, {salt} + 2) % 5 as c, hash(range, {salt} + 3) % 4 as s "
        f"from range({rows})"
    )
    return con.execute(f"from {name}").fetchall()


def measured(con: duckdb.DuckDBPyConnection, p: float) -> tuple[float, float]:
    found = con.execute(f"select identity, attribute from disclosure('original', 'release', {p}, {LABELS})").fetchone()
    return found[0], found[1]


def share(cell: object, value: object) -> float:
    """To which share a published sensitive value, or the counts of a bucket, is a value."""
    return cell.get(value, 0) / sum(cell.values()) if isinstance(cell, dict) else float(cell == value)


@pytest.mark.parametrize(
    "call", ["mondrian('original', k := 3, ", "muco('original', 0.5, ", "anatomy('original', l := 2, "]
)
def test_of_several_sensitive_columns_the_most_exposed_counts(con, call):
    original = table(con, "original", 40, 4)
    both = "qi := ['a', 'b'], sensitive := ['c', 's']"
    labels = "qi := ['a', 'b'], sensitive := 's', keep := ['c']" if "anatomy" in call else both
    con.execute(f"create table release as from {call}{labels}, row_id := true)")
    rows = con.execute("select a, b, c, s, row_id from release").fetchall()
    identity = attribute = 0.0
    for t, target in enumerate(original):
        for known, weight in (((0,), 0.24), ((1,), 0.24), ((0, 1), 0.36)):
            found = [row for row in rows if all(covers(row[a], target[a]) for a in known)]
            if found:
                weight /= 0.84 * 40 * len(found)
                identity += weight * any(row[4] == t for row in found)
                attribute += weight * max(sum(share(row[k], target[k]) for row in found) for k in (2, 3))
    found = con.execute(f"select identity, attribute from disclosure('original', 'release', 0.6, {both})").fetchone()
    assert found == pytest.approx((identity, attribute), abs=1e-12)
    alone = con.execute(
        "select attribute from disclosure('original', 'release', 0.6, qi := ['a', 'b'], sensitive := 's')"
    )
    assert found[1] > alone.fetchone()[0]


def test_a_sample_of_targets_is_close_to_all(con):
    table(con, "original", 3000, 3)
    con.execute("create table release as select *, rowid as row_id from original")
    some = con.execute(
        f"select identity, targets from disclosure('original', 'release', targets := 2000, seed := 1, {LABELS})"
    ).fetchone()
    assert some[1] == 2000
    assert some[0] == pytest.approx(measured(con, 0.7)[0], rel=0.1)


def test_more_columns_than_have_few_subsets_are_refused(con):
    names = [f"c{k}" for k in range(13)]
    con.execute(
        f"create table original as select {', '.join(f'range as {name}' for name in names)}, 1 as s from range(3)"
    )
    con.execute("create table release as select *, rowid as row_id from original")
    with pytest.raises(duckdb.Error, match=r"13 quasi-identifiers have too many subsets. Name at most 12"):
        con.execute(f"from disclosure('original', 'release', qi := {names}, sensitive := 's')")
