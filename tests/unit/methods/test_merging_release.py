"""merging through SQL: the worked example, fakes, rules, columns, messages."""

from __future__ import annotations

from collections import Counter

import duckdb
import pytest

from tests.reference.merging import FEMALE_DISEASES, HOSPITAL_A, HOSPITAL_B

ROLES = "qi := ['zip', 'age', 'sex'], sensitive := 'disease'"
EXAMPLE = (
    f"{ROLES}, min_bucket := 4, cut := 'median', width := 'distinct', fake := 0, columns := [['age', 'sex'], ['zip']], "
    "force_k := ['zip'], edges := 'tight', "
    "rules := [['sex = ''M''', 'disease in (''Ovarian Cancer'', ''Breast Cancer'')']]"
)


@pytest.fixture
def hospitals(con: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Tables a and b of the worked example."""
    for name, rows in (("a", HOSPITAL_A), ("b", HOSPITAL_B)):
        con.execute(f"create table {name} (age int, sex varchar, zip int, disease varchar)")
        con.executemany(f"insert into {name} values (?, ?, ?, ?)", rows)
    return con


def _cells(con: duckdb.DuckDBPyConnection) -> list[tuple[Counter[str], Counter[str], Counter[str]]]:
    """Contents of the cells of each bucket of release r, the bucket with age 22 first."""
    rows = con.execute("select bucket, age_sex, zip.zip, disease.disease from r").fetchall()

    def span(box: dict[str, int]) -> str:
        return str(box["lower"]) if box["lower"] == box["upper"] else f"{box['lower']}-{box['upper']}"

    buckets: dict[int, tuple[Counter[str], Counter[str], Counter[str]]] = {}
    for bucket, pair, zips, disease in rows:
        sex = pair["sex"][0] if len(pair["sex"]) == 1 else "*"
        cells = buckets.setdefault(bucket, (Counter(), Counter(), Counter()))
        for cell, text in zip(cells, (f"({span(pair['age'])}, {sex})", span(zips), disease), strict=True):
            cell[text] += 1
    return sorted(buckets.values(), key=lambda cells: -max("(22" in text for text in cells[0]))


def _violating_seed(con: duckdb.DuckDBPyConnection, table: str) -> None:
    """Make release r with a permutation that does print a man with a disease of women."""
    for seed in range(40):
        con.execute(f"create or replace table r as from merging('{table}', 2, {EXAMPLE}, seed := {seed})")
        if con.execute("select max(len(age_sex.sex)) from r").fetchone() == (2,):
            return
    pytest.fail("no permutation violated the rule")


def test_hospital_a_gives_the_cells_of_table_6(hospitals: duckdb.DuckDBPyConnection) -> None:
    _violating_seed(hospitals, "a")
    first, second = _cells(hospitals)
    assert first == (
        Counter({"(22, *)": 2, "(33-52, *)": 2}),
        Counter({"47905": 2, "47901": 2}),
        Counter(["Ovarian Cancer", "Gastritis", "Flu", "Breast Cancer"]),
    )
    assert second == (
        Counter({"(60, F)": 2, "(54, M)": 1, "(64, F)": 1}),
        Counter({"47308": 2, "47902": 2}),
        Counter({"Fever": 2, "Dyspepsia": 1, "Cancer": 1}),
    )


def test_hospital_b_gives_the_cells_of_table_7(hospitals: duckdb.DuckDBPyConnection) -> None:
    _violating_seed(hospitals, "b")
    first, second = _cells(hospitals)
    # 4790* and 4730* of the paper are the intervals 47903-47907 and 47308-47309
    assert first == (
        Counter({"(22, *)": 2, "(33-58, *)": 2}),
        Counter({"47903-47907": 2, "47905": 2}),
        Counter(["Blood Cancer", "Gastritis", "Flu", "Breast Cancer"]),
    )
    assert second == (
        Counter({"(65, F)": 2, "(30, M)": 1, "(60, F)": 1}),
        Counter({"47308-47309": 2, "47902": 2}),
        Counter(["Flu", "Fever", "Cancer", "Dyspepsia"]),
    )


def test_no_printed_row_says_a_man_has_a_disease_of_women(hospitals: duckdb.DuckDBPyConnection) -> None:
    for seed in range(10):
        hospitals.execute(f"create or replace table r as from merging('a', 2, {EXAMPLE}, seed := {seed})")
        rows = hospitals.execute("select age_sex.sex, disease.disease from r").fetchall()
        assert not any(sex == ["M"] and disease in FEMALE_DISEASES for sex, disease in rows)


@pytest.mark.campaign
def test_trying_permutations_first_needs_fewer_generalized_cells(hospitals: duckdb.DuckDBPyConnection) -> None:
    def generalized(extra: str) -> int:
        wide = 0
        for seed in range(30):
            query = f"select count(*) from merging('a', 2, {EXAMPLE}, seed := {seed}{extra}) where len(age_sex.sex) > 1"
            wide += hospitals.execute(query).fetchall()[0][0]
        return wide

    assert generalized(", try_repermute := 20") < generalized("") / 2


def test_fakes_are_not_marked(hospitals: duckdb.DuckDBPyConnection) -> None:
    def described(fake: int) -> list[tuple[str, ...]]:
        return hospitals.execute(
            f"describe from merging('a', 2, {ROLES}, fake := {fake}, columns := [['age', 'sex'], ['zip']])"
        ).fetchall()

    assert described(3) == described(0)
    rows = hospitals.execute(
        f"select * from merging('a', 2, {ROLES}, fake := 3, columns := [['age', 'sex'], ['zip']], seed := 1)"
    ).fetchall()
    assert len(rows) == 11
    assert not any(cell is None for row in rows for cell in row)


def test_only_the_holder_s_row_id_tells_fakes_and_kept_columns_hide_them(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create table t as select i // 4 as age, 'd' || i % 4 as disease, i as kept from range(40) r(i)")
    roles = "qi := ['age'], sensitive := 'disease', keep := ['kept'], columns := [['age']]"
    rows = con.execute(f"select kept, row_id from merging('t', 2, {roles}, fake := 5, row_id := true)").fetchall()
    assert sorted(r for _, r in rows if r is not None) == list(range(40))
    assert sum(r is None for _, r in rows) == 5
    assert all(k is not None for k, _ in rows)


def test_per_record_fakes_copy_every_row(hospitals: duckdb.DuckDBPyConnection) -> None:
    query = f"""select age_sex.age, count(*) from merging('a', 1, {ROLES}, fake := 2, fake_mode := 'per_record',
        columns := [['age', 'sex'], ['zip']]) group by all"""
    found = dict(hospitals.execute(query).fetchall())
    assert found == {age: 3 * n for age, n in Counter(row[0] for row in HOSPITAL_A).items()}


def test_a_seed_repeats_the_release_in_whatever_order_rows_are_stored(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create table t as select i % 7 as a, i % 3 as b, 'd' || (i * 5) % 8 as s from range(200) r(i)")
    con.execute("create table turned as from t order by hash(a, b, s)")
    call = "from merging('{}', 2, qi := ['a', 'b'], sensitive := 's', columns := [['a'], ['b']], seed := 4)"
    assert con.execute(call.format("t")).fetchall() == con.execute(call.format("turned")).fetchall()


def test_columns_are_found_by_association(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        """create table t as select i % 5 as a, hash(i) % 4 as b, i % 5 * 10 as a_too, 'd' || i % 6 as s
        from range(300) r(i)"""
    )
    roles = "qi := ['a', 'b', 'a_too'], sensitive := 's'"
    names = [row[0] for row in con.execute(f"describe from merging('t', 2, {roles})").fetchall()]
    assert names == ["bucket", "a_a_too", "b", "s"]
    wide = [row[0] for row in con.execute(f"describe from merging('t', 2, {roles}, column_count := 9)").fetchall()]
    assert wide == ["bucket", "a", "b", "a_too", "s"]


def test_values_keep_their_types(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create type mood as enum ('low', 'high')")
    con.execute(
        """create table t as select date '2020-01-01' + (i % 9)::int as born, (i % 4 / 10)::decimal(4, 1) as dose,
        ['low', 'high'][i % 2 + 1]::mood as m, 'd' || i % 5 as s from range(60) r(i)"""
    )
    roles = "qi := ['born', 'dose', 'm'], sensitive := 's', columns := [['born', 'm'], ['dose']]"
    types = dict(row[:2] for row in con.execute(f"describe from merging('t', 2, {roles})").fetchall())
    assert types["born_m"] == "STRUCT(born DATE, m VARCHAR)"
    assert types["dose"] == "STRUCT(dose DECIMAL(4,1))"
    boxed = con.execute(f"describe from merging('t', 2, {roles}, force_k := ['born'])").fetchall()
    assert boxed[1][1] == "STRUCT(born STRUCT(lower DATE, upper DATE), m VARCHAR[])"


def test_forced_columns_show_every_combination_k_times(con: duckdb.DuckDBPyConnection) -> None:
    con.execute("create table t as select (i * 17) % 60 as age, i % 2 as sex, 'd' || i % 7 as s from range(140) r(i)")
    query = """select min(n) from (select bucket, age_sex, count(*) as n from merging('t', 2, qi := ['age', 'sex'],
        sensitive := 's', columns := [['age', 'sex']], force_k := ['age'], k := 3, min_bucket := 6) group by all)"""
    assert con.execute(query).fetchone()[0] >= 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("9", "l = 9 is asked, the largest l this table can meet is"),
        ("2, columns := [['age', 'sx']]", "did you mean 'sex'"),
        ("2, columns := [['age'], ['sex']]", "must name zip exactly once"),
        ("2, columns := [['age', 'sex', 'zip', 'disease']]", "must be alone in its column"),
        ("2, columns := 'age'", "must be a list of lists"),
        ("2, rules := [['weight > 3', 'disease = ''Flu''']]", "must name exactly one of"),
        ("2, rules := [['disease = ''Flu''']]", "one of them on a quasi-identifier"),
        ("2, rules := 'sex = 1'", "must be a list of rules"),
        ("2, force_k := ['zp'], columns := [['age', 'sex'], ['zip']]", "did you mean 'zip'"),
        ("2, fake_mode := 'totl'", "did you mean 'total'"),
        ("0.5", "l := 0.5 is out of range, it must be at least 1; no sensitive value has"),
    ],
)
def test_errors_name_the_cause(hospitals: duckdb.DuckDBPyConnection, arguments: str, message: str) -> None:
    with pytest.raises(duckdb.Error, match="merging: ") as caught:
        hospitals.execute(f"from merging('a', {arguments}, {ROLES})").fetchall()
    assert message in str(caught.value)
    assert "Gastritis" not in str(caught.value)


def test_a_rule_that_forbids_a_sensitive_value_outright_is_an_error(hospitals: duckdb.DuckDBPyConnection) -> None:
    rules = "rules := [['age > 0', 'disease = ''Flu''']], columns := [['age', 'sex'], ['zip']]"
    with pytest.raises(duckdb.Error, match="forbidden by rules := with every value of age"):
        hospitals.execute(f"from merging('a', 2, {ROLES}, {rules})").fetchall()


def test_rows_of_large_buckets_are_swapped_until_no_cell_needs_generalizing(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        """create table t as select ['a', 'b', 'c'][i % 3 + 1] as job, (i // 3) % 4 as age,
        case when i % 3 = 2 and hash(i) % 3 = 0 then 'rare' else 'd' || i % 5 end as s from range(1200) r(i)"""
    )
    rules = "rules := [['job in (''a'', ''b'')', 's = ''rare''']], columns := [['job'], ['age']], min_bucket := 300"
    call = f"merging('t', 1.5, qi := ['job', 'age'], sensitive := 's', {rules}, seed := 1, try_repermute := "
    wide = f"select count(*) filter (len(job.job) > 1) from {call}"
    assert con.execute(f"{wide}0)").fetchone()[0] > 500
    con.execute(f"create table r as from {call}40)")
    assert con.execute("select max(len(job.job)), count(*) from r").fetchone() == (1, 1201)
    assert con.execute("select count(*) from r where s.s = 'rare' and job.job <> ['c']").fetchone() == (0,)


def test_rules_on_one_column_count_together(con: duckdb.DuckDBPyConnection) -> None:
    con.execute(
        """create table t as select ['a', 'b', 'c'][i % 3 + 1] as job, (i // 3) % 4 as age,
        case when i % 3 = 2 and i % 2 = 0 then 'rare' else 'd' || i % 5 end as s from range(120) r(i)"""
    )
    rules = "rules := [['job = ''a''', 's = ''rare'''], ['job = ''b''', 's = ''rare''']]"
    for seed in range(5):
        impossible, rare = con.execute(
            f"""select count(*) filter (not list_contains(job.job, 'c')), count(*) from merging('t', 1.5,
            qi := ['job', 'age'], sensitive := 's', {rules}, columns := [['job'], ['age']], min_bucket := 12,
            seed := {seed}) where s.s = 'rare'"""
        ).fetchone()
        assert impossible == 0
        assert rare >= 20


def test_a_temporary_table_needs_its_columns_named(hospitals: duckdb.DuckDBPyConnection) -> None:
    hospitals.execute("create temp table hidden as from a")
    with pytest.raises(duckdb.Error, match="say columns :="):
        hospitals.execute(f"from merging('hidden', 2, {ROLES})").fetchall()
    named = f"from merging('hidden', 2, {ROLES}, columns := [['age', 'sex'], ['zip']])"
    assert len(hospitals.execute(named).fetchall()) == 9
