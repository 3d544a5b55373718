"""diffgen: what it releases, what it refuses, and a statistical bound on what it leaks."""

import sys
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest

from duckdb_anon.kernels.differential_privacy import diffgen_search
from duckdb_anon.kernels.differential_privacy import mechanisms as mechanisms_module
from duckdb_anon.kernels.differential_privacy.diffgen_search import Budget, Predictor, Search
from duckdb_anon.kernels.differential_privacy.mechanisms import Ledger, Mechanisms
from duckdb_anon.methods import diffgen
from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.release_formats import COUNT
from duckdb_anon.model.released_columns import Struct, Whole
from tests.reference.merging import attribute
from tests.reference.privacy_loss import certain_loss

DEFAULTS: dict[str, Any] = {parameter.name: parameter.default for parameter in diffgen.METHOD.parameters}
ROLES = "qi := ['age', 'job'], sensitive := 'class', hierarchies := {'job': 'jobs', 'class': 'classes'}"


@pytest.fixture
def people(con):
    """500 people; the taxonomies know a job and a class nobody has."""
    con.execute("create table jobs as from (values ('a', 'low', 'any'), ('b', 'low', 'any'), ('c', 'high', 'any'))")
    con.execute("create table classes as from (values ('p', 'any'), ('q', 'any'), ('r', 'any'))")
    con.execute(
        """create table people as select i % 60 + 18 as age, ['a', 'b'][i % 2 + 1] as job,
        case when i % 60 < 30 then 'p' else 'q' end as class from range(500) r(i)"""
    )
    return con


def test_all_combinations_of_the_cuts_and_classes_are_released(people):
    people.execute(f"create table r as from diffgen('people', 2.0, {ROLES}, bounds := {{'age': [0, 120]}}, seed := 1)")
    ages, jobs, classes, rows = people.execute("""select count(distinct age), count(distinct job), count(distinct
        class), count(*) from r""").fetchone()
    assert classes == 3
    assert rows == ages * jobs * classes
    assert people.execute("select distinct class from r order by 1").fetchall() == [("p",), ("q",), ("r",)]
    span = people.execute("select min(age.lower), max(age.upper) from r").fetchone()
    assert span == (0, 120)
    gaps = """select count(*) from (select distinct age from r) a
        where age.upper < 120 and not exists (from r where r.age.lower = a.age.upper + 1)"""
    assert people.execute(gaps).fetchone() == (0,)


def test_counts_are_right_up_to_noise_of_the_documented_scale(people):
    people.execute(f"create table r as from diffgen('people', 1.0, {ROLES}, bounds := {{'age': [0, 120]}}, seed := 5)")
    tree = {"a": {"a", "low", "any"}, "b": {"b", "low", "any"}}
    rows = people.execute("select age.lower, age.upper, job, class, noisy_count from r").fetchall()
    original = people.execute("select age, job, class from people").fetchall()
    noise = []
    for low, high, job, label, noisy in rows:
        true = sum(low <= a <= high and job in tree[j] and label == c for a, j, c in original)
        noise.append(noisy - true)
    assert abs(np.mean(np.abs(noise)) - 2.0) < 1.0  # Laplace of scale 2 / epsilon
    assert len(noise) >= 24


def test_the_observed_domain_may_be_declared_public(people):
    roles = "qi := ['age', 'job'], sensitive := 'class', domain := 'observed'"
    people.execute(f"create table r as from diffgen('people', 1.0, {roles}, seed := 1)")
    assert people.execute("select min(age.lower), max(age.upper) from r").fetchone() == (18, 77)
    assert people.execute("select count(distinct class) from r").fetchone() == (2,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (f"1.0, {ROLES}", "give bounds := {'age': [low, high]}"),
        ("1.0, qi := ['job'], sensitive := 'class'", "give hierarchies := {'job': 'its_table'} for job, class"),
        (f"1.0, {ROLES}, bounds := {{'agee': [0, 1]}}", "did you mean 'age'"),
        (f"1.0, {ROLES}, bounds := {{'age': [9, 1]}}", "with low below high"),
        (f"1.0, {ROLES}, bounds := {{'age': [0, 120]}}, max_cells := 2", "lower specializations"),
    ],
)
def test_errors_name_the_cause(people, arguments, message):
    with pytest.raises(duckdb.Error) as caught:
        people.execute(f"from diffgen('people', {arguments})").fetchall()
    assert message in str(caught.value)


