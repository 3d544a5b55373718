"""distribution_distance: how far the distribution a release tells of is from the original's.

Measures, p being the original's shares and q the release's over the product of the domains, natural logarithms:
KL divergence sum p ln(p/q), in [0, inf]; chi-squared sum (p - q)^2 / q, in [0, inf]; L1 sum |p - q|, in [0, 2]; L2,
in [0, sqrt 2]; Hellinger sqrt(1 - sum sqrt(p q)), in [0, 1]. L1 and L2 take the estimate as it is; the others need
shares above 0, so negative ones are projected away and `smoothing` rows are added to every cell.

How each shape of release is read: `measures.joint`. Guo, Ying and Wu (2011) compare releases this way. Cost: the
joint distribution's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duckdb_anon.kernels.randomized_response.channel import project, smooth
from duckdb_anon.measures.utility.contingency_table import joint_shares
from duckdb_anon.model.coded_table import FloatArray
from duckdb_anon.model.errors import ColumnError
from duckdb_anon.model.function_specs import Parameter, Params, Report, fields
from duckdb_anon.model.release_table import ReadTable

NAME = "distribution_distance"


def distances(p: FloatArray, q: FloatArray, positive: FloatArray) -> dict[str, float]:
    """Distances between two distributions over the same cells.

    Args:
        p: shares of the original, summing to 1.
        q: estimated shares; may be negative.
        positive: the same estimate with all shares above 0 where KL and chi-squared are to be finite.

    >>> p, q = np.array([0.5, 0.3, 0.2]), np.array([0.4, 0.4, 0.2])
    >>> {name: round(value, 7) for name, value in distances(p, q, q).items()}
    {'kl': 0.0252672, 'chi2': 0.05, 'l1': 0.2, 'l2': 0.1414214, 'hellinger': 0.0798514}
    """
    seen = p > 0
    either = seen | (positive > 0)
    with np.errstate(divide="ignore"):
        kl = float((p[seen] * np.log(p[seen] / positive[seen])).sum())
        chi2 = float(((p[either] - positive[either]) ** 2 / positive[either]).sum())
    overlap = min(1.0, float(np.sqrt(p * positive).sum()))
    return {
        "kl": max(kl, 0.0),
        "chi2": chi2,
        "l1": float(np.abs(p - q).sum()),
        "l2": float(np.sqrt(((p - q) ** 2).sum())),
        "hellinger": float(np.sqrt(1.0 - overlap)),
    }


def compute(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row for the joint distribution of `columns`, or one a labelled column of the release."""
    original, release = tables
    roles = params["roles"]
    if params["columns"]:
        wanted = [list(params["columns"])]
    else:
        wanted = [[info.name] for info in roles.qi + roles.sensitive if info.name in release.columns]
    if not wanted:
        raise ColumnError(f"{NAME}: no columns to compare; say columns := ['age', 'disease']")
    found = [_compare(original, release, names, params) for names in wanted]
    return {
        "columns": [", ".join(names) for names in wanted],
        "cells": np.array([cells for cells, _ in found], dtype=np.int64),
        **{name: np.array([each[name] for _, each in found]) for name in ("kl", "chi2", "l1", "l2", "hellinger")},
    }


def _compare(
    original: ReadTable, release: ReadTable, names: Sequence[str], params: Params
) -> tuple[int, dict[str, float]]:
    truth = joint_shares(NAME, original, names)
    told = joint_shares(NAME, release, names)
    if original.rows == 0 or release.rows == 0:
        raise ColumnError(f"{NAME}: a table without rows has no distribution")
    positive = smooth(project(told, params["projection"]), original.rows, params["smoothing"])
    return truth.size, distances(truth, told, positive)


MEASURE = Report(
    name=NAME,
    summary="KL, chi-squared, L1, L2 and Hellinger distance between the original distribution and the one "
"estimated",
    paper="Guo, Ying and Wu (2011), section V",
    example="FROM distribution_distance('people', 'randomized', columns := ['gender', 'education'])",
    section="Utility",
    parameters=(
        Parameter("columns", "columns whose joint distribution is compared (default: each labelled one)", "names"),
        Parameter("smoothing", "pseudo-count added to each cell for KL, chi-squared and Hellinger", "number",
                  0.5,
                  low=0),
        Parameter("projection", "negative cells: 'clip' sets them to 0; 'euclidean' takes the nearest distribution",
                  "text", "clip", ("clip", "euclidean")),
    ),
    returns=fields(
        "columns VARCHAR, cells BIGINT, kl DOUBLE, chi2 DOUBLE, l1 DOUBLE, l2 DOUBLE, hellinger DOUBLE"
    ),
    compute=compute,
    unit="any",
    tables=("original", "release"),
    reads="tables",
    answers=("rows", "boxes", "buckets", "sliced", "randomized", "counts", "sampled", "suppressed", "retained"),
    needs=(),
)  # fmt: skip
