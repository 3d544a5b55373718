"""sql/risk_of_persons.sql in a plain DuckDB connection, against the obvious version."""

import math
import random

import duckdb
import pytest

from tests.reference.answers import answered
from tests.reference.diversity_of_sets import kl_diversity, km_anonymity


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("call", ["'lists', ['a', 'b'], 's'", "'visits', ['a', 'b'], ['s'], person := 'pid'"])
def test_diversity_of_persons_equals_the_obvious_version(plain, seed, call):
    pick = random.Random(seed)
    who = [
        (pick.choice("ab"), pick.choice([1, None]), sorted(pick.sample(["p", "q", "r", "s"], pick.randint(1, 3))))
        for _ in range(30)
    ]
    plain.execute("create table visits (pid integer, a varchar, b integer, s varchar)")
    rows = [(i, a, b, x) for i, (a, b, xs) in enumerate(who) for x in xs]
    plain.executemany("insert into visits values (?, ?, ?, ?)", rows)
    plain.execute("create table lists as select a, b, list(s order by random()) as s from visits group by pid, a, b")
    persons = [(str((a, b)), tuple(xs)) for a, b, xs in who]
    assert answered(plain, f"from kl_diversity({call})") == pytest.approx(kl_diversity(persons))
    for m in (1, 2, 3):
        assert plain.execute(f"from km_anonymity({call}, m := {m})").fetchall() == km_anonymity(persons, m)


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
