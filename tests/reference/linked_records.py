"""What an insider knows of a group whose members' rows were permuted place by place: by counting all permutations.

The insider knows the members, all original values and which rows are kept, and sees which values each pseudonym has
in each place. Each way to give the members the pseudonyms is as likely as there are permutations of the columns, one
for each place, that turn its members' values into those of the pseudonyms.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import permutations

Places = Mapping[int, tuple[object, ...]]  # values of a row by its place


def chance_of_own_row(originals: Sequence[Places], released: Sequence[Places]) -> list[Fraction]:
    """For each member the probability that the pseudonym of the same number is its own."""
    ways = {}
    for given in permutations(range(len(originals))):  # member m has the pseudonym given[m]
        ways[given] = 1
        for place in {place for record in [*originals, *released] for place in record}:
            columns = {len(record[place]) for record in [*originals, *released] if place in record}
            for column in range(max(columns)):
                before = [record[place][column] if place in record else None for record in originals]
                after = [
                    released[given[m]][place][column] if place in released[given[m]] else None
                    for m, _ in enumerate(originals)
                ]
                ways[given] *= _ways(before, after)
    total = sum(ways.values())
    return [
        Fraction(sum(many for given, many in ways.items() if given[m] == m), total) for m, _ in enumerate(originals)
    ]


def _ways(before: Sequence[object], after: Sequence[object]) -> int:
    """Permutations of the rows that there are that turn one column into the other; a row that is missing stays so."""
    there = [m for m, value in enumerate(before) if value is not None]
    if any((value is None) != (m not in there) for m, value in enumerate(after)):
        return 0
    return sum(
        all(before[source] == after[m] for m, source in zip(there, order, strict=True)) for order in permutations(there)
    )
