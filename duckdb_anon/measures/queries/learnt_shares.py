"""Shares of the values inside generalized cells, learnt from a release when a query is planned.

The text of the query carries them as numbers, so it runs where this package is not (see `kernels.cell_shares` for the
estimator: expectation maximisation, Dempster, Laird and Rubin 1977). A column with more than `MOST` distinct ends or
values is spread evenly: its numbers would be a text of their own.
Cost: one pass over the column, and a few over its distinct cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from duckdb_anon.kernels.cell_shares import NODE_ROUNDS, SET_ROUNDS, Boxes, member_shares
from duckdb_anon.rewrite.query.tables import Member, Segment

MOST = 5000


@dataclass(frozen=True)
class ReleaseShares:
    """Learns from a release.

    Attributes:
        cursor: a connection that sees the release.
    """

    cursor: Any

    def segments(self, cells: str, discrete: bool) -> list[Segment]:
        """Segments of an ordered column, each with the share of records per unit; none where nothing is learnt.

        Args:
            cells: SELECT of low, high and the number of records of each interval; ends are NULL of one without ends.
            discrete: whether values are counted, so that both ends of a segment are values.
        """
        rows = [row for row in self.cursor.execute(cells).fetchall() if row[0] is not None]
        if not rows:
            return []
        kind = np.int64 if discrete else np.float64
        try:
            lower, upper = (np.array([row[end] for row in rows], dtype=kind) for end in (0, 1))
        except OverflowError:
            return []
        records = np.array([float(row[2]) for row in rows])
        nothing = np.zeros(len(rows), dtype=bool)
        starts, density = Boxes(lower, upper, nothing, nothing, records, int(discrete)).density()
        if len(density) > MOST:
            return []
        ends = starts[1:] - int(discrete)
        pairs = zip(starts[:-1].tolist(), ends.tolist(), density.tolist(), strict=True)
        return [(first, last, share) for first, last, share in pairs if share > 0]

    def members(self, cells: str, nodes: bool) -> list[Member]:
        """The values of a column that lists them, as texts, each with its share; none where nothing is learnt.

        Args:
            cells: SELECT of the number of a cell, a member as text, its share of the cell when spread evenly, and the
                number of records of the cell.
            nodes: whether cells are nodes of a hierarchy.
        """
        rows = self.cursor.execute(f"select * from ({cells}) as c(cell, value, prior, size) order by cell").fetchall()
        values = list(dict.fromkeys(row[1] for row in rows))
        if not 1 < len(values) <= MOST:
            return []
        code = {value: number for number, value in enumerate(values)}
        codes = np.array([code[row[1]] for row in rows], dtype=np.int64)
        prior = np.array([float(row[2]) for row in rows])
        _, first = np.unique([row[0] for row in rows], return_index=True)
        offsets = np.append(first, len(rows)).astype(np.int64)
        records = np.array([float(rows[place][3]) for place in first])
        rounds = NODE_ROUNDS if nodes else SET_ROUNDS
        shares = member_shares(codes, prior if nodes else np.ones(len(codes)), offsets, records, rounds)
        return list(zip(values, shares.tolist(), strict=True))
