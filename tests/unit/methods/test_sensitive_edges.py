"""sensitive_edges: in every method no released sensitive value has fewer than k carriers, counted here by loops."""

from collections import defaultdict
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import duckdb_anon
from duckdb_anon.engine.catalog.sensitive_coarsening import takes_edges
from duckdb_anon.kernels.rare_value_coding import OTHER, grouped, joined
from duckdb_anon.registry import METHODS

Carried = dict[Any, set[int]]


@given(
    carriers=st.lists(st.sets(st.integers(0, 30), min_size=1, max_size=9), min_size=1, max_size=25),
    k=st.integers(1, 8),
    alone=st.booleans(),
)
def test_published_values_have_k_carriers_and_frequent_ones_stay(carriers, k, alone):
    if alone:
        carriers = [{100 * place + one for one in each} for place, each in enumerate(carriers)]
    if len(set().union(*carriers)) < k:
        return
    counts = np.array([len(each) for each in carriers])
    persons = None if alone else np.array([one for each in carriers for one in sorted(each)])
    target = joined(counts, k, persons).tolist()
    for shown in set(target):
        members = [place for place, each in enumerate(target) if each == shown]
        assert len(set().union(*(carriers[place] for place in members))) >= k
        if shown >= 0:
            assert len(carriers[shown]) >= k and target[shown] == shown
        else:  # rare values alone, and no other rare value lies between them
            assert all(len(carriers[place]) < k for place in members)
            between = range(members[0], members[-1] + 1)
            assert all(place in members or len(carriers[place]) >= k for place in between)
    assert all(target[place] == place for place, each in enumerate(carriers) if len(each) >= k)
    names = grouped(counts, k, persons).tolist()
    rest = set().union(*(c for c, t in zip(carriers, names, strict=True) if t == OTHER))
    assert not rest or len(rest) >= k
    assert all(len(c) >= k for c, t in zip(carriers, names, strict=True) if t != OTHER)
    if all(len(c) >= k for c in carriers):
        assert OTHER not in names and target == list(range(len(carriers)))


@pytest.fixture(scope="module")
def made():
    """600 rows: wages with long tails, diseases of which some are rare, several rows a person in `visits`."""
    con = duckdb_anon.connect()
    con.execute("""
        create table people as select i as pid, 20 + hash(i) % 50 as age, ['m', 'f'][1 + (hash(i, 1) % 2)::integer] as sex,
            (exp(6 + 3 * (hash(i, 2) % 1000) / 1000))::integer as wage,
            'd' || floor(sqrt(hash(i, 3) % 400))::integer as disease, i % 4 = 0 as smokes
        from range(600) t(i)
    """)
    con.execute("""
        create table visits as select * replace (pid // 3 as pid, case when pid % 3 = 0 then disease else
            'd' || floor(sqrt(hash(pid // 3, 3) % 400))::integer end as disease) from people
    """)
    con.execute("create table tree as select distinct disease as leaf, '*' as root from people")
    yield con
    con.close()


def carriers_of(con: duckdb.DuckDBPyConnection, query: str) -> Carried:
    found: Carried = defaultdict(set)
    for value, person in con.execute(query).fetchall():
        found[value].add(person)
    return found


def shown(con: duckdb.DuckDBPyConnection, table: str, column: str) -> set[Any]:
    """Every sensitive value a release shows, whatever carries it."""
    for name, kind, *_ in con.execute(f"describe {table}").fetchall():
        if kind.startswith("STRUCT") and column in [field for field, _ in duckdb.sqltype(kind).children]:
            return {v for (v,) in con.execute(f'select distinct "{name}"."{column}" from {table}').fetchall()}
        if name == column and kind.startswith("MAP"):
            return {v for (v,) in con.execute(f'select distinct unnest(map_keys("{name}")) from {table}').fetchall()}
        if name == column:
            return {v for (v,) in con.execute(f'select distinct "{name}" from {table}').fetchall()}
    raise AssertionError(f"{table} has no {column}")


def means(carried: Carried, k: int, rows: list[tuple[Any, Any]]) -> set[Any]:
    """Whole numbers that stand for k carriers, by the groups whose promise is tested above; `rows`: value, carrier."""
    values = sorted(carried)
    counts, persons = np.array([len(carried[v]) for v in values]), [p for v in values for p in sorted(carried[v])]
    target = joined(counts, k, np.array(persons)).tolist()
    groups: dict[int, list[int]] = defaultdict(list)
    shown = dict(zip(values, target, strict=True))
    for value, _ in rows:
        groups[shown[value]].append(value)
    return {values[t] if t >= 0 else round(sum(each) / len(each)) for t, each in groups.items()}


