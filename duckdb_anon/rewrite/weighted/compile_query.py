"""From a query over the original to the same query over one weighted relation made of the release."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.query.aggregate_nodes import _outermost as aggregate_nodes_of
from duckdb_anon.rewrite.query.aggregate_nodes import aggregate_nodes
from duckdb_anon.rewrite.query.parse import (
    from_items,
    grounded,
    is_original,
    reads_original,
)
from duckdb_anon.rewrite.query.tables import Bounds, TableInfo
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.weighted.aggregates import LINEAR, NotLinearError, weighted
from duckdb_anon.rewrite.weighted.bounds import Measure, hard_bounds, intervals, read_measure
from duckdb_anon.rewrite.weighted.factors import (
    ColumnUse,
    Factor,
    RandomizedFactor,
    SliceFactor,
    quoted,
    where_all,
)
from duckdb_anon.rewrite.weighted.interval_factor import IntervalFactor
from duckdb_anon.rewrite.weighted.release_model import ReleaseModel

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_GROUPING_SETS = (exp.Cube, exp.Rollup, exp.GroupingSets)
_VOLATILE = ("random", "uuid", "gen_random_uuid", "nextval", "setseed")


@dataclass(frozen=True)
class Compiled:
    """A rewritten query, and the confidence of each output column that has low and high behind all others."""

    tree: exp.Query
    bounded: Mapping[int, float]


@dataclass
class Steps:
    """CTEs in order."""

    texts: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, text: str) -> str:
        """Add a step under a name of its own; an equal one is used twice."""
        for known, other in self.texts.items():
            if other == text:
                return known
        while name in self.texts:
            name += "_"
        self.texts[name] = text
        return name


def compile_tree(
    tree: exp.Query,
    release: TableInfo,
    tables: Sequence[TableInfo],
    model: ReleaseModel,
    bounds: Bounds = "none",
) -> Compiled:
    """Rewrite a bound query over the original into one over the release.

    Args:
        tree: the query as `parse.bound` returns it; it is changed.
        release: the release of the original.
        tables: the original first, then other tables of the query.
        model: how the release's rows relate to the original's.
        bounds: which low and high to add to the measures of the outermost SELECT.

    Raises:
        NotLinearError: plausible tables are needed.
        RewriteError: what cannot be answered.
    """
    steps = Steps()
    selects = [one for one in all_of(tree, exp.Select) if reads_original(one)]
    bounded: dict[int, float] = {}
    for select in selects:
        block = Block(select, model, release, steps, bounds if select is tree and len(selects) == 1 else "none")
        block.rewrite()
        bounded |= block.bounded
    tree = grounded(tree, [release, *tables[1:]])
    if steps.texts:
        with_ = tree.args.get("with_")
        made = [
            exp.CTE(
                this=sqlglot.parse_one(text, dialect="duckdb"),
                alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)),
                materialized=True,
            )
            for name, text in steps.texts.items()
        ]
        if with_ is None:
            tree.set("with_", exp.With(expressions=made))
        else:
            with_.set("expressions", [*made, *with_.expressions])
    return Compiled(tree, bounded)


class Block:
    """One SELECT that reads the original, turned into one over weighted rows."""

    def __init__(
        self, select: exp.Select, model: ReleaseModel, release: TableInfo, steps: Steps, bounds: Bounds = "none"
    ) -> None:
        """Find what the SELECT asks of the original's columns."""
        self.select, self.model, self.steps, self.release = select, model, steps, release
        self.bounds = bounds
        self.bounded: dict[int, float] = {}
        items = [one for one in from_items(select) if is_original(one)]
        if len(items) != 1:
            raise NotLinearError("the query joins the original with itself")
        self.item = items[0]
        self.alias = self.item.alias_or_name
        self.columns = [
            one for one in all_of(select, exp.Column) if one.table == self.alias and one.find_ancestor(exp.Select)
        ]
        for one in self.columns:
            model.require(fold(one.name), release.name)
        self.read = {fold(one.name) for one in self.columns}
        for one in self.columns:
            inner = one.find_ancestor(exp.Select)
            while inner is not None and inner is not select:
                if reads_original(inner):
                    raise NotLinearError("a subquery of the original is correlated with the original")
                inner = inner.find_ancestor(exp.Select)

    def rewrite(self) -> None:
        """Rewrite in place."""
        aggregates = list(aggregate_nodes(self.select))
        if not aggregates and not self.select.args.get("group") and not self.select.args.get("distinct"):
            raise NotLinearError("the query returns single records")
        if any(all_of(one, exp.Window) for one in self.select.expressions if not aggregates):
            raise NotLinearError("the query has window functions over records")
        factors = [one for one in self._factors()]
        if not factors and self.model.weight == "1":
            self._exact()
            if self.bounds != "none" and self.model.bounded:
                self._exact_bounds()
            return
        conditions, exact_conditions = self._pushed(factors)
        moments: dict[str, str] = {}
        asked = self._measures() if self.bounds != "none" else []
        before = self.select.copy() if asked else None
        self._weigh(aggregates, moments)
        left = {fold(one.name) for one in all_of(self.select, exp.Column) if one.table == self.alias and one.parent}
        uses = {one: self._use(one, conditions) for one in self.read}
        if before is not None:
            self._bound(before, asked, factors, conditions, exact_conditions)
        self._relation(factors, conditions, exact_conditions, left, uses, moments)

    def _exact_bounds(self) -> None:
        """An answer that is exact lies between itself and itself."""
        for place, one in enumerate(list(self.select.expressions)):
            if next(iter(aggregate_nodes_of(one)), None) is not None and not all_of(one, exp.Window):
                for end in ("low", "high"):
                    self.select.append(
                        "expressions", exp.alias_(one.unalias().copy(), f"{one.alias_or_name}_{end}", quoted=True)
                    )
                self.bounded[place] = 1.0

    def _measures(self) -> list[Measure]:
        """The output columns that have bounds."""
        group = self.select.args.get("group")
        sets = ("grouping_sets", "rollup", "cube", "all", "totals")
        plain = group is None or not (any(group.args.get(k) for k in sets) or all_of(group, *_GROUPING_SETS))
        if not plain or self.select.args.get("joins") or self.model.weight != "1":
            return []
        found = [read_measure(place, one.unalias()) for place, one in enumerate(self.select.expressions)]
        return [one for one in found if one is not None]

    def _bound(
        self,
        before: exp.Select,
        measures: Sequence[Measure],
        factors: Sequence[Factor],
        conditions: Mapping[str, Sequence[exp.Expr]],
        exact_conditions: Sequence[str],
    ) -> None:
        """Add low and high of each measure to the SELECT.

        Args:
            before: the SELECT with its aggregates as they were.
            measures: the aggregates.
            factors: the factors that the query reads.
            conditions: conditions on one factor alone.
            exact_conditions: SQL of conditions on exact columns, over a released row.
        """
        inverted = bool(factors) and all(isinstance(one, RandomizedFactor) for one in factors)
        signed = any(one.signed for one in factors) and (not inverted or self.bounds == "hard")
        if signed or any(one.counted for one in factors) or not self.model.bounded:
            return
        group, rest = before.args.get("group"), before.args.get("where")
        keys = list(group.expressions) if group is not None else []
        parts = [one for key in ("expressions", "where", "group") for one in _listed(before.args.get(key))]
        parts += [one for one in (m.condition for m in measures) if one is not None]
        left = {fold(c.name) for part in parts for c in all_of(part, exp.Column) if c.table == self.alias}
        rows = self.steps.add("possible_rows", self._numbered_rows(factors, left, exact_conditions))
        text, ends = self._possible(rows, factors, conditions, left, inverted)
        source = f"{quoted(self.steps.add('possible', text))} as {quoted(self.alias)}"
        clause = f" where {rest.this.sql('duckdb')}" if rest is not None else ""
        found = (
            intervals(measures, keys, source, clause) if inverted else hard_bounds(measures, keys, source, ends, clause)
        )
        opened = " or ".join(one.open_cell(f"g.{_cell_name(one)}") for one in factors if one.open_cell("x"))
        if opened:
            # a cell that may be anything may be in every group, and makes sums endless
            rows_open = f"(select coalesce(sum(_records), 0) from {quoted(rows)} as g where {opened})"
            listed = [f"k{i}" for i, _ in enumerate(keys)]
            for i, measure in enumerate(measures):
                if measure.kind == "count":
                    listed += [f"low_{i}", f"high_{i} + {rows_open} as high_{i}"]
                else:
                    listed += [f"case when {rows_open} = 0 then {end}_{i} end as {end}_{i}" for end in ("low", "high")]
            found = f"select {', '.join(listed)} from ({found}) as b"
        self._join_bounds(self.steps.add("bounds", found), measures, keys)
        self.bounded |= {one.place: 0.95 if inverted else 1.0 for one in measures}

    def _numbered_rows(self, factors: Sequence[Factor], left: Collection[str], exact_conditions: Sequence[str]) -> str:
        """SELECT of the released rows that pass the conditions, equal ones together, each with a number."""
        columns = [f"{self.exact[one]} as {quoted(one)}" for one in sorted(left) if one in self.exact]
        columns += [f"{one.cell} as {_cell_name(one)}" for one in factors]
        where = where_all(exact_conditions)
        grouped = (
            f"select {', '.join([*columns, 'count(*) as _records'])} from {self.release.sql} as r{where} group by all"
        )
        return f"select row_number() over () as _id, * from ({grouped}) as g"

    def _possible(
        self,
        rows: str,
        factors: Sequence[Factor],
        conditions: Mapping[str, Sequence[exp.Expr]],
        left: Collection[str],
        inverted: bool,
    ) -> tuple[str, dict[str, tuple[str, str]]]:
        """SELECT of each row's possible values, and the columns that hold the ends of intervals."""
        shown = [f"g.{quoted(one)}" for one in sorted(left) if one in self.exact]
        numbers = {"share": ["1.0"]} if inverted else {"hits": ["1"], "total": ["1"]}
        joins: list[str] = []
        ends: dict[str, tuple[str, str]] = {}
        for one in factors:
            needed = [c for c in one.columns if c in left]
            asked = {c: self._use(c, conditions) for c in one.columns if c in self.read}
            plain = [self._plain(c) for c in conditions[one.name]]
            text = one.values(asked, plain, needed) if inverted else one.possible(asked, plain, needed)
            alias = quoted(f"v_{one.name}")
            step = quoted(self.steps.add(f"{one.name}_possible", text))
            joins.append(f"join {step} as {alias} on g.{_cell_name(one)} is not distinct from {alias}.cell")
            for c in needed:
                shown.append(f"{alias}.{quoted(c)}")
                if isinstance(one, IntervalFactor):
                    pair = quoted(f"{c}_low"), quoted(f"{c}_high")
                    shown += [f"{alias}.{end}" for end in pair]
                    ends[exp.column(c, table=self.alias, quoted=True).sql("duckdb")] = pair
            for number, used in numbers.items():
                used.append(f"{alias}.{number}")
        shown += ["g._id", "g._records", *(f"{' * '.join(used)} as _{number}" for number, used in numbers.items())]
        return f"select {', '.join(shown)} from {quoted(rows)} as g {' '.join(joins)}", ends

    def _join_bounds(self, step: str, measures: Sequence[Measure], keys: Sequence[exp.Expr]) -> None:
        """Show the bounds of each group beside its estimates."""
        names = [one.alias_or_name for one in self.select.expressions]
        for i, one in enumerate(measures):
            for end in ("low", "high"):
                bound_ = f"any_value(_bounds.{end}_{i})" if keys else f"(select {end}_{i} from {quoted(step)})"
                shown = exp.alias_(exp.Var(this=bound_), f"{names[one.place]}_{end}", quoted=True)
                self.select.append("expressions", shown)
        if keys:
            on = " and ".join(f"_bounds.k{i} is not distinct from {key.sql('duckdb')}" for i, key in enumerate(keys))
            source = exp.Table(
                this=exp.to_identifier(step, quoted=True), alias=exp.TableAlias(this=exp.to_identifier("_bounds"))
            )
            self.select.append("joins", exp.Join(this=source, side="LEFT", on=exp.Var(this=on)))

    def _factors(self) -> list[Factor]:
        """The factors that the query reads; of slices, the one with most columns is read from the row itself."""
        used = [one for one in self.model.factors if set(one.columns) & self.read or one.counted]
        slices = [one for one in used if isinstance(one, SliceFactor) and not one.generalized]
        # exact columns belong to the released row, and slices were permuted apart from them
        if slices and not self.read & self.model.exact.keys():
            first = max(slices, key=lambda one: len(set(one.columns) & self.read))
            self.exact = {**self.model.exact, **dict(first.fields)}
            return [one for one in used if one is not first]
        self.exact = dict(self.model.exact)
        return used

    def _exact(self) -> None:
        """Nothing that is read was changed: the release's columns stand for the original's."""
        columns = ", ".join(f"{self.exact[one]} as {quoted(one)}" for one in sorted(self.read)) or "1 as one"
        name = self.steps.add("released", f"select {columns} from {self.release.sql} as r")
        self._replace(name)

    def _replace(self, step: str) -> None:
        self.item.set("this", exp.to_identifier(step, quoted=True))

    @property
    def _preserved(self) -> bool:
        """Whether every row of the original that passes WHERE is in the answer, whatever it is joined to."""
        joins = self.select.args.get("joins") or []
        sides = [(one.side or "").upper() for one in joins]
        return not any(side in ("RIGHT", "FULL") for side in sides) and (
            self.select.args["from_"].this is self.item or "LEFT" not in sides
        )

    def _pushed(self, factors: Sequence[Factor]) -> tuple[dict[str, list[exp.Expr]], list[str]]:
        """Move conjuncts of WHERE that read one factor alone, or exact columns alone, to where they are decided."""
        found: dict[str, list[exp.Expr]] = {one.name: [] for one in factors}
        exact: list[str] = []
        where = self.select.args.get("where")
        if where is None or not self._preserved:
            return found, exact
        left = []
        for one in where.this.flatten() if isinstance(where.this, exp.And) else [where.this]:
            columns = list(all_of(one, exp.Column))
            names = {fold(c.name) for c in columns}
            home = {next((f.name for f in factors if c in f.columns), "") for c in names}
            if any(c.table != self.alias for c in columns) or all_of(one, exp.Query) or len(home) != 1:
                left.append(one)
            elif home == {""}:
                exact.append(self._over_row(one))
            else:
                found[home.pop()].append(one)
        self.select.set("where", exp.Where(this=exp.and_(*left, copy=False)) if left else None)
        return found, exact

    def _over_row(self, node: exp.Expr) -> str:
        """SQL of an expression over exact columns, over a released row."""
        made = node.copy()
        for column in list(all_of(made, exp.Column)):
            cell = exp.Var(this=f"({self.exact[fold(column.name)]})")
            if column is made:
                return str(cell.this)
            column.replace(cell)
        return made.sql("duckdb")

    def _plain(self, node: exp.Expr) -> str:
        """SQL of an expression over a factor's columns."""
        made = node.copy()
        for column in list(all_of(made, exp.Column)):
            column.set("table", None)
        return made.sql("duckdb")

    def _weigh(self, aggregates: Sequence[exp.Expr], moments: dict[str, str]) -> None:
        """Replace each aggregate by its estimate; sums over exact columns alone are added up before rows are spread."""
        weight = self._own("weight")
        for node in aggregates:
            outer, where = node, None
            if isinstance(node, exp.Filter):
                node, where = node.this, node.expression.this
            reads = [one for part in (node, where) if part is not None for one in all_of(part, exp.Column)]
            exact = all(one.table == self.alias and fold(one.name) in self.exact for one in reads)
            if reads and exact and isinstance(node, LINEAR) and not isinstance(node.this, exp.Distinct):
                made = self._added_before(node, where, moments)
            else:
                made = weighted(node, where, weight)
            made = exp.Paren(this=made) if isinstance(made, exp.Binary) else made
            outer.replace(made)

    def _added_before(self, node: exp.Expr, where: exp.Expr | None, moments: dict[str, str]) -> exp.Expr:
        """An aggregate of exact columns from sums and counts of the released rows."""
        condition = f" filter (where {self._over_row(where)})" if where is not None else ""
        rows = self.model.weight

        def moment(text: str) -> exp.Expr:
            name = next((one for one, known in moments.items() if known == text), None) or f"moment_{len(moments) + 1}"
            moments[name] = text
            return exp.Mul(this=self._own("share"), expression=self._own(name))

        def summed(text: str) -> exp.Expr:
            return exp.Sum(this=moment(text))

        if isinstance(node, exp.CountIf):
            test = self._over_row(node.this)
            return summed(f"sum(case when {test} then {rows} when not ({test}) then 0 end){condition}")
        if node.this is None or isinstance(node.this, (exp.Star, exp.Literal)):
            return exp.Coalesce(this=summed(f"sum({rows}){condition}"), expressions=[exp.Literal.number(0)])
        argument = self._over_row(node.this)
        present = f"sum(case when ({argument}) is not null then {rows} end){condition}"
        if isinstance(node, exp.Count):
            return exp.Coalesce(this=summed(present), expressions=[exp.Literal.number(0)])
        amount = f"sum({argument})" if rows == "1" else f"sum({rows} * ({argument}))"
        total = summed(f"{amount}{condition}")
        return total if isinstance(node, exp.Sum) else exp.Div(this=total, expression=summed(present), typed=False)

    def _own(self, name: str) -> exp.Column:
        return exp.column(f"_{name}", table=self.alias, quoted=True)

    def _use(self, column: str, conditions: Mapping[str, Sequence[exp.Expr]]) -> ColumnUse:
        """What the query asks of a column."""
        constants: list[str] = []
        every = False
        roots = [self.select, *(one for group in conditions.values() for one in group)]
        for root in roots:
            for node in all_of(root, exp.Column):
                if node.table != self.alias or fold(node.name) != column:
                    continue
                compared = _constants_beside(node)
                if compared is not None:
                    constants += compared
                elif not _linear(node, column):
                    every = True
        return ColumnUse(tuple(dict.fromkeys(constants)), every)

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
        exact = [one for one in sorted(left) if one in self.exact]
        columns = [f"{self.exact[one]} as {quoted(one)}" for one in exact]
        columns += [f"{one.cell} as {_cell_name(one)}" for one in factors]
        rows = "count(*)" if self.model.weight == "1" else f"sum({self.model.weight})"
        numbers = [f"{rows} as _records", *(f"{text} as {name}" for name, text in moments.items())]
        where = where_all(exact_conditions)
        released = self.steps.add(
            "released",
            f"select {', '.join([*columns, *numbers])} from {self.release.sql} as r{where} group by all",
        )
        shares, joins, shown = ["1.0"] if not factors else [], [], [f"g.{quoted(one)}" for one in exact]
        for one in factors:
            needed = [c for c in one.columns if c in left]
            asked = {c: uses[c] for c in one.columns if c in self.read}
            text = one.values(asked, [self._plain(c) for c in conditions[one.name]], needed)
            step = self.steps.add(f"{one.name}_values", text)
            alias = quoted(f"v_{one.name}")
            joins.append(f"join {quoted(step)} as {alias} on g.{_cell_name(one)} is not distinct from {alias}.cell")
            shown += [f"{alias}.{quoted(c)}" for c in needed]
            shares.append(f"{alias}.share")
        share = " * ".join(shares)
        numbers = [f"{share} as _share", f"g._records * {share} as _weight", *(f"g.{m} as _{m}" for m in moments)]
        text = f"select {', '.join([*shown, *numbers])} from {quoted(released)} as g {' '.join(joins)}"
        self._replace(self.steps.add("weighted", text))


