"""Generators of their own: of one kind with the first, apart from one another, and as long a key."""

import numpy as np
import pytest

from duckdb_anon.kernels.rng_streams import generator, spawn_generators


@pytest.mark.parametrize("seed", [None, 3])
def test_they_are_of_one_kind_and_draw_different_numbers(seed):
    rng = generator(seed)
    each = spawn_generators(rng, 3)
    assert {type(one.bit_generator) for one in each} == {type(rng.bit_generator)}
    drawn = np.stack([one.random(20_000) for one in (*each, rng)])
    correlated = np.corrcoef(drawn) - np.eye(4)
    assert np.abs(correlated).max() < 0.04  # six standard errors
    assert len(np.unique(drawn)) == drawn.size


def test_a_cryptographic_one_gives_keys_of_256_bits():
    keys = [one.bit_generator.state["state"]["keysetup"] for one in spawn_generators(generator(None), 50)]
    words = np.stack(keys)
    assert words.shape == (50, 8)
    # each of the 256 bits is set in some and not in all; by chance one of them is the same in all 50 once in 2^41
    assert (np.bitwise_or.reduce(words) == 2**32 - 1).all() and (np.bitwise_and.reduce(words) == 0).all()
