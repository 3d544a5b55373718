"""The likelihood attacker who also leaves out rows that the method's promise says are not hers.

A method that promises that everybody differs somewhere (muco's min_changed) tells whom to leave out: rows that equal
her in too many columns. How many is too many is seen where the call is run on the release: no more than one row in a
thousand keeps as many. Without such a promise she is the likelihood attacker.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from duckdb_anon.measures.risk.attackers import likelihood
from duckdb_anon.measures.risk.attacks import Attacker, CannotAsk
from duckdb_anon.measures.risk.linkage_view import PublishedRecords, Replay
from duckdb_anon.measures.risk.scores import Scoring

RARE = 0.001


def scoring(release: PublishedRecords) -> Scoring:
    """As likelihood, and the largest number of columns in which a row may equal its person.

    Raises:
        CannotAsk: rows are not plain values, or nobody said what call made them.
    """
    if release.replay is None:
        raise CannotAsk("leaving rows out needs plain values and the call that made them, call := 'muco(0.2)'")
    return replace(likelihood.scoring(release), most_equal=most_equal(release.replay))


def most_equal(replay: Replay) -> int:
    """Largest number of columns that more than one row in a thousand keeps."""
    kept = (replay.before == replay.after).sum(axis=0)
    share = np.bincount(kept, minlength=len(replay.before) + 1) / max(len(kept), 1)
    return int(np.flatnonzero(np.cumsum(share[::-1])[::-1] > RARE).max(initial=0))


LIKELIHOOD_EXCLUDING = Attacker(
    "likelihood_excluding", "the same, without rows that the method's promise rules out", scoring
)
