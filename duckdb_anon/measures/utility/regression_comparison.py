"""regression_comparison: does a linear regression on the release give the coefficients of the original?

Least squares of a number `target` on the other columns in both tables, each coefficient with its 95% confidence
interval and the overlap of both intervals (Karr et al. 2006; in NIST SDNist for income on education). Numbers enter as
they are, a name as an indicator against the original's most frequent value; rows in which a number is NULL or not
finite are left out. A coefficient that one of the tables cannot give (a value that no record has there, a column that
follows from the others) is NULL there. How boxes and slices are read: `measures.utility.sampled_microdata`. Cost: rows
times terms squared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from duckdb_anon.kernels.thread_pool import run_detached
from duckdb_anon.measures.utility.correlation_comparison import interval_overlap
from duckdb_anon.measures.utility.sampled_microdata import BY, COLUMNS, Comparison, Drawn, columns_of, pairs, value_text
from duckdb_anon.model.coded_table import Attribute, FloatArray
from duckdb_anon.model.errors import ColumnError, RequirementError, listed, nearest
from duckdb_anon.model.function_specs import REQUIRED, Parameter, Params, fields
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_table import ReadTable

NAME = "regression_comparison"
_MOST_TERMS = 300


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


def regression_comparison(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row a subgroup and coefficient."""
    names = columns_of(NAME, params, tables[1])
    spelled = {fold(name): name for name in tables[1].columns if name in tables[0].columns}
    target = spelled.get(fold(params["target"]))
    if target is None or tables[0].columns[target].domain.kind != "ordered":
        numbers = [n for n in spelled.values() if tables[0].columns[n].domain.kind == "ordered"]
        raise ColumnError(
            f"{NAME}: target := '{params['target']}' is no number or date of both tables"
            f"{nearest(params['target'], numbers)}; there are {listed(numbers) or 'none'}"
        )
    names = [name for name in names if name != target]
    domains = {name: tables[0].columns[name].domain for name in [*names, target]}
    found: dict[str, list[Any]] = {name: [] for name in MEASURE.returns}
    for pair in pairs(NAME, tables, [*names, target], params["subgroup"], rng):
        terms = _terms(pair.original, domains, names)
        ours, theirs = (_fit(one, domains, terms, target) for one in (pair.original, pair.release))
        overlap = interval_overlap((ours[1], ours[2]), (theirs[1], theirs[2]))
        found["subgroup"] += [pair.subgroup] * len(terms)
        found["term"] += [term.name for term in terms]
        for side, fit in (("original", ours), ("release", theirs)):
            for end, values in zip(("", "_low", "_high"), fit, strict=True):
                found[f"{side}{end}"] += values.tolist()
        found["overlap"] += overlap.tolist()
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
            f"{NAME}: the columns have {len(terms)} coefficients, more than {_MOST_TERMS}; name fewer in "
            "columns := [...]"
        )
    return terms


def _fit(
    table: Drawn, domains: Mapping[str, Attribute], terms: Sequence[_Term], target: str
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Coefficients and the ends of their intervals; NaN where the table does not tell them."""
    from scipy.stats import t as student  # not before it is needed: it takes long to import

    known = table.columns[target] < domains[target].special_from
    for term in terms:
        if term.column and term.code is None:
            known &= table.columns[term.column] < domains[term.column].special_from
    rows = table.only(known)
    design = (
        np.column_stack([_design(rows, domains, term) for term in terms]) if rows.rows else np.zeros((0, len(terms)))
    )
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


def _design(rows: Drawn, domains: Mapping[str, Attribute], term: _Term) -> FloatArray:
    tick()
    if not term.column:
        return np.ones(rows.rows)
    codes = rows.columns[term.column]
    values: FloatArray = domains[term.column].positions[codes] if term.code is None else (codes == term.code) * 1.0
    return values


MEASURE = Comparison(
    name=NAME,
    summary="a linear regression on original and release: coefficients and the overlap of their intervals",
    paper="Karr et al. (2006), section 3.2; linear regression as in NIST SDNist",
    example="FROM regression_comparison('people', 'release', 'salary', columns := ['age', 'gender', 'education'])",
    smallest="target := '{number}'",
    parameters=(
        Parameter("target", "dependent variable: a number or a date", "text", REQUIRED),
        COLUMNS,
        BY,
    ),
    returns=fields(
        "subgroup VARCHAR, term VARCHAR, original DOUBLE OR NULL, original_low DOUBLE OR NULL, "
        "original_high DOUBLE OR NULL, release DOUBLE OR NULL, release_low DOUBLE OR NULL, "
        "release_high DOUBLE OR NULL, overlap DOUBLE OR NULL"
    ),
    compute=regression_comparison,
    refine=_with_target,
)
