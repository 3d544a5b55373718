"""The attacker who is told the group, class or bucket of the target's row: a bound on what groups could leak.

She is no outsider, so she is listed but never the strongest attacker of a release.
"""

from __future__ import annotations

from dataclasses import replace

from duckdb_anon.measures.risk.attackers import definetti, likelihood
from duckdb_anon.measures.risk.attacks import Attacker, CannotAsk
from duckdb_anon.measures.risk.linkage_view import PublishedRecords
from duckdb_anon.measures.risk.scores import Scoring


def scoring(release: PublishedRecords) -> Scoring:
    """As definetti, or likelihood where no values are mixed, inside the target's own group.

    Raises:
        CannotAsk: the release shows no groups, or nobody has a row in it.
    """
    if not release.persons:
        raise CannotAsk("noisy counts are cells, so nobody has a row whose class could be told")
    if release.group_of_unit is None:
        raise CannotAsk("the release shows neither boxes nor buckets, so there is no group to be told")
    try:
        known = definetti.scoring(release)
    except CannotAsk:
        known = likelihood.scoring(release)
    return replace(known, told=True)


TOLD = Attacker("told", "the same, told the class or bucket of her row", scoring, outsider=False)