def test_whole_numbers_are_cut_between_two_of_them(people):
    """So a box holds the numbers that were counted for it, and none of them but those."""
    people.execute("create table coded as select 1 + age % 2 as sex, age, age / 4.0::double as w, class from people")
    call = "diffgen('coded', 50.0, qi := ['sex', 'age', 'w'], sensitive := 'class', domain := 'observed', seed := 3)"
    people.execute(f"create table r as from {call}")
    types = dict(people.execute("select column_name, column_type from (describe r)").fetchall())
    assert types["sex"] == types["age"] == "STRUCT(lower BIGINT, upper BIGINT)"
    assert types["w"] == "STRUCT(lower DOUBLE, upper DOUBLE)"
    assert people.execute("select distinct sex from r order by 1").fetchall() in (
        [({"lower": 1, "upper": 1},), ({"lower": 2, "upper": 2},)],
        [({"lower": 1, "upper": 2},)],
    )
    assert people.execute("select bool_and(age.lower <= age.upper) from r").fetchone() == (True,)
    people.execute("""create table taxed as from diffgen('coded', 90.0, qi := ['sex'], sensitive := 'class', domain := 'observed',
        specializations := 1, seed := 3)""")
    counted = "select sex.lower, sex.upper, sum(noisy_count) from taxed group by all order by 1"
    truth = people.execute("select sex, sex, count(*) from coded group by all order by 1").fetchall()
    assert people.execute(counted).fetchall() == truth
    text = people.execute("""select rewrite_query('select sex, count(*) as n from coded group by 1 order by 1', 'coded', 'taxed',
        qi := ['sex'], sensitive := 'class')""").fetchone()
    assert [tuple(map(int, row)) for row in people.execute(text[0]).fetchall()] == [row[1:] for row in truth]


@pytest.mark.parametrize("kind", ["UBIGINT", "HUGEINT", "DECIMAL(38,0)"])
def test_whole_numbers_that_a_bigint_may_not_hold_have_ends_of_double(people, kind):
    people.execute(f"create table wide as select age::{kind} as age, class from people")
    call = "diffgen('wide', 9.0, qi := ['age'], sensitive := 'class', domain := 'observed'"
    people.execute(f"create table r as from {call}, seed := 2)")
    whole = "bool_and(age.lower = round(age.lower) and age.upper = round(age.upper))"
    assert people.execute(f"select typeof(any_value(age)), {whole}, count(distinct age) > 1 from r").fetchone() == (
        "STRUCT(lower DOUBLE, upper DOUBLE)", True, True,
    )  # fmt: skip
    people.execute(f"insert into wide values (18446744073709551615::{kind}, 'p'), (0, 'p')")
    rows = people.execute(f"from {call}, bounds := {{'age': [0, 100]}})").fetchall()
    assert all(row[0]["lower"] <= row[0]["upper"] for row in rows)


def test_bounds_without_a_whole_number_are_refused(people):
    with pytest.raises(duckdb.Error, match="there is no whole number within the bounds of 'age'"):
        roles = "qi := ['age'], sensitive := 'class', domain := 'observed', bounds := {'age': [0.2, 0.8]}"
        people.execute(f"from diffgen('people', 1.0, {roles})").fetchall()


