"""sql/risk.sql in a plain DuckDB connection, as the stock shell would read it."""

import random
import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.reference import diversity
from tests.unit.sql.conftest import SQL

HOSPITAL = """
    create table hospital(zip varchar, age varchar, sex varchar, disease varchar);
    insert into hospital values
        ('52001', '22', '*', 'Fever'), ('52001', '22', '*', 'Flu'), ('52002', '33-52', '*', 'Ulcer'),
        ('52002', '33-52', '*', 'Cancer'), ('52003', '54-60', '*', 'Gout'), ('52003', '54-60', '*', 'Fever'),
        ('52004', '60-64', 'F', 'Asthma'), ('52004', '60-64', 'F', 'Angina');
"""


def _random_rows(seed: int, values: list[Any], rows: int = 60) -> list[tuple[Any, ...]]:
    pick = random.Random(seed)
    return [(pick.choice([1, 2, None]), pick.choice(["a", "b", None]), pick.choice(values)) for _ in range(rows)]


def _table(con: duckdb.DuckDBPyConnection, rows: list[tuple[Any, ...]], kind: str) -> None:
    con.execute(f"create or replace table t(a integer, b varchar, s {kind})")
    con.executemany("insert into t values (?, ?, ?)", rows)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("least", [1, 2, 3, 5])
def test_k_and_l_equal_the_obvious_version(plain, seed, least):
    rows = _random_rows(seed, ["x", "y", "z", None])
    _table(plain, rows, "varchar")
    assert plain.execute("from k_anonymity('t', ['a', 'b'])").fetchone() == (diversity.k(rows),)
    measured = dict(plain.execute(f"from l_diversity('t', ['a', 'b'], 's', l := {least})").fetchall())
    assert measured == pytest.approx(diversity.levels(rows, least))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["integer", "double", "decimal(9, 2)"])
def test_ordered_and_equal_distance_equal_the_obvious_version(plain, seed, kind):
    rows = _random_rows(seed, [1, 5, 7, 7, 7, 11, 20, None], rows=40)
    _table(plain, rows, kind)
    for distance in ("ordered", "equal"):
        found = plain.execute(f"from t_closeness('t', ['a', 'b'], 's', distance := '{distance}')").fetchone()
        assert found == (pytest.approx(diversity.t(rows, distance), abs=1e-12), distance)
    assert plain.execute("from t_closeness('t', ['a', 'b'], 's')").fetchone()[1] == "ordered"


@pytest.mark.parametrize("seed", range(3))
def test_tree_distance_equals_moving_mass_up_the_tree(plain, seed):
    paths = [(leaf, leaf[0].upper(), "x" if leaf[0] == "a" else "y", "*") for leaf in ("a1", "a2", "b1", "b2", "c1")]
    rows = _random_rows(seed, [path[0] for path in paths])
    _table(plain, rows, "varchar")
    plain.execute("create table tree(l0 varchar, l1 varchar, l2 varchar, l3 varchar)")
    plain.executemany("insert into tree values (?, ?, ?, ?)", paths)
    found = plain.execute("from t_closeness('t', ['a', 'b'], 's', hierarchy := 'tree')").fetchone()
    assert found == (pytest.approx(diversity.t(rows, "hierarchy", paths)), "hierarchy")


def test_worked_distances_of_the_t_closeness_paper(plain):
    plain.execute("create table pay as select 3000 + 1000 * i as pay, (i in (3, 5, 8))::int as g from range(9) t(i)")
    plain.execute("create table low as select pay, (pay < 6000)::int as g from pay")
    measure = "select round(t, 4) from t_closeness('{}', ['g'], 'pay', distance := '{}')"
    assert plain.execute(measure.format("low", "ordered")).fetchone() == (0.375,)
    assert plain.execute(measure.format("low", "equal")).fetchone() == (0.6667,)
    assert plain.execute(measure.format("pay", "ordered")).fetchone() == (0.1667,)


def test_hospital_classes_reach_two_of_everything_and_three_quarters(plain):
    plain.execute(HOSPITAL)
    qi = "['zip', 'age', 'sex']"
    assert plain.execute(f"from k_anonymity('hospital', {qi})").fetchone() == (2,)
    levels = dict(plain.execute(f"from l_diversity('hospital', {qi}, 'disease')").fetchall())
    assert levels == pytest.approx({"distinct": 2, "frequency": 2, "entropy": 2, "recursive": 1})
    assert plain.execute(f"from t_closeness('hospital', {qi}, 'disease')").fetchone() == (0.75, "equal")
    risk = plain.execute(f"from reidentification_risk('hospital', {qi}, threshold := 0.4)").fetchone()
    assert risk == (8, 0.5, 0.5, 0.5, 1.0, 0, 4.0)
    sizes = plain.execute(f"from class_statistics('hospital', {qi})").fetchone()
    assert sizes == (8, 4, 2, 2.0, 2, 16.0)


