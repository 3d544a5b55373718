"""Rank swapping: every value is exchanged with one of nearly the same rank.

Values of each quasi-identifier are exchanged between records whose ranks differ by at most p percent of the records,
each column by itself; other columns are unchanged, and every histogram is exact. It guarantees no k, l or delta: p
limits how far values move, not the risk of re-identification; measure that with `linkage_risk`.

Source: Moore, R. A. (1996), Controlled data-swapping techniques, section 3. Readings: equal values are ranked at
random; hierarchies are ranked by their leaves from left to right, nominal values by their texts; NULL ranks last. A
value without a partner within reach stays (at most the last few of a column). Cost: a sort of the records a column.
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.permutation.rank_swap import swapped_within
from duckdb_anon.methods.partition_params import plain_layout, unchanged
from duckdb_anon.model.coded_table import Attribute, CodedTable, IntArray
from duckdb_anon.model.function_specs import REQUIRED, Cutting, Method, Parameter, Params, Sweep
from duckdb_anon.model.progress import tick
from duckdb_anon.model.released_columns import Cells, Coded

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
