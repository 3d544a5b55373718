"""Synthetic records under differential privacy: new rows in the original's types, made from noisy counts alone.

No released row belongs to an individual. Counts of single columns, and of the pairs and triples of columns that promise
most, are taken with noise; records are drawn and values exchanged between them until they fit. Guarantee:
(epsilon, delta)-differential privacy for tables that differ by one individual more or less, whose records are bounded
by `per_person` where there is a person column. The number of rows is noisy as well. Public are columns, types, `bounds`
and leaves of hierarchies; other names appear if their noisy count exceeds a threshold, and other ranges are found by
noisy counts, both paid from epsilon and delta. Refusals (an empty table, a value outside its hierarchy) are not
covered. Noise is OpenDP's discrete Gaussian (extra `dp`); `seed` imitates it for tests and protects nothing.

Four hundredths of the budget pay for noisy counts that no record is fitted to. What they say of the error of counts
stands in the column `count_error`, the same in every row, and `estimate` gives counts intervals of confidence 0.9.
They held .91 to .98 of the true counts on three tables; widths of sums, means and shares held .82 to 1.0, so these have
none.

Source: McKenna, Miklau and Sheldon (2021), arXiv 2108.04978; AIM: McKenna et al. (2022). Departures: records come from
exchanges in place of a graphical model; candidates are scored at once; numbers are cut on an adaptive grid. Cost: a
pass over the records for each pair and triple of columns, and some ten passes of exchanges.
"""

from __future__ import annotations

import dataclasses
from math import ceil, floor

import numpy as np

from duckdb_anon.kernels.differential_privacy.count_errors import CountError, count_error
from duckdb_anon.kernels.differential_privacy.mechanisms import Ledger, Mechanisms
from duckdb_anon.kernels.differential_privacy.noisy_histograms import (
    Names,
    NoisyCounts,
    Numbers,
    drawn,
    of_names,
    of_numbers,
    rho_of,
)
from duckdb_anon.kernels.differential_privacy.synthesis import records_like
from duckdb_anon.kernels.partition.sort_count import rank_in_run
from duckdb_anon.kernels.rng_streams import spawn_generators
from duckdb_anon.methods import diffgen
from duckdb_anon.model.coded_table import Attribute, CodedTable, IntArray
from duckdb_anon.model.errors import ColumnError, ParameterError, listed
from duckdb_anon.model.function_specs import REQUIRED, ColumnPlan, Method, Parameter, Params, Roles
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.progress import say
from duckdb_anon.model.release_formats import COUNT_ERROR
from duckdb_anon.model.released_columns import ROWS, Cells, Coded, Real, Source, Struct, Value

