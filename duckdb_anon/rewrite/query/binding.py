"""Passes that bind the columns of a query to its tables: `passes` has them in order."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.optimizer.pushdown_projections import pushdown_projections
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.schema import MappingSchema

from duckdb_anon.model.errors import RewriteError, nearest
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.normalize import with_column_aliases
from duckdb_anon.rewrite.query.pivots import UNPIVOTED
from duckdb_anon.rewrite.query.tables import TableInfo, Tables, columns_of_item, same_table
from duckdb_anon.rewrite.query.trees import SOURCE, all_of, from_items, has_aggregate, is_original, step_of

_FOLDED = DuckDB(normalization_strategy="case_sensitive")
"""DuckDB's SQL whose names are folded: the library would fold letters that DuckDB tells apart."""
_IN_ANY_ORDER = (
    *(exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.LogicalAnd, exp.LogicalOr),
    *(exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop),
)
"""Aggregates for which ORDER BY among their arguments means nothing."""


def count_rows(tree: exp.Query, tables: Tables) -> None:
    """Write count(*) for count(t) with t a table of FROM, in place, and refuse its row anywhere else.

    DuckDB takes a row for a value that is never NULL, not even where a LEFT JOIN found none.
    """
    for select in all_of(tree, exp.Select):
        items = {fold(item.alias_or_name): item for item in from_items(select)}
        columns = [fold(name) for item in items.values() for name in columns_of_item(item, tables)]
        for star in [c for c in all_of(select, exp.Column) if isinstance(c.this, exp.Star) and c.parent is not select]:
            if isinstance(star.parent, exp.Count):  # a row in DuckDB 1.5, its columns in 2.0
                raise RewriteError(
                    f"count({star.table}.*) is not the same in every DuckDB; write count(*), or name a column"
                )
        for column in [c for c in all_of(select, exp.Column) if not c.table and fold(c.name) in items]:
            item = items[fold(column.name)]
            if column.find_ancestor(exp.Select) is not select or fold(column.name) in columns or not columns:
                continue
            if isinstance(column.parent, exp.Count):
                column.replace(exp.Star())
            elif column.find_ancestor(exp.Lambda) is None and isinstance(item, exp.Table):
                raise RewriteError(
                    f"{column.name} stands for complete rows, which the release does not show; name a column"
                )


def name_tables(tree: exp.Query, tables: Tables) -> None:
    """Give every known table of the query a plain one-part name: one flat schema serves them all."""
    read = [table for table in all_of(tree, exp.Table) if step_of(table) is None]
    for number, info in enumerate(tables):
        for table in read:
            if same_table(table, info) and not table.meta.get("known"):
                if not table.alias:
                    table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
                for key in ("db", "catalog"):
                    table.set(key, None)
                table.set("this", exp.to_identifier(f"{SOURCE}{number}", quoted=True))
                table.meta["known"] = True
                table.meta["info"] = info
                with_column_aliases(table, info)
    for column in all_of(tree, exp.Column):  # "main"."people"."region": the table's alias tells enough
        for key in ("db", "catalog"):
            column.set(key, None)


def spell_out_steps(tree: exp.Query, _: Tables) -> None:
    """Replace each CTE that only selects and filters by subqueries, so that all of its uses can be merged."""
    with_ = tree.args.get("with_") or tree.args.get("with")
    if not with_ or with_.args.get("recursive"):
        return
    for cte in list(with_.expressions):
        body = cte.this
        if not isinstance(body, exp.Select) or _aggregates(body) or cte.args["alias"].columns:
            continue
        name = cte.alias_or_name
        for table in [table for table in all_of(tree, exp.Table) if step_of(table) is cte]:
            inner = exp.Subquery(
                this=body.copy(), alias=exp.TableAlias(this=exp.to_identifier(table.alias or name, quoted=True))
            )
            inner.set("joins", table.args.get("joins"))
            table.replace(inner)
        cte.pop()
    if not with_.expressions:
        with_.pop()


def _aggregates(select: exp.Select) -> bool:
    if any(select.args.get(key) for key in ("group", "distinct", "limit", "offset", "qualify")):
        return True
    return any(e.find(exp.Window) or has_aggregate(e) for e in select.expressions)


def name_values(tree: exp.Query, _: Tables) -> None:
    """Give a subquery that is a column a name: sqlglot cannot tell which one ORDER BY means by its position else."""
    for select in all_of(tree, exp.Select):
        for position, node in enumerate(select.expressions):
            if isinstance(node, exp.Subquery):
                name = exp.to_identifier(node.alias or f"_col_{position}", quoted=True)
                bare = node.copy()
                bare.set("alias", None)
                node.replace(exp.Alias(this=bare, alias=name))


