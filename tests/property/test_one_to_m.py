"""Both constraints of (k,l)-diversity, and what else a release of persons must satisfy, on random tables."""

from collections import Counter, defaultdict
from itertools import pairwise

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import duckdb_anon
from duckdb_anon.kernels.set_valued.partition_top_down import publish_top_down
from tests.reference import one_to_m as slow
from tests.reference.diversity_of_sets import km_anonymity
from tests.reference.one_to_m_example import PATHS, persons_of

UNEVEN = (
    *PATHS, ("*", "D", "E", "d1"), ("*", "D", "E", "d2"), ("*", "D", "d3", "d3"),
    *(("*", "F", f"f{i}", f"f{i}") for i in range(8)), ("*", "g", "g", "g"),
)  # fmt: skip
LEAVES = [path[-1] for path in UNEVEN]
TREE: dict[str, str | None] = {"*": None} | {
    below: above for path in UNEVEN for above, below in pairwise(path) if above != below
}
fingerprints = st.lists(st.sets(st.sampled_from(LEAVES), min_size=1, max_size=6), min_size=1, max_size=60)


def published(records: list[set[str]], k: int) -> list[frozenset[str]]:
    persons = persons_of(records, UNEVEN)
    prints = publish_top_down(persons, k)
    labels, bounds = persons.forest.labels, prints.offsets
    return [frozenset(labels[v] for v in prints.nodes[bounds[f] : bounds[f + 1]]) for f in prints.fingerprint_of_person]


@given(fingerprints, st.integers(1, 8))
def test_fingerprints_are_shared_by_k_and_cover_each_item_once(records, k):
    if len(records) < k:
        return
    cuts = published(records, k)
    assert min(Counter(cuts).values()) >= k
    for record, cut in zip(records, cuts, strict=True):
        assert {slow.cover(TREE, cut, item) for item in record} == cut


@given(fingerprints, st.integers(2, 5))
def test_sa_ncp_is_that_of_the_published_nodes_and_never_above_the_root(records, k):
    if len(records) < k:
        return
    persons = persons_of(records, UNEVEN)
    prints = publish_top_down(persons, k)
    fast = float(persons.forest.ncp[prints.node_of_entry].mean())
    assert fast == pytest.approx(slow.sa_ncp(records, published(records, k), TREE))
    assert fast <= 1


visits = st.lists(
    st.tuples(
        st.integers(18, 30), st.sampled_from(["F", "M"]), st.sets(st.sampled_from(LEAVES), min_size=1, max_size=4)
    ),
    min_size=8,
    max_size=40,
)


def loaded(people: list[tuple[int, str, set[str]]]) -> duckdb.DuckDBPyConnection:
    con = duckdb_anon.connect()
    rows = [(f"p{i:03}", age, sex, item) for i, (age, sex, items) in enumerate(people) for item in sorted(items)]
    con.execute("create table visits (pid varchar, age integer, sex varchar, disease varchar)")
    con.executemany("insert into visits values (?, ?, ?, ?)", rows)
    con.execute("create table tree (leaf varchar, a varchar, b varchar, root varchar)")
    con.executemany("insert into tree values (?, ?, ?, ?)", [(p[-1], p[-2], p[1], p[0]) for p in UNEVEN])
    return con


CALL = """from one_to_m_generalize('visits', {k}, {l}, qi := ['age', 'sex'], sensitive := 'disease', person := 'pid',
    hierarchies := {{'disease': 'tree'}}, row_id := true, seed := 1{more})"""


@given(visits, st.integers(2, 4), st.sampled_from([1, 1.5, 2]), st.sampled_from(["loss", "median"]))
@settings(max_examples=7)
def test_the_release_is_k_l_diverse_and_loses_no_person(people, k, l, cut):  # noqa: E741
    con = loaded(people)
    try:
        rows = con.execute(CALL.format(k=k, l=l, more=f", cut := '{cut}'")).fetchall()
    except duckdb.InvalidInputException as error:
        assert "the largest l this table can meet" in str(error)
        return
    else:
        roles = "qi := ['age', 'sex'], sensitive := 'disease', person := 'pid', hierarchies := {'disease': 'tree'}"
        con.execute("create table r as " + CALL.format(k=k, l=l, more=f", cut := '{cut}'"))
        lost = con.execute(f"select sa_ncp from sa_ncp('visits', 'r', {roles})").fetchone()
    finally:
        source = con.execute("select row_number() over () - 1, pid from visits").fetchall()
        con.close()
    person_of_row = dict(source)
    assert sorted(int(person_of_row[row[-1]][1:]) for row in rows) == list(range(len(people)))
    assert min(Counter(frozenset(nodes) for *_, nodes, _ in rows).values()) >= k
    cut_of = {int(person_of_row[row][1:]): frozenset(nodes) for *_, nodes, row in rows}
    records = [items for _, _, items in people]
    assert lost == (pytest.approx(slow.sa_ncp(records, [cut_of[i] for i in range(len(people))], TREE)),)
    classes = defaultdict(Counter)
    for age, sex, nodes, row in rows:
        original = people[int(person_of_row[row][1:])]
        assert age["lower"] <= original[0] <= age["upper"] and original[1] in sex
        assert {slow.cover(TREE, nodes, item) for item in original[2]} == set(nodes)
        classes[age["lower"], age["upper"], tuple(sex)][frozenset(nodes)] += 1
    for counts in classes.values():
        assert max(counts.values()) * l <= sum(counts.values()) + 1e-9


RMR = """from rmr('visits', {k}, m := {m}, max_qid_ncp := {bound}, qi := ['age', 'sex'], sensitive := 'disease',
    person := 'pid', hierarchies := {{'disease': 'tree'}}, row_id := true, seed := 1)"""


@given(visits, st.integers(2, 4), st.integers(1, 2), st.sampled_from([0.8, 1]))
@settings(max_examples=6)
def test_rmr_is_k_km_anonymous_and_loses_no_person(people, k, m, bound):
    con = loaded(people)
    try:
        rows = con.execute(RMR.format(k=k, m=m, bound=bound)).fetchall()
    except duckdb.InvalidInputException as error:
        assert "take max_qid_ncp above that" in str(error)
        return
    finally:
        person_of_row = dict(con.execute("select row_number() over () - 1, pid from visits").fetchall())
        con.close()
    assert sorted(int(person_of_row[row[-1]][1:]) for row in rows) == list(range(len(people)))
    for _, _, nodes, row in rows:
        original = people[int(person_of_row[row][1:])]
        assert {slow.cover(TREE, nodes, item) for item in original[2]} == set(nodes)
    found = km_anonymity([(str((age, sex)), tuple(nodes)) for age, sex, nodes, _ in rows], m)
    assert min(support for *_, support in found) >= k
