"""Generators of their own for threads that draw side by side.

A generator is one stream behind a lock: threads that share one wait for one another, and what each gets depends on who
came first. Each of these has a key of 256 bits from the generator it is made of, so with a cryptographic one
(ChaCha20) nobody who sees the draws of some tells those of the others from chance.
Cost: four draws a generator.
"""

from __future__ import annotations

import numpy as np
from randomgen import ChaCha

_WORDS = 4
"""Words of 64 bits of a key."""


def apart(rng: np.random.Generator, many: int) -> list[np.random.Generator]:
    """Generators of the kind of `rng`, which gives their keys.

    Args:
        rng: with ChaCha or PCG64 behind it.
        many: how many are needed.

    >>> [one.random() for one in apart(np.random.default_rng(1), 2)] == [
    ...     one.random() for one in apart(np.random.default_rng(1), 2)
    ... ]
    True
    """
    words = rng.integers(0, 2**64, size=(many, _WORDS), dtype=np.uint64).tolist()
    if isinstance(rng.bit_generator, ChaCha):
        keys = (sum(word << 64 * place for place, word in enumerate(own)) for own in words)
        return [np.random.Generator(ChaCha(key=key)) for key in keys]
    return [np.random.Generator(np.random.PCG64(own)) for own in words]
