"""Slow, obvious versions of partitioning: plain Python over lists of values, one group after the other."""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction

import pyarrow as pa

from duckdb_anon.engine.transport.column_coding import code_column
from duckdb_anon.engine.transport.hierarchy_io import read_tree
from duckdb_anon.model.coded_table import Attribute

Group = tuple[int, ...]
Predicate = Callable[[Group], bool]


def attribute(name: str, values: Sequence[object], kind: str = "", tree: Sequence[Sequence[str]] = ()) -> Attribute:
    """Code a list of values; `tree` lists leaf, ancestors, root."""
    paths = None
    if tree:
        paths = read_tree("test", name, [pa.array(level) for level in zip(*tree, strict=True)])
    return code_column("test", name, pa.array(values), kind, paths)


# ---- requirements, on the list of a group's sensitive values


def effective_entropy(values: Sequence[Hashable]) -> float:
    shares = [c / len(values) for c in Counter(values).values()]
    return math.exp(-sum(p * math.log(p) for p in shares))


def effective_frequency(values: Sequence[Hashable]) -> float:
    return len(values) / max(Counter(values).values())


def recursive(values: Sequence[Hashable], c: float, least: int) -> bool:
    counts = sorted(Counter(values).values(), reverse=True)
    return len(counts) >= least and counts[0] < Fraction(str(c)) * sum(counts[least - 1 :])


def equal_emd(group: Sequence[int], table: Sequence[int]) -> float:
    """Exact, so that a distance equal to the limit is not above it."""
    p, q = Counter(group), Counter(table)
    return float(sum(abs(Fraction(p[v], len(group)) - Fraction(q[v], len(table))) for v in q) / 2)


def ordered_emd(group: Sequence[int], table: Sequence[int]) -> float:
    domain = sorted(set(table))
    p, q, carried, total = Counter(group), Counter(table), 0.0, 0.0
    for value in domain[:-1]:
        carried += p[value] / len(group) - q[value] / len(table)
        total += abs(carried)
    return total / (len(domain) - 1) if len(domain) > 1 else 0.0


def tree_emd(group: Sequence[str], table: Sequence[str], paths: Sequence[Sequence[str]]) -> float:
    """Move mass up the tree level by level; all paths have the same length (leaf first)."""
    height = len(paths[0]) - 1
    extra = {
        tuple(reversed(path)): Counter(group)[path[0]] / len(group) - Counter(table)[path[0]] / len(table)
        for path in paths
    }
    total = 0.0
    for level in range(1, height + 1):
        above: dict[tuple[str, ...], list[float]] = {}
        for node, amount in extra.items():
            above.setdefault(node[:-1], []).append(amount)
        for amounts in above.values():
            positive, negative = sum(a for a in amounts if a > 0), -sum(a for a in amounts if a < 0)
            total += level / height * min(positive, negative)
        extra = {node: sum(amounts) for node, amounts in above.items()}
    return total


# ---- widths


def ancestors(attr: Attribute, leaf: int) -> list[int]:
    """Nodes from the root down to a leaf."""
    assert attr.hierarchy is not None
    node, chain = int(attr.hierarchy.node_of_leaf[leaf]), []
    while node >= 0:
        chain.append(node)
        node = int(attr.hierarchy.parent[node])
    return chain[::-1]


def common_ancestor(attr: Attribute, leaves: Sequence[int]) -> int:
    chains = [ancestors(attr, leaf) for leaf in leaves]
    return [level[0] for level in zip(*chains, strict=False) if len(set(level)) == 1][-1]


def leaf(attr: Attribute, row: int) -> int:
    assert attr.leaf_of_code is not None
    return int(attr.leaf_of_code[attr.codes[row]])


def ncp(attr: Attribute, group: Group, *, as_set: bool) -> float:
    """Normalized certainty penalty of the tight box; nominal values as a set or as ordered codes."""
    codes = sorted({int(attr.codes[row]) for row in group})
    if len(codes) == 1:
        return 0.0
    if attr.hierarchy is not None:
        node = common_ancestor(attr, [leaf(attr, row) for row in group])
        return float(attr.hierarchy.leaf_count[node] / attr.hierarchy.leaves)
    if attr.kind == "nominal" and as_set:
        return len(codes) / attr.domain
    if codes[-1] >= attr.special_from:
        return 1.0
    return float((attr.positions[codes[-1]] - attr.positions[codes[0]]) / attr.span)


