"""A table worked in parts: what holds of its release, what it loses, and what is refused."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csgraph

import duckdb_anon
from duckdb_anon import AnonError, ParameterError
from duckdb_anon.parts import split_planner
from duckdb_anon.parts.source_encoding import Original
from tests.reference.answers import differing
from tests.reference.seeded import seeded_release

pytestmark = [pytest.mark.campaign, pytest.mark.weekly]

QI = "qi := ['age', 'gender', 'education', 'hours_per_week', 'born', 'height']"
CALLS = {
    "k": f"mondrian('people', 3, {QI})",
    "frequency": f"mondrian('people', 3, l := 3, {QI}, sensitive := 'salary')",
    "distinct": f"mondrian('people', 3, l := 4, diversity := 'distinct', {QI}, sensitive := 'salary')",
    "entropy": f"mondrian('people', 3, l := 2, diversity := 'entropy', {QI}, sensitive := 'salary')",
    "recursive": f"mondrian('people', 3, l := 2, c := 2, diversity := 'recursive', {QI}, sensitive := 'salary')",
    "closeness": f"mondrian('people', 3, t := 0.4, {QI}, sensitive := 'salary')",
    "closeness in order": f"mondrian('people', 3, t := 0.3, {QI}, sensitive := 'hours_per_week2', keep := 'salary')",
    "two sensitive columns": f"mondrian('people', 3, l := 2, {QI}, sensitive := ['salary', 'hours_per_week2'])",
    "median": f"mondrian('people', 3, cut := 'median', {QI})",
    "median by spread": f"mondrian('people', 3, cut := 'median', width := 'spread', {QI})",
    "hierarchy": f"mondrian('people', 3, {QI}, hierarchies := {{'education': 'tree'}}, keep := ['kept'])",
    "numbers as names": f"mondrian('people', 3, {QI}, categorical := ['age', 'hours_per_week'])",
    "persons": f"mondrian('people', 3, l := 2, edges := 'tight', {QI}, sensitive := 'salary', person := 'who')",
}


@pytest.fixture(scope="module")
def people():
    """6,000 rows with NULLs, dates, infinities, texts, decimals, and persons with several rows."""
    con = duckdb_anon.connect()
    con.execute("""
        create table people as select * replace (nullif(education, 'doctorate') as education),
            date '1950-01-01' + (age * 37 % 900)::integer as born,
            case when age % 50 = 7 then 'infinity'::double when age % 41 = 3 then null else (age * 13 % 97) / 7 end
                as height,
            hours_per_week % 11 as hours_per_week2, {'a': age} as kept, 'p' || (age * 31 + hours_per_week) % 3000 as who
        from anon_sample('census', 6000, seed := 5)""")
    con.execute("""create table tree as select distinct coalesce(education, '?') as leaf,
        left(coalesce(education, '?'), 1) || '..' as letter, '*' as root from people where education is not null""")
    return con


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_mondrian_loses_little_more_in_parts_than_in_one_call(people, call):
    people.execute(f"create or replace table once as from {call}")
    said = duckdb_anon.release(people, "parts", call, replace=True, part_rows=1600, independent=True)
    assert said.startswith("anon: release of people by mondrian(")
    described = "select column_name, column_type from (describe {})"
    assert people.execute(described.format("parts")).fetchall() == people.execute(described.format("once")).fetchall()
    columns = "age, gender, education, hours_per_week, born, height"
    fewest = f"select min(n), sum(n) from (select count(*) as n from parts group by {columns})"
    smallest, rows = people.execute(fewest).fetchall()[0]
    assert smallest >= 3 and rows == 6000
    lost = [
        people.execute(
            f"select ncp from information_loss('people', '{name}', {QI}) where attribute = '(all)'"
        ).fetchall()[0][0]
        for name in ("parts", "once")
    ]
    assert lost[0] <= 1.2 * lost[1]  # with a hierarchy 1.15 times, of a table of 6,000 rows in parts of 1,600


def sizes_of_parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list to which the rows of each part of a release are added."""
    parts: list[int] = []
    ask = Original.ask

    def listening(self: Original, sql: str) -> object:
        found = ask(self, sql)
        if sql.startswith("select part, rows from"):
            parts.extend(found.column("rows").to_pylist())
        return found

    monkeypatch.setattr(Original, "ask", listening)
    return parts


