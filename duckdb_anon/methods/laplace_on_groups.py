"""Laplace noise on the counts of sensitive values in k-anonymous groups. Not differentially private.

For each Mondrian group and each sensitive value of the table, the group's box and a noisy count are released.
Guarantee: groups have at least k records, and given the groups each count is epsilon-differentially private. Groups and
the list of values come from the data without protection, so the release as a whole is not: it reproduces the
"epsilon-DP" curve of Hasan, Jiang, Chen and Wang (2018, section 5), and `diffgen` is the private alternative. Counts
are whole and may be negative: noise is OpenDP's discrete Laplace (extra `dp`), its loss checked before release; `seed`
imitates it for tests and protects nothing. Cost: O(d n log n), and a draw for each released count.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from duckdb_anon.kernels.differential_privacy.mechanisms import Ledger, Mechanisms, check_written
from duckdb_anon.kernels.partition.privacy_models import KAnonymity
from duckdb_anon.methods.diffgen import MAX_CELLS
from duckdb_anon.methods.generalized_layout import boxed_groups, cell_layout, layout_of, parameters
from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.function_specs import REQUIRED, Cutting, Method, Parameter, Params
from duckdb_anon.model.release_formats import COUNT
from duckdb_anon.model.released_columns import ROWS, Cells, Coded, Source, ValueSet, Whole

NAME = "laplace_on_groups"


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Count and add noise."""
    group, of_row = boxed_groups(NAME, table, np.arange(table.rows), KAnonymity(params["k"]), params)
    sensitive = table.sensitive[0]
    groups, values = int(group.max()) + 1, sensitive.domain
    listed = sum(int(box.offsets[-1]) for box in of_row.values() if isinstance(box, ValueSet))
    remedy = f"raise k := {params['k']} or give hierarchies, whose nodes are single labels,"
    check_written(NAME, groups * values, listed * values, params["max_cells"], remedy)
    counts = np.bincount(group * values + sensitive.codes, minlength=groups * values)
    mechanisms = Mechanisms(NAME, rng if params.get("seed") is not None else None)
    noisy, loss = mechanisms.counts(counts, params["epsilon"], 1)
    Ledger(params["epsilon"], [Fraction(loss)]).check(NAME)
    group_of_cell = np.repeat(np.arange(groups), values)
    return {
        **{name: replace(box, index=group_of_cell) for name, box in of_row.items()},
        sensitive.name: Coded(sensitive.name, np.tile(np.arange(values, dtype=np.int32), groups)),
        COUNT.key: Whole(noisy),
        ROWS: Source(np.full(len(counts), -1, dtype=np.int64)),
    }


def parts(table: CodedTable, params: Params, repeated: bool) -> Cutting:
    """As groups are cut."""
    return Cutting("cut", KAnonymity(params["k"]))


METHOD = Method(
    name=NAME,
    section="From papers, for comparison",
    summary="noisy counts in unprotected k-anonymous groups; NOT differentially private, see diffgen",
    paper="the epsilon-DP curve of Hasan, Jiang, Chen & Wang (2018), Applied Sciences 8(5):783, section 5",
    example="CREATE TABLE counted AS FROM laplace_on_groups('people', 5, 1.0)",
    smallest="k := 2, epsilon := 1.0",
    trials=("k := 1, epsilon := 0.1", "k := 3, epsilon := 5.0"),
    formats=("boxes", "counts"),
    instead=("mondrian", "one_to_m_generalize"),
    parameters=parameters(
        Parameter("epsilon", "privacy budget of the counts, given the groups", "number", REQUIRED, above=0),
        MAX_CELLS,
    ),
    layout=layout_of(NAME, cell_layout),
    release=release,
    needs=("qi", "sensitive"),
    parts=parts,
)
