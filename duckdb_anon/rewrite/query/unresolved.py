"""Names of a query that mean nothing: what was written, what there is, the nearest of it, and what to write.

Also here: a whole row by its table's name. DuckDB takes a row for a value that is never NULL, not even where a LEFT
JOIN found none, so `count(p)` counts what `count(*)` does.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from duckdb_anon.model.errors import RewriteError, listed, nearest
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.result_names import ResultNames, items_of
from duckdb_anon.rewrite.query.scoping import step_of
from duckdb_anon.rewrite.query.tables import TableInfo, same_table
from duckdb_anon.rewrite.query.walking import all_of


def explain(tree: exp.Query, tables: Sequence[TableInfo]) -> str | None:
    """What is wrong with the first name of a query that means nothing; None where all seem to mean something.

    Args:
        tree: the query, parsed and not bound.
        tables: the original first, then the other tables whose columns are known.

    >>> from sqlglot import parse_one
    >>> explain(parse_one("select agee from t", "duckdb"), [TableInfo("t", (("age", "INT"), ("sex", "TEXT")))])
    "there is no column 'agee' in t (did you mean 'age'?); its columns are age, sex"
    """
    names = ResultNames("", tree, tables)
    for select in tree.find_all(exp.Select, bfs=False):
        for column in all_of(select, exp.Column):
            if column.find_ancestor(exp.Select) is select and not isinstance(column.this, exp.Star):
                found = _of_column(column, select, names)
                if found:
                    return found
        for join in select.args.get("joins") or []:
            for one in join.args.get("using") or []:
                known = [column for item in items_of(select) for column in names.columns(item)]
                if all(map(names.columns, items_of(select))) and not _has(known, one.name):
                    return f"there is no column '{one.name}' to join by{nearest(one.name, known)}; {_columns(known)}"
        found = _of_positions(select)
        if found:
            return found
    return None


def unknown_names(tree: exp.Query) -> list[str]:
    """Columns of HAVING and QUALIFY that stay without a table once a query is bound, and are no aliases."""
    found = []
    for select in all_of(tree, exp.Select):
        aliases = {fold(one.alias_or_name) for one in select.expressions}
        for clause in (select.args[key] for key in ("having", "qualify") if select.args.get(key)):
            columns = [c for c in all_of(clause, exp.Column) if c.find_ancestor(exp.Select) is select]
            found += [
                column.name
                for column in columns
                if not column.table and fold(column.name) not in aliases and column.find_ancestor(exp.Lambda) is None
            ]
    return found


def rows_counted(tree: exp.Query, tables: Sequence[TableInfo]) -> None:
    """Write count(*) for count(t) with t a table of FROM, in place, and refuse its row anywhere else.

    Raises:
        RewriteError: a whole row of the original is asked for.
    """
    names = ResultNames("", tree, tables)
    for select in all_of(tree, exp.Select):
        items = {fold(item.alias_or_name): item for item in items_of(select)}
        for star in [c for c in all_of(select, exp.Column) if isinstance(c.this, exp.Star) and c.parent is not select]:
            if isinstance(star.parent, exp.Count):  # a row in DuckDB 1.5, its columns in 2.0
                raise RewriteError(
                    f"count({star.table}.*) is not the same in every DuckDB; write count(*), or name a column"
                )
        for column in [c for c in all_of(select, exp.Column) if not c.table and fold(c.name) in items]:
            item = items[fold(column.name)]
            known = [names.columns(one) for one in items.values()]
            if column.find_ancestor(exp.Select) is not select or not all(known):
                continue
            if any(_has(columns, column.name) for columns in known):
                continue
            if isinstance(column.parent, exp.Count):
                column.replace(exp.Star())
            elif column.find_ancestor(exp.Lambda) is None and _is_original(item, tables):
                first = names.columns(item)[0]
                raise RewriteError(
                    f"{column.name} stands for whole rows of {tables[0].name}, which the release does not show; name a "
                    f"column, for instance {column.name}.{first}"
                )


def _is_original(item: exp.Expr, tables: Sequence[TableInfo]) -> bool:
    return isinstance(item, exp.Table) and step_of(item) is None and same_table(item, tables[0])


def _of_column(column: exp.Column, select: exp.Select, names: ResultNames) -> str | None:
    if column.find_ancestor(exp.Lambda) is not None:
        return None
    around: exp.Expr | None = select
    scopes: list[exp.Select] = []
    while isinstance(around, exp.Select):
        scopes.append(around)
        around = around.find_ancestor(exp.Select)
    items = [item for scope in scopes for item in items_of(scope)]
    if column.table:
        return _of_table(column, items, names)
    known = {item: names.columns(item) for item in items}
    if not all(known.values()):
        unknown = [item.name for item in items if not known[item] and isinstance(item, exp.Table) and item.name]
        if not unknown or _has([name for columns in known.values() for name in columns], column.name):
            return None
        near = nearest(unknown[0], [*_steps(select), *(info.name for info in names.tables)])
        return f"the columns of {listed(unknown)} are not known{near}: name a step of WITH or a committed table"
    own = [item.alias_or_name for item in items_of(select) if _has(known[item], column.name)]
    joined = [name.name for join in select.args.get("joins") or [] for name in join.args.get("using") or []]
    if len(own) > 1 and not _has(joined, column.name) and not _natural(select):
        return (
            f"'{column.name}' is a column of {' and of '.join(own)}; write "
            f"{' or '.join(f'{name}.{column.name}' for name in own)}"
        )
    aliases = [one.alias for one in select.expressions if one.alias]
    every = [name for columns in known.values() for name in columns]
    if _has([*every, *aliases], column.name) or not every:
        return None
    where = listed(item.alias_or_name or "a subquery" for item in items)
    return f"there is no column '{column.name}' in {where}{nearest(column.name, [*every, *aliases])}; {_columns(every)}"


def _of_table(column: exp.Column, items: Sequence[exp.Expr], names: ResultNames) -> str | None:
    aliases = [item.alias_or_name for item in items if item.alias_or_name]
    item = next((one for one in items if fold(one.alias_or_name) == fold(column.table)), None)
    if item is None:
        fields = [name for one in items for name in names.columns(one)]
        if _has(fields, column.table):  # a field of a struct
            return None
        return (
            f"there is no table or alias '{column.table}' in FROM{nearest(column.table, aliases)}; there "
            f"{'is' if len(aliases) == 1 else 'are'} {listed(aliases) or 'none'}"
        )
    known = names.columns(item)
    if not known or _has(known, column.name):
        return None
    return f"there is no column '{column.name}' in {column.table}{nearest(column.name, known)}; {_columns(known)}"


def _of_positions(select: exp.Select) -> str | None:
    """GROUP BY and ORDER BY of a position that the select list does not have."""
    count = len(select.expressions)
    if any(one.is_star for one in select.expressions):
        return None
    for key, clause in (("group", "GROUP BY"), ("order", "ORDER BY")):
        for one in select.args[key].expressions if select.args.get(key) else []:
            place = one.this if isinstance(one, exp.Ordered) else one
            if isinstance(place, exp.Literal) and place.is_int and not 1 <= int(place.this) <= count:
                return f"{clause} position {place.this} is not in the select list, which has {count} column(s)"
    return None


def _steps(select: exp.Select) -> list[str]:
    return [step.alias for step in all_of(select.root(), exp.CTE)]


def _natural(select: exp.Select) -> bool:
    return any((join.args.get("method") or "").upper() == "NATURAL" for join in select.args.get("joins") or [])


def _has(known: Sequence[str], name: str) -> bool:
    return fold(name) in {fold(one) for one in known}


def _columns(known: Sequence[str]) -> str:
    return f"its columns are {listed(dict.fromkeys(known))}"
