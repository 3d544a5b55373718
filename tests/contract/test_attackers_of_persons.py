"""linkage_risk and attribute_risk where persons have several records, against loops over persons, records and rows."""

import math
from collections import defaultdict
from typing import Any

import duckdb
import numpy as np
import pytest

import duckdb_anon
from tests.reference import linkage

TREE = {"x1": "X", "x2": "X", "x3": "X", "y1": "Y", "y2": "Y", "z1": "Z", "z2": "Z"}
ROLES = "qi := ['a', 'g'], sensitive := 'd', person := 'p', hierarchies := {'d': 'tree'}"
A, G = list(range(6)), ["u", "v", "w"]
Person = tuple[list[tuple[int, str]], set[str]]


def leaves(node: str) -> list[str]:
    return [leaf for leaf, above in TREE.items() if node in (leaf, above, "*")]


@pytest.fixture(scope="module")
def con():
    connection = duckdb_anon.connect()
    rows = ", ".join(f"('{leaf}', '{node}', '*')" for leaf, node in TREE.items())
    connection.execute(f"create table tree as select * from (values {rows}) t(leaf, node, root)")
    rng, visits = np.random.default_rng(3), []
    for p in range(30):
        for _ in range(int(rng.integers(1, 4))):
            a, g, d = (int(rng.choice(A)), str(rng.choice(G)), str(rng.choice(list(TREE))))
            # some persons change between records, others do not
            visits.append((p, a if p % 2 or not visits or visits[-1][0] != p else visits[-1][1], g, d))
    visits = [visits[i] for i in rng.permutation(len(visits))]
    connection.execute("create table visits(p integer, a integer, g varchar, d varchar)")
    connection.executemany("insert into visits values (?, ?, ?, ?)", visits)
    made = f"one_to_m_generalize('visits', 2, 1.5, {ROLES}, changing := 'set', row_id := true, seed := 1)"
    connection.execute(f"create table lists as from {made}")
    boxes = "{lower: a - a % 2, upper: a - a % 2 + 1} as a, case g when 'u' then ['u'] else ['v', 'w'] end as g, d"
    connection.execute(f"create table boxes as select {boxes}, rowid as row_id from visits where rowid % 5 <> 0")
    yield connection
    connection.close()


def persons(con: duckdb.DuckDBPyConnection) -> list[Person]:
    """Records and values of each person, by number."""
    found: dict[int, Person] = {}
    for p, a, g, d in con.execute("select p, a, g, d from visits").fetchall():
        records, values = found.setdefault(p, ([], set()))
        values.add(d)
        if (a, g) not in records:
            records.append((a, g))
    return [found[p] for p in sorted(found)]


def released(con: duckdb.DuckDBPyConnection, table: str) -> tuple[list[Any], list[dict[object, float]], list[set[int]]]:
    """Printed rows, the values each carries, and the rows of each person."""
    owner = [p for (p,) in con.execute("select p from visits").fetchall()]
    rows = con.execute(f"select a, g, d, row_id from {table}").fetchall()
    carried: list[dict[object, float]] = []
    own: dict[int, set[int]] = defaultdict(set)
    for r, (_, _, d, row) in enumerate(rows):
        held: dict[object, float] = defaultdict(float)
        for node in d if isinstance(d, list) else [d]:
            for leaf in leaves(node):
                held[leaf] += 1 / len(leaves(node))
        carried.append(held)
        own[owner[row]].add(r)
    return rows, carried, [own[p] for p in sorted(set(owner))]


def scores_of(attacker: str) -> tuple[linkage.Score, bool]:
    if attacker == "likelihood":
        return linkage.boxes([A, G]), True
    return (linkage.exact if attacker == "exact" else linkage.nearest([(0, 5), None])), False


def table_of(rows: list[Any], records: list[tuple[int, str]], score: linkage.Score, attacker: str) -> list[list[float]]:
    found = [linkage.scores(record, rows, score, (0, 1)) for record in records]
    return [[max(s, -1.0) for s in each] for each in found] if attacker == "exact" else found


def inside(cell: Any, value: Any) -> float:
    """How much of a box is at a value."""
    if isinstance(cell, dict):
        return linkage.covers(cell, value) / (cell["upper"] - cell["lower"] + 1)
    return (value in cell) / len(cell)


