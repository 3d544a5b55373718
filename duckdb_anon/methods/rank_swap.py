"""Rank swapping: every value is exchanged with one of nearly the same rank.

Releases every quasi-identifier with its values exchanged between rows whose ranks differ by at most p percent of the
rows, each column on its own; sensitive and insensitive columns stay with their rows. Every column keeps its values,
so that its histogram is exact. No k, l or delta is promised: p says how far values travel, not how well a person is
hidden; measure that with `linkage_risk`.

Paper: Moore, R. A. (1996), Controlled data-swapping techniques for masking public use microdata sets, section 3.
Readings: equal values are ranked at random, so that they too travel; hierarchies are ranked by their leaves from left
to right; nominal values without a hierarchy have no ranks, so theirs is the order of their texts; NULL ranks last. A
value that finds no partner left within reach stays (at most the last few of a column).
Cost: a sort of the rows a column.
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.permutation.rank_swap import swapped_within
from duckdb_anon.model.coded_table import Attribute, CodedTable, IntArray
from duckdb_anon.model.function_specs import REQUIRED, ColumnPlan, Cutting, Method, Parameter, Params, Roles, Sweep
from duckdb_anon.model.progress import tick
from duckdb_anon.model.released_columns import ROWS, Cells, Coded, Source

NAME = "rank_swap"


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Swap each quasi-identifier.

    Args:
        table: quasi-identifiers; sensitive columns pass through.
        params: p.
        rng: ranks equal values and picks partners.

    Returns:
        Codes of every quasi-identifier and sensitive column, and the source row of each released row.
    """
    published: dict[str, Cells] = {}
    reach = int(table.rows * params["p"] / 100)
    for attribute in table.qi:
        tick()
        rows = swapped_within(ranked(attribute, rng), reach, rng)
        published[attribute.name] = Coded(attribute.name, attribute.codes[rows])
    published |= {a.name: Coded(a.name, a.codes) for a in table.sensitive}
    return {**published, ROWS: Source(np.arange(table.rows, dtype=np.int64))}


def ranked(attribute: Attribute, rng: np.random.Generator) -> IntArray:
    """Rows by rank, those of equal value in random order, shape (n,)."""
    tick()
    mixed = rng.permutation(len(attribute.codes))
    place = attribute.codes if attribute.leaf_of_code is None else attribute.leaf_of_code[attribute.codes]
    return np.asarray(mixed[np.argsort(place[mixed], kind="stable")], dtype=np.int64)


def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """Every column keeps its type: quasi-identifiers, sensitive, insensitive."""
    coded = tuple(ColumnPlan(info.name, Coded) for info in roles.qi + roles.sensitive)
    return coded + tuple(ColumnPlan(info.name, Source) for info in roles.keep)


def parts(table: CodedTable, params: Params, repeated: bool) -> Cutting:
    """Rows at random: p percent of a random part's ranks are p percent of the table's, but for chance."""
    return Cutting("deal")


METHOD = Method(
    name=NAME,
    summary="each value exchanged with one whose rank is at most p percent away; release has the original's types",
    paper="Moore, R. A. (1996), Controlled data-swapping techniques for masking public use microdata sets",
    example="CREATE TABLE swapped AS FROM rank_swap('people', 5)",
    smallest="p := 5",
    trials=("p := 1", "p := 100"),
    formats=("rows",),
    instead=("muco",),
    parameters=(
        Parameter(
            "p", "largest difference of ranks, in percent of the rows; above 0, at most 100", "number", REQUIRED,
            above=0, high=100,
        ),
    ),
    layout=layout,
    release=release,
    moves_values=True,
    sweeps=(Sweep("p := {n}", (2, 10, 25)),),
    parts=parts,
    finished=("rows", "values"),
)  # fmt: skip
