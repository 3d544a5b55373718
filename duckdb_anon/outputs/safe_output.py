"""safe_output: the answer of a query from the original, without the values that would disclose individuals.

The table's comment holds the policy: `anon: outputs(threshold := 10, dominance := [2, 0.9], p_percent := 10)`. A value
that breaks a rule is NULL, and the column `suppressed` names the rule. Rows of fewer individuals than the threshold are
left out where their keys alone would tell something. ORDER BY and LIMIT apply to what is left. Cost: the query, once
more where a person column is labelled, and two hashes of every row: over a million rows 0.2 s more than the query.
"""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping
from typing import Any

from duckdb_anon.model.function_specs import REQUIRED, Parameter, Params, Task
from duckdb_anon.model.quoting import ident, literal
from duckdb_anon.outputs.answer import SUPPRESSED, answer, catalog_of, read_question
from duckdb_anon.outputs.block import Block
from duckdb_anon.outputs.cells import checksum_sql

QUERY = Parameter("query", "one SELECT of aggregates of one table that has a policy", "text", REQUIRED)
PAPER = (
    "Preen, Albashir, Davy, Smith, ACRO: a tool for semi-automated statistical disclosure control of research outputs, "
    "2022; Hundepool et al., Statistical Disclosure Control, 2012, section 4.2"
)


def seen(block: Block) -> dict[str, str]:
    """The list of a task with the checksum of the table as the caller's transaction sees it."""
    return {"seen": f"[({checksum_sql(block)})]"}


def _plan(context: Any, params: Params) -> tuple[Mapping[str, Any], dict[str, str]]:
    question = read_question("safe_output", context.catalog, params["query"])
    block = question.block
    return {"query": params["query"], "columns": question.columns, "order": block.order, "limit": block.limit}, seen(
        block
    )


def _work(con: Any, info: Mapping[str, Any], rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    question = read_question("safe_output", catalog_of(con), info["query"])
    found = answer(con, "safe_output", question, info["query"], getpass.getuser(), rows["seen"][0].as_py())
    return [{"row": json.dumps(values), SUPPRESSED: rule} for values, rule in found.values()]


def _select(info: Mapping[str, Any]) -> str:
    """The columns of the query, with their types, and the rules: from rows of `_anon_answer` as JSON."""
    columns = [
        f"cast(row ->> {literal(f'$[{place}]')} as {kind}) as {ident(name)}"
        for place, (name, kind) in enumerate(info["columns"])
    ]
    order = f" order by {', '.join(info['order'])}" if info["order"] else ""
    return f"select {', '.join([*columns, SUPPRESSED])} from _anon_answer{order}{info['limit']}"


MEASURE = Task(
    name="safe_output",
    summary="the answer of a query from the original, without values that would disclose individuals",
    paper=PAPER,
    example="FROM safe_output('SELECT gender, count(*) FROM people GROUP BY gender')",
    section="Safe outputs",
    smallest="query := 'SELECT count(*) FROM people'",
    parameters=(QUERY,),
    returns={"row": "VARCHAR", SUPPRESSED: "VARCHAR"},
    plan=_plan,
    work=_work,
    select=_select,
    requires_committed=False,
    tables=(),
)
