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

from functools import partial

import numpy as np
import scipy

from duckdb_anon.kernels.cells.table import MeasureCall
from duckdb_anon.measures.released_rows import require_columns
from duckdb_anon.model.coded_table import IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.function_specs import Answer, Report, fields

CLASSES = ("rows", "boxes", "buckets", "sampled", "suppressed", "retained")


def matched(call: MeasureCall) -> tuple[IntArray, scipy.sparse.csr_matrix]:
    """Released rows of each class, and whom of the population it fits, shape (individuals, classes)."""
    population = call.read["population"]
    for table in call.read.values():
        require_columns(table, call.qi)
    if not call.release.rows or not population.rows:
        raise RequirementError("the release or the population is empty; there is nothing to match")
    boxes = call.release.boxes(call.qi)
    fits = boxes.matches([population.columns[name].value_codes() for name in call.qi])
    return np.bincount(boxes.of_row, minlength=boxes.number), fits


_of_population = partial(
    Report, section="Risk", tables=("release", "population"), labelled="population", reads="tables"
)


@_of_population(
    summary="smallest number of individuals in a population who match a released record, and the risk 1/k",
    paper="Sweeney (2001), section 5; El Emam and Dankar (2008), journalist risk",
    example="FROM k_map('boxes', 'people')",
    instead=("k_anonymity", "linkage_risk"),
    returns=fields(
        "k BIGINT, columns VARCHAR, rows BIGINT, population BIGINT, highest DOUBLE, average DOUBLE, unmatched BIGINT"
    ),
    answers=CLASSES,
)
def k_map(call: MeasureCall) -> Answer:
    """One row."""
    rows, fits = matched(call)
    persons = np.asarray(fits.sum(axis=0)).ravel().astype(np.int64)
    risk = np.divide(1.0, persons, out=np.zeros(len(persons)), where=persons > 0)
    average, unmatched = float((risk * rows).sum() / rows.sum()), int(rows[persons == 0].sum())
    return [(int(persons.min()), ", ".join(call.qi), rows.sum(), fits.shape[0], float(risk.max()), average, unmatched)]


@_of_population(
    summary="bounds on the probability that an individual of a population is in the release",
    paper="Nergiz, Atzori and Clifton (2007), definition 3",
    example="FROM delta_presence('(FROM people LIMIT 300)', 'people')",
    instead=("linkage_risk",),
    returns=fields(
        "delta_min DOUBLE, delta_max DOUBLE, columns VARCHAR, rows BIGINT, population BIGINT, certainly_in BIGINT, "
        "certainly_out BIGINT"
    ),
    answers=("rows", "boxes", "sampled"),
)
def delta_presence(call: MeasureCall) -> Answer:
    """One row."""
    rows, fits = matched(call)
    individuals, several = fits.shape[0], int((np.diff(fits.indptr) > 1).sum())
    if several:
        raise RequirementError(
            f"{several} of {individuals} individuals fit several classes of the release, so counts do not give the "
            "probability that they are in it. The classes must not overlap. Use membership_risk for any release"
        )
    persons = np.asarray(fits.sum(axis=0)).ravel()
    short = int((rows > persons).sum())
    if short:
        raise RequirementError(
            f"{short} classes of the release have more rows than individuals of the population fit them. The "
            "population must hold every individual of the release, and the release true values. Use membership_risk "
            "where a method moved the values"
        )
    chance = fits @ (rows / np.maximum(persons, 1))
    certain = int((chance == 1).sum()), int((chance == 0).sum())
    ends = float(chance.min()), float(chance.max())
    return [(*ends, ", ".join(call.qi), rows.sum(), individuals, *certain)]