def test_places_of_numbers_in_buckets_follow_their_value(plain):
    plain.execute("""
        create table r as select i as bucket,
            case i when 0 then map {9: 1::bigint, 10: 1} else map {100: 2::bigint} end as pay from range(2) t(i)
    """)
    rows = [(0, 9), (0, 10), (1, 100), (1, 100)]
    weighted = plain.execute("from t_closeness('r', ['bucket'], 'pay')").fetchone()
    assert weighted == (pytest.approx(diversity.t(rows, "ordered")), "ordered")


@pytest.mark.parametrize("call", ["k_anonymity('t', ['a'])", "class_statistics('t', ['a'])"])
def test_columns_are_case_insensitive_and_quoted(plain, call):
    plain.execute('create table t as select i as "A", i as "q""1, x" from range(3) t(i)')
    assert plain.execute(f"from {call}").fetchone() is not None
    assert plain.execute("""from k_anonymity('t', ['q"1, x'])""").fetchone() == (1,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("k_anonymity('t', ['aa'])", "k_anonymity: there is no column 'aa'. Did you mean 'a'"),
        ("k_anonymity('t')", "no quasi-identifier is named"), ("k_anonymity('t', [])", "no quasi-identifier is named"),
        ("k_anonymity('t', ['a', NULL])", "qi holds a NULL"),
        ("equivalence_classes('t', [])", "no quasi-identifier is named"), ("k_anonymity('nowhere', ['a'])", "nowhere"),
        ("l_diversity('t', ['a'])", "no sensitive column is named"),
        ("k_anonymity('t', ['a', 'ss'])", "there is no column 'ss'. Did you mean 's'"),
        ("k_anonymity('nobody', ['aa'])", "there is no column 'aa'"),
        ("equivalence_classes('nobody', ['aa'])", "there is no column 'aa'"),
        ("k_anonymity('t', ['a'], person := 'pid')", "there is no column 'pid'"),
        ("k_anonymity('t', ['a'], person := 's', sample_weights := 's')", "cannot be combined"),
        ("k_anonymity('t', ['a'], sample_weights := 'z')", "must be numbers above 0"),
        ("k_anonymity('t', ['a'], missing := 'any')", "missing must be 'value' or 'wildcard', got 'any'"),
        ("k_anonymity('t', ['a'], missing := 'wildcard', person := 's')", "counts records; leave person out"),
        ("k_map('t', '(select 1 as b)', ['a'])", "k_map: there is no column 'a'. Did you mean 'b'"),
        ("k_marginal('t', 't', ['a', 'gg'])", "k_marginal: there is no column 'gg'. Did you mean 'g'"),
        ("l_diversity('t', ['a'], 'b')", "l_diversity: there is no column 'b'"),
        ("l_diversity('t', ['a'], 'g')", "is a STRUCT"),
        ("t_closeness('t', ['a'], 's', distance := 'euclid')", "must be 'equal', 'ordered'"),
        ("t_closeness('t', ['a'], 's', distance := 'hierarchy')", "needs a hierarchy table"),
        ("t_closeness('t', ['a'], 's', distance := 'equal', hierarchy := 't')", "with a hierarchy table"),
        ("t_closeness('t', ['a'], 's', hierarchy := '(select 7, 8)')", "not a leaf of the hierarchy"),
        ("t_closeness('t', ['a'], 's', hierarchy := '(select 1, NULL, 2)')", "has a NULL"),
        ("t_closeness('t', ['a'], 's', hierarchy := '(values (1, 2, 3), (1, 3, 3))')", "lists a leaf twice"),
        ("reidentification_risk('t', ['a'], threshold := 2)", r"must lie in \[0, 1\]"),
    ],
)  # fmt: skip
def test_bad_arguments_are_errors(plain, call, message):
    plain.execute("create table t as select 1 as a, 1 as s, 0 as z, {x: 1, y: 2} as g")
    plain.execute("create table nobody as from t limit 0")
    with pytest.raises(duckdb.Error, match=message):
        plain.execute(f"from {call}").fetchall()


