"""The formats of releases: one table of rules, each of which claims the columns that it understands.

Order matters: columns that describe a release come before values, slices before boxes, boxes before plain values. A new
format is one function and one line of `FORMATS`; queries, and the measures that answer `EVERY` format, then read it.

* rows: values of the original's types (MuCo, rank swapping, microaggregation, and columns that a method leaves alone).
* boxes: STRUCT(lower, upper) is an interval, T[] a set, a text under a hierarchy a node; each attribute is independent
  and uniform inside its cell (Zhang et al. 2007; Xiao and Tao 2006).
* buckets: a MAP from sensitive value to its count in the bucket (Anatomy, Xiao and Tao 2006).
* sliced: one STRUCT column per attribute group, permuted inside its bucket (Li, Li, Zhang and Molloy 2012; Hasan et al.
  2018, whose fake rows are marked nowhere, so that no hard bounds exist).
* persons: one row an individual with a list of hierarchy nodes; each stands for one of the individual's values.
* randomized: column `rr` holds the channel of each column (Guo, Ying and Wu 2011); inverted counts may be negative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import (
    bag_type,
    box_type,
    is_channels,
    is_number,
    list_type,
    slice_fields,
    struct_fields,
)
from duckdb_anon.model.release_formats.schema import Carrier, Cell, Claims, Content, Weight, WeightMeaning

BUCKET = Carrier(
    "bucket",
    lambda kind: not (bag_type(kind) or list_type(kind) or struct_fields(kind)),
    "a bucket number",
    "number of the bucket: inside it, columns are permuted independently",
)
COUNT = Carrier("noisy_count", is_number, "a number of rows", "how many rows this row stands for, with noise")
COUNT_ERROR = Carrier(
    "count_error",
    lambda kind: [name for name, _ in struct_fields(kind)] == ["factor", "power", "per_column"],
    "the error of counts of made records",
    "mean squared error of a count c under conditions on d columns: factor * c ** power * per_column ** d",
)
EDGES = Carrier(
    "sensitive_edges",
    is_number,
    "a number of records",
    "fewest rows, or persons, of the original that carry a sensitive value as released",
)
RATE = Carrier(
    "sampling_rate", is_number, "the probability that a row was released", "chance that an original row was released"
)
SOURCE = Carrier(
    "row_id",
    is_number,
    "a row number of the original",
    "the source row's number; a table that has it must not be published",
)
GROUP = Carrier(
    "moved_within",
    is_number,
    "a group number",
    "group of rows inside which a method moves values; only where a measure runs the method to study it",
)
CHANNELS = Carrier(
    "rr",
    is_channels,
    "the channels of a randomized release",
    "how values were randomized: probability of keeping the true one, and the values drawn from",
)
RETENTION = Carrier(
    "retention", is_number, "the probability that a value is unchanged", "chance that a sensitive value was kept"
)
SUPPRESSED = Carrier("suppressed", is_number, "the number of rows left out", "number of rows that were left out")

BLANK = Carrier(
    "suppressed_cells",
    lambda kind: all(is_number(inner) for _, inner in struct_fields(kind)) and bool(struct_fields(kind)),
    "the numbers of suppressed cells",
    "for each column, how many of its NULLs are suppressed cells",
)


@dataclass(frozen=True, eq=False)
class Format:
    """One format of releases."""

    name: str  # its name
    description: str  # what such a release has, for messages
    claim: Callable[[Claims], bool]  # claims the columns it understands; true when the release has this format
    carriers: tuple[Carrier, ...] = ()  # columns it may have that are not the original's
    names: bool = True  # whether a release goes by this name; otherwise it only adds to another format
    # what answers on such a release where a measure does not
    instead: str = "relative_error and workload_error answer queries on it"


def _linked(claims: Claims) -> bool:
    """Row numbers change nothing of what other columns mean, so no measure needs to answer them."""
    claims.contents.source = claims.take(SOURCE) or ""
    claims.contents.group = claims.take(GROUP) or ""
    return False


def _coarsened(claims: Claims) -> bool:
    """Coarser sensitive values are read as they stand."""
    claims.contents.edges = claims.take(EDGES) or ""
    return False


def _made(claims: Claims) -> bool:
    """Made records show values, of columns with a hierarchy leaves."""
    claims.contents.count_error = claims.take(COUNT_ERROR) or ""
    if claims.contents.count_error:
        claims.contents.bounded = False
        for name in [name for name in claims.unclaimed if claims.may_be_original(name)]:
            claims.carry(name, "value")
    return False


def _weighted(claims: Claims, carrier: Carrier, meaning: WeightMeaning) -> bool:
    found = claims.take(carrier)
    if found is None:
        return False
    claims.contents.weights += (Weight(found, meaning),)
    claims.contents.complete = False
    return True


def _counts(claims: Claims) -> bool:
    """Noisy counts may be negative; summed as they are, they keep sums unbiased."""
    found = _weighted(claims, COUNT, "rows")
    claims.contents.bounded = claims.contents.bounded and not found
    return found


def _randomized(claims: Claims) -> bool:
    """The channels and the columns they name."""
    found = claims.find(CHANNELS)
    if found is None:
        return False
    claims.contents.channels = found
    named = {fold(field) for field, _ in struct_fields(claims.unclaimed.pop(found))}
    for name in [n for n in claims.unclaimed if fold(n) in named and claims.may_be_original(n)]:
        claims.carry(name, "value", "randomized")
    claims.contents.bounded = False
    return True


def _retained(claims: Claims) -> bool:
    """The probability of retention and the sensitive columns; other values were drawn from the released ones."""
    found = claims.take(RETENTION)
    if found is None:
        return False
    claims.contents.retention = found
    for name in [n for n in claims.unclaimed if fold(n) in claims.sensitive]:
        claims.carry(name, "value", "replaced")
    return True


def _blank(claims: Claims) -> bool:
    """Columns with suppressed cells: other values are the rows' own, so that every measure of rows reads them."""
    found = claims.find(BLANK)
    if found is not None:
        claims.contents.blank, claims.contents.bounded = found, False
        named = {fold(name) for name, _ in struct_fields(claims.unclaimed.pop(found))}
        for name in [n for n in claims.unclaimed if fold(n) in named and claims.may_be_original(n)]:
            claims.carry(name, "value", "suppressed")
    return False


