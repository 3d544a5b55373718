"""linkability, inference: what the nearest released records reveal of an individual (WP29).

linkability: an attacker knows an individual's values in two disjoint sets of columns, finds the k nearest released
records by each, and succeeds when a record is among both; baseline: two times k records at random. inference: the
attacker guesses a column by the value of the record nearest on the known columns; of an ordered column with more than
20 values the guess is right within 5% of the true value; baseline: the value of a record at random. Control:
individuals of `holdout`. Source: Giomi et al. (2023), sections 4.2 and 4.3; WP29, Opinion 05/2014. Range [0, 1].
Cost: attacks times rows times columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duckdb_anon.kernels.attacks.record_matching import nearest_rows
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
from duckdb_anon.model.errors import ColumnError, ParameterError
from duckdb_anon.model.function_specs import Parameter, Params
from duckdb_anon.model.progress import stop_flag
from duckdb_anon.model.release_table import ReadTable

CONTINUOUS = 20
"""Ordered columns of more values are inferred within a tolerance."""


def linkability(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row."""
    read = dict(zip(params["read"], tables, strict=True))
    every, left_out = of_rows(columns_of("linkability", params, None, "columns"), read["release"])
    first = columns_of("linkability", params, params["columns_a"] or every[::2], "columns_a")
    second = columns_of("linkability", params, params["columns_b"] or [n for n in every if n not in first], "columns_b")
    if set(first) & set(second) or not first or not second:
        raise ParameterError("linkability: columns_a and columns_b must be two disjoint sets of columns, none empty")
    release, boxes = numbers("linkability", read, "release", [*first, *second])
    k = min(params["k"], release.rows)

    def attack(table: str) -> FloatArray:
        people, _ = numbers("linkability", read, table, [*first, *second])
        targets = _targets(people, params, rng)
        return _common(*(nearest_records(people, release, columns, targets, k, rng) for columns in (first, second)))

    found = attack("original")
    guess = [rng.choice(release.rows, (len(found), k)) for _ in range(2)]
    control = attack("holdout") if "holdout" in read else None
    notes = [f"{', '.join(first)} | {', '.join(second)}", BOXES if boxes else ""]
    notes.append("" if params["columns_b"] else left_out)
    return answer([rates("linkability", found, _common(*guess), control, "; ".join(filter(None, notes)))])


def inference(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row a column that is inferred."""
    read = dict(zip(params["read"], tables, strict=True))
    roles = params["roles"]
    secrets = columns_of("inference", params, params["secret"] or [i.name for i in roles.sensitive], "secret")
    if not secrets:
        raise ParameterError("inference: no sensitive column is labelled; say secret := '...'")
    every = columns_of("inference", params, params["known"] or [i.name for i in roles.qi], "known")
    rows = []
    for secret in secrets:
        if secret in read["release"].columns and read["release"].columns[secret].counted:
            raise ColumnError(
                f"inference: rows of the release show counts of '{secret}' in their bucket, so the nearest row tells "
                f"no value; attribute_risk reads counts, or name a column that rows show: secret := '...'"
            )
        known = [name for name in every if name != secret]
        if not known:
            raise ParameterError(f"inference: nothing is known besides '{secret}'; name columns in known := [...]")
        rows.append(_inferred(read, secret, known, params, rng))
    return answer(rows)


def _inferred(
    read: Mapping[str, ReadTable], secret: str, known: list[str], params: Params, rng: np.random.Generator
) -> dict[str, Any]:
    release, boxes = numbers("inference", read, "release", [*known, secret])
    domain = read["original"].columns[secret].domain
    continuous = domain.kind == "ordered" and domain.size > CONTINUOUS

    def attack(table: str, *, at_random: bool = False) -> FloatArray:
        people, _ = numbers("inference", read, table, [*known, secret])
        targets = _targets(people, params, rng)
        if at_random:
            record = rng.integers(0, release.rows, len(targets))
        else:
            record = nearest_records(people, release, known, targets, 1, rng)[:, 0]
        guess, truth = release.values[-1, record], people.values[-1, targets]
        tolerance = params["tolerance"] * np.abs(truth) if continuous else 0.0
        right: FloatArray = (np.abs(guess - truth) <= tolerance).astype(np.float64)
        return right

    control = attack("holdout") if "holdout" in read else None
    note = secret + (f", within {params['tolerance']:g} of the value" if continuous else "")
    note += f"; {BOXES}" if boxes else ""
    return rates("inference", attack("original"), attack("original", at_random=True), control, note)


def _targets(people: Numbers, params: Params, rng: np.random.Generator) -> IntArray:
    chosen: IntArray = rng.choice(people.rows, min(params["attacks"], people.rows), replace=False)
    return chosen


def nearest_records(
    people: Numbers, release: Numbers, columns: Sequence[str], targets: IntArray, k: int, rng: np.random.Generator
) -> IntArray:
    """The k released records nearest to some individuals on some columns, ties at random, shape (targets, k)."""
    people, release = people.only(columns), release.only(columns)
    out = np.zeros((len(targets), k), dtype=np.int64)
    nearest_rows(
        np.ascontiguousarray(people.values[:, targets]), release.values, release.nominal, release.span,
        rng.permutation(release.rows), out, stop_flag(),
    )  # fmt: skip
    return out


def _common(first: IntArray, second: IntArray) -> FloatArray:
    """Whether two sets of records have one in common."""
    both: FloatArray = (first[:, :, None] == second[:, None, :]).any(axis=(1, 2)).astype(np.float64)
    return both


LINKABILITY = Criterion(
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
INFERENCE = Criterion(
    name="inference",
    summary="inference (WP29): can the sensitive value be inferred from the nearest released record?",
    example="FROM inference('people', 'release')",
    instead=("attribute_risk",),
    parameters=(
        Parameter("secret", "columns to infer (default: the sensitive ones)", "names"),
        Parameter("known", "columns that the attacker knows (default: all other quasi-identifiers)", "names"),
        Parameter("tolerance", "relative error up to which a continuous value is correct", "number", 0.05, low=0),
        ATTACKS,
        HOLDOUT,
    ),
    compute=inference,
)
