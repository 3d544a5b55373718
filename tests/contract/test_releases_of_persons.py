"""Releases with a row a person and a list of nodes for her values: every measure right, or refused by name."""

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest

import duckdb_anon
from duckdb_anon.model.function_specs import PureSql, Report
from duckdb_anon.registry import ENTRIES
from tests.reference.answers import answered
from tests.reference.diversity_of_sets import kl_diversity, km_anonymity
from tests.reference.entry_calls import Tables, reads_release, refusal

TREE = {"x1": "X", "x2": "X", "y1": "Y", "y2": "Y"}
VISITS = [
    ("p", 1, "x1"), ("p", 1, "y1"), ("q", 2, "x2"), ("q", 2, "y1"), ("r", 3, "y1"), ("r", 3, "y2"), ("t", 4, "y2"),
]  # fmt: skip
PERSONS = [("p", (1, 2), ["X", "y1"]), ("q", (1, 2), ["X", "y1"]), ("r", (3, 4), ["Y"]), ("t", (3, 4), ["Y"])]


def leaves(node: str) -> list[str]:
    return [leaf for leaf, above in TREE.items() if node in (leaf, above, "*")]


def expected_visits() -> dict[tuple[int, str], float]:
    """Each node stands for one of her rows, any leaf below it as likely, whatever her age in the box is."""
    found: dict[tuple[int, str], float] = defaultdict(float)
    for _, (low, high), nodes in PERSONS:
        for node, a in itertools.product(nodes, range(low, high + 1)):
            for leaf in leaves(node):
                found[a, leaf] += 1 / (high - low + 1) / len(leaves(node))
    return found


@pytest.fixture(scope="module")
def visits():
    connection = duckdb_anon.connect()
    connection.execute(
        "create table tree as select * from (values "
        + ", ".join(f"('{v}', '{p}', '*')" for v, p in TREE.items())
        + ") t(leaf, node, root)"
    )
    connection.execute("create table visits(p varchar, a integer, d varchar)")
    connection.executemany("insert into visits values (?, ?, ?)", VISITS)
    for column, role in {"p": "person", "a": "quasi", "d": "sensitive hierarchy=tree"}.items():
        connection.execute(f"comment on column visits.{column} is 'anon: {role}'")
    first = {person: i for i, (person, _, _) in reversed(list(enumerate(VISITS)))}
    rows = " union all ".join(
        f"select {{lower: {a[0]}, upper: {a[1]}}} as a, {nodes} as d, {first[p]}::bigint as row_id"
        for p, a, nodes in PERSONS
    )
    connection.execute(f"create table linked as {rows}")
    connection.execute("create table released as select a, d from linked")
    yield connection
    connection.close()


ROLES = "qi := ['a'], sensitive := 'd', hierarchies := {'d': 'tree'}"


def test_classes_of_persons_are_those_of_their_boxes(visits):
    assert visits.execute("from k_anonymity('released', qi := ['a'])").fetchall() == [(2,)]
    assert visits.execute("select classes from class_statistics('released', qi := ['a'])").fetchall() == [(2,)]
    sizes = visits.execute("select class_size from equivalence_classes('released', qi := ['a'])").fetchall()
    assert sizes == [(2,), (2,)]
    risk = answered(visits, "from reidentification_risk('released', qi := ['a'])")
    assert 0.5 in [value for value in risk.values() if isinstance(value, float)]
    persons = [(str(a), tuple(nodes)) for _, a, nodes in PERSONS]
    assert answered(visits, "from kl_diversity('released', ['a'], 'd')") == pytest.approx(kl_diversity(persons))
    assert visits.execute("from km_anonymity('released', ['a'], 'd', m := 2)").fetchall() == km_anonymity(persons, 2)


