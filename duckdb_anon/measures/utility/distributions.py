"""distribution_distance, correlation: what the distribution estimated from a release says, and how far it is off.

distribution_distance compares the original's shares p with the release's q over the product of the domains, natural
logarithms: KL divergence sum p ln(p/q), in [0, inf]; chi-squared sum (p - q)^2 / q, in [0, inf]; L1 sum |p - q|, in
[0, 2]; L2, in [0, sqrt 2]; Hellinger sqrt(1 - sum sqrt(p q)), in [0, 1]. L1 and L2 take the estimate as it is; the
others need shares above 0, so negative ones are projected away and `smoothing` rows are added to every cell.
correlation is, for every ordered pair of columns of a table, the uncertainty coefficient U(response | given) =
I / H(response) (Theil 1970), in [0, 1]: the share of the response's entropy that the other column removes; 0 where the
response is constant. A box is spread over the values that occur in the release. How each format is read:
`measures.utility.contingency_table`. Guo, Ying and Wu (2011) judge releases by both. Cost: a joint distribution each.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from duckdb_anon.kernels.cells.table import MeasureCall
from duckdb_anon.kernels.randomized_response.channel import project, smooth
from duckdb_anon.measures.released_rows import OfRelease
from duckdb_anon.measures.utility.contingency_table import joint_shares
from duckdb_anon.model.coded_table import FloatArray
from duckdb_anon.model.errors import ColumnError, RequirementError
from duckdb_anon.model.function_specs import Answer, Parameter, Report, fields


def distances(p: FloatArray, q: FloatArray, positive: FloatArray) -> dict[str, float]:
    """Distances of the original's shares `p` from an estimate, `q`, and the same with all shares above 0, `positive`.

    >>> p, q = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.4, 0.2])
    >>> {name: round(value, 7) for name, value in distances(p, q, q).items()}
    {'kl': 0.0252672, 'chi2': 0.05, 'l1': 0.2, 'l2': 0.1414214, 'hellinger': 0.0798514}
    """
    from scipy.special import rel_entr

    either = (p > 0) | (positive > 0)
    with np.errstate(divide="ignore"):
        chi2 = float(((p[either] - positive[either]) ** 2 / positive[either]).sum())
    overlap = min(1.0, float(np.sqrt(p * positive).sum()))
    return {
        "kl": max(float(rel_entr(p, positive).sum()), 0.0),
        "chi2": chi2,
        "l1": float(np.abs(p - q).sum()),
        "l2": float(np.linalg.norm(p - q)),
        "hellinger": float(np.sqrt(1.0 - overlap)),
    }


_PROJECTION = Parameter(
    "projection", "negative cells: 'clip' sets them to 0; 'euclidean' takes the nearest distribution", "text", "clip",
    ("clip", "euclidean"),
)  # fmt: skip
_ANSWERS = ("rows", "boxes", "buckets", "sliced", "randomized", "counts", "sampled", "suppressed", "retained")


@OfRelease(
    summary="KL, chi-squared, L1, L2 and Hellinger distance between the original distribution and the one estimated",
    paper="Guo, Ying and Wu (2011), section V",
    example="FROM distribution_distance('people', 'randomized', columns := ['gender', 'education'])",
    section="Utility",
    parameters=(
        Parameter("columns", "columns whose joint distribution is compared (default: each labelled one)", "names"),
        Parameter(
            "smoothing", "pseudo-count added to each cell for KL, chi-squared and Hellinger", "number", 0.5, low=0
        ),
        _PROJECTION,
    ),
    returns=fields("columns VARCHAR, cells BIGINT, kl DOUBLE, chi2 DOUBLE, l1 DOUBLE, l2 DOUBLE, hellinger DOUBLE"),
    unit="any",
    answers=_ANSWERS,
    needs=(),
)
def distribution_distance(call: MeasureCall) -> Answer:
    """One row for the joint distribution of `columns`, or one a labelled column of the release."""
    original, release, params = call.original, call.release, call.params
    named = params["columns"]
    compared = [named] if named else [[name] for name in call.labelled if name in release.columns]
    if not compared:
        raise ColumnError("no columns to compare; say columns := ['age', 'disease']")
    rows = []
    for names in compared:
        truth, estimate = (joint_shares(table, names) for table in (original, release))
        if original.rows == 0 or release.rows == 0:
            raise RequirementError("a table without rows has no distribution")
        positive = smooth(project(estimate, params["projection"]), original.rows, params["smoothing"])
        found = distances(truth.ravel(), estimate.ravel(), positive.ravel())
        rows.append((", ".join(names), truth.size, *found.values()))
    return rows


def uncertainty(joint: FloatArray) -> tuple[float, float]:
    """Uncertainty coefficients of a joint distribution, U(column | row) and U(row | column).

    >>> uncertainty(np.array([[0.5, 0.0], [0.0, 0.5]]))
    (1.0, 1.0)
    >>> uncertainty(np.array([[0.25, 0.25], [0.25, 0.25]]))
    (0.0, 0.0)
    """
    from scipy.special import entr

    of_rows, of_columns = (float(entr(joint.sum(axis=axis)).sum()) for axis in (1, 0))
    mutual = of_rows + of_columns - float(entr(joint).sum())
    if mutual < 1e-12:  # rounding
        return 0.0, 0.0
    return min(1.0, mutual / of_columns), min(1.0, mutual / of_rows)


@Report(
    summary="uncertainty coefficient of every ordered pair of columns, in a table or estimated from a release",
    paper="Theil (1970); Guo, Ying and Wu (2011), section V",
    example="FROM correlation('people')",
    section="Utility",
    parameters=(Parameter("columns", "columns to pair (default: the labelled ones)", "names"), _PROJECTION),
    returns={"given": "VARCHAR", "response": "VARCHAR", "uncertainty_coefficient": "DOUBLE"},
    unit="any",
    tables=("tbl",),
    reads="tables",
    answers=_ANSWERS,
    needs=(),
)
def correlation(call: MeasureCall) -> Answer:
    """One row an ordered pair of columns."""
    table, params = call.read["tbl"], call.params
    names = params["columns"] or call.labelled
    if len(names) < 2:
        raise ColumnError("a pair of columns is needed; say columns := ['age', 'disease']")
    rows: list[tuple[str, str, float]] = []
    for first, second in combinations(names, 2):
        joint = joint_shares(table, [first, second])
        forward, backward = uncertainty(project(joint, params["projection"])) if table.rows else (0.0, 0.0)
        rows += [(first, second, forward), (second, first, backward)]
    return rows
