"""The named steps of a rewritten query: one pass over the release.

    _age_share: cell -> what the query wants to know of it          (one row a distinct cell)
    _rows:      the columns the final query needs, and sums of products of shares

When the final query spells out values of inexact columns, `_rows` is summed over equal cells first and
`_spread` joins the values of each cell, so nothing grows with rows times values. Randomized columns give way
to their true values one after another instead, each step summed over equal rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from duckdb_anon.rewrite.estimate.combinations import COMBINATIONS, combined
from duckdb_anon.rewrite.estimate.expectation import BY_VALUE, EXACT, Term
from duckdb_anon.rewrite.estimate.homes import Homes
from duckdb_anon.rewrite.estimate.membership import MEMBERS, Membership, members
from duckdb_anon.rewrite.estimate.row_answers import (
    Place,
    answered,
    as_rows,
    ends_read,
    place_of,
    shares_name,
    told_name,
    total_of,
)
from duckdb_anon.rewrite.estimate.row_weights import value_where
from duckdb_anon.rewrite.estimate.step_names import label_of, names_of, unlike
from duckdb_anon.rewrite.estimate.value_steps import SPREAD, Step, value_steps
from duckdb_anon.rewrite.query.template import column, copied, multiplied, name, number, own, select, tree
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.inverted import RandomizedPart, inversions
from duckdb_anon.rewrite.shapes.parts import ROW, Part, Request, aliased, labelled, same
from duckdb_anon.rewrite.shapes.released import Model

BOXES = name("box_ends")
SHARES = name("shares")
ROWS = name("eligible")


@dataclass
class Steps:
    """Collects what the final query needs and writes the CTEs that provide it.

    Attributes:
        homes: assignment of expressions to parts; complete before anything is asked for.
        conditions: conditions on exact columns that every row must satisfy.
        likely: conditions on released rows that are implied by the query's, which leave rows out early.
        membership: what makes a row's values belong to a group, where bounds are asked of spread values.
        requests: part and what is asked of it, to the column that answers.
        columns: what a column of the released rows is made of, to its name.
    """

    homes: Homes
    conditions: list[exp.Expr] = field(default_factory=list)
    likely: list[exp.Expr] = field(default_factory=list)
    membership: Membership | None = None
    requests: dict[str, dict[Request, str]] = field(default_factory=dict)
    columns: dict[tuple[str, exp.Expr], str] = field(default_factory=dict)
    _told: dict[tuple[str, Request], exp.Expr | None] = field(default_factory=dict)

    @property
    def model(self) -> Model:
        """The release's model."""
        return self.homes.model

    @property
    def inverted(self) -> list[RandomizedPart]:
        """Those of the spread parts that are inverted column by column instead of joined."""
        return [part for part in self.spread if isinstance(part, RandomizedPart)]

    @property
    def spread(self) -> list[Part]:
        """Parts whose values the final query sees one by one."""
        return [p for p in self.model.parts if self.homes.by_value & set(p.columns)]

    @property
    def summed(self) -> bool:
        """Whether released rows of equal cells are added up before their values are spelled out."""
        return bool(self.spread) and not any(part.alone for part in self.spread)

    @property
    def added_up(self) -> bool:
        """Whether several released rows may be one row of the last step, though no values are spelled out."""
        return not self.spread and any(isinstance(part, RandomizedPart) for part in self.model.parts)

    def term(self, term: Term, nulls: bool = False) -> exp.Expr:
        """Provide the factors of a product that released rows tell; returns what the final query sums.

        Args:
            term: the product.
            nulls: whether it may be NULL where a value of the row is, as in a sum of it alone.
        """
        factors = self._factors(term, nulls)
        pieces: list[exp.Expr] = []
        if factors:
            pieces.append(self.column("sum", multiplied(factors), label_of(term, self.spread)))
        if not factors and (self.summed or self.added_up):
            pieces.append(self.column("sum", number(1)))
        pieces += [own("weight")] * bool(self.joined)
        by_value = self._by_value(term)
        if by_value is not None:
            pieces.append(by_value)
        return multiplied(pieces)

    def product(self, term: Term) -> exp.Expr | None:
        """A product over a row of the release; None when some of it is known only to the final query."""
        if BY_VALUE in term.conditions or BY_VALUE in term.values:
            return None
        return multiplied(self._factors(term))

    def _factors(self, term: Term, nulls: bool = False) -> list[exp.Expr]:
        """The factors of a product that a released row tells."""
        factors = [self.model.weight] if self.model.weight is not None else []
        exact = self.exact(term, nulls)
        if exact is not None:
            factors.append(exact)
        for part in self.model.parts:
            if part in self.spread:
                continue
            condition, value = term.conditions.get(part.name), term.values.get(part.name)
            if condition is not None or value is not None or part.counted:
                request = Request("mean", self.bare(condition), self.bare(value))
                factors.append(self._share(part, request))
        return factors

    def flag(self, wanted: str, condition: exp.Expr, home: str) -> exp.Expr:
        """Provide whether a condition on one part is possible or certain.

        Args:
            wanted: 'possible' or 'certain'.
            condition: a condition.
            home: the part that decides it.
        """
        if home == BY_VALUE:
            return condition
        if home == EXACT:
            known = tree("coalesce({condition}, false)", condition=self.text(condition))
            return self.column("key", known, "true_of_row")
        part = next(p for p in self.model.parts if p.name == home)
        request = Request("possible" if wanted == "possible" else "certain", self.bare(condition))
        return self.column("key", self._share(part, request), f"{request.wanted}_{part.name}")

    def extreme(self, least: bool, value: exp.Expr, home: str, condition: exp.Expr | None) -> exp.Expr:
        """Provide the least or most a value on one part can be, where `condition` on that part holds.

        Args:
            least: whether the least is asked for.
            value: the value.
            home: the part that knows it.
            condition: what holds on that part.
        """
        if home == BY_VALUE:
            return value
        # a value of the row itself is both its least and its most
        kind = "key" if home == EXACT and not self.spread else "min" if least else "max"
        label = f"value_of_{names_of(value)}" if kind == "key" else f"{'least' if least else 'most'}_{names_of(value)}"
        return self.column(kind, self.end(least, value, home, condition), label)

    def end(self, least: bool, value: exp.Expr, home: str, condition: exp.Expr | None) -> exp.Expr:
        """The least or most a value can be, over a row of the release.

        Args:
            least: whether the least is asked for.
            value: the value.
            home: the part that knows it.
            condition: what holds on that part.
        """
        if home == EXACT:
            return self.text(value)
        part = next(p for p in self.model.parts if p.name == home)
        request = Request("least" if least else "most", self.bare(condition), self.bare(value))
        return self._share(part, request)

    def fewest(self, part: Part, condition: exp.Expr | None) -> exp.Expr:
        """Provide how many original rows of a released row surely satisfy a condition on a part that counts rows.

        Args:
            part: the part.
            condition: what the rows must satisfy; None for anything.
        """
        return self.column("sum", self._share(part, Request("fewest", self.bare(condition))), "surely")

    def column(self, kind: str, made_of: exp.Expr, label: str = "") -> exp.Column:
        """A column of the released rows: a sum, a minimum, a maximum, a key, or a chance that may be 0.

        Args:
            kind: 'sum', 'min', 'max', 'key' or 'chance'.
            made_of: expression over a row of the release.
            label: its name, readable.
        """
        key = (kind, made_of)
        if key not in self.columns:
            label = label or {"sum": "released_rows" if made_of == number(1) else "amount"}.get(kind, kind)
            self.columns[key] = unlike(label, self.columns.values())
        return own(self.columns[key])

    def ctes(self) -> list[Step]:
        """The CTEs in order; the last one stands in for the original."""
        made: list[Step] = []
        for part in self.model.parts:
            asked = self.requests.get(part.name)
            if asked or part in self.spread:
                made += [step for step in part.steps() if step[0] not in [known for known, _ in made]]
            if asked:
                made += self._answers(part, asked)
        if self.inverted:
            self.column("sum", number(1))  # how many rows a true value is estimated to have, so that it is not lost
        made += self._rows([step for step, _ in made])
        made += self._inversions()
        if self.joined:
            columns = {part.name: sorted(self.homes.by_value & set(part.columns)) for part in self.joined}
            made += value_steps(self.joined, columns, made[-1][0], self.membership is not None)
        if self.membership is not None:
            made.append((MEMBERS, members(self.membership, SPREAD)))
        return made

    @property
    def joined(self) -> list[Part]:
        """Those of the spread parts whose values are joined."""
        return [part for part in self.spread if part not in self.inverted]

    def _inversions(self) -> list[Step]:
        """One CTE a randomized column, each reading the one before."""
        keys = [column(c).this for c in sorted(self.homes.by_value) if c in self.model.exact]
        keys += [name(label) for (kind, _), label in self.columns.items() if kind == "key"]
        numbers = [name(label) for (kind, _), label in self.columns.items() if kind in ("sum", "min", "max")]
        squares = [name(label) for (kind, _), label in self.columns.items() if kind == "inverted square"]
        return inversions(self.inverted, ROWS, keys, numbers, self.columns.get(("sum", number(1))), squares)

    def _answers(self, part: Part, asked: dict[Request, str]) -> list[Step]:
        """The steps that rows join for what is asked of a part; none where a row tells it all."""
        of_row = {request: label for request, label in asked.items() if self._of_row(part, request, label) is not None}
        others = {request: label for request, label in asked.items() if request not in of_row}
        made: list[Step] = []
        if others:
            made.append((shares_name(part), part.shares(list(others), list(others.values()))))
        told = part.told(list(of_row), list(of_row.values())) if of_row else None
        if told is not None:
            made.append((told_name(part), told))
        return made

    def _of_row(self, part: Part, request: Request, label: str) -> exp.Expr | None:
        """What a released row tells of a request, None where that takes a join."""
        key = (part.name, request)
        if key not in self._told:
            self._told[key] = part.of_row(request, exp.Column(this=name(label), table=told_name(part)))
        return self._told[key]

    def _rows(self, steps: list[exp.Identifier]) -> list[Step]:
        summed = self.summed
        by_value = sorted(c for c in self.homes.by_value if c in self.model.exact)
        keys = [tree("{made_of} as {c}", made_of=self.model.exact[c], c=c) for c in by_value]
        keys += [labelled(tree("{cell}", cell=part.cell), f"cell_{part.name}") for part in self.spread]
        functions = {"min": "min({x})", "max": "max({x})", "key": "{x}"}
        columns: list[exp.Expr] = []
        for (kind, made_of), label in self.columns.items():
            form = functions.get(kind, "") if summed else "{x}"
            of_rows = tree(form, x=made_of) if form else total_of(made_of, self.model.parts, self.requests)
            columns.append(labelled(of_rows, label))
        made: list[Step] = []
        source: exp.Expr = aliased(self.model.release, ROW)
        told: list[exp.Join] = []
        ends: list[exp.Expr] = []
        answers: dict[Place, tuple[exp.Expr, str]] = {}
        joins: list[exp.Join] = []
        for part in self.model.parts:
            requests = self.requests.get(part.name, {})
            found = {
                (shares_name(part).this, name(label).this): (answer, f"{label}_of_{part.name}")
                for request, label in requests.items()
                if (answer := self._of_row(part, request, label)) is not None
            }
            if found:
                ends += ends_read(part, part.key, [answer for answer, _ in found.values()])
                if told_name(part) in steps:
                    told.append(exp.Join(this=exp.Table(this=told_name(part)), kind="CROSS"))
            if len(found) < len(requests):
                shares = shares_name(part)
                on = same(part.key, tree("{shares}._cell", shares=shares))
                joins.append(exp.Join(this=exp.Table(this=shares), side="LEFT", on=on))
            answers |= found
        if ends:
            made.append((BOXES, select("select *, {ends} from {release}", ends=ends, release=source)))
            source = as_rows(BOXES)
        conditions = [self.text(one) for one in self.conditions] + [copied(one) for one in self.likely]
        asked = [part for part in self.model.parts if part in self.spread or self.requests.get(part.name)]
        rows_alone = by_value or joins or ends or self.model.weight is not None
        totals = None if rows_alone else combined(asked, self.requests, self.spread, self.columns, conditions)
        if totals is not None:
            made.append((COMBINATIONS, totals.totals))
            source, conditions, summed = as_rows(COMBINATIONS), [], summed and not totals.apart
            columns = [
                labelled(tree("sum({x})" if summed else "{x}", x=totals.columns[key]), label)
                for key, label in self.columns.items()
            ]
            answers = {place: one for place, one in answers.items() if place not in totals.weighed}
        used = [place_of(c) for one in columns for c in all_of(one, exp.Column) if place_of(c) in answers]
        if len(used) > len(set(used)):
            # what several columns read is reckoned once
            shown = [labelled(answer, label) for answer, label in answers.values()]
            made.append((SHARES, select("select {r}.*, {shown} from {source}", r=ROW, shown=shown, source=source)))
            beside = {told_name(part).this for part in asked if totals is not None and part.name in totals.counted}
            made[-1][1].set("joins", [one for one in told if one.this.this.this not in beside])
            source, told = as_rows(SHARES), [one for one in told if one.this.this.this in beside]
            answers = {place: (own(label), label) for place, (_, label) in answers.items()}
        columns = [answered(one, answers) for one in columns]
        chosen = select(
            "select {columns} from {source}", columns=keys + columns or [labelled(number(1), "one")], source=source
        )
        chosen.set("joins", told + joins)
        for condition in conditions:
            chosen.where(condition, copy=False)
        if summed:
            chosen.set("group", exp.Group(all=True))
        return [*made, (ROWS, chosen)]

    def exact(self, term: Term, nulls: bool = False) -> exp.Expr | None:
        """The factor of a product that the row itself tells, over a row of the release; None when there is none."""
        condition, value = (
            None if one is None else self.text(one) for one in (term.conditions.get(EXACT), term.values.get(EXACT))
        )
        if condition is None and (value is None or nulls):
            return value
        return value_where(condition, value)

    def _by_value(self, term: Term) -> exp.Expr | None:
        condition, value = term.conditions.get(BY_VALUE), term.values.get(BY_VALUE)
        if condition is None and value is None:
            return None
        return value_where(condition, value)

    def _share(self, part: Part, request: Request) -> exp.Expr:
        asked = self.requests.setdefault(part.name, {})
        if request not in asked:
            asked[request] = unlike(request.label, asked.values())
        return exp.Column(this=name(asked[request]), table=shares_name(part))

    def text(self, node: exp.Expr) -> exp.Expr:
        """An expression on exact columns over a row of the release."""
        return self.homes.text(node)

    def bare(self, node: exp.Expr | None) -> exp.Expr | None:
        """An expression on one part, its columns without their table."""
        return self.homes.bare(node)
