"""Rows of randomized releases added up before they are weighed.

What a released row of a randomized release weighs is told by its randomized values alone, and there are far fewer
combinations of them than rows. So where all that a query wants are sums of products, exact columns are summed (and rows
counted) for each combination of the randomized columns it reads, and each combination is weighed once.

Whole numbers of few values have their groups found by place and not by hash, which is what makes this the shorter way;
for other types, and for many columns, rows are weighed one by one.

Where rows are counted alone, a column of conditions tells no groups apart: its weight is `share`, and `own` more where
the condition holds, so that a product over all rows is a sum of counts. Of two conditions on a and b,

    rows * share_a * share_b + rows where a * own_a * share_b + rows where b * share_a * own_b + rows where both * ...

and DuckDB counts rows that satisfy a condition sooner than it groups them; its count_if of NULLs alone is NULL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from sqlglot import exp

from duckdb_anon.model.release_formats.duckdb_types import is_integer
from duckdb_anon.rewrite.estimate.row_answers import Place, place_of, shares_name, told_name
from duckdb_anon.rewrite.estimate.row_answers import total as summed
from duckdb_anon.rewrite.estimate.row_weights import factors, is_flag
from duckdb_anon.rewrite.estimate.step_names import unlike
from duckdb_anon.rewrite.query.template import added, copied, every, multiplied, name, number, own, select, tree
from duckdb_anon.rewrite.query.walking import all_of
from duckdb_anon.rewrite.shapes.inverted import RandomizedPart, own_entry
from duckdb_anon.rewrite.shapes.parts import ROW, Part, Request, aliased, labelled

COMBINATIONS = name("combinations")
SUMS = ("sum", "square", "inverted square")
"""Kinds of columns that add rows up."""
CHANCE = "chance"
"""A column that is looked at for being 0, not added up: where combinations are groups, each has a row."""
MOST_COLUMNS = 3
"""Combinations of more columns may be about as many as rows."""
MOST_FLAGS = 2
"""Conditions of a product whose rows are counted: of k conditions there are 2^k counts."""
MOST_COUNTS = 8
"""Counts that take less than groups."""

Key = tuple[str, exp.Expr]
"""Kind of a column of the released rows, and what it is made of."""
Counted = tuple[Place, ...]
"""The answers whose conditions a counted row satisfies, all of them."""
Product = tuple[exp.Expr, list[exp.Column]]
"""What of a row is added up, and the answers that weigh it."""


@dataclass
class Combined:
    """Released rows of a randomized release, added up.

    Attributes:
        totals: SELECT the combinations, with totals.
        columns: what each column that the query wants is made of, over a combination.
        weighed: answers that are in it, and need not be asked of a combination.
        counted: names of the parts that tell them.
        apart: whether combinations are told apart by spread values alone, so that they are the rows the query wants.
    """

    totals: exp.Select
    columns: Mapping[Key, exp.Expr]
    weighed: Collection[Place]
    counted: Collection[str]
    apart: bool


@dataclass(frozen=True)
class _Flag:
    """A condition on a randomized column, over a row of the release, and the part's answer `share`."""

    part: str
    condition: exp.Expr
    share: exp.Column

    def weight(self, times: int, there: bool) -> exp.Expr:
        """What the weight of a row, to the first or second power, is in any case, or more where the condition holds."""
        if not there:
            return multiplied([copied(self.share) for _ in range(times)])
        entry = own_entry(self.share)
        return entry if times == 1 else tree("{own} * (2 * {share} + {own})", own=entry, share=self.share)


def combined(
    parts: Sequence[Part],
    requests: Mapping[str, Mapping[Request, str]],
    spread: Collection[Part],
    columns: Collection[Key],
    conditions: Sequence[exp.Expr],
) -> Combined | None:
    """Add released rows up.

    Args:
        parts: the parts that a query reads.
        requests: what it asks of them, and the labels of the answers.
        spread: those whose values it sees one by one.
        columns: what it wants of each row: sums of products.
        conditions: conditions on exact columns, over a row of the release.

    Returns:
        None where rows are better weighed one by one, and where something is wanted that is no such sum.
    """
    if not parts or not all(isinstance(part, RandomizedPart) for part in parts):
        return None
    shares = {_place(part, label) for part in parts for label in requests.get(part.name, {}).values()}
    products = [product_of(key, shares) for key in columns]
    if not all(products):
        return None
    wanted = dict(zip(columns, (one for one in products if one), strict=True))
    flags = _flags(parts, requests, spread, wanted.values())
    counted = {flag.part for flag in flags.values()}
    grouped = [part for part in parts if part.name not in counted]
    ones = all(amount == number(1) for amount, _ in wanted.values())
    if not flags and (not shares or not _may_group(grouped) or (len(parts) == 1 and ones)):
        return None
    if not (_may_group(grouped) or all(part in spread for part in grouped)):
        return None
    sums: dict[tuple[exp.Expr, Counted], str] = {}
    found = {
        key: multiplied(weights) if key[0] == CHANCE and not flags else _weighed(amount, weights, flags, sums)
        for key, (amount, weights) in wanted.items()
    }
    cells = [exp.Alias(this=copied(part.key), alias=copied(part.key.this)) for part in grouped]
    totals = [
        labelled(
            tree("coalesce(count_if({x}), 0)", x=every([flags[one].condition for one in there]))
            if there
            else summed(amount),
            label,
        )
        for (amount, there), label in sums.items()
    ]
    chosen = select(
        f"select {{cells}}, {{totals}} from {{release}}{' group by all' if cells else ''}",
        cells=cells,
        totals=totals,
        release=aliased(parts[0].release, ROW),
    )
    for condition in conditions:
        chosen.where(condition, copy=False)
    apart = {part.name for part in grouped} == {part.name for part in spread}
    return Combined(chosen, found, set(flags), counted, apart)


