"""The weighted relation is exact on identity releases, the mean over completions elsewhere, and within its bounds."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pytest

from duckdb_anon.rewrite import rewriter
from duckdb_anon.rewrite.factors import NotLinearError
from tests.property.test_rewrite import SIGMAS, comparable, completed, completions
from tests.reference.random_queries import random_query
from tests.reference.rewrite_releases import COUNTED
from tests.reference.rewrite_tables import SELF, database, seen

LINEAR = tuple(query for query in COUNTED if "CUBE" not in query)


def answers_as_the_original(people: duckdb.DuckDBPyConnection, seed: int, number: int) -> Counter[str]:
    rng, found = random.Random(seed), Counter[str]()
    shapes = sorted(SELF)
    for place in range(number):
        query, shape = random_query(rng), shapes[place % len(shapes)]
        tables = [seen(people, "people", with_tree=True), seen(people, "regions")]
        try:
            text = rewriter.rewrite(query, tables[0], seen(people, f"identity_{shape}"), tables[1:])
        except NotLinearError:
            found["not linear"] += 1
            continue
        assert comparable(people.execute(text).fetchall()) == comparable(people.execute(query).fetchall()), (
            shape,
            query,
        )
        found["answered"] += 1
    return found


def test_identity_releases_answer_random_queries_exactly() -> None:
    found = answers_as_the_original(database(60), 0, 35)
    assert found["answered"] > 20


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(1, 21))
def test_identity_releases_answer_hundreds_of_random_queries_exactly(seed: int) -> None:
    found = answers_as_the_original(database(60), seed, 28)
    assert found["answered"] > 12


@pytest.mark.parametrize("shape", ["boxes", "buckets", "sliced"])
def test_estimates_are_means_over_completions(shape: str) -> None:
    con, drawn = completed(shape, LINEAR, 160)
    people, release = seen(con, "people", with_tree=True), seen(con, shape)
    for query, answers in zip(LINEAR, drawn, strict=True):
        estimate = completions.keyed(con, rewriter.rewrite(query, people, release))
        assert set().union(*answers) <= set(estimate), query
        for key, measures in estimate.items():
            for place, value in enumerate(measures):
                mean, error = completions.mean_and_error([a[key][place] or 0 if key in a else 0 for a in answers])
                assert abs((value or 0) - mean) <= SIGMAS * error + 1e-9, (query, key, place, value, mean)


@pytest.mark.parametrize("shape", ["boxes", "buckets"])
def test_hard_bounds_contain_every_completion(shape: str) -> None:
    con, drawn = completed(shape, LINEAR, 60)
    people, release = seen(con, "people", with_tree=True), seen(con, shape)
    checked = 0
    for query, answers in zip(LINEAR, drawn, strict=True):
        cursor = con.execute(rewriter.rewrite(query, people, release, bounds="hard"))
        names = [d[0] for d in cursor.description]
        cut = next(i for i, name in enumerate(names) if name.startswith("m"))
        bounds = {row[:cut]: dict(zip(names, row, strict=True)) for row in cursor.fetchall()}
        for key, place, value in ((k, i, v) for one in answers for k, m in one.items() for i, v in enumerate(m)):
            if value is None or f"m{place + 1}_low" not in names:
                continue
            low, high = (bounds[key][f"m{place + 1}_{end}"] for end in ("low", "high"))
            assert low is None or low <= value + 1e-9, (query, key, place, low, value)
            assert high is None or value <= high + 1e-9, (query, key, place, value, high)
            checked += 1
    assert checked > 300
