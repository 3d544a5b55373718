"""merging through SQL: the worked example, fakes, rules, columns, messages."""

from collections import Counter

import duckdb
import pytest

from tests.reference.merging import HOSPITAL_A, HOSPITAL_B

ROLES = "qi := ['zip', 'age', 'sex'], sensitive := 'disease'"


@pytest.fixture
def hospitals(con):
    """Tables a and b of the worked example."""
    for name, rows in (("a", HOSPITAL_A), ("b", HOSPITAL_B)):
        con.execute(f"create table {name} (age int, sex varchar, zip int, disease varchar)")
        con.executemany(f"insert into {name} values (?, ?, ?, ?)", rows)
    return con


def test_a_fake_that_a_rule_forbids_has_the_sensitive_value_of_the_row_it_copies(con):
    con.execute("create table t as select ['m', 'f'][i % 2 + 1] as sex, ['a', 'b'][i % 2 + 1] as s from range(40) r(i)")
    rules = "rules := [['sex = ''m''', 's = ''b'''], ['sex = ''f''', 's = ''a''']], columns := [['sex']]"
    call = f"merging('t', 1, qi := ['sex'], sensitive := 's', {rules}, fake := 30, min_bucket := 70, seed := 3)"
    rows = con.execute(f"select sex.sex, s.s, count(*) from {call} group by all order by all").fetchall()
    assert [row[:2] for row in rows] == [("f", "b"), ("m", "a")]
    assert sum(row[2] for row in rows) == 70


def test_only_the_holder_s_row_id_tells_fakes_and_kept_columns_hide_them(con):
    con.execute("create table t as select i // 4 as age, 'd' || i % 4 as disease, i % 20 as kept from range(40) r(i)")
    roles = "qi := ['age'], sensitive := 'disease', keep := ['kept'], columns := [['age']]"
    rows = con.execute(f"select kept, row_id from merging('t', 2, {roles}, fake := 5, row_id := true)").fetchall()
    assert sorted(r for _, r in rows if r is not None) == list(range(40))
    assert sum(r is None for _, r in rows) == 5
    assert all(k is not None for k, _ in rows)


def test_a_nearly_unique_column_is_not_kept_with_fakes(con):
    con.execute("""create table t as select i % 4 as age, 'd' || i % 4 as s, i % 21 as note, i % 20 as ward
        from range(40) r(i)""")
    call = "select count(*) from merging('t', 2, qi := ['age'], sensitive := 's', columns := [['age']], "
    with pytest.raises(duckdb.Error, match=r"merging: insensitive column 'note' is nearly unique.*or say fake := 0"):
        con.execute(call + "keep := ['ward', 'note'])")
    assert con.execute(call + "keep := ['ward'])").fetchone() == (41,)
    assert con.execute(call + "keep := ['note'], fake := 0)").fetchone() == (40,)


def test_per_record_fakes_copy_every_row(hospitals):
    query = f"""select age_sex.age, count(*) from merging('a', 1, {ROLES}, fake := 2, fake_mode := 'per_record',
        columns := [['age', 'sex'], ['zip']]) group by all"""
    found = dict(hospitals.execute(query).fetchall())
    assert found == {age: 3 * n for age, n in Counter(row[0] for row in HOSPITAL_A).items()}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("9", "l = 9 was requested; the largest l this table can meet is"),
        ("2, columns := [['age', 'sx']]", "did you mean 'sex'"),
        ("2, columns := [['age'], ['sex']]", "must name zip exactly once"),
        ("2, columns := [['age', 'sex', 'zip', 'disease']]", "must be alone in its column"),
        ("2, rules := [['weight > 3', 'disease = ''Flu''']]", "must name exactly one of"),
        ("2, rules := [['disease = ''Flu''']]", "one of them on a quasi-identifier"),
    ],
)
def test_errors_name_the_cause(hospitals, arguments, message):
    with pytest.raises(duckdb.Error, match="merging: ") as caught:
        hospitals.execute(f"from merging('a', {arguments}, {ROLES})").fetchall()
    assert message in str(caught.value)
    assert "Gastritis" not in str(caught.value)


