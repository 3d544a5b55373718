"""From a query over the original to the same query over one weighted relation made of the release."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.scope import build_scope

from duckdb_anon.model.errors import listed, when_run
from duckdb_anon.model.identifier_case import fold
from duckdb_anon.model.release_formats.duckdb_types import is_enum, is_moment, is_number
from duckdb_anon.rewrite.aggregates import LINEAR, Quantile, read_quantile, weighted, weighted_quantile
from duckdb_anon.rewrite.factors import (
    BucketFactor,
    ColumnUse,
    CombinationsError,
    Factor,
    GeneralizedFactor,
    NotLinearError,
    SliceFactor,
    where_all,
)
from duckdb_anon.rewrite.interval_factor import IntervalFactor
from duckdb_anon.rewrite.query.parse import grounded
from duckdb_anon.rewrite.query.refusals import misspelt, single_row_reason
from duckdb_anon.rewrite.query.tables import TableInfo
from duckdb_anon.rewrite.query.trees import (
    SOURCE,
    QueryGroups,
    aggregate_nodes,
    all_of,
    columns_of,
    from_items,
    groups_of,
    is_original,
    quoted,
    reads_original,
    tree,
    without_filter,
)
from duckdb_anon.rewrite.release_model import ReleaseModel

MOST_COMBINATIONS = 10_000_000
"""Rows with values of their cells that a query makes at most: some hundred megabytes."""
_MANY = 100
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
STRICT = (exp.Sum, exp.Avg, exp.Count)
_ADDITIVE = (exp.Count, exp.CountIf, exp.Sum)
_PICKS = (exp.Coalesce, exp.Greatest, exp.Least, exp.Nullif)
_LISTS = ("any", "all", "some")
_VOLATILE = ("random", "uuid", "gen_random_uuid", "nextval", "setseed")


@dataclass(frozen=True)
class Estimated:
    """The estimate of an aggregate in a tree, and whether the estimates of groups add up to that of all of them."""

    node: exp.Expr
    additive: bool


@dataclass
class Steps:
    """CTEs in order.

    Attributes:
        taken: names of tables, folded, that a step must not hide.
        texts: name to SELECT.
    """

    taken: frozenset[str] = frozenset()
    texts: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, text: str) -> str:
        """Add a step under a name of its own; an equal one is used twice."""
        for earlier, other in self.texts.items():
            if other == text:
                return earlier
        while name in self.texts or fold(name) in self.taken:
            name += "_"
        self.texts[name] = text
        return name

    def attach(self, query: exp.Query, tables: Sequence[TableInfo], readable: bool) -> None:
        """Put the steps among those of a query, each after what it reads.

        Args:
            query: changed in place.
            tables: what the steps may read.
            readable: lay the steps out for people; parsing them takes longer than the rest of a plan.
        """
        with_ = query.args.get("with_")
        as_they_are = not readable and with_ is None and not any(SOURCE in text for text in self.texts.values())
        made = [
            exp.CTE(
                this=exp.Var(this=text) if as_they_are else grounded(parsed(text), tables),
                alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)),
                materialized=True,
            )
            for name, text in self.texts.items()
        ]
        if not made:
            return
        if with_ is None:
            query.set("with_", exp.With(expressions=made))
        else:
            with_.set("expressions", _merged(made, with_.expressions))


def _merged(steps: Sequence[exp.CTE], written: Sequence[exp.CTE]) -> list[exp.CTE]:
    """Steps and CTEs of a query in one order: each step after what it reads, the query's own in their order."""
    local = {fold(step.alias) for step in written}
    placed: list[exp.CTE] = []
    missing = set(local)
    waiting = list(steps)
    for cte in [*written, None]:
        later = []
        for step in waiting:
            if missing.isdisjoint(fold(table.name) for table in all_of(step.this, exp.Table)):
                placed.append(step)
            else:
                missing.add(fold(step.alias))
                later.append(step)
        waiting = later
        if cte is not None:
            placed.append(cte)
            missing = local - {fold(node.alias) for node in placed}
    return placed


def parsed(text: str) -> exp.Query:
    """A SELECT as a tree."""
    found = sqlglot.parse_one(text, dialect="duckdb")
    assert isinstance(found, exp.Query)  # noqa: S101 -- steps are SELECTs
    return found


def compile_tree(tree: exp.Query, release: TableInfo, original: TableInfo, model: ReleaseModel, steps: Steps) -> None:
    """Rewrite a bound query over the original into one over the release, in place."""
    if model.person in {fold(column.name) for column in all_of(tree, exp.Column)}:
        raise NotLinearError(
            f"'{model.person}' is not in the release, so individuals are distinguished in plausible tables"
        )
    for select in [select for select in all_of(tree, exp.Select) if reads_original(select)]:
        if select.root() is tree.root():  # of equal keys one is read
            Block(select, model, release, original, steps).rewrite()