METHODS_WITH_EDGES = [m for m in METHODS if takes_edges(m) and "person" not in m.needs]


@pytest.mark.parametrize("column", ["wage", "disease"])
@pytest.mark.parametrize("method", METHODS_WITH_EDGES, ids=lambda m: m.name)
def test_no_released_value_has_fewer_than_k_carriers(made, method, column):
    smallest = {"anatomy": "l := 1", "slicing": "l := 1", "merging": "l := 1"}.get(method.name, method.smallest)
    call = f"{smallest}, qi := ['age', 'sex'], sensitive := '{column}', sensitive_edges := 9"
    made.execute(f"create or replace table r as from {method.name}('people', {call})")
    before = carriers_of(made, f"select {column}, pid from people")
    rare = {value for value, each in before.items() if len(each) < 9}
    assert rare
    released = shown(made, "r", column)
    if column == "disease":
        common = set(before) - rare
        rest = released - set(before)
        assert rest == {"other"} and released - rest <= common
        assert sum(len(before[v]) for v in set(before) - (released - rest)) >= 9
    else:
        assert released <= means(before, 9, made.execute("select wage, pid from people").fetchall())
        total = made.execute("select sum(wage) from people").fetchone()[0]
        if method.name in ("mondrian", "muco"):  # one row a record
            assert abs(made.execute("select sum(wage) from r").fetchone()[0] / total - 1) < 0.001
    assert made.execute("select distinct sensitive_edges from r").fetchall() == [(9,)]


@pytest.mark.parametrize("call", ["mondrian('visits', k := 2", "muco('visits', 0.5, l := 1", "anatomy('visits', 1",
                                  "slicing('visits', 1", "merging('visits', 1, fake := 0"])  # fmt: skip
def test_carriers_are_persons_where_persons_have_several_rows(made, call):
    roles = "qi := ['age', 'sex'], sensitive := 'disease', person := 'pid', sensitive_edges := 20"
    made.execute(f"create or replace table r as from {call}, {roles})")
    before = carriers_of(made, "select disease, pid from visits")
    by_rows = carriers_of(made, "select disease, row_number() over () from visits")
    assert any(len(before[v]) < 20 <= len(by_rows[v]) for v in before)
    kept = shown(made, "r", "disease") - {"other"}
    assert kept and all(len(before[v]) >= 20 for v in kept)
    made.execute(f"create or replace table r as from {call}, {roles.replace('disease', 'wage')})")
    released = shown(made, "r", "wage")
    rows = made.execute("select wage, pid from visits").fetchall()
    assert released == means(carriers_of(made, "select wage, pid from visits"), 20, rows)


@pytest.mark.parametrize(("kind", "value"), [
    ("DATE", "date '1500-01-01' + i::int"), ("TIMESTAMP", "timestamp '2000-01-01' + to_hours(i)"),
    ("TIMESTAMP WITH TIME ZONE", "timestamptz '2000-01-01' + to_days(i::int)"), ("TIME", "time '01:00' + to_minutes(i)"),
    ("HUGEINT", "170141183460469231731687303715884105727::hugeint - i"), ("UTINYINT", "i::utinyint"),
    ("DECIMAL(38,2)", "i::decimal(38, 2)"), ("DOUBLE", "(case i when 99 then 'inf' when 98 then 'nan' else i::varchar end)::double"),
])  # fmt: skip
def test_means_keep_the_type_of_their_column(made, kind, value):
    made.execute(f"create or replace table typed as select i % 7 as age, {value} as v from range(100) t(i)")
    made.execute("create or replace table r as from mondrian('typed', 5, qi := ['age'], sensitive := 'v', "
                 "sensitive_edges := 10)")  # fmt: skip
    found = made.execute("select typeof(v), count(*) from r group by v, typeof(v)").fetchall()
    assert {name for name, _ in found} == {kind}
    assert 1 <= len(found) <= 10 and min(rows for _, rows in found) >= 10