def _cell_name(factor: Factor) -> str:
    """The column of a step that holds a factor's cells."""
    return quoted(f"cell_{factor.name}")


def _listed(value: object) -> list[exp.Expr]:
    """A clause's expressions."""
    if isinstance(value, list):
        return [one for one in value if isinstance(one, exp.Expr)]
    return [value] if isinstance(value, exp.Expr) else []


def _constants_beside(column: exp.Column) -> list[str] | None:
    """The constants that a column is compared with, [] for a test of NULL, None where it is not only compared."""
    node: exp.Expr = column
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    parent = node.parent
    if isinstance(parent, _COMPARISONS):
        other = parent.expression if parent.this is node else parent.this
        return [other.sql("duckdb")] if _constant(other) else None
    if isinstance(parent, exp.Between) and parent.this is node:
        ends = [parent.args["low"], parent.args["high"]]
        return [one.sql("duckdb") for one in ends] if all(map(_constant, ends)) else None
    if isinstance(parent, exp.In) and parent.this is node and parent.expressions and not parent.args.get("query"):
        return [one.sql("duckdb") for one in parent.expressions] if all(map(_constant, parent.expressions)) else None
    if isinstance(parent, exp.Is) and parent.this is node and isinstance(parent.expression, exp.Null):
        return []
    return None