def test_rows_of_the_table_that_contradict_a_rule_are_an_error(hospitals):
    rules = "rules := [['age > 0', 'disease = ''Flu''']], columns := [['age', 'sex'], ['zip']]"
    with pytest.raises(duckdb.Error, match="1 rows of the table contradict rules themselves"):
        hospitals.execute(f"from merging('a', 2, {ROLES}, {rules})").fetchall()


def test_rules_that_leave_a_value_to_too_few_rows_are_an_error(con):
    # each value is possible in one row only, so that a release without contradictions would be the table itself
    con.execute("create table t as select i as a, i as s from range(60) r(i)")
    rules = [[f"a = {i}", f"s <> {i}"] for i in range(60)]
    call = f"merging('t', 2, qi := ['a'], sensitive := 's', rules := {rules}, columns := [['a']], min_bucket := 60, "
    call += "sensitive_edges := 1)"
    with pytest.raises(duckdb.Error, match="rows that a rule treats alike; the largest l this table can meet is 1"):
        con.execute(f"from {call}").fetchall()


def test_a_value_is_rare_among_the_rows_to_which_a_rule_leaves_it(con):
    con.execute(
        """create table t as select (hash(i) % 90)::int as age, ['m', 'f'][(hash(i + 7) % 2)::int + 1] as sex,
        case when sex = 'f' and hash(i + 9) % 3 = 0 then 'rare' else 'd' || hash(i + 5) % 6 end as s
        from range(900) r(i)"""
    )
    cut = "cut := 'median', width := 'distinct', columns := [['age', 'sex']], seed := 1"
    call = f"merging('t', 2, qi := ['age', 'sex'], sensitive := 's', {cut}, rules := {{}})"
    women = "count(*) filter (age_sex.sex = 'f')"
    share = f"select count(*) filter (s.s = 'rare') / {women} as share from {{}} group by bucket having {women} > 0"
    worst = f"select max(share) from ({share})"
    bounded = call.format("[['sex = ''m''', 's = ''rare''']]")
    assert con.execute(worst.format(bounded)).fetchone()[0] <= 0.5
    assert con.execute(worst.format(call.format("NULL"))).fetchone()[0] > 0.5


def test_cells_of_large_buckets_are_exchanged_until_no_row_contradicts_a_rule(con):
    con.execute(
        """create table t as select ['a', 'b', 'c'][i % 3 + 1] as job, (i // 3) % 4 as age,
        case when i % 3 = 2 and hash(i) % 3 = 0 then 'rare' else 'd' || i % 5 end as s from range(1200) r(i)"""
    )
    rules = "rules := [['job in (''a'', ''b'')', 's = ''rare''']], columns := [['job'], ['age']], min_bucket := 300"
    con.execute(f"create table r as from merging('t', 1.5, qi := ['job', 'age'], sensitive := 's', {rules}, seed := 1)")
    assert con.execute("select count(*), count(*) filter (s.s = 'rare') > 100 from r").fetchone() == (1201, True)
    assert con.execute("select count(*) from r where s.s = 'rare' and job.job <> 'c'").fetchone() == (0,)
    assert con.execute("select count(distinct job.job) from r where s.s <> 'rare'").fetchone() == (3,)


def test_a_temporary_table_needs_its_columns_named(hospitals):
    hospitals.execute("create temp table hidden as from a")
    with pytest.raises(duckdb.Error, match="Say columns :="):
        hospitals.execute(f"from merging('hidden', 2, {ROLES})").fetchall()
    named = f"from merging('hidden', 2, {ROLES}, columns := [['age', 'sex'], ['zip']])"
    assert len(hospitals.execute(named).fetchall()) == 9


def test_fakes_are_not_marked(hospitals):
    def described(fake: int) -> list[tuple[str, ...]]:
        return hospitals.execute(f"""describe from merging('a', 2, {ROLES}, fake := {fake}, columns := [['age',
            'sex'], ['zip']])""").fetchall()

    assert described(3) == described(0)
    rows = hospitals.execute(f"""select * from merging('a', 2, {ROLES}, fake := 3, columns := [['age', 'sex'],
        ['zip']], seed := 1)""").fetchall()
    assert len(rows) == 11
    assert not any(cell is None for row in rows for cell in row)
