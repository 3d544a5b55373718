"""Mondrian: the table is cut into groups, and each group is published as a box around it.

Releases, for each row, an interval, a set of values or a hierarchy node on every quasi-identifier, with the
sensitive and insensitive columns as they are. Guarantee: every class of equal boxes satisfies k-anonymity,
l-diversity and t-closeness as asked for, checked once more on the finished boxes. No row is left out. l bounds the
share of a value in a class, not what other classes let infer (`attribute_risk`): on the adult table (occupation, 7
quasi-identifiers) the strongest attacker names .275 of the values at k = l = 4 and .148 at 6, shares being at most .250
and .167; where the most frequent value is all that is known, .27 and .15 are named as well. Ends of intervals are
rounded so that they tell no single person, see `kernels.partition.interval_rounding`; sets of names print whatever
occurs. Where a
column says whose row it is, all of them count persons; l asks for l persons as well, and is kept by the rows, too; and
no person has more than 1/k (1/l) of the rows of a class, for else a row of it is hers more often than that. Where some
have many rows, that takes larger classes: on a tenth of the visits (5,853 persons with up to 40 rows, 5
quasi-identifiers) the loss at k = 5 is .117, and .063 without the bound, when one person had .78 of a class. Rows of a
person with equal quasi-identifiers get one box (strict cuts); where one of them changes from row to row, so may the box
on her sex or birth year, since boxes are cut from rows. Whoever knows how many rows a person has, or links her rows by
what is kept beside them, may still tell her from persons with fewer.

Paper: LeFevre, DeWitt and Ramakrishnan (2006), Mondrian multidimensional k-anonymity, strict and relaxed.
Departures: by default each cut takes the attribute and the point that save most of the normalized certainty
penalty (Xu et al. 2006), which at equal measured risk answers queries with less than half the error of the paper's
medians (`cut := 'median'`); an attribute whose cut is not allowed gives way to the next, and of equally wide
ones the one named first in `qi` is cut; NULL is a value of its own, and a group in which it meets values is published
as an interval without ends, which covers everything.
Cost: O(n log n) an attribute and level of cuts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from duckdb_anon.kernels.guarantees import asked, parameters_of_guarantee, recheck
from duckdb_anon.kernels.guarantees import refine as refine_guarantee
from duckdb_anon.kernels.partition import boxes, partition
from duckdb_anon.kernels.partition.interval_rounding import EDGES, with_edges
from duckdb_anon.kernels.slicing.generalized_layout import record_layout
from duckdb_anon.methods.partition_params import GUARANTEE_TRIALS
from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.function_specs import ColumnPlan, Cutting, Method, Parameter, Params, Roles, Sweep
from duckdb_anon.model.progress import tick
from duckdb_anon.model.released_columns import ROWS, Cells, Coded, Source

NAME = "mondrian"


def refine(params: dict[str, Any]) -> dict[str, Any]:
    """Fill in the cut, and check parameters that must fit together."""
    if params["cut"] is None:
        medians = params["mode"] == "relaxed" or params["width"] is not None
        params["cut"] = "median" if medians else "loss"
    if params["mode"] == "relaxed" and params["cut"] == "loss":
        raise ParameterError(
            "mondrian: mode := 'relaxed' deals equal values to both sides of a median; say cut := 'median' with it"
        )
    params["width"] = params["width"] or "range"
    return refine_guarantee(NAME, params)


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Cut the table and publish a box a group.

    Args:
        table: quasi-identifiers, and the sensitive columns where l or t is asked for.
        params: see `METHOD`.
        rng: unused, the cuts are no matter of chance.

    Returns:
        Boxes on the quasi-identifiers, sensitive codes, and the source row of each released row, all rows.

    Raises:
        RequirementError: the whole table fails what is asked for; the message says what it can meet.
    """
    person = table.repeated_person
    requirement, sensitive = asked(NAME, table, params, persons=person is not None)
    group = partition(
        table.qi,
        sensitive,
        requirement,
        person=person,
        cut=params["cut"],
        width=params["width"],
        mode=params["mode"],
        tick=tick,
        function=NAME,
    )
    published: dict[str, Cells] = {**with_edges(table, boxes(table.qi, group), params, person)}
    rows = np.arange(table.rows, dtype=np.int64)
    recheck(NAME, list(published.values()), sensitive, rows, requirement, person)
    published |= {a.name: Coded(a.name, a.codes) for a in table.sensitive}
    return {**published, ROWS: Source(rows)}


def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """A box a quasi-identifier; sensitive and insensitive columns keep their types."""
    return record_layout(NAME, roles)


def parts(table: CodedTable, params: Params, repeated: bool) -> Cutting:
    """The first cuts of the whole table; relaxed ones are strict as long as they cut it into parts."""
    requirement, codes = asked(NAME, table, params, persons=repeated)
    return Cutting(params["cut"], requirement, codes, params["width"])


METHOD = Method(
    name=NAME,
    summary="groups cut top down; quasi-identifiers become intervals, sets or hierarchy nodes",
    paper="LeFevre, K., DeWitt, D. J., Ramakrishnan, R. (2006), Mondrian multidimensional k-anonymity",
    example="CREATE TABLE boxes AS FROM mondrian('people', 5, l := 3, row_id := true)",
    smallest="k := 2",
    trials=(
        *GUARANTEE_TRIALS,
        "t := 0.3, distance := 'equal'",
        "k := 2, mode := 'relaxed'",
        "k := 2, cut := 'median'",
        "k := 3, l := 2, cut := 'median', width := 'spread'",
    ),
    formats=("boxes",),
    parameters=(
        *parameters_of_guarantee("frequency"),
        Parameter(
            "mode", "'strict' keeps equal values together; 'relaxed' deals them to both sides of a median", "text",
            "strict", ("strict", "relaxed"),
        ),
        Parameter(
            "cut",
            "'loss': where it saves most; 'median': widest attribute at its median (default: loss, median where mode "
            "is relaxed or width is given)",
            "text",
            None,
            ("loss", "median"),
        ),
        Parameter(
            "width",
            "attribute a median cut takes first: its range (default), distinct values or squared spread",
            "text",
            None,
            ("range", "distinct", "spread"),
        ),
        EDGES,
    ),
    layout=layout,
    release=release,
    refine=refine,
    unit="person",
    sweeps=(Sweep("k := {n}, l := {l}", (5, 10, 25)),),
    parts=parts,
    finished=("rows", "classes", "diverse"),
)  # fmt: skip