def test_whole_numbers_that_have_no_halves_want_bounds(people):
    people.execute("""create table far as select case when age = 20 then 9223372036854775807 else age end as n, class
        from people""")
    call = "from diffgen('far', 1.0, qi := ['n'], sensitive := 'class', domain := 'observed'"
    with pytest.raises(duckdb.Error, match=r"diffgen: column 'n' reaches beyond 4.5036e\+15, .* give bounds"):
        people.execute(f"{call})").fetchall()
    ends = people.execute(f"select min(n.lower), max(n.upper) {call}, bounds := {{'n': [0, 100]}})").fetchone()
    assert ends == (0, 100)


def test_numbers_that_are_null_and_dates_are_refused(people):
    people.execute("insert into people values (null, 'a', 'p')")
    with pytest.raises(duckdb.Error, match="NULL or not finite"):
        people.execute(f"from diffgen('people', 1.0, {ROLES}, bounds := {{'age': [0, 120]}})").fetchall()
    people.execute("create table dated as select date '2020-01-01' + (age % 50)::int as born, class from people")
    with pytest.raises(duckdb.Error, match="are dates or times"):
        people.execute("""from diffgen('dated', 1.0, qi := ['born'], sensitive := 'class', domain :=
            'observed')""").fetchall()


def test_the_plan_adds_up_and_counts_numeric_columns(people):
    call = f"diffgen_plan('people', 0.3, {ROLES}, specializations := 10)"
    steps = people.execute(f"select step, times, epsilon_each, epsilon_total from {call}").fetchall()
    assert [times for _, times, _, _ in steps] == [1, 10, 10, 1]
    assert steps[1][2] == pytest.approx(0.0071429, abs=5e-8)
    assert sum(total for *_, total in steps) == pytest.approx(0.3)


AGES = [1, 2, 2, 3, 6, 7, 8, 9]


def _table(rows: list[tuple[int, str]]) -> CodedTable:
    """Numbers 0 to 9 and two classes, coded on one domain whatever the rows are."""
    age = attribute("age", list(range(10)))
    label = attribute("class", ["p", "q"], "hierarchy", [("p", "any"), ("q", "any")])
    return CodedTable(
        len(rows),
        (replace(age, codes=np.array([a for a, _ in rows], dtype=np.int32)),),
        (replace(label, codes=np.array(["pq".index(c) for _, c in rows], dtype=np.int32)),),
    )


