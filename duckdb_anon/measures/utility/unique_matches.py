"""unique_exact_matches, apparent_matches: records unique in the original, and what the release shows of them.

NIST's measures (Task et al. 2023, SDNist). Exact: the share of records, unique on `columns` (all labelled ones by
default), that some row of the release equals on all of them; it says what was left unchanged, not what an attacker
finds (`linkage_risk`). Apparent: records unique on the quasi-identifiers that equal exactly one row of the release
there look found; `agreement` is the mean share of the other columns (sensitive and insensitive) on which that row is
right, `fully` the number of rows right on all of them. A found row that is wrong is no disclosure, and an attacker who
trusts it is misled. How boxes and slices are read: `measures.utility.sampled_microdata`. Cost: one sort.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from duckdb_anon.kernels.cells.table import MeasureCall
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.released_rows import require_columns
from duckdb_anon.measures.utility.sampled_microdata import BY, COLUMNS, Comparison, Drawn, columns_of, pairs
from duckdb_anon.model.coded_table import IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import Answer, fields


@Comparison(
    summary="records that are unique in the original and appear unchanged in the release",
    paper="Task et al. (2023), NIST SDNist, unique exact matches",
    example="FROM unique_exact_matches('people', 'release')",
    parameters=(COLUMNS, BY),
    returns=fields("subgroup VARCHAR, rows BIGINT, uniques BIGINT, matched BIGINT, share DOUBLE"),
)
def unique_exact_matches(call: MeasureCall) -> Answer:
    """One row a subgroup."""
    names = columns_of(call)
    found: list[tuple[Any, ...]] = []
    for subgroup, *drawn in pairs(call, names):
        original, released = _keys(drawn, names)
        unique = np.bincount(original)[original] == 1
        uniques, matched = int(unique.sum()), int((unique & np.isin(original, released)).sum())
        found.append((subgroup, drawn[0].rows, uniques, matched, matched / uniques if uniques else 0.0))
    return found


@Comparison(
    summary="records unique on their quasi-identifiers in both tables, and how much of the rest agrees",
    paper="Task et al. (2023), NIST SDNist, apparent match distribution",
    example="FROM apparent_matches('people', 'release')",
    parameters=(BY,),
    returns=fields(
        "subgroup VARCHAR, uniques BIGINT, matched BIGINT, share DOUBLE, agreement DOUBLE OR NULL, fully BIGINT"
    ),
    needs=("qi",),
)
def apparent_matches(call: MeasureCall) -> Answer:
    """One row a subgroup."""
    qi, roles = call.qi, call.roles
    require_columns(call.release, qi)
    rest = [info.name for info in roles.sensitive + roles.keep if info.name in call.release.columns]
    if not rest:
        raise ColumnError(
            "the release has no column but the quasi-identifiers that could be right or wrong; name "
            "some in sensitive := [...] or keep := [...]"
        )
    found: list[tuple[Any, ...]] = []
    for subgroup, *drawn in pairs(call, [*qi, *rest]):
        original, released = _keys(drawn, qi)
        size = max(int(original.max(initial=-1)), int(released.max(initial=-1))) + 1
        in_original, in_release = np.bincount(original, minlength=size), np.bincount(released, minlength=size)
        row_of_key = np.zeros(size, dtype=np.int64)
        row_of_key[released] = np.arange(len(released))
        records = np.flatnonzero((in_original[original] == 1) & (in_release[original] == 1))
        rows = row_of_key[original[records]]
        right = np.array([drawn[0].columns[n][records] == drawn[1].columns[n][rows] for n in rest])
        uniques = int((in_original == 1).sum())
        found.append((
            subgroup, uniques, len(records), len(records) / uniques if uniques else 0.0,
            float(right.mean()) if len(records) else float("nan"), int(right.all(axis=0).sum()),
        ))  # fmt: skip
    return found


def _keys(drawn: Sequence[Drawn], names: Sequence[str]) -> tuple[IntArray, IntArray]:
    """A number for each row of both tables, equal where the rows are equal on `names`."""
    key = keys_of([np.concatenate([side.columns[n] for side in drawn]) for n in names]).of_row
    return key[: drawn[0].rows], key[drawn[0].rows :]