NAME = "dp_synthesize"
_OF_SIZE, _OF_COLUMNS, _OF_ERROR, _OF_TABLES = (
    0.02,
    0.1,
    0.04,
    0.84 - 1e-9,
)  # shares of rho; the last leaves room for rounding


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Ask for noisy counts and make records of them."""
    each = params["per_person"] if table.person is not None else 1
    attributes = (*table.qi, *table.sensitive)
    bounding, making = spawn_generators(rng, 2)  # how many draws the first one makes depends on the table
    counted = _bounded_rows(table, each, bounding)
    columns = [_column(attribute, counted, params) for attribute in attributes]
    found = sum(isinstance(column, Names) and column.found for column in columns)
    # half of delta is for names found in the table, where there are some
    rho = rho_of(params["epsilon"], params["delta"] / (2 if found else 1))
    ledger = Ledger(rho)
    asked = NoisyCounts(ledger, each, Mechanisms(NAME, bounding if params.get("seed") is not None else None))
    say("columns")
    size = float(max(1, asked.ask(np.array([len(counted)]), _OF_SIZE * rho)[0][0]))
    of_column = _OF_COLUMNS * rho / len(columns)
    histograms = [
        of_numbers(column, asked, of_column, size)
        if isinstance(column, Numbers)
        else of_names(column, asked, of_column, size, params["delta"] / 2 / max(1, found))
        for column in columns
    ]
    made = records_like(histograms, asked, _OF_TABLES * rho, size, making)
    error = count_error(histograms, made, asked, _OF_ERROR * rho, making)
    ledger.check(NAME)
    rows = len(made[0])
    released: dict[str, Cells] = {ROWS: Source(np.full(rows, -1, dtype=np.int64))}
    released[COUNT_ERROR.key] = Struct({name: Real(np.full(rows, value)) for name, value in vars(error).items()})
    for attribute, column, histogram, cells in zip(attributes, columns, histograms, made, strict=True):
        if isinstance(column, Names):
            released[attribute.name] = Coded(attribute.name, _code_of_cell(attribute)[cells].astype(np.int32))
        else:
            numbers = drawn(histogram, cells, making, whole=column.whole)
            known = ~np.isnan(numbers)
            place = np.where(known, np.cumsum(known) - 1, -1)
            released[attribute.name] = Value(attribute.name, numbers[known], place)
    return released


def _bounded_rows(table: CodedTable, each: int, rng: np.random.Generator) -> IntArray:
    """Rows that are counted: of an individual with more than `each`, so many at random."""
    if table.person is None:
        return np.arange(table.rows)
    person, order = table.person.codes, rng.permutation(table.rows)
    order = order[np.argsort(person[order], kind="stable")]
    return np.sort(order[rank_in_run(person[order]) < each])


def _column(attribute: Attribute, rows: IntArray, params: Params) -> Names | Numbers:
    codes = attribute.codes[rows]
    if attribute.kind != "ordered":
        code_of_cell = _code_of_cell(attribute)
        cell_of_code = np.full(attribute.domain + len(attribute.declared), len(code_of_cell) - 1)
        cell_of_code[code_of_cell[:-1]] = np.arange(len(code_of_cell) - 1)
        tree = attribute.hierarchy is not None
        return Names(cell_of_code[codes], len(code_of_cell), ordered=tree, found=not tree)
    scale = attribute.scale_for(NAME)
    if scale.origin:
        raise ColumnError(f"{NAME}: the values of '{attribute.name}' need more than 63 bits. Release it as DOUBLE")
    ends = {fold(name): ends for name, ends in (params["bounds"] or {}).items()}.get(fold(attribute.name))
    whole = scale.line != "real"
    if ends is not None:
        low, high = (float(end) / scale.step for end in ends)
        ends = (float(ceil(low)), float(floor(high))) if whole else (low, high)
        if ends[0] > ends[1]:
            raise ParameterError(f"{NAME}: there is no value within the bounds of '{attribute.name}'")
    # what is not finite is released as NULL
    numbers = np.append(scale.numbers.astype(np.float64), np.nan)
    return Numbers(numbers[np.minimum(codes, len(numbers) - 1)], ends, whole)


def _code_of_cell(attribute: Attribute) -> IntArray:
    """Code of each cell, that of NULL, the last one, as -1: values that occur, or all leaves from left to right."""
    if attribute.hierarchy is None:
        return np.append(np.arange(attribute.domain - (attribute.null_code >= 0)), -1)
    tree, leaf_of_code = attribute.tree()
    # a leaf that no row has is coded from the domain on
    unseen = {label: attribute.domain + k for k, label in enumerate(attribute.declared)}
    code_of_leaf = dict(zip(leaf_of_code.tolist(), range(attribute.domain), strict=True))
    leaves = tree.leaf_labels[: tree.leaves - (attribute.null_code >= 0)]
    return np.array([*(code_of_leaf.get(k, unseen.get(label)) for k, label in enumerate(leaves)), -1], dtype=np.int64)


def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """Every column keeps its type; insensitive columns belong to rows of the original and are refused."""
    infos = roles.qi + roles.sensitive
    unseen = [info.name for info in infos if not info.kind]
    if unseen:
        raise ColumnError(
            f"{NAME}: the types of {listed(unseen)} are not visible while the call is planned. Commit the table first"
        )
    if roles.keep:
        raise ColumnError(
            f"{NAME}: {listed(info.name for info in roles.keep)} belong to rows of the original. Say keep := [] to "
            "leave them out, or name them in qi"
        )
    diffgen.check_bounds(NAME, infos, params["bounds"])
    if roles.person is None and params["per_person"] != 1:
        raise ParameterError(
            f"{NAME}: per_person bounds the records of an individual. Name the column in person := ..."
        )
    columns = [
        ColumnPlan(info.name, Value)
        if info.kind == "ordered"
        else ColumnPlan(info.name, Coded, declared_type=info.type if info.kind == "hierarchy" else "")
        for info in infos
    ]
    fields = tuple(ColumnPlan(field.name, Real) for field in dataclasses.fields(CountError))
    return (*columns, ColumnPlan(COUNT_ERROR.key, Struct, fields=fields))


METHOD = Method(
    name=NAME,
    summary="differentially private synthetic rows, made from noisy counts; release has the original's types",
    paper="McKenna, Miklau & Sheldon (2021), Winning the NIST contest; AIM (2022)",
    example="CREATE TABLE synthetic AS FROM dp_synthesize('people', 3.0, keep := [])",
    smallest="epsilon := 5.0",
    trials=("epsilon := 0.1", "epsilon := 50.0, delta := 0.001"),
    formats=("rows",),
    unit="person",
    differentially_private=True,
    extra="dp",
    parameters=(
        Parameter(
            "epsilon", "privacy budget, for tables that differ by one record (individual, where there is a person "
            "column)", "number", REQUIRED, above=0,
        ),
        Parameter(
            "delta", "probability that epsilon does not hold; well below 1 in the number of individuals", "number",
            1e-6, above=0, high=0.1,
        ),
        Parameter(
            "per_person", "maximum number of records of an individual that are counted, others are left out at random; "
            "needs a person column", "integer", 1, low=1,
        ),
        diffgen.BOUNDS,
    ),
    layout=layout,
    release=release,
    refine=diffgen.refine,
)  # fmt: skip
