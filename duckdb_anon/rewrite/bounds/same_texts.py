"""Low and high hold of the texts that were compared with the original's, and of no others.

Where nothing says whether the texts of a column are values or nodes of a hierarchy, they are read as values once each
of them has been found in the original (`engine.known`). What was compared is what is committed; a text with bounds may
run on another release of that name, or on one that stands changed in an open transaction, where a node would be a value
that nobody has. So it looks whether the texts are still the same, and fails where they are not.
Cost: a DISTINCT of each such column that the query reads; of counts whose buckets are of few kinds, of the kinds'.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from duckdb_anon.model.errors import when_run
from duckdb_anon.model.folding import fold
from duckdb_anon.model.kinds import BELOW
from duckdb_anon.rewrite.estimate.value_steps import append_step
from duckdb_anon.rewrite.query.seen_values import DIFFERENT, DIGEST, SHOWN, SeenValues
from duckdb_anon.rewrite.query.template import every, name, number, select, tree
from duckdb_anon.rewrite.query.walking import leftmost
from duckdb_anon.rewrite.shapes.kind_counts import KindPart
from duckdb_anon.rewrite.shapes.parts import ROW, aliased
from duckdb_anon.rewrite.shapes.released import Model
from duckdb_anon.rewrite.shapes.released_parts import field_of_row


def require_same_texts(query: exp.Query, bounded: int, texts: Sequence[SeenValues], model: Model) -> None:
    """Let low and high of a rewritten query be errors where the texts that it reads are not those that were seen.

    Args:
        query: the rewritten query, whose last output columns are low and high; a step for each attribute is added.
        bounded: how many of its measures have them.
        texts: the texts in the columns that the query reads, as they were seen.
        model: the release.
    """
    if not texts or not bounded:
        return
    steps = [name(f"same_texts_of_{fold(one.attribute)}") for one in texts]
    same = every([tree("(select _same from {step})", step=step) for step in steps])
    for end in leftmost(query).expressions[-2 * bounded :]:
        value = end.unalias()
        value.replace(tree("case when {same} then {value} end", same=same, value=value.copy()))
    for step, one in zip(steps, texts, strict=True):
        append_step(query, step, _same(one, model))


def _same(texts: SeenValues, model: Model) -> exp.Select:
    """SELECT of whether the texts are those that were seen, which is an error where they are not."""
    changed = (
        f"the texts of '{texts.attribute}' in {model.release.name} are not those that were compared with the "
        "original's when this query was rewritten: it was changed since, or in a transaction that is not committed; "
        "rewrite the query once it is"
    )
    shown = select(
        DIFFERENT.replace("{shown}", SHOWN[texts.shown]),
        path=field_of_row(*texts.path),
        release=aliased(model.release, ROW),
    )
    part = model.part_of.get(fold(texts.attribute))
    if isinstance(part, KindPart):  # the others of a kind show what its first bucket does: the step of kinds sees to it
        first = tree("{bucket} < {below}", bucket=part.numbers, below=number(BELOW))
        next(one for one in shown.find_all(exp.Select, bfs=False) if one is not shown).where(first, copy=False)
    # without any text nothing is read amiss
    return select(
        f"select case when coalesce({DIGEST}, {{digest}}) = {{digest}} then true else error({{changed}}) end as _same "
        "from {shown}",
        digest=exp.Literal.string(texts.digest or ""),
        changed=exp.Literal.string(when_run(changed)),
        shown=shown,
    )