def test_an_empty_table_meets_everything(plain):
    plain.execute("create table t(a integer, s integer)")
    inf = float("inf")
    assert plain.execute("from k_anonymity('t', ['a'])").fetchone() == (inf,)
    assert plain.execute("select value from l_diversity('t', ['a'], 's')").fetchall() == [(inf,)] * 3 + [(0.0,)]
    assert plain.execute("from t_closeness('t', ['a'], 's')").fetchone() == (0.0, "ordered")
    assert plain.execute("from reidentification_risk('t', ['a'])").fetchone() == (0, 0.0, 0.0, 0.0, 0.0, 0, 0.0)
    assert plain.execute("from class_statistics('t', ['a'])").fetchone() == (0, 0, 0, 0.0, 0, 0.0)


def test_sources_may_be_selects_files_and_common_table_expressions(plain, tmp_path):
    file = tmp_path / "it's.parquet"
    plain.execute(f"copy (select i // 2 as a from range(4) t(i)) to '{str(file).replace(chr(39), chr(39) * 2)}'")
    assert plain.execute("from k_anonymity($f, ['a'])", {"f": str(file)}).fetchone() == (2,)
    assert plain.execute("from k_anonymity('(select 1 as a)', ['a'])").fetchone() == (1,)
    assert plain.execute("with c as (select 1 as x from range(3)) from k_anonymity('c', ['x'])").fetchone() == (3,)


@pytest.mark.parametrize(
    "call",
    [
        "k_anonymity('{t}', ['a', 'g'])", "k_anonymity('{t}', ['a', 'g'], person := 'person')",
        "l_diversity('{t}', ['a', 'g'], 's', person := 'person')", "t_closeness('{t}', ['a', 'g'], 's')",
        "reidentification_risk('{t}', ['a', 'g'], person := 'person')", "class_statistics('{t}', ['a', 'g'])",
    ],
)  # fmt: skip
def test_columns_may_be_called_as_those_of_a_step(plain, call):
    for table, names in (("t", ["_q1", "_q2", "_p", "_v", "_n", "_c"]), ("u", ["q", "r", "p", "v", "n", "c"])):
        others = ", ".join(f'i % {3 + k} as "{name}"' for k, name in enumerate(names))
        plain.execute(f"""create table {table} as select i % 3 as a, i % 2 as g, i % 4 as s, i // 4 as person, {others}
            from range(60) as r(i)""")
    told = [plain.execute(f"from {call.format(t=table)}").fetchall() for table in ("t", "u")]
    assert told[0] == told[1]


def test_the_entropy_of_one_value_is_exactly_one(con):
    con.execute("create table classes as select i as a, 'x' as s from range(1, 80) t(i), range(i)")
    levels = dict(con.execute("from l_diversity('classes', 'a', 's')").fetchall())
    assert levels["entropy"] == 1


NAMES = sorted({
    name
    for file in ("risk", "risk_of_persons", "utility")
    for name in re.findall(r"(?:^ +|with )([a-z]\w*) as (?:materialized )?\(", (SQL / f"{file}.sql").read_text(), re.MULTILINE)
})  # fmt: skip
OF_ANY_NAME = (
    "record_risk('{0}', ['a'], household := 'p')", "reidentification_risk('{0}', ['a'], household := 'p')",
    "k_anonymity('{0}', ['a'], person := 'p')", "k_anonymity('{0}', ['a'], missing := 'wildcard')",
    "l_diversity('{0}', ['a'], 's', person := 'p')", "l_diversity('{0}', ['a'], 's')", "t_closeness('{0}', ['a'], 's')",
    "kl_diversity('{0}', ['a'], 's', person := 'p')", "k_map('{0}', '{0}', ['a'])", "k_marginal('{0}', '{0}', ['a', 's'])",
)  # fmt: skip


def test_a_table_may_have_the_name_of_a_step(plain):
    plain.execute("create table t as select i % 4 as a, i // 2 as p, i % 5 as s from range(16) r(i)")
    found = {call: plain.execute(f"from {call.format('t')} order by all").fetchall() for call in OF_ANY_NAME}
    assert len(NAMES) > 20
    for name in NAMES:
        plain.execute(f'create table "{name}" as from t')
        for call, rows in found.items():
            again = plain.execute(f"from {call.format(name)} order by all").fetchall()
            assert [pytest.approx(row) for row in rows] == again, (name, call)


