"""Partition kernels: arrays of codes in, group of each row out."""

from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.generalize import BoxLoss, box_loss, boxes
from duckdb_anon.kernels.partition.m_invariance import assign
from duckdb_anon.kernels.partition.partition import partition, person_level
from duckdb_anon.kernels.partition.privacy_models import (
    All,
    DistinctDiversity,
    EntropyDiversity,
    FrequencyDiversity,
    KAnonymity,
    OfColumn,
    PersonShare,
    PrivacyModel,
    RecursiveDiversity,
    TCloseness,
    combine,
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
    "PersonShare",
    "PrivacyModel",
    "RecursiveDiversity",
    "TCloseness",
    "assign",
    "box_loss",
    "boxes",
    "combine",
    "partition",
    "person_level",
]
