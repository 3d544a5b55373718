"""Population risk: against plain loops, and against populations that are known."""

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad

from duckdb_anon.kernels import uniqueness
from tests.reference import population as reference

pytestmark = [pytest.mark.campaign, pytest.mark.weekly]


@pytest.fixture
def register(con):
    con.execute(
        "create table register as select 20 + hash(i) % 9 as age, if(hash(i, 1) % 7 = 0, null, 'g' || hash(i, 2) % 3) "
        "as sex, 'd' || hash(i, 3) % 4 as illness from range(120) t(i)"
    )
    for column, role in {"age": "quasi", "sex": "quasi", "illness": "sensitive"}.items():
        con.execute(f"comment on column register.{column} is 'anon: {role}'")
    con.execute("create table sample as from register where age < 27 limit 60")
    yield con


def rows_of(con: duckdb.DuckDBPyConnection, table: str) -> list[tuple[Any, ...]]:
    return con.execute(f"select age, sex from {table}").fetchall()


RELEASES = {
    "plain": "create table release as select * from sample",
    "incognito": "create table release as from incognito('sample', k := 2, qi := ['age'], keep := ['sex'], seed := 1)",
}


def test_a_row_that_fits_nobody_makes_k_zero(register):
    found = register.execute(
        "select k, unmatched from k_map('(from sample union all select 99, ''g1'', ''d1'')', 'register', "
        "qi := ['age', 'sex'])"
    ).fetchall()
    assert found == [(0, 1)]


def test_k_map_takes_the_roles_of_the_release_for_a_bare_register(register):
    register.execute("create table bare as select age, sex from register")
    register.execute("create table release as from sample")
    register.execute("comment on column release.age is 'anon: quasi'")
    wanted = min(reference.persons_behind(*([row[:1] for row in rows_of(register, t)] for t in ("release", "bare"))))
    assert register.execute("select k, columns from k_map('release', 'bare')").fetchall() == [(wanted, "age")]


@pytest.mark.parametrize("name", ["plain", "incognito"])
def test_delta_presence_is_the_share_of_each_class(register, name):
    register.execute(RELEASES[name])
    wanted = reference.presence(rows_of(register, "release"), rows_of(register, "register"))
    found = register.execute(
        "select delta_min, delta_max, certainly_in, certainly_out from delta_presence('release', 'register')"
    ).fetchall()[0]
    assert found == pytest.approx((min(wanted), max(wanted), wanted.count(1.0), wanted.count(0.0)))
    assert 0 <= found[0] <= found[1] <= 1


def test_delta_presence_refuses_what_counts_do_not_tell(register):
    overlapping = "(select {lower: 20, upper: 24 + i} as age from range(2) t(i))"
    with pytest.raises(duckdb.Error, match="fit several classes of the release"):
        register.execute(f"from delta_presence('{overlapping}', 'register', qi := ['age'])").fetchall()
    with pytest.raises(duckdb.Error, match="must hold every individual of the release"):
        register.execute(
            "from delta_presence('(select 99 as age from range(3))', 'register', qi := ['age'])"
        ).fetchall()


@pytest.mark.parametrize("seed", range(2))
def test_special_uniques_are_those_of_the_definition(con, seed):
    rng = np.random.default_rng(seed)
    rows = [tuple(int(v) for v in row) for row in rng.integers(0, 3, size=(25, 4))]
    con.execute("create table t(a integer, b integer, c integer, d integer)")
    con.executemany("insert into t values (nullif(?, 0), ?, ?, ?)", rows)
    answer = con.execute("from special_uniques('t', qi := ['a', 'b', 'c', 'd'], sampling_fraction := 0.1)").fetchall()
    sets, score, dis = reference.minimal_uniques(rows), reference.suda(rows), reference.dis(rows, 0.1)
    assert {row[0]: row[1] for row in answer} == {row: len(names) for row, names in sets.items()}
    assert {row[0]: row[2] for row in answer} == {row: min(map(len, names)) for row, names in sets.items()}
    assert {row[0]: row[4] for row in answer} == pytest.approx(score)
    assert {row[0]: row[5] for row in answer} == pytest.approx(dis)
    assert [row[4] for row in answer] == sorted((row[4] for row in answer), reverse=True)


