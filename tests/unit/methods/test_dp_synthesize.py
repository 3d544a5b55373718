"""dp_synthesize: what it releases, that noisy counts alone decide it, and a statistical bound on what it leaks."""

from collections import Counter
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pytest
from numpy.typing import NDArray

import duckdb_anon
from duckdb_anon.kernels.differential_privacy.mechanisms import Mechanisms
from duckdb_anon.kernels.differential_privacy.noisy_histograms import delta_of, rho_of
from duckdb_anon.methods import dp_synthesize
from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.number_scale import Scale
from duckdb_anon.model.release_formats import COUNT_ERROR
from duckdb_anon.model.released_columns import Coded, Real, Struct, Value
from tests.reference.merging import attribute
from tests.reference.privacy_loss import certain_loss

pytest.importorskip("opendp", reason="the dp extra is not installed")
DEFAULTS: dict[str, Any] = {parameter.name: parameter.default for parameter in dp_synthesize.METHOD.parameters}
CALL = "dp_synthesize('people', {epsilon}, bounds := {{'age': [0, 99]}}, keep := []{more})"


@pytest.fixture
def people(con):
    """4,000 records of 2,000 individuals; the hierarchy knows a job that nobody has, and one job is NULL."""
    con.execute("create table jobs as from (values ('a', 'any'), ('b', 'any'), ('c', 'any'), ('zzz', 'any'))")
    con.execute("""create table people as select range // 2 as pid, 20 + (hash(range) % 50)::int as age,
        ['a', 'b', 'c', null][1 + ((hash(range) % 50) // 13)::int] as job, (hash(range) % 50) / 4.0::double as x,
        (1000 + hash(range, 1) % 800)::decimal(9, 2) as pay, date '1980-01-01' + (hash(range, 2) % 9000)::int as born,
        'ward ' || (hash(range, 3) % 3) as ward, case when range = 7 then 'the only one' else 'x' end as note
        from range(4000)""")
    labels = {"age": "quasi", "job": "quasi hierarchy=jobs", "x": "quasi", "pay": "quasi", "born": "quasi",
              "ward": "quasi", "note": "sensitive"}  # fmt: skip
    for column, label in labels.items():
        con.execute(f"comment on column people.{column} is 'anon: {label}'")
    return con


def test_columns_keep_their_types_and_the_number_of_rows_is_noisy(people):
    counts = set()
    for _ in range(3):
        people.execute(f"create or replace table r as from {CALL.format(epsilon=2, more='')}")
        counts.add(people.execute("select count(*) from r").fetchall()[0][0])
    assert len(counts) > 1
    assert all(abs(count - 4000) < 200 for count in counts)
    types = "select column_name, column_type from (describe {})"
    released = dict(people.execute(types.format("r")).fetchall())
    assert released.pop("count_error") == "STRUCT(factor DOUBLE, power DOUBLE, per_column DOUBLE)"
    assert released.items() <= dict(people.execute(types.format("people")).fetchall()).items()
    assert set(released) == {"age", "job", "x", "pay", "born", "ward", "note"}


def test_with_a_large_budget_single_columns_and_pairs_are_those_of_the_original(people):
    people.execute(f"create table r as from {CALL.format(epsilon=1000, more=', seed := 1')}")
    scores = people.execute("select score, sampled from k_marginal('people', 'r')").fetchall()
    assert all(score > sampled for score, sampled in scores)
    means = "select avg(age), avg(x), avg(pay), avg((job is null)::int), avg(date_diff('day', date '1980-01-01', born)) from {}"
    made, true = (people.execute(means.format(table)).fetchall()[0] for table in ("r", "people"))
    assert np.array(made, dtype=float) == pytest.approx(np.array(true, dtype=float), rel=0.03)


