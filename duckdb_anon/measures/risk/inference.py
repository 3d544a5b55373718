"""inference: whether a release reveals an individual's value of a column to an attacker who knows others.

The guess is the value of the nearest released row on the known columns; of an ordered column with more than 20 values
it is right within 5% of the true one. Baseline: the value of a released row at random. Control: persons of `holdout`.
Source: Giomi et al. (2023), section 4.3; WP29, Opinion 05/2014. Range [0, 1]. Cost: attacks times rows times columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duckdb_anon.measures.risk.linkability import neighbours
from duckdb_anon.measures.risk.wp29 import ATTACKS, BOXES, HOLDOUT, Criterion, answer, columns_of, numbers, rates
from duckdb_anon.model.coded_table import FloatArray
from duckdb_anon.model.errors import ColumnError, ParameterError
from duckdb_anon.model.function_specs import Parameter, Params
from duckdb_anon.model.release_table import ReadTable

CONTINUOUS = 20


def inference(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row a secret."""
    read = dict(zip(params["read"], tables, strict=True))
    roles = params["roles"]
    secrets = columns_of("inference", params, params["secret"] or [i.name for i in roles.sensitive], "secret")
    if not secrets:
        raise ParameterError("inference: no sensitive column is labelled; say secret := '...'")
    rows = []
    for secret in secrets:
        if secret in read["release"].columns and read["release"].columns[secret].counted:
            raise ColumnError(
                f"inference: rows of the release show counts of '{secret}' in their bucket, so the nearest row tells "
                f"no value; attribute_risk reads counts, or name a column that rows show: secret := '...'"
            )
        known = columns_of("inference", params, params["known"] or [i.name for i in roles.qi], "known")
        known = [name for name in known if name != secret]
        if not known:
            raise ParameterError(f"inference: nothing is known besides '{secret}'; name columns in known := [...]")
        _, boxes = numbers("inference", read, "release", [*known, secret])
        places = read["original"].columns[secret].domain
        continuous = places.kind == "ordered" and places.size > CONTINUOUS

        def attack(
            table: str, guessed: bool, names: list[str] = known, s: str = secret, near: bool = continuous
        ) -> FloatArray:
            released, _ = numbers("inference", read, "release", [*names, s])
            people, _ = numbers("inference", read, table, [*names, s])
            who = rng.choice(people.rows, min(params["attacks"], people.rows), replace=False)
            if guessed:
                row = rng.integers(0, released.rows, len(who))
            else:
                row = neighbours(people.only(names), released.only(names), who, 1, rng)[:, 0]
            guess, truth = released.values[-1, row], people.values[-1, who]
            right = np.abs(guess - truth) <= params["tolerance"] * np.abs(truth) if near else guess == truth
            found: FloatArray = right.astype(np.float64)
            return found

        control = attack("holdout", False) if "holdout" in read else None
        note = secret + (f", within {params['tolerance']:g} of the value" if continuous else "")
        note += f"; {BOXES}" if boxes else ""
        rows.append(rates("inference", attack("original", False), attack("original", True), control, note))
    return answer(rows)


MEASURE = Criterion(
    name="inference",
    summary="inference (WP29): can the sensitive value be inferred from the nearest released record?",
    example="FROM inference('people', 'release')",
    instead=("attribute_risk",),
    parameters=(
        Parameter("secret", "columns to infer (default: the sensitive ones)", "names"),
        Parameter(
            "known", "columns that the attacker knows (default: all quasi-identifiers except those to infer)", "names"
        ),
        Parameter(
            "tolerance",
            "relative error up to which an inferred continuous value counts as correct",
            "number",
            0.05,
            low=0,
        ),
        ATTACKS,
        HOLDOUT,
    ),
    compute=inference,
)
