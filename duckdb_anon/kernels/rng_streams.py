"""Where every draw of the package comes from.

Releases draw from ChaCha20 (Bernstein 2008; RFC 8439) with a key of 256 bits from the operating system, through
randomgen's numpy bit generator: who sees any number of draws cannot tell the others from chance. PCG64 is not made for
that (its state follows from few outputs; Bouillaguet, Martinez and Sauvage 2020), so it serves only where a `seed`
makes a run repeatable, for tests and studies. A seed from 2^64 on cannot be guessed and is a key of ChaCha20: draws of
releases that come from a secret (`engine.records.register`) are as hard to tell from chance as those from the system.

Cost: 35 ns a double against 7 with PCG64, in compiled kernels 18 against 6; a release of 10 million draws takes a
quarter of a second longer.

Threads that draw side by side have generators of their own: a generator is one stream behind a lock, so threads that
share one wait for one another, and what each gets depends on who came first. Each has a key of 256 bits from the
generator it is made of, so with a cryptographic one nobody who sees the draws of some tells those of the others from
chance. Cost: four draws a generator, one a row that is put into order.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray
from randomgen import ChaCha

from duckdb_anon.kernels.jit import compiled
from duckdb_anon.kernels.thread_pool import parallel_map
from duckdb_anon.model.coded_table import IntArray

_WORDS = 4
"""Words of 64 bits of a key."""
_LANES = 2
_HALF, _LOW = np.uint64(32), np.uint64(2**32 - 1)


def spawn_generators(rng: np.random.Generator, many: int) -> list[np.random.Generator]:
    """Generators of the kind of `rng`, which gives their keys.

    `many`: how many are needed.

    >>> [one.random() for one in spawn_generators(np.random.default_rng(1), 2)] == [
    ...     one.random() for one in spawn_generators(np.random.default_rng(1), 2)
    ... ]
    True
    """
    words = rng.integers(0, 2**64, size=(many, _WORDS), dtype=np.uint64).tolist()
    if isinstance(rng.bit_generator, ChaCha):
        keys = (sum(word << 64 * index for index, word in enumerate(part)) for part in words)
        return [np.random.Generator(ChaCha(key=key)) for key in keys]
    return [np.random.Generator(np.random.PCG64(part)) for part in words]


def random_order(rng: np.random.Generator, rows: int) -> IntArray:
    """Rows 0 .. rows - 1 in random order, each order as likely as any other but for less than rows / 2^64.

    `Generator.permutation` holds the GIL all the while, and drawing is nearly all that it does: here two generators
    draw side by side, however many threads there are.

    `rows`: how many, below 2^32.

    >>> sorted(random_order(np.random.default_rng(1), 4).tolist())
    [0, 1, 2, 3]
    """
    words, size = np.empty(rows, dtype=np.uint64), -(-rows // _LANES)
    lanes = spawn_generators(rng, _LANES)

    def draw(lane: int) -> None:
        part = words[lane * size : (lane + 1) * size]
        part[:] = lanes[lane].integers(0, 2**64, size=len(part), dtype=np.uint64)

    parallel_map(draw, range(_LANES))
    order = np.arange(rows, dtype=np.int64)
    _reorder(words, order)
    return order


@compiled
def _reorder(words: NDArray[Any], order: IntArray) -> None:
    """Shuffle (Fisher and Yates, in Durstenfeld's order); a word's product with i + 1 tells the place."""
    for i in range(len(order) - 1, 0, -1):
        places = np.uint64(i + 1)
        low, high = (words[i] & _LOW) * places, (words[i] >> _HALF) * places
        j = np.int64((high + (low >> _HALF)) >> _HALF)
        order[i], order[j] = order[j], order[i]


@compiled
def next_word(state: Any) -> Any:
    """The random word of 64 bits after another one: Marsaglia's xorshift (13, 7, 17)."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    return state ^ (state << np.uint64(17))


@compiled
def below(half: Any, size: int) -> int:
    """A number below `size`, from 32 random bits."""
    return int((half * np.uint64(size)) >> _HALF)


_KEY_BITS = 256
_MOST_DERIVED = 2**127
LEAST_KEY = 2**64
"""Seeds from here on cannot be found by trying."""


def generator(seed: int | None) -> np.random.Generator:
    """A generator for one call: cryptographic, or PCG64 with a `seed` below 2^64.

    >>> type(generator(None).bit_generator).__name__, type(generator(1).bit_generator).__name__
    ('ChaCha', 'PCG64')
    """
    if seed is not None and seed >= LEAST_KEY:
        return np.random.Generator(ChaCha(key=int.from_bytes(hashlib.sha256(str(seed).encode()).digest())))
    if seed is not None:
        return np.random.Generator(np.random.PCG64(seed))
    # a key is used as it is; a seed would pass through numpy's SeedSequence, which keeps 128 bits of it
    return np.random.Generator(ChaCha(key=secrets.randbits(_KEY_BITS)))


def derived_seed(seed: int, purpose: str) -> int:
    """A seed for one purpose, so that it repeats no draw of another call that was given the same seed.

    >>> derived_seed(1, "part 1") == derived_seed(1, "part 2")
    False
    """
    return int.from_bytes(hashlib.sha256(f"{seed} of {purpose}".encode()).digest()) % _MOST_DERIVED