@pytest.mark.parametrize("name", ["k", "frequency", "median", "hierarchy", "persons"])
def test_parts_that_are_cut_on_a_sample_are_small_enough_and_satisfy_the_requirement(people, monkeypatch, name):
    parts = sizes_of_parts(monkeypatch)
    monkeypatch.setattr(split_planner, "SAMPLE", 900)
    # a part that fails is refused by the method, and the finished release is counted by SQL
    duckdb_anon.release(people, "parts", CALLS[name], replace=True, part_rows=1600, independent=True)
    assert len(parts) > 3
    assert max(parts) <= 1600


def test_a_table_is_cut_at_a_quarter_where_both_halves_would_not_do(con, monkeypatch):
    # most rows of the lower half have one value, so it is not 2-diverse
    con.execute("""create table t as select i // 40 as age, case when i between 900 and 2100 then 'x'
        else 'v' || i % 7 end as s from range(4000) r(i)""")
    parts = sizes_of_parts(monkeypatch)
    call = "mondrian('t', l := 2, qi := ['age'], sensitive := 's')"
    duckdb_anon.release(con, "r", call, part_rows=3200, independent=True)
    assert parts == [3000, 1000]


def test_rows_of_a_part_do_not_stand_together(people):
    duckdb_anon.release(people, "parts", CALLS["k"], replace=True, part_rows=1600, independent=True)
    tied, middle = people.execute("""select corr(rowid, age.lower), avg(case when rowid < 3000 then age.lower end) -
        avg(age.lower) from parts""").fetchall()[0]
    assert abs(tied) < 0.06
    assert abs(middle) < 1.5


def test_seeds_repeat_and_differ_between_parts(people):
    call = f"muco('people', 0.2, l := 2, {QI}, sensitive := 'salary', seed := {2**70})"
    for name in ("first", "again"):
        seeded_release(people, name, call, replace=True, part_rows=2000, independent=True)
    assert people.execute("from first").fetchall() == people.execute("from again").fetchall()


def test_permuted_columns_keep_their_values_and_rows_their_sensitive_ones(people):
    call = f"muco('people', 0.2, l := 2, {QI}, sensitive := 'salary', keep := 'hours_per_week2', sensitive_edges := 1)"
    duckdb_anon.release(people, "m", call, replace=True, part_rows=2000, independent=True)
    for column in ("age", "gender", "education", "hours_per_week", "born", "height"):
        assert differing(people, f"(select {column} from m)", f"(select {column} from people)") == 0
    kept = "(select salary, hours_per_week2 from {})"
    assert differing(people, kept.format("m"), kept.format("people")) == 0
    assert differing(people, "(select age, gender, salary from m)", "(select age, gender, salary from people)") > 1000


@pytest.mark.parametrize("groups", ["table", "sse"])
def test_buckets_are_diverse_and_their_numbers_tell_no_part(people, groups):
    call = f"anatomy('people', 3, groups := '{groups}', {QI}, sensitive := 'gender2', keep := [])"
    people.execute("""create or replace view wide as select *, 'g' || (age * 7 + hours_per_week) % 5 as gender2
        from people""")
    duckdb_anon.release(people, "b", call.replace("'people'", "'wide'"), replace=True, part_rows=1500, independent=True)
    shares = people.execute("""select min(n), max(most * 1.0 / n) from (select bucket, sum(c) as n, max(c) as most from
        (select distinct bucket, unnest(map_values(gender2)) as c, unnest(map_keys(gender2)) as v
        from b) group by bucket)""").fetchall()[0]
    assert shares[0] >= 3
    assert shares[1] <= 1 / 3 + 1e-9
    assert people.execute("select count(distinct bucket) = max(bucket) from b").fetchall() == [(True,)]
    assert people.execute("""select bool_and(bucket >= before)
        from (select bucket, lag(bucket) over (order by rowid) as before from b)""").fetchall() == [(True,)]
    assert differing(people, "(select age, born from b)", "(select age, born from wide)") == 0
    assert abs(people.execute("select corr(bucket, age) from b").fetchall()[0][0]) < 0.06