def test_a_name_that_one_individual_has_is_not_released_and_a_leaf_that_nobody_has_may_be(people):
    notes, jobs = set(), set()
    for _ in range(4):
        rows = people.execute(f"select distinct note, job from {CALL.format(epsilon=3, more='')}").fetchall()
        notes |= {note for note, _ in rows}
        jobs |= {job for _, job in rows}
    assert notes <= {"x", None}
    assert {"a", "b", "c"} <= jobs


def test_numbers_without_bounds_are_found_by_noisy_counts(people):
    low, high, first, last = people.execute(
        f"select min(pay), max(pay), min(born), max(born) from {CALL.format(epsilon=20, more=', seed := 1')}"
    ).fetchall()[0]
    assert 500 < low < 1050
    assert 1750 < high < 2700
    assert 1975 <= first.year <= 1981  # days 2,048 to 4,095
    assert 2003 <= last.year < 2020


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        ("1.0, per_person := 2", "bad-argument", "person"),
        ("1.0, bounds := {'job': [0, 1]}", "bad-column", "job"),
        ("1.0, bounds := {'age': [9, 1]}", "bad-argument", "age"),
        ("1.0, bounds := {'age': [0.2, 0.8]}", "bad-argument", "age"),
        ("1.0, keep := ['pid']", "bad-column", "pid"),
        ("0", "bad-argument", "epsilon"),
    ],
)
def test_errors_name_the_cause(people, arguments, code, named):
    with pytest.raises(duckdb.Error) as caught:
        people.execute(f"from dp_synthesize('people', {arguments})").fetchall()
    assert f"[{code}]" in str(caught.value)
    assert named in str(caught.value)


def test_the_register_counts_epsilon_and_of_made_records_only_counts_have_intervals(people):
    duckdb_anon.release(people, "r", CALL.format(epsilon=2, more=""))
    duckdb_anon.release(people, "s", CALL.format(epsilon=3, more=""), independent=True)
    ask = "select low, estimate, high, confidence, note from estimate('select {} from people where {}', 'r', 'people')"
    low, estimate, high, confidence, _ = people.execute(ask.format("count(*)", "age < 40")).fetchall()[0]
    assert 0 <= low < estimate < high
    assert confidence == 0.9
    # a leaf of a hierarchy is read as the value that it is
    assert people.execute(ask.format("count(*)", "job = ''a''")).fetchall()[0][0] > 0
    unbounded = [("sum(age)", "age < 40", "only counts"), ("count(distinct age)", "true", "only counts"),
                 ("count(*)", "x < 5", "may share one"), ("count(*)", "age < 0", None)]  # fmt: skip
    for measure, condition, why in unbounded:
        low, _, high, _, note = people.execute(ask.format(measure, condition)).fetchall()[0]
        assert low is None
        assert high is None
        assert why is None or why in note
    assert people.execute("select sum(epsilon) from anon_register()").fetchall() == [(5.0,)]


@pytest.mark.parametrize("narrower", [1, 25])
def test_intervals_of_counts_hold_the_truth_on_the_census(con, shared_data, narrower):
    con.execute(f"""create table people as select AGE, SEX::text as SEX, EDUC::text as EDUC, MARST::text as MARST,
        UHRSWORK from read_csv('{shared_data}/census.csv') limit 10000""")
    con.execute("""create table r as from dp_synthesize('people', 3.0, qi := ['AGE', 'SEX', 'EDUC', 'MARST', 'UHRSWORK'],
        bounds := {'AGE': [0, 99], 'UHRSWORK': [0, 99]}, seed := 5)""")
    (error,) = con.execute("select any_value(count_error) from r").fetchall()[0]
    columns, rng, held, rows = ("SEX", "EDUC", "MARST"), np.random.default_rng(1), [], con.execute("from people").df()
    made = con.execute("from r").df()
    for _ in range(400):
        names = rng.choice(columns, rng.integers(1, 3), replace=False)
        ends = np.sort(rng.choice(rows["AGE"], 2))
        kept = [table["AGE"].between(*ends) for table in (rows, made)]
        for name in names:
            kept = [k & (table[name] == value) for k, table, value in
                    zip(kept, (rows, made), [rng.choice(rows[name])] * 2, strict=True)]  # fmt: skip
        true, count = (int(k.sum()) for k in kept)
        variance = error["factor"] * count ** error["power"] * error["per_column"] ** (1 + len(names)) / narrower
        held += [abs(true - count) < 1.96 * np.sqrt(variance)] * (count > 0)
    assert (np.mean(held) > 0.9) == (narrower == 1)
    assert np.mean(held) < 0.995


