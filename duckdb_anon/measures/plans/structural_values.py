"""structural_values: sensitive values that a part of the table has alone, which `muco` may except from l.

l forbids every cut that parts such a value off, so that its records stay in large groups with others. One row a value:
how many records have it, and how many of them one cut would part off alone, at least as many as a group of `muco` has.
Cost: linear in the rows, for each quasi-identifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from duckdb_anon.kernels.partition.structural_values import rows_alone
from duckdb_anon.methods.muco import GROUPING, least_size
from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.function_specs import Params, Report


def structural_values(tables: Sequence[CodedTable], params: Params, rng: np.random.Generator) -> dict[str, Any]:
    """One row a value that some cut would part off alone, in as many records as a group has or more."""
    table, least = tables[0], least_size(params)
    found: dict[str, list[Any]] = {"attribute": [], "value": [], "records": [], "alone": []}
    for attribute in table.sensitive:
        alone = rows_alone(table.qi, attribute)
        for code in np.flatnonzero(alone >= least).tolist():
            row = (attribute.name, code, int(attribute.counts[code]), int(alone[code]))
            for column, value in zip(found.values(), row, strict=True):
                column.append(value)
    return found


MEASURE = Report(
    name="structural_values",
    summary="sensitive values that a part of the table has alone, which l keeps in large groups; for l_except of muco",
    paper="Machanavajjhala et al. (2007), section 4.2 (don't-care sensitive values)",
    example="FROM structural_values('(SELECT age, gender, if(age < 25, 0, salary) AS pay FROM people)', 0.1, "
    "qi := ['age', 'gender'], sensitive := 'pay')",
    section="Preparing a call",
    smallest="delta := 0.5",
    instead=("muco",),
    parameters=(GROUPING[0],),
    returns={"attribute": "VARCHAR", "value": "CODE", "records": "BIGINT", "alone": "BIGINT"},
    compute=structural_values,
    needs=("qi", "sensitive"),
)
