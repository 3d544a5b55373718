"""Promises of slicing, merging and the methods beside them, on random tables."""

from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from duckdb_anon.methods import merging, slicing
from duckdb_anon.model.coded_table import CodedTable
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.release_formats import BUCKET, SOURCE
from duckdb_anon.model.released_columns import ROWS, Struct
from tests.reference.merging import attribute, unseen

DEFAULTS: dict[str, Any] = {
    parameter.name: parameter.default for parameter in (*merging.METHOD.parameters, *slicing.METHOD.parameters)
}


@st.composite
def tables(draw: st.DrawFn) -> CodedTable:
    """A small table with NULLs, ties, an ordered, a nominal and a hierarchical attribute."""
    n = draw(st.integers(4, 40))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    age = [None if v == 7 else int(v) for v in rng.integers(0, 8, n)]
    sex = rng.choice(["f", "m"], n).tolist()
    place = [f"{v}" for v in rng.integers(0, 6, n)]
    tree = [(f"{v}", "west" if v < 3 else "east", "all") for v in range(6)]
    disease = [None if v == 4 else f"d{v}" for v in rng.integers(0, draw(st.integers(2, 6)), n)]
    if draw(st.booleans()):  # tables in which no row contradicts the rule
        disease = [None if s == "m" and d in ("d0", "d1") else d for s, d in zip(sex, disease, strict=True)]
    truths = {
        "rule_0_0": attribute("rule_0_0", [int(s == "m") for s in sex]),
        "rule_0_1": attribute("rule_0_1", [int(d in ("d0", "d1")) for d in disease]),
    }
    qi = (attribute("age", age), attribute("sex", sex), attribute("place", place, "hierarchy", tree))
    return CodedTable(n, qi, (attribute("disease", disease),), other=truths)


COLUMNS = st.sampled_from([[["age", "sex"], ["place"]], [["age"], ["sex"], ["place"]], [["age", "sex", "place"]]])


def _fields(cells: dict[str, Any]) -> dict[str, Any]:
    return {name: field for cell in cells.values() if isinstance(cell, Struct) for name, field in cell.fields.items()}


def _forbidden(table: CodedTable, truths: list[tuple[bool, bool]], params: dict[str, Any]) -> list[Any]:
    """Rules of the call and of unseen pairs: values of quasi-identifiers, and the sensitive values they exclude."""
    truth = table.other["rule_0_1"].codes[table.sensitive[0].first_row]
    named = set(np.flatnonzero(table.other["rule_0_1"].positions[truth] == 1).tolist())
    men = {int(code) for code, (m, _) in zip(table.qi[1].codes, truths, strict=True) if m}
    return [({1: men}, named), *unseen(table, params["min_expected"])]


@given(
    tables(),
    COLUMNS,
    st.fixed_dictionaries(
        {
            "l": st.sampled_from([1.0, 1.5, 2.0, 3.0]), "fake": st.integers(0, 3),
            "min_bucket": st.sampled_from([1, 4, 10]), "min_expected": st.sampled_from([0.2, 0.5, 1.5]),
        }
    ),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_merged_buckets_are_diverse_permutations_and_violate_no_rule(table, columns, chosen, seed):
    rules = [["sex = 'm'", "disease in ('d0', 'd1')"]]
    params = DEFAULTS | {"columns": columns, "rules": rules, "unseen_pairs": True} | chosen
    answers = [table.other[name] for name in ("rule_0_0", "rule_0_1")]
    truths = list(zip(*((a.positions[a.codes] == 1).tolist() for a in answers), strict=True))
    try:
        cells = merging.release(table, params, np.random.default_rng(seed))
    except RequirementError as error:
        if "contradict rules themselves" in str(error):
            assert any(m and d for m, d in truths)
            return
        if "still contradict a rule" in str(error):
            return
        assert "the table as one group fails the requirement" in str(error)
        counts = np.bincount(table.sensitive[0].codes)
        if "'rules'" in str(error):
            # one part of the values that a rule parts is held by too few different ones
            values = set(range(len(counts)))
            sides = [
                side for _, bad in _forbidden(table, truths, params) for side in (values & set(bad), values - set(bad))
            ]
            parts = [counts[sorted(side)] for side in sides]
            assert any(len(p) and (p.max() + params["fake"]) * params["l"] > p.sum() for p in parts)
            return
        enough = table.rows + params["fake"]
        assert (counts.max() + params["fake"]) * params["l"] > table.rows or enough < params["min_bucket"]
        return
    bucket, fields = cells[BUCKET.key].values, _fields(cells)
    n = table.rows + params["fake"]
    assert len(bucket) == n and {len(fields[a.name].codes) for a in (*table.qi, *table.sensitive)} == {n}
    codes = fields["disease"].codes
    for b in np.unique(bucket):
        assert Counter(codes[bucket == b].tolist()).most_common(1)[0][1] * params["l"] <= (bucket == b).sum() + 1e-9
    forbidden = _forbidden(table, truths, params)
    for row in range(n):
        shown = [int(fields[a.name].codes[row]) for a in table.qi]
        for on, bad in forbidden:
            assert not (int(codes[row]) in bad and all(shown[q] in values for q, values in on.items()))


@given(tables(), COLUMNS, st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_without_rules_each_column_of_a_bucket_is_a_permutation_of_its_records(table, columns, fake, seed):
    params = DEFAULTS | {"l": 1.0, "columns": columns, "fake": fake}
    cells = merging.release(table, params, np.random.default_rng(seed))
    bucket, fields = cells[BUCKET.key].values, _fields(cells)
    kept = cells[ROWS].rows  # an honest listing of the bucket's records
    for column in columns:
        attributes = [a for a in table.qi if a.name in column]
        released = Counter(zip(bucket.tolist(), *(fields[a.name].codes.tolist() for a in attributes), strict=True))
        wanted = Counter(zip(bucket.tolist(), *(a.codes[kept].tolist() for a in attributes), strict=True))
        assert released == wanted
    real = cells[SOURCE.key].rows
    assert sorted(real[real >= 0].tolist()) == list(range(table.rows))
    assert (real < 0).sum() == fake
