"""Slow, obvious versions of what itemsets/ does, straight from the papers' text, on Python sets."""

from collections.abc import Iterable, Mapping, Sequence

Tree = Mapping[str, str | None]
"""Parent of every node; the root's is None."""


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


def sa_ncp(records: Sequence[set[str]], cuts: Sequence[frozenset[str]], tree: Tree) -> float:
    """Mean NCP over original items of the nodes that replace them (Gong et al. 2017, equation 4)."""
    losses = [ncp(tree, cover(tree, cut, x)) for record, cut in zip(records, cuts, strict=True) for x in record]
    return sum(losses) / len(losses)