def _sliced(claims: Claims) -> bool:
    """The bucket and the STRUCT columns made of the original's columns."""
    if claims.find(BUCKET) is None:
        return False
    slices: dict[str, tuple[tuple[str, str], ...]] = {}
    taken: set[str] = set()  # slices partition the attributes
    for name, kind in claims.unclaimed.items():
        fields = _fields_of_slice(claims, name, kind)
        names = {fold(field) for field, _ in fields}
        if fields and not names & taken:
            slices[name] = fields
            taken |= names
    if not slices:
        return False
    for name, fields in slices.items():
        for field, kind in fields:
            cell, original = cell_of(claims, field, kind), claims.original_type(field)
            claims.contents.columns[fold(field)] = Content(fold(field), name, field, kind, cell, "permuted", original)
        del claims.unclaimed[name]
    claims.contents.bucket = claims.take(BUCKET) or ""
    claims.contents.bounded = False
    return True


def _fields_of_slice(claims: Claims, name: str, kind: str) -> tuple[tuple[str, str], ...]:
    """Fields of a slice; none for any other column, and none where a field is also a column."""
    fields = struct_fields(kind) if claims.original is not None else slice_fields(kind)
    names = {fold(field) for field, _ in fields}
    if names & {fold(column) for column in claims.release if column != name}:
        return ()
    if claims.original is None:
        return fields if not claims.labelled or names & set(claims.labelled) else ()
    unchanged = claims.original_type(name) == kind or not all(claims.may_be_original(field) for field in names)
    return () if unchanged else fields


