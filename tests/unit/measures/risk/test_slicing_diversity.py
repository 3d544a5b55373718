"""slicing_diversity against the definition, on plain and generalized releases."""

from collections import defaultdict
from typing import Any

import duckdb
import pytest

from tests.reference.answers import dicts
from tests.reference.linkage import covers
from tests.reference.merging import HOSPITAL_A, flattened

QI = ["age", "sex", "place"]
ROLES = "qi := ['age', 'sex', 'place'], sensitive := 'disease'"


@pytest.fixture
def people(con):
    """70 people, some ages NULL."""
    con.execute(
        """create table people as select case when i % 13 = 0 then null else (hash(i) % 6)::int end as age,
        ['f', 'm'][(hash(i, 1) % 2 + 1)::int] as sex, 'place' || hash(i, 2) % 3 as place,
        'd' || hash(i, 3) % 5 as disease from range(70) r(i)"""
    )
    return con


def _slow(con: duckdb.DuckDBPyConnection) -> list[float]:
    """Largest p(t, s) of each person, by the definition."""
    flat, slices = flattened(dicts(con, "from r"), [*QI, "disease"])
    buckets: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in flat:
        buckets[row["bucket"]].append(row)
    result = []
    for person in dicts(con, "from people"):

        def shows(row: dict[str, Any], names: list[str], who: dict[str, Any] = person) -> bool:
            return all(covers(row[n], who[n]) for n in names if n != "disease")

        linked: dict[str, float] = defaultdict(float)
        total = 0.0
        for members in buckets.values():
            f = 1.0
            for names in slices.values():
                f *= sum(shows(m, names) for m in members) / len(members)
            same = [m for m in members if shows(m, next(n for n in slices.values() if "disease" in n))]
            total += f
            for m in same if f else ():
                linked[m["disease"]] += f / len(same)
        result.append(max(linked.values()) / total if total else 0.0)
    return result


@pytest.mark.parametrize(
    "call",
    [
        "merging('people', 2, {roles}, columns := [['age', 'sex'], ['place']], fake := 5, seed := 1)",
        "merging('people', 1.5, {roles}, columns := [['age'], ['sex', 'place']], seed := 2)",
        "slicing('people', 1, {roles}, columns := [['age'], ['sex', 'place'], ['disease']], seed := 3)",
        "slicing('people', 1, {roles}, columns := [['age', 'sex'], ['place', 'disease']], seed := 4)",
    ],
)
def test_random_releases_agree_with_the_definition(people, call):
    people.execute(f"create table r as from {call.format(roles=ROLES)}")
    slow = _slow(people)
    found = people.execute(
        f"select highest, average, l, matched from slicing_diversity('people', 'r', {ROLES})"
    ).fetchone()
    assert found[0] == pytest.approx(max(slow))
    assert found[1] == pytest.approx(sum(slow) / 70)
    assert found[2] == pytest.approx(1 / max(slow))
    assert found[3] == 70


def test_table_6_is_two_diverse(con):
    con.execute("create table a (age int, sex varchar, zip int, disease varchar)")
    con.executemany("insert into a values (?, ?, ?, ?)", HOSPITAL_A)
    roles = "qi := ['zip', 'age', 'sex'], sensitive := 'disease'"
    con.execute(
        f"""create table r as from merging('a', 2, min_bucket := 4, cut := 'median', width := 'distinct', fake := 0,
        columns := [['age', 'sex'], ['zip']], {roles})"""
    )
    assert con.execute(f"select l, highest, average from slicing_diversity('a', 'r', {roles})").fetchone() == (
        2,
        0.5,
        0.375,
    )


def test_a_release_that_is_not_sliced_is_an_error(people):
    with pytest.raises(duckdb.Error, match="has plain rows, which slicing_diversity does not read"):
        people.execute(f"from slicing_diversity('people', 'people', {ROLES})").fetchall()
