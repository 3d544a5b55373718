"""rr_distort, rr_parameters and rr_risk as SQL functions."""

import duckdb
import numpy as np
import pytest

from tests.reference.randomized import PAPER_TABLE, risk


@pytest.fixture
def patients(con):
    """The example of the paper, 100 records of gender and disease, with an age, a cost and a name."""
    con.execute("""
        create table patients as
        select row_number() over () as id, gender, disease, 20 + (row_number() over () * 7) % 50 as age,
            row_number() over () * 1.5 as cost, 'person ' || row_number() over () as name
        from (values ('male', 'cancer', 18), ('male', 'x', 16), ('male', 'y', 18), ('female', 'cancer', 12),
            ('female', 'x', 16), ('female', 'y', 20)) t(gender, disease, n), range(20) r(i) where i < n;
        comment on column patients.gender is 'anon: quasi';
        comment on column patients.disease is 'anon: sensitive';
        comment on column patients.cost is 'anon: insensitive';
    """)
    return con


def channels(con: duckdb.DuckDBPyConnection, call: str) -> dict[str, dict[str, object]]:
    return con.execute(f"select any_value(rr) from {call}").fetchone()[0]


def test_columns_keep_their_types_and_rr_says_how_they_were_drawn(patients):
    described = patients.execute("describe from rr_distort('patients', p := 0.8)").fetchall()
    assert [(name, kind) for name, kind, *_ in described] == [
        ("gender", "VARCHAR"), ("disease", "VARCHAR"), ("cost", "DECIMAL(21,1)"),
        ("rr", 'STRUCT(gender STRUCT(p DOUBLE, "domain" VARCHAR[]), disease STRUCT(p DOUBLE, "domain" VARCHAR[]))'),
    ]  # fmt: skip
    assert channels(patients, "rr_distort('patients', p := 0.8)") == {
        "gender": {"p": 0.8, "domain": ["female", "male"]},
        "disease": {"p": 0.8, "domain": ["cancer", "x", "y"]},
    }
    assert patients.execute("select count(distinct rr), count(*) from rr_distort('patients', p := 0.8)").fetchone() == (
        1,
        100,
    )


