"""Retained: a constant column `retention` says that each sensitive value was kept with this probability.

Otherwise it was drawn anew from the distribution of the released values, which replacement leaves as it was
in expectation. So a row that shows u stands for the signed mixture (u - (1 - q) * that distribution) / q: the
observed share y of a value becomes (y - (1 - q) * P(value)) / q, as in randomized response (Guo, Ying and Wu
2011, section III). Estimates may be negative; no hard bounds exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from duckdb_anon.rewrite.parts import Part, Request, quoted


@dataclass(frozen=True)
class RetainedPart(Part):
    """A column whose values were kept with probability `retention` (SQL over `_r`)."""

    retention: str = ""

    def values(self, used: Sequence[str]) -> exp.Select:
        """One row a released value and value it may stand for, with a signed weight."""
        column = quoted(self.columns[0])
        weight = "((_own._cell is not distinct from _any._cell)::double - (1 - _own.kept) * _any.share) / _own.kept"
        pairs = exp.select("_own._cell", f"_any._cell as {column}", f"{weight} as _weight", dialect="duckdb")
        return pairs.from_(self._shares().subquery("_own")).join(self._shares().subquery("_any"), join_type="cross")

    def shares(self, requests: Sequence[Request]) -> exp.Select:
        """A value's own answer, less what replacement adds to it: no list of pairs."""
        column = quoted(self.columns[0])
        wanted = []
        for number, request in enumerate(requests, 1):
            if request.wanted != "mean":
                return super().shares(requests)
            own = _own(request)
            mixed = f"(({own}) - (1 - kept) * sum(({own}) * share) over ()) / kept"
            wanted.append(exp.alias_(exp.maybe_parse(mixed, dialect="duckdb"), f"s{number}"))
        source = exp.select("*", f"_cell as {column}", dialect="duckdb").from_(self._shares().subquery("_own"))
        return exp.select("_cell", *wanted).from_(source.subquery("_v"))

    def _shares(self) -> exp.Select:
        """SELECT _cell, share, kept: each released value, how often it occurs, and the retention."""
        share = "count(*) / sum(count(*)) over () as share"
        chosen = exp.select(f"{self.key} as _cell", share, f"any_value({self.retention}) as kept", dialect="duckdb")
        return chosen.from_(self.source()).group_by("_cell")


def _own(request: Request) -> str:
    condition, value = (e.sql("duckdb") if e is not None else None for e in (request.condition, request.value))
    if value is None:
        return f"case when {condition} then 1 else 0 end"
    return f"coalesce(case when {condition or 'true'} then {value} end, 0)"
