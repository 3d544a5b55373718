"""distribution_distance, correlation: what the distribution estimated from a release says, and how far it is off.

distribution_distance compares the original's shares p with the release's q over the product of the domains, natural
logarithms: KL divergence sum p ln(p/q), in [0, inf]; chi-squared sum (p - q)^2 / q, in [0, inf]; L1 sum |p - q|, in
[0, 2]; L2, in [0, sqrt 2]; Hellinger sqrt(1 - sum sqrt(p q)), in [0, 1]. L1 and L2 take the estimate as it is; the
others need shares above 0, so negative ones become 0 and `smoothing` rows are added to every cell.
correlation is, for every ordered pair of columns of a table, the uncertainty coefficient U(response | given) =
I / H(response) (Theil 1970), in [0, 1]: the share of the response's entropy that the other column removes; 0 where the
response is constant. Guo, Ying and Wu (2011) judge releases by both. A joint distribution is that of the exact rows; a
box is spread evenly over the values it covers, a node over its leaves, a bucket's counts over its rows, a permuted
column over its bucket; randomized columns and retained shares of sensitive values are inverted, which can give negative
shares. Cost: distinct combinations of cells times the product of the domains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy

from duckdb_anon.kernels.cells.cells import Ranges
from duckdb_anon.kernels.cells.table import MeasureCall, ReadTable
from duckdb_anon.kernels.randomized_response.channel import RetentionChannel, inverse_terms, project, smooth
from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.released_rows import OfRelease, require_columns
from duckdb_anon.model.coded_table import CodeArray, FloatArray, IntArray
from duckdb_anon.model.errors import ColumnError, ParameterError, RequirementError
from duckdb_anon.model.function_specs import Answer, Parameter, Report, fields

MAX_CELLS = 1_000_000
MAX_WORK = 20_000_000_000
_BLOCK = 4_000_000


@dataclass(frozen=True)
class _Part:
    """Columns that are spread together: row i has `cell_of_row[i]`, which is spread over their product by `shares`."""

    axes: tuple[int, ...]
    size: int  # number of combinations of their values
    cell_of_row: IntArray
    shares: scipy.sparse.csr_matrix  # shape (cells, size)
    single: bool = False  # whether each cell is the combination of its number alone

    def spread(self, rows: IntArray) -> FloatArray:
        """Share of each combination in each of some rows, shape (rows, size)."""
        return np.asarray(self.shares[self.cell_of_row[rows]].toarray())


def joint_shares(table: ReadTable, names: Sequence[str]) -> FloatArray:
    """Estimate the share of each combination of codes, one axis a column; may be negative where inverted."""
    require_columns(table, names)
    sizes = tuple(table.columns[name].domain.size for name in names)
    if math.prod(sizes) > MAX_CELLS:
        raise ParameterError(
            f"the domains of {', '.join(names)} multiply to {math.prod(sizes):,} cells, more than {MAX_CELLS:,}; "
            "name fewer columns"
        )
    if table.rows == 0:
        return np.zeros(sizes)
    counts: FloatArray = _spread(_parts(table, names), sizes, table.row_weights())
    total = float(counts.sum())
    if total <= 0:  # noise took more rows than there are
        raise ColumnError(
            f"the release's rows stand for {total:g} rows of the original in all, so they have no distribution"
        )
    shares: FloatArray = counts / total
    for axis, name in enumerate(names):
        column = table.columns[name]
        if column.channel is not None:
            shares = _inverted(shares, axis, column.channel.p, column.channel.domain)
        elif table.replaced(name):
            shares = _unmixed(shares, axis, table.kept)
    return shares


def _parts(table: ReadTable, names: Sequence[str]) -> list[_Part]:
    found = []
    for axes in table.slices(names).values():
        columns = [_of_column(axis, table.columns[names[axis]]) for axis in axes]
        found.append(_sliced(table, columns) if table.columns[names[axes[0]]].slice else columns[0])
    return found


def _of_column(axis: int, column: Ranges) -> _Part:
    size = column.domain.size
    if column.plain:
        shares = scipy.sparse.eye_array(size).tocsr()
        return _Part((axis,), size, column.value_codes().astype(np.int64), shares, single=True)
    cells = column.different
    total = np.maximum(np.asarray(cells.shares.sum(axis=1)).ravel(), 1e-300)
    return _Part((axis,), size, cells.of_row, (scipy.sparse.diags_array(1 / total) @ cells.shares).tocsr())


def _sliced(table: ReadTable, columns: Sequence[_Part]) -> _Part:
    """Mean over the rows of each bucket of the product of their cells."""
    bucket = table.buckets()
    rows = np.bincount(bucket)
    total = np.zeros((len(rows), math.prod(part.size for part in columns)))
    step = max(1, _BLOCK // max(1, total.shape[1]))
    for start in range(0, table.rows, step):
        some = np.arange(start, min(start + step, table.rows))
        np.add.at(total, bucket[some], _product(np.ones((len(some), 1)), columns, some))
    axes = tuple(axis for part in columns for axis in part.axes)
    return _Part(axes, total.shape[1], bucket, scipy.sparse.csr_matrix(total / np.maximum(rows, 1)[:, None]))


def _product(product: FloatArray, parts: Sequence[_Part], rows: IntArray) -> FloatArray:
    """Product of weights and the shares of each combination of values, row by row."""
    for part in parts:
        product = (product[:, :, None] * part.spread(rows)[:, None, :]).reshape(len(product), -1)
    return product


def _spread(parts: list[_Part], sizes: tuple[int, ...], weights: FloatArray) -> FloatArray:
    """Sum over the distinct combinations of cells of weight times the outer product of their shares."""
    key = keys_of([part.cell_of_row for part in parts])
    weight = np.bincount(key.of_row, weights=weights).astype(np.float64)
    if all(part.single for part in parts):
        exact = np.ravel_multi_index([part.cell_of_row[key.first] for part in parts], sizes)
        counted = np.bincount(exact, weights=weight, minlength=math.prod(sizes))
        return np.asarray(counted.reshape(sizes), dtype=np.float64)
    if key.number * math.prod(sizes) > MAX_WORK:
        raise ParameterError(
            f"{key.number} distinct cells over {math.prod(sizes)} combinations are too many; name fewer columns"
        )
    *parts, last = sorted(parts, key=lambda part: part.size)
    width = math.prod(part.size for part in parts)
    total = np.zeros((width, last.size))
    step = max(1, _BLOCK // max(width, last.size))
    for start in range(0, key.number, step):
        rows = key.first[start : start + step]
        total += _product(weight[start : start + step, None], parts, rows).T @ last.spread(rows)
    axes = [axis for part in (*parts, last) for axis in part.axes]
    return np.moveaxis(total.reshape([sizes[axis] for axis in axes]), range(len(axes)), axes)


def _inverted(shares: FloatArray, axis: int, p: float, domain: CodeArray) -> FloatArray:
    """Undo randomized response on one axis."""
    diagonal, other = inverse_terms(RetentionChannel(len(domain), p))
    result = np.zeros_like(shares)
    index = (slice(None),) * axis + (domain,)
    result[index] = diagonal * shares[index] + other * shares.sum(axis=axis, keepdims=True)
    return result


def _unmixed(shares: FloatArray, axis: int, kept: float) -> FloatArray:
    """Undo the replacement of a share 1 - kept of the values by draws from their own distribution."""
    others = tuple(a for a in range(shares.ndim) if a != axis)
    replaced = shares.sum(axis=axis, keepdims=True) * shares.sum(axis=others, keepdims=True)
    # where every value was replaced, nothing tells the original from independent columns
    result: FloatArray = (shares - (1 - kept) * replaced) / kept if kept > 0 else replaced
    return result


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
        positive = smooth(project(estimate), original.rows, params["smoothing"])
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
    parameters=(Parameter("columns", "columns to pair (default: the labelled ones)", "names"),),
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
        forward, backward = uncertainty(project(joint)) if table.rows else (0.0, 0.0)
        rows += [(first, second, forward), (second, first, backward)]
    return rows