def test_special_uniques_of_many_columns_name_the_largest_sets_that_can_be_tried(con, monkeypatch):
    monkeypatch.setattr("duckdb_anon.measures.risk.uniques._MOST_SORTED", 100_000)
    names = [f"q{i}" for i in range(30)]
    columns = ", ".join(f"(i % {i + 2}) as {name}" for i, name in enumerate(names))
    con.execute(f"create table wide as select {columns} from range(100) t(i)")
    # 30 columns have 465 sets of one or two, 4,525 of up to three
    with pytest.raises(duckdb.Error, match=r"up to 30 of 30 columns are too many for 100 rows; say max_size := 2, or"):
        con.execute(f"from special_uniques('wide', qi := {names})").fetchall()
    assert con.execute(f"from special_uniques('wide', qi := {names}, max_size := 2)").fetchall()
    monkeypatch.setattr("duckdb_anon.measures.risk.uniques._MOST_SORTED", 1_000)
    with pytest.raises(duckdb.Error, match=r"too many for 100 rows; name fewer columns"):
        con.execute(f"from special_uniques('wide', qi := {names})").fetchall()


def test_the_risk_of_a_sampled_row_is_the_mean_of_one_over_the_size_of_its_class(con):
    for n, population in ((1, 1), (1, 1.5), (1, 100), (2, 3), (5, 50), (40, 90), (41, 5000), (300, 400)):
        con.execute(f"create or replace table t as select 1 as a, {population / n}::double as w from range({n})")
        found = con.execute("from reidentification_risk('t', qi := ['a'], sample_weights := 'w')").fetchall()[0]
        p = n / population
        wanted = p * quad(lambda u, n=n, p=p: u ** (n - 1) / (p + (1 - p) * u), 0, 1, epsabs=1e-13, limit=200)[0]
        assert found[1:4] == (1 / n, pytest.approx(wanted, rel=1e-9), pytest.approx(wanted, rel=1e-9))
        size = con.execute("from k_anonymity('t', qi := ['a'], sample_weights := 'w')").fetchall()[0][0]
        assert size == pytest.approx(population)


def test_sampled_risk_is_what_a_known_population_shows(census):
    """Expected right matches, estimated from one sample in ten, against those in the population."""
    truth, answer = census.execute(
        "with population as (select AGE, SEX, RACE, count(*) as size from census group by all), "
        "sample as (select *, 10.0 as w from census where hash(rowid, 3) % 10 = 0) "
        "select (select avg(1 / size) from sample join population using (AGE, SEX, RACE)), "
        "(select marketer from reidentification_risk('sample', qi := ['AGE', 'SEX', 'RACE'], sample_weights := 'w'))"
    ).fetchall()[0]
    assert answer == pytest.approx(truth, rel=0.25)


@pytest.mark.campaign
def test_estimates_are_near_known_populations_and_nearer_than_the_decision_rule(shared_data):
    """Means of five samples each, as examples/studies/population.py takes them."""
    census, adult = pd.read_csv(shared_data / "census.csv"), pd.read_csv(shared_data / "adult.csv").dropna()
    tables = [
        (census, ["RELATE", "SEX", "AGE", "MARST", "RACE"]),
        (census, ["RELATE", "SEX", "AGE", "MARST"]),
        (adult, ["age", "sex", "race", "marital_status", "education", "native_country"]),
    ]
    off: dict[str, list[float]] = {"best": [], "rule": []}
    rng = np.random.default_rng(2)
    for table, columns in tables:
        codes = [pd.factorize(table[column].astype(str))[0].astype(np.int32) for column in columns]
        _, of_row, sizes = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True, return_counts=True)
        truth = int((sizes == 1).sum())
        for fraction in (0.01, 0.05, 0.1, 0.2):
            each = []
            for _ in range(5):
                drawn = rng.choice(len(table), round(len(table) * fraction), replace=False)
                _, classes, counts = np.unique(of_row.ravel()[drawn], return_inverse=True, return_counts=True)
                found = {name: getattr(uniqueness, name)(counts, fraction) for name in ("pitman", "zayatz", "snb")}
                found["poisson"] = uniqueness.poisson([c[drawn] for c in codes], classes, counts, fraction)
                low = found["pitman"] if np.isfinite(found["pitman"]) else found["zayatz"]
                high = np.nanmin([found["zayatz"], found["snb"]])
                each.append(np.log([uniqueness.best(found)[0] / truth, (low if fraction <= 0.1 else high) / truth]))
            mean = np.mean(each, axis=0)
            off["best"].append(abs(mean[0]))
            off["rule"].append(abs(mean[1]))
    assert max(off["best"]) < np.log(2)
    assert np.mean(off["best"]) < np.mean(off["rule"])


def test_the_function_gives_the_models_estimate(census):
    names = "AGE, SEX, RACE, MARST"
    sizes = census.execute(f"select count(*) from census group by {names}").fetchnumpy()["count_star()"]
    call = f"population_uniqueness('census', 0.05, qi := {names.split(', ')}"
    for model in ("pitman", "zayatz", "snb"):
        found = census.execute(f"select population_uniques, population from {call}, model := '{model}')").fetchall()
        assert found[0] == pytest.approx((getattr(uniqueness, model)(sizes, 0.05), 40152 * 20))
    few = census.execute(f"select population_uniques, sample_uniques from {call})").fetchall()[0]
    assert 0 < few[0] <= few[1] * 20


