"""Validity rules: pairs that a table lacks, and rows that a conjunction forbids."""

from __future__ import annotations

import numpy as np

from duckdb_anon.kernels.slicing.validity_rules import ValidityRule, unseen_pairs
from tests.reference.merging import attribute


def test_unseen_pairs_are_absent_though_expected() -> None:
    sex = attribute("sex", ["F"] * 50 + ["M"] * 50)
    disease = attribute("d", ["flu", "ovary"] * 25 + ["flu"] * 49 + ["rare"])
    (pairs,) = unseen_pairs([sex], disease)
    forbidden = pairs.forbidden[pairs.class_of_code[0]][:, pairs.sensitive_class]
    # columns flu, ovary, rare; a rare value is not expected often enough to be missed among women
    assert forbidden.tolist() == [[False, False, False], [False, True, False]]
    violated = pairs.violated([np.array([0, 1, 1], dtype=np.int32)], np.array([1, 1, 2], dtype=np.int32))
    assert violated.tolist() == [False, True, False]


def test_a_conjunction_forbids_rows_that_satisfy_all_of_its_predicates() -> None:
    both = ValidityRule({0: np.array([0, 1]), 1: np.array([1, 0])}, np.array([0, 1]), np.array([[0, 0], [0, 1]]) > 0)
    codes = [np.array([1, 1, 0, 1], dtype=np.int32), np.array([0, 1, 0, 0], dtype=np.int32)]
    assert both.violated(codes, np.array([1, 1, 1, 0], dtype=np.int32)).tolist() == [True, False, False, False]
