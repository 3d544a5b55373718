"""k_marginal, unique_exact_matches: NIST's scores of small marginals and of unique records (Task et al. 2023, SDNist).

k_marginal (first in the 2018 differential privacy challenge): the mean, over sets of k columns, of the total variation
distance between the shares of their combinations of values in both tables; the score is 1,000 (1 - mean): 1,000 for
equal marginals, 0 for disjoint ones. Numbers with more than `bins` values are cut at the quantiles of the original (20
bins in SDNist), the same for both. `sampled` is the score of two random halves of the original.
Departure: SDNist draws 50 sets with repetition; here every set of 2 and of 3 columns counts once, or, where there are
more than `marginals`, as many drawn without. Cost: one pass over the rows a set of columns.
unique_exact_matches: the share of records, unique on `columns` (all labelled ones by default), that some row of the
release equals on all of them. It says what was left unchanged, not what an attacker finds (`linkage_risk`). Cost: one
sort. How boxes and slices are read: `measures.utility.sampled_microdata`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from duckdb_anon.kernels.cells.table import MeasureCall
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.utility.sampled_microdata import BY, COLUMNS, Comparison, Drawn, binned, columns_of, pairs
from duckdb_anon.model.coded_table import FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import Answer, Parameter, fields
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.progress import tick

ORDERS = (2, 3)


@Comparison(
    summary="similarity of 2- and 3-way marginals, a score up to 1,000, compared with two halves of the original",
    paper="Task et al. (2023), NIST SDNist, k-marginal edit distance",
    example="FROM k_marginal('people', 'release')",
    parameters=(
        COLUMNS,
        Parameter(
            "bins", "number of bins of numeric columns, at the original's quantiles", "integer", 20, low=2, high=1000
        ),
        Parameter("marginals", "maximum number of column sets of each size", "integer", 500, low=1, high=100_000),
        BY,
    ),
    returns=fields(
        "subgroup VARCHAR, k BIGINT, marginals BIGINT, original_rows BIGINT, release_rows BIGINT, score DOUBLE, "
        "sampled DOUBLE, worst VARCHAR, worst_score DOUBLE"
    ),
)
def k_marginal(call: MeasureCall) -> Answer:
    """One row a subgroup and number of columns."""
    names, params, rng = columns_of(call), call.params, call.rng
    if len(names) < ORDERS[0]:
        raise ColumnError(f"it compares sets of 2 and 3 columns, and there is only {names[0]}; name another one")
    found: list[tuple[Any, ...]] = []
    bins: dict[str, IntArray] = {}
    sets: dict[int, list[tuple[str, ...]]] = {}
    for subgroup, original, release in pairs(call, names):
        compared = [name for name in names if fold(name) != fold(params["subgroup"] or "")] if bins else names
        if not bins:
            bins = {n: binned(call.original.columns[n].domain, original.columns[n], params["bins"]) for n in names}
        for order in ORDERS:
            if len(compared) < order:
                continue
            sets[order] = _sets(compared, order, params["marginals"], rng)
            scores = 1000 * (1 - _distances(original, release, bins, sets[order]))
            half = rng.permutation(original.rows) * 2 < original.rows
            halves = _distances(original.only(half), original.only(~half), bins, sets[order])
            worst = int(scores.argmin())
            found.append((
                subgroup, order, len(sets[order]), original.rows, release.rows, scores.mean(),
                1000 * (1 - halves.mean()), ", ".join(sets[order][worst]), scores[worst],
            ))  # fmt: skip
    return found


def _sets(names: Sequence[str], order: int, most: int, rng: np.random.Generator) -> list[tuple[str, ...]]:
    if comb(len(names), order) <= most:
        return list(combinations(names, order))
    drawn: dict[tuple[int, ...], None] = {}
    while len(drawn) < most:
        drawn[tuple(sorted(rng.choice(len(names), order, replace=False).tolist()))] = None
    return [tuple(names[index] for index in chosen) for chosen in drawn]


def _distances(
    first: Drawn, second: Drawn, bins: Mapping[str, IntArray], sets: Sequence[tuple[str, ...]]
) -> FloatArray:
    """Total variation distance of each marginal, in [0, 1]; 1 where a table has no row."""
    if not first.rows or not second.rows:
        return np.ones(len(sets))
    both = {name: bins[name][np.concatenate([first.columns[name], second.columns[name]])] for name in bins}
    distance = np.zeros(len(sets))
    for index, names in enumerate(sets):
        tick()
        numbered = keys_of([both[name] for name in names], [int(bins[name].max()) + 1 for name in names])
        key, keys = numbered.of_row, numbered.number
        p = np.bincount(key[: first.rows], minlength=keys) / first.rows
        q = np.bincount(key[first.rows :], minlength=keys) / second.rows
        distance[index] = np.abs(p - q).sum() / 2
    return distance


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
    for subgroup, original, release in pairs(call, names):
        key = keys_of([np.concatenate([side.columns[n] for side in (original, release)]) for n in names]).of_row
        ours, theirs = key[: original.rows], key[original.rows :]
        unique = np.bincount(ours)[ours] == 1
        uniques, matched = int(unique.sum()), int((unique & np.isin(ours, theirs)).sum())
        found.append((subgroup, original.rows, uniques, matched, matched / uniques if uniques else 0.0))
    return found
