"""Roles given as arguments are as good as labels; what is neither a value nor a node is refused."""

import duckdb
import pytest

import duckdb_anon

ROLES = "qi := ['age', 'edu'], sensitive := 'disease', hierarchies := {'edu': 'tree'}"
QUERY = "select count(*) from people where edu = ''BA''"


@pytest.fixture
def people(con):
    con.execute("""
        create table people as
        select (i * 7) % 50 as age, ['BA', 'MA', 'PhD', 'none'][i % 4 + 1] as edu, 'd' || (i % 6) as disease
        from range(400) t(i)""")
    con.execute("""create table tree as
        from (values ('BA', 'univ', '*'), ('MA', 'univ', '*'), ('PhD', 'univ', '*'), ('none', 'none yet', '*'))""")
    con.execute(f"create table r as from mondrian('people', k := 120, {ROLES})")
    duckdb_anon.release(con, "described", f"mondrian('people', k := 120, {ROLES})")
    return con


def test_nodes_are_never_taken_for_values(people):
    # without the tree, count(*) WHERE edu = 'BA' used to answer 0, for certain
    assert people.execute("select count(*) from r where edu = 'BA'").fetchone() == (0,)
    for call in (
        f"from relative_error('{QUERY}', 'people', 'r')",
        f"select rewrite_query('{QUERY}', 'people', 'r')",
        "from cube_error('people', 'r', dims := ['edu'])",
        "from workload_error('people', 'r', n := 10, qi := ['edu'], sensitive := 'disease')",
    ):
        with pytest.raises(duckdb.Error, match=r"of 'edu' in r are not in people.*hierarchies := {'edu': 'TREE'}"):
            people.execute(call)


def test_roles_as_arguments_are_known_to_every_query_function(people):
    row = people.execute(f"""select original, estimate, low, high, confidence
        from relative_error('{QUERY}', 'people', 'described', {ROLES})""").fetchall()[0]
    truth, estimate, low, high, confidence = row
    assert truth == 100 and low <= 100 <= high and high > 0 and confidence == 1 and 50 < estimate < 150
    sql = people.execute(f"select rewrite_query('{QUERY}', 'people', 'described', {ROLES})").fetchone()
    assert people.execute(sql[0]).fetchone() == (pytest.approx(estimate),)
    cells = people.execute(f"""select low, high, original
        from cube_error('people', 'described', dims := ['edu'], {ROLES})""").fetchall()
    assert cells and all(low <= truth <= high for low, high, truth in cells)


def test_hybrid_is_unmixed_with_roles_as_arguments_and_refused_without(con):
    con.execute("""create table t as select i % 40 as age, case when i % 10 < 7 then 'a' else 'b' || i % 3 end as s
        from range(4000) r(i)""")
    con.execute("create table h as from hybrid('t', 4, qi := ['age'], sensitive := 's', rho := 0.9, seed := 3)")
    query = "select count(*) from t where s = ''a''"
    with pytest.raises(duckdb.Error, match="no column is known to be sensitive"):
        con.execute(f"from relative_error('{query}', 't', 'h')")
    estimate = con.execute(f"""select estimate from relative_error('{query}', 't', 'h', qi := ['age'], sensitive :=
        's')""").fetchone()
    assert estimate is not None and estimate[0] == pytest.approx(2800, rel=0.1)


def test_a_changed_original_and_an_empty_one_are_refused(people):
    people.execute("create table boxed as from anatomy('people', 3, qi := ['age', 'edu'], sensitive := 'disease')")
    people.execute(f"from relative_error('{QUERY}', 'people', 'boxed')").fetchall()
    people.execute("create table shape as from people limit 0")
    with pytest.raises(duckdb.Error, match="may be values or nodes of a hierarchy"):
        people.execute("select rewrite_query('select edu, count(*) from shape group by edu', 'shape', 'boxed')")
    people.execute("delete from people where edu = 'PhD'")
    with pytest.raises(duckdb.Error, match="1 distinct text"):
        people.execute(f"from relative_error('{QUERY}', 'people', 'boxed')")


def test_values_nobody_has_leave_with_no_release(con):
    con.execute("create type ward as enum ('north', 'south', 'Dr Ann Smith')")
    con.execute("""create table t as select i % 30 as age, ['north', 'south'][i % 2 + 1]::ward as w, 'd' || hash(i) % 5 as s,
        ['north', 'south'][i % 2 + 1]::ward as kept from range(300) r(i)""")
    roles = "qi := ['age', 'w'], sensitive := 's', keep := 'kept'"
    for call in (
        f"muco('t', 0.25, {roles})", f"mondrian('t', k := 3, {roles})", f"anatomy('t', 3, {roles})",
        f"incognito('t', k := 3, l := 1, {roles})", f"slicing('t', 2, {roles})", f"merging('t', 2, {roles})",
        f"rr_distort('t', p := 0.8, {roles})", f"hybrid('t', 3, {roles})",
    ):  # fmt: skip
        con.execute(f"create or replace table r as from {call}")
        types = con.execute("select data_type from duckdb_columns() where table_name = 'r'").fetchall()
        assert "Smith" not in str(types) and "ENUM" not in str(types), call
        assert "Smith" not in str(con.execute("from r").fetchall()), call