def test_one_row_in_as_many_as_the_domains_have_values_tells_how_it_was_randomized(patients):
    patients.execute("create table many as select p.*, range as number from patients p, range(25)")
    call = """rr_distort('many', p := 0.8, bins := {'number': 1500}, sensitive := ['disease', 'number'], qi :=
        ['gender'])"""
    patients.execute(f"create table release as from {call}")
    told = "select count(distinct rr), count(rr), count(*) from release"
    assert patients.execute(told).fetchone() == (1, -(-2500 // (2 + 3 + 25)), 2500)
    patients.execute("""create or replace table many as select p.*, i * 100 + rowid as number
        from patients p, range(25) t(i)""")
    patients.execute(f"create or replace table release as from {call}")
    assert patients.execute(told).fetchone() == (1, 3, 2500)
    patients.execute("create table part as from release where rr is null")
    asked = "select count(*) from many where disease = 'x'"
    text = patients.execute("select rewrite_query(?, 'many', 'part')", [asked]).fetchone()[0]
    for query in (text, "from rr_reconstruct('part', ['disease'])"):
        with pytest.raises(duckdb.Error, match="take the release as a whole, not a part of it"):
            patients.execute(query).fetchall()


def test_values_are_kept_with_probability_p(patients):
    patients.execute("create table many as select p.* from patients p, range(200)")
    kept = patients.execute("""
        with drawn as (from rr_distort('many', p := {'gender': 0.8, 'disease': 0.4}, qi := 'gender',
                sensitive := 'disease', seed := 1, row_id := true)),
            truth as (select row_number() over () - 1 as row_id, gender, disease from many)
        select avg((d.gender = t.gender)::int), avg((d.disease = t.disease)::int),
            avg((d.disease = 'x')::int) filter (where t.disease = 'y')
        from drawn d join truth t using (row_id)
    """).fetchone()
    np.testing.assert_allclose(kept, [0.8, 0.4, 0.3], atol=0.012)


def test_other_columns_pass_through(patients):
    moved = patients.execute("""
        with drawn as (from rr_distort('patients', p := {'gender': 0.6}, row_id := true)),
            truth as (select row_number() over () - 1 as row_id, * from patients)
        select count(*) filter (where d.disease <> t.disease or d.cost <> t.cost)
        from drawn d join truth t using (row_id)
    """).fetchone()
    assert moved == (0,)
    assert list(channels(patients, "rr_distort('patients', p := {'gender': 0.6})")) == ["gender"]


@pytest.mark.parametrize(
    ("level", "scope", "shares"),
    [
        (3, "sensitive", {"disease": 0.870354}), (3, "qi", {"gender": 0.892353}),
        (3, "both", {"gender": 0.9284, "disease": 0.9566}), (4, "both", {"gender": 0.8741, "disease": 0.8545}),
        (1, "both", {"gender": 1, "disease": 1}),
    ],
)  # fmt: skip
def test_l_finds_the_optimal_p_of_the_worked_table(patients, level, scope, shares):
    found = patients.execute(f"from rr_parameters('patients', l := {level}, scope := '{scope}')").fetchall()
    assert {row[0]: pytest.approx(row[2], abs=1e-3) for row in found} == shares
    drawn = channels(patients, f"rr_distort('patients', l := {level}, scope := '{scope}')")
    assert {name: channel["p"] for name, channel in drawn.items()} == {row[0]: row[2] for row in found}
    assert all(row[3] <= 1 / level for row in found)


def test_risk_of_given_p_is_the_definition(patients):
    row = patients.execute("from rr_risk('patients', p := {'gender': 0.8, 'disease': 0.7})").fetchone()
    expected = risk(PAPER_TABLE, [0.8], 0.7)
    assert row[0] == "disease"
    assert row[1] == pytest.approx(expected.max(), abs=1e-12)
    assert row[2] == pytest.approx((expected * PAPER_TABLE).sum() / 100, abs=1e-12)
    assert row[3] == pytest.approx(risk(PAPER_TABLE, [0.5], 1 / 3).max(), abs=1e-12)
    assert row[4] == pytest.approx(20 / 48)
    assert row[6] == pytest.approx(1 / expected.max())


def test_declared_domains_are_published_and_drawn_from(con):
    con.execute("""
        create type mood as enum ('low', 'mid', 'high', 'never');
        create table t as select (['low', 'mid', 'high'])[1 + i % 3]::mood as mood, 'x' || i % 3 as place
        from range(300) r(i);
        create table places as select 'x' || i as leaf, 'g' || i % 2 as half, '*' as everything from range(4) r(i);
    """)
    call = """rr_distort('t', p := 0.5, qi := ['mood', 'place'], domain := 'declared', hierarchies := {'place': 'places'},
        seed := 1)"""
    found = channels(con, call)
    assert sorted(found["mood"]["domain"]) == ["high", "low", "mid", "never"]
    assert sorted(found["place"]["domain"]) == ["x0", "x1", "x2", "x3"]
    drawn = con.execute(f"select count(distinct mood), count(distinct place), typeof(any_value(mood)) from {call}")
    assert drawn.fetchone() == (4, 4, "VARCHAR")
    told = channels(con, call.replace("domain := 'declared'", "domain := 'hierarchy'"))
    assert sorted(told["mood"]["domain"]) == ["high", "low", "mid"] and len(told["place"]["domain"]) == 4
    observed = channels(con, call.replace("'declared'", "'observed'"))
    assert (len(observed["mood"]["domain"]), len(observed["place"]["domain"])) == (3, 3)


def test_null_is_a_value_of_the_domain(con):
    con.execute("create table t as select case when i % 4 = 0 then null else i % 4 end as v from range(4000) r(i)")
    call = "rr_distort('t', p := 0.7, qi := ['v'], seed := 2)"
    assert channels(con, call)["v"] == {"p": 0.7, "domain": [1, 2, 3, None]}
    con.execute(f"create table r as from {call}")
    estimates = dict(con.execute("select v, estimate from rr_reconstruct('r', ['v'])").fetchall())
    assert set(estimates) == {1, 2, 3, None}
    assert estimates[None] == pytest.approx(1000, abs=150)


def test_bins_are_published_as_values_of_the_column(patients):
    found = channels(patients, "rr_distort('patients', p := 0.7, qi := ['age'], bins := {'age': [30, 50]})")
    low, middle, high = found["age"]["domain"]
    assert 20 <= low < 30 <= middle < 50 <= high
    dated = patients.execute("""
        select rr.born.domain from rr_distort('(select date ''2000-01-01'' + id::int as born from patients)',
            p := 0.7, qi := ['born'], bins := {'born': [date '2000-02-01']}) limit 1
    """).fetchone()[0]
    assert len(dated) == 2
    assert str(dated[0]) < "2000-02-01" <= str(dated[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'patients'", "give l .* or p"), ("'patients', p := 1.2", "p := 1.2 is no probability"),
        ("'patients', p := 'much'", "neither a number nor a MAP or STRUCT"),
        ("'patients', p := 0.5", r"column 'gender': p = 0\.5 over 2 values .* p must differ from 0\.5"),
        ("'patients', p := {'gander': 0.8}", r"p names 'gander' \(did you mean 'gender'\?\)"),
        ("'patients', p := {'disease': 0.8}, scope := 'qi'", "it may name gender"),
        ("'patients', l := 3, p := 0.99", "with the p given the risk is .* above 1/l"),
        ("'patients', l := 9, scope := 'qi'", "smallest reachable risk is 0.2, that is l below 5"),
        ("'patients', l := 3, sensitive := []", "l bounds the risk of a sensitive column"),
        ("'patients', p := 0.8, bins := {'gender': 2}", "'gender', which is not ordered"),
        ("'patients', p := 0.8, bins := {'gender': 2, 'agee': 3}", "bins names 'agee'"),
        ("'(select ''a'' as g, ''b'' as s)', l := 2, scope := 'sensitive', qi := 'g', sensitive := 's'",
         "whatever p is"),
    ],
)  # fmt: skip
def test_wrong_calls_say_what_is_allowed(patients, arguments, message):
    with pytest.raises(duckdb.Error, match=message):
        patients.execute(f"from rr_distort({arguments})").fetchall()


@pytest.mark.parametrize("given", ["0", "0.0", "{'gender': 0}", "map {'gender': 0.0::decimal(3, 1)}", "-0.1"])
@pytest.mark.parametrize("function", ["rr_distort", "rr_risk"])
def test_a_probability_of_nothing_is_refused(patients, function, given):
    with pytest.raises(duckdb.Error, match=rf"{function}: p := -?0(\.1)? is no probability"):
        patients.execute(f"from {function}('patients', p := {given})").fetchall()
