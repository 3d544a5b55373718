"""What a release means, drawn at random: completions of every row, and the query answered on each of them."""

import datetime as dt
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

Row = dict[str, Any]


def boxes_completion(rows: Sequence[Row], leaves: dict[str, list[str]], rng: np.random.Generator) -> list[Row]:
    """Draw every cell of a table of boxes uniformly: whole numbers and days, real numbers, lists, tree leaves."""
    return [{name: _drawn(cell, leaves, rng) for name, cell in row.items()} for row in rows]


def buckets_completion(rows: Sequence[Row], column: str, rng: np.random.Generator) -> list[Row]:
    """Hand out the values of each bucket's MAP to the bucket's rows in random order."""
    members: dict[Any, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        members[row["bucket"]].append(i)
    complete = [{name: cell for name, cell in row.items() if name != "bucket"} for row in rows]
    for mine in members.values():
        bag = [value for value, count in rows[mine[0]][column].items() for _ in range(count)]
        bag += [None] * (len(mine) - len(bag))
        for i, place in zip(mine, rng.permutation(len(mine)), strict=True):
            complete[i][column] = bag[place]
    return complete


def sliced_completion(rows: Sequence[Row], rng: np.random.Generator) -> list[Row]:
    """Permute every STRUCT column inside each bucket."""
    members: dict[Any, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        members[row["bucket"]].append(i)
    complete: list[Row] = [{} for _ in rows]
    for name in rows[0]:
        if name == "bucket":
            continue
        for mine in members.values():
            for i, place in zip(mine, rng.permutation(mine), strict=True):
                complete[i].update(rows[place][name])
    return complete


def answers(
    con: duckdb.DuckDBPyConnection, schema: pa.Schema, completions: Iterator[list[Row]], queries: Sequence[str]
) -> list[list[dict[tuple[Any, ...], tuple[Any, ...]]]]:
    """Answer queries over `people` on every completion: per query, per completion, key to measures.

    A query's first columns are keys; those named m1, m2, ... are measures.
    """
    found: list[list[dict[tuple[Any, ...], tuple[Any, ...]]]] = [[] for _ in queries]
    for complete in completions:
        con.register("people", pa.Table.from_pylist(complete, schema=schema))
        for number, query in enumerate(queries):
            found[number].append(keyed(con, query))
    con.unregister("people")
    return found


def keyed(con: duckdb.DuckDBPyConnection, query: str) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Rows of a query as key to measures."""
    cursor = con.execute(query)
    names = [d[0] for d in cursor.description]
    cut = next(i for i, name in enumerate(names) if name.startswith("m"))
    return {row[:cut]: row[cut:] for row in cursor.fetchall()}


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Mean of draws and its standard error."""
    array = np.asarray(values, dtype=float)
    return float(array.mean()), float(array.std(ddof=1) / math.sqrt(len(array)))


def _drawn(cell: Any, leaves: dict[str, list[str]], rng: np.random.Generator) -> Any:
    if isinstance(cell, dict):
        low, high = cell["lower"], cell["upper"]
        if isinstance(low, float):
            return low + (high - low) * rng.random()
        if isinstance(low, int):
            return low + int(rng.integers(high - low + 1))
        return low + dt.timedelta(days=int(rng.integers((high - low).days + 1)))
    if isinstance(cell, list):
        return cell[rng.integers(len(cell))]
    if isinstance(cell, str) and cell in leaves:
        return leaves[cell][rng.integers(len(leaves[cell]))]
    return cell
