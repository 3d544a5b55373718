"""Incognito: every value of an attribute is generalized to the same level; the levels are those of least loss.

Releases an interval, a set of values or a hierarchy node on every quasi-identifier; sensitive and insensitive columns
unchanged. Guarantee: every equivalence class satisfies k-anonymity, l-diversity (by default entropy) and t-closeness as
required, checked again on the finished release. Up to the share `max_suppression` of the rows, those in classes that
fail, may be suppressed; every released row then carries their number in the column `suppressed`. With a person column
all of them count persons; l also requires l persons, and diversity of the rows; no person has more than 1/k (1/l) of
the rows of a class. A value is generalized alike in every row, so a person's sex is the same in all of their rows.

Paper: LeFevre, DeWitt and Ramakrishnan (2005), Incognito: efficient full-domain k-anonymity; entropy l-diversity as in
Machanavajjhala et al. (2006). Departures: DuckDB counts the table once, all other counts are rolled up from that; of
all valid level vectors the one with the least normalized certainty penalty (Xu et al. 2006) is taken, see
`kernels/lattice_search.py`. Cost: exponential in the attributes at worst; the number of level vectors is known before
the search, and bounded by `max_nodes`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from duckdb_anon.kernels.lattice_search import (
    FrequencySet,
    GeneralizationLevels,
    generalization_levels,
    least_loss_node,
    number_of_nodes,
)
from duckdb_anon.kernels.partition.equivalence_classes import Groups
from duckdb_anon.kernels.partition.interval_rounding import with_edges
from duckdb_anon.kernels.partition.privacy_models import PrivacyModel, require_table
from duckdb_anon.kernels.verify_release import classes_of, recheck
from duckdb_anon.methods.generalized_layout import box_plans
from duckdb_anon.methods.partition_params import EDGES, GUARANTEE_TRIALS
from duckdb_anon.methods.privacy_spec import parameters_of_guarantee, refine, required_model
from duckdb_anon.model import progress
from duckdb_anon.model.coded_table import CodeArray, CodedTable, IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.function_specs import ColumnPlan, Method, Parameter, Params, Roles, Sweep
from duckdb_anon.model.release_formats import SUPPRESSED
from duckdb_anon.model.released_columns import ROWS, Cells, Coded, Interval, Node, Source, ValueSet, Whole

NAME = "incognito"


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Generalize to the valid levels of least loss."""
    person = table.repeated_person
    requirement, sensitive = required_model(NAME, table, params, persons=person is not None)
    attributes = [generalization_levels(a, params["branching"]) for a in table.qi]
    _check_nodes(attributes, params["max_nodes"])
    counted = FrequencySet.of_table(attributes, sensitive, person)
    require_table(NAME, requirement, counted.groups(np.zeros(len(counted.rows), dtype=np.int64)))
    allowed = int(params["max_suppression"] * table.rows)
    node = least_loss_node(counted, requirement, allowed)
    if node is None:
        raise TypeError("the full table satisfies the requirement, and no node does")
    published = {levels.attribute.name: levels.cells(level) for levels, level in zip(attributes, node, strict=True)}
    published = with_edges(table, published, params, person)
    kept_rows = np.arange(table.rows, dtype=np.int64)
    if allowed:
        kept_rows = _kept_rows(classes_of(list(published.values())), sensitive, requirement, person)
        if table.rows - len(kept_rows) > allowed:
            raise RequirementError(f"{NAME}: {table.rows - len(kept_rows)} rows would be suppressed, {allowed} may be")
        published = {name: _rows_of(cells, kept_rows) for name, cells in published.items()}
    recheck(NAME, list(published.values()), sensitive, kept_rows, requirement, person)
    published |= {a.name: Coded(a.name, a.codes[kept_rows]) for a in table.sensitive}
    if params["max_suppression"] > 0:
        published[SUPPRESSED.key] = Whole(np.full(len(kept_rows), table.rows - len(kept_rows), dtype=np.int64))
    return {**published, ROWS: Source(kept_rows)}


def _check_nodes(attributes: list[GeneralizationLevels], most: int) -> None:
    """Report how many level vectors the search may check, or refuse it."""
    nodes = number_of_nodes(attributes)
    progress.say(f"levels, at most {nodes:,} to check")
    if nodes > most:
        high = max(attributes, key=lambda levels: levels.height)
        raise RequirementError(
            f"{NAME}: {len(attributes)} quasi-identifiers have {nodes:,} level vectors, more than max_nodes := "
            f"{most:,}. Name fewer columns in qi, give '{high.attribute.name}' ({high.height + 1} levels) fewer levels "
            "by a larger branching or a flatter hierarchy, or raise max_nodes. The cost of mondrian does not grow with "
            "the levels"
        )


def _kept_rows(
    class_of_row: IntArray, sensitive: CodeArray | None, requirement: PrivacyModel, person: CodeArray | None
) -> IntArray:
    """Rows whose class satisfies the requirement."""
    full_table = Groups(np.zeros(len(class_of_row), dtype=np.int64), sensitive, person=person)
    satisfied = requirement.holds(Groups(class_of_row, sensitive, full_table.table_counts, person))
    return np.flatnonzero(satisfied[class_of_row]).astype(np.int64)


def _rows_of(cells: Cells, rows: IntArray) -> Cells:
    """The same cells for some of the rows."""
    if not isinstance(cells, (Interval, Node, ValueSet)):
        raise TypeError(f"{type(cells).__name__} cells have no levels")
    return type(cells)(**{**vars(cells), "index": cells.index[rows]})


def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """Boxes of a level an attribute, sensitive columns, the number of suppressed rows, insensitive columns."""
    suppressed = (ColumnPlan(SUPPRESSED.key, Whole),) if params["max_suppression"] > 0 else ()
    return (
        *box_plans(NAME, roles.qi),
        *(ColumnPlan(info.name, Coded) for info in roles.sensitive),
        *suppressed,
        *(ColumnPlan(info.name, Source) for info in roles.keep),
    )


METHOD = Method(
    name=NAME,
    summary="k-anonymity, l-diversity, t-closeness by global recoding: each attribute at one level, with "
"the least loss",
    paper="LeFevre, K., DeWitt, D. J., Ramakrishnan, R. (2005), Incognito: efficient full-domain k-anonymity",
    example="CREATE TABLE levels AS FROM incognito('people', 5, l := 2)",
    smallest="k := 2, l := 1",
    trials=(
        *GUARANTEE_TRIALS,
        "t := 0.3, distance := 'equal'",
        "k := 3, max_suppression := 0.2",
        "k := 2, l := 2, max_suppression := 0.2",
        "k := 2, branching := 2",
    ),
    formats=("boxes", "suppressed"),
    parameters=(
        *parameters_of_guarantee("entropy"),
        Parameter(
            "max_suppression",
            "maximum share of records that may be suppressed, in [0, 1)",
            "number",
            0.0,
            low=0,
            high=0.999,
        ),
        Parameter(
            "branching", "number of intervals merged from level to level in an ordered column without a hierarchy, 2 "
"or more",
            "integer", 4, low=2,
        ),
        Parameter(
            "max_nodes", "maximum number of level vectors; larger searches are refused before they start", "integer",
            250_000, low=1,
        ),
        EDGES,
    ),
    layout=layout,
    release=release,
    refine=partial(refine, NAME),
    unit="person",
    sweeps=(Sweep("k := {n}, l := {l}", (5, 10, 25)),),
)  # fmt: skip
