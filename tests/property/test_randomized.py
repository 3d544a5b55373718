"""What holds for any randomized table: probabilities, monotone risk, inverses, feasible optima."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from duckdb_anon.kernels.randomized_response.channel import RetentionChannel, project
from duckdb_anon.kernels.randomized_response.optimize_p import Problem, optimal_channels
from duckdb_anon.kernels.randomized_response.risk import reconstruction_probability
from duckdb_anon.model.errors import RequirementError
from tests.reference.randomized import channel_matrix, model_of, reconstruction, risk

GAINS = st.floats(0.05, 1.0)


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    """Counts over two QI attributes and a sensitive one, with at least one record."""
    shape = draw(st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(2, 4)))
    counts = draw(arrays(np.int64, shape, elements=st.integers(0, 6)))
    assume(counts.sum() > 0)
    return counts


@given(arrays(np.float64, st.integers(2, 6), elements=st.floats(0.01, 1)), GAINS, GAINS)
def test_reconstruction_lies_between_prior_and_one_and_rises_with_p(weights, one, two):
    prior = weights / weights.sum()
    low, high = sorted((one, two))
    found = [reconstruction_probability(prior, [RetentionChannel.of_gain(len(prior), g)]) for g in (low, high)]
    assert (found[0] >= prior - 1e-12).all()
    assert (found[1] <= 1 + 1e-12).all()
    assert (found[0] <= found[1] + 1e-12).all()
    channel = RetentionChannel.of_gain(len(prior), low)
    np.testing.assert_allclose(found[0], reconstruction(prior, channel_matrix(channel.size, channel.p)), atol=1e-12)


@given(tables(), GAINS, GAINS)
def test_randomizing_both_parts_is_never_riskier_than_one(counts, qi, sensitive):
    model = model_of(counts)
    some = [RetentionChannel.of_gain(d, qi) for d in counts.shape[:-1]]
    none = [RetentionChannel(d, 1.0) for d in counts.shape[:-1]]
    own, kept = RetentionChannel.of_gain(counts.shape[-1], sensitive), RetentionChannel(counts.shape[-1], 1.0)
    both = model.risks(some, [own])[0]
    assert (both <= model.risks(some, [kept])[0] + 1e-12).all()
    assert (both <= model.risks(none, [own])[0] + 1e-12).all()
    assert (model.risks(none, [kept])[0] == model.tables[0].conditional).all()


@given(tables(), st.sampled_from([1.5, 2.0, 3.0]), st.sampled_from(["both", "qi", "sensitive"]))
def test_optimal_channels_keep_the_bound_or_the_error_is_right(counts, level, scope):
    problem = Problem(model_of(counts), 1 / level, scope)
    try:
        channels = optimal_channels(problem, "rr_distort")
    except RequirementError:
        assert problem.floor() > (1 / level) * (1 - 1e-6)
        return
    shares = [c.p for c in channels]
    assert problem.bounded_risk(channels) <= 1 / level
    assert risk(counts, shares[:-1], shares[-1]).max() <= 1 / level + 1e-12


@given(arrays(np.float64, st.integers(1, 8), elements=st.floats(-1, 2)))
def test_a_projection_has_the_shares_of_what_is_positive(raw):
    assume(raw.sum() > 0.1)
    np.testing.assert_allclose(project(raw), np.maximum(raw, 0) / np.maximum(raw, 0).sum())
