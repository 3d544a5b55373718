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

from typing import Any

import numpy as np

from duckdb_anon.kernels.cells.table import MeasureCall
from duckdb_anon.measures.released_rows import OfRelease
from duckdb_anon.measures.risk.attacks import NotApplicable, best_scores, rate_of
from duckdb_anon.measures.risk.linkage_risk import CALL, KNOWN, P_MATCH, chosen_attackers, note_of, prepared
from duckdb_anon.measures.risk.mechanism_simulation import replay_select
from duckdb_anon.model.coded_table import FloatArray
from duckdb_anon.model.errors import ParameterError
from duckdb_anon.model.function_specs import REQUIRED, Answer, Parameter

CLOSEST = "nearest"
ATTACKERS = [CLOSEST, "likelihood"]
_DISTANCES = ("closest", "closest_others")
_FIGURES = ("auc", "auc_low", "auc_high", "tpr_at_1_fpr", "tpr_low", "tpr_high")


@OfRelease(
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
    answers=("rows", "boxes", "buckets", "sliced", "randomized", "sampled", "suppressed", "retained"),
    optional=("holdout",),
    further=replay_select,
)  # fmt: skip
def membership_risk(call: MeasureCall) -> Answer:
    """One row an attacker."""
    release, members, others = prepared(call, [])
    if others is None:
        raise ParameterError("holdout is missing; name a table of persons who are not in the original")
    rows: list[dict[str, Any]] = []
    for attacker in chosen_attackers(ATTACKERS):
        row: dict[str, Any] = {"attacker": attacker.name, "members": len(members), "others": len(others)}
        rows.append(row)
        try:
            scoring = attacker.scoring(release)
        except NotApplicable as reason:
            row["note"] = str(reason)
            continue
        inside, outside = best_scores(release, scoring, members), best_scores(release, scoring, others)
        row |= figures(inside, outside) | {"note": note_of(attacker, scoring)}
        if attacker.name == CLOSEST:  # its scores are minus the sum of the distances
            means = [float(-scores.mean()) / len(release.columns) + 0.0 for scores in (inside, outside)]
            row |= zip(_DISTANCES, means, strict=True)
    return rows


def figures(inside: FloatArray, outside: FloatArray) -> dict[str, float]:
    """AUC and true-positive rate at 1% false positives, from the scores of members and of others.

    >>> figures(np.array([1.0, 2.0]), np.array([0.0, 0.0]))["auc"]
    1.0
    """
    from scipy.stats import rankdata

    m, n = len(inside), len(outside)
    ranks = rankdata(np.concatenate([inside, outside]))
    auc = float((ranks[:m].sum() - m * (m + 1) / 2) / (m * n))
    q1, q2 = auc / (2 - auc), 2 * auc * auc / (1 + auc)
    spread = (auc * (1 - auc) + (m - 1) * (q1 - auc * auc) + (n - 1) * (q2 - auc * auc)) / (m * n)
    half = 1.959963984540054 * float(np.sqrt(max(spread, 0.0)))
    # as many others as 1% are above the threshold
    threshold = np.sort(outside)[::-1][int(np.floor(0.01 * n))] if n else -np.inf
    caught = rate_of((inside > threshold).astype(np.float64))
    return dict(zip(_FIGURES, (auc, max(0.0, auc - half), min(1.0, auc + half), *caught), strict=True))
