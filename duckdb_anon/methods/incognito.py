"""Incognito: every value of an attribute is generalized to the same level, the levels being those that lose least.

Releases an interval, a set of values or a hierarchy node on every quasi-identifier; sensitive and insensitive
columns as they are. Guarantee: every class of equal published values satisfies k-anonymity, l-diversity (by
default entropy) and t-closeness as asked for, checked once more on the finished release. Up to the share
`max_suppression` of the rows, those in classes that fail, may be left out; then every released row
carries their number in the column `suppressed`. Where a column says whose row it is, all of them count persons; l asks
for l persons as well, and is kept by the rows, too; and no person has more than 1/k (1/l) of the rows of a class. Where
some have many rows, that takes higher levels: on a tenth of the visits (5,853 persons with up to 40 rows, 3
quasi-identifiers) the loss at k = 5 is .61, and .36 without the bound, when one person had .44 of a class. A value is
generalized alike wherever it stands, so that a person's sex or birth year is the same in all her rows.

Paper: LeFevre, DeWitt and Ramakrishnan (2005), Incognito: efficient full-domain k-anonymity; entropy
l-diversity as in Machanavajjhala et al. (2006). Departures: DuckDB counts the table once and all other counts are
rolled up from that; of the minimal nodes the one with the least normalized certainty penalty (Xu et al. 2006)
is taken, a suppressed row counting as wholly generalized; ties go to the smaller height, then to the
first attribute least generalized. Cost: exponential in the attributes at worst; how many level vectors may have to be
visited is known before the search, shown as its phase, and bounded by `max_nodes`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from duckdb_anon.kernels.guarantees import asked, classes_of, parameters_of_guarantee, recheck
from duckdb_anon.kernels.guarantees import refine as refine_guarantee
from duckdb_anon.kernels.lattice import (
    Counter,
    cheapest,
    failing_rows,
    ladder_of,
    minimal_nodes,
    most_nodes,
    valid_nodes,
)
from duckdb_anon.kernels.lattice.frequency import FrequencySet, Levels
from duckdb_anon.kernels.partition import All, DistinctDiversity, Groups, KAnonymity, OfColumn, PersonShare, Requirement
from duckdb_anon.kernels.partition.interval_rounding import EDGES, with_edges
from duckdb_anon.kernels.slicing.generalized_layout import box_plans
from duckdb_anon.methods.partition_params import GUARANTEE_TRIALS
from duckdb_anon.model import progress
from duckdb_anon.model.coded_table import CodeArray, CodedTable, IntArray
from duckdb_anon.model.errors import RequirementError
from duckdb_anon.model.function_specs import ColumnInfo, ColumnPlan, Method, Parameter, Params, Roles, Sweep
from duckdb_anon.model.progress import tick
from duckdb_anon.model.release_formats import SUPPRESSED
from duckdb_anon.model.released_columns import ROWS, Cells, Coded, Interval, Node, Source, ValueSet, Whole

NAME = "incognito"


def refine(params: dict[str, Any]) -> dict[str, Any]:
    """Check parameters that must fit together."""
    return refine_guarantee(NAME, params)


def release(table: CodedTable, params: Params, rng: np.random.Generator) -> dict[str, Cells]:
    """Generalize to the valid levels of least loss.

    Args:
        table: quasi-identifiers, and the sensitive columns where l or t is asked for.
        params: see `METHOD`.
        rng: unused, the levels are no matter of chance.

    Returns:
        Generalized quasi-identifiers, sensitive codes, `suppressed` if rows may be left out, and the source row
        of each released row.

    Raises:
        RequirementError: even the whole table as one class fails, or the search may visit more than `max_nodes`.
    """
    if table.combinations is None:
        raise TypeError(f"{NAME} works on a table whose combinations are counted")
    person = table.repeated_person
    requirement, sensitive = asked(NAME, table, params, persons=person is not None)
    ladders = [ladder_of(a, params["branching"]) for a in table.qi]
    counter = Counter(ladders, sensitive, table.combinations, person)
    _check_whole(counter, requirement)
    allowed = int(params["max_suppression"] * table.rows)
    monotone = (allowed == 0 and person is None) or _monotone(requirement, suppressing=allowed > 0)
    _check_nodes(counter, monotone, params["max_nodes"])
    levels = _best_node(counter, requirement, allowed, monotone)
    published = {
        ladder.attribute.name: ladder.cells(level) for ladder, level in zip(counter.ladders, levels, strict=True)
    }
    published = with_edges(table, published, params, person)
    kept = np.arange(table.rows, dtype=np.int64)
    if allowed:
        kept = _kept_rows(classes_of(list(published.values())), sensitive, requirement, person)
        if table.rows - len(kept) > allowed:
            raise RequirementError(f"{NAME}: {table.rows - len(kept)} rows would be suppressed, {allowed} may be")
        published = {name: _rows_of(cells, kept) for name, cells in published.items()}
    recheck(NAME, list(published.values()), sensitive, kept, requirement, person)
    published |= {a.name: Coded(a.name, a.codes[kept]) for a in table.sensitive}
    if params["max_suppression"] > 0:
        published[SUPPRESSED.key] = Whole(np.full(len(kept), table.rows - len(kept), dtype=np.int64))
    return {**published, ROWS: Source(kept)}


def _check_whole(counter: Counter, requirement: Requirement) -> None:
    top = counter.at(counter.every, tuple(ladder.height for ladder in counter.ladders))
    whole = top.groups(counter.table_counts)
    if not requirement.holds(whole).all():
        raise RequirementError(f"{NAME}: the whole table fails the requirement: {requirement.attained(whole)}")


def _check_nodes(counter: Counter, monotone: bool, most: int) -> None:
    """Say how many level vectors the search may visit, or refuse it."""
    nodes = most_nodes((ladder.height for ladder in counter.ladders), monotone=monotone)
    progress.say(f"levels, at most {nodes:,} to visit")
    if nodes > most:
        high = max(counter.ladders, key=lambda ladder: ladder.height)
        raise RequirementError(
            f"{NAME}: the search may visit {nodes:,} level vectors of {len(counter.ladders)} quasi-identifiers, and "
            f"max_nodes := {most:,}; name fewer columns in qi, give '{high.attribute.name}' ({high.height + 1} levels) "
            "fewer by a larger branching or a flatter hierarchy, raise max_nodes, or use mondrian, whose cost does not "
            "grow so"
        )


def _best_node(counter: Counter, requirement: Requirement, allowed: int, monotone: bool) -> Levels:
    """The valid node of least loss; without suppression only minimal ones can have it."""

    def passes(found: FrequencySet) -> bool:
        return int(failing_rows(found, counter.table_counts, requirement).sum()) <= allowed

    valid = valid_nodes(counter, passes, monotone=monotone, tick=tick)
    return cheapest(counter, valid if allowed else minimal_nodes(valid), requirement, allowed > 0)


def _monotone(requirement: Requirement, *, suppressing: bool) -> bool:
    """Whether merging classes can never make a row fail that did not, persons counted; failing rows may be left out."""
    if isinstance(requirement, All):
        return all(_monotone(part, suppressing=suppressing) for part in requirement.parts)
    if isinstance(requirement, OfColumn):
        return _monotone(requirement.part, suppressing=suppressing)
    if isinstance(requirement, PersonShare):
        # a class that fails may pull down the one it is merged with
        return not suppressing
    return isinstance(requirement, (KAnonymity, DistinctDiversity))


def _kept_rows(
    class_of_row: IntArray, sensitive: CodeArray | None, requirement: Requirement, person: CodeArray | None
) -> IntArray:
    """Rows whose class satisfies the requirement."""
    whole = Groups(np.zeros(len(class_of_row), dtype=np.int64), sensitive, person=person)
    held = requirement.holds(Groups(class_of_row, sensitive, whole.table_counts, person))
    return np.flatnonzero(held[class_of_row]).astype(np.int64)


def _rows_of(cells: Cells, rows: IntArray) -> Cells:
    """The same cells for some of the rows."""
    if not isinstance(cells, (Interval, Node, ValueSet)):
        raise TypeError(f"{type(cells).__name__} cells have no levels")
    return type(cells)(**{**vars(cells), "index": cells.index[rows]})


def combinations(roles: Roles, params: Params) -> tuple[ColumnInfo, ...]:
    """What DuckDB counts: the quasi-identifiers, what l and t speak of, and whose rows they are."""
    whose = () if roles.person is None else (roles.person,)
    return roles.qi + (() if params["l"] is None and params["t"] is None else roles.sensitive) + whose


def layout(roles: Roles, params: Params) -> tuple[ColumnPlan, ...]:
    """One frame an attribute: the places of its level."""
    boxes = box_plans(NAME, roles.qi)
    suppressed = (ColumnPlan(SUPPRESSED.key, Whole),) if params["max_suppression"] > 0 else ()
    return (
        *(ColumnPlan(plan.name, plan.cells, frame=f"attribute {plan.name}") for plan in boxes),
        *(ColumnPlan(info.name, Coded) for info in roles.sensitive),
        *suppressed,
        *(ColumnPlan(info.name, Source) for info in roles.keep),
    )


METHOD = Method(
    name=NAME,
    summary="every attribute generalized to one level; the levels of least loss that satisfy k, l or t",
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
            "max_suppression", "share of the rows that may be left out, in [0, 1)", "number", 0.0, low=0, high=0.999
        ),
        Parameter(
            "branching", "intervals of an ordered column without hierarchy merged from level to level, 2 or more",
            "integer", 4, low=2,
        ),
        Parameter(
            "max_nodes", "most level vectors the search may visit; more are refused before it starts", "integer",
            250_000, low=1,
        ),
        EDGES,
    ),
    layout=layout,
    release=release,
    refine=refine,
    combinations=combinations,
    unit="person",
    sweeps=(Sweep("k := {n}, l := {l}", (5, 10, 25)),),
)  # fmt: skip
