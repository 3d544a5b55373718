"""k_map: the fewest persons of a population who may be behind a released row.

A release is k-mapped when each row's printed quasi-identifiers hold for k persons or more of a population that the
attacker could link it with (Sweeney 2001; El Emam and Dankar 2008: journalist risk 1/k). The population is a table with
one row a person that has the quasi-identifiers, such as a register; it should hold everybody who is in the release:
`unmatched` counts released rows that fit nobody in it, for which k is 0. Values are taken as printed: of a method that
moves them (muco, rank_swap, microaggregate, rr_distort) this says nothing, and `linkage_risk` does.
Cost: distinct persons times distinct classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duckdb_anon.measures.risk.population import matched
from duckdb_anon.model.function_specs import Params, Report
from duckdb_anon.model.release_table import ReadTable

CLASSES = ("rows", "boxes", "buckets", "sampled", "suppressed", "retained")


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
    returns={
        "k": "BIGINT",
        "columns": "VARCHAR",
        "rows": "BIGINT",
        "population": "BIGINT",
        "highest": "DOUBLE",
        "average": "DOUBLE",
        "unmatched": "BIGINT",
    },
    compute=k_map,
    tables=("release", "population"),
    labelled="population",
    reads="tables",
    answers=CLASSES,
)
