"""Sums of squared weights of the groups of a query on a randomized release.

A total over a group is a sum over released rows of w * U(y): w is what the row's early columns add, y holds its
released values of the columns the final query sees value by value (the late ones), and

    U(y) = sum over the true values x of the group of h(x) * product over columns k of P_k^-1[x_k, y_k]

with h the late factors (conditions and amounts on late columns). Its variance needs the sum of w^2 * U(y)^2, and
the square of a sum over x is not the sum of squares. But U is a product over *blocks* of columns that no key,
condition or amount speaks of together: for GROUP BY CUBE over plain columns each is a block of its own, whose
groups are its single values and all of them (U = 1). So the sum is carried from released values to groups block
by block, like a mode product: never all combinations of released values with groups at once.

Source: Guo, Ying and Wu (2011), section III.B, for the weights; the variance is derived here. Cost: for k columns of
d values in blocks of their own, k passes over the (d + 1)^k cells of the cube.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from duckdb_anon.rewrite.blocks import Block, Question
from duckdb_anon.rewrite.logic import LATE, Term, split
from duckdb_anon.rewrite.parse import to_sql
from duckdb_anon.rewrite.parts import parsed
from duckdb_anon.rewrite.randomized import RandomizedPart

NAME = "_squares"
_GROUPS = "_groups"


class Squares:
    """Collects the sums a query's intervals need and writes the CTEs that compute them, one row a group."""

    def __init__(self, question: Question) -> None:
        """Start with nothing asked for."""
        self.question = question

    def of(self, one: Sequence[Term], other: Sequence[Term]) -> str:
        """Sum over released rows of the product of two totals' weights, as SQL over a group of the final query."""
        found = []
        for first, left in self._by_factor(one).items():
            for second, right in self._by_factor(other).items():
                text = f"1e0 * ({left}) * ({right})"  # whole numbers would run over
                if not self.question.early.inverted:
                    found.append(f"sum({self.question.early.column('sum', text)})")
                    continue
                key = (self._column(text), min(first, second), max(first, second))
                name = self.question.sums.setdefault(key, f"q{len(self.question.sums)}")
                found.append(f"{NAME}.{name}")
        return f"({' + '.join(found)})"

    def of_one_row(self, terms: Sequence[Term]) -> str:
        """What one more released row in the group would add to a total's sum of squares; 0 without late columns.

        A group that hardly a released row fell into shows less spread than it has. What is known exactly (groups of
        columns that were not randomized, all rows together) has none, and gets none.
        """
        if not self.question.early.inverted:
            return "0"
        found = []
        for factor, weight in self._by_factor(terms).items():
            key = (self._column(f"1e0 * ({weight}) * ({weight})"), factor)
            found.append(f"{NAME}.{self.question.rows.setdefault(key, f'm{len(self.question.rows)}')}")
        return f"{NAME}._noisy * ({' + '.join(found)})"

    def attach(self, select: exp.Select) -> None:
        """Compute the sums and join them to the groups of the rewritten query."""
        if not self.question.sums:
            return
        for name, query in self._ctes():
            select.with_(exp.to_identifier(name, quoted=True), as_=parsed(query), append=True, copy=False)
        inner = select.copy()
        inner.set("with_", None)
        outside = self._pull_out(inner)
        for key in list(select.args):
            if key != "with_":
                select.set(key, None)
        select.set("expressions", outside)
        select.from_(inner.subquery(_GROUPS), copy=False)
        groups = self.question.groups
        on = [f"{_GROUPS}._k{i} is not distinct from {NAME}._k{i}" for i in range(len(groups.keys))]
        on += [f"{_GROUPS}._level = {NAME}._level"] * (len(groups.sets) > 1)
        select.join(NAME, on=" and ".join(on) or "true", join_type="left", dialect="duckdb", copy=False)

    def _pull_out(self, inner: exp.Select) -> list[exp.Expr]:
        """Give the groups' SELECT the columns that what reads the sums is made of; return the outer projections."""
        outside: list[exp.Expr] = []
        inside: list[exp.Expr] = []
        aggregates: dict[str, str] = {}

        def of_group(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, (exp.AggFunc, exp.Filter)):
                return node
            text = to_sql(node, pretty=False)
            return exp.column(aggregates.setdefault(text, f"_a{len(aggregates)}"), _GROUPS)

        for number, projection in enumerate(inner.expressions):
            made_of, name = projection.unalias(), projection.alias_or_name
            if any(column.table == NAME for column in made_of.find_all(exp.Column)):
                outside.append(exp.alias_(made_of.transform(of_group), name, quoted=True))
                continue
            inside.append(exp.alias_(made_of, f"_c{number}"))
            outside.append(exp.alias_(exp.column(f"_c{number}", _GROUPS), name, quoted=True))
        keys = self.question.groups.keys
        inside += [exp.alias_(parsed(text), name) for text, name in aggregates.items()]
        inside += [exp.alias_(key.copy(), f"_k{i}") for i, key in enumerate(keys)]
        if len(self.question.groups.sets) > 1:
            inside.append(exp.alias_(self.question.groups.level(), "_level"))
        inner.set("expressions", inside)
        return outside

    def _column(self, text: str) -> str:
        return self.question.early.column("square", text).rpartition(".")[2]

    def _by_factor(self, terms: Sequence[Term]) -> dict[str, str]:
        """The terms' early weights, added up by what they have of late columns; the keys are names of factors."""
        found: dict[str, str] = {}
        for term in terms:
            conditions = {unit: e for unit, e in term.conditions.items() if unit != LATE}
            values = {unit: e for unit, e in term.values.items() if unit != LATE}
            weight = self.question.early.product(Term(1, conditions, values))
            name = self._factor(term)
            found[name] = f"{found.get(name, '')} {'+' if term.sign > 0 else '-'} {weight}".strip()
        return {name: text.removeprefix("+ ") for name, text in found.items()}

    def _factor(self, term: Term) -> str:
        condition, value = term.conditions.get(LATE), term.values.get(LATE)
        conditions = tuple(split(condition)) if condition is not None else ()
        values = tuple(_multiplied(value)) if value is not None else ()
        text = " | ".join(to_sql(e, pretty=False) for e in (*conditions, exp.null(), *values))
        self.question.factors.setdefault(text, (conditions, values))
        return text

    def _ctes(self) -> Iterator[tuple[str, str]]:
        blocks = self.question.blocks()
        before = f"{NAME}_rows"
        yield before, self._rows(blocks)
        for number, block in enumerate(blocks):
            yield from block.ctes()
            kept = [cell for later in blocks[number + 1 :] for cell, _ in later.cells]
            kept += [f"_k{i}" for earlier in blocks[:number] for i in earlier.keys]
            name = NAME if block is blocks[-1] else f"{NAME}_{number}"
            yield name, block.step(before, kept, self._allowed(blocks[: number + 1]))
            before = name

    def _rows(self, blocks: Sequence[Block]) -> str:
        """SELECT the sums over the released rows of each combination of released values, and those of a mean row."""
        early = self.question.early
        cells = [cell for block in blocks for cell, _ in block.cells]
        sums = [f"{column}::double as {name}" for (column, *_), name in self.question.sums.items()]
        rows = early.columns["sum", "1"]
        sums += [
            f"(sum({column}) over () / sum({rows}) over ())::double as {name}"
            for (column, _), name in self.question.rows.items()
        ]
        asked = [part for part in early.model.parts if part.name in early.requests]
        noisy = [f"(select other <> 0 from ({part.channel()}))" for part in asked if isinstance(part, RandomizedPart)]
        sums.append(f"({' or '.join(noisy) or 'false'})::integer as _noisy")
        return f"select {', '.join([*cells, '0 as _level', *sums])} from _rows"

    def _allowed(self, blocks: Sequence[Block]) -> str:
        """A condition that keeps what can still become one of the query's grouping sets, '' where all can."""
        keys = {i for block in blocks for i in block.keys}
        levels = {self.question.level(keys, one) for one in self.question.groups.sets}
        possible = 1
        for block in blocks:
            possible *= len(block.levels)
        return "" if len(levels) == possible else f"where _level in ({', '.join(map(str, sorted(levels)))})"


def _multiplied(value: exp.Expr) -> list[exp.Expr]:
    """The factors of a product."""
    value = value.unnest()
    if isinstance(value, exp.Mul):
        return [*_multiplied(value.left), *_multiplied(value.right)]
    return [value]
