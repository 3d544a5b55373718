"""Texts of a release that were compared with its original's while planning, in one form for who plans and who runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SHOWN = {"value": "{path}", "member": "unnest({path})", "key": "unnest(map_keys({path}))"}
"""SQL of the texts in a column of a release, one a row."""

DIGEST = "md5(array_to_string(list_sort(list(md5(_shown))), ''))"
"""SQL of what tells sets of texts apart, over the set as a column `_shown`; NULL without any."""


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