def _events(rows: list[tuple[int, str]], epsilon: float, runs: int, seed: int) -> Counter[tuple[str, int, int]]:
    """How often each event was seen: where the first split lies, and how large the count around age 9, class q is."""
    table, rng = _table(rows), np.random.default_rng(seed)
    params = DEFAULTS | {"epsilon": epsilon, "specializations": 1, "bounds": {"age": [0, 10]}}
    seen: Counter[tuple[str, int, int]] = Counter()
    for _ in range(runs):
        cells = diffgen.release(table, params, rng)
        box, counts = cells["age"], cells[COUNT.key]
        assert isinstance(box, Struct) and isinstance(box.fields["lower"], Whole) and isinstance(counts, Whole)
        lower = box.fields["lower"].values
        split = int(lower.max())
        last = counts.values[lower == lower.max()][1]
        seen["split", split, 0] += 1
        for threshold in range(-6, 12, 2):
            seen["count", threshold, 0] += last > threshold
            seen["count", threshold, 1] += last <= threshold
            seen["both", threshold, split // 3] += last > threshold
    return seen


@pytest.mark.campaign
@pytest.mark.weekly
@pytest.mark.parametrize(("overspent", "runs"), [(1, 10_000), (8, 1_500)])
def test_neighbouring_tables_are_told_apart_beyond_epsilon_only_where_it_is_overspent(monkeypatch, overspent, runs):
    monkeypatch.setattr(diffgen_search, "GRID", 10)
    rows = [(age, "p" if age < 5 else "q") for age in AGES]
    claimed = 1.0
    tables = (rows, [*rows, (9, "q")])
    one, other = (_events(t, overspent * claimed, runs, seed) for seed, t in enumerate(tables))
    assert (certain_loss(one, other, runs) > claimed) == (overspent > 1)


def test_counts_are_whole_and_no_bit_of_a_split_comes_from_the_data(people):
    people.execute("update people set age = age + 0.001")
    people.execute("create table skew as select age + random() / 3 as age, job, class from people")
    for counted in (
        "diffgen('skew', 5.0, {roles}, bounds := {{'age': [0, 128]}})",
        "laplace_on_groups('people', 5, 1.0, {roles})",
    ):
        types = dict(row[:2] for row in people.execute(f"describe from {counted.format(roles=ROLES)}").fetchall())
        assert types["noisy_count"] == "BIGINT"
    ends = people.execute(f"""select age.lower, age.upper
        from diffgen('skew', 5.0, {ROLES}, bounds := {{'age': [0, 128]}})""").fetchall()
    assert all(end * 8 == int(end * 8) for row in ends for end in row)  # 1,024 parts of 128


@pytest.mark.parametrize("seed", ["", ", seed := 3"])
def test_the_run_spends_no_more_than_epsilon_and_all_of_it_where_no_round_is_missing(seed):
    for epsilon in (0.1, 0.3, 1.0, 7.3):
        budget = Budget(epsilon, 1, 2)
        for _ in range(9):  # a first cut at an end leaves nothing to cut, once in a thousand draws
            ledger, mechanisms = Ledger(epsilon), Mechanisms("f", np.random.default_rng(1) if seed else None)
            predictors = [Predictor(np.arange(40.0), 0, 40, numeric=True)]
            Search(predictors, np.arange(40) % 2, 2, budget, "max", mechanisms, ledger).run()
            assert float(ledger.spent) < epsilon
            if all(ledger.steps):
                break
        ledger.spend([mechanisms.counts(np.arange(6), budget.counts)[1]])
        ledger.check("f")
        assert len(ledger.steps) == 1 + 2 * 2 + 1
        assert float(ledger.spent) == pytest.approx(epsilon, rel=1e-12)
        with pytest.raises(RequirementError, match="was spent"):
            Ledger(epsilon, [*ledger.steps, Fraction(1, 1000)]).check("f")


def test_noise_is_discrete_laplace_of_the_budget():
    for generator in (None, np.random.default_rng(4)):
        noise, loss = Mechanisms("f", generator).counts(np.zeros(20_000, dtype=np.int64), 0.8)
        assert loss <= 0.8
        values = np.arange(-4, 5)
        p = np.exp(-0.8)
        expected = (1 - p) / (1 + p) * p ** np.abs(values)
        seen = np.array([(noise == v).mean() for v in values])
        assert np.abs(seen - expected).max() < 5 * 0.5 / np.sqrt(20_000)


def test_without_opendp_the_error_says_what_to_install(people, monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    mechanisms_module._loaded.cache_clear()
    try:
        for call in (
            f"diffgen('people', 1.0, {ROLES}, bounds := {{'age': [0, 120]}})",
            f"laplace_on_groups('people', 5, 1.0, {ROLES})",
        ):
            with pytest.raises(duckdb.Error, match=r"pip install 'duckdb-anon\[dp\]'"):
                people.execute(f"from {call}").fetchall()
    finally:
        mechanisms_module._loaded.cache_clear()


@pytest.mark.parametrize("method", ["laplace_on_groups('wide', 40, 50.0", "diffgen('wide', 50.0, domain := 'observed'"])
def test_max_cells_bounds_what_is_written(people, method):
    people.execute("create table wide as select i % 40 as a, i % 30 as b, i % 9 as class from range(4000) r(i)")
    call = f"{method}, qi := ['a', 'b'], categorical := ['a'], sensitive := 'class', seed := 1, max_cells := {{}})"
    written = people.execute(f"select sum(1 + len(a)) from {call.format(10**6)}").fetchone()[0]
    assert people.execute(f"select sum(1 + len(a)) from {call.format(written)}").fetchone() == (written,)
    with pytest.raises(duckdb.Error, match=rf"max_cells := {written - 1}; .* or raise max_cells"):
        people.execute(f"from {call.format(written - 1)}").fetchall()
