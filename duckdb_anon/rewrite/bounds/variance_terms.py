"""Sums of squared weights of the groups of a query on a randomized release.

A total over a group is a sum over released rows of w * U(y): w is what the row itself adds, y holds its
released values of the columns the final query sees value by value (by value for short), and

    U(y) = sum over the true values x of the group of h(x) * product over columns k of P_k^-1[x_k, y_k]

with h the factors by value (conditions and amounts on such columns). Its variance needs the sum of w^2 * U(y)^2, and
the square of a sum over x is not the sum of squares. But U is a product over *blocks* of columns that no key,
condition or amount speaks of together: for GROUP BY CUBE over plain columns each is a block of its own, whose
groups are its single values and all of them (U = 1). So the sum is carried from released values to groups block
by block, like a mode product: never all combinations of released values with groups at once.

Where a query groups by columns themselves and nothing else of it speaks of them, U(y) is the product of the entries of
P^-1 for the group's values, and its square the product of theirs. Those sums are inverted beside the totals, column by
column, by the squared entries.

Source: Guo, Ying and Wu (2011), section III.B, for the weights; the variance is derived here. Cost: for k columns of
d values in blocks of their own, k passes over the (d + 1)^k cells of the cube.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from duckdb_anon.model.identifier_case import fold
from duckdb_anon.rewrite.bounds.variance_blocks import Block, Question
from duckdb_anon.rewrite.estimate.expectation import BY_VALUE, Term, split
from duckdb_anon.rewrite.estimate.row_answers import told_name
from duckdb_anon.rewrite.estimate.row_weights import of_both
from duckdb_anon.rewrite.estimate.step_ctes import ROWS as ELIGIBLE
from duckdb_anon.rewrite.estimate.value_steps import Step, append_step
from duckdb_anon.rewrite.query.template import (
    added,
    copied,
    every,
    mapped,
    multiplied,
    name,
    number,
    own,
    own_name,
    select,
    some,
    taken,
    tree,
)
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.inverted import RandomizedPart
from duckdb_anon.rewrite.shapes.parts import labelled, same

NAME = name("variance_terms")
_ROWS = name("variance_rows")
_ONE_ROW = name("variance_of_one_row")


class VarianceTerms:
    """Collects the sums a query's intervals need and writes the CTEs that compute them, one row a group."""

    def __init__(self, question: Question) -> None:
        """Start with nothing asked for."""
        self.question = question
        self._one_row: dict[exp.Expr, str] = {}

    def of(self, one: Sequence[Term], other: Sequence[Term]) -> exp.Expr:
        """Sum over released rows of the product of two totals' weights, over a group of the final query."""
        question, found = self.question, []
        for first, left in self._by_factor(one).items():
            for second, right in self._by_factor(other).items():
                square = of_both(left, right)
                if not question.steps.inverted:
                    found.append(tree("sum({x})", x=question.steps.column("sum", square, "squared")))
                    continue
                if self._by_entries([*one, *other]):
                    found.append(tree("sum({x})", x=question.steps.column("inverted square", square, "squared")))
                    continue
                key = (self._column(square), min(first, second), max(first, second))
                found.append(own(question.sums.setdefault(key, f"square_{len(question.sums)}"), "variance_terms"))
        return added([(1, one) for one in found])

    def of_one_row(self, terms: Sequence[Term]) -> exp.Expr:
        """What one more released row in the group would add to a total's sum of squares; 0 without columns by value.

        A group that hardly a released row fell into shows less spread than it has. What is known exactly (groups of
        columns that were not randomized, all rows together) has none, and gets none.
        """
        question, found = self.question, []
        if not question.steps.inverted:
            return number(0)
        if self._by_entries(terms):
            squares = (
                question.steps.column("inverted square", of_both(one, one), "squared")
                for one in self._by_factor(terms).values()
            )
            labels = [self._one_row.setdefault(square, f"one_row_{len(self._one_row)}") for square in squares]
            return added(
                [(1, tree("any_value({x})", x=exp.Column(this=name(one), table=taken(_ONE_ROW)))) for one in labels]
            )
        for factor, weight in self._by_factor(terms).items():
            key = (self._column(of_both(weight, weight)), factor)
            found.append((1, own(question.rows.setdefault(key, f"one_row_{len(question.rows)}"), "variance_terms")))
        return multiplied([own("noisy", "variance_terms"), added(found)])

    def attach(self, query: exp.Select) -> None:
        """Compute the sums and join them to the groups of the rewritten query."""
        if self._one_row:
            append_step(query, _ONE_ROW, self._of_mean_row())
            query.append("joins", exp.Join(this=exp.Table(this=taken(_ONE_ROW)), kind="CROSS"))
        if not self.question.sums:
            return
        for step, made_of in self._ctes():
            append_step(query, step, made_of)
        with_ = query.args["with_"]
        sorted_ = {key: query.args[key] for key in ("order", "limit", "offset") if query.args.get(key)}
        kept = {key: value for key, value in query.args.items() if key not in ("with_", *sorted_)}
        inner = exp.Select(**kept)
        outside = self._pull_out(inner, sorted_.get("order"))
        for key in list(query.args):
            query.set(key, None)
        groups = self.question.groups
        on = [same(own(f"key_{i}", "groups"), own(f"key_{i}", "variance_terms")) for i in range(len(groups.keys))]
        on += [tree("_groups._level = _variance_terms._level")] * (len(groups.sets) > 1)
        found = tree(
            "select {outside} from {inner} as _groups left join _variance_terms on {on}",
            outside=outside,
            inner=inner,
            on=every(on),
        )
        for key, value in [("with_", with_), *found.args.items(), *sorted_.items()]:
            query.set(key, value)

    def _pull_out(self, inner: exp.Select, order: exp.Expr | None) -> list[exp.Expr]:
        """Give the groups' SELECT the columns that what reads the sums is made of; return the outer projections.

        ORDER BY stays outside, where the output columns are; what else it reads becomes a column of the groups.
        """
        outside: list[exp.Expr] = []
        inside: list[exp.Expr] = []
        aggregates: dict[exp.Expr, str] = {}

        def of_group(node: exp.Expr) -> exp.Expr | None:
            if not isinstance(node, (exp.AggFunc, exp.Filter)):
                return None
            return own(aggregates.setdefault(node, f"total_{len(aggregates)}"), "groups")

        for place, projection in enumerate(inner.expressions):
            made_of, alias = projection.unalias(), exp.to_identifier(projection.alias_or_name, quoted=True)
            if any(column.table == NAME.this for column in all_of(made_of, exp.Column)):
                outside.append(exp.Alias(this=mapped(made_of, of_group), alias=alias))
                continue
            inside.append(labelled(copied(made_of), f"column_{place}"))
            outside.append(exp.Alias(this=own(f"column_{place}", "groups"), alias=alias))
        outputs = {projection.alias_or_name for projection in outside}
        for place, one in enumerate(order.expressions if order is not None else []):
            columns = all_of(one, exp.Column)
            if any(c.table for c in columns) or not {c.name for c in columns} <= outputs:
                inside.append(labelled(copied(one.this), f"sort_{place}"))
                one.set("this", own(f"sort_{place}", "groups"))
        keys = self.question.groups.keys
        inside += [labelled(copied(node), label) for node, label in aggregates.items()]
        inside += [labelled(copied(key), f"key_{i}") for i, key in enumerate(keys)]
        if len(self.question.groups.sets) > 1:
            inside.append(labelled(self.question.groups.level(), "level"))
        inner.set("expressions", inside)
        return outside

    def _by_entries(self, terms: Sequence[Term]) -> bool:
        """Whether the groups are combinations of values, and all of a group's rows weigh alike."""
        question, homes = self.question, self.question.steps.homes
        keys = question.groups.keys
        columns = {fold(key.name) for key in keys if isinstance(key, exp.Column) and key.table == homes.alias}
        of_columns = len(question.groups.sets) == 1 and len(columns) == len(keys) and columns == homes.by_value
        factors = any(BY_VALUE in term.conditions or BY_VALUE in term.values for term in terms)
        return of_columns and not (homes.others or question.by_value or factors)

    def _of_mean_row(self) -> exp.Select:
        """SELECT what one more row of the mean square would add to a sum of squares at most, over all groups."""
        steps = self.question.steps
        rows = own(steps.columns["sum", number(1)])
        wholes = [f"whole_{part.name}" for part in steps.inverted]
        noisy = some([self._noisy(), *(tree("abs({w} - 1) > 1e-9", w=own(one)) for one in wholes)])
        most = [tree("{noisy}::integer", noisy=noisy), *(tree("{w} ** 2", w=own(one)) for one in wholes)]
        found = select(
            "select {rows} from (select {means} from {eligible}) as _mean",
            rows=[labelled(multiplied([own(f"mean_{one}"), *most]), one) for one in self._one_row.values()],
            means=[
                labelled(tree("sum({c}) / sum({n})", c=square, n=rows), f"mean_{one}")
                for square, one in self._one_row.items()
            ],
            eligible=ELIGIBLE,
        )
        for part, whole in zip(steps.inverted, wholes, strict=True):
            of_part = tree("(select max(_own + _other) as {w} from {d})", w=name(whole), d=part.domain)
            found.append("joins", exp.Join(this=of_part, kind="CROSS"))
        return found

    def _column(self, square: exp.Expr) -> str:
        return own_name(self.question.steps.column("square", square, "squared"))

    def _by_factor(self, terms: Sequence[Term]) -> dict[str, exp.Expr]:
        """The terms' weights over a released row, added up by factor; the keys are names of factors."""
        found: dict[str, list[tuple[int, exp.Expr]]] = {}
        for term in terms:
            conditions = {home: e for home, e in term.conditions.items() if home != BY_VALUE}
            values = {home: e for home, e in term.values.items() if home != BY_VALUE}
            weight = self.question.steps.product(Term(1, conditions, values))
            assert weight is not None  # noqa: S101 -- nothing by value is left in it
            found.setdefault(self._factor(term), []).append((term.sign, weight))
        return {factor: added(weights) for factor, weights in found.items()}

    def _factor(self, term: Term) -> str:
        condition, value = term.conditions.get(BY_VALUE), term.values.get(BY_VALUE)
        conditions = tuple(split(condition)) if condition is not None else ()
        values = tuple(_multiplied(value)) if value is not None else ()
        for known, both in self.question.factors.items():
            if both == (conditions, values):
                return known
        factor = f"factor_{len(self.question.factors)}"
        self.question.factors[factor] = (conditions, values)
        return factor

    def _ctes(self) -> Iterator[Step]:
        blocks = self.question.blocks()
        before = _ROWS
        yield before, self._rows(blocks)
        for place, block in enumerate(blocks):
            yield from block.ctes()
            kept = [cell for later in blocks[place + 1 :] for cell, _ in later.cells]
            kept += [name(f"key_{i}") for earlier in blocks[:place] for i in earlier.keys]
            step = NAME if block is blocks[-1] else name(f"variance_terms_{place}")
            yield step, block.step(before, kept, self._allowed(blocks[: place + 1]))
            before = step

    def _rows(self, blocks: Sequence[Block]) -> exp.Select:
        """SELECT the sums over the released rows of each combination of released values, and those of a mean row."""
        steps = self.question.steps
        cells: list[exp.Expr] = [exp.Column(this=taken(cell)) for block in blocks for cell, _ in block.cells]
        sums = [
            labelled(tree("{c}::double", c=own(column)), label) for (column, *_), label in self.question.sums.items()
        ]
        rows = own(steps.columns["sum", number(1)])
        sums += [
            labelled(tree("(sum({c}) over () / sum({rows}) over ())::double", c=own(column), rows=rows), label)
            for (column, _), label in self.question.rows.items()
        ]
        sums.append(labelled(tree("{noisy}::integer", noisy=self._noisy()), "noisy"))
        return select("select {columns} from {rows}", columns=[*cells, tree("0 as _level"), *sums], rows=ELIGIBLE)

    def _noisy(self) -> exp.Expr:
        """Whether what a released row adds may differ from what the original row does."""
        steps = self.question.steps
        asked = [part for part in steps.model.parts if part.name in steps.requests]
        return some(
            [
                part.noisy(steps.requests[part.name], told_name(part))
                for part in asked
                if isinstance(part, RandomizedPart)
            ]
        )

    def _allowed(self, blocks: Sequence[Block]) -> list[int]:
        """The levels that can still become one of the query's grouping sets, empty where all can."""
        keys = {i for block in blocks for i in block.keys}
        levels = {self.question.level(keys, one) for one in self.question.groups.sets}
        possible = 1
        for block in blocks:
            possible *= len(block.levels)
        return [] if len(levels) == possible else sorted(levels)


def _multiplied(value: exp.Expr) -> list[exp.Expr]:
    """The factors of a product."""
    value = value.unnest()
    if isinstance(value, exp.Mul):
        return [*_multiplied(value.left), *_multiplied(value.right)]
    return [value]
