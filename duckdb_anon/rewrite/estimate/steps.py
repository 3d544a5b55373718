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

from duckdb_anon.rewrite.estimate.expectation import BY_VALUE, EXACT, Term
from duckdb_anon.rewrite.estimate.homes import Homes
from duckdb_anon.rewrite.estimate.membership import Membership
from duckdb_anon.rewrite.estimate.row_answers import shares_name, told_name
from duckdb_anon.rewrite.estimate.row_weights import value_where
from duckdb_anon.rewrite.estimate.step_names import label_of, names_of, unlike
from duckdb_anon.rewrite.query.template import copied, multiplied, name, number, own, tree
from duckdb_anon.rewrite.shapes.inverted import RandomizedPart
from duckdb_anon.rewrite.shapes.parts import Part, Request, labelled
from duckdb_anon.rewrite.shapes.released import Model
from duckdb_anon.rewrite.shapes.slices import SlicePart


@dataclass
class Steps:
    """Collects what the final query needs; `step_ctes` writes the CTEs that provide it.

    Attributes:
        homes: assignment of expressions to parts; complete before anything is asked for.
        conditions: conditions on exact columns that every row must satisfy.
        likely: conditions on released rows that are implied by the query's, which leave rows out early.
        inside: conditions that values must satisfy where they are listed, by the part that counts them.
        shown: columns that the final query reads, of those that are spelled out.
        membership: what makes a row's values belong to a group, where bounds are asked of spread values.
        requests: part and what is asked of it, to the column that answers.
        columns: what a column of the released rows is made of, to its name.
    """

    homes: Homes
    conditions: list[exp.Expr] = field(default_factory=list)
    likely: list[exp.Expr] = field(default_factory=list)
    inside: dict[str, list[exp.Expr]] = field(default_factory=dict)
    shown: set[str] = field(default_factory=set)
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
    def asked(self) -> list[Part]:
        """Parts that the final query reads: by value, or what they answer."""
        return [part for part in self.model.parts if part in self.spread or self.requests.get(part.name)]

    @property
    def row_conditions(self) -> list[exp.Expr]:
        """What a row of the release must satisfy."""
        return [self.text(one) for one in self.conditions] + [copied(one) for one in self.likely]

    @property
    def cells(self) -> list[exp.Expr]:
        """The cells of the spread parts, over a row of the release, as columns of the rows."""
        return [labelled(tree("{cell}", cell=part.cell), f"cell_{part.name}") for part in self.spread]

    @property
    def summed(self) -> bool:
        """Whether released rows of equal cells are added up before their values are spelled out."""
        return bool(self.spread) and not any(part.alone for part in self.spread)

    @property
    def added_up(self) -> bool:
        """Whether several released rows may be one row of the last step, though no values are spelled out."""
        return not self.spread and any(isinstance(part, (RandomizedPart, SlicePart)) for part in self.model.parts)

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

    @property
    def joined(self) -> list[Part]:
        """Those of the spread parts whose values are joined."""
        return [part for part in self.spread if part not in self.inverted]

    def of_row(self, part: Part, request: Request, label: str) -> exp.Expr | None:
        """What a released row tells of a request, None where that takes a join.

        Args:
            part: the part that is asked.
            request: what is asked.
            label: the answer's name.
        """
        key = (part.name, request)
        if key not in self._told:
            self._told[key] = part.of_row(request, exp.Column(this=name(label), table=told_name(part)))
        return self._told[key]

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
