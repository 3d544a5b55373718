"""Released rows added up by the buckets their slices were permuted in.

What is asked of the slices of a row is told by its bucket. So where all that a query wants are sums of products of a
row's own columns and of what slices answer, one pass over the release gives both, and each bucket is weighed once: no
row is joined with what its bucket says.
"""

from __future__ import annotations

from sqlglot import exp

from duckdb_anon.rewrite.estimate.combinations import product_of
from duckdb_anon.rewrite.estimate.row_answers import place_of, shares_name, total
from duckdb_anon.rewrite.estimate.steps import Steps
from duckdb_anon.rewrite.estimate.value_steps import SIZE
from duckdb_anon.rewrite.query.template import every, multiplied, name, select, taken, tree, truth
from duckdb_anon.rewrite.shapes.parts import ROW, aliased, columns_asked, filtered, labelled
from duckdb_anon.rewrite.shapes.slices import SlicePart


def in_buckets(steps: Steps) -> exp.Select | None:
    """SELECT what the final query wants, one row a bucket; None where rows are asked one by one.

    Args:
        steps: what the final query needs.
    """
    model = steps.model
    slices = [part for part in steps.asked if isinstance(part, SlicePart)]
    asked = [part for part in slices if steps.requests.get(part.name)]
    if not asked or len(slices) < len(steps.asked) or steps.homes.by_value & set(model.exact):
        return None
    if not all(part.shows(columns_asked(request)) for part in asked for request in steps.requests[part.name]):
        return None
    answers = {
        (shares_name(part).this, name(label).this): part.of_bucket(request)
        for part in asked
        for request, label in steps.requests[part.name].items()
    }
    test = every(steps.row_conditions)
    columns = []
    for key, label in steps.columns.items():
        product = product_of(key, answers)
        if product is None:
            return None
        amount, weights = product
        told = [answers[place_of(one)] for one in weights]
        columns.append(labelled(multiplied([filtered(taken(total(amount)), test), *told]), label))
    if steps.spread:
        columns.append(exp.Alias(this=tree("count(*)"), alias=taken(SIZE)))
    chosen = select(
        "select {keys}, {columns} from {release} group by {bucket}",
        keys=steps.cells,
        columns=columns,
        release=aliased(model.release, ROW),
        bucket=slices[0].key,
    )
    if steps.spread and test != truth(True):
        # a bucket without a row that satisfies them brings no group into the answer
        chosen.set("having", exp.Having(this=tree("bool_or({test})", test=test)))
    return chosen
