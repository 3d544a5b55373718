"""k_map, delta_presence: a release matched with the individuals of a population, such as a register.

k_map: a release is k-mapped when each record's published quasi-identifiers hold for k individuals or more of a
population that the attacker could link it with (Sweeney 2001; El Emam and Dankar 2008: journalist risk 1/k).
`unmatched` counts released rows that fit no individual in it, for which k is 0. delta_presence: the probability that an
individual's record is in the release: rows of the class over individuals of the population who fit it (Nergiz, Atzori
and Clifton 2007, definition 3), within [`delta_min`, `delta_max`]; it is refused where an individual fits several
classes, or released rows fit fewer individuals than there are rows. The population has one row an individual and should
hold everybody in the release. Values are taken as published: of a method that moves them (muco, rank_swap,
microaggregate, rr_distort) use `linkage_risk` and `membership_risk`. A class is a distinct combination of published
values; NULL equals NULL and what covers everything. Cost: distinct individuals times distinct classes, in blocks; one
sort where all columns are plain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
    """Classes of a release and the persons of a population."""

    rows: IntArray  # released rows of each class
    persons: IntArray  # persons of the population in each class
    classes_of_person: IntArray  # number of classes each person of the population belongs to
    class_of_person: IntArray  # the last of them, -1 for none


def matched(release: ReadTable, population: ReadTable, names: Sequence[str]) -> Matched:
    """Match a population, a row an individual, to the classes of a release of rows or boxes."""
    for table in (release, population):
        require_columns(table, names)
    if not release.rows or not population.rows:
        raise RequirementError("the release or the population is empty; there is nothing to match")
    theirs = [population.columns[name].value_codes().astype(np.int64) for name in names]
    boxes = distinct_boxes(release, names)
    rows = np.bincount(boxes.of_row, minlength=boxes.number)
    if is_plain(release, names):
        ours = [cells.codes.astype(np.int64) for cells in boxes.columns]
        key = keys_of([np.concatenate(pair) for pair in zip(ours, theirs, strict=True)])
        box_of_key = np.full(key.number, -1, dtype=np.int64)
        box_of_key[key.of_row[: boxes.number]] = np.arange(boxes.number)
        box_of_person = box_of_key[key.of_row[boxes.number :]]
        persons = np.bincount(box_of_person[box_of_person >= 0], minlength=boxes.number)
        return Matched(rows, persons, (box_of_person >= 0).astype(np.int64), box_of_person)
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
    found = matched(release, population, names)
    risk = np.divide(1.0, found.persons, out=np.zeros(len(found.persons)), where=found.persons > 0)
    k, unmatched = int(found.persons.min()), int(found.rows[found.persons == 0].sum())
    average = float((risk * found.rows).sum() / release.rows)
    return K_MAP.columns([(k, ", ".join(names), release.rows, population.rows, float(risk.max()), average, unmatched)])


def delta_presence(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row."""
    release, population = tables
    names = [info.name for info in params["roles"].qi]
    found = matched(release, population, names)
    several = int((found.classes_of_person > 1).sum())
    if several:
        raise RequirementError(
            f"{several} of {population.rows} persons fit several classes of the release, so their "
            "chance to be in it does not follow from counts; it reads releases whose classes do not overlap "
            "(membership_risk measures any)"
        )
    short = int((found.rows > found.persons).sum())
    if short:
        raise RequirementError(
            f"{short} classes of the release have more rows than persons of the population fit them; "
            "the population must hold everybody in the release, and the release its true values (membership_risk "
            "measures one whose values were moved)"
        )
    share = found.rows / np.maximum(found.persons, 1)
    chance = np.where(found.class_of_person >= 0, share[found.class_of_person], 0.0)
    ends = float(chance.min()), float(chance.max())
    certain = int((chance == 1).sum()), int((chance == 0).sum())
    return DELTA_PRESENCE.columns([(*ends, ", ".join(names), release.rows, population.rows, *certain)])


_of_population = partial(
    Report, section="Risk", parameters=(), tables=("release", "population"), labelled="population", reads="tables"
)
K_MAP = _of_population(
    name="k_map",
    summary="smallest number of individuals in a population who match a released record, and the risk 1/k",
    paper="Sweeney (2001), section 5; El Emam and Dankar (2008), journalist risk",
    example="FROM k_map('boxes', 'people')",
    instead=("k_anonymity", "linkage_risk"),
    returns=fields(
        "k BIGINT, columns VARCHAR, rows BIGINT, population BIGINT, highest DOUBLE, average DOUBLE, unmatched BIGINT"
    ),
    compute=k_map,
    answers=CLASSES,
)
DELTA_PRESENCE = _of_population(
    name="delta_presence",
    summary="bounds on the probability that an individual of a population is in the release",
    paper="Nergiz, Atzori and Clifton (2007), definition 3",
    example="FROM delta_presence('(FROM people LIMIT 300)', 'people')",
    instead=("linkage_risk",),
    returns=fields(
        "delta_min DOUBLE, delta_max DOUBLE, columns VARCHAR, rows BIGINT, population BIGINT, certainly_in BIGINT, "
        "certainly_out BIGINT"
    ),
    compute=delta_presence,
    answers=("rows", "boxes", "sampled"),
)