def _buckets(claims: Claims) -> bool:
    """The counts of buckets and, where there is one, their number."""
    names = [
        name
        for name, kind in claims.unclaimed.items()
        if bag_type(kind) is not None and claims.may_be_form(name) and not bag_type(claims.original_type(name))
    ]
    for name in names:
        claims.carry(name, "counts", "permuted")
    if names:
        claims.contents.bucket = claims.take(BUCKET) or claims.contents.bucket
    return bool(names)


def _persons(claims: Claims) -> bool:
    """Lists of nodes of columns that have a hierarchy."""
    names = [
        name
        for name, kind in claims.unclaimed.items()
        if fold(name) in claims.trees and claims.may_be_original(name) and list_type(kind) is not None
    ]
    for name in names:
        claims.carry(name, "nodes")
        if list_type(claims.original_type(name)) is None:
            claims.contents.bounded = False
    return bool(names)


def _boxes(claims: Claims) -> bool:
    """Intervals, sets and hierarchy nodes."""
    found = False
    for name, kind in list(claims.unclaimed.items()):
        cell = cell_of(claims, name, kind) if claims.may_be_form(name) else "value"
        if cell in ("interval", "set", "node"):
            claims.carry(name, cell)
            found = True
    return found


def _rows(claims: Claims) -> bool:
    """Every column that the original has under the same name."""
    for name, kind in list(claims.unclaimed.items()):
        if claims.may_be_original(name):
            claims.carry(name, "items" if cell_of(claims, name, kind) == "items" else "value")
    return True


def cell_of(claims: Claims, name: str, kind: str) -> Cell:
    """How a cell of a column, or of a field of a slice, is to be read."""
    original, folded = claims.original_type(name), fold(name)
    if box_type(kind) is not None and box_type(original) is None:
        return "interval"
    if list_type(kind) is not None and list_type(original) is None:
        # a set of sensitive items holds all the values of an individual, not the values that one may have
        return "items" if folded in claims.sensitive else "set"
    # labels and values have one type: a text column with a hierarchy is read as labels
    if folded in claims.trees and kind.upper() == "VARCHAR":
        return "node"
    return "value"


FORMATS: tuple[Format, ...] = (
    Format("linked", "has the row numbers of its original", _linked, (SOURCE, GROUP), names=False),
    Format("edged", "has coarser sensitive values", _coarsened, (EDGES,), names=False),
    Format("made", "has made records", _made, (COUNT_ERROR,), names=False),
    # every released row stands for 1 / rate original rows (Horvitz and Thompson 1952)
    Format("sampled", "is a sample", partial(_weighted, carrier=RATE, meaning="rate"), (RATE,), names=False),
    # suppressed rows are taken to be like released ones: each of n stands for 1 + suppressed / n
    Format(
        "suppressed",
        "left rows out",
        partial(_weighted, carrier=SUPPRESSED, meaning="missing"),
        (SUPPRESSED,),
        names=False,
    ),
    Format(
        "randomized",
        "is randomized, each value its own only with some probability",
        _randomized,
        (CHANNELS,),
        instead="rr_risk measures its risk; rr_reconstruct, correlation and relative_error estimate from it",
    ),
    Format(
        "counts",
        "has noisy counts, one row per combination of values",
        _counts,
        (COUNT,),
        instead="relative_error answers queries on it; the epsilon it was made with bounds its risk",
    ),
    Format("retained", "has a share of its sensitive values replaced", _retained, (RETENTION,), names=False),
    Format("blank", "has suppressed cells", _blank, (BLANK,), names=False),
    Format(
        "sliced",
        "has columns permuted independently inside buckets",
        _sliced,
        (BUCKET,),
        instead="slicing_diversity and disclosure measure its risk; relative_error answers queries on it",
    ),
    Format("buckets", "has sensitive values as counts of buckets", _buckets, (BUCKET,)),
    Format(
        "persons",
        "has one row per individual with a list of nodes",
        _persons,
        instead="linkage_risk, attribute_risk, kl_diversity, km_anonymity and fragment_risk measure its risk; sa_ncp "
        "and relative_error its utility",
    ),
    Format("boxes", "has generalized cells", _boxes),
    Format("rows", "has plain rows", _rows),
)
