"""MuCo's linear program handed to a general solver: the fallback for a program the batch left uncertified.

Variables are x_gj, the probability that a record of class g shows value j, and the column totals s_j (Li et
al. 2020, section 4, with equal rows merged): minimise sum_gj c_g d_gj x_gj subject to sum_j x_gj = 1, s_j =
sum_g c_g x_gj and 0 <= x_gj <= delta s_j. Cost: r^2 variables for r classes.
"""

from __future__ import annotations

import numpy as np

from duckdb_anon.model.coded_table import FloatArray
from duckdb_anon.model.errors import RequirementError


def cheapest_columns(distance: FloatArray, count: FloatArray, delta: float) -> tuple[FloatArray, FloatArray]:
    """Solve one program.

    Args:
        distance: shape (classes, classes).
        count: records in each class, shape (classes,).
        delta: largest share of one record in a column.

    Returns:
        The optimal columns read as rays: weight (column totals), shape (classes,), and the mass of each on
        each class, shape (classes, classes). A column without weight stands for its own class.

    Raises:
        RequirementError: the solver found no table, which happens only below 1/delta records.
    """
    # the solver is rarely needed, and importing it takes longer than opening a database
    from scipy import sparse
    from scipy.optimize import linprog

    classes = len(count)
    cells = classes * classes
    unit = sparse.identity(classes, format="csr")
    ones = np.ones((1, classes))
    row_sums = sparse.hstack([sparse.kron(unit, ones), sparse.csr_matrix((classes, classes))])
    column_sums = sparse.hstack([sparse.kron(count[None, :], unit), -unit])
    capped = sparse.hstack([sparse.identity(cells), sparse.kron(np.ones((classes, 1)), -delta * unit)])
    answer = linprog(
        np.concatenate([(count[:, None] * distance).ravel(), np.zeros(classes)]),
        A_ub=capped.tocsr(),
        b_ub=np.zeros(cells),
        A_eq=sparse.vstack([row_sums, column_sums]).tocsr(),
        b_eq=np.concatenate([np.ones(classes), np.zeros(classes)]),
        method="highs",
        # A column may hold little mass, and delta bounds shares of it: the default of 1e-7 is too coarse.
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if answer.x is None:
        raise RequirementError(
            f"muco: a group of {count.sum():.0f} records has no random output table at delta {delta:.6g}"
        )
    table = np.maximum(answer.x[:cells].reshape(classes, classes), 0.0)
    table /= table.sum(axis=1, keepdims=True)
    weight = count @ table
    used = weight > 1e-9
    mass = np.where(used, (count[:, None] * table) / np.where(used, weight, 1.0), unit.toarray())
    return np.where(used, weight, 0.0), mass.T