def test_what_cannot_be_joined_is_refused_by_name(made):
    roles = "qi := ['age', 'sex'], sensitive_edges := 7"
    refused = {
        f"muco('people', 0.5, {roles})": "needs a sensitive column",
        f"muco('people', 0.5, l := 1, {roles}, sensitive := 'wage', categorical := ['wage'])": "no name they could",
        f"muco('people', 0.5, {roles}, sensitive := 'disease', hierarchies := {{'disease': 'tree'}})": "hierarchy tree",
        f"muco('people', 0.5, {roles[:-1]}9999, sensitive := 'wage')": "more than the table has carriers",
        f"muco('people', 0.5, {roles[:-1]}0, sensitive := 'wage')": "must be at least 1",
        f"muco('(select * replace (case when pid > 4 then wage end as wage) from people)', 0.5, {roles}, "
        "sensitive := 'wage')": None,
        f"muco('(select * replace (case when pid > 4 then null else wage end as wage) from people)', 0.5, l := 1, "
        f"{roles}, sensitive := 'wage')": "more than the table has carriers",
    }
    for call, message in refused.items():
        with pytest.raises(duckdb.Error, match=message or "is NULL in fewer than sensitive_edges := 7 rows"):
            made.execute(f"from {call}").fetchall()
    with pytest.raises(duckdb.Error, match="Macro diffgen"):
        made.execute("from diffgen('people', 1.0, qi := ['age'], sensitive := 'disease', sensitive_edges := 7)")
    made.execute("create temp table hidden as from people")
    with pytest.raises(duckdb.Error, match="Commit hidden first"):
        made.execute(f"from muco('hidden', 0.5, {roles}, sensitive := 'wage')").fetchall()


@pytest.mark.parametrize("call", ["one_to_m_generalize('visits', 9, 1", "rmr('visits', 9"])
def test_where_nodes_are_published_k_gives_each_its_carriers(made, call):
    made.execute("create or replace table deep as select distinct disease as leaf, 'e' || substr(disease, 2)::int // 3 "
                 "as mid, '*' as root from people")  # fmt: skip
    roles = """qi := ['age', 'sex'], sensitive := 'disease', person := 'pid', changing := 'first',
        hierarchies := {'disease': 'deep'}"""
    with pytest.raises(duckdb.Error, match=r"Leave it out and say k := 12"):
        made.execute(f"from {call}, {roles}, sensitive_edges := 12)").fetchall()
    made.execute(f"create or replace table r as from {call}, {roles})")
    fewest = made.execute("select min(n) from (select count(*) as n from (select unnest(list_distinct(disease)) as d "
                          "from r) group by d)").fetchall()  # fmt: skip
    assert fewest[0][0] >= 9
    rare = made.execute("select count(*) from (select 1 from visits group by disease having count(distinct pid) < 9)")
    assert rare.fetchall()[0][0] > 0


def test_types_enums_rules_and_row_numbers_stay_right(made):
    made.execute("""
        create or replace table typed as select pid, age, sex, disease::enum('d0', 'd1', 'd2', 'd3', 'd4', 'd5', 'd6',
            'd7', 'd8', 'd9', 'd10', 'd11', 'd12', 'd13', 'd14', 'd15', 'd16', 'd17', 'd18', 'd19') as disease,
            date '2000-01-01' + wage as born, (wage / 7)::decimal(12, 2) as pay from people
    """)
    for column, kind in (("disease", "VARCHAR"), ("born", "DATE"), ("pay", "DECIMAL")):
        made.execute(f"create or replace table r as from mondrian('typed', k := 5, qi := ['age'], sensitive := "
                     f"'{column}', keep := ['pid'], sensitive_edges := 9, row_id := true)")  # fmt: skip
        assert dict(row[:2] for row in made.execute("describe r").fetchall())[column].startswith(kind)
        assert made.execute("select count(*) from r where pid <> row_id").fetchall() == [(0,)]
        fewest = made.execute(f"select min(n) from (select count(*) as n from r group by {column})").fetchall()
        assert fewest[0][0] >= 9
    rule = "rules := [['age > 500', 'disease = ''other''']]"
    made.execute(f"create or replace table r as from merging('people', 1, qi := ['age', 'sex'], sensitive := 'disease', "
                 f"sensitive_edges := 9, fake := 0, {rule})")  # fmt: skip
    assert made.execute("select count(*) from r").fetchall() == [(600,)]


def test_answers_of_coarser_values_are_never_certain(made):
    roles = "qi := ['age', 'sex'], sensitive := 'disease'"
    made.execute(f"create or replace table r as from mondrian('people', k := 5, {roles}, sensitive_edges := 30)")
    made.execute(f"create or replace table plain as from mondrian('people', k := 5, {roles})")
    query = "'select count(*) from people where disease = ''d1'''"
    names = [d[0] for d in made.execute(f"from relative_error({query}, 'people', 'r', {roles})").description]
    bounds = dict(zip(names, made.execute(f"from relative_error({query}, 'people', 'r', {roles})").fetchall()[0],
                      strict=True))  # fmt: skip
    assert bounds["original"] > 0 and bounds["estimate"] == 0
    assert bounds["confidence"] is None or bounds["confidence"] < 1
    found = made.execute(f"from relative_error({query}, 'people', 'plain', {roles})").fetchall()[0]
    assert found[names.index("estimate")] == bounds["original"]