class Fixed(Mechanisms):
    """Answers that look at the number of counts alone."""

    def gaussian(self, counts: Any, scale: float, changed: float) -> tuple[Any, float]:
        """A fixed answer."""
        answer = np.random.default_rng(len(counts)).integers(-30, 300, len(counts))
        return (np.array([700]) if len(counts) == 1 else answer), changed**2 / (2 * scale**2)


def _table(ages: list[int], names: list[str], wages: list[float], person: list[int] | None = None) -> CodedTable:
    """Rows as coded from these alone, with a hierarchy of three leaves."""
    age, wage = attribute("age", sorted(set(ages))), attribute("wage", sorted(set(wages)))
    tree = attribute("name", sorted(set(names)), "hierarchy", [(leaf, "any") for leaf in "pqr"])
    who = None if person is None else replace(attribute("who", sorted(set(person))), codes=_codes(person))
    return CodedTable(
        len(ages),
        (replace(age, codes=_codes(ages), scale=Scale("integer", np.array(sorted(set(ages)), dtype=np.int64))),
         replace(tree, codes=_codes(names), declared=tuple(sorted(set("pqr") - set(names))))),
        (replace(wage, codes=_codes(wages), scale=Scale("real", np.array(sorted(set(wages))))),),
        who,
    )  # fmt: skip


def _codes(values: list[Any]) -> NDArray[np.int32]:
    return np.searchsorted(np.array(sorted(set(values))), values).astype(np.int32)


def _values(table: CodedTable, cells: dict[str, Any]) -> list[Any]:
    """What is released, as values."""
    found: list[Any] = []
    for a in (*table.qi, *table.sensitive):
        column = cells[a.name]
        if isinstance(column, Value):
            found.append(np.append(column.numbers, np.nan)[column.index].tolist())
        else:
            assert isinstance(column, Coded)
            leaves = a.hierarchy.leaf_labels if a.hierarchy else ()
            labels = [leaves[leaf] for leaf in a.place_of_code] + list(a.declared)
            found.append([labels[code] if code >= 0 else None for code in column.codes])
    error = cells[COUNT_ERROR.key]
    assert isinstance(error, Struct)
    return [*found, {name: part.values.tolist() for name, part in error.fields.items() if isinstance(part, Real)}]


def test_of_two_tables_with_the_same_noisy_answers_the_same_is_released(monkeypatch):
    monkeypatch.setattr(dp_synthesize, "Mechanisms", Fixed)
    rng = np.random.default_rng(3)
    tables = [
        _table([3, 4, 5, 5], ["p", "p", "q", "p"], [1.0, 2.5, -7.0, 3.0], [1, 1, 2, 3]),
        _table(rng.integers(-40, 99, 300).tolist(), rng.choice(list("qr"), 300).tolist(),
               (rng.normal(size=300) * 1e9).tolist(), rng.integers(0, 50, 300).tolist()),
    ]  # fmt: skip
    params = DEFAULTS | {"epsilon": 1.0, "bounds": {"age": [0, 60]}, "per_person": 2}
    one, other = (_values(t, dp_synthesize.release(t, params, np.random.default_rng(1))) for t in tables)
    assert len(one[0]) == 700
    for released, again in zip(one, other, strict=True):
        assert str(released) == str(again)


