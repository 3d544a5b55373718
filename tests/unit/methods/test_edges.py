"""Box ends print no single person: an attacker looks for planted extremes, and for rare values, in every method's ends."""

import duckdb
import pytest

import duckdb_anon

ROLES = "qi := ['age', 'gain', 'weight', 'sex'], sensitive := 'occupation'"
ROWS = [
    "mondrian('t', k := 5, {})", "mondrian('t', l := 3, {})", "mondrian('t', k := 5, cut := 'median', {})",
    "incognito('t', 5, {})", "probabilistic('t', 5, {})", "composition('t', 5, rho := 1, alpha := 1, {})",
    "hybrid('t', 5, rho := 1, {})", "laplace_on_groups('t', 5, 1.0, seed := 1, {})",
]  # fmt: skip
PERSONS = ["one_to_m_generalize('v', 5, 2, {})", "rmr('v', 5, {})", "mondrian('v', k := 5, {})"]


@pytest.fixture(scope="module")
def con(shared_data):
    """Part of adult with one person of 123 years and one gain of 84,321; and the same as visits of persons."""
    con = duckdb_anon.connect()
    source = f"read_csv('{shared_data / 'adult.csv'}')"
    con.execute(f"""create table t as select age::tinyint as age, capital_gain::double as gain, fnlwgt as weight, sex, occupation
        from {source} where occupation is not null limit 4000""")
    con.execute("update t set age = 123 where rowid = 17")
    con.execute("update t set gain = 84321 where rowid = 40")
    con.execute("create table u as select rowid as pid, * from t where rowid < 750")
    con.execute("""create table v as select u.pid, u.age, u.gain, u.weight, u.sex, t.occupation
        from t join u on u.pid = t.rowid // 2""")
    con.execute("update v set age = 123 where pid = 3")
    con.execute("update v set gain = 84321 where pid = 4")
    con.execute("create table tree as select distinct occupation as leaf, '*' as root from v")
    yield con
    con.close()


def _ends(con: duckdb.DuckDBPyConnection, call: str, edges: str) -> None:
    con.execute(f"create or replace table r as from {call.format(f'edges := {edges!r}')}")
    ends = " union all ".join(
        f"select '{c}' as attribute, {c}.{end}::double as value from r where {c}.lower is distinct from {c}.upper"
        for c in ("age", "gain", "weight") for end in ("lower", "upper")
    )  # fmt: skip
    con.execute(f"create or replace table ends as {ends}")


def _leak(con: duckdb.DuckDBPyConnection, table: str, who: str, fewest: int) -> tuple[bool, float]:
    """Whether a planted value is an end, and the share of the distinct ends that fewer persons have."""
    planted = con.execute("select count(*) > 0 from ends where value in (123, 84321)").fetchone()[0]
    rare = " union all ".join(
        f"select '{c}' as attribute, {c}::double as value, count(distinct {who}) as persons from {table} group by all"
        for c in ("age", "gain", "weight")
    )
    share = con.execute(f"""select count(*) filter (where persons < {fewest}) / count(*) from (select distinct attribute, value from ends)
        left join ({rare}) using (attribute, value)""").fetchone()[0]
    return planted, share


@pytest.mark.parametrize("call", ROWS)
def test_ends_of_rows_print_no_single_person(con, call):
    call = call.format(f"{{}}, row_id := true, {ROLES}" if "laplace" not in call else f"{{}}, {ROLES}")
    _ends(con, call, "rounded")
    planted, rare = _leak(con, "t", "rowid", 3)
    assert not planted and rare < 0.1
    if "laplace" not in call:
        outside = " or ".join(f"not (t.{c} between r.{c}.lower and r.{c}.upper)" for c in ("age", "gain", "weight"))
        missed = f"""select count(*), count(*) filter (where {outside}) from r join (select *, rowid as row_id
            from t) as t"""
        assert con.execute(f"{missed} using (row_id)").fetchone() == (4000, 0)
        fewest = con.execute("""select min(n) from (select count(*) as n from r
            group by age, gain, weight, sex)""").fetchone()
        assert fewest[0] >= (3 if "l := 3" in call else 5)
    _ends(con, call, "tight")  # the attack works where it can
    planted, rare = _leak(con, "t", "rowid", 3)
    assert planted and rare > 0.3


@pytest.mark.parametrize("call", PERSONS)
def test_ends_of_persons_print_no_single_person(con, call):
    trees = "hierarchies := {{'occupation': 'tree'}}"
    # a rounded end may be a rare value by chance, so the draw is one for all runs
    call = call.format(f"{{}}, person := 'pid', row_id := true, {trees}, {ROLES}, seed := 1")
    _ends(con, call, "rounded")
    planted, rare = _leak(con, "v", "pid", 3)
    assert not planted and rare < 0.1
    outside = " or ".join(f"not (v.{c} between r.{c}.lower and r.{c}.upper)" for c in ("age", "gain", "weight"))
    missed = f"select count(*) filter (where {outside}) from r join (select *, rowid as row_id from v) as v"
    assert con.execute(f"{missed} using (row_id)").fetchone() == (0,)
    _ends(con, call, "tight")
    planted, rare = _leak(con, "v", "pid", 3)
    assert planted and rare > 0.3


def test_ends_are_of_the_type_of_their_column_even_where_the_planner_cannot_see_it(con):
    con.execute("create temp table hidden as select * from t")
    for call in ("mondrian('t', k := 5, {})", "mondrian('hidden', k := 5, categorical := ['sex', 'occupation'], {})"):
        con.execute(f"create or replace table r as from {call.format(ROLES)}")
        types = con.execute("""select typeof(any_value(age.upper)), typeof(any_value(gain.lower)), max(age.upper),
            max(gain.upper) from r""")
        assert types.fetchall() == [("TINYINT", "DOUBLE", 127, 99999.0)]