def _place(part: Part, label: str) -> Place:
    return shares_name(part).this, name(label).this


def product_of(key: Key, shares: Collection[Place]) -> Product | None:
    """What a column sums, as an amount of a row and the answers that weigh it; None for anything else.

    Args:
        key: the column.
        shares: where answers stand.
    """
    kind, made_of = key
    parts = factors(made_of)
    weights = [one for one in parts if isinstance(one, exp.Column) and place_of(one) in shares]
    others = [one for one in parts if not any(one is weight for weight in weights)]
    if kind not in (*SUMS, CHANCE) or any(place_of(c) in shares for one in others for c in all_of(one, exp.Column)):
        return None
    numbers = [one for one in others if one != tree("1e0")]
    if weights and len([one for one in numbers if not is_flag(one)]) < 2:
        others = numbers  # weights are DOUBLEs
    return multiplied([copied(one) for one in others]), weights


def _flags(
    parts: Sequence[Part],
    requests: Mapping[str, Mapping[Request, str]],
    spread: Collection[Part],
    products: Collection[Product],
) -> dict[Place, _Flag]:
    """The conditions whose rows are better counted than grouped; none where something else than rows is added up."""
    found: dict[Place, _Flag] = {}
    for part in parts:
        asked = requests.get(part.name, {})
        tests = {one: part.asked_of_row(one) for one in asked} if isinstance(part, RandomizedPart) else {}
        if part in spread or any(test is None for test in tests.values()):
            continue
        for request, test in tests.items():
            assert test is not None  # noqa: S101 -- looked at above
            share = exp.Column(this=name(asked[request]), table=told_name(part))
            found[_place(part, asked[request])] = _Flag(part.name, test, share)
    counts: set[Counted] = set()
    for amount, weights in products:
        places = [place_of(one) for one in weights if place_of(one) in found]
        if amount != number(1) or any(places.count(one) > 2 for one in places) or len(set(places)) > MOST_FLAGS:
            return {}
        counts |= set(_subsets(places))
    return found if len(counts) <= MOST_COUNTS else {}


def _subsets(places: Sequence[Place]) -> Iterator[Counted]:
    different = tuple(dict.fromkeys(places))
    return (some for size in range(len(different) + 1) for some in combinations(different, size))


def _weighed(
    amount: exp.Expr,
    weights: Sequence[exp.Column],
    flags: Mapping[Place, _Flag],
    sums: dict[tuple[exp.Expr, Counted], str],
) -> exp.Expr:
    """A product over a combination; the sums that it reads are named.

    Args:
        amount: what is added up.
        weights: the answers that weigh it.
        flags: those that are in counts.
        sums: what is added up, over the rows that satisfy some flags, to its name.
    """
    places = [place_of(one) for one in weights if place_of(one) in flags]
    terms = []
    for there in _subsets(places):
        label = "_".join(["rows_of", *dict.fromkeys(flags[one].part for one in there)]) if there else "rows_there"
        if amount != number(1):
            label = f"total_{len(sums) + 1}"
        # values are added up once, whether or not what has none adds 0
        or_zero = isinstance(amount, exp.Coalesce) and amount.expressions == [number(0)]
        summed_up = amount.this if or_zero else amount
        total: exp.Expr = own(sums.setdefault((summed_up, there), unlike(label, sums.values())))
        if or_zero:
            total = tree("coalesce({total}, 0)", total=total)
        entries = [flags[one].weight(places.count(one), one in there) for one in dict.fromkeys(places)]
        terms.append((1, multiplied([total, *entries])))
    others = [copied(one) for one in weights if place_of(one) not in flags]
    return multiplied([added(terms), *others])


def _may_group(parts: Sequence[Part]) -> bool:
    """Whether the rows of a release are better added up by the values of columns."""
    whole = all(is_integer(part.release.types.get(part.columns[0], "")) for part in parts)
    return whole and len(parts) <= MOST_COLUMNS