class Block:
    """One SELECT that reads the original, turned into one over weighted rows."""

    def __init__(
        self, select: exp.Select, model: ReleaseModel, release: TableInfo, original: TableInfo, steps: Steps
    ) -> None:
        """Find what the SELECT asks of the original's columns."""
        self.select, self.model, self.steps, self.release, self.original = select, model, steps, release, original
        items = [source for source in from_items(select) if is_original(source)]
        if len(items) != 1:
            raise NotLinearError(
                f"{original.name} is joined with itself: a release does not say which rows belong together"
            )
        self.item = items[0]
        self.exact: dict[str, str] = dict(model.exact)
        joined = [
            join for join in select.args.get("joins") or [] if join.this is self.item or join.method == "POSITIONAL"
        ]
        if any(node.method in ("ASOF", "POSITIONAL") for node in joined):
            raise NotLinearError(f"ASOF and POSITIONAL JOIN take single rows of {original.name}")
        self.alias = self.item.alias_or_name
        self.columns = [
            node for node in all_of(select, exp.Column) if node.table == self.alias and node.find_ancestor(exp.Select)
        ]
        for column in self.columns:
            model.require(fold(column.name), release.name)
        self.read = {fold(node.name) for node in self.columns}
        for column in self.columns:
            inner = column.find_ancestor(exp.Select)
            while inner is not None and inner is not select:
                if reads_original(inner):
                    raise NotLinearError("a subquery of the original is correlated with the original")
                inner = inner.find_ancestor(exp.Select)

    def rewrite(self) -> None:
        """Rewrite in place."""
        reason = single_row_reason(self.select)
        if reason:
            raise NotLinearError(f"{reason}, and no row of a release is known to be the original's")
        aggregates = list(aggregate_nodes(self.select))
        factors = self.factors()
        is_rows = not aggregates and not self.select.args.get("group") and not self.select.args.get("distinct")
        if not factors and self.model.weight == "1" and (not is_rows or self.select.parent_select is not None):
            self._exact()
            return
        if is_rows:
            raise NotLinearError(
                f"a SELECT of rows of {self.original.name} without an aggregate shows single records"
                f"{misspelt(self.select)}"
            )
        if any(all_of(projection, exp.Window) for projection in self.select.expressions if not aggregates):
            raise NotLinearError("a window function goes through single records")
        self._require_presence(factors, aggregates)
        carried = {column: sql for column, sql in self.exact.items() if column in self.read}
        if self._is_of_each_row(factors):
            self.exact = {column: f"r.{quoted(column)}" for column in carried}
        conditions, exact_conditions = self.push_conditions(factors)
        moments: dict[str, str] = {}
        quantiles = {
            id(aggregate): found for aggregate in aggregates if (found := read_quantile(aggregate)) is not None
        }
        groups = None if self._is_correlated() else groups_of(self.select)
        estimates = self._weigh([aggregate for aggregate in aggregates if id(aggregate) not in quantiles], moments)
        left = {
            fold(column.name)
            for column in all_of(self.select, exp.Column)
            if column.table == self.alias and column.parent
        }
        if self._is_of_each_row(factors):
            self._relation_of_each_row(factors[0], carried, conditions, exact_conditions, left, moments)
        else:
            uses = {column: self.use(column, conditions) for column in self.read}
            self._relation(factors, conditions, exact_conditions, left, uses, moments)
        estimates += self._add_quantiles(
            [(aggregate, quantiles[id(aggregate)]) for aggregate in aggregates if id(aggregate) in quantiles]
        )
        if groups is not None and groups.keys:
            keep_likely_groups(self.select, groups, estimates, self.weight(), f"_{self.alias}_groups")

    def _is_correlated(self) -> bool:
        """Whether a row of a query around it decides what the SELECT reads."""
        scope = build_scope(self.select) if self.select.parent is not None else None
        return scope is not None and bool(scope.external_columns)

    def _require_presence(self, factors: Sequence[Factor], aggregates: Sequence[exp.Expr]) -> None:
        """Refuse joins whose rows without a match depend on values that the release does not show."""
        types = {(join.kind or "").upper() for join in self.select.args.get("joins") or [] if join.this is self.item}
        if types & {"SEMI", "ANTI"}:
            raise NotLinearError(f"{self.original.name} stands on the optional side of {types.pop()} JOIN")
        if self.preserved:
            return
        conditions = [join.args["on"] for join in self.select.args.get("joins") or [] if join.args.get("on")]
        selected = {
            fold(column.name) for on in conditions for column in all_of(on, exp.Column) if column.table == self.alias
        }
        if self.model.weight == "1" and selected <= self.exact.keys():
            return
        reads_columns = all(
            columns_of(aggregate, self.alias) and isinstance(without_filter(aggregate)[0], STRICT)
            for aggregate in aggregates
        )
        where = self.select.args.get("where")
        parts = list(where.this.flatten()) if where is not None and isinstance(where.this, exp.And) else []
        parts = parts or ([where.this] if where is not None else [])
        if not reads_columns or not all(self._rejects_null(part) for part in parts):
            raise NotLinearError(f"{self.original.name} stands on the optional side of an outer join")

    def _rejects_null(self, condition: exp.Expr) -> bool:
        """Whether a condition is never true of a row of NULLs in the place of the original, or does not read it."""
        columns = [column for column in all_of(condition, exp.Column) if column.table == self.alias]
        compares = isinstance(condition, (*_COMPARISONS[:6], exp.Between, exp.In, exp.Like))
        return not columns or (compares and any(isinstance(column.parent, type(condition)) for column in columns))

    def _add_quantiles(self, requested: Sequence[tuple[exp.Expr, Quantile]]) -> list[Estimated]:
        """Let quantiles be read from steps that have them for each group."""
        if not requested:
            return []
        if len(self.sets()) > 1:
            raise NotLinearError("the query has quantiles of several grouping sets")
        keys = self.sets()[0]
        source = exp.Select(expressions=[])
        for part in ("from_", "joins", "where"):
            value = self.select.args.get(part)
            source.set(part, [node.copy() for node in value] if isinstance(value, list) else value and value.copy())
        if any(reads_original(select) for select in all_of(source, exp.Select)):
            raise NotLinearError("the query has quantiles of rows that a subquery of the original picks")
        if self._is_correlated():
            raise NotLinearError("a correlated subquery has quantiles")
        found = []
        for number, (node, quantile) in enumerate(requested):
            self._require_ordered(quantile)
            text = weighted_quantile(quantile, keys, self.weight(), source)
            step = self.steps.add(f"quantile_{number + 1}", text)
            alias = f"_quantile_{number + 1}"
            if keys:
                join_step(self.select, step, alias, keys)
            selected = f"any_value({alias}.value)" if keys else f"any_value((select value from {quoted(step)}))"
            made = exp.Var(this=selected)
            node.replace(made)
            found.append(Estimated(made, additive=False))
        return found

    def _require_ordered(self, quantile: Quantile) -> None:
        """Raise unless values lie between others: numbers that are no decimals, or any where one of them is taken."""
        value = quantile.value.unnest()
        types = [self.original.types.get(fold(column.name), "") for column in all_of(value, exp.Column)]
        if isinstance(value, exp.Cast):
            types = [value.to.sql("duckdb")]
        if quantile.continuous and not all(is_number(kind) and "DECIMAL" not in kind.upper() for kind in types):
            raise NotLinearError("a median of anything but plain numbers has the digits of its type")

    def sets(self) -> tuple[tuple[exp.Expr, ...], ...]:
        """The keys of each grouping set."""
        return groups_of(self.select).sets

    def factors(self) -> list[Factor]:
        """The factors that the query reads; of slices, the one with most columns is read from the row itself."""
        used = [factor for factor in self.model.factors if set(factor.columns) & self.read or factor.counted]
        slices = [factor for factor in used if isinstance(factor, SliceFactor) and not factor.generalized]
        # exact columns belong to the released row, and slices were permuted apart from them
        if slices and not self.read & self.model.exact.keys():
            first = max(slices, key=lambda node: len(set(node.columns) & self.read))
            self.exact = {**self.model.exact, **dict(first.fields)}
            return [factor for factor in used if factor is not first]
        self.exact = dict(self.model.exact)
        return used

    def _exact(self) -> None:
        """Nothing that is read was changed: the release's columns stand for the original's."""
        columns = ", ".join(f"{self.exact[column]} as {quoted(column)}" for column in sorted(self.read)) or "1 as one"
        name = self.steps.add("released", f"select {columns} from {self.release.sql} as r")
        self._replace(name)

    def _replace(self, step: str) -> None:
        self.item.set("this", exp.to_identifier(step, quoted=True))

    @property
    def preserved(self) -> bool:
        """Whether every row of the original that passes WHERE is in the answer, whatever it is joined to."""
        position = next(k for k, source in enumerate(from_items(self.select)) if source is self.item)
        for number, join in enumerate(self.select.args.get("joins") or [], 1):
            side = (join.side or "").upper()
            if side == "FULL" or (side == "LEFT" and number == position) or (side == "RIGHT" and number > position):
                return False
        return True

    def push_conditions(self, factors: Sequence[Factor]) -> tuple[dict[str, list[exp.Expr]], list[str]]:
        """Move conjuncts of WHERE that read one factor alone, or exact columns alone, to where they are decided."""
        found: dict[str, list[exp.Expr]] = {factor.name: [] for factor in factors}
        exact: list[str] = []
        where = self.select.args.get("where")
        if where is None or not self.preserved:
            return found, exact
        left = []
        for part in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
            columns = list(all_of(part, exp.Column))
            names = {fold(c.name) for c in columns}
            home = {next((f.name for f in factors if c in f.columns), "") for c in names}
            if any(c.table != self.alias for c in columns) or all_of(part, exp.Query) or len(home) != 1:
                left.append(part)
            elif home == {""}:
                exact.append(self.over_row(part))
            else:
                found[home.pop()].append(part)
        self.select.set("where", exp.Where(this=exp.and_(*left, copy=False)) if left else None)
        return found, exact

    def over_row(self, node: exp.Expr) -> str:
        """SQL of an expression over exact columns, over a released row."""
        made = node.copy()
        for column in list(all_of(made, exp.Column)):
            cell = exp.Var(this=f"({self.exact[fold(column.name)]})")
            if column is made:
                return str(cell.this)
            column.replace(cell)
        return made.sql("duckdb")

    def plain(self, node: exp.Expr) -> str:
        """SQL of an expression over a factor's columns."""
        holder = exp.Paren(this=node.copy())
        for column in all_of(holder, exp.Column):
            column.set("table", None)
            kind = self.original.types.get(fold(column.name), "")
            if is_enum(kind):
                column.replace(exp.cast(column.copy(), kind, dialect="duckdb"))
        return str(holder.this.sql("duckdb"))

    def _weigh(self, aggregates: Sequence[exp.Expr], moments: dict[str, str]) -> list[Estimated]:
        """Replace each aggregate by its estimate; sums over exact columns alone are added up before rows are spread."""
        weight, found = self.weight(), []
        for node in aggregates:
            outer, where = node, None
            if isinstance(node, exp.Filter):
                node, where = node.this, node.expression.this
            if isinstance(node, exp.Avg) and self._is_moment(node.this.unnest()):
                raise NotLinearError("a mean of dates or times is no ratio of sums")
            if isinstance(node, (exp.Sum, exp.Avg)) and not isinstance(node.this, exp.Distinct):
                node.set("this", as_number(node.this, self.original))
            reads = [column for part in (node, where) if part is not None for column in all_of(part, exp.Column)]
            exact = self.preserved and all(read.table == self.alias and fold(read.name) in self.exact for read in reads)
            if reads and exact and isinstance(node, LINEAR) and not isinstance(node.this, exp.Distinct):
                made = self._added_before(node, where, moments)
            else:
                made = weighted(node, where, weight)
            made = exp.Paren(this=made) if isinstance(made, exp.Binary) else made
            outer.replace(made)
            found.append(Estimated(made, isinstance(node, _ADDITIVE)))
        return found

    def _is_moment(self, node: exp.Expr) -> bool:
        """Whether an expression may be a date or a time."""
        if isinstance(node, exp.Column):
            return is_moment(self.original.types.get(fold(node.name), ""))
        if isinstance(node, exp.Cast):
            return is_moment(node.to.sql("duckdb"))
        passed_on = (exp.Add, exp.Sub, exp.Case, exp.If, *_PICKS)
        return isinstance(node, (exp.DateTrunc, exp.TimestampTrunc)) or (
            isinstance(node, passed_on) and any(map(self._is_moment, all_of(node, exp.Column, exp.Cast)))
        )

    def _added_before(self, node: exp.Expr, where: exp.Expr | None, moments: dict[str, str]) -> exp.Expr:
        """An aggregate of exact columns from sums and counts of the released rows."""
        condition = f" filter (where {self.over_row(where)})" if where is not None else ""
        rows = self.model.weight

        def moment(text: str) -> exp.Expr:
            name = (
                next((moment for moment, expression in moments.items() if expression == text), None)
                or f"moment_{len(moments) + 1}"
            )
            moments[name] = text
            return exp.Mul(this=self._step_column("share"), expression=self._step_column(name))

        def summed(text: str) -> exp.Expr:
            return exp.Sum(this=moment(text))

        if isinstance(node, exp.CountIf):
            test = self.over_row(node.this)
            return summed(f"sum(case when {test} then {rows} when not ({test}) then 0 end){condition}")
        if isinstance(node, exp.Count) and (node.this is None or isinstance(node.this, (exp.Star, exp.Literal))):
            return exp.Coalesce(this=summed(f"sum({rows}){condition}"), expressions=[exp.Literal.number(0)])
        argument = self.over_row(node.this)
        present = f"sum(case when ({argument}) is not null then {rows} end){condition}"
        if isinstance(node, exp.Count):
            return exp.Coalesce(this=summed(present), expressions=[exp.Literal.number(0)])
        amount = f"sum({argument})" if rows == "1" else f"sum({rows} * ({argument}))"
        total = summed(f"{amount}{condition}")
        return total if isinstance(node, exp.Sum) else exp.Div(this=total, expression=summed(present), typed=False)

    def weight(self) -> exp.Expr:
        """The weight of a row of FROM: one row of NULLs where the original is optional in a join and has no match."""
        weight = self._step_column("weight")
        return weight if self.preserved else exp.Coalesce(this=weight, expressions=[exp.Literal.number(1)])

    def _step_column(self, name: str) -> exp.Column:
        return exp.column(f"_{name}", table=self.alias, quoted=True)

    def use(
        self,
        column: str,
        conditions: Mapping[str, Sequence[exp.Expr]],
        monotone: tuple[type[exp.Expr], ...] = (),
    ) -> ColumnUse:
        """What the query asks of a column."""
        constants: list[str] = []
        degree = 0
        roots = [self.select, *(node for group in conditions.values() for node in group)]
        for root in roots:
            for node in all_of(root, exp.Column):
                if node.table != self.alias or fold(node.name) != column:
                    continue
                compared = constants_beside(node)
                if compared is not None:
                    constants += compared
                else:
                    degree = max(degree, _degree_of_use(node, column, monotone))
        return ColumnUse(tuple(dict.fromkeys(constants)), degree > 1, degree > 0)

    def _relation(
        self,
        factors: Sequence[Factor],
        conditions: dict[str, list[exp.Expr]],
        exact_conditions: Sequence[str],
        left: set[str],
        uses: dict[str, ColumnUse],
        moments: dict[str, str],
    ) -> None:
        """Write the steps: released rows grouped by equal cells, values of each factor, and the weighted relation."""
        exact = [column for column in sorted(left) if column in self.exact]
        columns = [f"{self.exact[node]} as {quoted(node)}" for node in exact]
        columns += [f"{factor.cell} as {cell_name(factor)}" for factor in factors]
        rows = "count(*)" if self.model.weight == "1" else f"sum({self.model.weight})"
        numbers = [f"{rows} as _records", *(f"{text} as _{name}" for name, text in moments.items())]
        where = where_all(exact_conditions)
        released = self.steps.add(
            "released",
            f"select {', '.join([*columns, *numbers])} from {self.release.sql} as r{where} group by all",
        )
        joins, columns, share = self.spread_over(released, bool(exact_conditions), factors, uses, conditions, left)
        selected = [*(f"g.{quoted(node)}" for node in exact), *columns]
        numbers = [f"{share} as _share", f"g._records * {share} as _weight", *(f"g._{m}" for m in moments)]
        text = f"select {', '.join([*selected, *numbers])} from {quoted(released)} as g {' '.join(joins)}"
        self._replace(self.steps.add("weighted", text))

    def _is_of_each_row(self, factors: Sequence[Factor]) -> TypeGuard[Sequence[BucketFactor]]:
        """Whether rows are spread over the values of their bucket alone, one by one."""
        return len(factors) == 1 and isinstance(factors[0], BucketFactor) and self.model.weight == "1"

    def _relation_of_each_row(
        self,
        factor: BucketFactor,
        carried: Mapping[str, str],
        conditions: Mapping[str, Sequence[exp.Expr]],
        exact_conditions: Sequence[str],
        left: set[str],
        moments: Mapping[str, str],
    ) -> None:
        """Write the steps as `_relation` does: rows that have equal shares are counted before they are weighed.

        Whole numbers are multiplied before they are divided, so that all records of a bucket are whole again.
        """
        column = factor.columns[0]
        keys = [f"r.{quoted(node)}" for node in sorted(left) if node in self.exact or node == column]
        numbers = ["count(*) as _records", *(f"{text} as _{name}" for name, text in moments.items())]
        nulls = not any(map(self._rejects_null, conditions[factor.name]))
        rows = factor.of_each_row(carried, exact_conditions, nulls)
        where = where_all(["r._hits > 0", *map(self.plain, conditions[factor.name])])
        selected = ", ".join([*keys, "r._hits", "r._total", *numbers])
        released = self.steps.add("released", f"select {selected} from ({rows}) as r{where} group by all")
        columns = [f"g.{quoted(node)}" for node in sorted(left) if node in self.exact]
        columns += [self.typed(column, f"g.{quoted(column)}")] if column in left else []
        weighed = [f"g._{name} * g._hits / g._total as _{name}" for name in moments]
        numbers = ["1 as _share", "g._records * g._hits / g._total as _weight", *weighed]
        text = f"select {', '.join([*columns, *numbers])} from {quoted(released)} as g"
        self._replace(self.steps.add("weighted", text))

    def spread_over(
        self,
        step: str,
        filtered: bool,
        factors: Sequence[Factor],
        uses: Mapping[str, ColumnUse],
        conditions: Mapping[str, Sequence[exp.Expr]],
        left: Collection[str],
    ) -> tuple[list[str], list[str], str]:
        """Joins of grouped rows `g` with the values of each factor, the columns of these, and the product of shares."""
        joins, columns, shares, spelled = [], [], [], []
        for node in factors:
            needed = [c for c in node.columns if c in left]
            requested = {c: uses[c] for c in node.columns if c in self.read}
            factor = self.of_step(node, step, filtered)
            if isinstance(factor, SliceFactor):
                fields = tuple(
                    self.with_shares(field) if field.name in self.read else field for field in factor.generalized
                )
                factor = replace(factor, generalized=fields)
            elif isinstance(factor, GeneralizedFactor) and isinstance(node, GeneralizedFactor):
                factor = replace(factor, shares=self.with_shares(node).shares)
            if isinstance(factor, IntervalFactor):
                ends = self.steps.add(f"{node.name}_ends", factor.ends_of_cells())
                factor = replace(factor, ends=quoted(ends))
            text = factor.values(requested, [self.plain(c) for c in conditions[node.name]], needed)
            values, alias = self.steps.add(f"{node.name}_values", text), quoted(f"v_{node.name}")
            joins.append(f"join {quoted(values)} as {alias} on g.{cell_name(node)} is not distinct from {alias}._cell")
            columns += [self.typed(c, f"{alias}.{quoted(c)}") for c in needed]
            shares.append(f"{alias}._share")
            if needed:
                conditioned = [self.plain(c) for c in conditions[node.name]]
                number = factor.numbers_of_values(f"from {quoted(values)}", requested, conditioned)
                spelled.append((node, number, node.most_values(requested)))
        self.require_fit(step, spelled)
        return joins, columns, " * ".join(shares) or "1.0"

    def require_fit(self, step: str, spelled: Sequence[tuple[Factor, str, str]]) -> None:
        """Raise where rows with every combination of the values of their cells are more than memory should hold.

        Args:
            step: the step with the rows.
            spelled: factors, each with SELECT of its cells and their numbers of values, and the most these can be.
        """
        number, source = self.release.number, quoted(step)
        if number is None or not spelled:
            return
        product = " * ".join(f"({most})::double" for _, _, most in spelled) if all(m for _, _, m in spelled) else ""
        rows = number(f"select count(*) from {self.release.sql} as r")
        limit = max(MOST_COMBINATIONS, 4 * rows)
        if product and number(f"select count(*) * {product} from {self.release.sql} as r") <= limit:
            return
        joins = " ".join(
            f"join ({text}) as n{k} on g.{cell_name(factor)} is not distinct from n{k}._cell"
            for k, (factor, text, _) in enumerate(spelled)
        )
        product = " * ".join(f"n{k}.n" for k, _ in enumerate(spelled))
        steps = ", ".join(f"{quoted(name)} as ({text})" for name, text in self.steps.texts.items())
        found = number(f"with {steps} select coalesce(sum({product}), 0) from {source} as g {joins}")
        if found > limit:
            columns = [column for factor, _, _ in spelled for column in factor.columns if column in self.read]
            raise CombinationsError(
                f"rows of {self.release.name} may stand for {found:,.0f} combinations of values of {listed(columns)}, "
                f"and at most {limit:,.0f} are gone through; ask for fewer of these columns at once"
            )

    def with_shares(self, factor: GeneralizedFactor) -> GeneralizedFactor:
        """A factor with the step that holds its learnt shares."""
        text = factor.learnt_shares()
        if not text:
            return factor
        return replace(factor, shares=quoted(self.steps.add(f"{factor.name}_shares", text)))

    def typed(self, column: str, sql: str) -> str:
        """A value of a factor's column: an ENUM has the order of its type, which a text does not have."""
        kind = self.original.types.get(column, "")
        return f"{sql}::{kind} as {quoted(column)}" if is_enum(kind) else sql

    def of_step(self, factor: Factor, step: str, filtered: bool) -> Factor:
        """A factor whose cells are read from a step, where that has all of the release's, so that it is read once."""
        if isinstance(factor, GeneralizedFactor) and not filtered and self.model.weight == "1":
            return factor.of_step(quoted(step), cell_name(factor))
        return factor