def drop_order_of_arguments(tree: exp.Query, _: Tables) -> None:
    """Take ORDER BY away among the arguments of aggregates for which it means nothing."""
    for order in [node for node in all_of(tree, exp.Order) if isinstance(node.parent, _IN_ANY_ORDER)]:
        order.replace(order.this)


def fold_names(tree: exp.Query, _: Tables) -> None:
    """Write all names in lower case, as DuckDB compares them."""
    for identifier in all_of(tree, exp.Identifier):
        identifier.set("this", fold(identifier.this))


def qualify_columns(tree: exp.Query, _: Tables) -> exp.Query:
    """Qualify all columns; spell out stars, ordinals and aliases."""
    named = {table.name: table.meta["info"] for table in all_of(tree, exp.Table) if "info" in table.meta}
    schema = MappingSchema(
        {name: dict.fromkeys(_names_of(tree, info, named.values()), "VARCHAR") for name, info in named.items()},
        dialect="duckdb",
        normalize=False,  # names are folded already, and each would be parsed
    )
    made = qualify(tree, schema=schema, dialect=_FOLDED, identify=True)
    return pushdown_projections(made) if UNPIVOTED in tree.meta else made


def _names_of(tree: exp.Query, info: TableInfo, tables: Collection[TableInfo]) -> list[str]:
    """Names of the columns of a table; of one that cannot be seen, as a temporary one, what its SELECTs read of it."""
    if info.columns:
        return [fold(name) for name, _ in info.columns]
    found: list[str] = []
    for select in all_of(tree, exp.Select):
        items = from_items(select)
        unseen = [item for item in items if item.meta.get("info") is info]
        if not unseen:
            continue
        others = [item.meta["info"] if "info" in item.meta else item for item in items if item not in unseen]
        known = {fold(name) for other in others for name in _columns_there(other, list(tables))}
        aliases = {fold(item.alias_or_name) for item in unseen}
        outputs = {fold(projection.alias) for projection in select.expressions if projection.alias}
        for column in all_of(select, exp.Column):
            clause = column.find_ancestor(exp.Order, exp.Group, exp.Having, exp.Qualify, exp.Select)
            named = known if isinstance(clause, exp.Select) else known | outputs
            own = not column.table and column.find_ancestor(exp.Select) is select and fold(column.name) not in named
            if own or fold(column.table) in aliases:
                found.append(fold(column.name))
    return found


def _columns_there(item: TableInfo | exp.Expr, tables: Sequence[TableInfo]) -> list[str]:
    return [name for name, _ in item.columns] if isinstance(item, TableInfo) else columns_of_item(item, tables)


def require_names(tree: exp.Query, _: Tables) -> None:
    """Raise for columns of HAVING and QUALIFY that stay without a table once a query is bound, and are no aliases."""
    for select in all_of(tree, exp.Select):
        aliases = {projection.alias_or_name for projection in select.expressions}
        for clause in (select.args[key] for key in ("having", "qualify") if select.args.get(key)):
            for column in all_of(clause, exp.Column):
                free = not column.table and column.find_ancestor(exp.Lambda) is None
                if free and column.find_ancestor(exp.Select) is select and column.name not in aliases:
                    raise RewriteError(f"there is no column '{column.name}'{nearest(column.name, aliases)}")


def distinct_aliases(tree: exp.Query, tables: Tables) -> None:
    """Give every use of the original an alias of its own, so that a column says which SELECT it belongs to."""
    columns = tables[0].types
    seen: set[str] = set()
    for scope in traverse_scope(tree):
        for alias, (node, source) in list(scope.selected_sources.items()):
            original = is_original(source)
            if not original and alias not in columns:
                continue
            fresh = alias
            while fresh in seen or fresh in columns:
                fresh += "_"
            seen.add(fresh)
            if fresh != alias:
                for column in scope.columns:
                    if column.table == alias:
                        column.set("table", exp.to_identifier(fresh, quoted=True))
                item: exp.Expr | None = node
                while item is not None and item.alias_or_name != alias:  # of a subquery, its SELECT is listed
                    item = item.parent
                assert item is not None  # noqa: S101 -- an alias is somebody's
                named = item.args.get("alias") or exp.TableAlias()
                named.set("this", exp.to_identifier(fresh, quoted=True))
                item.set("alias", named)
