"""Mondrian as a SQL function: shapes, guarantees, messages, and published figures."""

import duckdb
import numpy as np
import pytest

from duckdb_anon.kernels.partition.privacy_models import FrequencyDiversity, KAnonymity
from duckdb_anon.kernels.verify_release import classes_of, recheck
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.released_columns import Interval, Node, ValueSet
from tests.reference.merging import attribute

CENSUS = "['RELATE', 'SEX', 'AGE', 'MARST', 'RACE', 'EDUC', 'UHRSWORK']"


@pytest.fixture
def people(con):
    con.execute("""
        create table tree as select * from (values
            ('a1', 'A', '*'), ('a2', 'A', '*'), ('b1', 'B', '*'), ('b2', 'B', '*')) t(leaf, above, root);
        create table people as
        select 20 + i as age, ['f', 'm'][1 + i // 4 % 2] as sex, ['a1', 'a2', 'b1', 'b2'][1 + i // 8 % 4] as place,
            date '2020-01-01' + i::integer as visit, ['flu', 'hiv', 'gout', 'acne'][1 + i % 4] as disease, i as cost,
            'secret' as name
        from range(32) t(i);
        comment on column people.age is 'anon: quasi';
        comment on column people.sex is 'anon: quasi';
        comment on column people.place is 'anon: quasi hierarchy=tree';
        comment on column people.visit is 'anon: quasi';
        comment on column people.disease is 'anon: sensitive';
        comment on column people.cost is 'anon: insensitive';
    """)
    return con


def test_t_is_measured_over_the_hierarchy_of_the_sensitive_column(people):
    call = "mondrian('people', t := 0.2, qi := ['age'], sensitive := 'place', keep := [])"
    people.execute(f"create table r as from {call}")
    found = people.execute("from t_closeness('r', ['age'], 'place', hierarchy := 'tree')").fetchone()
    assert found[0] <= 0.2 + 1e-9
    assert found[1] == "hierarchy"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "no guarantee was requested"),
        ("k := 33", "the largest k this table can meet is 32"),
        ("l := 5", "the largest l this table can meet is 4"),
        ("l := 2, diversity := 'recursive'", "needs both c and l"),
        ("l := 4, c := 1, diversity := 'recursive'", "with this l the table needs a c above 1"),
        ("l := 9, c := 2, diversity := 'recursive'", "the largest l this table can meet is 4"),
        ("l := 5, diversity := 'distinct'", "the largest l this table can meet is 4"),
        ("l := 2, c := 3", "belongs to diversity := 'recursive'"),
        ("l := 1.5, c := 3, diversity := 'recursive'", "must be a whole number"),
        ("k := 2, distance := 'equal'", "give t as well"),
        ("t := 0.1, distance := 'hierarchy'", "needs a hierarchy of 'disease'"),
        ("k := 2, mode := 'relaxed', cut := 'loss'", "say cut := 'median'"),
        ("l := 5, sensitive := ['disease', 'cost'], keep := []", "'disease': l = 5 was requested; the largest"),
        ("l := 2, sensitive := []", "l and t need a sensitive column"),
    ],
)
def test_bad_calls_are_errors(people, arguments, message):
    separator = ", " if arguments else ""
    with pytest.raises(duckdb.Error, match=message):
        people.execute(f"from mondrian('people'{separator}{arguments})").fetchall()


def test_groups_published_alike_are_one_class():
    index = np.array([0, 1, 2, 2], dtype=np.int64)
    ends = np.array([1, 1, 3], dtype=np.int32)
    interval = Interval("a", ends, ends + 1, index)
    sets = ValueSet("b", np.array([0, 2, 4, 5]), np.array([0, 1, 1, 0, 2], dtype=np.int32), index)
    node = Node(("*", "x", "x"), np.array([1, 2, 1], dtype=np.int32), index)
    assert classes_of([interval, sets, node]).tolist() == [0, 0, 1, 1]
    assert classes_of([interval, sets, Node(("*", "x", "y"), node.node, index.copy())]).tolist() == [0, 1, 2, 2]


def test_a_release_that_breaks_its_promise_is_never_returned():
    disease = attribute("disease", ["x", "x", "y", "y"])
    box = ValueSet("sex", np.array([0, 1, 2]), np.array([0, 1], dtype=np.int32), np.array([0, 0, 0, 1]))
    rows = np.arange(4)
    with pytest.raises(RequirementError, match="1 finished classes fail"):
        recheck("mondrian", [box], None, rows, KAnonymity(2))
    with pytest.raises(RequirementError, match="2 finished classes fail"):
        recheck("mondrian", [box], disease.codes, rows, FrequencyDiversity(2))


@pytest.mark.parametrize(
    ("least", "groups", "iloss", "identity"), [(8, 2205, 0.2523, 0.0549), (18, 177, 0.4883, 0.0044)]
)
def test_census_with_spread_width_has_the_published_groups_loss_and_disclosure(census, least, groups, iloss, identity):
    # equal spreads go to the attribute named first; in this order they fall as in the published figures
    order = "['UHRSWORK', 'EDUC', 'RACE', 'MARST', 'AGE', 'SEX', 'RELATE']"
    census.execute(f"""create or replace table r as from mondrian('census', l := {least}, width := 'spread', qi := {order},
        row_id := true, edges := 'tight', sensitive_edges := 1)""")
    assert census.execute(f"select classes from class_statistics('r', {CENSUS})").fetchone() == (groups,)
    loss = "select round(iloss, 4) from information_loss('census', 'r') where attribute = '(all)'"
    assert census.execute(loss).fetchone() == (iloss,)
    risk = "select round(identity, 4) from disclosure('census', 'r', p_match := 1.0)"
    assert census.execute(risk).fetchone() == (identity,)


def test_loss_cuts_on_census_lose_less_than_the_target(census):
    loss = census.execute("""select ncp from information_loss('census', '(from mondrian(''census'', k := 10, cut := ''loss''))')
        where attribute = '(all)'""").fetchone()
    assert loss[0] <= 0.084


def test_many_rows_come_in_one_order_on_every_number_of_threads(con):
    con.execute("""create table many as select hash(i) % 60 as age, 'job ' || hash(i, 1) % 20 as job
        from range(200000) t(i)""")
    # DuckDB 1.5 hands over what a CTE keeps in the order in which threads come by: there only the rows are the same
    compared = "boxes" if duckdb.__version__.startswith("1.") else "rowid, boxes"
    orders = set()
    for threads in (1, 2, 3, 2):
        con.execute(f"set threads = {threads}")
        con.execute("create or replace table boxes as from mondrian('many', 20, qi := ['age', 'job'], seed := 1)")
        orders |= set(con.execute(f"select bit_xor(hash({compared})), count(*) from boxes").fetchall())
    assert [rows for _, rows in orders] == [200000]


def test_delta_asks_for_classes_in_which_an_insider_stays_within_it(con):
    con.execute("create table t as select i % 40 as a, i // 40 as b, i % 9 as s from range(2000) t(i)")
    least = "select min(n) from (select count(*) as n from mondrian('t', {}, qi := ['a', 'b'], sensitive := 's') group by a, b)"
    for arguments, k in (
        ("delta := 0.1", 20),
        ("delta := 0.1, l := 2", 20),
        ("30, delta := 0.1", 30),
        ("delta := 1", 1),
    ):
        assert con.execute(least.format(arguments)).fetchone()[0] >= k
    with pytest.raises(duckdb.Error, match="delta := 0 is out of range"):
        con.execute(least.format("delta := 0"))
