"""DiffGen's budget."""

from __future__ import annotations

import pytest

from duckdb_anon.kernels.differential_privacy.diffgen_search import Budget


@pytest.mark.parametrize(
    ("numeric", "rounds", "expected"), [(1, 2, 0.03), (2, 8, 0.0083333), (1, 10, 0.0071429), (0, 0, 0.15)]
)
def test_a_choice_gets_its_share_of_half_the_budget(numeric: int, rounds: int, expected: float) -> None:
    assert Budget(0.3, numeric, rounds).choice == pytest.approx(expected, abs=5e-8)


@pytest.mark.parametrize("numeric", [0, 1, 5])
@pytest.mark.parametrize("rounds", [1, 4, 20])
def test_the_steps_add_up_to_epsilon(numeric: int, rounds: int) -> None:
    steps = Budget(0.7, numeric, rounds).steps()
    assert sum(total for *_, total in steps) == pytest.approx(0.7)
    assert all(times * each == pytest.approx(total) for _, _, times, each, total in steps)
