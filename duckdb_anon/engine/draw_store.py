"""Plausible tables that were drawn, kept so that the next query on the same release does not draw them again.

A key is made of the database, the planned call and a hash of the rows and hierarchies it read, so a release that has
changed is drawn anew, in a transaction too. The oldest tables go where all together are larger than `_MOST_BYTES`.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

from duckdb_anon.model.coded_table import CodeArray, IntArray

_MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class DrawnTables:
    """Plausible tables, one after another.

    Attributes:
        rows: the released row that each row has its exact values from, shape (rows,).
        draw: number of the table of each row from 1, shape (rows,).
        places: by column, place of each value among the texts.
        texts: by column, the different values.
    """

    rows: IntArray
    draw: IntArray
    places: dict[str, CodeArray]
    texts: dict[str, list[str | None]]

    @property
    def size(self) -> int:
        """Bytes of the arrays, about."""
        listed = sum(64 * len(texts) for texts in self.texts.values())
        return self.rows.nbytes + self.draw.nbytes + sum(array.nbytes for array in self.places.values()) + listed


_tables: OrderedDict[tuple[object, ...], DrawnTables] = OrderedDict()
_lock = threading.Lock()


def find(key: tuple[object, ...]) -> DrawnTables | None:
    """The tables of a key, if they are kept."""
    with _lock:
        found = _tables.get(key)
        if found is not None:
            _tables.move_to_end(key)
        return found


def keep(key: tuple[object, ...], tables: DrawnTables) -> None:
    """Keep tables; the least recently used go where all together are too large."""
    with _lock:
        _tables[key] = tables
        _tables.move_to_end(key)
        while len(_tables) > 1 and sum(each.size for each in _tables.values()) > _MOST_BYTES:
            _tables.popitem(last=False)


def forget(instance: int) -> None:
    """Drop the tables of a database that nothing is connected to any more."""
    with _lock:
        for key in [key for key in _tables if key[0] == instance]:
            del _tables[key]
