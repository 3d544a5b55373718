"""The one tree class: every view against an obvious walk over paths of labels."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from duckdb_anon.model.hierarchy import Hierarchy

Path = tuple[str, ...]


@st.composite
def paths(draw: st.DrawFn) -> list[Path]:
    """Root-to-leaf paths of a random tree, some of them with chains of one child, in the order of their labels."""
    found: list[Path] = []

    def grow(path: Path, left: int) -> None:
        children = draw(st.integers(0 if path[1:] else 1, 3)) if left else 0
        if not children:
            found.append(path)
        for child in range(children):
            grow((*path, f"{path[-1]}{child}"), left - 1)

    grow(("*",), draw(st.integers(1, 4)))
    return sorted(found)


@given(paths())
def test_views_are_those_of_the_paths(every):
    tree = Hierarchy.of_paths(every)
    nodes = {tree.labels[v]: v for v in range(len(tree.labels))}
    node_of = {path[:depth]: nodes[path[depth - 1]] for path in every for depth in range(1, len(path) + 1)}
    assert sorted(node_of.values()) == list(range(len(tree.labels)))
    for path, v in node_of.items():
        leaves = [leaf for leaf, whole in enumerate(every) if whole[: len(path)] == path]
        assert tree.leaf_count[v] == len(leaves)
        assert tree.first_leaf[v] == leaves[0]
        assert tree.depth[v] == len(path) - 1
        assert tree.level[v] == max(len(every[leaf]) for leaf in leaves) - len(path)
        assert tree.ncp[v] == (0 if len(leaves) == 1 else len(leaves) / len(every))
        assert tree.holds(v, np.arange(len(every))).tolist() == [leaf in leaves for leaf in range(len(every))]
        siblings = sorted(u for other, u in node_of.items() if other[:-1] == path[:-1] and len(other) == len(path))
        assert tree.ordinal[v] == siblings.index(v)
    for leaf, path in enumerate(every):
        upward = [node_of[path[: min(depth + 1, len(path))]] for depth in range(len(tree.ancestors))]
        assert tree.ancestors[:, leaf].tolist() == upward
        for above, beneath in pairwise(upward):
            assert tree.child(np.array([above]), np.array([leaf])).tolist() == [beneath]


@given(paths(), paths())
def test_trees_side_by_side_are_each_itself(first, second):
    trees = [Hierarchy.of_paths(first), Hierarchy.of_paths(second)]
    both = Hierarchy.joined(trees)
    for k, tree in enumerate(trees):
        mine = both.tree_of_node == k
        for view in ("level", "leaf_count", "depth", "ncp"):
            assert getattr(both, view)[mine].tolist() == getattr(tree, view).tolist()
        leaves = np.arange(tree.leaves) + k * trees[0].leaves
        shift = k * len(trees[0].labels)
        for depth, row in enumerate(tree.ancestors):
            assert both.ancestors[depth, leaves].tolist() == (row + shift).tolist()
