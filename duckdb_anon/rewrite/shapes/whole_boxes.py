"""What all values of a box tell, NULL aside: how many rows they are, and their mean; of a row, or added up over rows.

A box that could be anything is spread over the ends of all boxes of the column and NULL: the same for all such rows. So
over rows ends are added up, and rows without them are counted. Holes are those of `interval_forms`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from duckdb_anon.model.release_formats.duckdb_types import decimal_type, is_integer, spread_of
from duckdb_anon.rewrite.query.template import mapped, multiplied, number, own, own_name, tree

NARROW = {"TINYINT", "SMALLINT", "INT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"}
"""Types whose values and their successors are BIGINTs."""
OF_ALL = "(select {of_all} from _every), error(_missing)"
"""What stands in for a box without ends, within a coalesce."""
Line = tuple[Fraction, Fraction]
"""The slope and the shift of slope * value + shift."""


@dataclass(frozen=True)
class WholeBoxes:
    """Closed forms over boxes of a type, all of whose values are asked for."""

    kind: str

    @property
    def discrete(self) -> bool:
        """Whether values are counted."""
        return spread_of(self.kind) == "discrete"

    def of_row(self, line: Line | None) -> exp.Expr:
        """What a box tells.

        Args:
            line: what the mean is asked of; None for the share of values that are not NULL.
        """
        if line is None and not self.discrete:
            return tree("(_cell is not null)::int")
        if line is None:  # which is never NULL
            form = f"case when not _unbounded then 1 when _cell is null then 0 else coalesce({OF_ALL}) end"
            return tree(form, of_all=self._of_all(line))
        form = f"coalesce({{middle}}, case when _cell is null then 0 end, {OF_ALL})"
        return tree(form, middle=self._middle(*line), of_all=self._of_all(line))

    def of_rows(self, line: Line | None) -> exp.Expr | None:
        """What boxes tell, added up; None where a count of rows tells it.

        Args:
            line: what the mean is asked of; None for the share of values that are not NULL.
        """
        if line is None and not self.discrete:
            return None
        known = tree("count(_low)") if line is None else tree("coalesce(sum({x}), 0)", x=self._middle(*line))
        return tree(
            "{known} + case when count(_cell) > count(_low) "
            f"then (count(_cell) - count(_low)) * coalesce({OF_ALL}) else 0 end",
            known=known,
            of_all=self._of_all(line),
        )

    def _middle(self, slope: Fraction, shift: Fraction) -> exp.Expr:
        """The line in the middle of a box; as a DOUBLE, since DECIMALs take thrice as long."""
        total = "{low} + {high}"
        if self.kind.upper() in NARROW:
            total = "(0e0 + {low} + {high})"
        elif is_integer(self.kind) or decimal_type(self.kind):
            total = "({low}::double + {high})"
        return line_of(slope / 2, tree(total, low=own("low"), high=own("high")), shift)

    def _of_all(self, line: Line | None) -> exp.Expr:
        """What a box tells that could be anything, NULL among it."""
        of_box = of_all_boxes(number(1) if line is None else self._middle(*line))
        if not self.discrete:
            return of_box
        chance = tree(f"1 - 1 / {all_values(self.kind)}", low=own("least"), high=own("most"))
        return chance if line is None else multiplied([of_box, chance])


def all_values(kind: str) -> str:
    """The number of values between two ends, and NULL.

    Args:
        kind: their type.
    """
    return "({high} - {low} + 2)" if kind.upper() == "DATE" else "(2.0 + {high} - {low})"


def of_all_boxes(node: exp.Expr) -> exp.Expr:
    """A form over the ends of a box, over those of all boxes.

    Args:
        node: the form.
    """
    ends = {"low": own("least"), "high": own("most")}
    return mapped(node, lambda one: ends.get(own_name(one)) if isinstance(one, exp.Column) else None)


def line_of(slope: Fraction, at: exp.Expr, shift: Fraction) -> exp.Expr:
    """A line.

    Args:
        slope: the factor.
        at: a number.
        shift: what is added.
    """
    if not slope:
        return number(shift)
    scaled = multiplied([number(slope), at])
    return tree("{scaled} + {shift}", scaled=scaled, shift=number(shift)) if shift else scaled