def as_number(node: exp.Expr, original: TableInfo) -> exp.Expr:
    """What is added up, as something that a weight multiplies: a boolean is 1 or 0."""
    return node if _is_number(node, original) else exp.cast(node.copy(), exp.DType.DOUBLE)


def _is_number(node: exp.Expr, original: TableInfo) -> bool:
    """Whether an expression is a number for certain."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        return is_number(original.types.get(fold(node.name), ""))
    if isinstance(node, (exp.Case, exp.If)):
        branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        values = [branch.args["true"] for branch in branches] + [node.args.get("default"), node.args.get("false")]
        return all(_is_number(value, original) for value in values if value is not None)
    numeric = isinstance(node, exp.Cast) and node.to.is_type(*exp.DataType.NUMERIC_TYPES)
    return numeric or isinstance(node, (exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Null)) or node.is_number


NO_GROUP = (
    "most records are in groups with an estimated count below half a record, so the release does not say which groups "
    "exist; group by fewer columns"
)


def keep_likely_groups(
    select: exp.Select, groups: QueryGroups, estimates: Sequence[Estimated], weight: exp.Expr, alias: str
) -> None:
    """Leave out groups of fewer than half a record, in place, and let those that stay add up to all records.

    SELECT sex, sum(_weight) FROM w GROUP BY sex    becomes
    SELECT g._k0, g._a0 * g._scale FROM (
      SELECT *, <all records / records of groups that stay> AS _scale, _n >= 0.5 AS _stays
      FROM (SELECT sex AS _k0, sum(_weight) AS _a0, sum(_weight) AS _n FROM w GROUP BY 1)) AS g
    WHERE g._stays

    HAVING, windows, ORDER BY and LIMIT hold of the groups that stay.
    """
    several = len(groups.sets) > 1
    clauses = [select.args[key] for key in ("having", "qualify", "order", "distinct") if select.args.get(key)]
    # the nodes themselves are moved, as their subqueries are still to be rewritten
    named: dict[str, exp.Expr] = {f"_k{number}": key for number, key in enumerate(groups.keys)}
    marks = dict.fromkeys(node for c in [*select.expressions, *clauses] for node in all_of(c, exp.Grouping))
    named |= {f"_g{number}": node for number, node in enumerate(marks)}
    for number, estimate in enumerate(estimates):
        read: exp.Expr = exp.column(f"_a{number}", table=alias, quoted=True)
        if estimate.additive:
            scaled = exp.Mul(this=read, expression=exp.column("_scale", table=alias, quoted=True))
            read = exp.Paren(this=scaled)
        estimate.node.replace(read)
        named[f"_a{number}"] = estimate.node
    # larger ones first: a key may be a part of another
    keys = [name for name in named if name.startswith(("_k", "_g"))]
    for name in sorted(keys, key=lambda name: -sum(1 for _ in named[name].walk())):
        _read_instead(select, clauses, named[name], exp.column(name, table=alias, quoted=True))
    group, having = select.args["group"], select.args.get("having")
    if several:
        named |= {name: key.copy() for name, key in named.items() if name.startswith("_k")}
    else:
        group = exp.Group(expressions=[exp.Literal.number(number + 1) for number, _ in enumerate(groups.keys)])
    named["_n"] = tree("sum({w})", w=weight)
    if several:
        named["_level"] = groups.level()
    level = exp.column("_level") if several else None
    scale, likely = _scale_and_likely(exp.column("_n"), level)
    if level is not None and any(not keys for keys in groups.sets):  # the total of all records is a row, however few
        total = exp.EQ(this=level.copy(), expression=exp.Literal.number(groups.level_of(())))
        likely = exp.Or(this=likely, expression=total)
    inner = exp.Select(
        expressions=[exp.Alias(this=node, alias=exp.to_identifier(name)) for name, node in named.items()],
        group=group,
        **{part: select.args.get(part) for part in ("from_", "joins", "where")},
    )
    # windows read columns of a step of their own, as Spark has no QUALIFY
    counted = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("_counted")))
    judged = exp.Select(
        expressions=[exp.Star(), exp.alias_(scale, "_scale"), exp.alias_(likely, "_stays")],
        from_=exp.From(this=counted),
    )
    source = exp.Subquery(this=judged, alias=exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    select.set("from_", exp.From(this=source))
    for part in ("joins", "group", "having"):
        select.set(part, None)
    stays: exp.Expr = exp.column("_stays", table=alias, quoted=True)
    select.set("where", exp.Where(this=stays if having is None else exp.and_(stays, having.this, copy=False)))


def _scale_and_likely(rows: exp.Expr, level: exp.Expr | None) -> tuple[exp.Expr, exp.Expr]:
    """What estimates of groups that stay are multiplied by, level by level, and whether a group stays.

    Where most records are in groups of fewer than half a record, to spread them would only make others too large.
    """

    def over(function: str, parts: Sequence[exp.Expr] = ()) -> exp.Expr:
        return exp.Window(this=tree(function, n=rows), partition_by=[part.copy() for part in parts] or None)

    parts, stays = [] if level is None else [level], "sum(case when {n} >= 0.5 then {n} else 0 end)"
    scale = tree(
        "case when {kept} >= {all} / 2 then {all} / {kept} else 1 end",
        kept=over(stays, parts),
        all=over("sum({n})", parts),
    )
    likely = tree(
        "case when {kept} < {all} / 2 and {all} >= 0.5 then error({why}) else {n} >= 0.5 end",
        n=rows, kept=over(stays), all=over("sum({n})"), why=exp.Literal.string(when_run(NO_GROUP)),
    )  # fmt: skip
    return scale, likely


def _read_instead(select: exp.Select, clauses: Sequence[exp.Expr], node: exp.Expr, column: exp.Expr) -> None:
    """Read a column of the groups wherever a SELECT has an expression of them, in place."""
    for projection in [*select.expressions, *clauses]:
        for found in [other for other in all_of(projection, type(node)) if other == node]:
            if found.find_ancestor(exp.Select) is None:
                continue
            made: exp.Expr = column.copy()
            if found is projection:  # an output column keeps its name
                made = exp.alias_(made, found.alias_or_name, quoted=True)
            found.replace(made)


def cell_name(factor: Factor) -> str:
    """The column of a step that holds a factor's cells."""
    return quoted(f"_cell_{factor.name}")


