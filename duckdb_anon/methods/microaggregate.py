"""Microaggregation: every group of at least k similar records is published with its mean values.

Quasi-identifiers become the mean of the record's group, in the column's own type, or its most frequent value where
values have no order; other columns are unchanged. Guarantee: k-anonymity of the published quasi-identifiers. It does
not protect against attribute disclosure (see l of mondrian, muco).

Source: Domingo-Ferrer and Mateo-Sanz (2002); MDAV: Domingo-Ferrer and Torra (2005). Departures: `groups := 'sse'` cuts
top down where the squared error falls most, in a time nearly linear in the records where MDAV's is quadratic; both
measure distance on the same scaled features (`kernels.partition`). A mean is that of the finite values, and NULL where
a group has none. Cost: O(n log n) for 'sse', O(n^2 / k) for 'mdav', times the quasi-identifiers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from duckdb_anon.kernels.partition.mdav import mdav_groups
from duckdb_anon.kernels.partition.partition import partition
from duckdb_anon.kernels.partition.privacy_models import KAnonymity
from duckdb_anon.kernels.partition.sort_count import most_frequent
from duckdb_anon.methods.partition_params import plain_layout, unchanged
from duckdb_anon.model import progress
from duckdb_anon.model.coded_table import Attribute, CodedTable, IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.function_specs import REQUIRED, ColumnPlan, Cutting, Method, Parameter, Params, Roles, Sweep
from duckdb_anon.model.progress import tick
from duckdb_anon.model.released_columns import Cells, Coded, Value

NAME = "microaggregate"


def groups_of(table: CodedTable, params: Params) -> IntArray:
    """Group of each row."""
    if params["groups"] == "mdav":
        return mdav_groups(NAME, table.qi, params["k"], tick)
    return partition(table.qi, None, KAnonymity(params["k"]), tick=tick, cut="sse", function=NAME)


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Group the rows and publish each group's means and modes."""
    progress.say("groups")
    group = groups_of(table, params)
    if np.bincount(group).min() < params["k"]:
        raise RequirementError(
            f"{NAME}: a finished group is too small; nothing is released. This is an error of the package, not of "
            "the call"
        )
    published: dict[str, Cells] = {
        a.name: means(a, group) if a.kind == "ordered" else modes(a, group) for a in table.qi
    }
    return published | unchanged(table)


def means(attribute: Attribute, group: IntArray) -> Value:
    """Mean of the finite values of each group, NULL where there is none."""
    numbers = attribute.scale_for(NAME).numbers
    many = int(group.max(initial=-1)) + 1
    finite = attribute.codes < attribute.special_from
    inside, codes = group[finite], attribute.codes[finite]
    count = np.bincount(inside, minlength=many)
    # differences from the middle value are small, so that their sums lose nothing
    middle = numbers[len(numbers) // 2] if len(numbers) else np.int64(0)
    total = np.bincount(inside, weights=(numbers[codes] - middle).astype(np.float64), minlength=many)
    mean = total / np.maximum(count, 1)
    exact = mean + middle if attribute.scale_for(NAME).line == "real" else np.rint(mean).astype(np.int64) + middle
    return Value(attribute.name, exact, np.where(count[group] > 0, group, -1))


def modes(attribute: Attribute, group: IntArray) -> Coded:
    """Most frequent value of each group, of equally frequent ones the first."""
    return Coded(attribute.name, most_frequent(group, attribute.codes, max(1, attribute.domain))[group])


def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """Every column keeps its type: quasi-identifiers, sensitive, insensitive."""
    qi = tuple(ColumnPlan(i.name, Value if i.kind == "ordered" else Coded) for i in roles.qi)
    return qi + plain_layout(replace(roles, qi=()), params)


def parts(table: CodedTable, params: Params, repeated: bool) -> Cutting:
    """Groups of at least k rows, cut by squared error; MDAV works on parts as small as its time allows."""
    return Cutting("sse", KAnonymity(params["k"]), most=20_000 if params["groups"] == "mdav" else None)


METHOD = Method(
    name=NAME,
    summary="groups of k similar rows published with their means and modes; release has the original's types",
    paper="Domingo-Ferrer, J., Mateo-Sanz, J. M. (2002), Practical data-oriented microaggregation; MDAV (2005)",
    example="CREATE TABLE means AS FROM microaggregate('people', 5, row_id := true)",
    smallest="k := 2",
    trials=("k := 1", "k := 3", "k := 5", "k := 3, groups := 'mdav'"),
    formats=("rows",),
    instead=("mondrian", "muco"),
    parameters=(
        Parameter("k", "minimum number of records per group; 1 or more", "integer", REQUIRED, low=1),
        Parameter(
            "groups", "'sse': groups cut top down by squared error; 'mdav': nearest records around the farthest "
"ones, quadratic time",
            "text", "sse", ("sse", "mdav"),
        ),
    ),
    layout=layout,
    release=release,
    moves_values=True,
    groups=groups_of,
    sweeps=(Sweep("k := {n}", (5, 10, 25)),),
    parts=parts,
    finished=("rows", "classes"),
)  # fmt: skip