def test_a_row_number_does_not_tell_who_shares_a_part(con):
    con.execute("create table numbered as select i as n, i as whose, i % 5 as value from range(4000) t(i)")
    swaps = []
    for seed in (2**70, 2**70 + 1):
        call = f"rank_swap('numbered', 5, qi := ['n'], sensitive := 'value', keep := ['whose'], seed := {seed})"
        seeded_release(con, "swapped", call, replace=True, part_rows=2100, independent=True)
        swaps.append(con.execute("select whose, n from swapped").fetchnumpy())
    one, other = (np.concatenate([swap[column] for swap in swaps]) for column in ("whose", "n"))
    pairs = sparse.csr_matrix((np.ones(len(one)), (one, other)), (4000, 4000))
    pieces = np.sort(np.bincount(csgraph.connected_components(pairs, directed=False)[1]))
    assert pieces[-1] > 2000  # the rows of one part at most where the same rows fall to each part again


def test_persons_stay_whole(people):
    people.execute("""create or replace table visits as select 'p' || i as who, i * 7 % 60 as age, i % 2 as sex,
        ['flu', 'cold', 'cancer', 'gout', 'ulcer'][(i * 3 + j * j) % 5 + 1] as disease
        from range(3000) r(i), range(1, 3) s(j)""")
    people.execute("""create or replace table diseases as from (values ('flu', 'lung', '*'), ('cold', 'lung', '*'),
        ('cancer', 'rest', '*'), ('gout', 'rest', '*'), ('ulcer', 'rest', '*')) t(a, b, c)""")
    roles = "qi := ['age', 'sex'], sensitive := 'disease', person := 'who', hierarchies := {'disease': 'diseases'}"
    for name, call in (
        ("lists", "one_to_m_generalize('visits', 3, 2"), ("clusters", "rmr('visits', 3"),
        ("rows", "one_to_m_generalize('visits', 3, 2, explode := true"),
    ):  # fmt: skip
        duckdb_anon.release(people, name, f"{call}, {roles})", replace=True, part_rows=1000, independent=True)
    assert people.execute("select count(*) from lists").fetchall() == [(3000,)]
    fewest = "select min(n) from (select count(*) as n from {} group by {})"
    assert people.execute(fewest.format("lists", "disease")).fetchall()[0][0] >= 3
    assert people.execute(fewest.format("clusters", "age, sex")).fetchall()[0][0] >= 3
    assert people.execute("select count(distinct who), max(who) from rows").fetchall() == [(3000, 3000)]


OTHERS = {
    "randomized": f"rr_distort('people', p := 0.7, {QI}, sensitive := 'salary')",
    "swapped": f"rank_swap('people', 5, {QI})",
    "means": f"microaggregate('people', 4, {QI})",
    "linear": f"muco('people', 0.5, tables := 'linear', l := 2, {QI}, sensitive := 'hours_per_week2')",
    "sliced": f"slicing('people', 2, sensitive_column := 'alone', {QI}, sensitive := 'hours_per_week2')",
    "merged": f"merging('people', 2, fake := 2, {QI}, sensitive := 'hours_per_week2')",
    "sample": f"composition('people', 5, alpha := 0.9, {QI}, sensitive := 'hours_per_week2')",
    "linkable": f"probabilistic('people', 5, {QI}, sensitive := 'hours_per_week2')",
    "hybrid": f"hybrid('people', 5, {QI}, sensitive := 'hours_per_week2')",
}
ALL_ROWS = ("randomized", "swapped", "means", "linear", "sliced", "linkable")


