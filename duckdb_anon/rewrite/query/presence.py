"""IN and EXISTS on the original: whether a value occurs, by how many rows are expected to have it.

    name IN (SELECT region FROM t WHERE age > 30)
    name IN (SELECT region FROM t WHERE age > 30 GROUP BY region HAVING count(*) >= 0.5)

A value counts as present from half an expected row, which is exact wherever rows are told exactly; a query with such a
condition has no bounds.
"""

from __future__ import annotations

from sqlglot import exp

from duckdb_anon.rewrite.query.parse import reads_original
from duckdb_anon.rewrite.query.refusals import has_aggregate
from duckdb_anon.rewrite.query.template import copied, tree
from duckdb_anon.rewrite.query.walking import all_of

LEAST = 0.5


def presence(query: exp.Query) -> bool:
    """Make conditions on expected numbers of rows of IN and EXISTS over the original; tell whether there were any."""
    found = False
    for node in all_of(query, exp.In, exp.Exists):
        inner = node.args.get("query") if isinstance(node, exp.In) else node.this
        inner = inner.this if isinstance(inner, exp.Subquery) else inner
        if not isinstance(inner, exp.Select) or not reads_original(inner) or _grouped(inner):
            continue
        found = True
        if isinstance(node, exp.In):
            inner.set("distinct", None)
            inner.set("group", exp.Group(expressions=[copied(e.unalias()) for e in inner.expressions]))
            inner.set("having", exp.Having(this=tree("count(*) >= {least}", least=LEAST)))
            continue
        inner.set("distinct", None)
        inner.set("limit", None)
        inner.set("expressions", [exp.Alias(this=tree("count(*)"), alias=exp.to_identifier("n", quoted=True))])
        node.replace(tree("{n} >= {least}", n=exp.Subquery(this=copied(inner)), least=LEAST))
    return found


def _grouped(select: exp.Select) -> bool:
    return bool(select.args.get("group")) or any(map(has_aggregate, select.expressions))
