"""propensity: how well a learner distinguishes released rows from original ones (pMSE).

Both tables are stacked, a learner estimates the chance that a row is a released one, and pMSE is the mean squared
difference between that chance and the share c of released rows (Woo et al. 2009; Snoke et al. 2018): 0 when they cannot
be distinguished, c (1 - c) at most. `expected` is what pMSE would be if both came from one source: (p - 1)(1 - c)^2 c /
N for a logistic regression with p parameters (Snoke et al. 2018, section 3), the mean over `permutations` of shuffled
origins for a tree. `ratio` is pmse over expected, 1 for a release like a new sample. Logistic regression sees each
column alone, the tree what ties them. At most `rows` rows of each table are drawn. How boxes and slices are read:
`measures.utility.sampled_microdata`. Cost: that of scikit-learn (`pip install duckdb-anon[ml]`), times permutations for
the tree.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from duckdb_anon.kernels.cells.table import MeasureCall
from duckdb_anon.kernels.thread_pool import run_detached
from duckdb_anon.measures.utility.sampled_microdata import BY, COLUMNS, Comparison, columns_of, pairs
from duckdb_anon.model.coded_table import Attribute, FloatArray, IntArray
from duckdb_anon.model.errors import AnonError
from duckdb_anon.model.function_specs import Answer, Parameter, fields
from duckdb_anon.model.progress import tick

LEARNERS = ("logistic", "cart")
_MOST_NAMES = 50


@Comparison(
    summary="how well a logistic regression and a tree distinguish released records from original ones (pMSE)",
    paper="Woo et al. (2009); Snoke et al. (2018), section 3; in NIST SDNist",
    example="FROM propensity('people', 'release', permutations := 3)",
    smallest="permutations := 1",
    extra="ml",
    parameters=(
        COLUMNS,
        Parameter("rows", "maximum number of records drawn from each table", "integer", 20_000, low=10, high=1_000_000),
        Parameter(
            "permutations", "number of permutations for the expected value of a tree", "integer", 10, low=1, high=1000
        ),
        BY,
    ),
    returns=fields(
        "subgroup VARCHAR, learner VARCHAR, rows BIGINT, pmse DOUBLE, expected DOUBLE OR NULL, ratio DOUBLE OR NULL"
    ),
)
def propensity(call: MeasureCall) -> Answer:
    """One row a subgroup and learner."""
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise AnonError("needs scikit-learn; pip install 'duckdb-anon[ml]'") from error
    names, params, rng = columns_of(call), call.params, call.rng
    domains = {name: call.original.columns[name].domain for name in names}
    found: list[tuple[Any, ...]] = []
    for subgroup, *drawn in pairs(call, names):
        parts = []
        for part in drawn:
            chosen = np.zeros(part.rows, dtype=bool)
            chosen[rng.choice(part.rows, min(params["rows"], part.rows), replace=False)] = True
            parts.append(part.only(chosen))
        columns = [_features(domains[name], np.concatenate([part.columns[name] for part in parts])) for name in names]
        features = np.concatenate(columns, axis=1)
        released = np.repeat([0.0, 1.0], [part.rows for part in parts])
        for learner in LEARNERS:
            pmse, expected = _pmse(learner, features, released, params["permutations"], rng)
            ratio = pmse / expected if expected > 0 else float("nan")
            found.append((subgroup, learner, len(released), pmse, expected, ratio))
    return found


def _features(domain: Attribute, codes: IntArray) -> FloatArray:
    """A number as itself and whether it is one; a name as indicators of the most frequent ones, all others together."""
    if domain.kind == "ordered":
        finite, number = codes < domain.special_from, np.zeros(len(codes))
        if finite.any():
            position = domain.positions[codes[finite]]
            number[finite] = (position - position.mean()) / (position.std() or 1.0)
        return number[:, None] if finite.all() else np.column_stack([number, finite.astype(np.float64)])
    count = np.bincount(codes, minlength=domain.size)
    frequent = np.argsort(-count, kind="stable")[: min(_MOST_NAMES, int((count > 0).sum()))]
    indicators: FloatArray = (codes[:, None] == frequent[None, 1:]).astype(np.float64)
    return indicators


def _pmse(
    learner: str, features: FloatArray, released: FloatArray, permutations: int, rng: np.random.Generator
) -> tuple[float, float]:
    rows, share = len(released), float(released.mean())
    if share in (0.0, 1.0) or features.shape[1] == 0:
        return share * (1 - share), float("nan")

    def mean_square(origin: FloatArray) -> float:
        tick()
        return float(((run_detached(lambda: _chance(learner, features, origin)) - share) ** 2).mean())

    if learner == "logistic":
        parameters = int(run_detached(lambda: np.linalg.matrix_rank(np.column_stack([np.ones(rows), features]))))
        return mean_square(released), (parameters - 1) * (1 - share) ** 2 * share / rows
    shuffled = [mean_square(rng.permutation(released)) for _ in range(permutations)]
    return mean_square(released), float(np.mean(shuffled))


def _chance(learner: str, features: FloatArray, origin: FloatArray) -> FloatArray:
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeClassifier

    if learner == "logistic":
        model = LogisticRegression(C=1e6, max_iter=500)
    else:
        model = DecisionTreeClassifier(min_samples_leaf=max(20, len(origin) // 1000), random_state=0)
    with warnings.catch_warnings():
        # separable tables have no finite maximum; the chances are 0 and 1 all the same
        warnings.simplefilter("ignore")
        chance: FloatArray = model.fit(features, origin).predict_proba(features)[:, 1]
    return chance