def test_singling_out_through_wages_falls(shared_data):
    with duckdb_anon.connect() as con:
        con.execute(f"create table census as from read_csv('{shared_data / 'census.csv'}')")
        roles = "qi := ['AGE', 'SEX', 'RACE', 'MARST', 'UHRSWORK'], sensitive := 'INCWAGE'"
        found = []
        for k in (1, 10):
            given = f"{roles}, sensitive_edges := {k}"
            con.execute(f"create or replace table r as from muco('census', 0.1, {given}, seed := 1)")
            con.execute(f"""select attack, attacks, note from singling_out('census', 'r', mode := 'univariate',
                columns := ['INCWAGE'], {roles}, seed := 1)""")
            attack, attacks, note = con.fetchone()
            found.append((attack, attacks))
            assert ("sensitive values have 10 carriers or more" in note) is (k == 10)
            assert ("sensitive_edges := 10" in note) is (k == 1)
        # each wage that one row shows is one person's; afterwards no wage is shown by one row
        assert found[0][0] > 0.9 and found[0][1] > 20
        assert found[1] == (0.0, 0)


def test_numbers_and_dates_have_ten_carriers_by_default_and_names_stay(made):
    made.execute("create or replace table dated as select *, date '2000-01-01' + wage // 3 as born from people")
    roles = "qi := ['age', 'sex'], sensitive := ['wage', 'born', 'disease'], row_id := true"
    made.execute(f"create or replace table r as from mondrian('dated', k := 5, {roles})")
    for column in ("wage", "born"):
        rows = f"select min(n) from (select count(*) as n from {{}} group by {column})"
        assert made.execute(rows.format("dated")).fetchone()[0] < 10 <= made.execute(rows.format("r")).fetchone()[0]
    joined = "from r join dated on row_id = pid"
    assert made.execute(f"select count(*) {joined} where r.disease <> dated.disease").fetchall() == [(0,)]
    assert abs(made.execute(f"select sum(r.wage) / sum(dated.wage) - 1 {joined}").fetchone()[0]) < 0.001
    assert "sensitive_edges" not in [name for name, *_ in made.execute("describe r").fetchall()]
    made.execute(f"create or replace table r as from mondrian('dated', k := 5, {roles}, sensitive_edges := 1)")
    same = f"select count(*) {joined} where r.wage = dated.wage and r.born = dated.born"
    assert made.execute(same).fetchone() == (600,)
    assert made.execute("select distinct sensitive_edges from r").fetchall() == [(1,)]
    plain = made.execute(
        "select * from rr_distort('people', p := 0.8, qi := ['sex'], sensitive := 'wage') limit 0"
    ).description
    assert "sensitive_edges" not in [name for name, *_ in plain]


@pytest.mark.parametrize(("kind", "value"), [
    ("INTEGER", "wage"), ("DOUBLE", "wage / 7"), ("DECIMAL(12,2)", "(wage / 7)::decimal(12, 2)"), ("HUGEINT",
    "170141183460469231731687303715884105727::hugeint - wage"), ("DATE", "date '2000-01-01' + wage"),
    ("TIMESTAMP", "timestamp '2000-01-01' + to_hours(wage)"), ("TIME", "time '01:00' + to_seconds(wage)"),
    ("VARCHAR", "wage::varchar"), ("BOOLEAN", "wage > 900"),
])  # fmt: skip
def test_the_default_holds_where_the_type_shows_when_rows_are_read(made, kind, value):
    """Of temporary tables and DataFrames as of committed tables: no number is published exactly without a word."""
    made.execute(f"create or replace table there as select * replace ({value} as wage) from people")
    made.execute("create or replace temp table passing as from there")
    roles = "qi := ['age', 'sex'], sensitive := 'wage', categorical := ['sex'], row_id := true"
    found = []
    for name in ("there", "passing"):
        made.execute(f"create or replace temp table seen as from mondrian('{name}', k := 5, {roles})")
        found.append(made.execute("select row_id, typeof(wage), wage from seen order by row_id").fetchall())
    assert found[0] == found[1] and found[0][0][1] == kind
    fewest = made.execute("select min(n) from (select count(*) as n from seen group by wage)").fetchone()[0]
    assert (fewest >= 10) is (kind != "VARCHAR")
    if kind == "INTEGER":
        made.register("frame", made.execute("from there").df())
        made.execute(f"create or replace temp table seen as from muco('frame', 0.2, {roles})")
        made.unregister("frame")
        assert made.execute("select min(n) from (select count(*) as n from seen group by wage)").fetchone()[0] >= 10