@pytest.mark.parametrize("table", ["lists", "boxes"])
@pytest.mark.parametrize("attacker", ["exact", "nearest", "likelihood"])
def test_who_knows_all_records_agrees_with_the_definition(con, attacker, table):
    rows, carried, own = released(con, table)
    score, soft = scores_of(attacker)
    people = persons(con)
    identity = attribute = 0.0
    for k, (records, values) in enumerate(people):
        found = table_of(rows, records, score, attacker)
        identity += linkage.identity_of_person(found, own[k]) / len(people)
        attribute += linkage.attribute_of_person(found, carried, set(values), soft) / len(people)
    assert 0 < identity < 1
    told = con.execute(f"""select identity, attribute, targets from linkage_risk('visits', '{table}', {ROLES},
        attackers := ['{attacker}']) where attacker = '{attacker}'""").fetchall()
    assert told == [(pytest.approx(identity), pytest.approx(attribute), len(people))]
    same = con.execute(f"""select attribute from attribute_risk('visits', '{table}', {ROLES}, attackers := ['{attacker}'])
        where attacker = '{attacker}'""").fetchall()
    assert same == [(pytest.approx(attribute),)]


@pytest.mark.parametrize("table", ["lists", "boxes"])
def test_the_baseline_never_saw_any_row_of_the_person(con, table):
    rows, carried, own = released(con, table)
    columns = [lambda r, value, a=a: inside(rows[r][a], value) for a in (0, 1)]
    people = persons(con)
    right = 0.0
    for k, (records, values) in enumerate(people):
        mine = {r: lambda a, value, r=r: inside(rows[r][a], value) for r in own[k]}
        right += linkage.guess(records, columns, carried, mine, set(values), [1.0] * len(rows)) / len(people)
    told = con.execute(f"""select baseline from linkage_risk('visits', '{table}', {ROLES}, attackers := ['exact'])
        limit 1""").fetchall()
    assert told == [(pytest.approx(right),)]


def test_who_knows_every_value_is_the_attacker_of_fragments(con):
    rows, _, own = released(con, "lists")
    people = persons(con)
    found = [
        {r for r, row in enumerate(rows) if all(any(v in leaves(n) for n in row[2]) for v in values)}
        for _, values in people
    ]
    wanted = np.mean([len(f & o) / len(f) for f, o in zip(found, own, strict=True)])
    call = f"linkage_risk('visits', 'lists', {ROLES}, known := [], known_values := 4, attackers := ['exact'])"
    told = con.execute(f"select identity, attribute from {call} limit 1").fetchall()
    assert told == [(pytest.approx(wanted), None)]  # nothing is left to be named


def test_known_values_are_drawn_and_not_named_again(con):
    """The draw is random: the mean over seeds is that over all single values, within six deviations."""
    rows, carried, own = released(con, "lists")
    people, score = persons(con), linkage.boxes([A, G])
    identity, attribute = [], []
    for k, (records, values) in enumerate(people):
        each_identity, each_attribute = [], []
        for v in values:
            chance = [min(sum((v in leaves(n)) / len(leaves(n)) for n in row[2]), 1) for row in rows]
            found = [
                [s + (math.log(c) if c else -40.0) for s, c in zip(scores, chance, strict=True)]
                for scores in table_of(rows, records, score, "likelihood")
            ]
            each_identity.append(linkage.identity_of_person(found, own[k]))
            each_attribute.append(linkage.attribute_of_person(found, carried, values - {v}, True, {v}))
        identity.append((np.mean(each_identity), np.var(each_identity)))
        if len(values) > 1:
            attribute.append((np.mean(each_attribute), np.var(each_attribute)))
    seeds = 12
    told = np.mean(
        [
            con.execute(f"""select identity, attribute from linkage_risk('visits', 'lists', {ROLES}, known_values := 1,
                attackers := ['likelihood'], seed := {seed}) limit 1""").fetchall()[0]
            for seed in range(seeds)
        ],
        axis=0,
    )
    for found, each in zip(told, (identity, attribute), strict=True):
        mean, var = np.mean(each, axis=0)
        assert abs(found - mean) <= 6 * math.sqrt(var / len(each) / seeds) + 1e-9


def test_what_cannot_be_asked_of_persons_is_refused_by_name(con):
    nobody = ROLES.replace(", person := 'p'", "")
    with pytest.raises(duckdb.Error, match=r"a row per individual with a list of values of d.*say person := "):
        con.execute(f"from linkage_risk('(select a, g, d from visits)', 'lists', {nobody})").fetchall()
    with pytest.raises(duckdb.Error, match=r"known_values := 2 needs a release with a row per individual"):
        con.execute(f"from linkage_risk('visits', 'boxes', {ROLES}, known_values := 2)").fetchall()
    exploded = f"one_to_m_generalize('visits', 2, 1.5, {ROLES}, changing := 'set', explode := true)"
    con.execute(f"create or replace table exploded as select a, g, d from {exploded}")
    with pytest.raises(duckdb.Error, match=r"lists of nodes with a row a person \(made without explode"):
        con.execute(f"from attribute_risk('visits', 'exploded', {ROLES})").fetchall()
    lost = "(select nullif(p, 3) as p, a, g, d from visits)"
    with pytest.raises(duckdb.Error, match="'p' is NULL in"):
        con.execute(f"from linkage_risk('visits', 'boxes', {ROLES}, holdout := '{lost}')").fetchall()
