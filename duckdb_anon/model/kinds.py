"""What the comment of a bucket's number says of the kinds of buckets there are.

Buckets of one kind hold the same counts of sensitive values. Their numbers say which kind: the low bits, those of
`BELOW - 1`, are the number of the kind, from 1 on, and the rest is the bucket's place among those of its kind, from 0
on. So `bucket & 4095` is the kind, the first bucket of each kind has a number below 4096, and a number says nothing
that the counts beside it do not say too. Buckets of too many kinds are numbered from 1 on, and their comment says
nothing.

    anon: kinds of buckets are bucket & 4095: 1000000 rows, numbers adding up to 976371882496

The number of rows and the sum tell whether it is still the table that the comment was written for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

BELOW = 4096
"""A power of two above all numbers of kinds: their bits are found by `&`, several times faster than a remainder."""
LEAST_BUCKETS = 2
"""Buckets there are for each kind, at least; with fewer, hardly anything is gained."""
_KINDS = re.compile(r"\banon:\s*kinds of buckets are .* & (\d+): (\d+) rows, numbers adding up to (\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Kinds:
    """What such a comment says.

    Attributes:
        rows: number of rows of the release.
        total: sum of the numbers of their buckets.
    """

    rows: int
    total: int

    def comment(self, bucket: str) -> str:
        """The comment of the column with the numbers.

        Args:
            bucket: its name, as SQL writes it.

        >>> Kinds(8, 16400).comment("bucket")
        'anon: kinds of buckets are bucket & 4095: 8 rows, numbers adding up to 16400'
        """
        return f"anon: kinds of buckets are {bucket} & {BELOW - 1}: {self.rows} rows, numbers adding up to {self.total}"


def read_kinds(comment: str | None) -> Kinds | None:
    """Read the comment of a column; None where it says nothing of kinds, or of kinds that are numbered otherwise.

    >>> read_kinds('anon: kinds of buckets are "_bucket" & 4095: 8 rows, numbers adding up to 16400')
    Kinds(rows=8, total=16400)
    >>> read_kinds("anon: kinds of buckets are bucket & 7: 8 rows, numbers adding up to 1") is None
    True
    """
    found = _KINDS.search(comment or "")
    if found is None or int(found.group(1)) != BELOW - 1:
        return None
    return Kinds(int(found.group(2)), int(found.group(3)))
