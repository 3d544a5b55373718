"""Boxes: generalized cells, each attribute independent and uniform inside its own.

STRUCT(lower T, upper T) is an interval of an ordered attribute, T[] a set of nominal values, a label of the
attribute's hierarchy all leaves below that node (uniform overlap: Zhang et al. 2007; Xiao and Tao 2006). The type
does not tell a label from a value: a text column with a hierarchy is read as labels, of which leaves are some.
"""

from __future__ import annotations

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import box_type, list_type
from duckdb_anon.model.release_formats.schema import Cell, Claims, Shape


def claim(claims: Claims) -> bool:
    """Claim intervals, sets and hierarchy nodes."""
    found = False
    for name, kind in list(claims.unclaimed.items()):
        cell = cell_of(claims, name, kind) if claims.may_be_form(name) else "value"
        if cell in ("interval", "set", "node"):
            claims.carry(name, cell)
            found = True
    return found


def cell_of(claims: Claims, name: str, kind: str) -> Cell:
    """How a cell of a column, or of a field of a slice, is to be read.

    Args:
        claims: the release half read.
        name: column or field.
        kind: its DuckDB type.
    """
    own, folded = claims.original_type(name), fold(name)
    if box_type(kind) is not None and box_type(own) is None:
        return "interval"
    if list_type(kind) is not None and list_type(own) is None:
        # a set of sensitive items is what a person has, all of them, not what one value may be
        return "items" if folded in claims.sensitive else "set"
    if folded in claims.trees and kind.upper() == "VARCHAR":
        return "node"
    return "value"


SHAPE = Shape("boxes", "has generalized cells", claim)