def _constant(node: exp.Expr) -> bool:
    """Whether an expression is the same for every row."""
    if all_of(node, exp.Column, exp.Query, exp.Placeholder, exp.Parameter):
        return False
    return not any(one.name.lower() in _VOLATILE for one in all_of(node, exp.Anonymous, exp.Rand, exp.Uuid))


def _linear(column: exp.Column, name: str) -> bool:
    """Whether an aggregate is linear in the column, so that the mean of a segment stands for its values."""
    node: exp.Expr = column
    while node.parent is not None:
        parent = node.parent
        if isinstance(parent, (exp.Sum, exp.Avg)):
            return True
        if isinstance(parent, exp.Count) or (isinstance(parent, exp.Is) and isinstance(parent.expression, exp.Null)):
            return True
        if isinstance(parent, (exp.Paren, exp.Neg, exp.Add, exp.Sub)):
            node = parent
            continue
        if isinstance(parent, exp.Mul) or (isinstance(parent, exp.Div) and parent.this is node):
            other = parent.expression if parent.this is node else parent.this
            if any(fold(one.name) == name for one in all_of(other, exp.Column)):
                return False
            node = parent
            continue
        if isinstance(parent, exp.Coalesce) and parent.this is node and all(map(_constant, parent.expressions)):
            node = parent
            continue
        if isinstance(parent, exp.If) and parent.args.get("true") is node:
            node = parent
            continue
        if isinstance(parent, exp.Case) and (
            node in (parent.args.get("ifs") or []) or parent.args.get("default") is node
        ):
            node = parent
            continue
        return False
    return False
