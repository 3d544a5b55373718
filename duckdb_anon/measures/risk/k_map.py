"""k_map: the fewest persons of a population who may be behind a released row.

A release is k-mapped when each row's printed quasi-identifiers hold for k persons or more of a population that the
attacker could link it with (Sweeney 2001; El Emam and Dankar 2008: journalist risk 1/k). The population is a table with
one row a person that has the quasi-identifiers, such as a register; it should hold everybody who is in the release:
`unmatched` counts released rows that fit no person in it, for which k is 0. Values are taken as printed: of a method
that moves them (muco, rank_swap, microaggregate, rr_distort) this is not meaningful; use `linkage_risk`. A class is a
distinct combination of printed values; a person belongs to one where each value of the person equals or lies in what is
printed. NULL equals NULL and what covers everything.
Cost: distinct persons times distinct classes, in blocks; one sort where all columns are plain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from duckdb_anon.kernels.row_keys import keys_of
from duckdb_anon.measures.cells import distinct_boxes
from duckdb_anon.measures.released_rows import is_plain, require_columns
from duckdb_anon.model.coded_table import IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.function_specs import Params, Report, fields
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_table import ReadTable

CLASSES = ("rows", "boxes", "buckets", "sampled", "suppressed", "retained")
_BLOCK = 4_000_000


@dataclass(frozen=True)
class Matched:
    """Classes of a release and the persons of a population.

    Attributes:
        rows: released rows of each class.
        persons: persons of the population in each class.
        classes_of_person: number of classes each person of the population belongs to.
        class_of_person: the last of them, -1 for none.
    """

    rows: IntArray
    persons: IntArray
    classes_of_person: IntArray
    class_of_person: IntArray


def matched(function: str, release: ReadTable, population: ReadTable, names: Sequence[str]) -> Matched:
    """Match a population, a row a person, to the classes of a release of rows or boxes.

    Raises:
        ColumnError: the release lacks a column.
        RequirementError: one of the tables is empty.
    """
    for table in (release, population):
        require_columns(function, table, names)
    if not release.rows or not population.rows:
        raise RequirementError(f"{function}: the release or the population is empty; there is nothing to match")
    theirs = [population.columns[name].value_codes().astype(np.int64) for name in names]
    boxes = distinct_boxes(release, names)
    rows = np.bincount(boxes.of_row, minlength=boxes.number)
    if is_plain(release, names):
        ours = [cells.codes.astype(np.int64) for cells in boxes.columns]
        key = keys_of([np.concatenate(pair) for pair in zip(ours, theirs, strict=True)])
        box_of_key = np.full(key.number, -1, dtype=np.int64)
        box_of_key[key.of_row[: boxes.number]] = np.arange(boxes.number)
        mine = box_of_key[key.of_row[boxes.number :]]
        persons = np.bincount(mine[mine >= 0], minlength=boxes.number)
        return Matched(rows, persons, (mine >= 0).astype(np.int64), mine)
    alike = keys_of(theirs)
    many = np.bincount(alike.of_row).astype(np.float64)
    persons_of = np.zeros(boxes.number)
    classes, last = np.zeros(alike.number, dtype=np.int64), np.full(alike.number, -1, dtype=np.int64)
    step = max(1, _BLOCK // boxes.number)
    for at in range(0, alike.number, step):
        tick()
        block = slice(at, at + step)
        covered = boxes.covered([codes[alike.first[block]] for codes in theirs])
        persons_of += many[block] @ covered.astype(np.float32)
        classes[block] = covered.sum(axis=1)
        last[block] = np.where(covered.any(axis=1), covered.argmax(axis=1), -1)
    return Matched(rows, persons_of.astype(np.int64), classes[alike.of_row], last[alike.of_row])


def k_map(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row."""
    release, population = tables
    names = [info.name for info in params["roles"].qi]
    found = matched("k_map", release, population, names)
    risk = np.divide(1.0, found.persons, out=np.zeros(len(found.persons)), where=found.persons > 0)
    return {
        "k": [int(found.persons.min())],
        "columns": [", ".join(names)],
        "rows": [release.rows],
        "population": [population.rows],
        "highest": [float(risk.max())],
        "average": [float((risk * found.rows).sum() / release.rows)],
        "unmatched": [int(found.rows[found.persons == 0].sum())],
    }


MEASURE = Report(
    name="k_map",
    summary="smallest number of individuals in a population who match a released record, and the risk 1/k",
    paper="Sweeney (2001), section 5; El Emam and Dankar (2008), journalist risk",
    example="FROM k_map('boxes', 'people')",
    section="Risk",
    instead=("k_anonymity", "linkage_risk"),
    parameters=(),
    returns=fields(
        "k BIGINT, columns VARCHAR, rows BIGINT, population BIGINT, highest DOUBLE, average DOUBLE, unmatched BIGINT"
    ),
    compute=k_map,
    tables=("release", "population"),
    labelled="population",
    reads="tables",
    answers=CLASSES,
)
