"""membership_risk: whether a release reveals that an individual is in it.

The attacker knows a person's quasi-identifiers and scores how well the best released row fits them (minus the distance
of the nearest row, and the best likelihood ratio where the call is given); members should not fit better than persons
of `holdout`, who are drawn from the same population and are not in the table. `auc` is the chance that a member fits
better than one of them (ties count half; 0.5: nothing is revealed), with the 95% interval of Hanley and McNeil (1982);
`tpr_at_1_fpr` the share of members who are recognized where 1% of the others are taken for members (Carlini et al.
2022), with Wilson's interval. `closest` and `closest_others` are the mean distances of members and of others to the
closest released record (Gower's, over the number of columns, in [0, 1]).
Cost: that of an attacker of linkage_risk on members and others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duckdb_anon.measures.released_rows import OfRelease
from duckdb_anon.measures.risk.attacks import NotApplicable, best_scores, wilson
from duckdb_anon.measures.risk.linkage_risk import CALL, KNOWN, P_MATCH, chosen_attackers, note_of, prepared
from duckdb_anon.measures.risk.mechanism_simulation import replay_select
from duckdb_anon.model.coded_table import FloatArray
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.function_specs import REQUIRED, Parameter, Params
from duckdb_anon.model.release_table import ReadTable

NAME = "membership_risk"
CLOSEST = "nearest"
ATTACKERS = [CLOSEST, "likelihood"]


def membership_risk(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row an attacker."""
    read = dict(zip(params["read"], tables, strict=True))
    if "holdout" not in read:
        raise ParameterError(f"{NAME}: holdout is missing; name a table of persons who are not in the original")
    release, members, others = prepared(NAME, read, params, [], rng)
    if others is None:
        raise TypeError("no holdout")
    rows: list[dict[str, Any]] = []
    for attacker in chosen_attackers(NAME, ATTACKERS):
        row: dict[str, Any] = {"attacker": attacker.name, "members": len(members), "others": len(others)}
        row |= dict.fromkeys(_DISTANCES, np.nan)
        try:
            scoring = attacker.scoring(release)
        except NotApplicable as reason:
            rows.append(row | dict.fromkeys(_FIGURES, np.nan) | {"note": str(reason)})
            continue
        inside, outside = best_scores(release, scoring, members), best_scores(release, scoring, others)
        near = _closest(len(release.columns), inside, outside) if attacker.name == CLOSEST else {}
        rows.append(row | figures(inside, outside) | near | {"note": note_of(attacker, scoring)})
    return {name: [row[name] for row in rows] for name in MEASURE.returns}


def _closest(columns: int, inside: FloatArray, outside: FloatArray) -> dict[str, float]:
    """Mean distance to the closest record, from scores that are minus the sum of distances."""
    return {
        name: float(-scores.mean()) / columns + 0.0 for name, scores in zip(_DISTANCES, (inside, outside), strict=True)
    }


def figures(inside: FloatArray, outside: FloatArray) -> dict[str, float]:
    """AUC and true-positive rate at 1% false positives, from the scores of members and of others.

    >>> figures(np.array([1.0, 2.0]), np.array([0.0, 0.0]))["auc"]
    1.0
    """
    m, n = len(inside), len(outside)
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([inside, outside]))
    auc = float((ranks[:m].sum() - m * (m + 1) / 2) / (m * n))
    q1, q2 = auc / (2 - auc), 2 * auc * auc / (1 + auc)
    spread = (auc * (1 - auc) + (m - 1) * (q1 - auc * auc) + (n - 1) * (q2 - auc * auc)) / (m * n)
    half = 1.959963984540054 * float(np.sqrt(max(spread, 0.0)))
    most = int(np.floor(0.01 * n))  # others above the threshold
    threshold = np.sort(outside)[::-1][most] if n else -np.inf
    caught = inside > threshold
    low, high = wilson(float(caught.sum()), m)
    return {
        "auc": auc, "auc_low": max(0.0, auc - half), "auc_high": min(1.0, auc + half),
        "tpr_at_1_fpr": float(caught.mean()), "tpr_low": low, "tpr_high": high,
    }  # fmt: skip


_DISTANCES = ("closest", "closest_others")
_FIGURES = ("auc", "auc_low", "auc_high", "tpr_at_1_fpr", "tpr_low", "tpr_high")
MEASURE = OfRelease(
    name=NAME,
    summary="membership disclosure: members of the release compared with individuals of a holdout",
    paper="Hanley and McNeil (1982); Carlini et al. (2022), Membership inference attacks from first principles",
    example="FROM membership_risk('people', 'release', holdout := '(SELECT * FROM people USING SAMPLE 50)')",
    section="Risk",
    smallest="holdout := '{original}'",
    instead=("linkage_risk",),
    parameters=(
        Parameter("holdout", "table of individuals who are not in the original", "text", REQUIRED),
        KNOWN,
        P_MATCH,
        Parameter("targets", "number of members, and of individuals of the holdout", "integer", 2000, low=1),
        CALL,
    ),
    returns={
        "attacker": "VARCHAR", **dict.fromkeys((*_FIGURES, *_DISTANCES), "DOUBLE OR NULL"), "members": "BIGINT",
        "others": "BIGINT", "note": "VARCHAR",
    },
    compute=membership_risk,
    answers=("rows", "boxes", "buckets", "sliced", "randomized", "sampled", "suppressed", "retained"),
    optional=("holdout",),
    further=replay_select,
)  # fmt: skip