def join_step(select: exp.Select, step: str, alias: str, keys: Sequence[exp.Expr]) -> None:
    """Join a step with a row for each group, whose keys are k0, k1, ..., to the rows of a SELECT."""
    on = " and ".join(f"{alias}._k{i} is not distinct from ({key.sql('duckdb')})" for i, key in enumerate(keys))
    source = exp.Table(this=exp.to_identifier(step, quoted=True), alias=exp.TableAlias(this=exp.to_identifier(alias)))
    select.append("joins", exp.Join(this=source, side="LEFT", on=exp.Var(this=on)))


def constants_beside(column: exp.Column) -> list[str] | None:
    """The constants that a column is compared with, [] for a test of NULL, None where it is not only compared."""
    node: exp.Expr = column
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    parent = node.parent
    if isinstance(parent, _COMPARISONS):
        other = parent.expression if parent.this is node else parent.this
        single = not isinstance(other, (exp.Any, exp.All, exp.Array, exp.Tuple)) and fold(other.name) not in _LISTS
        return [other.sql("duckdb")] if single and _constant(other) else None
    if isinstance(parent, exp.Between) and parent.this is node:
        ends = [parent.args["low"], parent.args["high"]]
        return [end.sql("duckdb") for end in ends] if all(map(_constant, ends)) else None
    if isinstance(parent, exp.In) and parent.this is node and parent.expressions and not parent.args.get("query"):
        return (
            [projection.sql("duckdb") for projection in parent.expressions]
            if all(map(_constant, parent.expressions))
            else None
        )
    if isinstance(parent, exp.Is) and parent.this is node and isinstance(parent.expression, exp.Null):
        return []
    return None


