"""composition, probabilistic, hybrid and laplace_on_groups through SQL."""

import duckdb
import numpy as np
import pytest

from duckdb_anon.kernels.slicing.chance import belief, chance_of_occurrence

ROLES = "qi := ['age', 'sex'], sensitive := 'disease'"
GROUPS = "group by age, sex"


@pytest.fixture
def people(con):
    """2,000 people; disease d0 is rare."""
    con.execute(
        """create table people as select (20 + hash(i) % 50)::int as age, ['f', 'm'][(hash(i, 1) % 2 + 1)::int] as sex,
        case when i % 50 = 0 then 'd0' else 'd' || 1 + hash(i, 3) % 5 end as disease, i as kept from range(2000) r(i)"""
    )
    return con


def test_composition_releases_a_sample_whose_groups_meet_the_belief(people):
    call = f"composition('people', 4, {ROLES}, rho := 0.4, alpha := 0.4, row_id := true)"
    people.execute(f"create table r as from {call}")
    rows, rate = people.execute("select count(*), any_value(sampling_rate) from r").fetchone()
    assert rate == 0.4
    assert abs(rows - 800) < 5 * np.sqrt(2000 * 0.24)
    shares = dict(people.execute("select disease, count(*) / 2000 from people group by disease").fetchall())
    groups = people.execute(f"select count(*), list(distinct disease) from r {GROUPS}").fetchall()
    assert len(groups) > 3
    for size, diseases in groups:
        assert size >= 4
        chance = chance_of_occurrence(np.array([shares[d] for d in diseases]), np.array([float(size)]))
        assert belief(0.4, chance).max() <= 0.4 + 1e-9
    wrong = "select count(*) from r join people on kept = row_id where r.disease <> people.disease"
    assert people.execute(wrong).fetchone() == (0,)


def test_the_automatic_rate_is_met_by_the_sample(people):
    for _ in range(5):
        rate = people.execute(f"select any_value(sampling_rate) from composition('people', 4, {ROLES}, rho := 'auto')")
        assert 0.5 < rate.fetchone()[0] <= 1


def test_probabilistic_groups_keep_d_values_with_probability_alpha(people):
    people.execute(f"create table r as from probabilistic('people', 4, {ROLES}, d := 3, alpha := 0.8)")
    assert people.execute("select count(*) from r").fetchone() == (2000,)
    shares = dict(people.execute("select disease, count(*) / 2000 from people group by disease").fetchall())
    rng = np.random.default_rng(0)
    groups = people.execute(f"select count(*), list(distinct disease) from r {GROUPS}").fetchall()
    assert len(groups) > 10
    for size, diseases in groups:
        assert size >= 4 and len(diseases) >= 3
        chance = 1 - (1 - np.array([shares[d] for d in diseases])) ** size
        simulated = (rng.random((20_000, len(diseases))) < chance).sum(axis=1)
        assert (simulated >= 3).mean() >= 0.8 - 0.02


def test_hybrid_keeps_a_sensitive_value_with_probability_q(people):
    call = f"hybrid('people', 5, {ROLES}, rho := 0.7, q := 0.6, row_id := true, seed := 2)"
    people.execute(f"create table r as from {call}")
    assert people.execute(f"select min(n) >= 5 from (select count(*) as n from r {GROUPS})").fetchone() == (True,)
    assert people.execute("select distinct sampling_rate, retention from r").fetchall() == [(0.7, 0.6)]
    same = "select avg((r.disease = p.disease)::int) from r join people p on p.kept = r.row_id"
    expected = (
        0.6
        + 0.4
        * people.execute("""select sum(n * n) / sum(n) ** 2 from (select count(*) as n from people
            group by disease)""").fetchone()[0]
    )  # a replaced value is equal by chance
    assert abs(people.execute(same).fetchone()[0] - expected) < 0.06


def test_laplace_counts_every_value_in_every_group(people):
    people.execute(f"create table r as from laplace_on_groups('people', 20, 2.0, {ROLES}, seed := 3)")
    per_group = f"select count(*), count(distinct disease) from r {GROUPS}"
    assert set(people.execute(per_group).fetchall()) == {(6, 6)}
    noise = people.execute(
        """select noisy_count - (select count(*) from people p where p.disease = r.disease
        and list_contains(r.sex, p.sex) and p.age between r.age.lower and r.age.upper) from r"""
    ).fetchnumpy()
    values = np.asarray(next(iter(noise.values())))
    assert (values == np.rint(values)).all()
    assert abs(np.abs(values).mean() - _spread(2.0)) < 0.1
    assert abs(values.mean()) < 0.1


def _spread(epsilon: float) -> float:
    """Mean absolute value of discrete Laplace noise."""
    p = np.exp(-epsilon)
    return float(2 * p / (1 - p * p))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (f"composition('people', 4, {ROLES}, rho := 1.5)", "neither a number in (0, 1] nor 'auto'"),
        (f"composition('people', 4, {ROLES}, rho := 0.9, alpha := 0.1)", "with a rate of at most"),
        (f"probabilistic('people', 4, {ROLES}, d := 9)", "this table reaches 0"),
        (f"hybrid('people', 5000, {ROLES})", "the largest k this table can meet"),
        (f"laplace_on_groups('people', 4, 0.3, {ROLES}, keep := ['kept'])", "belong to rows"),
        ("hybrid('people', 4, qi := ['age'], sensitive := ['sex', 'disease'])", "takes one sensitive column"),
    ],
)
def test_errors_name_the_cause(people, call, message):
    with pytest.raises(duckdb.Error) as caught:
        people.execute(f"from {call}").fetchall()
    assert message in str(caught.value)
