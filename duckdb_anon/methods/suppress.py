"""Cell suppression: single cells become NULL until k records are equal, and every other value is unchanged.

Releases quasi-identifiers with suppressed cells, of least total importance; all other columns and all records are
unchanged. Column `suppressed_cells` says how many NULLs of each column are suppressed values, so that answers and
measures read them as any value. Guarantee, with missing := 'value' (default): every record has the published
quasi-identifiers, NULL included, of at least k records, checked again on the finished cells. With missing :=
'wildcard', as sdcMicro counts: the values that a record still has are those of at least k records of the table; fewer
cells go, but an adversary who knows that an individual's value is missing excludes the records that have one. It does
not protect against attribute disclosure.

Source: Meyerson and Williams (2004), section 2; importance of columns as in Templ, Kowarik and Meindl (2015), section
3.2. Readings: NULLs of the table are a value of their own. Of equal records those that lose cells are drawn at random.
Cost: a sort of the distinct records for each set of columns that may be suppressed together, at most 1,024 sets; small
tables are solved exactly, see `kernels.cell_suppression`.
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.cell_suppression import suppressed_cells
from duckdb_anon.kernels.partition.privacy_models import KAnonymity
from duckdb_anon.kernels.verify_release import recheck
from duckdb_anon.methods.partition_params import plain_layout, unchanged
from duckdb_anon.model import progress
from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.errors import ColumnError, ParameterError, RequirementError, listed, nearest
from duckdb_anon.model.function_specs import REQUIRED, ColumnPlan, Method, Parameter, Params, Roles, Sweep
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats import BLANK
from duckdb_anon.model.released_columns import Cells, Coded, Struct, Whole

NAME = "suppress"


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Suppress cells and publish what is left."""
    k, shared = params["k"], params["missing"] == "value"
    if 0 < table.rows < k:
        raise RequirementError(f"{NAME}: the table has {table.rows} records, fewer than k := {k}. Lower k")
    progress.say("cells")
    columns = [a.codes for a in table.qi]
    gone = suppressed_cells(columns, weights(table, params["importance"]), k, shared, rng) if table.rows else None
    published: dict[str, Cells] = {}
    for j, attribute in enumerate(table.qi):
        codes = attribute.codes if gone is None else np.where(gone[:, j], -1, attribute.codes)
        published[attribute.name] = Coded(attribute.name, codes.astype(np.int32))
    if shared:
        recheck(NAME, list(published.values()), None, np.arange(table.rows, dtype=np.int64), KAnonymity(k))
    counts: dict[str, Cells] = {}
    for j, attribute in enumerate(table.qi):
        lost = 0 if gone is None else int((gone[:, j] & (attribute.codes != attribute.null_code)).sum())
        counts[attribute.name] = Whole(np.full(table.rows, lost, dtype=np.int64))
    return published | {BLANK.key: Struct(counts)} | unchanged(table)


def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """Every column keeps its type; `suppressed_cells` says how many cells of each quasi-identifier are suppressed."""
    counts = tuple(ColumnPlan(info.name, Whole) for info in roles.qi)
    return (*plain_layout(roles, params), ColumnPlan(BLANK.key, Struct, fields=counts))


def weights(table: CodedTable, importance: dict[str, object]) -> list[float]:
    """Importance of each quasi-identifier, 1 where none is given."""
    names = {fold(a.name): a.name for a in table.qi}
    given = {}
    for name, weight in importance.items():
        if fold(name) not in names:
            raise ColumnError(
                f"{NAME}: importance names '{name}', which is no quasi-identifier{nearest(name, names.values())}. They "
                f"are {listed(names.values())}"
            )
        if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 < weight <= 1e6:
            raise ParameterError(f"{NAME}: importance of '{name}' must be a number above 0 and at most 1e6")
        given[fold(name)] = float(weight)
    return [given.get(name, 1.0) for name in names]


METHOD = Method(
    name=NAME,
    summary="k-anonymity by suppressing single cells, as few as possible; all other values are unchanged",
    paper="Meyerson, A., Williams, R. (2004), On the complexity of optimal k-anonymity",
    example="CREATE TABLE fewer_cells AS FROM suppress('people', 3, importance := {'age': 5})",
    smallest="k := 2",
    trials=("k := 1", "k := 3", "k := 3, missing := 'wildcard'"),
    formats=("rows",),
    instead=("mondrian", "muco"),
    sweeps=(Sweep("k := {n}", (5, 10, 25)),),
    parameters=(
        Parameter("k", "minimum number of equal records; 1 or more", "integer", REQUIRED, low=1),
        Parameter(
            "importance", "weight of a cell of each column, above 0 (default 1): cells of columns with a large weight "
"stay, {'age': 5}",
            "mapping", {},
        ),
        Parameter(
            "missing", "'value': a suppressed cell equals suppressed cells only; 'wildcard': it matches every value, "
"as in sdcMicro, which protects less",
            "text", "value", ("value", "wildcard"),
        ),
    ),
    layout=layout,
    release=release,
)  # fmt: skip