def test_models_are_right_where_they_must_be():
    once = np.ones(50, dtype=np.int64)
    assert uniqueness.zayatz(once, 1.0) == pytest.approx(50)
    assert uniqueness.zayatz(np.full(9, 4), 0.2) == 0
    spread = np.repeat([1, 2, 5, 30], [40, 20, 6, 2])
    for name in ("zayatz", "pitman", "snb"):
        assert getattr(uniqueness, name)(spread, 1.0) == pytest.approx(40, rel=0.35), name
        assert getattr(uniqueness, name)(spread, 0.3) > 10, name


def test_a_model_that_does_not_fit_says_so(con):
    con.execute("create table t as select i as a from range(50) t(i)")
    with pytest.raises(duckdb.Error, match=r"model := 'pitman' does not fit.*'best'"):
        con.execute("from population_uniqueness('t', 0.1, model := 'pitman', qi := ['a'])").fetchall()
    # a column that tells everybody apart hides nobody: the estimate must not fall to nothing
    found = con.execute("select share_of_sample_uniques from population_uniqueness('t', 0.1, qi := ['a'])").fetchall()
    assert found[0][0] > 0.9


def test_special_uniques_of_a_table_with_a_hierarchy_are_those_without(con):
    con.execute("create table t as select 'b' || (hash(range) % 40) as a, hash(range, 1) % 9 as b from range(90)")
    con.execute("create table tree as select distinct a as leaf, left(a, 2) || '..' as middle, '*' as root from t")
    plain = con.execute("from special_uniques('t', qi := ['a', 'b'])").fetchall()
    assert plain
    assert con.execute("from special_uniques('t', qi := ['a', 'b'], hierarchies := {'a': 'tree'})").fetchall() == plain
    con.execute("create table r as from mondrian('t', 3, qi := ['a', 'b'], hierarchies := {'a': 'tree'}, seed := 1)")
    with pytest.raises(duckdb.Error, match="release in the place of its original"):
        con.execute("from special_uniques('r', qi := ['a', 'b'], hierarchies := {'a': 'tree'})")


# Benschop, Machingauta and Welch, Statistical Disclosure Control: A Practice Guide, tables 4.1 and 4.5
GUIDE = """
    create table guide as from (values
        ('urban', 'f', 'secondary incomplete', 'employed', 180), ('urban', 'f', 'secondary incomplete', 'employed', 180),
        ('urban', 'f', 'primary incomplete', 'non-LF', 215), ('urban', 'm', 'secondary complete', 'employed', 76),
        ('rural', 'f', 'secondary complete', 'unemployed', 186), ('urban', 'm', 'secondary complete', 'employed', 76),
        ('urban', 'f', 'primary complete', 'non-LF', 180), ('urban', 'm', 'post-secondary', 'unemployed', 215),
        ('urban', 'f', 'secondary incomplete', 'non-LF', 186), ('urban', 'f', 'secondary incomplete', 'non-LF', 76)
    ) t(residence, gender, education, labour, weight)
"""


@pytest.mark.parametrize(
    ("table", "scores"),
    [
        ("(select * exclude (weight) from guide)", [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]),
        # the book example of sdcMicro's tests
        ("(select if(i < 7, 20, 60) as age, if(i between 4 and 6, 'f', 'm') as gender, i < 2 as income, "
         "['h', 'h', 'h', 'h', 'u', 'h', 'm', 'u'][i + 1] as education from range(8) r(i))", [4, 2, 6, 8]),
    ],
)  # fmt: skip
def test_special_uniques_have_the_scores_that_sdcmicro_publishes(con, table, scores):
    con.execute(GUIDE)
    columns = [name for name, *_ in con.execute(f"describe from {table}").fetchall()]
    con.execute(f"create table t as from {table}")
    found = dict(con.execute(f"select row_id, score from special_uniques('t', qi := {columns})").fetchall())
    rows = range(10) if len(scores) == 10 else range(4, 8)
    assert [found.get(row, 0) for row in rows] == scores


def test_risks_of_records_are_those_of_the_guide_to_sdcmicro(con):
    con.execute(GUIDE)
    arguments = "'guide', qi := ['residence', 'gender', 'education', 'labour'], sample_weights := 'weight'"
    found = con.execute(f"select population_size, round(journalist, 4) from record_risk({arguments})").fetchall()
    assert sorted(set(found)) == [
        (152, 0.0126),
        (180, 0.0290),
        (186, 0.0282),
        (215, 0.0251),
        (262, 0.0074),
        (360, 0.0054),
    ]
    assert con.execute(f"select round(marketer, 5) from reidentification_risk({arguments})").fetchone() == (0.01582,)
