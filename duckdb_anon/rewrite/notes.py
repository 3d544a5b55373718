"""What an analyst should know of an answer beside its numbers: why it has no bounds, what was taken for true."""

from __future__ import annotations

from collections.abc import Collection

from sqlglot import exp

from duckdb_anon.model.errors import listed
from duckdb_anon.model.release_formats.duckdb_types import without_enums
from duckdb_anon.rewrite.query.aggregate_nodes import aggregate_nodes
from duckdb_anon.rewrite.query.grouping_sets import groups_of
from duckdb_anon.rewrite.query.parse import reads_original
from duckdb_anon.rewrite.query.single_rows import picks_first
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.inverted import RandomizedPart
from duckdb_anon.rewrite.shapes.listed import NodePart
from duckdb_anon.rewrite.shapes.person_lists import ItemPart
from duckdb_anon.rewrite.shapes.released import Model
from duckdb_anon.rewrite.shapes.replaced import RetainedPart

PRESENCE = "IN and EXISTS take a value as present from half an expected row on"
CHOSEN = "HAVING, WHERE and LIMIT pick groups by their estimates"
DOMAIN = "the values the release allows for; not all of them need to occur"

RECORDS = "numbers of records come out low: a node may stand for several records of one person; there is no upper bound"
FAILS = "a value that cannot be cast counts as NULL; the original fails if its WHERE keeps one"
NO_NUMBER = "the answer is no number, so it has no place here; run what rewrite_query gives"
OUTER_ENDS = "MIN and MAX of several grouping sets at once are their outer ends, not the likely values"


def why_unbounded(model: Model, binned: Collection[str] = (), retyped: Collection[str] = ()) -> str:
    """Why an answer from a release has no low and high.

    Args:
        model: what the release says.
        binned: the columns a query reads whose values were put into bins.
        retyped: the columns a query reads whose type is not the original's.
    """
    if model.release.of_another:
        return "no bounds: the release says that it was made of a query or of another table"
    if binned:
        columns = listed(sorted(binned))
        return f"no bounds: values of {columns} were binned before they were drawn, and one stands for all of its bin"
    if retyped:
        kinds = [
            f"{column} ({' for '.join(map(without_enums, model.retyped.get(column, ('another collation',))))})"
            for column in sorted(retyped)
        ]
        return f"no bounds: the type of {listed(kinds)} is not the original's, and values may read otherwise"
    if any(isinstance(part, ItemPart) for part in model.parts):
        return "no bounds of this: a node may stand for several records of one person, whose other columns may differ"
    if any(isinstance(part, RetainedPart) for part in model.parts):
        return "no bounds: some sensitive values were drawn anew, and nothing tells which"
    if any(isinstance(part, RandomizedPart) for part in model.parts):
        return "no bounds: of randomized columns counts, sums, means and formulas of them have intervals"
    if model.weight is not None and model.rate is None and model.missing is None:
        return "no bounds: the numbers of rows are noisy"
    if model.weight is not None:
        return "no bounds: rows were left out"
    if all(isinstance(part, NodePart) for part in model.parts):
        return "no bounds: the method may have replaced values, and the release does not tell which"
    return "no bounds: this function of the answers has none"


def picks_groups(query: exp.Query) -> bool:
    """Whether the query keeps groups of the original by what is measured of them."""
    for select in all_of(query, exp.Select):
        grouped = bool(select.args.get("group")) and reads_original(select)
        if grouped and (picks_first(select) or any(select.args.get(key) for key in ("having", "qualify", "limit"))):
            return True
        source = select.args.get("from_")
        if source is None or not isinstance(source.this, exp.Subquery) or not select.args.get("where"):
            continue
        if any(reads_original(one) for one in all_of(source, exp.Select)):
            return True
    return False


def asks_outer_ends(query: exp.Query) -> bool:
    """Whether MIN or MAX are asked of several grouping sets of the original at once."""
    return any(
        reads_original(select)
        and any(isinstance(node.find(exp.Min, exp.Max), exp.Expr) for node in aggregate_nodes(select))
        and len(groups_of(select).sets) > 1
        for select in all_of(query, exp.Select)
    )
