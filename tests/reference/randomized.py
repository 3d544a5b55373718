"""Randomized response the slow way: full matrices, loops over cells, a grid instead of an optimiser."""

import itertools

import numpy as np

from duckdb_anon.kernels.randomized_response.risk import RiskModel, occupied_cells

PAPER_TABLE = np.array([[18, 16, 18], [12, 16, 20]])
"""Rows male, female; columns cancer and two others; female with cancer is .12 of 100 records (Table 1b)."""


def channel_matrix(size: int, p: float) -> np.ndarray:
    """Column-stochastic matrix: entry [u, v] is the probability that v is released as u."""
    matrix = np.full((size, size), (1 - p) / max(size - 1, 1))
    np.fill_diagonal(matrix, p if size > 1 else 1.0)
    return matrix


def kronecker(sizes: list[int], shares: list[float]) -> np.ndarray:
    """The full channel over all combinations, first attribute slowest."""
    full = np.ones((1, 1))
    for size, p in zip(sizes, shares, strict=True):
        full = np.kron(full, channel_matrix(size, p))
    return full


def inverted(cells: np.ndarray, shares: list[float]) -> np.ndarray:
    """Counts of the original estimated from released ones, one axis an attribute, by the full inverse."""
    inverse = np.linalg.inv(kronecker(list(cells.shape), shares))
    return (inverse @ cells.ravel()).reshape(cells.shape)


def count_variance(released: np.ndarray, shares: list[float], population: bool) -> np.ndarray:
    """Estimated variance of each estimated count: with the sampling of the records, or against the table itself."""
    inverse = np.linalg.inv(kronecker(list(released.shape), shares))
    estimate = inverted(released, shares)
    spread = (inverse**2 @ released.ravel()).reshape(released.shape)
    return np.maximum(spread - (estimate**2 / released.sum() if population else estimate), 0.0)


def reconstruction(prior: np.ndarray, channel: np.ndarray) -> np.ndarray:
    """Lemma 1 of Guo, Ying and Wu by its definition: round trips over every released value."""
    released = channel @ prior
    found = np.zeros(len(prior))
    for true, out in itertools.product(range(len(prior)), range(len(prior))):
        if released[out] > 0:
            posterior = channel[out, true] * prior[true] / released[out]
            found[true] += channel[out, true] * posterior
    return found


def risk(counts: np.ndarray, p_qi: list[float], p_sensitive: float) -> np.ndarray:
    """Result 1 for every cell of a table whose last axis is the sensitive attribute; 0 in empty cells."""
    *sizes, values = counts.shape
    flat = counts.reshape(-1, values).astype(float)
    cells = flat.sum(1)
    rec_cell = reconstruction(cells / cells.sum(), kronecker(list(sizes), p_qi))
    matrix = channel_matrix(values, p_sensitive)
    result = np.zeros(flat.shape)
    for cell in range(len(flat)):
        if cells[cell] == 0:
            continue
        inside = flat[cell] / cells[cell]
        rec_value = reconstruction(inside, matrix)
        for value in range(values):
            if flat[cell, value]:
                result[cell, value] = inside[value] * rec_cell[cell] * rec_value[value]
    return result.reshape(counts.shape)


def rows_of(counts: np.ndarray) -> list[np.ndarray]:
    """One code array per axis, a row per record."""
    index = np.indices(counts.shape).reshape(counts.ndim, -1)
    return [np.repeat(axis, counts.ravel()).astype(np.int32) for axis in index]


def model_of(counts: np.ndarray) -> RiskModel:
    """The package's model of a table of counts, whose last axis is the sensitive attribute."""
    *qi, sensitive = rows_of(counts)
    return RiskModel((occupied_cells(qi, counts.shape[:-1], sensitive, counts.shape[-1]),))
