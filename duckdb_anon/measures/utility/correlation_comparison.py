"""correlation_comparison: do numbers of a release go together as the original's do, within sampling error?

For each pair of ordered columns Pearson's r and Spearman's rank correlation in both tables, their 95% confidence
intervals by Fisher's z (for ranks with the variance 1.06 / (n - 3) of Fieller, Hartley and Pearson 1957), and the
overlap of the intervals (Karr et al. 2006). Rows in which one of the two is NULL or not finite are left out. For names
see `correlation` (uncertainty coefficients). How boxes and slices are read: `measures.utility.sampled_microdata`.
Cost: one sort a column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from duckdb_anon.measures.utility.sampled_microdata import BY, COLUMNS, Comparison, Drawn, columns_of, pairs
from duckdb_anon.model.coded_table import Attribute, FloatArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import Params, fields
from duckdb_anon.model.release_table import ReadTable

NAME = "correlation_comparison"
_Z = 1.959963984540054
_VARIANCE = {"pearson": 1.0, "spearman": 1.06}


def interval_overlap(first: tuple[FloatArray, FloatArray], second: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Mean share that the common part has of each interval (Karr et al. 2006, section 3.2); 1 for equal ones.

    Below 0 where they lie apart: minus the gap in units of their lengths. Intervals without length overlap by 1 where
    they are equal; NaN where an end is unknown.

    >>> ends = lambda low, high: (np.array([low]), np.array([high]))
    >>> interval_overlap(ends(0.0, 4.0), ends(2.0, 4.0)).tolist()
    [0.75]
    >>> interval_overlap(ends(0.0, 1.0), ends(2.0, 3.0)).tolist()
    [-1.0]
    """
    common = np.minimum(first[1], second[1]) - np.maximum(first[0], second[0])
    lengths = [high - low for low, high in (first, second)]
    equal = (first[0] == second[0]) & (first[1] == second[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (common / lengths[0] + common / lengths[1]) / 2
    overlap: FloatArray = np.where(equal, 1.0, share)
    return overlap


def correlation_comparison(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row a subgroup, pair of columns and coefficient."""
    domains = {n: tables[0].columns[n].domain for n in columns_of(NAME, params, tables[1]) if n in tables[0].columns}
    names = [name for name, domain in domains.items() if domain.kind == "ordered"]
    if len(names) < 2:
        raise ColumnError(
            f"{NAME}: it compares pairs of numbers or dates, and there are {len(names)}; name two in columns := [...], "
            "or ask correlation(...) for names"
        )
    found: list[tuple[Any, ...]] = []
    for pair in pairs(NAME, tables, names, params["subgroup"], rng):
        for first, second in combinations(names, 2):
            for kind in _VARIANCE:
                ours, theirs = (_estimate(one, domains, first, second, kind) for one in (pair.original, pair.release))
                overlap = interval_overlap(_ends(ours), _ends(theirs))
                found.append(
                    (pair.subgroup, first, second, kind, *ours, *theirs, theirs[0] - ours[0], float(overlap[0]))
                )
    return MEASURE.columns(found)


def _ends(estimate: tuple[float, float, float]) -> tuple[FloatArray, FloatArray]:
    return np.array([estimate[1]]), np.array([estimate[2]])


def _estimate(
    table: Drawn, domains: Mapping[str, Attribute], first: str, second: str, kind: str
) -> tuple[float, float, float]:
    """Coefficient and the ends of its interval; NaN where there is none."""
    known = np.ones(table.rows, dtype=bool)
    for name in (first, second):
        known &= table.columns[name] < domains[name].special_from
    x, y = (domains[name].positions[table.columns[name][known]] for name in (first, second))
    if kind == "spearman":
        from scipy.stats import rankdata

        x, y = rankdata(x), rankdata(y)
    if len(x) < 4 or x.std() == 0 or y.std() == 0:
        return float("nan"), float("nan"), float("nan")
    r = float(np.clip(np.corrcoef(x, y)[0, 1], -1, 1))
    if abs(r) == 1:
        return r, r, r
    half = _Z * np.sqrt(_VARIANCE[kind] / (len(x) - 3))
    return r, float(np.tanh(np.arctanh(r) - half)), float(np.tanh(np.arctanh(r) + half))


MEASURE = Comparison(
    name=NAME,
    summary="correlations of numbers in original and release, and how much their confidence intervals overlap",
    paper="Karr et al. (2006), section 3.2; correlations as in NIST SDNist",
    example="FROM correlation_comparison('people', 'release')",
    parameters=(COLUMNS, BY),
    returns=fields(
        "subgroup VARCHAR, first VARCHAR, second VARCHAR, coefficient VARCHAR, original DOUBLE OR NULL, "
        "original_low DOUBLE OR NULL, original_high DOUBLE OR NULL, release DOUBLE OR NULL, "
        "release_low DOUBLE OR NULL, release_high DOUBLE OR NULL, difference DOUBLE OR NULL, overlap DOUBLE OR NULL"
    ),
    compute=correlation_comparison,
)
