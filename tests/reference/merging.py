"""Slow, obvious versions of what slicing and merging compute, and the worked example of their paper."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from duckdb_anon.model.coded_table import CodedTable
from tests.reference.linkage import covers
from tests.reference.mondrian import attribute

# Hasan, Jiang, Chen and Wang (2018), Tables 1 and 2: age, sex, zip code, disease.
HOSPITAL_A = [
    (22, "M", 47905, "Gastritis"), (22, "F", 47905, "Ovarian Cancer"), (33, "F", 47901, "Breast Cancer"),
    (52, "M", 47901, "Flu"), (54, "M", 47902, "Dyspepsia"), (60, "F", 47902, "Fever"), (60, "F", 47308, "Cancer"),
    (64, "F", 47308, "Fever"),
]  # fmt: skip
HOSPITAL_B = [
    (22, "M", 47905, "Gastritis"), (22, "M", 47905, "Blood Cancer"), (33, "F", 47907, "Breast Cancer"),
    (58, "M", 47903, "Flu"), (30, "M", 47902, "Dyspepsia"), (60, "F", 47902, "Fever"), (65, "F", 47308, "Flu"),
    (65, "F", 47309, "Cancer"),
]  # fmt: skip
FEMALE_DISEASES = {"Ovarian Cancer", "Breast Cancer"}


def hospital(rows: Sequence[tuple[int, str, int, str]], *, zip_as_tree: bool = False) -> CodedTable:
    """A hospital's table with the rule 'no man has a disease of women' as truth columns."""
    age, sex, code, disease = (list(column) for column in zip(*rows, strict=True))
    every = sorted({str(z) for z in [*code, *(r[2] for r in HOSPITAL_A + HOSPITAL_B)]})
    tree = [(z, f"{z[:4]}*", f"{z[:3]}**", "*") for z in every]
    zips = attribute("zip", [str(z) for z in code], "hierarchy", tree) if zip_as_tree else attribute("zip", code)
    return CodedTable(
        len(rows),
        (zips, attribute("age", age), attribute("sex", sex)),
        (attribute("disease", disease),),
        other={
            "rule_0_0": attribute("rule_0_0", [int(s == "M") for s in sex]),
            "rule_0_1": attribute("rule_0_1", [int(d in FEMALE_DISEASES) for d in disease]),
        },
    )


Forbidden = tuple[dict[int, set[int]], set[int]]
"""A rule: codes of some quasi-identifiers (by place) that must not stand beside some sensitive codes."""


def unseen(table: CodedTable, least: float) -> list[Forbidden]:
    """Pairs that never occur though `least` rows were to be expected."""
    secret = table.sensitive[0].codes.tolist()
    found: list[Forbidden] = []
    for q, column in enumerate(table.qi):
        codes = column.codes.tolist()
        both, own, other = Counter(zip(codes, secret, strict=True)), Counter(codes), Counter(secret)
        pairs = [(c, s) for c in own for s in other if not both[c, s] and own[c] * other[s] / table.rows >= least]
        found += [({q: {c}}, {s}) for c, s in pairs]
    return found


def flattened(
    rows: Sequence[dict[str, Any]], names: Sequence[str]
) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """Rows with the fields of STRUCT columns in their place, and the attributes of each such column."""
    slices: dict[str, list[str]] = {}
    flat = []
    for row in rows:
        out: dict[str, Any] = {}
        for column, cell in row.items():
            if isinstance(cell, dict) and set(cell) <= set(names):
                slices[column] = list(cell)
                out |= cell
            else:
                out[column] = cell
        if out.get("noisy_count", 1) >= 0.5:
            flat.append(out)
    return flat, slices


def linked(
    rows: Sequence[dict[str, Any]],
    person: dict[str, Any],
    qi: Sequence[str],
    sensitive: str,
) -> dict[object, float]:
    """p(t, s) of each sensitive value that a release offers for a person."""
    flat, slices = flattened(rows, [*qi, sensitive])
    if not slices:
        buckets, columns = [[row] for row in flat], [[*qi, sensitive]]
    else:
        numbers = {row["bucket"] for row in flat}
        buckets = [[row for row in flat if row["bucket"] == number] for number in numbers]
        columns = list(slices.values())
    mass: dict[object, float] = {}
    for members in buckets:
        factor = 1.0
        for names in (names for names in columns if sensitive not in names):
            factor *= sum(all(covers(m[n], person[n]) for n in names) for m in members) / len(members)
        partners = [n for names in columns if sensitive in names for n in names if n != sensitive]
        for m in members:
            if not all(covers(m[n], person[n]) for n in partners):
                continue
            values = m[sensitive] if isinstance(m[sensitive], dict) else {m[sensitive]: 1}
            for value, count in values.items():
                share = count / sum(values.values()) * math.floor(m.get("noisy_count", 1) + 0.5)
                mass[value] = mass.get(value, 0.0) + factor * share / len(members)
    total = sum(mass.values())
    return {value: part / total for value, part in mass.items() if part > 0}


def victims(
    one: Sequence[dict[str, Any]],
    other: Sequence[dict[str, Any]],
    persons: Sequence[dict[str, Any]],
    qi: Sequence[str],
    sensitive: str,
) -> tuple[int, int, int]:
    """True matches, all candidates, and persons singled out by the composition attack, person by person."""
    true = total = alone = 0
    for person in persons:
        first, second = (linked(rows, person, qi, sensitive) for rows in (one, other))
        candidates = set(first) & set(second)
        true += person[sensitive] in candidates
        total += len(candidates)
        alone += candidates == {person[sensitive]}
    return true, total, alone
