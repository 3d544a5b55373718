"""check_output: what `safe_output` decides on each value of an answer, and why, for the data holder.

One row a value, which it shows whatever was decided: the result is as confidential as the table. Nothing is recorded.
`largest_share` is the share of the largest individual in a sum. Cost: that of `safe_output`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from duckdb_anon.model.function_specs import Params, Task
from duckdb_anon.outputs.answer import Answer, answer, catalog_of, read_question
from duckdb_anon.outputs.cells import Row
from duckdb_anon.outputs.rules import DIFFERENCING, DOMINANCE, P_PERCENT, SECONDARY, THRESHOLD, largest_share
from duckdb_anon.outputs.safe_output import PAPER, QUERY, seen

_REASONS = {
    THRESHOLD: "fewer than {threshold} individuals: in the cell, outside it in its total, or on one side of the value",
    DOMINANCE: "the {largest} largest individuals have more than {share:.0%} of the sum",
    SECONDARY: "a suppressed value could be derived from this one and the totals",
    DIFFERENCING: "earlier answers and this one would give a value of fewer than {threshold} individuals, or most of a "
    "sum",
    P_PERCENT: "the rest of the sum is less than {p_percent:g}% of the largest individual",
}


def _plan(context: Any, params: Params) -> tuple[Mapping[str, Any], dict[str, str]]:
    return dict(params), seen(read_question("check_output", context.catalog, params["query"]).block)


def _work(con: Any, info: Mapping[str, Any], rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    question = read_question("check_output", catalog_of(con), info["query"])
    found = answer(con, "check_output", question, info["query"], checksum=rows["seen"][0].as_py())
    return [cell for row in found.rows for cell in _cells(found, row)]


def _cells(found: Answer, row: Row) -> list[dict[str, Any]]:
    """The values of a row."""
    question, cells = found.question, []
    block = question.block
    named = list(zip(block.items, question.columns, row.values, strict=True))
    place = ", ".join(f"{name}={value}" for item, (name, _), value in named if item.key is not None)
    for item, (name, _), value in named:
        if not item.aggregates:
            continue
        first = next((at for at in item.aggregates if row.rules[at]), item.aggregates[0])
        aggregate, rule = block.aggregates[first], row.rules[first]
        share = largest_share(row, aggregate)
        cells.append(
            {
                "cell": place or "all",
                "statistic": name,
                "value": value,
                "individuals": row.groups[aggregate.condition].individuals,
                "largest_share": float("nan") if share is None else share,
                "rule": rule or None,
                "decision": "suppressed" if rule else "answered",
                "reason": _REASONS[rule].format(**vars(question.policy)) if rule else None,
            }
        )
    return cells


MEASURE = Task(
    name="check_output",
    summary="what safe_output decides on each value of an answer, and why; for the data holder",
    paper=PAPER,
    example="FROM check_output('SELECT gender, count(*) FROM people GROUP BY gender')",
    section="Safe outputs",
    smallest="query := 'SELECT count(*) FROM people'",
    parameters=(QUERY,),
    returns={
        "cell": "VARCHAR", "statistic": "VARCHAR", "value": "VARCHAR", "individuals": "BIGINT",
        "largest_share": "DOUBLE OR NULL", "rule": "VARCHAR", "decision": "VARCHAR", "reason": "VARCHAR",
    },
    plan=_plan,
    work=_work,
    requires_committed=False,
    tables=(),
)  # fmt: skip
