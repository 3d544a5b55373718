"""Nested groupings that are one grouping, and subselects over groups that only compute or filter.

    SELECT region, sum(n) FROM (SELECT region, sex, count(*) AS n FROM t GROUP BY 1, 2) GROUP BY 1
    SELECT region, count(*) FROM t GROUP BY region

A sum of sums or counts over groups is a sum over rows, a maximum of maxima a maximum, and a key's extremes over groups
are its extremes over rows. A SELECT without aggregates over groups computes with keys and measures: its conditions on
keys belong into WHERE, those on measures into HAVING. What is merged here has the estimate and the bounds of the plain
query; whatever else asks about groups is a function of which groups exist (`select_groups`).
"""

from __future__ import annotations

from sqlglot import exp

from duckdb_anon.rewrite.query.parse import distinct_aliases
from duckdb_anon.rewrite.query.trees import (
    all_of,
    every,
    from_items,
    has_aggregate,
    is_aggregate,
    is_original,
    reads_original,
    window_parts,
)

_BARRIERS = ("distinct", "limit", "offset", "qualify", "windows", "sample")
_NESTED: dict[type[exp.Expr], tuple[type[exp.Expr], ...]] = {
    exp.Sum: (exp.Sum, exp.Count, exp.CountIf),
    exp.Max: (exp.Max,),
    exp.Min: (exp.Min,),
}
"""An aggregate over groups, and the aggregates of the groups it can be merged with."""


def collapsed(tree_: exp.Query) -> exp.Query:
    """Merge each SELECT with the grouping that is all it reads, where both together are one grouping; in place.

    Example:
        >>> import sqlglot
        >>> from duckdb_anon.rewrite.query.parse import bound
        >>> from duckdb_anon.rewrite.query.tables import TableInfo
        >>> text = "SELECT max(n) AS n FROM (SELECT sex, max(age) AS n FROM t GROUP BY sex) AS s"
        >>> tree = bound(sqlglot.parse_one(text, dialect="duckdb"), [TableInfo("t", (("age", "INT"), ("sex", "TEXT")))])
        >>> collapsed(tree).sql("duckdb", identify=False).split(" FROM")[0]
        'SELECT MAX("t"."age") AS "n"'
    """
    _inline_ctes(tree_)
    for outer in reversed(all_of(tree_, exp.Select)):
        while _merge(outer):
            continue
    return tree_


def _inline_ctes(tree_: exp.Query) -> None:
    """Put each CTE that groups the original into the FROM clauses that read it."""
    with_ = tree_.args.get("with_")
    if with_ is None or with_.args.get("recursive"):
        return
    for cte in reversed(list(with_.expressions)):
        uses = [t for t in all_of(tree_, exp.Table) if t.name == cte.alias and not t.db and not t.meta.get("known")]
        original = any(is_original(t) for t in all_of(cte.this, exp.Table)) or any(
            t.name in {c.alias for c in with_.expressions} for t in all_of(cte.this, exp.Table)
        )
        if not original or not isinstance(cte.this, exp.Select) or any(use.args.get("pivots") for use in uses):
            continue
        for use in uses:
            alias = exp.TableAlias(this=exp.to_identifier(use.alias_or_name, quoted=True))
            use.replace(exp.Subquery(this=cte.this.copy(), alias=alias, joins=use.args.get("joins")))
        cte.pop()
    if not with_.expressions:
        with_.pop()
    distinct_aliases(tree_)


def _merge(outer: exp.Select) -> bool:
    """Merge a SELECT with the one grouping it reads; tell whether that was possible."""
    source = outer.args.get("from_")
    subquery = source.this if source else None
    if not isinstance(subquery, exp.Subquery) or outer.args.get("joins") or subquery.args.get("joins"):
        return False
    inner = subquery.this
    if not isinstance(inner, exp.Select) or not reads_original(inner) or inner.args.get("with_"):
        return False
    if any(inner.args.get(key) for key in _BARRIERS) or _windows(inner) or outer.args.get("sample"):
        return False
    grouped = inner.args.get("group")
    if any(
        isinstance(one, (exp.Rollup, exp.Cube, exp.GroupingSets)) for one in (grouped.expressions if grouped else [])
    ):
        return False
    if not grouped and not any(map(has_aggregate, inner.expressions)):
        return False
    merge = _Merge(outer, inner, subquery.alias)
    return merge.rows() if merge.of_rows else merge.groups()


