"""Rounded ends of intervals of whole numbers, the slow obvious way."""

from collections.abc import Sequence

Rows = Sequence[tuple[int, int]]  # value and person
STEPS = [part * 10**power for power in range(17, -1, -1) for part in (5, 2, 1)]


def persons(rows: Rows, values: Sequence[int]) -> int:
    """Persons who have one of the values."""
    return len({person for value, person in rows if value in values})


def classes_of(rows: Rows, least: int) -> list[list[int]]:
    """Values dealt in rising order into classes of at least that many persons; what is left joins the last one."""
    found: list[list[int]] = [[]]
    for value in sorted({value for value, _ in rows}):
        if persons(rows, found[-1]) >= least:
            found.append([])
        found[-1].append(value)
    if len(found) > 1 and persons(rows, found[-1]) < least:
        left = found.pop()
        found[-1] += left
    return found


def roundest(low: int, high: int) -> int:
    """The number between the two that is a multiple of the largest step, of several the first."""
    for step in STEPS:
        first = -(-low // step) * step
        if first <= high:
            return first
    raise AssertionError


def reached(rows: Rows, least: int) -> int:
    """The greatest value that so many persons have or exceed."""
    values = sorted({value for value, _ in rows})
    return next((v for v in reversed(values) if persons(rows, [w for w in values if w >= v]) >= least), values[0])


def upper_ends(rows: Rows, least: int) -> dict[int, int]:
    """Published end of an interval that ends at each value."""
    classes = classes_of(rows, least)
    top = reached(rows, least)
    bottom = -reached([(-value, person) for value, person in rows], least)
    ends: dict[int, int] = {}
    for place, members in enumerate(classes):
        greatest = max(members)
        if persons(rows, [greatest]) >= least:
            end = greatest
        elif place == len(classes) - 1:
            step = next((s for s in STEPS if s <= abs(top - bottom) / 10), 1)
            start = -(-top // step) * step
            beyond = [0, *(part * 10**power for power in range(20) for part in (1, 2, 5))]
            end = next(start + count * step for count in beyond if start + count * step >= greatest)
            end = min(end, 0) if greatest <= 0 else end
        else:
            end = roundest(greatest, top if place == len(classes) - 2 else max(classes[place + 1]))
        ends |= dict.fromkeys(members, end)
    return ends


def lower_ends(rows: Rows, least: int) -> dict[int, int]:
    """Published start of an interval that starts at each value: the mirror image."""
    return {-v: -end for v, end in upper_ends([(-value, person) for value, person in rows], least).items()}
