"""Released rows added up by the buckets their slices were permuted in.

What is asked of the slices of a row is told by its bucket. So where all that a query wants are sums of products of a
row's own columns and of what slices answer, one pass over the release gives both, and each bucket is weighed once: no
row is joined with what its bucket says.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from duckdb_anon.rewrite.estimate.combinations import CHANCE
from duckdb_anon.rewrite.estimate.row_answers import Place, place_of, shares_name, total
from duckdb_anon.rewrite.estimate.row_weights import factors
from duckdb_anon.rewrite.estimate.steps import Steps
from duckdb_anon.rewrite.estimate.value_steps import SIZE
from duckdb_anon.rewrite.query.template import copied, every, multiplied, name, select, taken, tree, truth
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.parts import ROW, aliased, columns_asked, filtered, labelled
from duckdb_anon.rewrite.shapes.slices import SlicePart


def in_buckets(steps: Steps) -> exp.Select | None:
    """SELECT what the final query wants, one row a bucket; None where rows are asked one by one.

    Args:
        steps: what the final query needs.
    """
    model = steps.model
    parts = [part for part in model.parts if part in steps.spread or steps.requests.get(part.name)]
    slices = [part for part in parts if isinstance(part, SlicePart)]
    asked = [part for part in slices if steps.requests.get(part.name)]
    if not asked or len(slices) < len(parts) or steps.homes.by_value & set(model.exact):
        return None
    if not all(part.shows(columns_asked(request)) for part in asked for request in steps.requests[part.name]):
        return None
    answers = {
        (shares_name(part).this, name(label).this): part.of_bucket(request)
        for part in asked
        for request, label in steps.requests[part.name].items()
    }
    test = every([steps.text(one) for one in steps.conditions] + [copied(one) for one in steps.likely])
    columns = []
    for (kind, made_of), label in steps.columns.items():
        summed = _summed(made_of, answers, test) if kind in ("sum", CHANCE) else None
        if summed is None:
            return None
        columns.append(labelled(summed, label))
    keys = [labelled(tree("{cell}", cell=part.cell), f"cell_{part.name}") for part in steps.spread]
    if steps.spread:
        columns.append(exp.Alias(this=tree("count(*)"), alias=taken(SIZE)))
    chosen = select(
        "select {keys}, {columns} from {release} group by {bucket}",
        keys=keys,
        columns=columns,
        release=aliased(model.release, ROW),
        bucket=slices[0].key,
    )
    if steps.spread and test != truth(True):
        # a bucket without a row that satisfies them brings no group into the answer
        chosen.set("having", exp.Having(this=tree("bool_or({test})", test=test)))
    return chosen


def _summed(made_of: exp.Expr, answers: Mapping[Place, exp.Expr], test: exp.Expr) -> exp.Expr | None:
    """The sum of a product over the rows of a bucket that satisfy a condition; None for what is no such product."""
    parts = factors(made_of)
    told = [answers[place_of(one)] for one in parts if isinstance(one, exp.Column) and place_of(one) in answers]
    others = [one for one in parts if not (isinstance(one, exp.Column) and place_of(one) in answers)]
    if any(place_of(column) in answers for one in others for column in all_of(one, exp.Column)):
        return None
    amount = total(multiplied([copied(one) for one in others]))
    return multiplied([filtered(taken(amount), test), *told])
