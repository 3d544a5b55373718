"""The one tree class: every view against an obvious walk over paths of labels."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from duckdb_anon.model.hierarchy import NULL_LEAF, Hierarchy

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


def below(every: list[Path], node: Path) -> list[int]:
    return [leaf for leaf, path in enumerate(every) if path[: len(node)] == node]


@given(paths())
def test_views_are_those_of_the_paths(every):
    tree = Hierarchy.of_paths(every)
    nodes = {tree.labels[v]: v for v in range(len(tree.labels))}
    node_of = {path[:depth]: nodes[path[depth - 1]] for path in every for depth in range(1, len(path) + 1)}
    assert sorted(node_of.values()) == list(range(len(tree.labels)))
    for path, v in node_of.items():
        leaves = below(every, path)
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


@given(paths(), st.data())
def test_lowest_common_nodes_are_the_longest_common_beginnings(every, data):
    tree = Hierarchy.of_paths(every)
    some = st.integers(0, len(every) - 1)
    low, high = sorted((data.draw(some), data.draw(some)))
    shared = 0
    while every[low][: shared + 1] == every[high][: shared + 1] and shared < min(map(len, (every[low], every[high]))):
        shared += 1
    node, depth = tree.common(np.array([low]), np.array([high]))
    assert tree.labels[node[0]] == every[low][shared - 1]
    assert depth[0] >= shared - 1
    assert tree.lowest_above(tree.node_of_leaf[[low]], np.array([high])).tolist() == node.tolist()
    leaves = len(below(every, every[low][:shared]))
    assert tree.share(np.array([low]), np.array([high]))[0] == (0 if low == high else leaves / len(every))


@given(paths())
def test_squeezed_trees_keep_the_lowest_node_of_each_chain(every):
    tree = Hierarchy.of_paths(every)
    lowest = {tuple(below(every, path[:depth])): path[depth - 1] for path in every for depth in range(1, len(path) + 1)}
    squeezed = tree.squeezed
    assert sorted(squeezed.labels) == sorted(lowest.values())
    for v, label in enumerate(squeezed.labels):
        first = squeezed.first_leaf[v]
        assert lowest[tuple(range(first, first + squeezed.leaf_count[v]))] == label
    parents = squeezed.parent[squeezed.parent >= 0]
    assert (np.bincount(parents, minlength=len(squeezed.labels))[np.unique(parents)] > 1).all()


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


def test_null_is_a_leaf_under_the_root_and_after_all_others():
    tree = Hierarchy.of_paths([("*", "a"), ("*", "b")], "letters").with_null()
    assert tree.leaf_labels == ("a", "b", NULL_LEAF)
    assert tree.parent.tolist() == [-1, 0, 0, 0]
    assert tree.name == "letters"