@pytest.mark.parametrize("name", OTHERS)
def test_every_other_method_keeps_its_shape_and_its_k(people, name):
    once = f"create or replace table once as from {OTHERS[name]}"
    people.execute(once)
    duckdb_anon.release(people, "parts", OTHERS[name], replace=True, part_rows=2000, independent=True)
    described = "select column_name, column_type from (describe {})"
    assert people.execute(described.format("parts")).fetchall() == people.execute(described.format("once")).fetchall()
    rows, expected = (people.execute(f"select count(*) from {t}").fetchall()[0][0] for t in ("parts", "once"))
    assert rows == expected if name in ALL_ROWS else abs(rows - expected) < 0.1 * expected
    if name in ("means", "sample", "linkable", "hybrid"):
        columns = [row[0] for row in people.execute("describe parts").fetchall()][:6]
        classes = f"select min(n) from (select count(*) as n from parts group by {', '.join(columns)})"
        assert people.execute(classes).fetchall()[0][0] >= (4 if name == "means" else 5)


def test_a_randomized_release_has_one_channel_and_the_whole_domain(people):
    duckdb_anon.release(people, "r", OTHERS["randomized"], replace=True, part_rows=2000, independent=True)
    told = people.execute("select distinct rr.hours_per_week from r where rr is not null").fetchall()
    assert len(told) == 1
    domain = people.execute("select list(distinct hours_per_week order by hours_per_week) from people").fetchall()[0][0]
    assert sorted(told[0][0]["domain"]) == domain


def test_rules_hold_in_every_part(people):
    people.execute("""create or replace table patients as select age, gender, case when gender = 'male' and ward < 3 then ward + 3 else
        ward end as ward from (select *, age % 7 as ward from people)""")
    rule = "rules := [['gender = ''male''', 'ward < 3']], columns := [['age'], ['gender']]"
    call = f"merging('patients', 2, {rule}, qi := ['age', 'gender'], sensitive := 'ward', fake := 2)"
    duckdb_anon.release(people, "ruled", call, replace=True, part_rows=1600, independent=True)
    counted = "select count(*), count(*) filter (gender.gender = 'male' and ward.ward < 3) from ruled"
    rows, against = people.execute(counted).fetchall()[0]
    assert rows >= 6000
    assert against == 0


@pytest.mark.parametrize(
    ("call", "options", "kind", "said"),
    [
        (f"mondrian('people', 3, {QI})", {"part_rows": 10}, ParameterError, "part_rows := 10 is too few"),
        (f"mondrian('people', 3, {QI})", {"memory": "2 apples"}, ParameterError,
         "memory := '2 apples' is not an amount"),
        (f"mondrian('people', 3, {QI})", {"memory": "100MB"}, ParameterError, "is too little"),
        (f"mondrian('people', 3, {QI})", {"part_rows": 10**8, "memory": "1GB"}, ParameterError, "leaves room for"),
        (f"incognito('people', 3, {QI})", {"part_rows": 2000}, ParameterError, "decides for the table as a whole"),
        (f"rr_distort('people', l := 3, {QI}, sensitive := 'salary')", {"part_rows": 2000}, ParameterError,
         "rr_parameters"),
        (f"merging('people', 2, unseen_pairs := true, {QI}, sensitive := 'hours_per_week2')", {"part_rows": 2000},
         ParameterError, "unseen_pairs := true"),
        (f"mondrian('people', 30000, {QI})", {"part_rows": 2000}, AnonError, "largest k this table can meet is 6000"),
        ("mondrian('people', 3, qi := ['aeg'])", {"part_rows": 2000}, AnonError, "did you mean 'age'"),
        ("mondrian('people', 3, qi := ['age'], row_id := true)", {"part_rows": 2000}, AnonError,
         "row_id := true ties"),
        ("mondrian('people', 3, qi := ['age'], seed := 5)", {"part_rows": 2000}, AnonError, "makes no release"),
    ],
)  # fmt: skip
def test_refusals_say_why_and_leave_nothing(people, call, options, kind, said):
    before = people.execute("select table_name from duckdb_tables() order by all").fetchall()
    with pytest.raises(kind, match=said):
        duckdb_anon.release(people, "nothing", call, **options, independent=True)  # type: ignore[arg-type]
    assert people.execute("select table_name from duckdb_tables() order by all").fetchall() == before
    assert people.execute("select count(*) from duckdb_databases() where database_name = '_anon_parts'").fetchall() == [
        (0,)
    ]
    assert people.execute("select current_setting('memory_limit') <> '50MB'").fetchall() == [(True,)]