def test_counts_of_quasi_identifiers_have_hard_bounds_beside_joined_values(made):
    made.execute("create or replace table labelled as from people")
    for column, role in (("age", "quasi"), ("sex", "quasi"), ("wage", "sensitive")):
        made.execute(f"comment on column labelled.{column} is 'anon: {role}'")
    asked = "select original, low, high, confidence from relative_error(?, 'labelled', 'r')"
    counted, summed = "select count(*) from labelled where age < 40", "select sum(wage) from labelled where age < 40"
    for edges, certain in (("", False), (", sensitive_edges := 10", False), (", sensitive_edges := 1", True)):
        call = f"mondrian('labelled', k := 5{edges})"
        duckdb_anon.release(made, "r", call, replace=True, independent=True)
        original, low, high, confidence = made.execute(asked, [counted]).fetchone()
        assert low <= original <= high and confidence == 1
        for query in (summed, "select count(*) from labelled where wage > 900"):
            assert (made.execute(asked, [query]).fetchone()[3] == 1) is certain


@pytest.mark.parametrize("given", ["", ", sensitive_edges := 10"])
def test_randomized_amounts_keep_their_intervals(made, given):
    roles = "qi := ['age', 'sex'], sensitive := 'wage'"
    made.execute("create or replace table paid as select age, sex, wage % 13 as wage from people")
    call = f"rr_distort('paid', p := 0.8, scope := 'both', {roles}{given})"
    duckdb_anon.release(made, "r", call, replace=True, independent=True)
    asked = f"select estimate, low, high, confidence from relative_error(?, 'paid', 'r', {roles})"
    for query in ("select sum(wage) from paid", "select count(*) from paid where wage > 5"):
        estimate, low, high, confidence = made.execute(asked, [query]).fetchone()
        assert low < estimate < high and confidence == 0.95


def test_intervals_of_joined_amounts_of_samples_hold_the_truth(made):
    made.execute(
        "create or replace table paid as select age, sex, (exp(hash(age, wage) % 1000 / 150))::integer as wage from people"
    )
    roles, inside, truth = "qi := ['age', 'sex'], sensitive := 'wage'", [], made.execute(
        "select sum(wage), avg(wage) from paid").fetchone()  # fmt: skip
    asked = f"select low, high, confidence, note from relative_error(?, 'paid', 'r', {roles})"
    for _ in range(60):
        call = f"composition('paid', 4, rho := 0.5, {roles})"
        duckdb_anon.release(made, "r", call, replace=True, independent=True)
        found = made.execute(asked, ["select sum(wage) as s, avg(wage) as m from paid"]).fetchall()
        assert [row[2] for row in found] == [0.95, 0.95], found
        inside += [low <= value <= high for (low, high, *_), value in zip(found, truth, strict=True)]
    assert sum(inside) / len(inside) >= 0.93
    # a mean of ten values may be on the wrong side of a condition, and rounding moves the sum of all records
    for query in ("select sum(wage) from paid where wage > 9", "select sum(wage * wage) from paid"):
        assert all(row[2] is None and "wage" in row[3] for row in made.execute(asked, [query]).fetchall())
    made.execute("update r set sampling_rate = 1")
    assert [row[2] for row in made.execute(asked, ["select sum(wage) from paid"]).fetchall()] == [None]


@pytest.mark.parametrize("call", ["muco('tall', 0.2, l := 1", "mondrian('tall', k := 5", "anatomy('tall', 2"])
def test_parts_join_rare_values_of_the_whole_table(made, call):
    made.execute(
        "create or replace table tall as select pid * 100 + i as pid, age, sex, wage from visits, range(4) r(i)"
    )
    made.execute("update tall set pid = pid // 2")
    given = f"{call}, qi := ['age', 'sex'], sensitive := 'wage', person := 'pid')"
    for name, more in (("once", {}), ("parted", {"part_rows": 1000})):
        duckdb_anon.release(made, name, given, replace=True, independent=True, **more)
    cell = "unnest(map_keys(wage))" if "anatomy" in call else "wage"
    once, parted = (
        made.execute(f"select list(distinct v order by v) from (select {cell} as v from {name})").fetchone()
        for name in ("once", "parted")
    )
    assert once == parted
