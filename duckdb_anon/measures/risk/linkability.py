"""linkability: whether a release reveals that two sets of values belong to one individual.

An attacker knows a person's values in two disjoint sets of columns, finds the k nearest released rows by each, and
succeeds when a row is among both. Baseline: two times k rows at random. Control: persons of `holdout`.
Source: Giomi et al. (2023), section 4.2; WP29, Opinion 05/2014. Range [0, 1]. Cost: attacks times rows times columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duckdb_anon.kernels.attacks.gower_nn import nearest_rows
from duckdb_anon.measures.risk.wp29 import (
    ATTACKS,
    BOXES,
    HOLDOUT,
    Criterion,
    Numbers,
    answer,
    columns_of,
    numbers,
    of_rows,
    rates,
)  # fmt: skip
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.function_specs import Parameter, Params
from duckdb_anon.model.progress import stop_flag
from duckdb_anon.model.release_table import ReadTable


def linkability(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row."""
    read = dict(zip(params["read"], tables, strict=True))
    every, told = of_rows(columns_of("linkability", params, None, "columns"), read["release"])
    first = columns_of("linkability", params, params["columns_a"] or every[::2], "columns_a")
    second = columns_of("linkability", params, params["columns_b"] or [n for n in every if n not in first], "columns_b")
    if set(first) & set(second) or not first or not second:
        raise ParameterError("linkability: columns_a and columns_b must be two disjoint sets of columns, none empty")
    release, boxes = numbers("linkability", read, "release", [*first, *second])
    k = min(params["k"], release.rows)

    def attack(table: str) -> FloatArray:
        people, _ = numbers("linkability", read, table, [*first, *second])
        who = rng.choice(people.rows, min(params["attacks"], people.rows), replace=False)
        by_a = neighbours(people.only(first), release.only(first), who, k, rng)
        by_b = neighbours(people.only(second), release.only(second), who, k, rng)
        return _shared(by_a, by_b)

    found = attack("original")
    guess = [rng.choice(release.rows, (len(found), k)) for _ in range(2)]
    control = attack("holdout") if "holdout" in read else None
    note = [
        f"{', '.join(first)} | {', '.join(second)}",
        *[BOXES] * boxes,
        *[told] * (told != "" and not params["columns_b"]),
    ]
    return answer([rates("linkability", found, _shared(*guess), control, "; ".join(note))])


def neighbours(people: Numbers, release: Numbers, who: IntArray, k: int, rng: np.random.Generator) -> IntArray:
    """The k nearest released rows of some persons, ties at random, shape (persons, k).

    `people`: what is known of them.
    `k`: how many.
    """
    out = np.zeros((len(who), k), dtype=np.int64)
    nearest_rows(
        np.ascontiguousarray(people.values[:, who]), release.values, release.nominal, release.span,
        rng.permutation(release.rows), out, stop_flag(),
    )  # fmt: skip
    return out


def _shared(first: IntArray, second: IntArray) -> FloatArray:
    both: FloatArray = (first[:, :, None] == second[:, None, :]).any(axis=(1, 2)).astype(np.float64)
    return both


MEASURE = Criterion(
    name="linkability",
    summary="linkability (WP29): do two sets of an individual's values lead to the same released record?",
    example="FROM linkability('people', 'release', columns_a := ['age', 'gender'])",
    smallest="columns_a := ['{number}'], columns_b := ['{text}']",
    instead=("linkage_risk",),
    parameters=(
        Parameter("columns_a", "columns of the first set (default: every second one)", "names"),
        Parameter("columns_b", "columns of the second set (default: all others)", "names"),
        Parameter("k", "number of nearest records by each set", "integer", 1, low=1, high=1000),
        ATTACKS,
        HOLDOUT,
    ),
    compute=linkability,
)
