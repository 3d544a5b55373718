"""Low and high hold of the values that were compared with the original's, and of no others.

Where nothing says whether the texts of a column are values or nodes of a hierarchy, they are read as values once each
of them has been found in the original (`engine.known`), and so is each number, which may have been coarsened. What was
compared is what is committed; a text with bounds may run on another release of that name, or on one that stands changed
in an open transaction, where a node would be a value that nobody has. So it looks whether they are still the same, and
fails where they are not: the different texts, or the numbers of all rows.
Cost: a DISTINCT of each column of texts that the query reads; of counts whose buckets are of few kinds, of the kinds'.
Of numbers a sum over the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from duckdb_anon.model.errors import when_run
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.kinds import BELOW
from duckdb_anon.rewrite.estimate.value_steps import append_step
from duckdb_anon.rewrite.query.seen_values import DIFFERENT, DIGEST, ROWS, SHOWN, SeenValues
from duckdb_anon.rewrite.query.template import every, name, number, select, tree
from duckdb_anon.rewrite.query.walking import leftmost
from duckdb_anon.rewrite.shapes.kind_counts import KindPart
from duckdb_anon.rewrite.shapes.parts import ROW, aliased
from duckdb_anon.rewrite.shapes.released import Model
from duckdb_anon.rewrite.shapes.released_parts import field_of_row


def require_same_values(query: exp.Query, bounded: int, values: Sequence[SeenValues], model: Model) -> None:
    """Let low and high of a rewritten query be errors where the values that it reads are not those that were seen.

    Args:
        query: the rewritten query, whose last output columns are low and high; a step for each attribute is added.
        bounded: how many of its measures have them.
        values: the values in the columns that the query reads, as they were seen.
        model: the release.
    """
    if not values or not bounded:
        return
    steps = [name(f"same_{_kind(one)}_of_{fold(one.attribute)}") for one in values]
    same = every([tree("(select _same from {step})", step=step) for step in steps])
    for end in leftmost(query).expressions[-2 * bounded :]:
        value = end.unalias()
        value.replace(tree("case when {same} then {value} end", same=same, value=value.copy()))
    for step, one in zip(steps, values, strict=True):
        append_step(query, step, _same(one, model))


def _kind(values: SeenValues) -> str:
    return "values" if values.by_rows else "texts"


def _same(values: SeenValues, model: Model) -> exp.Select:
    """SELECT of whether values are those that were seen, which is an error where they are not."""
    changed = (
        f"the {_kind(values)} of '{values.attribute}' in {model.release.name} are not those that were compared with "
        "the original's when this query was rewritten: it was changed since, or in a transaction that is not "
        "committed; rewrite the query once it is"
    )
    cell, release = field_of_row(*values.path), aliased(model.release, ROW)
    # without any value nothing is read amiss
    same = (
        "select case when coalesce({digest}, {{seen}}) = {{seen}} then true else error({{changed}}) end as _same from "
    )
    told = {"seen": exp.Literal.string(values.digest or ""), "changed": exp.Literal.string(when_run(changed))}
    if values.by_rows:
        return select(f"{same.format(digest=ROWS)}{{release}}", cell=cell, release=release, **told)
    shown = select(DIFFERENT.replace("{shown}", SHOWN[values.shown]), path=cell, release=release)
    part = model.part_of.get(fold(values.attribute))
    if isinstance(part, KindPart):  # the others of a kind show what its first bucket does: the step of kinds sees to it
        first = tree("{bucket} < {below}", bucket=part.numbers, below=number(BELOW))
        next(one for one in shown.find_all(exp.Select, bfs=False) if one is not shown).where(first, copy=False)
    return select(f"{same.format(digest=DIGEST)}{{shown}}", shown=shown, **told)
