"""What GROUP BY stands for: positions and aliases in grouping sets, ALL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.refusals import has_aggregate, is_aggregate
from duckdb_anon.rewrite.query.result_names import ResultNames, items_of
from duckdb_anon.rewrite.query.template import copied, tree
from duckdb_anon.rewrite.query.walking import all_of


def spell_out_positions(select: exp.Select, names: ResultNames) -> None:
    """Replace ordinals and aliases inside ROLLUP, CUBE and GROUPING SETS by what they stand for.

    A name that is a column of FROM means that column, as in DuckDB.
    """
    group = select.args.get("group")
    several = (exp.Rollup, exp.Cube, exp.GroupingSets)
    sets = [one for one in group.expressions if isinstance(one, several)] if group else []
    if not sets:
        return
    for projection in select.expressions:
        number = projection.unalias()
        if isinstance(number, (exp.Literal, exp.Neg)) and number.is_int:
            number.replace(tree("coalesce({n})", n=number))  # as a key it would be a position
    columns = {fold(column) for item in items_of(select) for column in names.columns(item)}
    by_alias = {fold(e.alias): e.this for e in select.expressions if isinstance(e, exp.Alias)}
    by_alias = {alias: made_of for alias, made_of in by_alias.items() if alias not in columns}
    for one in sets:
        for node in all_of(one, exp.Literal, exp.Column):
            _resolve_one(node, select, by_alias)


def _resolve_one(node: exp.Expr, select: exp.Select, by_alias: dict[str, exp.Expr]) -> None:
    grouping = (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple, exp.Paren)
    if not isinstance(node.parent, grouping):
        return
    if isinstance(node, exp.Literal) and node.is_int:
        position = int(node.this)
        if not 1 <= position <= len(select.expressions):
            raise RewriteError(f"GROUP BY position {position} is not in the select list")
        node.replace(copied(select.expressions[position - 1].unalias()))
    elif isinstance(node, exp.Column) and not node.table and fold(node.name) in by_alias:
        node.replace(copied(by_alias[fold(node.name)]))


def spell_out_constants(select: exp.Select) -> None:
    """Put constants where HAVING has their names; other names are those of columns by now, or spelled out."""
    having = select.args.get("having")
    if having is None:
        return
    constants = {
        fold(one.alias): one.this
        for one in select.expressions
        if isinstance(one, exp.Alias) and not one.find(exp.Column, exp.Query) and not has_aggregate(one)
    }
    for column in all_of(having, exp.Column):
        if not column.table and fold(column.name) in constants and column.find_ancestor(exp.Query) is select:
            column.replace(exp.Paren(this=copied(constants[fold(column.name)])))


def spell_out_all(select: exp.Select) -> None:
    """Spell out GROUP BY ALL: what is selected without an aggregate, and the columns that HAVING reads outside them.

    `SELECT left(a, 1) AS k ... GROUP BY ALL HAVING k = 'n'` has the key k alone, as from DuckDB 2.0.1 on; before, the
    column a within it was one more. What reads no column of FROM is no key: `SELECT 1, count(*) ... GROUP BY ALL` has
    one row where no row is there.
    """
    group = select.args.get("group")
    if not group or not group.args.get("all"):
        return
    group.set("all", None)
    items = {item.alias_or_name for item in items_of(select)}
    without = [e.unalias() for e in select.expressions if not has_aggregate(e)]
    keys = [copied(one) for one in without if any(c.table in items for c in all_of(one, exp.Column))]
    having = select.args.get("having")
    read = dict.fromkeys(_outside_aggregates(having, keys)) if having else ()
    keys += [copied(one) for one in read if one not in keys]
    if keys:
        group.set("expressions", keys)
    else:
        group.pop()


def spell_out_order(select: exp.Select) -> None:
    """Spell out ORDER BY ALL: the output columns it stands for."""
    order = select.args.get("order")
    terms = order.expressions if order is not None else []
    is_all = len(terms) == 1 and isinstance(terms[0].this, (exp.Column, exp.Var))
    if not is_all or fold(terms[0].this.name) != "all" or "all" in map(fold, select.named_selects):
        return
    listed = [terms[0].copy() for _ in select.expressions]
    for term, name in zip(listed, select.named_selects, strict=True):
        term.set("this", exp.column(name, quoted=True))
    select.set("order", exp.Order(expressions=listed))


def _outside_aggregates(node: exp.Expr, keys: Sequence[exp.Expr]) -> Iterator[exp.Column]:
    """Columns of an expression that neither an aggregate nor a key reads."""
    if node in keys:
        return
    if isinstance(node, exp.Column):
        yield node
    elif not isinstance(node, (exp.Filter, exp.Query)) and not is_aggregate(node):
        for child in node.iter_expressions():
            yield from _outside_aggregates(child, keys)