# example published with sdcMicro's tests of freqCalc: key variables and sampling weights of eight records
SDCMICRO = """
    create table survey as select unnest([2, 3, 2, 2, 3, 3, 1, 2]) as a, unnest([3, 3, 3, 3, 3, 3, 4, 3]) as b,
        unnest([1, 3, NULL, 2, 1, 1, NULL, 1]) as c, unnest([18, 45.5, 39, 17, 92, 8, 123.5, 51]) as w
"""
FREQUENCIES = [3, 1, 4, 2, 2, 2, 1, 3]
POPULATION = [108, 45.5, 125, 56, 100, 100, 123.5, 108]


def test_a_missing_value_matches_anything_as_in_sdcmicro(plain):
    plain.execute(SDCMICRO)
    more = "sample_weights := 'w', missing := 'wildcard'"
    of_class = plain.execute(f"""select c.class_size, c.population_size from survey join equivalence_classes('survey', ['a', 'b', 'c'], {more})
        as c on (survey.a, survey.b, survey.c) is not distinct from (c.a, c.b, c.c) order by survey.rowid""").fetchall()
    assert of_class == list(zip(FREQUENCIES, POPULATION, strict=True))
    assert plain.execute(f"from k_anonymity('survey', ['a', 'b', 'c'], {more})").fetchone() == (min(POPULATION),)
    assert plain.execute("from k_anonymity('survey', ['a', 'b', 'c'], missing := 'wildcard')").fetchone() == (1,)
    risk = plain.execute("""select rows, prosecutor, marketer, sample_uniques from
        reidentification_risk('survey', ['a', 'b', 'c'], missing := 'wildcard')""").fetchone()
    assert risk == (8, 1.0, pytest.approx(sum(1 / f for f in FREQUENCIES) / 8), 2)


def test_the_risk_of_each_record_is_that_of_sdcmicro(plain):
    """Individual risks that sdcMicro's own tests expect of this sample, without and with missing values."""
    plain.execute(SDCMICRO)
    plain.execute("create table complete as select * replace (coalesce(c, 1) as c) from survey")
    plain.execute("create table gaps as select * replace (if(rowid = 7, null, a) as a) from survey")
    for table, missing, expected in (
        ("complete", "value", [
            0.01355297, 0.08579129, 0.01355297, 0.17707583, 0.01877883, 0.01877883, 0.03931625, 0.01355297,
        ]),
        ("gaps", "wildcard", [
            0.013552968, 0.085791288, 0.010504889, 0.032466112, 0.009756889, 0.009756889, 0.039316254, 0.005962551,
        ]),
    ):  # fmt: skip
        options = f"['a', 'b', 'c'], sample_weights := 'w', missing := '{missing}'"
        risks = dict(plain.execute(f"select w, journalist from record_risk('{table}', {options})").fetchall())
        order = [w for (w,) in plain.execute(f"select w from {table} order by rowid").fetchall()]
        assert [risks[w] for w in order] == pytest.approx(expected, abs=5e-9)
        total = plain.execute(f"select expected, rows * marketer from reidentification_risk('{table}', {options})")
        assert total.fetchone() == pytest.approx((sum(expected), sum(expected)), abs=1e-7)


def test_the_risk_of_each_record_without_weights_is_that_of_its_class(plain):
    plain.execute("""create table t as select i as id, if(i < 3, 7, null) as a, i // 2 as p, {f: i % 2} as s
        from range(5) r(i)""")
    found = plain.execute("from record_risk('t', ['A']) order by id").df()
    assert list(found) == ["id", "a", "p", "s", "class_size", "prosecutor", "journalist"]
    assert found["class_size"].tolist() == [3, 3, 3, 2, 2]
    assert found["prosecutor"].tolist() == found["journalist"].tolist() == [1 / 3, 1 / 3, 1 / 3, 1 / 2, 1 / 2]
    of_persons = plain.execute("select class_size from record_risk('t', ['a'], person := 'p') order by id").fetchall()
    assert of_persons == [(2,)] * 5
    with pytest.raises(duckdb.Error, match=r"there is no column 'aa'.*Did you mean 'a'"):
        plain.execute("from record_risk('t', ['aa'])").fetchall()


@pytest.mark.parametrize("seed", range(3))
def test_wildcards_equal_comparing_every_two_records(plain, seed):
    pick = random.Random(seed)
    rows = [tuple(pick.choice([1, 2, None]) for _ in range(3)) for _ in range(40)]
    plain.execute("create table t(a integer, b integer, c integer)")
    plain.executemany("insert into t values (?, ?, ?)", rows)
    matching = [
        sum(all(x is None or y is None or x == y for x, y in zip(mine, theirs, strict=True)) for theirs in rows)
        for mine in rows
    ]
    found = plain.execute("""select prosecutor, marketer, sample_uniques from reidentification_risk('t', ['a', 'b', 'c'],
        missing := 'wildcard')""").fetchone()
    assert found == (
        pytest.approx(1 / min(matching)), pytest.approx(sum(1 / n for n in matching) / 40), matching.count(1),
    )  # fmt: skip