class _Merge:
    """Two SELECTs that may become one."""

    def __init__(self, outer: exp.Select, inner: exp.Select, alias: str) -> None:
        self.outer, self.inner, self.alias = outer, inner, alias
        self.computed: dict[str, exp.Expr] = {e.alias_or_name: e.unalias() for e in inner.expressions}
        clauses = [*outer.expressions, *(outer.args[k] for k in ("having", "order", "qualify") if outer.args.get(k))]
        aggregated = any(_own_aggregate(one) for one in clauses)
        self.of_rows = not (aggregated or outer.args.get("group") or outer.args.get("distinct"))

    def rows(self) -> bool:
        """Merge a SELECT that takes each group as a row."""
        if self.outer.args.get("qualify") and self.inner.args.get("having"):
            return False
        where = self.outer.args.get("where")
        keys, measures = self._split(where.this) if where else ([], [])
        having = self.inner.args.get("having")
        if having:
            measures.insert(0, having.this)
        if any(q for one in keys for q in all_of(one, exp.Query)):
            return False
        return self._become(keys, measures, self.inner.args.get("group"))

    def groups(self) -> bool:
        """Merge a SELECT that groups the groups."""
        where = self.outer.args.get("where")
        keys, measures = self._split(where.this) if where else ([], [])
        if self.inner.args.get("having") or measures or self.outer.args.get("qualify"):
            return False
        group = self.outer.args.get("group")
        for key in group.expressions if group else []:
            if isinstance(key, (exp.Rollup, exp.Cube, exp.GroupingSets)) or self._measured(key):
                return False
        places = [*self.outer.expressions, *(self.outer.args[k] for k in ("having", "order") if self.outer.args.get(k))]
        if not all(self._additive(one) for one in places):
            return False
        return self._become(keys, [], group)

    def _additive(self, node: exp.Expr) -> bool:
        """Whether every aggregate over the groups is one over their rows."""
        if isinstance(node, exp.Query):
            return False
        if isinstance(node, exp.AggFunc):
            argument = node.this
            if isinstance(node, exp.Count) and isinstance(argument, exp.Distinct):
                return not self._measured(argument)
            if type(node) not in _NESTED or not isinstance(argument, exp.Column):
                return False
            found = self.computed.get(argument.name)
            if found is None:
                return False
            if not found.find(exp.AggFunc):
                return not isinstance(node, exp.Sum)
            return type(found) in _NESTED[type(node)] and not isinstance(found.this, exp.Distinct)
        if isinstance(node, (exp.Filter, exp.Window)):
            return False
        if isinstance(node, exp.Column) and node.table == self.alias:
            return not self._measured(node)
        return all(self._additive(child) for child in node.iter_expressions())

    def _measured(self, node: exp.Expr) -> bool:
        columns = (c for c in all_of(node, exp.Column) if c.table == self.alias)
        return any(self.computed[c.name].find(exp.AggFunc) is not None for c in columns if c.name in self.computed)

    def _split(self, condition: exp.Expr) -> tuple[list[exp.Expr], list[exp.Expr]]:
        condition = condition.unnest()
        if isinstance(condition, exp.And):
            pairs = [self._split(side) for side in (condition.left, condition.right)]
            return pairs[0][0] + pairs[1][0], pairs[0][1] + pairs[1][1]
        return ([], [condition]) if self._measured(condition) else ([condition], [])

    def _become(self, keys: list[exp.Expr], measures: list[exp.Expr], group: exp.Expr | None) -> bool:
        """Let the outer SELECT read what the inner one reads."""
        inner, outer = self.inner, self.outer
        if any(c.table == self.alias and c.name not in self.computed for c in all_of(outer, exp.Column)):
            return False
        where = [inner.args["where"].this] if inner.args.get("where") else []
        where += [self._read(one) for one in keys]
        having = [self._read(one) for one in measures]
        if outer.args.get("having"):
            having.append(self._read(outer.args["having"].this))
        changed = {
            "expressions": [
                exp.Alias(this=self._read(e.unalias()), alias=exp.to_identifier(e.alias_or_name, quoted=True))
                for e in outer.expressions
            ],
            "from_": inner.args["from_"],
            "joins": inner.args.get("joins"),
            "where": exp.Where(this=every(where)) if where else None,
            "group": self._read(group) if group is not None else None,
            "having": exp.Having(this=every(having)) if having else None,
            "order": self._read(outer.args["order"]) if outer.args.get("order") else None,
            "qualify": self._read(outer.args["qualify"]) if outer.args.get("qualify") else None,
        }
        for key, value in changed.items():
            outer.set(key, value)
        return True

    def _read(self, node: exp.Expr) -> exp.Expr:
        """The same expression over the rows the groups are made of."""
        holder = exp.Tuple(expressions=[node.copy()])
        self._replace_below(holder)
        found: exp.Expr = holder.expressions[0].pop()
        return found

    def _replace_below(self, node: exp.Expr) -> None:
        for child in list(node.iter_expressions()):
            found = self._replacement(child)
            if found is not None:
                plain = isinstance(found, (exp.Column, exp.Literal, exp.Func, exp.Filter))
                child.replace(found.copy() if plain else exp.Paren(this=found.copy()))
            elif not isinstance(child, exp.Select) or self.alias not in [
                one.alias_or_name for one in from_items(child)
            ]:
                self._replace_below(child)

    def _replacement(self, node: exp.Expr) -> exp.Expr | None:
        """What a column of the groups, or an aggregate of one, is computed from; None for any other node."""
        aggregate = isinstance(node, exp.AggFunc) and not self.of_rows
        column = node.this if aggregate else node
        if not isinstance(column, exp.Column) or column.table != self.alias:
            return None
        found = self.computed.get(column.name)
        return found if found is None or not aggregate or found.find(exp.AggFunc) else None


def _windows(select: exp.Select) -> bool:
    places = [*select.expressions, *(select.args[k] for k in ("having", "order") if select.args.get(k))]
    return any(one.find(exp.Window) for one in places)


def _own_aggregate(node: exp.Expr) -> bool:
    """Whether an expression has an aggregate over rows, subqueries and windows over them aside."""
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        return any(_own_aggregate(one) for one in window_parts(node))
    return is_aggregate(node) or any(_own_aggregate(child) for child in node.iter_expressions())
