"""delta_presence: how sure an attacker can be that an individual is in a release, or is not.

Measures, over the persons of a public table that holds everybody in the release, the chance that a person's record is
in it given the release: rows of the person's class over persons of the population who fit it (Nergiz, Atzori and
Clifton 2007, definition 3, for classes of which each person fits one). The release has delta presence within
[`delta_min`, `delta_max`]. A person who fits no class has chance 0. Where a person fits several classes the chances do
not follow from counts, and the call is refused; so it is where released rows fit fewer persons than there are rows, for
then the population does not hold everybody, or values were moved (`membership_risk` measures those). Cost: as k_map.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duckdb_anon.measures.risk.k_map import matched
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.function_specs import Params, Report, fields
from duckdb_anon.model.release_table import ReadTable


def delta_presence(tables: Sequence[ReadTable], params: Params, rng: np.random.Generator) -> Mapping[str, Any]:
    """One row."""
    release, population = tables
    names = [info.name for info in params["roles"].qi]
    found = matched("delta_presence", release, population, names)
    several = int((found.classes_of_person > 1).sum())
    if several:
        raise RequirementError(
            f"delta_presence: {several} of {population.rows} persons fit several classes of the release, so their "
            "chance to be in it does not follow from counts; it reads releases whose classes do not overlap "
            "(membership_risk measures any)"
        )
    short = int((found.rows > found.persons).sum())
    if short:
        raise RequirementError(
            f"delta_presence: {short} classes of the release have more rows than persons of the population fit them; "
            "the population must hold everybody in the release, and the release its true values (membership_risk "
            "measures one whose values were moved)"
        )
    share = found.rows / np.maximum(found.persons, 1)
    chance = np.where(found.class_of_person >= 0, share[found.class_of_person], 0.0)
    return {
        "delta_min": [float(chance.min())],
        "delta_max": [float(chance.max())],
        "columns": [", ".join(names)],
        "rows": [release.rows],
        "population": [population.rows],
        "certainly_in": [int((chance == 1).sum())],
        "certainly_out": [int((chance == 0).sum())],
    }


MEASURE = Report(
    name="delta_presence",
    summary="bounds on the probability that an individual of a population is in the release",
    paper="Nergiz, Atzori and Clifton (2007), definition 3",
    example="FROM delta_presence('(FROM people LIMIT 300)', 'people')",
    section="Risk",
    instead=("linkage_risk",),
    parameters=(),
    returns=fields(
        "delta_min DOUBLE, delta_max DOUBLE, columns VARCHAR, rows BIGINT, population BIGINT, certainly_in BIGINT, "
        "certainly_out BIGINT"
    ),
    compute=delta_presence,
    tables=("release", "population"),
    labelled="population",
    reads="tables",
    answers=("rows", "boxes", "sampled"),
)
