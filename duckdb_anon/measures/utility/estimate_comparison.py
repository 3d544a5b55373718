"""correlation_comparison, regression_comparison: do estimates of the release agree within sampling error?

95% confidence intervals of an estimate on both tables, and the overlap of the intervals (Karr et al. 2006, section
3.2). Correlation: for each pair of ordered columns Pearson's r and Spearman's rank correlation, intervals by Fisher's z
(for ranks with the variance 1.06 / (n - 3) of Fieller, Hartley and Pearson 1957); for names see `correlation`.
Regression: least squares of a number `target` on the other columns (in NIST SDNist for income on education). Numbers
enter as they are, a name as an indicator against the original's most frequent value. A coefficient that one of the
tables cannot give (a value that no record has there, a column that follows from the others) is NULL there. Rows in
which a number is NULL or not finite are left out. How boxes and slices are read: `measures.utility.sampled_microdata`.
Cost: a sort a column; rows times terms squared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from duckdb_anon.kernels.cells.table import MeasureCall
from duckdb_anon.kernels.thread_pool import run_detached
from duckdb_anon.measures.released_rows import spelled
from duckdb_anon.measures.utility.sampled_microdata import BY, COLUMNS, Comparison, Drawn, columns_of, pairs, value_text
from duckdb_anon.model.coded_table import Attribute, FloatArray
from duckdb_anon.model.errors import ColumnError, RequirementError
from duckdb_anon.model.function_specs import REQUIRED, Answer, Parameter, fields
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.progress import tick

_Z = 1.959963984540054
_VARIANCE = {"pearson": 1.0, "spearman": 1.06}
_MOST_TERMS = 300
Estimate = tuple[FloatArray, FloatArray, FloatArray]
"""Estimates and the ends of their intervals; NaN where a table does not give them."""


def interval_overlap(first: Estimate, second: Estimate) -> FloatArray:
    """Mean share that the common part has of each interval, below 0 for disjoint ones, NaN where an end is unknown.

    >>> estimate = lambda low, high: (np.array([low]), np.array([low]), np.array([high]))
    >>> interval_overlap(estimate(0.0, 4.0), estimate(2.0, 4.0)).tolist()
    [0.75]
    >>> interval_overlap(estimate(0.0, 1.0), estimate(2.0, 3.0)).tolist()
    [-1.0]
    """
    (_, low, high), (_, other_low, other_high) = first, second
    common = np.minimum(high, other_high) - np.maximum(low, other_low)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (common / (high - low) + common / (other_high - other_low)) / 2
    return np.where((low == other_low) & (high == other_high), 1.0, share)


@Comparison(
    summary="correlations of numbers in original and release, and how much their confidence intervals overlap",
    paper="Karr et al. (2006), section 3.2; correlations as in NIST SDNist",
    example="FROM correlation_comparison('people', 'release')",
    parameters=(COLUMNS, BY),
    returns=fields(
        "subgroup VARCHAR, first VARCHAR, second VARCHAR, coefficient VARCHAR, original DOUBLE OR NULL, "
        "original_low DOUBLE OR NULL, original_high DOUBLE OR NULL, release DOUBLE OR NULL, "
        "release_low DOUBLE OR NULL, release_high DOUBLE OR NULL, difference DOUBLE OR NULL, overlap DOUBLE OR NULL"
    ),
)
def correlation_comparison(call: MeasureCall) -> Answer:
    """One row a subgroup, pair of columns and coefficient."""
    original_columns = call.original.columns
    domains = {name: original_columns[name].domain for name in columns_of(call) if name in original_columns}
    names = [name for name, domain in domains.items() if domain.kind == "ordered"]
    if len(names) < 2:
        raise ColumnError(
            f"it compares pairs of numbers or dates, and there are {len(names)}; name two in "
            "columns := [...], or ask correlation(...) for names"
        )
    found: list[tuple[Any, ...]] = []
    for subgroup, *drawn in pairs(call, names):
        for first, second in combinations(names, 2):
            for kind in _VARIANCE:
                original, release = (_correlation(side, domains, first, second, kind) for side in drawn)
                figures = (*original, *release, release[0] - original[0], interval_overlap(original, release))
                found.append((subgroup, first, second, kind, *(float(each[0]) for each in figures)))
    return found


def _correlation(table: Drawn, domains: Mapping[str, Attribute], first: str, second: str, kind: str) -> Estimate:
    """Coefficient with its interval, arrays of one."""
    finite = _finite(table, domains, (first, second))
    x, y = (domains[name].positions[finite.columns[name]] for name in (first, second))
    if kind == "spearman":
        from scipy.stats import rankdata

        x, y = rankdata(x), rankdata(y)
    if len(x) < 4 or x.std() == 0 or y.std() == 0:
        return (np.array([np.nan]),) * 3
    r = np.clip(np.corrcoef(x, y)[:1, 1], -1, 1)
    if abs(r[0]) == 1:
        return r, r, r
    half = _Z * np.sqrt(_VARIANCE[kind] / (len(x) - 3))
    return r, np.tanh(np.arctanh(r) - half), np.tanh(np.arctanh(r) + half)


def _finite(table: Drawn, domains: Mapping[str, Attribute], names: Sequence[str]) -> Drawn:
    """Rows whose numbers are neither NULL nor infinite."""
    finite = np.ones(table.rows, dtype=bool)
    for name in names:
        finite &= table.columns[name] < domains[name].special_from
    return table.only(finite)


def _with_target(params: dict[str, Any]) -> dict[str, Any]:
    """The target is read like the columns that are named."""
    named = params["columns"]
    if named is None or fold(params["target"]) in {fold(name) for name in named}:
        return params
    return {**params, "columns": [*named, params["target"]]}


@dataclass(frozen=True)
class _Term:
    """One column of the design: a number, or whether a name is `code`."""

    name: str
    column: str
    code: int | None


@Comparison(
    summary="a linear regression on original and release: coefficients and the overlap of their intervals",
    paper="Karr et al. (2006), section 3.2; linear regression as in NIST SDNist",
    example="FROM regression_comparison('people', 'release', 'salary', columns := ['age', 'gender', 'education'])",
    smallest="target := '{number}'",
    parameters=(Parameter("target", "dependent variable: a number or a date", "text", REQUIRED), COLUMNS, BY),
    returns=fields(
        "subgroup VARCHAR, term VARCHAR, original DOUBLE OR NULL, original_low DOUBLE OR NULL, "
        "original_high DOUBLE OR NULL, release DOUBLE OR NULL, release_low DOUBLE OR NULL, "
        "release_high DOUBLE OR NULL, overlap DOUBLE OR NULL"
    ),
    refine=_with_target,
)
def regression_comparison(call: MeasureCall) -> Answer:
    """One row a subgroup and coefficient."""
    columns, target = call.original.columns, call.params["target"]
    numbers = [name for name in call.release.columns if name in columns and columns[name].domain.kind == "ordered"]
    target = spelled(target, numbers, f"target := '{target}' is no number or date of both tables", "there are")
    names = [name for name in columns_of(call) if name != target]
    domains = {name: columns[name].domain for name in [*names, target]}
    found: list[tuple[Any, ...]] = []
    for subgroup, *drawn in pairs(call, [*names, target]):
        terms = _terms(drawn[0], domains, names)
        original, release = (_fit(side, domains, terms, target) for side in drawn)
        figures = (*original, *release, interval_overlap(original, release))
        found += zip([subgroup] * len(terms), [term.name for term in terms], *figures, strict=True)
    return found


def _terms(original: Drawn, domains: Mapping[str, Attribute], names: Sequence[str]) -> list[_Term]:
    terms = [_Term("(intercept)", "", None)]
    for name in names:
        domain = domains[name]
        if domain.kind == "ordered":
            terms.append(_Term(name, name, None))
            continue
        count = np.bincount(original.columns[name], minlength=domain.size)
        others = [code for code in range(domain.size) if count[code] and code != int(count.argmax())]
        terms += [_Term(f"{name} = {value_text(domain, code)}", name, code) for code in others]
    if len(terms) > _MOST_TERMS:
        raise RequirementError(
            f"the columns have {len(terms)} coefficients, more than {_MOST_TERMS}; name fewer in columns := [...]"
        )
    return terms


def _fit(table: Drawn, domains: Mapping[str, Attribute], terms: Sequence[_Term], target: str) -> Estimate:
    from scipy.stats import t as student  # not before it is needed: it takes long to import

    numbers = [term.column for term in terms if term.column and term.code is None]
    rows = _finite(table, domains, (target, *numbers))
    design = np.ones((rows.rows, len(terms)))
    for k, term in enumerate(terms):
        tick()
        if term.column:
            codes = rows.columns[term.column]
            design[:, k] = domains[term.column].positions[codes] if term.code is None else codes == term.code
    y = domains[target].positions[rows.columns[target]]
    coefficient, error, free = run_detached(lambda: _least_squares(design, y))
    half = float(student.ppf(0.975, free)) * error if free >= 1 else error
    return coefficient, coefficient - half, coefficient + half


def _least_squares(design: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, int]:
    """Coefficients, their standard errors and the degrees of freedom; NaN for columns that others determine."""
    from scipy.linalg import qr, solve_triangular

    coefficient, error = np.full(design.shape[1], np.nan), np.full(design.shape[1], np.nan)
    length = np.sqrt((design**2).sum(axis=0))
    scaled = design / np.where(length > 0, length, 1)
    if not len(scaled):
        return coefficient, error, 0
    orthogonal, upper, order = qr(scaled, mode="economic", pivoting=True)
    size = np.abs(np.diag(upper))
    rank = int((size > 1e-9 * max(size[0], 1e-300)).sum())
    free, chosen, triangle = len(y) - rank, order[:rank], upper[:rank, :rank]
    if free < 1:
        return coefficient, error, free
    solved = solve_triangular(triangle, orthogonal[:, :rank].T @ y)
    rest = y - scaled[:, chosen] @ solved
    inverse = solve_triangular(triangle, np.eye(rank))
    coefficient[chosen] = solved / length[chosen]
    error[chosen] = np.sqrt((inverse**2).sum(axis=1) * float(rest @ rest) / free) / length[chosen]
    return coefficient, error, free
