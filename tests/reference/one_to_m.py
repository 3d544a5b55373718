"""Slow, obvious versions of what itemsets/ does, straight from the papers' text, on Python sets."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

Tree = Mapping[str, str | None]
"""Parent of every node; the root's is None."""
Bucket = tuple[frozenset[str], list[int]]


def children(tree: Tree, node: str) -> list[str]:
    return [v for v, parent in tree.items() if parent == node]


def leaves(tree: Tree, node: str) -> set[str]:
    below = children(tree, node)
    return {node} if not below else set().union(*(leaves(tree, v) for v in below))


def root(tree: Tree) -> str:
    return next(v for v, parent in tree.items() if parent is None)


def ncp(tree: Tree, node: str) -> float:
    size = len(leaves(tree, node))
    return 0.0 if size == 1 else size / len(leaves(tree, root(tree)))


def cover(tree: Tree, cut: Iterable[str], item: str) -> str:
    """The one node of `cut` above or at `item`; fails when there is not exactly one."""
    (node,) = [v for v in cut if item in leaves(tree, v)]
    return node


def partition(records: Sequence[set[str]], tree: Tree, k: int) -> list[Bucket]:
    """Partition of He & Naughton 2009: one node a bucket, small parts dissolved, the rest tried again."""
    done: list[Bucket] = []
    stack = [(frozenset([root(tree)]), list(range(len(records))), frozenset[str](), False)]
    while stack:
        cut, members, tried, final = stack.pop()
        open_nodes = sorted(v for v in cut if children(tree, v) and v not in tried)
        if final or not open_nodes:
            done.append((cut, members))
            continue
        node = max(open_nodes, key=lambda v: sum(_gain(tree, v, records[i]) for i in members))
        parts: dict[frozenset[str], list[int]] = defaultdict(list)
        for i in members:
            parts[frozenset(v for v in children(tree, node) if leaves(tree, v) & records[i])].append(i)
        rest, final = _balance(parts, [_gain(tree, node, r) for r in records], k)
        stack += [(cut - {node} | part, inside, frozenset(), False) for part, inside in parts.items()]
        if rest:
            stack.append((cut, rest, tried | {node}, final))
    return done


def _gain(tree: Tree, node: str, record: set[str]) -> float:
    gains = (ncp(tree, node) - ncp(tree, v) for v in children(tree, node) for _ in leaves(tree, v) & record)
    return sum(gains)


def _balance(parts: dict[frozenset[str], list[int]], gain: Sequence[float], k: int) -> tuple[list[int], bool]:
    """Dissolve parts below k; return the rest, made up to k, and whether it must not be split again."""
    rest = [i for part in [p for p, inside in parts.items() if len(inside) < k] for i in parts.pop(part)]
    while 0 < len(rest) < k and parts:
        able = [(gain[i], i, part) for part, inside in parts.items() if len(inside) > k for i in inside]
        if not able:
            least = min(parts, key=lambda part: sum(gain[i] for i in parts[part]))
            return rest + parts.pop(least), True
        _, i, part = min(able, key=lambda found: found[:2])
        parts[part].remove(i)
        rest.append(i)
    return rest, False


def sa_ncp(records: Sequence[set[str]], cuts: Sequence[frozenset[str]], tree: Tree) -> float:
    """Mean NCP over original items of the nodes that replace them (Gong et al. 2017, equation 4)."""
    losses = [ncp(tree, cover(tree, cut, x)) for record, cut in zip(records, cuts, strict=True) for x in record]
    return sum(losses) / len(losses)


def supports(lists: Iterable[Iterable[str]], m: int) -> Counter[tuple[str, ...]]:
    """How many lists contain each set of at most m of their distinct nodes."""
    found: Counter[tuple[str, ...]] = Counter()
    for nodes in lists:
        for size in range(1, m + 1):
            found.update(combinations(sorted(set(nodes)), size))
    return found


def km_anonymity(lists: Iterable[Iterable[str]], m: int) -> int:
    """Smallest support of a set of at most m nodes that occurs."""
    return min(supports(lists, m).values())
