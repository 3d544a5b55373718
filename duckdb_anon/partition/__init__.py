"""Partition kernels: arrays of codes in, group of each row out."""

from duckdb_anon.partition.assign import assign
from duckdb_anon.partition.box_cells import BoxLoss, box_loss, boxes
from duckdb_anon.partition.closeness import TCloseness
from duckdb_anon.partition.marginal import OfColumn, combine
from duckdb_anon.partition.mondrian import partition
from duckdb_anon.partition.requirements import (
    All,
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    Groups,
    KAnonymity,
    RecursiveDiversity,
    Requirement,
)

__all__ = [
    "All",
    "BoxLoss",
    "DistinctDiversity",
    "EntropyDiversity",
    "FrequencyDiversity",
    "Groups",
    "KAnonymity",
    "OfColumn",
    "RecursiveDiversity",
    "Requirement",
    "TCloseness",
    "assign",
    "box_loss",
    "boxes",
    "combine",
    "partition",
]