def test_an_identifier_keeps_its_label_through_views_and_selects(con):
    con.execute("create table people as select 'n' || i as name, i % 9 as age, i % 3 as disease from range(90) t(i)")
    con.execute("comment on column people.name is 'who; anon: identifier'")
    con.execute('create view "a view" as with c as (select * from people) select age, disease, name as who from c')
    con.execute('create view above as select *, who as again from "a view" where age < 8')
    roles = "qi := ['age'], sensitive := 'disease'"
    for source, column in (
        ("a view", "who"), ("above", "AGAIN"), ("(from people)", "name"), ("(select * from above)", "again"),
        ("(select age, disease, p.name as n from people as p)", "n"), ("(select upper(name) as name, * exclude name from people)", "name"),
    ):  # fmt: skip
        for call in (
            f"muco('{source}', 0.5, {roles}, keep := ['{column}'])",
            f"mondrian('{source}', 2, qi := ['{column}'])",
        ):
            with pytest.raises(duckdb.Error, match="labelled identifier in people: identifiers are never released"):
                con.execute(f"from {call}")
            con.execute(f"from {call[:-1]}, force := true)").fetchall()
    con.execute("create temp table mine as from people")
    for statement in (
        f"with c as (from people) from muco('c', 0.5, {roles}, keep := ['name'])",
        f"from muco('mine', 0.5, {roles}, keep := ['NAME'])",
    ):
        with pytest.raises(duckdb.Error, match="labelled identifier in people"):
            con.execute(statement)
        con.execute(statement[:-1] + ", force := true)").fetchall()
    con.execute("comment on column above.again is 'anon: insensitive'")
    con.execute(f"from muco('above', 0.5, {roles}, keep := ['again'])").fetchall()


@pytest.mark.parametrize("role", ["identifier", "person"])
@pytest.mark.parametrize(
    ("source", "column"),
    [
        ("people", "pid"), ("(select *, pid as case_no from people)", "case_no"),
        ("(select *, md5(pid::varchar) as code from people)", "code"),
        ("(select age, disease, md5(pid::varchar) from people)", "md5(CAST(pid AS VARCHAR))"),
        ("(select *, pid // 10 as tens from people)", "tens"), ("(select *, {a: [pid]} as s from people)", "s"),
        ("(select *, to_json(p) as j from people as p)", "j"),
        ("(select *, (select q.pid from people q where q.age = people.age limit 1) as x from people)", "x"),
        ("(select *, dense_rank() over (order by pid) as place from people)", "place"),
        ("(select age, disease, 1 as x from people union all select age, disease, pid from people)", "x"),
        ("(select * from (select age, disease, pid from people) as t(age, disease, x))", "x"),
        ("(with c(age, disease, x) as (select age, disease, pid from people) from c)", "x"),
        ("(select * rename (pid as x) from people)", "x"),
        ("(select age, disease, max(pid) as x from people group by all)", "x"), ("a view", "x"),
    ],
)  # fmt: skip
def test_nothing_of_a_column_that_names_persons_is_released(con, role, source, column):
    con.execute("create table people as select i as pid, i % 9 as age, i % 3 as disease from range(90) t(i)")
    con.execute(f"comment on column people.pid is 'anon: {role}'")
    con.execute('create view "a view" as select age, disease, sha256(pid::varchar) as x from people')
    call = f"mondrian('{source}', 2, qi := ['age'], keep := ['{column}']"
    with pytest.raises(duckdb.Error, match=f"labelled {role} in people: identifiers are never released"):
        con.execute(f"from {call})")
    con.execute(f"from {call}, force := true)").fetchall()


def test_how_many_records_a_person_has_is_no_identifier(con):
    con.execute("create table visits as select i // 3 as pid, i % 9 as age from range(90) t(i)")
    con.execute("comment on column visits.pid is 'anon: person'")
    for query in (
        "(select age, count(distinct pid) as n from visits group by age)",
        "(select age, count(*) over (partition by pid) as n from visits)",
    ):
        con.execute(f"from mondrian('{query}', 2, qi := ['age'], keep := ['n'], force := false)").fetchall()


def test_releases_draw_from_a_cipher_and_seeds_from_pcg64():
    from duckdb_anon.kernels.rng_streams import generator

    assert type(generator(None).bit_generator).__name__ == "ChaCha"
    assert type(generator(5).bit_generator).__name__ == "PCG64"
    keys = {tuple(generator(None).integers(0, 2**63, 4).tolist()) for _ in range(50)}
    assert len(keys) == 50
