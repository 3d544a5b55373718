"""The deFinetti attack by its definition: dictionaries and loops, one bucket at a time."""

from collections import Counter
from collections.abc import Sequence

Row = Sequence[object]


def spread(
    rows: Sequence[Row], bucket: Sequence[object], held: Sequence[object], rounds: int, passes: int
) -> list[dict[object, float]]:
    """Weights of the values of its bucket for every row; `passes` of Sinkhorn's scaling in each of the `rounds` of EM."""
    counts = {b: Counter(v for v, c in zip(held, bucket, strict=True) if c == b) for b in bucket}
    weights = [{v: n / sum(counts[b].values()) for v, n in counts[b].items()} for b in bucket]
    columns = range(len(rows[0]))
    share = [{v: n / len(rows) for v, n in Counter(r[a] for r in rows).items()} for a in columns]
    for _ in range(rounds):
        prior = {v: sum(w.get(v, 0) for w in weights) for v in held}
        joint = Counter[tuple[object, ...]]()
        for row, w in zip(rows, weights, strict=True):
            for v, n in w.items():
                for a in columns:
                    joint[a, row[a], v] += n
        fresh = []
        for row, b in zip(rows, bucket, strict=True):
            fit = {}
            for v in counts[b]:
                fit[v] = 1.0
                for a in columns:
                    fit[v] *= (joint[a, row[a], v] + share[a][row[a]]) / (prior[v] + 1)
            fresh.append(fit)
        for b in counts:
            mine = [w for w, c in zip(fresh, bucket, strict=True) if c == b]
            for _ in range(passes):
                for v, n in counts[b].items():
                    total = sum(w[v] for w in mine)
                    for w in mine:
                        w[v] *= n / total
                for w in mine:
                    total = sum(w.values())
                    for v in w:
                        w[v] /= total
        weights = fresh
    return weights
