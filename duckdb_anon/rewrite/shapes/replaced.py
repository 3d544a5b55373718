"""Retained: a constant column `retention` says that each sensitive value was kept with this probability.

Otherwise it was drawn anew from the distribution of the released values, which replacement leaves as it was
in expectation. So a row that shows u stands for the signed mixture (u - (1 - q) * that distribution) / q: the
observed share y of a value becomes (y - (1 - q) * P(value)) / q, as in randomized response (Guo, Ying and Wu
2011, section III). Estimates may be negative; no hard bounds exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from duckdb_anon.rewrite.query.template import select, tree
from duckdb_anon.rewrite.shapes.parts import Part, Request, labelled, value_if


@dataclass(frozen=True)
class RetainedPart(Part):
    """A column whose values were kept with probability `retention` (SQL over `_r`)."""

    retention: exp.Expr = field(default_factory=exp.null)

    def values(self, used: Sequence[str]) -> exp.Select:
        """One row a released value and value it may stand for, with a signed weight."""
        return select(
            """
            select _shown._cell, _any._cell as {value},
              ((_shown._cell is not distinct from _any._cell)::double - (1 - _shown._kept) * _any._frequency)
                / _shown._kept as _weight
            from {released} as _shown cross join {released} as _any""",
            value=self.columns[0],
            released=self._frequencies(),
        )

    def shares(self, requests: Sequence[Request], labels: Sequence[str]) -> exp.Select:
        """A value's own answer, less what replacement adds to it: no list of pairs."""
        if any(request.wanted != "mean" for request in requests):
            return super().shares(requests, labels)
        wanted = [
            labelled(
                tree("({own} - (1 - _kept) * sum({own} * _frequency) over ()) / _kept", own=value_if(request)), label
            )
            for request, label in zip(requests, labels, strict=True)
        ]
        return select(
            "select _cell, {wanted} from (select *, _cell as {value} from {released} as _shown) as _value",
            wanted=wanted,
            value=self.columns[0],
            released=self._frequencies(),
        )

    def _frequencies(self) -> exp.Select:
        """SELECT cell, frequency, kept: each released value, how often it occurs, and the retention."""
        return select(
            "select {key} as _cell, count(*) / sum(count(*)) over () as _frequency, any_value({retention}) as _kept "
            "from {release} group by _cell",
            key=self.key,
            retention=self.retention,
            release=self.source(),
        )
