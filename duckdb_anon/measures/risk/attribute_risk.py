"""attribute_risk: how often an attacker names an individual's sensitive value, next to the bound of l-diversity.

The attackers of `linkage_risk`, the deFinetti attacker among them, who trains naive Bayes on the release alone and
spreads the values of each class or bucket over its rows; one row an attacker and the strongest, for each sensitive
column. `attribute` is the share of targets whose value is named, in [0, 1]; `baseline` and `advantage` as in
`linkage_risk`. `largest_share` is the share of the most frequent value in a class or bucket, the mean over the rows:
what l bounds by 1/l. An attacker does better than that share where other classes show which values go with which
quasi-identifiers, so l is a bound on the share and not on what can be inferred (Kifer 2009).
In a release of persons l bounds the share of a list, not of a value, and `largest_share` is NULL (see kl_diversity).
A release without `row_id` works too: then no attacker knows the target's class, and the baseline has seen the targets.
Cost: that of linkage_risk, and 20 rounds over rows times values of their bucket for deFinetti.
"""

from __future__ import annotations

import numpy as np
import scipy

from duckdb_anon.engine.catalog.column_roles import ROLE_PARAMETERS
from duckdb_anon.kernels.cells.table import MeasureCall
from duckdb_anon.measures.released_rows import OfRelease
from duckdb_anon.measures.risk.linkage_risk import linkage_risk, prepared, rows_of
from duckdb_anon.measures.risk.linkage_view import PublishedRecords
from duckdb_anon.measures.risk.mechanism_simulation import replay_select
from duckdb_anon.measures.risk.sensitive_attributes import Secret
from duckdb_anon.model.function_specs import Answer


@OfRelease(
    summary="attribute disclosure: how often each attacker infers the sensitive value, compared with what l bounds",
    paper="Kifer (2009), Attacks on privacy and deFinetti's theorem; see linkage_risk",
    example="FROM attribute_risk('people', 'release', 'salary', call := 'muco(0.2)', targets := 200)",
    section="Risk",
    parameters=(*(p for p in ROLE_PARAMETERS if p.name == "sensitive"), *linkage_risk.parameters),
    returns={
        **{name: kind for name, kind in linkage_risk.returns.items() if not name.startswith("identity")},
        "largest_share": "DOUBLE OR NULL",
    },
    answers=linkage_risk.answers,
    optional=("holdout",),
    further=replay_select,
    needs=("qi", "sensitive"),
    unit="person",
)
def attribute_risk(call: MeasureCall) -> Answer:
    """One row an attacker and the strongest, for each sensitive column."""
    rows = []
    for name in call.sensitive:
        release, targets, outside = prepared(call, [name])
        share = largest_share(release, release.secrets[0])
        each = rows_of(release, targets, outside, call.params["attackers"])
        rows += [{**row, "largest_share": share} for row in each]
    return rows


def largest_share(release: PublishedRecords, secret: Secret) -> float:
    """Share of the most frequent value in a row's class or bucket, the mean over the rows; NaN where there is none."""
    if release.group_of_unit is None or secret.listed:
        return float("nan")
    group = release.group_of_unit
    if release.start is not None and secret.part >= 0:
        group = np.repeat(np.arange(len(release.size)), np.diff(release.start))
    voters, groups = len(group), int(group.max(initial=0)) + 1
    count = scipy.sparse.csr_matrix((np.ones(voters), (group, np.arange(voters))), (groups, voters)) @ secret.by_voter
    return float(count.max(axis=1).sum() / count.sum()) if count.sum() else float("nan")