def width(attr: Attribute, group: Group, kind: str) -> float:
    if kind == "distinct":
        return len({int(attr.codes[row]) for row in group})
    if kind == "spread":
        values = [Fraction(float(attr.positions[attr.codes[row]])) for row in group]
        if attr.hierarchy is not None:
            values = [Fraction(leaf(attr, row)) for row in group]
        mean = sum(values) / len(values)
        return float(sum((value - mean) ** 2 for value in values))
    return ncp(attr, group, as_set=False)


# ---- cuts


def child_parts(attr: Attribute, group: Group) -> list[Group]:
    """Rows of a group by child of their lowest common ancestor, in tree order."""
    node = common_ancestor(attr, [leaf(attr, row) for row in group])
    parts: dict[int, list[int]] = {}
    for row in group:
        chain = ancestors(attr, leaf(attr, row))
        parts.setdefault(chain[chain.index(node) + 1], []).append(row)
    return [tuple(parts[child]) for child in sorted(parts)]


def median_parts(attr: Attribute, group: Group, mode: str, *, below: bool = False) -> list[Group]:
    if attr.hierarchy is not None:
        return child_parts(attr, group)
    ordered = sorted(group, key=lambda row: (attr.codes[row], row))
    if mode == "relaxed":
        half = (len(group) + 1) // 2
        return [tuple(ordered[:half]), tuple(ordered[half:])]
    median = attr.codes[ordered[(len(group) - 1) // 2]]
    if below:
        return [
            tuple(r for r in ordered if attr.codes[r] < median),
            tuple(r for r in ordered if attr.codes[r] >= median),
        ]
    return [tuple(r for r in ordered if attr.codes[r] <= median), tuple(r for r in ordered if attr.codes[r] > median)]


def mondrian(qi: Sequence[Attribute], holds: Predicate, kind: str = "range", mode: str = "strict") -> set[Group]:
    """Cut at medians of the widest attribute until nothing can be cut; groups as sorted tuples of rows."""
    stack, done = [tuple(range(len(qi[0].codes)))], set()
    while stack:
        group = stack.pop()
        for attr in sorted(qi, key=lambda a: -width(a, group, kind)):
            if len({int(attr.codes[row]) for row in group}) == 1:
                continue
            tries = [median_parts(attr, group, mode)]
            if mode == "strict" and attr.kind == "nominal":
                tries.append(median_parts(attr, group, mode, below=True))
            allowed = [parts for parts in tries if all(part and holds(part) for part in parts)]
            if allowed:
                stack.extend(allowed[0])
                break
        else:
            done.add(tuple(sorted(group)))
    return done


def loss_cuts(attr: Attribute, group: Group) -> list[list[Group]]:
    """Every cut of one attribute that the loss-guided partition may take, in its order of preference."""
    codes = sorted({int(attr.codes[row]) for row in group})
    if len(codes) < 2:
        return []
    if attr.hierarchy is not None:
        parts = child_parts(attr, group)
        one_off = [[part, tuple(row for row in group if row not in part)] for part in parts]
        return [parts] + (one_off if len(parts) > 2 else [])

    def halves(left: set[int]) -> list[Group]:
        return [
            tuple(row for row in group if int(attr.codes[row]) in left),
            tuple(row for row in group if int(attr.codes[row]) not in left),
        ]

    if attr.kind != "nominal":
        return [halves(set(codes[: i + 1])) for i in range(len(codes) - 1)]
    count = Counter(int(attr.codes[row]) for row in group)
    ranked = sorted(codes, key=lambda code: (-count[code], code))
    most_frequent = [halves(set(ranked[: i + 1])) for i in range(len(ranked) - 1)]
    return most_frequent + [halves({code}) for code in ranked[1:]]


def gain(attr: Attribute, group: Group, parts: Sequence[Group]) -> float:
    return len(group) * ncp(attr, group, as_set=True) - sum(len(p) * ncp(attr, p, as_set=True) for p in parts)
