"""Persons: a row a person and a list of hierarchy nodes for the person's set of values.

A node stands for one value, each leaf below it equally likely, independently of the other nodes. Where the original
has a row a value, a person stands for as many of its rows as the list has nodes.
"""

from __future__ import annotations

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import list_type
from duckdb_anon.model.release_formats.schema import Claims, Shape


def claim(claims: Claims) -> bool:
    """Claim lists of nodes of columns that have a hierarchy."""
    names = [
        name
        for name, kind in claims.unclaimed.items()
        if fold(name) in claims.trees and claims.may_be_original(name) and list_type(kind) is not None
    ]
    for name in names:
        claims.carry(name, "nodes")
        if list_type(claims.original_type(name)) is None:
            claims.bounded = False
    return bool(names)


SHAPE = Shape(
    "persons",
    "has a row a person with a list of nodes",
    claim,
    instead="linkage_risk, attribute_risk, kl_diversity, km_anonymity and fragment_risk tell its risk, sa_ncp and "
    "relative_error its use",
)
