"""Values of a release that were compared with its original's while planning, in one form for who plans and who runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

SHOWN = {
    "value": "{path}",
    "member": "unnest(case when array_length({path}) > 0 then {path} else [null] end)",
    "key": "unnest(case when array_length(map_keys({path})) = 0 then [null] else map_keys({path}) end)",
}
"""SQL of the values in a column of a release, one a row: empty lists and counts show NULL, and no counts nothing."""

DIFFERENT = "select distinct encode(_text) as _shown from (select {shown}::varchar as _text from {release})"
"""SELECT of the different texts, NULL among them; bytes, so that no collation takes two of them for one."""

DIGEST = "md5(nullif(array_to_string(list_sort(list(coalesce(md5(_shown), 'null'))), ''), ''))"
"""SQL of what tells sets of texts apart, over `DIFFERENT`; NULL without any."""


ROWS = "count(*) || ' ' || sum(hash({cell})) || ' ' || bit_xor(hash({cell}))"
"""SQL of what tells the cells of all rows apart, in whatever order they are; takes a tenth of the time for numbers."""

CELLS = "sum(hash({cell}))::varchar"
"""SQL of what tells whether the cells of all rows are still those they were, the least that does; NULL without rows."""


@dataclass(frozen=True)
class SeenValues:
    """The values of an attribute of a release, as they were when it was looked at.

    Attributes:
        attribute: the original's column.
        path: the release's column, and the field in it where the attribute is one of a slice's.
        shown: how they stand there: as values, as members of a list, or as keys of counts.
        by_rows: whether `ROWS` tells them, and not `DIGEST`.
        digest: what tells them.
    """

    attribute: str
    path: tuple[str, ...]
    shown: Literal["value", "member", "key"]
    by_rows: bool = False
    digest: str | None = None

    @property
    def counted(self) -> bool:
        """Whether they are keys of counts."""
        return self.shown == "key"


class Looks(Protocol):
    """Looks at what a release holds of the columns that a query reads, which are named in lower case."""

    @property
    def source(self) -> str:
        """The release, as SQL of a FROM item that `row` finds, without a name of its own."""

    def buckets(self, read: Collection[str]) -> tuple[str, bool]:
        """The column of numbers of buckets that tell their kinds, or '', and whether each row carries all its counts.

        Nothing is looked at where no counts are read.
        """

    def texts(self, read: Collection[str]) -> tuple[SeenValues, ...]:
        """Texts on which what is stated for certain rests; none where nothing will be.

        Raises:
            ColumnError: a text is neither a value of the original nor a node of the attribute's tree.
        """

    def recollated(self, read: Collection[str]) -> frozenset[str]:
        """Columns with a collation that the original's do not have, or the other way round."""

    def numbers(self, read: Collection[str]) -> tuple[SeenValues, ...]:
        """Numbers, moments and truths on which what is stated for certain rests; none where nothing will be.

        Raises:
            ColumnError: the original does not have one of them, or counts in buckets leave rows out.
        """

    def row(self, select: str) -> Sequence[object]:
        """The one row of a SELECT over the release; nothing where the planner cannot read that."""