def test_journalist_risk_is_that_of_the_population_and_prosecutor_risk_that_of_the_sample(plain):
    plain.execute("create table t as select unnest([1, 2, 2]) as a, unnest([1, 50, 50]) as w")
    risk = plain.execute("""select prosecutor, journalist, marketer
        from reidentification_risk('t', ['a'], sample_weights := 'w')""").fetchone()
    assert risk[:2] == (1, 1)
    of_two = plain.execute("""select journalist from reidentification_risk('(from t where a = 2)', ['a'],
        sample_weights := 'w')""")
    (second,) = of_two.fetchone()
    assert 1 / 100 < second < 1 / 50
    assert risk[2] == pytest.approx((1 + 2 * second) / 3)


def test_plain_k_map_counts_the_population(plain):
    plain.execute("create table t as select unnest([1, 2, 2, NULL, 9]) as a")
    plain.execute("create table register as select unnest([1, 1, 2, NULL, NULL, NULL, 5]) as a")
    assert plain.execute("from k_map('t', 'register', ['a'])").fetchone() == (
        0, 5, 7, 1.0, pytest.approx((1 / 2 + 2 + 1 / 3) / 5), 1,
    )  # fmt: skip


def test_plain_k_marginal_equals_the_packages(con):
    con.execute("create table o as select i % 4 as a, i % 3 as b, 'x' || i % 5 as c, i % 2 as d from range(200) t(i)")
    con.execute("create table r as select d, a, c, (a + b) % 3 as b from o where hash(a, b, c) % 3 > 0")
    columns = "['a', 'b', 'c', 'd']"
    wanted = con.execute(f"select k, marginals, score, worst_score from k_marginal('o', 'r', columns := {columns})")
    for k, marginals, score, worst in wanted.fetchall():
        found = con.execute(f"""select marginals, score, worst_score
            from _anon_k_marginal('o', 'r', {columns}, k := {k})""").fetchone()
        assert found == (marginals, pytest.approx(score), pytest.approx(worst))


ARX_LEVELS = {
    "sex": 1, "age": 4, "race": 1, "marital-status": 1, "education": 3, "native-country": 2, "workclass": 2,
    "salary-class": 1,
}  # fmt: skip


def recoded_adult(folder: Path, levels: dict[str, int]) -> str:
    """SELECT of ARX's adult table with each column at a level of its hierarchy."""
    shown = ", ".join(f'h{k}.column{level} as "{name}"' for k, (name, level) in enumerate(levels.items()))
    read = "read_csv('{}', delim = ';', header = {}, all_varchar = true)"
    trees = " ".join(
        f'join {read.format(folder / f"adult_hierarchy_{name}.csv", "false")} h{k} on t."{name}" = h{k}.column0'
        for k, name in enumerate(levels)
    )
    return f"select {shown}, t.occupation as job from {read.format(folder / 'adult.csv', 'true')} t {trees}"


def test_figures_of_arx_on_its_adult_table(plain, shared_data):
    """Discernibility and t (equal distance) that ARX's own tests expect, and a node of which it reports k = 5."""
    plain.execute(f"create table adult as {recoded_adult(shared_data / 'arx', ARX_LEVELS)}")
    qi = list(ARX_LEVELS)
    found = plain.execute(f"select rows, discernibility from class_statistics('adult', {qi})").fetchone()
    assert found == (30162, 456_853_172)
    t = plain.execute(f"select t from t_closeness('adult', {qi}, 'job', distance := 'equal')").fetchone()
    assert t[0] == pytest.approx(0.1315, abs=5e-5)
    levels = ARX_LEVELS | {"age": 2, "occupation": 1}
    plain.execute(f"create or replace table adult as {recoded_adult(shared_data / 'arx', levels)}")
    assert plain.execute(f"from k_anonymity('adult', {list(levels)})").fetchone() == (5,)


def test_uniques_are_the_classes_of_one_record(plain):
    plain.execute("create table t as select unnest([1, 2, 2, 3]) as a, unnest(['x', 'y', 'y', NULL]) as b")
    assert plain.execute("from uniques('t', ['a', 'b']) order by a").fetchall() == [(1, "x"), (3, None)]