def test_losses_of_persons_are_those_of_their_boxes_and_nodes(visits):
    told = dict(visits.execute(f"select attribute, ncp from information_loss('visits', 'linked', {ROLES})").fetchall())
    assert told["a"] == pytest.approx(1 / 3)
    told = dict(
        visits.execute(f"""select attribute, distortion_ratio
            from distortion_ratio('visits', 'linked', {ROLES})""").fetchall()
    )
    assert told["a"] == 1.0
    ncp = {
        who: [
            len(leaves(n)) / 4 if len(leaves(n)) > 1 else 0.0
            for d in (d for p, _, d in VISITS if p == who)
            for n in nodes
            if d in leaves(n)
        ]
        for who, _, nodes in PERSONS
    }
    per_item = [loss for found in ncp.values() for loss in found]
    assert len(per_item) == len(VISITS)
    assert answered(visits, f"from sa_ncp('visits', 'linked', {ROLES})")["sa_ncp"] == pytest.approx(np.mean(per_item))


def test_queries_on_persons_count_their_nodes(visits):
    table = expected_visits()
    for condition, kept in (
        ("a = 1", lambda a, d: a == 1),
        ("a <= 3 and d in ('x1', 'y1')", lambda a, d: a <= 3 and d in ("x1", "y1")),
        ("d = 'y2'", lambda a, d: d == "y2"),
    ):
        wanted = sum(w for (a, d), w in table.items() if kept(a, d))
        query = f"select count(*) as n from visits where {condition}"
        found = visits.execute("select estimate from relative_error($q, 'visits', 'released')", {"q": query}).fetchall()
        assert found == [(pytest.approx(wanted),)], condition
        sql = visits.execute("select rewrite_query($q, 'visits', 'released')", {"q": query}).fetchall()[0][0]
        counted = visits.execute(sql).fetchall()[0][0]
        assert counted == math.floor(wanted + 0.5), condition  # a count is a whole number, as in the query
    call = "workload_error('visits', 'released', 20, dims := 1, seed := 4, selectivity := 0.5, predicate_on_sensitive := true)"
    visits.execute("create or replace temp table worlds(a integer, d varchar, w double)")
    visits.executemany("insert into worlds values (?, ?, ?)", [(*key, w) for key, w in table.items()])
    found = visits.execute(f"select query, estimate from {call}").fetchall()
    assert found
    for query, value in found:
        where = query.split(" WHERE ")[1]
        wanted = visits.execute(f"select coalesce(sum(w), 0) from worlds where {where}").fetchall()[0][0]
        assert value == pytest.approx(wanted, abs=1e-9), query


def test_fragments_are_found_where_nodes_cover_them(visits):
    found = [1 / sum(any(value in leaves(node) for node in nodes) for _, _, nodes in PERSONS) for _, _, value in VISITS]
    told = answered(visits, f"from fragment_risk('visits', 'released', m := 1, {ROLES}, person := 'p')")
    assert told["max_risk"] == pytest.approx(max(found))
    assert told["mean_risk"] == pytest.approx(np.mean(found))


def test_compare_and_recommend_show_what_the_strongest_attacker_finds(visits):
    told = answered(visits, "from compare('visits', ['linked'], n := 20, seed := 1)")
    wanted = answered(visits, "from linkage_risk('visits', 'linked', seed := 1) where attacker = 'strongest'")
    assert told["shape"] == "persons" and told["identity"] == 0.5
    for figure in ("identity", "attribute", "advantage"):
        assert told[figure] == pytest.approx(wanted[figure])
    assert told["mean_error"] is not None
    found = visits.execute("select identity, meets_max_risk from recommend('visits', max_risk := 0.6, "
                           "methods := ['rmr'], rows := 100, seed := 1)").fetchall()  # fmt: skip
    assert found[0][0] == 0.5


TABLES = Tables(
    "single", "released", number="a", text="d", sensitive="d", qi=("a",),
    roles={"qi": "['a']", "sensitive": "'d'", "hierarchies": "{'d': 'tree'}"},
)  # fmt: skip
REFUSING = [
    entry
    for entry in ENTRIES
    if isinstance(entry, (Report, PureSql)) and reads_release(entry) and not {"persons", "*"} & set(entry.answers)
]


@pytest.mark.parametrize("entry", REFUSING, ids=lambda entry: entry.name)
def test_measures_of_rows_refuse_releases_of_persons_by_name(visits, entry):
    visits.execute("create or replace table single as select a, min(d) as d from visits group by p, a")
    assert refusal(visits, TABLES.statement(entry))[:2] == (entry.name, "format-not-read")
