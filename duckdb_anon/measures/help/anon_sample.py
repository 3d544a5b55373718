"""anon_sample: made-up microdata, so that a clone can try everything without data.

'census' has the attributes and domain sizes of Li et al. (2020), Table 1: gender 2, age 55, relationship 13,
marital status 6, race 9, education 10, hours per week 95, salary 851. No row describes a person: a few dozen
numbers of this module and a generator make them all, with the dependencies such tables have (age and
marriage, education and pay, hours and pay). Cost: O(rows).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.function_specs import REQUIRED, Answer, Parameter, Params, Report, fields
from duckdb_anon.model.progress import tick

GENDERS = ("female", "male")
RELATIONSHIPS = (
    "householder", "spouse", "child", "child in law", "parent", "sibling", "grandchild", "other relative",
    "partner", "roommate", "roomer", "foster child", "other nonrelative",
)  # fmt: skip
MARITAL = ("married", "spouse absent", "separated", "divorced", "widowed", "never married")
RACES = ("white", "black", "native", "chinese", "japanese", "other asian", "other", "two races", "three races")
EDUCATIONS = (
    "none", "grade 4", "grade 8", "grade 9", "grade 10", "grade 11", "high school", "some college", "bachelor",
    "master",
)  # fmt: skip
SALARIES = np.concatenate(
    [
        np.arange(1_000, 50_100, 100),
        np.arange(50_500, 150_500, 500),
        np.arange(151_000, 301_000, 1_000),
        np.arange(310_000, 410_000, 10_000),
    ]
)
_RACE_SHARES = np.array([0.74, 0.11, 0.012, 0.016, 0.006, 0.045, 0.046, 0.022, 0.003])
_EDUCATION_SHARES = np.array([0.01, 0.01, 0.025, 0.02, 0.025, 0.03, 0.36, 0.26, 0.17, 0.09])


@Report(
    summary="made-up microdata with the attributes and domain sizes of a census extract; salary is sensitive",
    paper="attributes and domain sizes: Li et al. (2020), Table 1",
    example="FROM anon_sample('census', 1000, seed := 1)",
    section="Help",
    smallest="name := 'census', rows := 10",
    parameters=(
        Parameter("name", "which sample: 'census'", "text", REQUIRED, ("census",)),
        Parameter("rows", "number of rows, 1 to 10,000,000", "integer", 40_152, low=1, high=10_000_000),
    ),
    returns=fields(
        "gender VARCHAR, age INTEGER, relationship VARCHAR, marital_status VARCHAR, race VARCHAR, education VARCHAR, "
        "hours_per_week INTEGER, salary INTEGER"
    ),
    unit="any",
    tables=(),
    needs=(),
)
def anon_sample(tables: Sequence[object], params: Params, rng: np.random.Generator) -> Answer:
    """Draw `rows` rows of the sample `name`."""
    n = params["rows"]
    gender: IntArray = np.where(rng.random(n) < 0.52, 1, 0)
    age = 17 + np.floor(54.999 * rng.beta(1.6, 1.9, n)).astype(np.int64)
    race = _choose(rng, np.tile(_RACE_SHARES, (n, 1)))
    education = _education(rng, age)
    marital = _marital(rng, age)
    hours = _hours(rng, age, gender)
    return {
        "gender": np.array(GENDERS, dtype=object)[gender],
        "age": age,
        "relationship": np.array(RELATIONSHIPS, dtype=object)[_relationship(rng, age, marital)],
        "marital_status": np.array(MARITAL, dtype=object)[marital],
        "race": np.array(RACES, dtype=object)[race],
        "education": np.array(EDUCATIONS, dtype=object)[education],
        "hours_per_week": hours,
        "salary": _salary(rng, age, gender, education, hours),
    }


def _choose(rng: np.random.Generator, weights: FloatArray) -> IntArray:
    """Draw one column a row, with probability in proportion to its weight."""
    tick()
    total = np.cumsum(weights, axis=1)
    tick()
    spot = rng.random(len(weights)) * total[:, -1]
    chosen: IntArray = (total < spot[:, None]).sum(axis=1)
    return chosen


def _education(rng: np.random.Generator, age: IntArray) -> IntArray:
    weights = np.tile(_EDUCATION_SHARES, (len(age), 1))
    young = np.clip((24 - age) / 7, 0, 1)[:, None]
    weights[:, 8:] *= 1 - young
    weights[:, 3:6] *= 1 + 4 * young
    old = np.clip((age - 50) / 20, 0, 1)[:, None]
    weights[:, :6] *= 1 + 1.5 * old
    return _choose(rng, weights)


def _marital(rng: np.random.Generator, age: IntArray) -> IntArray:
    grown = np.clip((age - 17) / 25, 0, 1)
    weights = np.stack(
        [
            0.02 + 0.62 * grown,
            0.005 + 0.02 * grown,
            0.005 + 0.03 * grown,
            0.005 + 0.18 * grown * np.clip((age - 22) / 20, 0, 1),
            0.001 + 0.12 * np.clip((age - 50) / 21, 0, 1) ** 2,
            1.02 - 0.93 * grown,
        ],
        axis=1,
    )
    return _choose(rng, weights)


def _relationship(rng: np.random.Generator, age: IntArray, marital: IntArray) -> IntArray:
    weights = np.tile(
        np.array([0.5, 0.0, 0.08, 0.004, 0.012, 0.02, 0.006, 0.012, 0.06, 0.04, 0.02, 0.003, 0.02]), (len(age), 1)
    )
    weights[:, 1] = np.where(marital == 0, 0.45, 0.0)
    weights[:, 3] *= np.where(marital == 0, 2.0, 0.2)
    weights[:, 2] += np.where(marital == 5, 1.6, 0.02) * np.clip((33 - age) / 14, 0.02, 1)
    weights[:, 4] *= np.clip((age - 40) / 10, 0.01, 3)
    weights[:, 6] *= np.clip((30 - age) / 8, 0.02, 2)
    weights[:, 8] *= np.where(marital == 0, 0.05, 1.0)
    weights[:, 11] *= np.clip((22 - age) / 5, 0.02, 2)
    return _choose(rng, weights)


def _hours(rng: np.random.Generator, age: IntArray, gender: IntArray) -> IntArray:
    kind = rng.random(len(age))
    part_time = 0.16 + 0.12 * (gender == 0) + 0.3 * np.clip((22 - age) / 5, 0, 1) + 0.25 * np.clip((age - 62) / 8, 0, 1)
    usual = np.where(kind < part_time, rng.normal(22, 9, len(age)), rng.normal(44, 9, len(age)))
    exact_forty = (kind > part_time) & (rng.random(len(age)) < 0.55)
    tens = rng.random(len(age)) < 0.45
    hours = np.where(exact_forty, 40, np.where(tens, np.round(usual / 5) * 5, np.round(usual)))
    rare = rng.random(len(age)) < 0.02
    return np.clip(np.where(rare, rng.integers(1, 96, len(age)), hours), 1, 95).astype(np.int64)


def _salary(
    rng: np.random.Generator, age: IntArray, gender: IntArray, education: IntArray, hours: IntArray
) -> IntArray:
    career = 1.0 - ((age - 48) / 45) ** 2
    log_pay = 8.55 + 0.13 * education + 0.9 * career + 0.12 * gender + 0.6 * np.log(hours / 40 + 0.02)
    pay = np.exp(log_pay + rng.normal(0, 0.55, len(age)))
    nearest = np.searchsorted(SALARIES, pay).clip(0, len(SALARIES) - 1)
    # people round their pay: most to thousands
    rounded = np.where(rng.random(len(age)) < 0.6, np.maximum(np.round(pay / 1_000), 1) * 1_000, SALARIES[nearest])
    salary: IntArray = SALARIES[np.searchsorted(SALARIES, rounded).clip(0, len(SALARIES) - 1)]
    if len(age) >= 20 * len(SALARIES):
        salary[rng.choice(len(age), len(SALARIES), replace=False)] = SALARIES  # so that every amount occurs
    return salary
