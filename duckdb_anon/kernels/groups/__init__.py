"""Partition kernels: arrays of codes in, group of each row out."""

from duckdb_anon.kernels.groups.assign import assign
from duckdb_anon.kernels.groups.box_cells import BoxLoss, box_loss, boxes
from duckdb_anon.kernels.groups.closeness import TCloseness
from duckdb_anon.kernels.groups.counted_groups import Groups
from duckdb_anon.kernels.groups.marginal import OfColumn, combine
from duckdb_anon.kernels.groups.mondrian import partition
from duckdb_anon.kernels.groups.requirements import (
    All,
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    KAnonymity,
    RecursiveDiversity,
    Requirement,
)
from duckdb_anon.kernels.groups.sse import sse_partition
from duckdb_anon.kernels.groups.whole_persons import PersonShare, whole_persons

__all__ = [
    "All",
    "BoxLoss",
    "DistinctDiversity",
    "EntropyDiversity",
    "FrequencyDiversity",
    "Groups",
    "KAnonymity",
    "OfColumn",
    "PersonShare",
    "RecursiveDiversity",
    "Requirement",
    "TCloseness",
    "assign",
    "box_loss",
    "boxes",
    "combine",
    "partition",
    "sse_partition",
    "whole_persons",
]
