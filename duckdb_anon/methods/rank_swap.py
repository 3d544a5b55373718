"""Rank swapping: every value is exchanged with one of nearly the same rank.

Values of each quasi-identifier are exchanged between records whose ranks differ by at most p percent of the records,
each column by itself; other columns are unchanged, and every histogram is exact. It guarantees no k, l or delta: p
limits how far values move, not the risk of re-identification; measure that with `linkage_risk`.

Source: Moore, R. A. (1996), Controlled data-swapping techniques, section 3. Readings: equal values are ranked at
random; hierarchies are ranked by their leaves from left to right, nominal values by their texts; NULL ranks last. A
value without a partner within reach stays (at most the last few of a column). Cost: a sort of the records a column.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from duckdb_anon.kernels.jit import compiled
from duckdb_anon.kernels.rng_streams import below, next_word
from duckdb_anon.methods.partition_params import plain_layout, unchanged
from duckdb_anon.model.coded_table import Attribute, CodedTable, IntArray
from duckdb_anon.model.function_specs import REQUIRED, Cutting, Method, Parameter, Params, Sweep
from duckdb_anon.model.progress import stop_flag, tick
from duckdb_anon.model.released_columns import Cells, Coded

Array = NDArray[Any]
_TRIES = 64


# Rows exchanged with rows of nearly the same rank (Moore 1996). From the lowest rank up, each row that was not taken
# yet is paired with one drawn from those not taken among the next `reach` ranks. Cost: linear (a partner is drawn by
# trying places; where few are left, they are counted).
def swapped_within(rows: IntArray, reach: int, rng: np.random.Generator) -> IntArray:
    """For each row the row whose value it takes.

    `rows`: rows by rank, shape (n,); `reach`: largest difference of two ranks, 0 or more. Returns: shape (n,): a
    permutation of range(n) that is its own inverse.

    >>> swapped_within(np.array([2, 0, 1]), 0, np.random.default_rng(0)).tolist()
    [0, 1, 2]
    """
    partner = np.full(len(rows), -1, dtype=np.int64)
    _pair(partner, reach, rng.integers(1, 2**63, size=1, dtype=np.uint64), stop_flag())
    source = np.empty(len(rows), dtype=np.int64)
    source[rows] = rows[partner]
    return source


@compiled
def _pair(partner: Array, reach: int, seed: Array, stop: Array) -> None:
    """Find a partner of each rank, the rank itself where none was left; `partner` comes in as -1 everywhere."""
    state = seed[0]
    n = len(partner)
    for i in range(n):
        if partner[i] >= 0:
            continue
        if stop[0] != 0:
            return
        width = min(reach, n - 1 - i)
        chosen = -1
        for _ in range(_TRIES if width > 0 else 0):
            state = next_word(state)
            index = i + 1 + below(state >> np.uint64(32), width)
            if partner[index] < 0:
                chosen = index
                break
        if chosen < 0:
            free = 0
            for j in range(i + 1, i + 1 + width):
                free += partner[j] < 0
            if free > 0:
                state = next_word(state)
                left = below(state >> np.uint64(32), free)
                for j in range(i + 1, i + 1 + width):
                    if partner[j] < 0:
                        if left == 0:
                            chosen = j
                            break
                        left -= 1
        if chosen < 0:
            partner[i] = i
        else:
            partner[i] = chosen
            partner[chosen] = i


NAME = "rank_swap"


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Swap each quasi-identifier."""
    published: dict[str, Cells] = {}
    reach = int(table.rows * params["p"] / 100)
    for attribute in table.qi:
        tick()
        rows = swapped_within(ranked(attribute, rng), reach, rng)
        published[attribute.name] = Coded(attribute.name, attribute.codes[rows])
    return published | unchanged(table)


def ranked(attribute: Attribute, rng: np.random.Generator) -> IntArray:
    """Rows by rank, those of equal value in random order, shape (n,)."""
    tick()
    mixed = rng.permutation(len(attribute.codes))
    place = attribute.place_of_code[attribute.codes]
    return np.asarray(mixed[np.argsort(place[mixed], kind="stable")], dtype=np.int64)


def parts(table: CodedTable, params: Params, repeated: bool) -> Cutting:
    """Rows at random: p percent of a random part's ranks are p percent of the table's, but for chance."""
    return Cutting("deal")


METHOD = Method(
    name=NAME,
    summary="each value exchanged with a value of nearly the same rank, at most p percent away; no "
"guarantee of k, l or delta",
    paper="Moore, R. A. (1996), Controlled data-swapping techniques for masking public use microdata sets",
    example="CREATE TABLE swapped AS FROM rank_swap('people', 5)",
    smallest="p := 5",
    trials=("p := 1", "p := 100"),
    formats=("rows",),
    instead=("muco",),
    parameters=(
        Parameter(
            "p", "maximum difference of ranks, in percent of the records; above 0, at most 100", "number", REQUIRED,
            above=0, high=100,
        ),
    ),
    layout=plain_layout,
    release=release,
    moves_values=True,
    sweeps=(Sweep("p := {n}", (2, 10, 25)),),
    parts=parts,
    finished=("rows", "values"),
)  # fmt: skip
