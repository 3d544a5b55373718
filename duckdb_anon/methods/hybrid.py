"""Hybrid: sampling, generalization and perturbation together.

Releases a generalized row a sampled record; with probability 1 - q its sensitive value is replaced by a draw
from the sample's own distribution. The constant columns `sampling_rate` and `retention` say rho and q.
Guarantee: groups have at least k rows. A person in both of two such releases is in both unchanged with
probability (rho q)^2; no privacy budget is implied.

A reading of Li, Baig, Sattar, Ding, Liu and Vincent (Information Sciences 367-368, 2016), of which only the
abstract was available: its three ingredients in the order given. It is not the original algorithm.
Cost: O(d n log n).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from duckdb_anon.kernels.partition.privacy_models import KAnonymity
from duckdb_anon.methods.generalized_layout import boxed_groups, layout_of, parameters, record_layout, sampled_rows
from duckdb_anon.model.coded_table import CodeArray, CodedTable
from duckdb_anon.model.function_specs import Cutting, Method, Parameter, Params
from duckdb_anon.model.release_formats import RATE, RETENTION
from duckdb_anon.model.released_columns import ROWS, Cells, Coded, Real, Source

NAME = "hybrid"


def perturbed(codes: CodeArray, retention: float, rng: np.random.Generator) -> CodeArray:
    """Replace each code with probability 1 - retention by a draw from all of them."""
    drawn = codes[rng.integers(0, len(codes), len(codes))]
    return np.where(rng.random(len(codes)) < retention, codes, drawn)


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Sample, generalize, perturb."""
    rows = sampled_rows(NAME, table.rows, params["rho"], rng)
    _, cells = boxed_groups(NAME, table, rows, KAnonymity(params["k"]), params)
    sensitive = table.sensitive[0]
    return {
        **cells,
        sensitive.name: Coded(sensitive.name, perturbed(sensitive.codes[rows], params["q"], rng)),
        RATE.key: Real(np.full(len(rows), params["rho"])),
        RETENTION.key: Real(np.full(len(rows), params["q"])),
        ROWS: Source(rows),
    }


def parts(table: CodedTable, params: Params, repeated: bool) -> Cutting:
    """As groups are cut."""
    return replace(Cutting("cut", KAnonymity(params["k"])), share=params["rho"])


METHOD = Method(
    name=NAME,
    section="From papers, for comparison",
    summary="sampling, generalization and perturbed sensitive values (a reading of the abstract)",
    paper="after Li, Baig, Sattar, Ding, Liu & Vincent (2016), Information Sciences 367-368",
    example="CREATE TABLE mixed AS FROM hybrid('people', 5)",
    smallest="k := 2",
    trials=("k := 1, q := 1.0", "k := 3, q := 0.8", "k := 2, q := 0.0"),
    formats=("boxes", "sampled", "retained"),
    instead=("merging",),
    parameters=parameters(
        Parameter("rho", "share of the records that is released", "number", 0.8, above=0, high=1),
        Parameter("q", "probability of keeping a sensitive value", "number", 0.8, low=0, high=1),
    ),
    layout=layout_of(NAME, partial(record_layout, constants=(RATE.key, RETENTION.key))),
    release=release,
    needs=("qi", "sensitive"),
    parts=parts,
    finished=("classes",),
)
