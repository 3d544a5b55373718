"""apparent_matches: records that are unique on the quasi-identifiers in both tables, and whether the rest is theirs.

NIST's measure (Task et al. 2023, SDNist): of the original's rows that are alone on the quasi-identifiers, those that
equal exactly one row of the release there look found. `agreement` is the mean share of the other columns (sensitive and
insensitive) on which that row is right, `fully` the number of rows right on all of them. A found row that is wrong is
no disclosure, and whoever trusts it is misled. How boxes and slices are read: `measures.utility.sampled_microdata`.
Cost: one sort.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duckdb_anon.measures.released_rows import require_columns
from duckdb_anon.measures.utility.sampled_microdata import BY, Comparison, pairs
from duckdb_anon.measures.utility.unique_exact_matches import keys
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import Params, fields
from duckdb_anon.model.release_table import ReadTable

NAME = "apparent_matches"


def apparent_matches(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row a subgroup."""
    roles, release = params["roles"], tables[1]
    qi = [info.name for info in roles.qi]
    require_columns(NAME, release, qi)
    rest = [info.name for info in roles.sensitive + roles.keep if info.name in release.columns]
    if not rest:
        raise ColumnError(
            f"{NAME}: the release has no column but the quasi-identifiers that could be right or wrong; name some "
            "in sensitive := [...] or keep := [...]"
        )
    found: list[tuple[Any, ...]] = []
    for pair in pairs(NAME, tables, [*qi, *rest], params["subgroup"], rng):
        ours, theirs = keys(pair.original, pair.release, qi)
        size = max(int(ours.max(initial=-1)), int(theirs.max(initial=-1))) + 1
        mine, its = np.bincount(ours, minlength=size), np.bincount(theirs, minlength=size)
        place = np.zeros(size, dtype=np.int64)
        place[theirs] = np.arange(len(theirs))
        people = np.flatnonzero((mine[ours] == 1) & (its[ours] == 1))
        rows = place[ours[people]]
        right = np.array([pair.original.columns[n][people] == pair.release.columns[n][rows] for n in rest])
        uniques = int((mine == 1).sum())
        found.append((
            pair.subgroup, uniques, len(people), len(people) / uniques if uniques else 0.0,
            float(right.mean()) if len(people) else float("nan"), int(right.all(axis=0).sum()),
        ))  # fmt: skip
    return MEASURE.columns(found)


MEASURE = Comparison(
    name=NAME,
    summary="records unique on their quasi-identifiers in both tables, and how much of the rest agrees",
    paper="Task et al. (2023), NIST SDNist, apparent match distribution",
    example="FROM apparent_matches('people', 'release')",
    parameters=(BY,),
    returns=fields(
        "subgroup VARCHAR, uniques BIGINT, matched BIGINT, share DOUBLE, agreement DOUBLE OR NULL, fully BIGINT"
    ),
    compute=apparent_matches,
    needs=("qi",),
)
