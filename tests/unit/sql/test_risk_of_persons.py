"""sql/risk_of_persons.sql in a plain DuckDB connection, against the obvious version."""

import math
import random
from collections import Counter, defaultdict

import duckdb
import pytest

from tests.reference import one_to_m as slow


def people(seed: int) -> list[tuple[str, int | None, list[str | None]]]:
    pick = random.Random(seed)
    return [
        (pick.choice("ab"), pick.choice([1, None]), sorted(pick.sample(["p", "q", "r", "s"], pick.randint(1, 3))))
        for _ in range(30)
    ]


def loaded(con: duckdb.DuckDBPyConnection, who: list[tuple[str, int | None, list[str | None]]]) -> None:
    con.execute("create table visits (pid integer, a varchar, b integer, s varchar)")
    rows = [(i, a, b, x) for i, (a, b, xs) in enumerate(who) for x in xs]
    con.executemany("insert into visits values (?, ?, ?, ?)", rows)
    con.execute("create table lists as select a, b, list(s order by random()) as s from visits group by pid, a, b")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("call", ["'lists', ['a', 'b'], 's'", "'visits', ['a', 'b'], ['s'], person := 'pid'"])
def test_kl_diversity_equals_the_obvious_version(plain, seed, call):
    who = people(seed)
    loaded(plain, who)
    prints = Counter(tuple(xs) for _, _, xs in who)
    classes = defaultdict(Counter)
    for a, b, xs in who:
        classes[a, b][tuple(xs)] += 1
    sizes = {key: sum(counts.values()) for key, counts in classes.items()}
    entropy = min(
        math.exp(-sum(c / sizes[key] * math.log(c / sizes[key]) for c in counts.values()))
        for key, counts in classes.items()
    )
    assert plain.execute(f"from kl_diversity({call})").fetchone() == pytest.approx((
        30, len(classes), len(prints), min(prints.values()),
        min(sizes[key] / max(counts.values()) for key, counts in classes.items()),
        min(len(counts) for counts in classes.values()), entropy,
        1 / min(sizes.values()), 1 / min(prints.values()),
    ))  # fmt: skip


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("m", [1, 2, 3])
def test_km_anonymity_equals_the_obvious_version(plain, seed, m):
    who = people(seed)
    loaded(plain, who)
    classes = defaultdict(list)
    for a, b, xs in who:
        classes[a, b].append(xs)
    rows = plain.execute(f"from km_anonymity('lists', ['a', 'b'], 's', {m})").fetchall()
    assert rows[0] == (0, len(classes), min(map(len, classes.values())))
    assert min(support for *_, support in rows[1:]) == min(slow.km_anonymity(xs, m) for xs in classes.values())
    assert sum(sets for _, sets, _ in rows[1:]) == sum(len(slow.supports(xs, m)) for xs in classes.values())


def test_a_person_with_differing_rows_is_known_by_all_of_them(plain):
    rows = "(1, 20, 'p'), (1, 21, 'q'), (2, 20, 'p'), (3, 20, 'p')"
    plain.execute(f"create table t as from (values {rows}) v(pid, age, s)")
    found = plain.execute("select classes, qi_risk from kl_diversity('t', ['age'], 's', person := 'pid')").fetchone()
    assert found == (2, 1.0)


def test_an_empty_table_meets_everything(plain):
    plain.execute("create table t (a integer, s varchar[])")
    row = plain.execute("from kl_diversity('t', ['a'], 's')").fetchone()
    assert row == (0, 0, 0, math.inf, math.inf, math.inf, math.inf, 0, 0)
    assert plain.execute("from km_anonymity('t', ['a'], 's')").fetchall() == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("kl_diversity('t', ['a'])", "kl_diversity: no sensitive column is named"),
        ("km_anonymity('t', sensitive := 's')", "km_anonymity: no quasi-identifier is named"),
        ("kl_diversity('t', ['a'], 'ss')", "there is no column 'ss'. Did you mean 's'"),
    ],
)
def test_missing_columns_are_errors(plain, call, message):
    plain.execute("create table t (a integer, s varchar[])")
    with pytest.raises(duckdb.Error, match=message):
        plain.execute(f"from {call}")
