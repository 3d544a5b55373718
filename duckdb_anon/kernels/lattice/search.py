"""Which levels of generalization satisfy a requirement: Incognito's search of the lattice.

Nodes are level vectors. A requirement that is monotone under union holds for every generalization of a node
for which it holds (so those need no check), and fails wherever it fails for fewer attributes (so those are
never made). All requirements here are monotone; with suppression only k-anonymity and distinct diversity are, and
for the others every node is checked. Paper: LeFevre, DeWitt and Ramakrishnan (2005), Incognito, sections 3.1 and
3.2. Cost: exponential in the attributes at worst, one frequency set a node checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, product
from math import prod

from duckdb_anon.kernels.lattice.frequency import Counter, FrequencySet, Levels, Subset

Passes = Callable[[FrequencySet], bool]


def valid_nodes(
    counter: Counter, passes: Passes, *, monotone: bool = True, tick: Callable[[], None] | None = None
) -> set[Levels]:
    """Return every node over all attributes whose frequency set passes.

    Args:
        counter: the table, counted.
        passes: whether a frequency set satisfies the requirement.
        monotone: whether a generalization of a passing node always passes; if not, every node is checked.
        tick: called once a node, to poll for interrupts.
    """
    heights = [ladder.height for ladder in counter.ladders]
    every = tuple(range(len(heights)))
    if not monotone:
        return _search(counter, every, _grid(heights), passes, False, tick)
    valid: dict[Subset, set[Levels]] = {(): {()}}
    for size in range(1, len(every) + 1):
        valid = {
            subset: _search(counter, subset, _candidates(valid, subset, heights), passes, True, tick)
            for subset in combinations(every, size)
        }
    return valid[every]


def most_nodes(heights: Iterable[int], *, monotone: bool = True) -> int:
    """How many nodes a search may visit at most: every level vector, of every subset of the attributes if monotone.

    >>> most_nodes([1, 2]), most_nodes([1, 2], monotone=False)
    (11, 6)
    """
    return prod(height + 2 for height in heights) - 1 if monotone else prod(height + 1 for height in heights)


def minimal_nodes(valid: set[Levels]) -> list[Levels]:
    """Nodes without a valid direct specialization, sorted.

    >>> minimal_nodes({(0, 1), (1, 0), (1, 1), (0, 2)})
    [(0, 1), (1, 0)]
    """
    return sorted(node for node in valid if not any(below in valid for below in _specializations(node)))


def _grid(heights: Iterable[int]) -> list[Levels]:
    return list(product(*(range(height + 1) for height in heights)))


def _specializations(node: Levels) -> Iterator[Levels]:
    for i, level in enumerate(node):
        if level:
            yield (*node[:i], level - 1, *node[i + 1 :])


def _candidates(valid: dict[Subset, set[Levels]], subset: Subset, heights: list[int]) -> list[Levels]:
    """Nodes all of whose projections to one attribute less are valid."""
    shorter = [(i, valid[subset[:i] + subset[i + 1 :]]) for i in range(len(subset))]
    return [
        (*head, level)
        for head in valid[subset[:-1]]
        for level in range(heights[subset[-1]] + 1)
        if all((*head, level)[:i] + (*head, level)[i + 1 :] in nodes for i, nodes in shorter)
    ]


def _search(
    counter: Counter,
    subset: Subset,
    nodes: Iterable[Levels],
    passes: Passes,
    monotone: bool,
    tick: Callable[[], None] | None,
) -> set[Levels]:
    """Valid nodes among `nodes`, by height; frequency sets are kept for one height only."""
    valid: set[Levels] = set()
    below: dict[Levels, FrequencySet] = {}
    here: dict[Levels, FrequencySet] = {}
    height = -1
    for node in sorted(nodes, key=lambda n: (sum(n), n)):
        if sum(node) != height:
            below, here, height = (here if sum(node) == height + 1 else {}), {}, sum(node)
        if monotone and any(finer in valid for finer in _specializations(node)):
            valid.add(node)
            continue
        if tick is not None:
            tick()
        source = next((finer for finer in _specializations(node) if finer in below), None)
        found = counter.at(subset, node) if source is None else counter.roll_up(below[source], subset, source, node)
        here[node] = found
        if passes(found):
            valid.add(node)
    return valid
