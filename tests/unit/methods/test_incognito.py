"""Incognito as a SQL function: levels, suppression that can be seen, messages."""

import duckdb
import pytest


@pytest.fixture
def hospital(con):
    con.execute("""
        create table hospital as select * from (values
            ('M', '47905', 'Gastritis'), ('F', '47905', 'Ovarian Cancer'), ('F', '47901', 'Breast Cancer'),
            ('M', '47901', 'Flu'), ('M', '47902', 'Dyspepsia'), ('F', '47902', 'Fever'), ('F', '47308', 'Cancer'),
            ('F', '47308', 'Fever')) t(sex, zip, disease);
        create table zips as
        select distinct zip as leaf, zip[:4] || '*' as four, zip[:3] || '**' as three, '*****' as root from hospital;
        comment on column hospital.sex is 'anon: quasi';
        comment on column hospital.zip is 'anon: quasi hierarchy=zips';
        comment on column hospital.disease is 'anon: sensitive';
    """)
    return con


def test_entropy_diversity_takes_the_cheaper_of_the_two_minimal_nodes(hospital):
    hospital.execute("create table r as from incognito('hospital', l := 2)")
    # sex generalized costs 1/2, the first step of the zip codes 3/8: (0, 1) and (1, 0) are the minimal nodes
    published = hospital.execute("select distinct sex, zip from r order by all").fetchall()
    assert published == [(["F"], "4730*"), (["F"], "4790*"), (["M"], "4790*")]
    assert dict(hospital.execute("from l_diversity('r', ['sex', 'zip'], 'disease')").fetchall())["entropy"] >= 2


def test_only_the_root_of_the_zip_codes_reaches_two_and_a_half(hospital):
    published = hospital.execute("select distinct sex, zip from incognito('hospital', l := 2.5) order by all")
    assert published.fetchall() == [(["F"], "*****"), (["M"], "*****")]


def test_suppressed_rows_are_counted_in_every_released_row(con):
    con.execute("""create table t as select case when i < 2 then 'rare' else 'common' end as a, i as s
        from range(40) r(i)""")
    con.execute("create table r as from incognito('t', k := 5, qi := 'a', sensitive := 's', max_suppression := 0.05)")
    assert con.execute("select a, suppressed, count(*) from r group by all").fetchall() == [(["common"], 2, 38)]
    con.execute("create table s as from incognito('t', k := 5, qi := 'a', sensitive := 's', max_suppression := 0.04)")
    assert con.execute("select a, suppressed, count(*) from s group by all").fetchall() == [(["common", "rare"], 0, 40)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("k := 9", "the largest k this table can meet is 8"),
        ("l := 7", "the largest l this table can meet is 6.727"),
        ("max_suppression := 0.1", "no guarantee was requested"),
    ],
)
def test_bad_calls_are_errors(hospital, arguments, message):
    with pytest.raises(duckdb.Error, match=message):
        hospital.execute(f"from incognito('hospital', {arguments})").fetchall()


def test_a_hierarchy_whose_leaves_are_not_in_the_order_of_the_text_is_counted_right(con):
    con.execute("create table tree as from (values ('z', 'low', '*'), ('b', 'low', '*'), ('a', 'top', '*')) t(x, y, r)")
    con.execute("""create table people as select (['a', 'b', 'z'])[1 + range % 3] as v, case when range % 3 = 0 then range % 4
        else range % 3 end as s from range(60)""")
    con.execute("""create table release as from incognito('people', l := 2, diversity := 'distinct', qi := ['v'],
        sensitive := 's', hierarchies := {'v': 'tree'})""")
    assert con.execute("select v, count(*) from release group by 1 order by 1").fetchall() == [("low", 40), ("top", 20)]


def test_a_search_of_too_many_nodes_is_refused_before_it_starts(con):
    columns = ", ".join(f"(hash(i, {k}) % 3)::varchar as q{k}" for k in range(20))
    con.execute(f"create table wide as select {columns}, i % 5 as s from range(600) r(i)")
    names = str([f"q{k}" for k in range(20)])
    with pytest.raises(duckdb.Error, match=r"have 1,048,576 level vectors.*max_nodes := 250,000.*qi"):
        con.execute(f"from incognito('wide', k := 2, qi := {names}, sensitive := 's')")
    call = "from incognito('wide', k := 2, qi := ['q0', 'q1'], sensitive := 's', max_nodes := {})"
    assert len(con.execute(call.format(4)).fetchall()) == 600
    with pytest.raises(duckdb.Error, match="2 quasi-identifiers have 4 level vectors"):
        con.execute(call.format(3))


def test_combinations_that_fill_more_than_one_integer_are_released(con):
    columns = ", ".join(f"i * {m} % 1000 as q{m}" for m in (1, 7, 11, 13, 17))
    con.execute(f"create table many as select {columns}, i % 8 as s from range(1000) r(i)")
    names = "['q1', 'q7', 'q11', 'q13', 'q17']"
    con.execute(f"create table r as from incognito('many', 5, l := 2, qi := {names}, sensitive := 's')")
    assert con.execute("select count(*) from r").fetchone() == (1000,)
    assert con.execute(f"select k >= 5 from k_anonymity('r', {names})").fetchone() == (True,)