def test_of_an_individual_with_many_records_no_more_than_per_person_are_counted(monkeypatch):
    asked = []

    class Listening(Fixed):
        def gaussian(self, counts: Any, scale: float, changed: float) -> tuple[Any, float]:
            asked.append((counts, scale, changed))
            return super().gaussian(counts, scale, changed)

    monkeypatch.setattr(dp_synthesize, "Mechanisms", Listening)
    table = _table([1] * 50 + [2, 3], ["p"] * 52, [1.0] * 52, [7] * 50 + [8, 9])
    params = DEFAULTS | {"epsilon": 1.0, "bounds": {"age": [0, 9]}, "per_person": 4}
    dp_synthesize.release(table, params, np.random.default_rng(1))
    (size, scale, changed), *others = asked
    assert size.tolist() == [4 + 1 + 1]
    assert changed == 4.0
    assert scale == pytest.approx(4 / np.sqrt(2 * 0.02 * rho_of(1.0, 1e-6)))
    assert all(counts.sum() <= 6 for counts, _, far in others if far == 4.0 and len(counts) > 1)


def test_the_run_spends_no_more_than_rho_which_epsilon_and_delta_allow(monkeypatch):
    spent = []
    check = dp_synthesize.Ledger.check
    monkeypatch.setattr(dp_synthesize.Ledger, "check", lambda self, name: (spent.append(self), check(self, name)))
    table = _table([1, 2, 3] * 9, ["p", "q", "r"] * 9, [1.0, 2.0, 4.0] * 9)
    for epsilon, delta in ((0.2, 1e-6), (3.0, 1e-9), (20.0, 0.01)):
        dp_synthesize.release(table, DEFAULTS | {"epsilon": epsilon, "delta": delta}, np.random.default_rng(1))
        assert 0.1 * rho_of(epsilon, delta) < float(spent[-1].spent) <= rho_of(epsilon, delta)
        assert delta_of(rho_of(epsilon, delta), epsilon) <= delta


def _events(table: CodedTable, params: dict[str, Any], runs: int, seed: int) -> Counter[tuple[str, int]]:
    """How often each event was seen: many rows, many of the largest age and the class r, both."""
    rng, seen = np.random.default_rng(seed), Counter[tuple[str, int]]()
    for _ in range(runs):
        ages, names, *_ = _values(table, dp_synthesize.release(table, params, rng))
        alike = sum(age == 9 and name == "r" for age, name in zip(ages, names, strict=True))
        for threshold in range(0, 60, 4):
            seen["rows", threshold] += len(ages) > threshold
            seen["no rows", threshold] += len(ages) <= threshold
            seen["alike", threshold] += alike > threshold
            seen["not alike", threshold] += alike <= threshold
    return seen


@pytest.mark.campaign
@pytest.mark.weekly
@pytest.mark.parametrize(("overspent", "runs"), [(1, 10_000), (100, 1_500)])
def test_neighbouring_tables_differ_beyond_epsilon_only_where_it_is_overspent(overspent, runs, record_property):
    ages, names, claimed = [1, 2, 2, 3, 6, 7, 8, 8], list("ppqqpqpq"), 1.0
    params = DEFAULTS | {"epsilon": overspent * claimed, "bounds": {"age": [0, 9], "wage": [0, 1]}, "per_person": 2}
    # the second table has one more individual, with two records
    tables = (
        _table(ages, names, [0.5] * 8, list(range(8))),
        _table([*ages, 9, 9], [*names, "r", "r"], [0.5] * 10, [*range(8), 8, 8]),
    )
    one, other = (_events(table, params, runs, seed) for seed, table in enumerate(tables))
    bound = certain_loss(one, other, runs, DEFAULTS["delta"])
    record_property("lower bound on epsilon", bound)
    print(f"epsilon is at least {bound:.3f} where {overspent * claimed:g} was given")
    assert (bound > claimed) == (overspent > 1)