def _constant(node: exp.Expr) -> bool:
    """Whether an expression is the same for every row."""
    if all_of(node, exp.Column, exp.Query, exp.Placeholder, exp.Parameter):
        return False
    return not any(item.name.lower() in _VOLATILE for item in all_of(node, exp.Anonymous, exp.Rand, exp.Uuid))


def _degree_of_use(column: exp.Column, name: str, monotone: tuple[type[exp.Expr], ...]) -> int:
    """Of which degree in a column the aggregate around it is; `_MANY` where all of its values must be listed."""
    node: exp.Expr | None = column
    while node is not None and not isinstance(node, exp.AggFunc):
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return _MANY if _degree(node.this, name) >= _MANY else 0
        if isinstance(node, exp.Filter) or isinstance(node.parent, exp.Query):
            return _MANY
        node = node.parent
    if node is None or not isinstance(node, (*STRICT, *monotone)):
        return _MANY
    if isinstance(node, exp.Count):
        only_null = isinstance(node.this, exp.Column)
        return 1 if only_null else _MANY
    return _degree(node.this, name)


def _degree(node: exp.Expr, name: str) -> int:
    """Degree of an expression as a polynomial of a column, `_MANY` where it is none."""
    if isinstance(node, exp.Column) and fold(node.name) == name:
        return 1
    if not any(fold(column.name) == name for column in all_of(node, exp.Column)):
        return 0
    if isinstance(node, (exp.Paren, exp.Neg)):
        return _degree(node.this, name)
    if isinstance(node, (exp.Add, exp.Sub)):
        return max(_degree(node.this, name), _degree(node.expression, name))
    if isinstance(node, exp.Mul):
        return _degree(node.this, name) + _degree(node.expression, name)
    if isinstance(node, exp.Div):
        return _degree(node.this, name) + _MANY * _degree(node.expression, name)
    if isinstance(node, exp.Coalesce) and all(map(_constant, node.expressions)):
        return _degree(node.this, name)
    if isinstance(node, (exp.Case, exp.If)):
        branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        tests = [branch.this for branch in branches] + ([node.this] if isinstance(node, exp.Case) and node.this else [])
        tested = [column for test in tests for column in all_of(test, exp.Column) if fold(column.name) == name]
        if any(constants_beside(node) is None for node in tested):
            return _MANY
        values = [branch.args.get("true") for branch in branches] + [node.args.get("default"), node.args.get("false")]
        return max(_degree(value, name) for value in values if value is not None)
    return _MANY
