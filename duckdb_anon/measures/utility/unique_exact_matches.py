"""unique_exact_matches: people who are alone in the original and stand in the release value for value.

NIST's measure (Task et al. 2023, SDNist): of the original's rows that no other row equals on `columns` (all labelled
ones by default), the share that some row of the release equals on all of them. It says what was left as it was, not
what an attacker finds (`linkage_risk`). How boxes and slices are read: `measures.utility.sampled_microdata`. Cost:
one sort.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.utility.sampled_microdata import BY, COLUMNS, Comparison, Drawn, columns_of, pairs
from duckdb_anon.model.coded_table import IntArray
from duckdb_anon.model.function_specs import Params, fields
from duckdb_anon.model.release_table import ReadTable

NAME = "unique_exact_matches"


def unique_exact_matches(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row a subgroup."""
    names = columns_of(NAME, params, tables[1])
    found: list[tuple[Any, ...]] = []
    for pair in pairs(NAME, tables, names, params["subgroup"], rng):
        ours, theirs = keys(pair.original, pair.release, names)
        alone = np.bincount(ours)[ours] == 1
        matched = alone & np.isin(ours, theirs)
        uniques, hits = int(alone.sum()), int(matched.sum())
        found.append((pair.subgroup, pair.original.rows, uniques, hits, hits / uniques if uniques else 0.0))
    return MEASURE.columns(found)


def keys(original: Drawn, release: Drawn, names: Sequence[str]) -> tuple[IntArray, IntArray]:
    """A number for each row of both tables, equal where the rows are equal on `names`."""
    key = keys_of([np.concatenate([original.columns[n], release.columns[n]]) for n in names]).of_row
    return key[: original.rows], key[original.rows :]


MEASURE = Comparison(
    name=NAME,
    summary="records that are unique in the original and appear unchanged in the release",
    paper="Task et al. (2023), NIST SDNist, unique exact matches",
    example="FROM unique_exact_matches('people', 'release')",
    parameters=(COLUMNS, BY),
    returns=fields("subgroup VARCHAR, rows BIGINT, uniques BIGINT, matched BIGINT, share DOUBLE"),
    compute=unique_exact_matches,
)
