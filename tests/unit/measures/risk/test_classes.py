"""Class measures with roles from comments, and on releases of every shape."""

import duckdb
import pytest


@pytest.fixture
def people(con):
    con.execute("""
        create table tree as select * from (values
            ('x1', 'X', '*'), ('x2', 'X', '*'), ('y1', 'Y', '*'), ('y2', 'Y', '*')) t(leaf, up, root);
        create table people as
        select i % 7 as a, i % 3 as b, ['x1', 'x2', 'y1', 'y2'][1 + i % 4] as place,
            ['flu', 'hiv', 'gout', 'acne'][1 + (i // 5) % 4] as s
        from range(120) t(i);
        comment on column people.a is 'anon: quasi';
        comment on column people.b is 'anon: quasi';
        comment on column people.place is 'anon: quasi hierarchy=tree';
        comment on column people.s is 'anon: sensitive';
    """)
    return con


QI = "['a', 'b', 'place']"


def test_roles_fill_in_what_a_call_leaves_out(people):
    for short, spelled in (
        ("k_anonymity('people')", f"k_anonymity('people', {QI})"),
        ("l_diversity('people')", f"l_diversity('people', {QI}, 's')"),
        ("t_closeness('people')", f"t_closeness('people', {QI}, 's')"),
        ("reidentification_risk('people')", f"reidentification_risk('people', {QI}, 0.2)"),
        ("class_statistics('people')", f"class_statistics('people', qi := {QI})"),
    ):
        assert people.execute(f"from {short}").fetchall() == people.execute(f"from {spelled}").fetchall()


def test_quasi_identifiers_in_the_slice_of_the_sensitive_value_distinguish_classes(people):
    people.execute("create table r as from slicing('people', l := 2, columns := [['a', 'b'], ['place', 's']])")
    smallest = people.execute("""
        select min(n / m) from (select sum(c) as n, max(c) as m from (
            select bucket, place_s.place as place, count(*) as c from r group by bucket, place_s) group by bucket, place)
    """).fetchone()
    assert people.execute(f"select value from l_diversity('r', {QI}, 's') where measure = 'frequency'").fetchone() == (
        smallest
    )
    rows = people.execute("select min(c) from (select count(*) as c from r group by bucket)").fetchone()
    assert people.execute(f"from k_anonymity('r', {QI})").fetchone() == rows


def test_t_is_measured_over_the_hierarchy_of_the_sensitive_column(people):
    call = "t_closeness('people', qi := ['a'], sensitive := 'place'{})"
    tree, equal = (people.execute(f"from {call.format(more)}").fetchone() for more in ("", ", distance := 'equal'"))
    assert tree == people.execute("from t_closeness('people', ['a'], 'place', hierarchy := 'tree')").fetchone()
    assert (tree[1], equal[1]) == ("hierarchy", "equal")
    assert tree[0] <= equal[0]


def test_several_sensitive_columns_are_not_silently_one(people):
    people.execute("comment on column people.place is 'anon: sensitive'")
    with pytest.raises(duckdb.Error, match="takes one sensitive column, found place, s"):
        people.execute("from l_diversity('people')")
    assert len(people.execute("from l_diversity('people', sensitive := 's')").fetchall()) == 4
