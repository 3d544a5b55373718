"""Texts of a release that were compared with its original's while planning, in one form for who plans and who runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SHOWN = {
    "value": "{path}",
    "member": "unnest(case when array_length({path}) > 0 then {path} else [null] end)",
    "key": "unnest(case when array_length(map_keys({path})) > 0 then map_keys({path}) else [null] end)",
}
"""SQL of the texts in a column of a release, one a row; an empty list and empty counts show NULL."""

DIFFERENT = "select distinct encode(_text) as _shown from (select {shown}::varchar as _text from {release})"
"""SELECT of the different texts, NULL among them; bytes, so that no collation takes two of them for one."""

DIGEST = "md5(nullif(array_to_string(list_sort(list(coalesce(md5(_shown), 'null'))), ''), ''))"
"""SQL of what tells sets of texts apart, over `DIFFERENT`; NULL without any."""


@dataclass(frozen=True)
class SeenTexts:
    """The texts of an attribute of a release, as they were when it was looked at.

    Attributes:
        attribute: the original's column.
        path: the release's column, and the field in it where the attribute is one of a slice's.
        shown: how they stand there: as values, as members of a list, or as keys of counts.
        digest: `DIGEST` of them.
    """

    attribute: str
    path: tuple[str, ...]
    shown: Literal["value", "member", "key"]
    digest: str | None = None
